//! Reference counts: how many files share which blocks, and what is held for copy on write (Linux `libxfs/xfs_refcount.c`).

use super::group_tree::{GroupTree, edit_tree};
use super::header::corrupt;
use super::later::free_later;
use super::owner::RmapOwner;
use crate::btree::{Position, SortKey};
use crate::error::{Error, Result, Rule};
use crate::geometry::{AgBlock, AgNumber, BtreeKind, FsBlock, Geometry};
use crate::ondisk::log_intent::{PhysExtent, refcount};
use crate::ondisk::{OnDisk, RawRefcountRecord, Refcount};
use crate::transaction::{Store, Transaction};
use zerocopy::IntoBytes;

const KIND: BtreeKind = BtreeKind::Refcountbt;
/// Log space for the change of one record, in bytes.
const RECORD_OVERHEAD: u64 = 32;

fn end(record: &Refcount) -> u64 {
    u64::from(record.startblock) + u64::from(record.blockcount)
}

fn raw(record: &Refcount) -> Result<RawRefcountRecord> {
    record.encode().ok_or_else(|| Error::Internal("a group has less than 2^31 blocks".to_owned()))
}

fn key(record: &Refcount) -> Result<SortKey> {
    Ok(SortKey::of_record(KIND, raw(record)?.as_bytes()))
}

fn damaged(agno: AgNumber) -> Error {
    corrupt(KIND.name(), "rec", Rule::Mismatch, agno)
}

/// How much a transaction has done to reference counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::volume) struct Progress {
    records: u64,
    shapes: u64,
}

impl Progress {
    /// Whether the log has room for one more change (`xfs_refcount_still_have_space`).
    fn has_room(&self, geometry: &Geometry, log: u32) -> bool {
        let split = |kind| (2 * u64::from(geometry.btree(kind).max_levels)).saturating_sub(1);
        let rmapbt = if geometry.features.has_rmapbt() { split(BtreeKind::Rmapbt) } else { 0 };
        let blocks = self.shapes * (2 * split(BtreeKind::Bnobt) + rmapbt) + u64::from(geometry.btree(KIND).max_levels);
        let overhead = blocks * u64::from(geometry.blocksize);
        self.records == 0 || u64::from(log).saturating_sub(overhead) > self.records * RECORD_OVERHEAD
    }
}

/// Replaces records by others; where a new one has the key of an old one, it takes its place.
fn exchange(tx: &mut Transaction<'_>, agno: AgNumber, old: &[Refcount], mut new: Vec<Refcount>) -> Result<()> {
    edit_tree(tx, agno, KIND, |tree| {
        for record in old {
            let same = new.iter().position(|new| (new.startblock, new.cow) == (record.startblock, record.cow));
            let found = match same {
                Some(index) => tree.replace(key(record)?, raw(&new.remove(index))?.as_bytes())?,
                None => tree.delete(key(record)?)?,
            };
            if !found {
                return Err(damaged(agno));
            }
        }
        new.iter().try_for_each(|record| tree.insert(raw(record)?.as_bytes()))
    })
}

/// A run of blocks with one count; 1 where there is no record.
struct Run {
    len: u32,
    count: u32,
    record: Option<Refcount>,
}

fn decode(position: &Position<'_, GroupTree<'_>>, agno: AgNumber) -> Result<Option<Refcount>> {
    let Some(bytes) = position.record()? else { return Ok(None) };
    let (raw, _) = RawRefcountRecord::prefix(bytes).ok_or_else(|| damaged(agno))?;
    Ok(Some(raw.decode()))
}

/// The record of a domain that covers a block or ends before it, and the next one.
fn around(store: &Store, agno: AgNumber, block: u32, cow: bool) -> Result<[Option<Refcount>; 2]> {
    let tree = GroupTree::of(store, agno, KIND)?;
    let place = key(&Refcount { startblock: block, blockcount: 1, refcount: 1, cow })?;
    let mut position = Position::at_or_after(&tree, place)?;
    let mut next = decode(&position, agno)?;
    let mut last = None;
    if next.is_some_and(|next| next.startblock == block && next.cow == cow) {
        last = next;
        position.forward()?;
        next = decode(&position, agno)?;
    } else if position.back()? {
        last = decode(&position, agno)?;
    }
    let of_domain = |record: Option<Refcount>| record.filter(|record| record.cow == cow);
    Ok([of_domain(last), of_domain(next)])
}

/// The run that starts at `block`, at most `most` blocks.
fn run_at(store: &Store, agno: AgNumber, block: u32, most: u32) -> Result<Run> {
    let [last, next] = around(store, agno, block, false)?;
    let narrow = |len: u64| u32::try_from(len).unwrap_or(u32::MAX).min(most);
    if let Some(record) = last.filter(|last| end(last) > u64::from(block)) {
        let len = narrow(end(&record) - u64::from(block));
        return Ok(Run { len, count: record.refcount, record: Some(record) });
    }
    let len = next.map_or(most, |next| narrow(u64::from(next.startblock - block)));
    Ok(Run { len, count: 1, record: None })
}

/// Gives `len` blocks, which are `run`, another count. Whether records were split or joined.
fn recount(tx: &mut Transaction<'_>, agno: AgNumber, start: u32, run: &Run, count: u32) -> Result<bool> {
    let mut old: Vec<Refcount> = run.record.into_iter().collect();
    let mut new = Vec::new();
    let run_end = u64::from(start) + u64::from(run.len);
    let mut changed = false;
    if let Some(record) = &run.record {
        let before = start - record.startblock;
        let after = u32::try_from(end(record) - run_end).map_err(|_| damaged(agno))?;
        if before > 0 {
            new.push(Refcount { blockcount: before, ..*record });
        }
        if after > 0 {
            new.push(Refcount { startblock: start + run.len, blockcount: after, ..*record });
        }
        changed = !new.is_empty();
    }
    if count >= 2 {
        let middle = Refcount { startblock: start, blockcount: run.len, refcount: count, cow: false };
        let joined = join(tx.store(), agno, &middle, &mut old)?;
        changed |= joined != middle;
        new.push(joined);
    }
    exchange(tx, agno, &old, new)?;
    Ok(changed)
}

