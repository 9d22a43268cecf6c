//! Where in the log the next record goes.

use crate::geometry::Lsn;
use crate::journal::{LogScan, LogState};
use crate::ondisk::log_record::HEADER_MAGIC;

/// What stands for the record before the first one.
const NO_RECORD: u32 = u32::MAX;

/// Where in the log the next record goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// The cycle that it will carry; not 0.
    pub cycle: u32,
    /// Its block.
    pub block: u32,
    /// The block of the record before it; all ones when there is none.
    pub previous: u32,
}

impl LogPosition {
    /// Behind what a scan of the log found.
    pub fn after(scan: &LogScan) -> Self {
        if scan.state == LogState::Zeroed {
            return LogPosition { cycle: 1, block: 0, previous: NO_RECORD };
        }
        let (cycle, previous) = (scan.last_record.cycle(), scan.last_record.block());
        // the head is behind the last record, unless that ends with the log or goes on at its start
        let cycle = if scan.head <= previous { next_cycle(cycle) } else { cycle };
        LogPosition { cycle, block: scan.head, previous }
    }

    /// The position as an LSN: what the next record will have.
    pub fn lsn(&self) -> Lsn {
        Lsn::new(self.cycle, self.block)
    }

    /// The position behind a record of so many blocks that begins here, in a log of `log_blocks`.
    pub(super) fn behind(&self, blocks: u32, log_blocks: u32) -> Self {
        let end = self.block + blocks;
        let (cycle, block) =
            if end < log_blocks { (self.cycle, end) } else { (next_cycle(self.cycle), end - log_blocks) };
        LogPosition { cycle, block, previous: self.block }
    }
}

/// The cycle after `cycle`. No cycle has the number by which record headers are known.
pub(super) fn next_cycle(cycle: u32) -> u32 {
    match cycle.wrapping_add(1) {
        HEADER_MAGIC => HEADER_MAGIC + 1,
        0 => 1,
        next => next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_pass_over_the_magic_number() {
        let last = LogPosition { cycle: HEADER_MAGIC - 1, block: 90, previous: 0 };
        assert_eq!(last.behind(9, 100), LogPosition { cycle: HEADER_MAGIC - 1, block: 99, previous: 90 });
        assert_eq!(last.behind(10, 100), LogPosition { cycle: HEADER_MAGIC + 1, block: 0, previous: 90 });
        assert_eq!(last.behind(13, 100), LogPosition { cycle: HEADER_MAGIC + 1, block: 3, previous: 90 });
    }
}
