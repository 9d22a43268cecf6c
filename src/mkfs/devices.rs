//! What must be known of the devices before a layout can be chosen.

use super::layout::PowerSize;
use crate::device::{SectorSize, Topology, Zones};

/// Kind of the thing that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// There is nothing of this name.
    Missing,
    /// A regular file.
    File,
    /// A block device.
    Block,
}

/// Facts about one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Its name, as given.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its sectors, stripes and zones.
    pub topology: Topology,
}

impl DeviceFacts {
    /// A regular file of which no more is known, or one that is to be made.
    pub fn file(name: &str, kind: DeviceKind, bytes: u64) -> Self {
        let topology = Topology {
            sector_size: SectorSize::FILE,
            minimum_io: 0,
            optimal_io: 0,
            alignment_offset: 0,
            rotational: true,
            dax: false,
            untorn_write: (0, 0),
            zones: None,
        };
        DeviceFacts { name: name.to_string(), kind, bytes, topology }
    }

    /// Its sector sizes.
    pub fn sector(&self) -> SectorSize {
        self.topology.sector_size
    }

    /// Smallest and largest write that is never torn, in bytes, if a block is among them; else 0.
    pub(super) fn untorn_write(&self, block: PowerSize) -> (u64, u64) {
        let (min, max) = self.topology.untorn_write;
        if (min..=max).contains(&u64::from(block.bytes())) { (min, max) } else { (0, 0) }
    }

    /// Stripe unit and width in units of 512 bytes; 0 where it has none.
    pub(super) fn stripe(&self) -> (u32, u32) {
        let basic = |bytes: u64| u32::try_from(bytes >> 9).unwrap_or(u32::MAX);
        self.topology.stripe().map_or((0, 0), |stripe| (basic(stripe.unit), basic(stripe.width)))
    }
}

/// The devices of the filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices {
    /// The data device.
    pub data: DeviceFacts,
    /// The device of an external log.
    pub log: Option<DeviceFacts>,
    /// The realtime device.
    pub realtime: Option<DeviceFacts>,
}

/// The zones of the hardware that hold a zoned realtime section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RealtimeZones {
    /// How many there are.
    pub count: u64,
    /// Bytes of each that can be written.
    pub capacity: u64,
    /// Where they begin on the data device, in bytes; `None` if they are a device of their own.
    pub start: Option<u64>,
    /// The capacity is less than the size.
    pub gaps: bool,
}

impl Devices {
    /// The zones that a realtime section would be written to, where the hardware has zones.
    pub(super) fn realtime_zones(&self) -> Option<RealtimeZones> {
        if let Some(Zones { count, conventional, capacity, .. }) = self.data.topology.zones {
            let start = Some(conventional.saturating_mul(capacity));
            return Some(RealtimeZones { count: count.saturating_sub(conventional), capacity, start, gaps: false });
        }
        let Zones { count, size, capacity, .. } = self.realtime.as_ref()?.topology.zones?;
        Some(RealtimeZones { count, capacity, start: None, gaps: size != capacity })
    }
}
