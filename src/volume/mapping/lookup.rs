//! Extents of a fork as it stands.

use crate::error::Result;
use crate::forms::{BlockSource, ForkKind, Inode, find_extent};
use crate::geometry::FileBlock;
use crate::ondisk::Extent;

/// The extent that maps block `at` of a fork; `None` for a hole.
///
/// # Errors
/// `Io`; `Corrupt` when the fork is damaged.
pub fn lookup(source: &dyn BlockSource, inode: &Inode, fork: ForkKind, at: FileBlock) -> Result<Option<Extent>> {
    match inode.fork(fork)? {
        Some(fork) => find_extent(source, &fork, at),
        None => Ok(None),
    }
}

/// The extents that cover any of `count` blocks from `at` on, whole.
///
/// # Errors
/// As [`lookup`].
pub fn extents_in(
    source: &dyn BlockSource,
    inode: &Inode,
    fork: ForkKind,
    at: FileBlock,
    count: u64,
) -> Result<Vec<Extent>> {
    let Some(fork) = inode.fork(fork)? else { return Ok(Vec::new()) };
    let end = at.0.saturating_add(count);
    let mut found = Vec::new();
    for extent in fork.extents(source) {
        let extent = extent?;
        if extent.startoff >= end {
            break;
        }
        if extent.startoff + u64::from(extent.blockcount) > at.0 {
            found.push(extent);
        }
    }
    Ok(found)
}

/// The first block behind all extents of a fork.
///
/// # Errors
/// As [`lookup`].
pub fn last_block(source: &dyn BlockSource, inode: &Inode, fork: ForkKind) -> Result<FileBlock> {
    let Some(fork) = inode.fork(fork)? else { return Ok(FileBlock(0)) };
    let mut end = 0;
    for extent in fork.extents(source) {
        let extent = extent?;
        end = extent.startoff + u64::from(extent.blockcount);
    }
    Ok(FileBlock(end))
}