/// One record for `record` and those of the same count that it touches, which are added to `old`.
fn join(store: &Store, agno: AgNumber, record: &Refcount, old: &mut Vec<Refcount>) -> Result<Refcount> {
    let mut joined = *record;
    let touches = |left: &Refcount, right: &Refcount| {
        end(left) == u64::from(right.startblock)
            && left.refcount == right.refcount
            && left.blockcount.checked_add(right.blockcount).is_some()
    };
    if let Some(before) = record.startblock.checked_sub(1)
        && let [Some(left), _] = around(store, agno, before, record.cow)?
        && touches(&left, &joined)
    {
        joined = Refcount { blockcount: left.blockcount + joined.blockcount, ..left };
        old.push(left);
    }
    if let Ok(after) = u32::try_from(end(record))
        && let [Some(right), _] = around(store, agno, after, record.cow)?
        && touches(&joined, &right)
    {
        joined.blockcount += right.blockcount;
        old.push(right);
    }
    Ok(joined)
}

/// One owner more or less for `len` blocks from `start` on. How many are done; the rest is for another transaction.
fn adjust(
    tx: &mut Transaction<'_>,
    agno: AgNumber,
    start: u32,
    len: u32,
    more: bool,
    progress: &mut Progress,
) -> Result<u32> {
    let mut done = 0;
    let mut changed = false;
    while done < len && progress.has_room(tx.store().geometry(), tx.reservation().logres) {
        let at = start + done;
        let run = run_at(tx.store(), agno, at, len - done)?;
        let count = if more { run.count.saturating_add(1) } else { run.count - 1 };
        if count == 0 {
            let fsb = tx.store().geometry().fsb(agno, AgBlock(at)).ok_or_else(|| damaged(agno))?;
            free_later(tx, fsb, run.len, &RmapOwner::SKIP);
        } else if run.count < u32::MAX {
            // what has the largest count keeps it for ever
            changed |= recount(tx, agno, at, &run, count)?;
        }
        progress.records += 1;
        done += run.len;
    }
    progress.shapes += u64::from(changed);
    Ok(done)
}

fn alloc_cow(tx: &mut Transaction<'_>, agno: AgNumber, start: u32, len: u32) -> Result<()> {
    let record = Refcount { startblock: start, blockcount: len, refcount: 1, cow: true };
    let [last, next] = around(tx.store(), agno, start, true)?;
    let overlaps = last.is_some_and(|last| end(&last) > u64::from(start))
        || next.is_some_and(|next| u64::from(next.startblock) < end(&record));
    if overlaps {
        return Err(damaged(agno));
    }
    let mut old = Vec::new();
    let joined = join(tx.store(), agno, &record, &mut old)?;
    exchange(tx, agno, &old, vec![joined])
}

fn free_cow(tx: &mut Transaction<'_>, agno: AgNumber, start: u32, len: u32) -> Result<()> {
    let [last, _] = around(tx.store(), agno, start, true)?;
    let freed_end = u64::from(start) + u64::from(len);
    let record = last.filter(|last| end(last) >= freed_end).ok_or_else(|| damaged(agno))?;
    let before = Refcount { blockcount: start - record.startblock, ..record };
    let after = u32::try_from(end(&record) - freed_end).map_err(|_| damaged(agno))?;
    let after = Refcount { startblock: start + len, blockcount: after, ..record };
    let rest = [before, after].into_iter().filter(|record| record.blockcount > 0).collect();
    exchange(tx, agno, &[record], rest)
}

/// Makes the change that an extent of a reference count intent asks for. What of it is left for another transaction, when it
/// would change more than this one has reserved.
///
/// # Errors
/// `Corrupt` when the counts are others than it supposes; `NoSpace`; `Io`; `Usage` when it names no blocks or no operation.
pub(in crate::volume) fn apply_refcount(
    tx: &mut Transaction<'_>,
    extent: &PhysExtent,
    progress: &mut Progress,
) -> Result<Option<PhysExtent>> {
    let geometry = tx.store().geometry();
    let outside = || Error::Usage(format!("there are no blocks {} + {}", extent.startblock, extent.len));
    if !geometry.is_usable_extent(FsBlock(extent.startblock), u64::from(extent.len)) {
        return Err(outside());
    }
    let (agno, start) = geometry.fsb_parts(FsBlock(extent.startblock)).ok_or_else(outside)?;
    let operation = extent.flags & refcount::TYPE_MASK;
    let done = match operation {
        refcount::INCREASE | refcount::DECREASE => {
            adjust(tx, agno, start.0, extent.len, operation == refcount::INCREASE, progress)?
        }
        refcount::ALLOC_COW => alloc_cow(tx, agno, start.0, extent.len).map(|()| extent.len)?,
        refcount::FREE_COW => free_cow(tx, agno, start.0, extent.len).map(|()| extent.len)?,
        other => return Err(Error::Usage(format!("{other} is no operation on reference counts"))),
    };
    let left = PhysExtent { startblock: extent.startblock + u64::from(done), len: extent.len - done, ..*extent };
    Ok((left.len > 0).then_some(left))
}
