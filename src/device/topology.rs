//! What a block device says about itself: sectors, stripes, alignment, kind of medium, zones.
//!
//! Read from sysfs, like libblkid does, which mkfs.xfs asks (`libxfs/topology.c` of xfsprogs); a partition's limits are
//! those of its disk, its alignment is its own.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxFlags, fstatfs, statx};

use super::block_ioctl::{ZoneReport, reset_zones, visit_zones};
use super::contract::{ByteRange, Device, SectorSize, io_error};
use super::file::{FileDevice, FileKind};
use super::in_use::DeviceNumber;
use crate::error::{Error, Result};

/// Properties of a device that decide how a filesystem is best laid out on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Sector sizes. For a file on an XFS filesystem, both are the unit of direct I/O there.
    pub sector_size: SectorSize,
    /// Bytes of the smallest I/O without a penalty; on RAID, the stripe unit. 0 if not known.
    pub minimum_io: u64,
    /// Bytes of the best I/O; on RAID, the stripe width. 0 if not known.
    pub optimal_io: u64,
    /// Bytes by which the device's start is off the physical sectors or the stripes; -1 if it can never fit.
    pub alignment_offset: i64,
    /// Whether the medium turns; also where it is not known.
    pub rotational: bool,
    /// Whether the device can be mapped into memory directly.
    pub dax: bool,
    /// Sizes of writes that are never torn, whatever happens, smallest and largest, in bytes; 0 if none is.
    pub untorn_write: (u64, u64),
    /// The zones of a zoned device.
    pub zones: Option<Zones>,
}

/// A RAID's stripes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// What goes to one disk.
    pub unit: u64,
    /// What goes to all data disks.
    pub width: u64,
}

/// The zones of a zoned device, which all have the same size and capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// How many there are.
    pub count: u64,
    /// How many of them, at the start, can be written in any order.
    pub conventional: u64,
    /// Bytes from one zone's start to the next one's.
    pub size: u64,
    /// Bytes of a zone that can be written.
    pub capacity: u64,
}

impl Topology {
    /// Stripe unit and width, where the device has stripes.
    ///
    /// A device without stripes reports its physical sector in one place or the other; that counts as nothing.
    pub fn stripe(&self) -> Option<Stripe> {
        let sector = u64::from(self.sector_size.physical);
        let none = self.minimum_io == sector || self.optimal_io == sector;
        (!none && self.minimum_io >= 512).then_some(Stripe { unit: self.minimum_io, width: self.optimal_io })
    }

    /// Of a regular file: it has sectors only.
    fn of_file(file: &File) -> Self {
        let sector = direct_io_unit(file).unwrap_or(SectorSize::FILE.logical);
        Topology {
            sector_size: SectorSize { logical: sector, physical: sector },
            minimum_io: 0,
            optimal_io: 0,
            alignment_offset: 0,
            rotational: true,
            dax: false,
            untorn_write: (0, 0),
            zones: None,
        }
    }

    /// From the folder of a device in sysfs.
    fn from_sysfs(folder: &Path, sector_size: SectorSize) -> Self {
        let queue = queue_of(folder);
        Topology {
            sector_size,
            minimum_io: number_in(&queue.join("minimum_io_size")).unwrap_or(0),
            optimal_io: number_in(&queue.join("optimal_io_size")).unwrap_or(0),
            alignment_offset: number_in(&folder.join("alignment_offset")).unwrap_or(0),
            rotational: number_in::<u8>(&queue.join("rotational")) != Some(0),
            dax: number_in::<u8>(&queue.join("dax")) == Some(1),
            untorn_write: (
                number_in(&queue.join("atomic_write_unit_min_bytes")).unwrap_or(0),
                number_in(&queue.join("atomic_write_unit_max_bytes")).unwrap_or(0),
            ),
            zones: None,
        }
    }
}

impl FileDevice {
    /// What the system says about the device.
    ///
    /// # Errors
    /// `Io` if the zones of a zoned device cannot be listed, `Unsupported` if XFS could not use them.
    pub fn topology(&self) -> Result<Topology> {
        let Some(number) = self.block_number() else { return Ok(Topology::of_file(self.file())) };
        let folder = number.sysfs();
        let mut topology = Topology::from_sysfs(&folder, self.sector_size());
        if is_zoned(&folder) {
            topology.zones = Some(self.zones()?);
        }
        Ok(topology)
    }

    fn zones(&self) -> Result<Zones> {
        let mut found = ZonesSeen::default();
        visit_zones(self.file(), |zone| found.add(zone)).map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => Error::Unsupported(error.to_string()),
            _ => io_error(self.role(), 0, error),
        })?;
        Ok(found.zones)
    }

    /// Empties the zones that `range` covers, on a zoned device.
    ///
    /// # Errors
    /// `Io`.
    pub fn reset_zones(&self, range: ByteRange) -> Result<()> {
        reset_zones(self.file(), range.start / 512, range.len / 512)
            .map_err(|error| io_error(self.role(), range.start, error))
    }

    fn block_number(&self) -> Option<DeviceNumber> {
        use std::os::unix::fs::MetadataExt;
        let metadata = (self.kind() == FileKind::Block).then(|| self.file().metadata().ok()).flatten()?;
        Some(DeviceNumber::of(metadata.rdev()))
    }
}

