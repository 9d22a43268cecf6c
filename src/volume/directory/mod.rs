//! Names added to directories, taken out and replaced, in every form (Linux `libxfs/xfs_dir2.c` and the files beside it).

use crate::error::{Error, Result};
use crate::geometry::Ino;
use crate::transaction::Transaction;

/// What a new entry of a directory says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewEntry<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The inode.
    pub ino: Ino,
    /// Its type, as entries have it.
    pub ftype: u8,
}

/// Makes an empty directory in a new inode.
///
/// # Errors
/// `Usage` when `dir` is no directory.
pub fn init(_tx: &mut Transaction<'_>, _dir: Ino, _parent: Ino) -> Result<()> {
    Err(Error::Unsupported("directories".to_owned()))
}

/// Adds an entry whose name is not there yet. Times and link counts are the caller's.
///
/// # Errors
/// `NoSpace` when there is no block for it; `Corrupt` when the directory is damaged.
pub fn add(_tx: &mut Transaction<'_>, _dir: Ino, _entry: &NewEntry<'_>) -> Result<()> {
    Err(Error::Unsupported("directories".to_owned()))
}

/// Takes an entry out.
///
/// # Errors
/// `Usage` when it is not there; `Corrupt` when the directory is damaged.
pub fn remove(_tx: &mut Transaction<'_>, _dir: Ino, _name: &[u8]) -> Result<()> {
    Err(Error::Unsupported("directories".to_owned()))
}

/// Lets an entry that is there, `..` too, name another inode.
///
/// # Errors
/// As [`remove`]; `NoSpace` when the directory must take another form, and there is no block.
pub fn replace(_tx: &mut Transaction<'_>, _dir: Ino, _entry: &NewEntry<'_>) -> Result<()> {
    Err(Error::Unsupported("directories".to_owned()))
}
