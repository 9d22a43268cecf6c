//! Directories of the new filesystem. Source: Linux `fs/xfs/libxfs/xfs_dir2_sf.c`.

use crate::error::{Error, Result};
use crate::geometry::Ino;
use crate::mkfs::write::inode::{Data, Inode};
use crate::ondisk::dir_short;

/// Makes `inode` an empty directory in `parent`.
pub(super) fn begin(inode: &mut Inode, parent: Ino) -> Result<()> {
    let bytes = dir_short::encode(parent.0, &[])
        .ok_or_else(|| Error::Internal("making a filesystem: an empty directory does not encode".to_string()))?;
    inode.size = bytes.len() as u64;
    inode.data = Data::Local(bytes);
    Ok(())
}
