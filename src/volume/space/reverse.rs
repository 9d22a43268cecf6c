//! Reverse mappings: who owns which blocks (Linux `libxfs/xfs_rmap.c`).

use super::group_tree::{GroupTree, edit_tree};
use super::header::corrupt;
use super::owner::RmapOwner;
use crate::btree::{Position, SortKey, overlapping};
use crate::error::{Error, Result, Rule};
use crate::geometry::{AgBlock, AgNumber, BtreeKind, FsBlock};
use crate::ondisk::log_intent::{MapExtent, rmap};
use crate::ondisk::rmap_record::owner;
use crate::ondisk::{OnDisk, RawRmapRecord, Rmap};
use crate::transaction::{Store, Transaction};
use zerocopy::IntoBytes;

const KIND: BtreeKind = BtreeKind::Rmapbt;

fn end(record: &Rmap) -> u64 {
    u64::from(record.startblock) + u64::from(record.blockcount)
}

/// Whether the blocks lie in the order of a file, so that their offsets go along.
fn moves(record: &Rmap) -> bool {
    !owner::is_special(record.owner) && !record.bmbt_block
}

fn same_owner(a: &Rmap, b: &Rmap) -> bool {
    a.owner == b.owner && (a.attr_fork, a.bmbt_block, a.unwritten) == (b.attr_fork, b.bmbt_block, b.unwritten)
}

/// Whether `right` goes on where `left` ends, so that one record can stand for both.
fn joins(left: &Rmap, right: &Rmap) -> bool {
    same_owner(left, right)
        && end(left) == u64::from(right.startblock)
        && (!moves(left) || left.offset + u64::from(left.blockcount) == right.offset)
        && left.blockcount.checked_add(right.blockcount).is_some()
}

fn raw(record: &Rmap) -> Result<RawRmapRecord> {
    record.encode().ok_or_else(|| Error::Internal("a reverse mapping beyond the end of files".to_owned()))
}

fn key(record: &Rmap) -> Result<SortKey> {
    Ok(SortKey::of_record(KIND, raw(record)?.as_bytes()))
}

fn decode(bytes: &[u8], agno: AgNumber) -> Result<Rmap> {
    let record = RawRmapRecord::prefix(bytes).and_then(|(raw, _)| raw.decode());
    record.ok_or_else(|| corrupt(KIND.name(), "offset", Rule::Flags, agno))
}

fn damaged(agno: AgNumber) -> Error {
    corrupt(KIND.name(), "rec", Rule::Mismatch, agno)
}

/// Part of a record, from the block `from` of the group to `to`.
fn part(record: &Rmap, from: u64, to: u64) -> Option<Rmap> {
    let (from, to) = (from.max(u64::from(record.startblock)), to.min(end(record)));
    let skipped = from.checked_sub(u64::from(record.startblock))?;
    let startblock = u32::try_from(from).ok()?;
    let blockcount = u32::try_from(to.checked_sub(from)?).ok().filter(|count| *count > 0)?;
    let offset = if moves(record) { record.offset + skipped } else { record.offset };
    Some(Rmap { startblock, blockcount, offset, ..*record })
}

/// Replaces records by others; where a new one has the key of an old one, it takes its place.
fn exchange(tx: &mut Transaction<'_>, agno: AgNumber, old: &[Rmap], mut new: Vec<Rmap>) -> Result<()> {
    edit_tree(tx, agno, KIND, |tree| {
        for record in old {
            let place = key(record)?;
            let mut found = false;
            for index in 0..new.len() {
                if key(&new[index])? == place {
                    found = tree.replace(place, raw(&new.remove(index))?.as_bytes())?;
                    if !found {
                        return Err(damaged(agno));
                    }
                    break;
                }
            }
            if !found && !tree.delete(place)? {
                return Err(damaged(agno));
            }
        }
        for record in &new {
            if tree.get(key(record)?)?.is_some() {
                return Err(damaged(agno));
            }
            tree.insert(raw(record)?.as_bytes())?;
        }
        Ok(())
    })
}

