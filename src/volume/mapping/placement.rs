//! Where new blocks of a file go (`xfs_bmap_btalloc` and what it calls).

use super::fork::OpenFork;
use super::window::end_of;
use crate::error::Result;
use crate::forms::ForkKind;
use crate::geometry::{AgNumber, FsBlock, Geometry};
use crate::ondisk::dinode::flags;
use crate::ondisk::extent::MAX_BLOCKCOUNT;
use crate::ondisk::{Extent, RawDinode};
use crate::transaction::Transaction;
use crate::volume::space::{self, AllocationRequest, Purpose, RmapOwner, Target};

/// How much longer than the piece to be allocated the gap to a neighbour may be for the gap to be kept on disk.
const GAP_UNITS: u64 = 4;

/// Why blocks of a file are allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HolePurpose {
    /// Contents of the file, or of an attribute: fewer will do, and hints and stripes are heeded.
    Contents,
    /// Contents that are copied from shared blocks: fewer will do.
    Copy,
    /// Metadata of a directory, of attributes or of a symlink: rather in one piece.
    Metadata,
}

/// Blocks of a file that are to be allocated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    /// The first.
    pub(super) at: u64,
    /// How many.
    pub(super) len: u32,
    pub(super) purpose: HolePurpose,
}

/// Blocks for a hole, or for its start; `None` when there is no room. An extent size hint may widen it.
pub(super) fn place(tx: &mut Transaction<'_>, open: &OpenFork, hole: &Hole) -> Result<Option<Extent>> {
    let geometry = tx.store().geometry();
    let hinted = hole.purpose == HolePurpose::Contents && open.owner.fork == ForkKind::Data;
    // what a hint adds is unwritten
    let hint = if hinted && geometry.features.has_extflg() { extent_size_hint(open.inode.raw()) } else { 0 };
    let (at, len) = if hint > 1 { align(open, hole, u64::from(hint)) } else { (hole.at, hole.len) };
    let max = len.min(most_of_group(geometry));
    let at_eof = open.to_end && open.window.at_or_after(at).is_none();
    let stripe = Some(geometry.stripe_unit).filter(|unit| hinted && at_eof && *unit > 1 && len >= *unit);
    let adjacent = adjacent(geometry, open, at, len, at_eof);
    let near = adjacent.unwrap_or_else(|| geometry.ino_fsb(open.owner.ino).unwrap_or_default());
    let longest = longest_available(tx, near, max)?;
    let lengths = Lengths { longest, max };
    for attempt in attempts(hole.purpose, lengths, stripe, adjacent.is_some()) {
        let target = if attempt.exact { Target::Exact(near) } else { Target::StartingAt(near) };
        let purpose = if hole.purpose == HolePurpose::Metadata { Purpose::Metadata } else { Purpose::UserData };
        let mut request = AllocationRequest::new(target, attempt.min, max, RmapOwner::SKIP, purpose);
        request.align = attempt.align;
        if hint > 1 {
            let rest = at % u64::from(hint);
            request.multiple = hint;
            request.modulo = if rest == 0 { 0 } else { hint - u32::try_from(rest).unwrap_or(0) };
        }
        if let Some((start, found)) = space::allocate(tx, &request)? {
            let startoff = shift(hole, at, found);
            return Ok(Some(Extent { startoff, startblock: start.0, blockcount: found, unwritten: false }));
        }
    }
    Ok(None)
}

/// The longest extent that a group can give, as far as `most`; groups are looked at from that of `near` on
/// (`xfs_bmap_btalloc_select_lengths`).
fn longest_available(tx: &Transaction<'_>, near: FsBlock, most: u32) -> Result<u32> {
    let geometry = tx.store().geometry();
    let start = geometry.fsb_parts(near).map_or(0, |(agno, _)| agno.0);
    let mut longest = 0;
    for step in 0..geometry.agcount {
        let agno = AgNumber((start + step) % geometry.agcount);
        longest = longest.max(space::agf(tx.store(), agno)?.longest.get());
        if longest >= most {
            break;
        }
    }
    Ok(longest.min(most))
}

/// How long an extent can be.
#[derive(Clone, Copy)]
struct Lengths {
    /// The longest that a group can give.
    longest: u32,
    /// What is asked for.
    max: u32,
}

/// One way to ask for blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attempt {
    /// Right there, or not at all.
    exact: bool,
    min: u32,
    align: u32,
}

