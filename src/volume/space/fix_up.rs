//! The free list brought to its length before anything is allocated or freed (Linux `xfs_alloc_fix_freelist`).

use super::free_extents;
use super::free_list;
use super::header::agf;
use super::hold::kept_from;
use super::owner::RmapOwner;
use super::request::Purpose;
use super::reverse;
use super::search::{Search, Wish};
use crate::error::{Error, Result};
use crate::geometry::{AgBlock, AgNumber, Geometry};
use crate::ondisk::RawAgf;
use crate::transaction::{Deferred, FreedExtent, Store, Transaction};

/// What an allocation needs of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) min: u32,
    pub(super) align: u32,
    pub(super) align_slop: u32,
    pub(super) min_left: u32,
    pub(super) total: u32,
    pub(super) purpose: Purpose,
}

fn min_free_list(geometry: &Geometry, agf: &RawAgf) -> u32 {
    geometry.min_freelist(agf.bno_level.get(), agf.cnt_level.get(), agf.rmap_level.get())
}

/// The most blocks that one extent can have (`xfs_alloc_ag_max_usable`).
fn max_usable(store: &Store) -> u32 {
    const FREE_LIST: u32 = 4;
    const HEADERS: u64 = 4;
    let geometry = store.geometry();
    let headers = geometry.bytes_to_blocks(HEADERS * u64::from(geometry.sectsize));
    let features = &geometry.features;
    let optional = [features.has_finobt(), features.has_rmapbt(), features.has_reflink()];
    let roots = 3 + optional.iter().map(|has| u32::from(*has)).sum::<u32>();
    let asked = store.groups().first().map_or(0, |group| {
        let holdings = &group.holdings;
        holdings.metadata.asked.saturating_add(holdings.rmapbt.asked)
    });
    let taken = u32::try_from(headers).unwrap_or(u32::MAX).saturating_add(FREE_LIST + roots).saturating_add(asked);
    geometry.agblocks.saturating_sub(taken)
}

/// The longest extent that a group can give, when the free list is refilled and what is held is kept
/// (`xfs_alloc_longest_free_extent`).
fn longest_free(store: &Store, agf: &RawAgf, need: u32, held: u32) -> u32 {
    let (count, longest) = (agf.flcount.get(), agf.longest.get());
    let elsewhere = agf.freeblks.get().saturating_sub(longest);
    let kept = need.saturating_sub(count).saturating_add(held.saturating_sub(elsewhere));
    if longest > kept {
        return (longest - kept).min(max_usable(store));
    }
    u32::from(count > 0 || longest > 0)
}

/// How many blocks an allocation can have of a group; `None` when it has no room for it (`xfs_alloc_space_available`).
fn available(store: &Store, agno: AgNumber, agf: &RawAgf, need: &Need) -> Option<u32> {
    let min_free = min_free_list(store.geometry(), agf);
    let held = kept_from(&store.groups().get(usize::try_from(agno.0).ok()?)?.holdings, need.purpose);
    let len = need.min.saturating_add(need.align.saturating_sub(1)).saturating_add(need.align_slop);
    if longest_free(store, agf, min_free, held) < len {
        return None;
    }
    let list = agf.flcount.get().min(min_free);
    let available = i64::from(agf.freeblks.get()) + i64::from(list)
        - i64::from(held)
        - i64::from(min_free)
        - i64::from(need.min_left);
    (available >= i64::from(need.total.max(len))).then(|| u32::try_from(available).unwrap_or(u32::MAX))
}

/// Whether a group may be allocated from: how many blocks at most. Then its free list has the length that it must have.
/// `None` when it has no room.
pub(super) fn for_allocation(tx: &mut Transaction<'_>, agno: AgNumber, need: &Need) -> Result<Option<u32>> {
    let header = agf(tx.store(), agno)?;
    let Some(most) = available(tx.store(), agno, &header, need) else { return Ok(None) };
    let full = fix_up(tx, agno)?;
    Ok(full.then_some(most))
}

/// Brings the free list of a group to its length, as far as there are blocks: freeing always goes on.
pub(super) fn for_freeing(tx: &mut Transaction<'_>, agno: AgNumber) -> Result<()> {
    fix_up(tx, agno).map(|_| ())
}

/// Whether the list has the length that it must have.
fn fix_up(tx: &mut Transaction<'_>, agno: AgNumber) -> Result<bool> {
    let header = agf(tx.store(), agno)?;
    let need = min_free_list(tx.store().geometry(), &header);
    if need > tx.store().geometry().agfl_capacity {
        return Err(Error::Unsupported("a free list longer than its sector".to_owned()));
    }
    for _ in need..header.flcount.get() {
        let Some(block) = free_list::take(tx, agno, false)? else { break };
        free_list_block_later(tx, agno, block)?;
    }
    let mut count = header.flcount.get();
    while count < need {
        let added = extend(tx, agno, need - count)?;
        if added == 0 {
            return Ok(false);
        }
        count += added;
    }
    Ok(true)
}

fn free_list_block_later(tx: &mut Transaction<'_>, agno: AgNumber, block: AgBlock) -> Result<()> {
    let start = tx.store().geometry().fsb(agno, block);
    let start = start.ok_or_else(|| Error::Internal("a block in no group".to_owned()))?;
    let owner = RmapOwner::AG;
    let extent = FreedExtent {
        start,
        len: 1,
        owner: Some(owner.owner),
        offset: 0,
        attr_fork: false,
        bmbt_block: false,
        held: false,
    };
    tx.defer(Deferred::FreeListBlock { agno, extent });
    Ok(())
}

/// Puts at most `most` blocks of one extent on the list; how many it were.
fn extend(tx: &mut Transaction<'_>, agno: AgNumber, most: u32) -> Result<u32> {
    let last = tx.store().geometry().agblocks - 1;
    let mut wish = Wish {
        min: 1,
        max: most,
        align: 1,
        multiple: 1,
        modulo: 0,
        range: (0, last),
        user_data: false,
        avoid_busy: true,
    };
    let mut found = Search::new(tx, agno, wish)?.by_size()?;
    if found.choice.is_none() && found.busy {
        // what the list gives goes to btrees, whose blocks are not written before the journal has them
        wish.avoid_busy = false;
        found = Search::new(tx, agno, wish)?.by_size()?;
    }
    let Some(choice) = found.choice else { return Ok(0) };
    free_extents::take(tx, agno, &choice)?;
    if tx.store().geometry().features.has_rmapbt() {
        reverse::add(tx, agno, AgBlock(choice.start), choice.len, &RmapOwner::AG, false)?;
    }
    free_extents::count(tx, agno, -i64::from(choice.len))?;
    for block in choice.start..choice.start + choice.len {
        free_list::put(tx, agno, AgBlock(block), false)?;
    }
    Ok(choice.len)
}
