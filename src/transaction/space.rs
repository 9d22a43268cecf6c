//! Room for a transaction: in the log, and among the free blocks (Linux `xfs_log.c`, `xfs_mount.c`).

use super::counters::set_aside;
use super::store::Store;
use crate::error::{Error, Result};
use crate::geometry::Lsn;
use crate::geometry::reservation::Reservation;

impl Store {
    /// The oldest checkpoint that a replay would need.
    pub fn tail(&self) -> Lsn {
        self.ail.oldest().unwrap_or_else(|| self.log.head())
    }

    /// Makes sure that the log can take one more step of such a transaction, together with all that is committed and not
    /// written. The checkpoint is written if it has grown large or the log has become short; then blocks go to their places
    /// until the tail has moved far enough.
    pub(super) fn make_room(&mut self, reservation: Reservation) -> Result<()> {
        let step = u64::from(reservation.logres);
        if self.cil.should_push() || self.newer.bytes > self.options.cache || self.log_is_short(step) {
            self.push()?;
        }
        if self.newer.bytes > self.options.cache {
            self.write_back(None)?;
        }
        while self.log_is_short(step) {
            let Some(oldest) = self.ail.oldest() else {
                return Err(Error::Internal("the log is too small for a transaction".to_owned()));
            };
            self.write_back(Some(self.write_back_target(oldest)))?;
            if self.ail.oldest() == Some(oldest) {
                return Err(Error::Internal("an unfinished operation holds the log's tail".to_owned()));
            }
        }
        Ok(())
    }

    fn log_is_short(&self, step: u64) -> bool {
        let used = self.cil.used() + step;
        self.log.free_bytes(self.tail()) < used + self.log.checkpoint_overhead(used)
    }

    /// A quarter of the log behind its oldest checkpoint: writing that far at once keeps writes few
    ///.
    fn write_back_target(&self, oldest: Lsn) -> Lsn {
        let blocks = u32::try_from(self.geometry().log_basic_blocks()).unwrap_or(u32::MAX);
        let (cycle, block) = (oldest.cycle(), oldest.block().saturating_add(blocks / 4));
        if block < blocks { Lsn::new(cycle, block) } else { Lsn::new(cycle.wrapping_add(1), block - blocks) }
    }

    /// Whether an intent that lies so far back in the log should be logged anew, so that it does not hold the tail
    /// (`xfs_defer_relog`): the log is three quarters full behind it.
    pub fn should_relog(&self, id: u64) -> bool {
        let Some(lsn) = self.ail.lsn(super::ail::Kept::Intent(id)) else { return false };
        let size = self.geometry().log_basic_blocks() * 512;
        self.log.free_bytes(lsn) < size / 4
    }

    /// Blocks that a transaction may still reserve.
    pub fn available_blocks(&self) -> u64 {
        let held: u64 = self.groups.iter().map(|group| group.holdings.hidden()).sum();
        self.counters.fdblocks.saturating_sub(set_aside(self.geometry())).saturating_sub(held).saturating_sub(self.pool)
    }

    pub(super) fn check_free(&self, blocks: u64) -> Result<()> {
        let available = self.available_blocks();
        if blocks <= available {
            return Ok(());
        }
        Err(Error::NoSpace(format!("{blocks} blocks are needed, {available} are free")))
    }
}
