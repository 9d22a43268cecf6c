//! Blocks allocated for a range of a file (`xfs_bmapi_write`, `xfs_bmapi_allocate`).

use super::fork::OpenFork;
use super::placement::{Hole, HolePurpose, place};
use super::window::{cut, end_of};
use crate::error::{Error, Result};
use crate::forms::ForkKind;
use crate::geometry::{FileBlock, Ino};
use crate::ondisk::Extent;
use crate::ondisk::extent::{MAX_BLOCKCOUNT, MAX_STARTOFF};
use crate::transaction::Transaction;
use crate::volume::space;

/// What blocks are allocated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Contents of a file: one new extent a call, as long as there is room for, by the rules for extent size hints and
    /// stripes. Also the values of attributes.
    Contents {
        /// The blocks read as zeroes until they are converted.
        unwritten: bool,
    },
    /// Blocks of directories, attribute trees and symlinks: all of them, in one piece if there is one.
    Metadata,
}

/// Allocates what is not mapped yet of `count` blocks of a fork from `at` on. Returns the extents that now cover the range,
/// cut to it, as far as it has come: with [`Growth::Contents`], the range may not be covered to its end. What is mapped
/// already stays as it is, unwritten or not.
///
/// # Errors
/// `NoSpace` when there is no room; `Unsupported` for realtime files; `Corrupt` when the fork or the group is damaged.
pub fn grow(
    tx: &mut Transaction<'_>,
    ino: Ino,
    fork: ForkKind,
    at: FileBlock,
    count: u32,
    growth: Growth,
) -> Result<Vec<Extent>> {
    let end = at.0.saturating_add(u64::from(count));
    if end > MAX_STARTOFF {
        return Err(Error::Usage(format!("block {} lies behind the end of every file", end - 1)));
    }
    let mut open = OpenFork::open(tx, ino, fork, at.0, end)?;
    let mut blocks = 0;
    let purpose = if growth == Growth::Metadata { HolePurpose::Metadata } else { HolePurpose::Contents };
    while let Some(hole) = first_hole(&open, at.0, end, purpose) {
        let unwritten = growth == Growth::Contents { unwritten: true } && tx.store().geometry().features.has_extflg();
        let new = place(tx, &open, &hole)?.ok_or_else(|| no_space(ino, &hole))?;
        for part in parts_of(&Extent { unwritten, ..new }, at.0, end) {
            if !open.window.insert(part) {
                return Err(Error::Internal("blocks were allocated for what is mapped already".to_owned()));
            }
            space::rmap_map(tx, &open.owner, &part);
        }
        blocks += i64::from(new.blockcount);
        if purpose == HolePurpose::Contents {
            break;
        }
    }
    let window = open.store(tx, blocks)?;
    Ok(covered(&window.parts(at.0, end), at.0))
}

fn no_space(ino: Ino, hole: &Hole) -> Error {
    Error::NoSpace(format!("{} blocks for inode {ino}", hole.len))
}

/// An extent as it is mapped: what a hint has added to the range holds nothing of the file yet, and is unwritten.
fn parts_of(extent: &Extent, start: u64, end: u64) -> Vec<Extent> {
    let outside = |part: Extent| Extent { unwritten: true, ..part };
    let before = cut(extent, 0, start).map(outside);
    let behind = cut(extent, end, u64::MAX).map(outside);
    [before, cut(extent, start, end), behind].into_iter().flatten().collect()
}

/// The first part of the range that nothing maps, not longer than an extent can be.
fn first_hole(open: &OpenFork, start: u64, end: u64, purpose: HolePurpose) -> Option<Hole> {
    let mut at = start;
    while at < end {
        let next = open.window.at_or_after(at);
        match next {
            Some(next) if next.startoff <= at => at = end_of(&next),
            _ => {
                let last = next.map_or(end, |next| next.startoff.min(end));
                let len = (last - at).min(u64::from(MAX_BLOCKCOUNT));
                return Some(Hole { at, len: u32::try_from(len).unwrap_or(MAX_BLOCKCOUNT), purpose });
            }
        }
    }
    None
}

/// The extents that follow each other without a hole from `at` on.
fn covered(parts: &[Extent], at: u64) -> Vec<Extent> {
    let mut next = at;
    let follow = |extent: &&Extent| {
        let follows = extent.startoff == next;
        next = end_of(extent);
        follows
    };
    parts.iter().take_while(follow).copied().collect()
}