/// Zones while they are being listed.
#[derive(Default)]
struct ZonesSeen {
    zones: Zones,
    sequential: bool,
}

impl ZonesSeen {
    fn add(&mut self, zone: &ZoneReport) -> io::Result<()> {
        let refuse = |what: &str| Err(io::Error::new(io::ErrorKind::Unsupported, format!("a zoned device {what}")));
        let (Some(size), Some(capacity)) = (zone.len.checked_mul(512), zone.capacity.checked_mul(512)) else {
            return refuse("with zones larger than any device");
        };
        if self.zones.count == 0 {
            self.zones = Zones { size, capacity, ..Zones::default() };
        }
        match zone.kind {
            1 if !self.sequential => self.zones.conventional += 1,
            1 => {}
            2 => self.sequential = true,
            3 => return refuse("with zones that only prefer sequential writes"),
            kind => return refuse(&format!("with zones of the unknown type {kind}")),
        }
        if size != self.zones.size {
            return refuse("with zones of different sizes");
        }
        if capacity != self.zones.capacity || capacity > size {
            return refuse("with zones of inconsistent capacity");
        }
        self.zones.count += 1;
        Ok(())
    }
}

/// The queue folder of a device, which a partition shares with its disk.
fn queue_of(folder: &Path) -> PathBuf {
    let own = folder.join("queue");
    if own.exists() { own } else { folder.join("../queue") }
}

fn is_zoned(folder: &Path) -> bool {
    let model = std::fs::read_to_string(queue_of(folder).join("zoned")).unwrap_or_default();
    matches!(model.trim(), "host-managed" | "host-aware")
}

fn number_in<T: std::str::FromStr>(file: &Path) -> Option<T> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Magic number of XFS as `statfs` tells it.
const XFS_SUPER_MAGIC: u64 = 0x5846_5342;

/// The unit of direct I/O on a file that lies on XFS.
fn direct_io_unit(file: &File) -> Option<u32> {
    let host = u64::try_from(fstatfs(file).ok()?.f_type).ok()?;
    if host != XFS_SUPER_MAGIC {
        return None;
    }
    let status = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    Some(status.stx_dio_offset_align).filter(|unit| *unit >= 512)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::OpenFile;

    fn device(folder: &Path, values: &[(&str, &str)]) -> Topology {
        for (name, value) in values {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().expect("invariant: names have folders")).expect("writable");
            std::fs::write(path, format!("{value}\n")).expect("writable");
        }
        Topology::from_sysfs(folder, SectorSize { logical: 512, physical: 4096 })
    }

    #[test]
    fn a_raid_has_stripes() {
        let folder = tempfile::tempdir().expect("invariant: a temporary folder can be made");
        let disk = folder.path().join("md0");
        let values =
            [("queue/minimum_io_size", "65536"), ("queue/optimal_io_size", "262144"), ("queue/rotational", "0")];
        let topology = device(&disk, &values);
        assert_eq!(topology.stripe(), Some(Stripe { unit: 65536, width: 262_144 }));
        assert!(!topology.rotational && !topology.dax);
        let partition = device(&disk.join("md0p1"), &[("alignment_offset", "-1")]);
        assert_eq!((partition.stripe(), partition.alignment_offset), (topology.stripe(), -1));
    }

    #[test]
    fn a_plain_disk_has_none() {
        let folder = tempfile::tempdir().expect("invariant: a temporary folder can be made");
        let values = [("queue/minimum_io_size", "4096"), ("queue/optimal_io_size", "0"), ("queue/dax", "1")];
        let topology = device(folder.path(), &values);
        assert_eq!(topology.stripe(), None);
        assert!(topology.rotational && topology.dax);
        assert_eq!(device(&folder.path().join("empty/deep"), &[("x/y", "")]).stripe(), None);
    }

    #[test]
    fn a_file_has_sectors_only() {
        let file = tempfile::NamedTempFile::new().expect("invariant: a temporary file can be made");
        let device = FileDevice::open(file.path(), OpenFile::READ).expect("invariant: readable");
        let topology = device.topology().expect("a file has no zones to fail on");
        assert_eq!((topology.stripe(), topology.zones, topology.alignment_offset), (None, None, 0));
        assert_eq!(topology.sector_size.logical, topology.sector_size.physical);
    }

    #[test]
    fn zones_must_be_alike() {
        let zone = |kind, len, capacity| {
            let mut zone = ZoneReport::default();
            (zone.kind, zone.len, zone.capacity) = (kind, len, capacity);
            zone
        };
        let seen = |zones: &[ZoneReport]| {
            let mut seen = ZonesSeen::default();
            zones.iter().try_for_each(|zone| seen.add(zone)).map(|()| seen.zones)
        };
        let sound = seen(&[zone(1, 8, 6), zone(2, 8, 6), zone(1, 8, 6)]).expect("XFS can use these");
        assert_eq!(sound, Zones { count: 3, conventional: 1, size: 4096, capacity: 3072 });
        for bad in [zone(3, 8, 6), zone(4, 8, 6), zone(2, 9, 6), zone(2, 8, 7), zone(2, u64::MAX, 6)] {
            assert!(seen(&[zone(1, 8, 6), bad]).is_err());
        }
        assert!(seen(&[zone(2, 8, 9)]).is_err());
    }
}
