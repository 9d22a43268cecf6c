//! A log with nothing in it: records of a clean unmount that fill it (xfsprogs `libxfs/rdwr.c`, `libxfs_log_clear`).

use zerocopy::{FromZeros, IntoBytes};

use super::write::{Frame, unmount_operation};
use crate::geometry::limits::BASIC_BLOCK;
use crate::geometry::{Geometry, Lsn};
use crate::ondisk::log_record::{BBSIZE, BIG_RECORD_SIZE, MAX_RECORD_SIZE, RawLogRecExtHeader, fmt, header_blocks};
use crate::ondisk::{Be32, LittleEndian, RawUuid};

/// Transaction number by which records from userspace are known.
const USERSPACE_TID: u32 = 0xb0c0_d0d0;
/// Blocks of the shortest record: a header and one block.
const SHORTEST: u32 = 2;

/// A log that begins a cycle, with records of the one before it in all the rest; in the first cycle with zeroes there.
pub struct CleanLog {
    uuid: RawUuid,
    version: u32,
    stripe_unit: u32,
    /// Size in blocks of 512 bytes.
    blocks: u32,
    cycle: u32,
}

impl CleanLog {
    /// The log of a filesystem, come to `cycle`, which is not 0.
    pub fn new(geometry: &Geometry, cycle: u32) -> Self {
        CleanLog {
            uuid: geometry.uuid,
            version: geometry.log.version,
            stripe_unit: if geometry.log.version >= 2 { geometry.log.stripe_unit } else { 0 },
            blocks: u32::try_from(geometry.log_basic_blocks()).unwrap_or(u32::MAX),
            cycle: cycle.max(1),
        }
    }

    /// Its contents in order: the first block of each piece, in units of 512 bytes, and the bytes.
    pub fn pieces(&self) -> impl Iterator<Item = (u32, Vec<u8>)> + '_ {
        let most = MAX_RECORD_SIZE / BASIC_BLOCK;
        let starts = (0..self.blocks).step_by(most as usize);
        starts.map(move |start| {
            let count = most.min(self.blocks - start);
            let size = count as usize * BBSIZE;
            let mut bytes = if start == 0 {
                self.first_record()
            } else if self.cycle > 1 {
                let (lsn, tail) = (Lsn::new(self.cycle - 1, start), Lsn::new(self.cycle - 1, start - count));
                self.record(count * BASIC_BLOCK, lsn, tail)
            } else {
                Vec::new()
            };
            bytes.resize(size, 0);
            if start == 0 && self.cycle > 1 {
                // blocks of the first piece behind the record belong to the cycle before
                self.fill(&mut bytes);
            }
            (start, bytes)
        })
    }

    /// Blocks of the record with which the log begins.
    fn first_blocks(&self) -> u32 {
        (self.stripe_unit / BASIC_BLOCK).max(SHORTEST).min(self.blocks)
    }

    fn first_record(&self) -> Vec<u8> {
        let lsn = Lsn::new(self.cycle, 0);
        let last = self.blocks.saturating_sub(self.first_blocks());
        let tail = if self.cycle == 1 { lsn } else { Lsn::new(self.cycle - 1, last) };
        self.record(self.stripe_unit, lsn, tail)
    }

    /// Marks the blocks between the first record and the next with the cycle before.
    fn fill(&self, bytes: &mut [u8]) {
        let first = self.first_blocks();
        for block in bytes.chunks_exact_mut(BBSIZE).skip(first as usize) {
            block[..size_of::<Be32>()].copy_from_slice(&(self.cycle - 1).to_be_bytes());
        }
    }

    /// A record of a clean unmount in a unit of `unit` bytes.
    fn record(&self, unit: u32, lsn: Lsn, tail: Lsn) -> Vec<u8> {
        let headers = header_blocks(self.version, unit);
        let length = unit.max((headers + 1) * BASIC_BLOCK).max(SHORTEST * BASIC_BLOCK);
        let mut bytes = vec![0; length as usize];
        let cycle = Be32::new(lsn.cycle());
        let frame =
            Frame { version: self.version, uuid: self.uuid, format: fmt::LINUX_LE, size: unit.max(BIG_RECORD_SIZE) };
        let mut head = frame.header(lsn, tail, u32::MAX, length - headers * BASIC_BLOCK, 1);
        // the first word of the block with the unmount record is kept in the header, where the cycle takes its place
        head.cycle_data[0].set(USERSPACE_TID);
        for (index, block) in (0..).zip(bytes.chunks_exact_mut(BBSIZE)) {
            match index {
                0 => block.copy_from_slice(head.as_bytes()),
                index if index < headers => {
                    let mut ext = RawLogRecExtHeader::new_zeroed();
                    ext.cycle = cycle;
                    block.copy_from_slice(ext.as_bytes());
                }
                index => {
                    if index == headers {
                        let operation = unmount_operation::<LittleEndian>(USERSPACE_TID);
                        block[..operation.len()].copy_from_slice(&operation);
                    }
                    block[..size_of::<Be32>()].copy_from_slice(cycle.as_bytes());
                }
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, MemoryDevice};
    use crate::geometry::samples;
    use crate::journal::{LogArea, LogState, scan};

    #[test]
    fn it_is_found_clean_in_its_cycle() {
        for (sample, unit) in [("default", 0), ("default", 4096), ("default", 65_536), ("v4-old", 0)] {
            let mut sb = samples::superblock(sample);
            sb.logsunit = unit.into();
            let geometry = Geometry::assume(&sb);
            for cycle in [1, 2, 77] {
                let log =
                    CleanLog { version: if sample == "default" { 2 } else { 1 }, ..CleanLog::new(&geometry, cycle) };
                if log.version == 1 && cycle > 1 {
                    continue;
                }
                let start = geometry.log_daddr().expect("internal").0;
                let end = (start + geometry.log_basic_blocks()) * 512;
                let device = MemoryDevice::new(end);
                for (at, bytes) in log.pieces() {
                    device.write_at((start + u64::from(at)) * 512, &bytes).expect("inside");
                }
                let found = scan(&LogArea::new(&device, &geometry).expect("inside")).expect("sound");
                assert_eq!((found.state, found.last_record), (LogState::Clean, Lsn::new(cycle, 0)), "{sample} {unit}");
            }
        }
    }
}
