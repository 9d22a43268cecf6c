//! Blocks shared between files, and blocks of a file's own in place of shared ones (Linux `xfs_reflink.c`).

use super::fork::OpenFork;
use super::placement::{Hole, HolePurpose, place};
use super::remap::{defer_map, defer_unmap};
use super::window::{cut, end_of};
use crate::btree::SortKey;
use crate::error::{Error, Result};
use crate::forms::ForkKind;
use crate::geometry::{AgBlock, BtreeKind, FileBlock, FsBlock, Ino};
use crate::ondisk::dinode::flags2;
use crate::ondisk::{Extent, OnDisk, RawRefcountRecord};
use crate::transaction::Transaction;
use crate::volume::space::GroupTree;
use crate::volume::{inodes, space};

/// What maps some blocks of a file: an extent cut to them, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first block of the file.
    pub(super) start: u64,
    pub(super) len: u32,
    /// The first block on disk, and whether it is unwritten.
    pub(super) blocks: Option<(u64, bool)>,
}

impl Run {
    /// The mapping as an extent; `None` for a hole.
    pub(super) fn extent(&self) -> Option<Extent> {
        let (startblock, unwritten) = self.blocks?;
        Some(Extent { startoff: self.start, startblock, blockcount: self.len, unwritten })
    }

    pub(super) fn is_written(&self) -> bool {
        matches!(self.blocks, Some((_, false)))
    }
}

/// What maps the start of `count` blocks of a fork from `at` on.
pub(super) fn run_at(tx: &Transaction<'_>, ino: Ino, fork: ForkKind, at: u64, count: u64) -> Result<Run> {
    let count = count.min(u64::from(crate::ondisk::extent::MAX_BLOCKCOUNT));
    let open = OpenFork::open(tx, ino, fork, at, at.saturating_add(1))?;
    let next = open.window.at_or_after(at);
    if let Some(extent) = next.and_then(|next| cut(&next, at, at.saturating_add(count)))
        && extent.startoff == at
    {
        return Ok(Run { start: at, len: extent.blockcount, blocks: Some((extent.startblock, extent.unwritten)) });
    }
    let len = next.map_or(count, |next| (next.startoff - at).min(count));
    Ok(Run { start: at, len: u32::try_from(len).unwrap_or(u32::MAX), blocks: None })
}

/// Sets the flag of files with shared blocks.
///
/// # Errors
/// `Unsupported` when the filesystem has not the feature; else as [`inodes::change`].
pub fn set_shared_flag(tx: &mut Transaction<'_>, ino: Ino) -> Result<()> {
    if !tx.store().geometry().features.has_reflink() {
        return Err(Error::Unsupported("sharing blocks on a filesystem without reflink".to_owned()));
    }
    if tx.inode(ino)?.raw().flags2_or_zero() & flags2::REFLINK != 0 {
        return Ok(());
    }
    inodes::change(tx, ino, 0, |raw, _| {
        raw.flags2.set(raw.flags2.get() | flags2::REFLINK);
        Ok(())
    })
}

/// Does a step of sharing: what maps the start of `count` blocks of `source` from `from` on, takes the place of what maps
/// block `to` of `target` and those behind it. Both files have the flag already. The changes are deferred: they are to be
/// finished, and the transaction with them, before the next step. `size` is the size of the target in bytes when all is
/// done: it grows as far as this step goes. Returns how many blocks are done.
///
/// # Errors
/// `Unsupported` for realtime files; `Corrupt` when a file is damaged.
pub fn share_step(
    tx: &mut Transaction<'_>,
    (source, from): (Ino, FileBlock),
    (target, to): (Ino, FileBlock),
    count: u64,
    size: Option<u64>,
) -> Result<u64> {
    let mut shared = run_at(tx, source, ForkKind::Data, from.0, count)?;
    let old = run_at(tx, target, ForkKind::Data, to.0, u64::from(shared.len))?;
    shared.len = shared.len.min(old.len);
    let old = Run { len: shared.len, ..old };
    shared.start = to.0;
    let done = Ok(u64::from(shared.len));
    let both_unwritten = shared.blocks.is_some_and(|blocks| blocks.1) && old.blocks.is_some_and(|blocks| blocks.1);
    if shared.blocks == old.blocks || both_unwritten {
        return done;
    }
    if let Some(old) = old.extent() {
        defer_unmap(tx, target, ForkKind::Data, &old);
        space::refcount_decrease(tx, FsBlock(old.startblock), old.blockcount);
    }
    if let Some(extent) = shared.extent().filter(|_| shared.is_written()) {
        space::refcount_increase(tx, FsBlock(extent.startblock), extent.blockcount);
        defer_map(tx, target, ForkKind::Data, &extent);
    }
    if let Some(size) = size {
        grow_size(tx, target, to.0 + u64::from(shared.len), size)?;
    }
    done
}

