//! Blocks freed (Linux `__xfs_free_extent`, `xfs_agfl_free_finish_item`).

use super::fix_up::for_freeing;
use super::free_extents;
use super::header::{agf, corrupt};
use super::hold::give_back;
use super::owner::RmapOwner;
use super::reverse;
use crate::error::{Error, Result, Rule};
use crate::geometry::{AgBlock, AgNumber};
use crate::ondisk::alloc_record::FreeExtent;
use crate::ondisk::rmap_record::owner;
use crate::transaction::{FreedExtent, Transaction};

fn owner_of(extent: &FreedExtent) -> RmapOwner {
    RmapOwner {
        owner: extent.owner.unwrap_or(owner::NULL),
        offset: extent.offset,
        attr_fork: extent.attr_fork,
        bmbt_block: extent.bmbt_block,
    }
}

/// Frees an extent.
///
/// # Errors
/// `Corrupt` when it lies outside its group, is partly free already or belongs to another; `Io`.
pub(in crate::volume) fn free_extent(tx: &mut Transaction<'_>, extent: &FreedExtent) -> Result<()> {
    let place = tx.store().geometry().fsb_parts(extent.start);
    let (agno, start) = place.ok_or_else(|| Error::Usage(format!("there is no block {}", extent.start)))?;
    for_freeing(tx, agno)?;
    free_in(tx, agno, start, extent)?;
    give_back(tx, agno, extent.held, extent.len)
}

/// Frees a block that was taken off a free list: it was counted as free all the time.
///
/// # Errors
/// As [`free_extent`].
pub(in crate::volume) fn free_list_block(tx: &mut Transaction<'_>, agno: AgNumber, extent: &FreedExtent) -> Result<()> {
    let place = tx.store().geometry().fsb_parts(extent.start).filter(|(group, _)| *group == agno);
    let (_, start) = place.ok_or_else(|| Error::Usage(format!("there is no block {}", extent.start)))?;
    free_in(tx, agno, start, extent)
}

fn free_in(tx: &mut Transaction<'_>, agno: AgNumber, start: AgBlock, extent: &FreedExtent) -> Result<()> {
    let end = u64::from(start.0) + u64::from(extent.len);
    if extent.len == 0 || end > u64::from(agf(tx.store(), agno)?.length.get()) {
        return Err(corrupt("bnobt", "startblock", Rule::Range, agno));
    }
    let owner = owner_of(extent);
    if !owner.is_skip() && tx.store().geometry().features.has_rmapbt() {
        reverse::remove(tx, agno, start, extent.len, &owner)?;
    }
    free_extents::put_back(tx, agno, FreeExtent { startblock: start.0, blockcount: extent.len })?;
    free_extents::count(tx, agno, i64::from(extent.len))?;
    tx.mark_busy(agno, start, extent.len);
    Ok(())
}
