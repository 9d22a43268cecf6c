//! The root directory. Source: `parseproto` and `creatproto` of xfsprogs `mkfs/proto.c`, for the root of the default prototype.

use crate::error::{Error, Result};
use crate::mkfs::write::chunk::Parent;
use crate::mkfs::write::directory::Directory;
use crate::mkfs::write::inode::{Inode, mode};
use crate::mkfs::write::maker::Maker;
use crate::ondisk::dinode::{flags, flags2};

/// Permissions of the root directory.
const PERMISSIONS: u16 = 0o755;

impl Maker<'_> {
    /// Makes the root directory, empty.
    pub fn make_root(&mut self) -> Result<Inode> {
        let ino = self.allocate_inode(Parent::None)?;
        let expected = self.shape.expected_root();
        if ino != expected {
            return Err(Error::Usage(format!(
                "-l agnum, -l su, -l sunit: with this log the root directory would be inode {ino}, where nobody looks for \
                 it; allowed: a log in another group, or one that lets it be inode {expected}"
            )));
        }
        // programs that dump a filesystem count on generation 0 here
        let mut root = Inode::new(self.shape, ino, mode::DIRECTORY | PERMISSIONS, 0);
        let defaults = self.shape.layout.root;
        root.projid = defaults.project.unwrap_or(0);
        root.extsize = defaults.extent_size;
        for (on, flag) in [
            (defaults.rt_inherit, flags::RTINHERIT),
            (defaults.project.is_some(), flags::PROJINHERIT),
            (defaults.extent_size != 0, flags::EXTSZINHERIT),
        ] {
            root.flags |= if on { flag } else { 0 };
        }
        if self.shape.layout.features.crc {
            root.cowextsize = defaults.cow_extent_size;
            for (on, flag) in [(defaults.dax, flags2::DAX), (defaults.cow_extent_size != 0, flags2::COWEXTSIZE)] {
                root.flags2 |= if on { flag } else { 0 };
            }
        }
        let mut root = Directory::new(root, ino)?.inode;
        self.progress.rootino = ino;
        self.commit(&mut root)?;
        Ok(root)
    }
}
