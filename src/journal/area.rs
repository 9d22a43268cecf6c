//! The log as a ring of blocks.

use super::record::LogRecord;
use crate::device::Device;
use crate::error::{Check, Corruption, DeviceRole, Error, Place, Result, Rule};
use crate::geometry::limits::BASIC_BLOCK;
use crate::geometry::{Daddr, Geometry};
use crate::ondisk::RawUuid;
use crate::ondisk::log_record::{BBSIZE, BIG_RECORD_SIZE, MAX_ICLOGS, MAX_RECORD_SIZE, block_cycle};

/// Blocks that are read at once in the search for a record header.
const SEARCH_BLOCKS: u32 = 2048;

/// The blocks of a log. Block numbers count units of 512 bytes from the start of the log, as LSNs do.
pub struct LogArea<'a> {
    device: &'a dyn Device,
    start: u64,
    blocks: u32,
    version: u32,
    uuid: RawUuid,
}

impl<'a> LogArea<'a> {
    /// The log of a filesystem: `device` is its data device if the log is internal, else its log device.
    ///
    /// # Errors
    /// `Corrupt` when the log has no blocks, or does not lie on the device.
    pub fn new(device: &'a dyn Device, geometry: &Geometry) -> Result<Self> {
        let outside = |detail: String| {
            let check = Check::new("sb", "logblocks", Rule::Range);
            Error::Corrupt(Box::new(Corruption { check, place: Place::default().on(device.role()), detail }))
        };
        let start = match geometry.log.start {
            Some(_) => geometry.log_daddr().map(|daddr| daddr.0),
            None => Some(0),
        };
        let start = start.and_then(|daddr| daddr.checked_mul(u64::from(BASIC_BLOCK)));
        let start = start.ok_or_else(|| outside("the log starts outside the filesystem".to_owned()))?;
        let blocks = u32::try_from(geometry.log_basic_blocks()).unwrap_or(u32::MAX);
        let end = start.checked_add(u64::from(blocks) * u64::from(BASIC_BLOCK));
        if blocks == 0 || end.is_none_or(|end| end > device.len()) {
            return Err(outside(format!(
                "{} blocks do not lie on a device of {} bytes",
                geometry.log.blocks,
                device.len()
            )));
        }
        Ok(LogArea { device, start, blocks, version: geometry.log.version, uuid: geometry.uuid })
    }

    /// A log that fills `device` whole, with no superblock to say anything of it: a copy of a log. Its first record header that
    /// makes sense tells version and UUID.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when the device is smaller than a block.
    pub fn of_copy(device: &'a dyn Device) -> Result<Self> {
        let blocks = u32::try_from(device.len() / u64::from(BASIC_BLOCK)).unwrap_or(u32::MAX);
        let mut area = LogArea { device, start: 0, blocks, version: 2, uuid: [0; 16] };
        if blocks == 0 {
            return Err(area.corrupt("blocks", Rule::Range, 0, "there is not even one block"));
        }
        for start in (0..blocks).step_by(SEARCH_BLOCKS as usize) {
            let bytes = area.read(start, SEARCH_BLOCKS.min(blocks - start))?;
            for (bytes, block) in bytes.chunks_exact(BBSIZE).zip(start..) {
                let Some(record) = LogRecord::parse(bytes, block) else { continue };
                area.version = record.header.version.get().clamp(1, 2);
                if record.is_plausible(&area) {
                    area.uuid = record.header.fs_uuid;
                    return Ok(area);
                }
            }
        }
        Ok(LogArea { version: 2, ..area })
    }

    /// Where it begins on its device, in units of 512 bytes.
    pub fn start(&self) -> Daddr {
        Daddr(self.start / u64::from(BASIC_BLOCK))
    }

    /// Size in blocks of 512 bytes; at least 1.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Version of the log that the superblock states: 1 or 2.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// UUID that its records carry.
    pub fn uuid(&self) -> RawUuid {
        self.uuid
    }

    /// Blocks of the largest record.
    pub fn record_blocks(&self) -> u32 {
        (if self.version >= 2 { MAX_RECORD_SIZE } else { BIG_RECORD_SIZE }) / BASIC_BLOCK
    }

    /// Blocks of all the records that can be on their way to the disk at once.
    pub fn in_flight_blocks(&self) -> u32 {
        MAX_ICLOGS * self.record_blocks()
    }

    /// `steps` blocks behind `block`, around the ring.
    pub fn behind(&self, block: u32, steps: u32) -> u32 {
        let sum = (u64::from(block) + u64::from(steps)) % u64::from(self.blocks);
        u32::try_from(sum).expect("invariant: less than the number of blocks")
    }

    /// `steps` blocks before `block`, around the ring.
    pub fn before(&self, block: u32, steps: u32) -> u32 {
        self.behind(block, self.blocks - steps % self.blocks)
    }

    /// Blocks from `from` forward to `to`, around the ring: less than the size of the log.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        self.before(to, from % self.blocks)
    }

    /// Reads `count` blocks from `block` on, around the ring. No caller asks for more than [`LogArea::in_flight_blocks`].
    ///
    /// # Errors
    /// `Io`.
    pub fn read(&self, block: u32, count: u32) -> Result<Vec<u8>> {
        let count = count.min(self.blocks);
        let mut bytes = vec![0; count as usize * BBSIZE];
        let block = block % self.blocks;
        let until_end = count.min(self.blocks - block) as usize * BBSIZE;
        let (first, second) = bytes.split_at_mut(until_end);
        self.device.read_at(self.start + u64::from(block) * u64::from(BASIC_BLOCK), first)?;
        self.device.read_at(self.start, second)?;
        Ok(bytes)
    }

    /// The cycle that `block` carries.
    ///
    /// # Errors
    /// `Io`.
    pub fn cycle(&self, block: u32) -> Result<u32> {
        Ok(block_cycle(&self.read(block, 1)?).unwrap_or(0))
    }

    /// The first of `count` blocks from `block` on, not around the ring, that carries `cycle`.
    ///
    /// # Errors
    /// `Io`.
    pub fn find_cycle(&self, block: u32, count: u32, cycle: u32) -> Result<Option<u32>> {
        let bytes = self.read(block, count.min(self.blocks.saturating_sub(block)))?;
        let found = bytes.chunks_exact(BBSIZE).zip(block..).find(|(bytes, _)| block_cycle(bytes) == Some(cycle));
        Ok(found.map(|(_, block)| block))
    }

    /// An error that says what is wrong with the log at `block`.
    pub fn corrupt(&self, field: &'static str, rule: Rule, block: u32, detail: impl Into<String>) -> Error {
        let mut place = Place::at_daddr(self.start / u64::from(BASIC_BLOCK) + u64::from(block)).on(self.device.role());
        if self.device.role() == DeviceRole::Log {
            place.daddr = Some(u64::from(block));
        }
        Error::Corrupt(Box::new(Corruption { check: Check::new("log", field, rule), place, detail: detail.into() }))
    }
}
