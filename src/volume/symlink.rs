//! Targets of symbolic links (Linux `libxfs/xfs_symlink_remote.c`).

use crate::error::{Error, Result};
use crate::geometry::Ino;
use crate::transaction::Transaction;

/// Stores the target of a new symbolic link.
///
/// # Errors
/// `Usage` when it is empty or longer than 1023 bytes; `NoSpace`.
pub fn write_target(_tx: &mut Transaction<'_>, _link: Ino, _target: &[u8]) -> Result<()> {
    Err(Error::Unsupported("symbolic links".to_owned()))
}

/// Takes the target from a symbolic link that is about to be freed. Freeing its blocks is deferred.
///
/// # Errors
/// `Corrupt` when the link is damaged.
pub fn remove_target(_tx: &mut Transaction<'_>, _link: Ino) -> Result<()> {
    Err(Error::Unsupported("symbolic links".to_owned()))
}
