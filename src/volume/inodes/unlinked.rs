//! The lists of inodes without a name.

use crate::error::{Error, Result};
use crate::geometry::Ino;
use crate::transaction::Transaction;

/// Puts an inode without links at the head of its list.
///
/// # Errors
/// `Corrupt` when the list is damaged.
pub fn unlinked_add(_tx: &mut Transaction<'_>, _ino: Ino) -> Result<()> {
    Err(Error::Unsupported("unlinked lists".to_owned()))
}

/// Takes an inode from its list.
///
/// # Errors
/// `Corrupt` when it is not on the list.
pub fn unlinked_remove(_tx: &mut Transaction<'_>, _ino: Ino) -> Result<()> {
    Err(Error::Unsupported("unlinked lists".to_owned()))
}