/// The record of another part of the same fork that ends where `record` starts, and the one that starts where it ends.
/// In what is not shared, no other record may overlap.
fn neighbours(store: &Store, agno: AgNumber, record: &Rmap, shared: bool) -> Result<[Option<Rmap>; 2]> {
    let tree = GroupTree::of(store, agno, KIND)?;
    if !shared {
        let mut position = Position::at_or_after(&tree, key(record)?)?;
        let right = position.record()?.map(|bytes| decode(bytes, agno)).transpose()?;
        let left =
            if position.back()? { position.record()?.map(|bytes| decode(bytes, agno)).transpose()? } else { None };
        let overlaps = right.is_some_and(|right| u64::from(right.startblock) < end(record))
            || left.is_some_and(|left| same_owner(&left, record) && end(&left) > u64::from(record.startblock));
        if overlaps {
            return Err(damaged(agno));
        }
        return Ok([left.filter(|left| joins(left, record)), right.filter(|right| joins(record, right))]);
    }
    let mut found = [None; 2];
    if let Some(before) = record.startblock.checked_sub(1) {
        each_at(&tree, agno, before, |left| {
            if joins(&left, record) {
                found[0] = Some(left);
            }
        })?;
    }
    if let Ok(after) = u32::try_from(end(record)) {
        each_at(&tree, agno, after, |right| {
            if joins(record, &right) {
                found[1] = Some(right);
            }
        })?;
    }
    Ok(found)
}

/// All records that cover a block.
fn each_at(tree: &GroupTree<'_>, agno: AgNumber, block: u32, mut found: impl FnMut(Rmap)) -> Result<()> {
    let low = SortKey([u64::from(block), 0, 0]);
    let high = SortKey([u64::from(block), u64::MAX, u64::MAX]);
    overlapping(tree, low, high, &mut |bytes| {
        found(decode(bytes, agno)?);
        Ok(())
    })
}

/// The record that covers all of `wanted`: of the same owner, fork and state, at the same place in the file.
fn covering(store: &Store, agno: AgNumber, wanted: &Rmap, shared: bool) -> Result<Rmap> {
    let tree = GroupTree::of(store, agno, KIND)?;
    let covers = |record: &Rmap| {
        let skipped = u64::from(wanted.startblock).checked_sub(u64::from(record.startblock));
        let there = !moves(wanted) || skipped.is_some_and(|skipped| record.offset + skipped == wanted.offset);
        same_owner(record, wanted) && skipped.is_some() && end(record) >= end(wanted) && there
    };
    let mut found = None;
    if shared {
        each_at(&tree, agno, wanted.startblock, |record| found = found.or(Some(record).filter(covers)))?;
    } else if let Some(position) = Position::at_or_before(&tree, key(wanted)?)?
        && let Some(bytes) = position.record()?
    {
        found = Some(decode(bytes, agno)?).filter(covers);
    }
    found.ok_or_else(|| damaged(agno))
}

fn map(tx: &mut Transaction<'_>, agno: AgNumber, record: Rmap, shared: bool) -> Result<()> {
    let [left, right] = neighbours(tx.store(), agno, &record, shared)?;
    let (old, new) = joined(record, left, right);
    exchange(tx, agno, &old, vec![new])
}

/// One record for three; what it replaces.
fn joined(record: Rmap, left: Option<Rmap>, right: Option<Rmap>) -> (Vec<Rmap>, Rmap) {
    let mut new = record;
    let mut old = Vec::new();
    if let Some(left) = left {
        new = Rmap { blockcount: left.blockcount + new.blockcount, ..left };
        old.push(left);
    }
    if let Some(right) = right.filter(|right| joins(&new, right)) {
        new.blockcount += right.blockcount;
        old.push(right);
    }
    (old, new)
}

fn unmap(tx: &mut Transaction<'_>, agno: AgNumber, record: &Rmap, shared: bool) -> Result<()> {
    let whole = covering(tx.store(), agno, record, shared)?;
    let before = part(&whole, 0, u64::from(record.startblock));
    let after = part(&whole, end(record), u64::MAX);
    exchange(tx, agno, &[whole], before.into_iter().chain(after).collect())
}

