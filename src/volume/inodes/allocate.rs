//! A free inode found or made.

use crate::error::{Error, Result};
use crate::geometry::Ino;
use crate::transaction::Transaction;

/// Takes a free inode near `parent`, and makes new ones if there is none. The transaction may roll. Its core still is that of
/// a free inode.
///
/// # Errors
/// `NoSpace` when there is no free inode and no room for more; `Corrupt` when a group is damaged.
pub fn allocate(_tx: &mut Transaction<'_>, _parent: Ino, _mode: u16) -> Result<Ino> {
    Err(Error::Unsupported("allocating inodes".to_owned()))
}