/// The ways to ask for blocks, the best first (`xfs_bmap_btalloc_best_length`, `xfs_bmap_btalloc_at_eof`).
fn attempts(purpose: HolePurpose, lengths: Lengths, stripe: Option<u32>, continues: bool) -> Vec<Attempt> {
    let Lengths { longest, max } = lengths;
    let min = longest.clamp(1, max);
    let mut attempts = Vec::new();
    if purpose == HolePurpose::Metadata {
        attempts.push(Attempt { exact: false, min: max, align: 1 });
    }
    if let Some(align) = stripe {
        if continues {
            attempts.push(Attempt { exact: true, min, align: 1 });
        }
        let aligned = if longest > align && longest <= max.saturating_add(align) { longest - align } else { min };
        attempts.push(Attempt { exact: false, min: aligned.clamp(1, max), align });
    }
    attempts.push(Attempt { exact: false, min, align: 1 });
    attempts.push(Attempt { exact: false, min: 1, align: 1 });
    attempts.dedup();
    attempts
}

/// Where in the file `found` blocks go that were asked for from `at` on, when they are fewer than a hint asked for.
fn shift(hole: &Hole, at: u64, found: u32) -> u64 {
    let end = hole.at + u64::from(hole.len);
    if found <= hole.len {
        hole.at
    } else if at + u64::from(found) < end {
        end - u64::from(found)
    } else {
        at
    }
}

/// Most blocks that a group can give to a file at once (`xfs_alloc_ag_max_usable`).
fn most_of_group(geometry: &Geometry) -> u32 {
    const FREE_LIST_RESERVE: u32 = 4;
    geometry.agblocks.saturating_sub(geometry.ag_prealloc_blocks() + FREE_LIST_RESERVE).max(1)
}

/// The unit of allocation of a file in blocks; 0 without one (`xfs_get_extsz_hint`).
pub(super) fn extent_size_hint(raw: &RawDinode) -> u32 {
    if raw.core.flags.get() & flags::EXTSIZE != 0 { raw.core.extsize.get() } else { 0 }
}

/// The hole widened to multiples of `hint`, as far as its neighbours let it (`xfs_bmap_extsize_align`).
fn align(open: &OpenFork, hole: &Hole, hint: u64) -> (u64, u32) {
    let (start, end) = (hole.at, hole.at + u64::from(hole.len));
    let lowest = open.window.before(start).map_or(0, |previous| end_of(&previous));
    let highest = open.window.at_or_after(start).map_or(u64::MAX, |next| next.startoff);
    let first = start - start % hint;
    let mut last = end.checked_next_multiple_of(hint).unwrap_or(end);
    while last - first > u64::from(MAX_BLOCKCOUNT) && last > first + hint {
        last -= hint;
    }
    let (first, last) = (first.max(lowest), last.min(highest));
    match u32::try_from(last - first) {
        Ok(len) if len <= MAX_BLOCKCOUNT && last > start => (first, len),
        _ => (hole.at, hole.len),
    }
}

/// A good first block, judged by the neighbours in the file (`xfs_bmap_adjacent`).
fn adjacent(geometry: &Geometry, open: &OpenFork, at: u64, len: u32, at_eof: bool) -> Option<FsBlock> {
    let in_group = |block: u64, neighbour: u64| {
        let (group, same) = (geometry.fsb_parts(FsBlock(block)), geometry.fsb_parts(FsBlock(neighbour)));
        matches!((group, same), (Some((group, _)), Some((same, _))) if group == same)
    };
    let len = u64::from(len);
    let left = open.window.before(at).and_then(|previous| {
        let behind = previous.startblock + u64::from(previous.blockcount);
        let gap = at - end_of(&previous);
        let kept = behind.checked_add(gap).filter(|block| in_group(*block, previous.startblock));
        if !in_group(behind, previous.startblock) {
            return None;
        }
        match kept {
            Some(block) if at_eof || gap <= GAP_UNITS * len => Some((block, gap)),
            _ => Some((behind, 2 * gap)),
        }
    });
    if at_eof {
        return left.map(|(block, _)| FsBlock(block));
    }
    let right = open.window.at_or_after(at).filter(|next| next.startoff > at).map(|next| {
        let gap = next.startoff - at;
        let kept = next.startblock.checked_sub(gap).filter(|block| in_group(*block, next.startblock));
        let before = next.startblock.checked_sub(len).filter(|block| in_group(*block, next.startblock));
        match (kept, before) {
            (Some(block), _) if gap <= GAP_UNITS * len => (block, gap),
            (_, Some(block)) => (block, (2 * gap).saturating_sub(len)),
            _ => (next.startblock, 2 * gap),
        }
    });
    let best = match (left, right) {
        (Some(left), Some(right)) => Some(if left.1 <= right.1 { left } else { right }),
        (left, right) => left.or(right),
    };
    best.map(|(block, _)| FsBlock(block))
}
