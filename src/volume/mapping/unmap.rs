//! Blocks taken from a file.

use crate::error::{Error, Result};
use crate::forms::ForkKind;
use crate::geometry::{FileBlock, Ino};
use crate::transaction::Transaction;

/// Takes blocks out of a fork, from the end of the range of `count` blocks from `at` on, at most `most` pieces of extents.
/// Freeing them is deferred. Returns how many blocks of the range, from its start, are left to be looked at; 0 when it is done.
///
/// # Errors
/// `NoSpace` when an extent has to be split and there is no block for that; `Unsupported` for realtime files; `Corrupt` when
/// the fork is damaged.
pub fn unmap(
    _tx: &mut Transaction<'_>,
    _ino: Ino,
    _fork: ForkKind,
    _at: FileBlock,
    _count: u64,
    _most: usize,
) -> Result<u64> {
    Err(Error::Unsupported("unmapping".to_owned()))
}

/// Takes all blocks from `at` on out of a fork, in as many steps as it takes; what they defer is finished between them
/// (`xfs_itruncate_extents`). The transaction stays open.
///
/// # Errors
/// As [`unmap`]; those of finishing.
pub fn truncate(_tx: &mut Transaction<'_>, _ino: Ino, _fork: ForkKind, _at: FileBlock) -> Result<()> {
    Err(Error::Unsupported("truncating".to_owned()))
}
