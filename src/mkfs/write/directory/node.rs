//! Directories with a hash btree. Source: Linux `fs/xfs/libxfs/xfs_dir2_node.c` and `xfs_da_btree.c`.

use super::{Directory, NewEntry};
use crate::error::{Error, Result};
use crate::mkfs::write::maker::Maker;

impl Maker<'_> {
    /// Makes the leaf of a directory the first of a hash btree.
    pub(super) fn leaf_to_node(&mut self, _directory: &mut Directory) -> Result<()> {
        Err(Error::Unsupported("that many realtime groups".to_string()))
    }

    /// Adds an entry to a directory with a hash btree.
    pub(super) fn add_to_node(&mut self, _directory: &mut Directory, _entry: &NewEntry<'_>) -> Result<()> {
        Err(Error::Unsupported("that many realtime groups".to_string()))
    }
}
