//! A fork that gets less room in its inode (`xfs_bmap_add_attrfork_extents`, `xfs_bmap_add_attrfork_btree`).

use super::fork::OpenFork;
use crate::error::Result;
use crate::forms::ForkKind;
use crate::geometry::Ino;
use crate::transaction::Transaction;

/// Brings a fork of extents into a form that takes at most `size` bytes of its inode, and stores it so: the caller then moves
/// the border between the forks. A list that does not fit becomes a btree, whose root has one child then; a root that does
/// not fit moves into a block.
///
/// # Errors
/// `NoSpace`; `Corrupt` when the fork is damaged; `Unsupported` for realtime files.
pub fn set_fork_size(tx: &mut Transaction<'_>, ino: Ino, fork: ForkKind, size: usize) -> Result<()> {
    OpenFork::open(tx, ino, fork, 0, 0)?.resize(tx, size)
}
