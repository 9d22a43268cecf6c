//! Free extents in both btrees: taken, and put back.

use super::group_tree::{GroupTree, edit_tree};
use super::header::{agf, change_agf, corrupt};
use super::search::Choice;
use crate::btree::{Position, SortKey};
use crate::error::{Result, Rule};
use crate::geometry::{AgNumber, BtreeKind};
use crate::ondisk::alloc_record::FreeExtent;
use crate::ondisk::{OnDisk, RawAllocRecord};
use crate::transaction::{Store, Transaction};
use zerocopy::IntoBytes;

fn key_by_len(extent: &FreeExtent) -> SortKey {
    SortKey([u64::from(extent.blockcount), u64::from(extent.startblock), 0])
}

fn key_by_start(extent: &FreeExtent) -> SortKey {
    SortKey([u64::from(extent.startblock), 0, 0])
}

/// Takes an extent out of a free one (`xfs_alloc_fixup_trees`). The header's count of free blocks is not touched.
pub(super) fn take(tx: &mut Transaction<'_>, agno: AgNumber, choice: &Choice) -> Result<()> {
    let free = choice.free;
    let end = choice.start + choice.len;
    let before = FreeExtent { startblock: free.startblock, blockcount: choice.start - free.startblock };
    let after = FreeExtent { startblock: end, blockcount: free.startblock + free.blockcount - end };
    let rest: Vec<FreeExtent> = [before, after].into_iter().filter(|extent| extent.blockcount > 0).collect();
    edit_tree(tx, agno, BtreeKind::Cntbt, |tree| {
        if !tree.delete(key_by_len(&free))? {
            return Err(corrupt("cntbt", "rec", Rule::Mismatch, agno));
        }
        rest.iter().try_for_each(|extent| tree.insert(extent.encode().as_bytes()))
    })?;
    edit_tree(tx, agno, BtreeKind::Bnobt, |tree| {
        let Some((first, more)) = rest.split_first() else {
            let found = tree.delete(key_by_start(&free))?;
            return if found { Ok(()) } else { Err(corrupt("bnobt", "rec", Rule::Mismatch, agno)) };
        };
        if !tree.replace_between(key_by_start(&free), first.encode().as_bytes())? {
            return Err(corrupt("bnobt", "rec", Rule::Mismatch, agno));
        }
        more.iter().try_for_each(|extent| tree.insert(extent.encode().as_bytes()))
    })?;
    if agf(tx.store(), agno)?.longest.get() <= free.blockcount {
        let longest = longest(tx.store(), agno)?;
        change_agf(tx, agno, |agf| agf.longest.set(longest))?;
    }
    Ok(())
}

/// The length of the longest free extent.
fn longest(store: &Store, agno: AgNumber) -> Result<u32> {
    let tree = GroupTree::of(store, agno, BtreeKind::Cntbt)?;
    let Some(last) = Position::last(&tree)? else { return Ok(0) };
    let record = last.record()?.and_then(RawAllocRecord::prefix);
    Ok(record.map_or(0, |(raw, _)| raw.decode().blockcount))
}

/// The free extents that touch one from the left and from the right.
fn neighbours(store: &Store, agno: AgNumber, extent: &FreeExtent) -> Result<[Option<FreeExtent>; 2]> {
    let tree = GroupTree::of(store, agno, BtreeKind::Bnobt)?;
    let decode = |record: Option<&[u8]>| record.and_then(RawAllocRecord::prefix).map(|(raw, _)| raw.decode());
    let end = |extent: &FreeExtent| u64::from(extent.startblock) + u64::from(extent.blockcount);
    let twice = || corrupt("bnobt", "startblock", Rule::Mismatch, agno);
    let mut position = Position::at_or_after(&tree, key_by_start(extent))?;
    let mut right = decode(position.record()?);
    let mut left = if position.back()? { decode(position.record()?) } else { None };
    if left.is_some_and(|left| end(&left) > u64::from(extent.startblock))
        || right.is_some_and(|right| u64::from(right.startblock) < end(extent))
    {
        return Err(twice());
    }
    left = left.filter(|left| end(left) == u64::from(extent.startblock));
    right = right.filter(|right| u64::from(right.startblock) == end(extent));
    Ok([left, right])
}

/// Makes an extent free (`xfs_free_ag_extent`), one with those that it touches.
///
/// # Errors
/// `Corrupt` when part of it is free already.
pub(super) fn put_back(tx: &mut Transaction<'_>, agno: AgNumber, extent: FreeExtent) -> Result<()> {
    let [left, right] = neighbours(tx.store(), agno, &extent)?;
    let len = |extent: Option<FreeExtent>| extent.map_or(0, |extent| extent.blockcount);
    let merged = FreeExtent {
        startblock: left.map_or(extent.startblock, |left| left.startblock),
        blockcount: extent.blockcount + len(left) + len(right),
    };
    let damaged = |structure: &'static str| corrupt(structure, "rec", Rule::Mismatch, agno);
    edit_tree(tx, agno, BtreeKind::Bnobt, |tree| {
        if let (Some(_), Some(right)) = (left, right)
            && !tree.delete(key_by_start(&right))?
        {
            return Err(damaged("bnobt"));
        }
        match left.or(right) {
            Some(old) if !tree.replace_between(key_by_start(&old), merged.encode().as_bytes())? => {
                Err(damaged("bnobt"))
            }
            Some(_) => Ok(()),
            None => tree.insert(merged.encode().as_bytes()),
        }
    })?;
    edit_tree(tx, agno, BtreeKind::Cntbt, |tree| {
        for old in [left, right].into_iter().flatten() {
            if !tree.delete(key_by_len(&old))? {
                return Err(damaged("cntbt"));
            }
        }
        tree.insert(merged.encode().as_bytes())
    })?;
    if agf(tx.store(), agno)?.longest.get() < merged.blockcount {
        change_agf(tx, agno, |agf| agf.longest.set(merged.blockcount))?;
    }
    Ok(())
}

/// Changes the header's count of free blocks.
///
/// # Errors
/// `Corrupt` when there would be less than none, or more than the group has.
pub(super) fn count(tx: &mut Transaction<'_>, agno: AgNumber, change: i64) -> Result<()> {
    let header = agf(tx.store(), agno)?;
    let now = i64::from(header.freeblks.get()) + change;
    let now = u32::try_from(now).ok().filter(|now| *now <= header.length.get());
    let now = now.ok_or_else(|| corrupt("agf", "freeblks", Rule::Range, agno))?;
    change_agf(tx, agno, |agf| agf.freeblks.set(now))
}