/// Raises the size of a file as far as its blocks before `end` go, and not above `most` bytes.
pub(super) fn grow_size(tx: &mut Transaction<'_>, ino: Ino, end: u64, most: u64) -> Result<()> {
    let size = tx.store().geometry().blocks_to_bytes(end).unwrap_or(u64::MAX).min(most);
    if size <= tx.inode(ino)?.size() {
        return Ok(());
    }
    inodes::change(tx, ino, 0, |raw, _| {
        raw.core.size.set(size);
        Ok(())
    })
}

/// Blocks of a file's own that have taken the place of shared ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The blocks that the file had.
    pub old: Extent,
    /// Those that it has now; they are as many.
    pub new: Extent,
}

/// The first of `count` blocks from `start` on that more than one file has, and how many follow it that have, too
/// (`xfs_refcount_find_shared`).
fn find_shared(tx: &Transaction<'_>, start: FsBlock, count: u32) -> Result<Option<(FsBlock, u32)>> {
    let geometry = tx.store().geometry();
    let outside = || Error::Internal(format!("block {start} belongs to no group"));
    let (agno, first) = geometry.fsb_parts(start).ok_or_else(outside)?;
    let end = first.0.saturating_add(count);
    let tree = GroupTree::of(tx.store(), agno, BtreeKind::Refcountbt)?;
    let mut cursor = tree.from(SortKey([u64::from(first.0), 0, 0]))?;
    let mut found: Option<(u32, u32)> = None;
    while let Some(record) = cursor.next_record()? {
        let raw = RawRefcountRecord::prefix(&record).ok_or_else(outside)?.0;
        let (from, to) = (raw.startblock.get(), raw.startblock.get().saturating_add(raw.blockcount.get()));
        // records of blocks held for copy on write come last
        if from >= end {
            break;
        }
        if to <= first.0 || raw.refcount.get() < 2 {
            continue;
        }
        let (from, to) = (from.max(first.0), to.min(end));
        match &mut found {
            None => found = Some((from, to)),
            Some((_, last)) if *last == from => *last = to,
            Some(_) => break,
        }
    }
    Ok(found.and_then(|(from, to)| Some((geometry.fsb(agno, AgBlock(from))?, to - from))))
}

/// The first part of `count` blocks of a file from `at` on whose blocks are shared with others; `None` if there is none.
///
/// # Errors
/// `Corrupt` when the file or a reference count tree is damaged.
pub fn first_shared(tx: &Transaction<'_>, ino: Ino, at: FileBlock, count: u64) -> Result<Option<Extent>> {
    let (mut next, end) = (at.0, at.0.saturating_add(count));
    if tx.inode(ino)?.raw().flags2_or_zero() & flags2::REFLINK == 0 {
        return Ok(None);
    }
    while next < end {
        let run = run_at(tx, ino, ForkKind::Data, next, end - next)?;
        next += u64::from(run.len);
        let Some(extent) = run.extent().filter(|extent| !extent.unwritten) else { continue };
        let shared = find_shared(tx, FsBlock(extent.startblock), extent.blockcount)?;
        if let Some((start, blockcount)) = shared {
            let startoff = extent.startoff + (start.0 - extent.startblock);
            return Ok(Some(Extent { startoff, startblock: start.0, blockcount, unwritten: false }));
        }
    }
    Ok(None)
}

/// Gives a file blocks of its own in place of the first shared ones among `count` blocks from `at` on; `None` when none is
/// shared. What they hold is the affair of the caller, who fills the new blocks before the transaction commits.
///
/// # Errors
/// As [`super::grow()`].
pub fn own(tx: &mut Transaction<'_>, ino: Ino, at: FileBlock, count: u64) -> Result<Option<Owned>> {
    let Some(shared) = first_shared(tx, ino, at, count)? else { return Ok(None) };
    let mut open = OpenFork::open(tx, ino, ForkKind::Data, shared.startoff, end_of(&shared))?;
    let len = shared.blockcount;
    let hole = Hole { at: shared.startoff, len, purpose: HolePurpose::Copy };
    let found = place(tx, &open, &hole)?;
    let new = found.ok_or_else(|| Error::NoSpace(format!("{len} blocks for inode {ino}")))?;
    let old = cut(&shared, shared.startoff, end_of(&new));
    let old = old.ok_or_else(|| Error::Internal("blocks were allocated for what is not shared".to_owned()))?;
    open.window.remove(old.startoff, end_of(&old));
    if !open.window.insert(new) {
        return Err(Error::Internal("an extent was not taken out".to_owned()));
    }
    space::rmap_unmap(tx, &open.owner, &old);
    space::refcount_decrease(tx, FsBlock(old.startblock), old.blockcount);
    space::rmap_map(tx, &open.owner, &new);
    open.store(tx, 0)?;
    Ok(Some(Owned { old, new }))
}
