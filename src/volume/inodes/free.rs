//! An inode freed.

use crate::error::{Error, Result};
use crate::geometry::Ino;
use crate::transaction::Transaction;

/// Frees an inode that has neither links nor blocks and is on an unlinked list; the last inode of a chunk takes the
/// chunk with it.
///
/// # Errors
/// `Corrupt` when the inode is free already, or a structure is damaged.
pub fn free(_tx: &mut Transaction<'_>, _ino: Ino) -> Result<()> {
    Err(Error::Unsupported("freeing inodes".to_owned()))
}
