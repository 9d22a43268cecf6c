//! Blocks that a group keeps free for its btrees, so that what must not fail for want of space does not (Linux
//! `xfs_ag_resv_init`, `xfs_refcountbt_calc_reserves`, `xfs_finobt_calc_reserves`, `xfs_rmapbt_calc_reserves`).

use super::{AgNumber, BtreeKind, Geometry};

impl Geometry {
    /// Blocks that the btrees of reference counts, free inodes and reverse mappings of group `agno` may come to need. What they
    /// do not have yet must be free.
    pub fn ag_reserve(&self, agno: AgNumber) -> u64 {
        let log = if self.ag_contains_log(agno) { self.log.blocks } else { 0 };
        let room = u64::from(self.ag_blocks(agno).unwrap_or(0).saturating_sub(log));
        let need = |kind, records| self.btree(kind).blocks_for_records(records);
        let mut blocks = 0;
        if self.features.has_reflink() {
            blocks += need(BtreeKind::Refcountbt, room);
        }
        if self.features.has_finobt() {
            blocks += need(BtreeKind::Finobt, room * u64::from(self.inodes.per_block) / 64);
        }
        if self.features.has_rmapbt() {
            blocks += (room / 100).max(need(BtreeKind::Rmapbt, room));
        }
        blocks
    }
}
