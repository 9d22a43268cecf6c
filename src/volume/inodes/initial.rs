//! The core of a new inode.

use crate::error::{Error, Result};
use crate::geometry::Ino;
use crate::transaction::Transaction;

/// What a new inode is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewInode {
    /// Type and access bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group; a directory with the setgid bit gives its own instead.
    pub gid: u32,
    /// Device number, for devices.
    pub rdev: u32,
    /// Whether it gets an attribute fork at once: when attributes follow. With parent pointers it does in any case.
    pub attributes: bool,
    /// Whether no directory will name it: its link count is 0.
    pub unnamed: bool,
}

/// Allocates an inode below `parent` and gives it its core: flags, project and group come from the directory as Linux
/// lets them. The link count is 1, of a directory 2, of an unnamed one 0.
///
/// # Errors
/// As [`super::allocate`].
pub fn create(_tx: &mut Transaction<'_>, _parent: Ino, _new: &NewInode) -> Result<Ino> {
    Err(Error::Unsupported("creating inodes".to_owned()))
}
