//! What groups keep back for the growth of their btrees (Linux `libxfs/xfs_ag_resv.c`).

use super::group_tree::GroupTree;
use super::header::{agf, agi};
use super::request::Purpose;
use crate::error::Result;
use crate::geometry::{AgNumber, BtreeKind, Geometry};
use crate::ondisk::INODES_PER_CHUNK;
use crate::transaction::{CounterChange, Hold, Holdings, Store, Transaction};

/// The share of all blocks that Linux keeps in its pool.
const POOL_SHARE: u64 = 20;
/// The most blocks in it.
const POOL_MOST: u64 = 8192;

/// The blocks of a group in which its btrees can ever describe something.
fn describable(geometry: &Geometry, agno: AgNumber) -> u64 {
    let log = if geometry.ag_contains_log(agno) { geometry.log.blocks } else { 0 };
    u64::from(geometry.ag_blocks(agno).unwrap_or(0).saturating_sub(log))
}

fn hold(asked: u64, used: u64) -> Hold {
    let asked = asked.max(used);
    let narrow = |blocks: u64| u32::try_from(blocks).unwrap_or(u32::MAX);
    Hold { asked: narrow(asked), left: narrow(asked - used) }
}

/// Computes what each group keeps back, and what Linux keeps for the worst case, and notes it: to be called once when a
/// filesystem has been opened (`xfs_fs_reserve_ag_blocks`, `xfs_default_resblks`).
///
/// # Errors
/// `Corrupt` when a header is damaged; `Io`.
pub fn hold_reserves(store: &mut Store) -> Result<()> {
    let groups: Vec<AgNumber> = store.geometry().ag_numbers().collect();
    let holdings = groups.into_iter().map(|agno| holdings_of(store, agno)).collect::<Result<Vec<_>>>()?;
    for (group, holdings) in store.groups_mut().iter_mut().zip(holdings) {
        group.holdings = holdings;
    }
    store.set_pool((store.geometry().dblocks / POOL_SHARE).min(POOL_MOST));
    Ok(())
}

fn holdings_of(store: &Store, agno: AgNumber) -> Result<Holdings> {
    let geometry = store.geometry();
    let agf = agf(store, agno)?;
    let blocks = describable(geometry, agno);
    let need = |kind: BtreeKind, records| geometry.btree(kind).blocks_for_records(records);
    let (mut asked, mut used) = (0, 0);
    if geometry.features.has_reflink() {
        asked += need(BtreeKind::Refcountbt, blocks);
        used += u64::from(agf.refcount_blocks.get());
    }
    if geometry.features.has_finobt() {
        asked += need(BtreeKind::Finobt, blocks * u64::from(geometry.inodes.per_block) / u64::from(INODES_PER_CHUNK));
        used += if geometry.features.has_inobtcount() {
            u64::from(agi(store, agno)?.fblocks.get())
        } else {
            GroupTree::of(store, agno, BtreeKind::Finobt)?.count_blocks()?
        };
    }
    let mut free_space_btrees = agf.btreeblks.get();
    let mut rmapbt = Hold::default();
    if geometry.features.has_rmapbt() {
        let has = agf.rmap_blocks.get();
        rmapbt = hold(need(BtreeKind::Rmapbt, blocks).max(blocks / 100), u64::from(has));
        // the header counts the root of this tree, and of the others only the blocks below
        free_space_btrees = free_space_btrees.saturating_sub(has.saturating_sub(1));
    }
    Ok(Holdings { metadata: hold(asked, used), rmapbt, free_space_btrees })
}

/// Blocks of a group that others than such allocations must leave free.
pub(super) fn kept_from(holdings: &Holdings, purpose: Purpose) -> u32 {
    let metadata = if purpose == Purpose::Reserved { 0 } else { holdings.metadata.left };
    metadata.saturating_add(holdings.rmapbt.left)
}

/// The reverse mapping btree has a block more.
pub(super) fn rmapbt_grows(tx: &mut Transaction<'_>, agno: AgNumber) -> Result<()> {
    let hold = &mut tx.holdings_mut(agno)?.rmapbt;
    hold.left = hold.left.saturating_sub(1);
    Ok(())
}

/// The reverse mapping btree has a block less.
pub(super) fn rmapbt_shrinks(tx: &mut Transaction<'_>, agno: AgNumber) -> Result<()> {
    let hold = &mut tx.holdings_mut(agno)?.rmapbt;
    hold.left = (hold.left + 1).min(hold.asked);
    Ok(())
}

fn signed(len: u32) -> i64 {
    i64::from(len)
}

/// Pays for `len` blocks that were allocated: out of what the group holds, or out of what the transaction has reserved.
pub(super) fn pay(tx: &mut Transaction<'_>, agno: AgNumber, purpose: Purpose, len: u32) -> Result<()> {
    if purpose != Purpose::Reserved {
        return tx.take_blocks(u64::from(len));
    }
    let hold = &mut tx.holdings_mut(agno)?.metadata;
    let held = len.min(hold.left);
    hold.left -= held;
    tx.count(CounterChange { fdblocks: -signed(held), ..CounterChange::default() });
    if len > held { tx.take_blocks(u64::from(len - held)) } else { Ok(()) }
}

/// Gives back `len` blocks that were freed.
pub(super) fn give_back(tx: &mut Transaction<'_>, agno: AgNumber, held: bool, len: u32) -> Result<()> {
    if held {
        let hold = &mut tx.holdings_mut(agno)?.metadata;
        hold.left += len.min(hold.asked.saturating_sub(hold.left));
    }
    tx.count(CounterChange { fdblocks: signed(len), ..CounterChange::default() });
    Ok(())
}