/// Blocks of a file become what `record` says: written or unwritten.
fn convert(tx: &mut Transaction<'_>, agno: AgNumber, record: &Rmap, shared: bool) -> Result<()> {
    let before = Rmap { unwritten: !record.unwritten, ..*record };
    let whole = covering(tx.store(), agno, &before, shared)?;
    let rest = [part(&whole, 0, u64::from(record.startblock)), part(&whole, end(record), u64::MAX)];
    // neighbours in the new state lie where the old record ends
    let [left, right] = neighbours(tx.store(), agno, record, true)?;
    let (mut old, new) = joined(*record, left, right);
    old.push(whole);
    let new = std::iter::once(new).chain(rest.into_iter().flatten()).collect();
    exchange(tx, agno, &old, new)
}

fn record_of(start: AgBlock, len: u32, owner: &RmapOwner, unwritten: bool) -> Rmap {
    let RmapOwner { owner, offset, attr_fork, bmbt_block } = *owner;
    let offset = if bmbt_block { 0 } else { offset };
    Rmap { startblock: start.0, blockcount: len, owner, offset, attr_fork, bmbt_block, unwritten }
}

/// Notes that blocks, which have no other owner, belong to `owner`.
pub(super) fn add(
    tx: &mut Transaction<'_>,
    agno: AgNumber,
    start: AgBlock,
    len: u32,
    owner: &RmapOwner,
    unwritten: bool,
) -> Result<()> {
    map(tx, agno, record_of(start, len, owner, unwritten), false)
}

/// Notes that blocks no longer belong to `owner`. When that is [`owner::UNKNOWN`], whoever owns them all loses them, and it is
/// no error if nobody does.
pub(super) fn remove(
    tx: &mut Transaction<'_>,
    agno: AgNumber,
    start: AgBlock,
    len: u32,
    owner: &RmapOwner,
) -> Result<()> {
    let mut record = record_of(start, len, owner, false);
    if owner.owner == owner::UNKNOWN {
        let tree = GroupTree::of(tx.store(), agno, KIND)?;
        let mut found = None;
        each_at(&tree, agno, start.0, |record| found = Some(record))?;
        let Some(whole) = found else { return Ok(()) };
        record = part(&whole, u64::from(start.0), end(&record)).ok_or_else(|| damaged(agno))?;
    }
    unmap(tx, agno, &record, false)
}

/// Makes the change that an extent of a reverse mapping intent asks for.
///
/// # Errors
/// `Corrupt` when the mappings are others than it supposes; `Io`; `Usage` when it names no blocks or no operation.
pub(in crate::volume) fn apply_rmap(tx: &mut Transaction<'_>, extent: &MapExtent) -> Result<()> {
    let place = tx.store().geometry().fsb_parts(FsBlock(extent.startblock));
    let (agno, start) = place.ok_or_else(|| Error::Usage(format!("there is no block {}", extent.startblock)))?;
    super::fix_up::for_freeing(tx, agno)?;
    let record = Rmap {
        startblock: start.0,
        blockcount: extent.len,
        owner: extent.owner,
        offset: extent.startoff,
        attr_fork: extent.flags & rmap::ATTR_FORK != 0,
        bmbt_block: extent.flags & rmap::BMBT_BLOCK != 0,
        unwritten: extent.flags & rmap::UNWRITTEN != 0,
    };
    match extent.flags & rmap::TYPE_MASK {
        rmap::MAP | rmap::ALLOC => map(tx, agno, record, false),
        rmap::MAP_SHARED => map(tx, agno, record, true),
        rmap::UNMAP | rmap::FREE => unmap(tx, agno, &record, false),
        rmap::UNMAP_SHARED => unmap(tx, agno, &record, true),
        rmap::CONVERT => convert(tx, agno, &record, false),
        rmap::CONVERT_SHARED => convert(tx, agno, &record, true),
        other => Err(Error::Usage(format!("{other} is no operation on reverse mappings"))),
    }
}
