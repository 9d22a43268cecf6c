//! To whom blocks belong, as reverse mappings say it (Linux `struct xfs_owner_info`).

use crate::forms::ForkKind;
use crate::geometry::Ino;
use crate::ondisk::rmap_record::owner;

/// The owner of blocks that are allocated or freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RmapOwner {
    /// An inode, or one of [`owner`]; [`owner::NULL`] leaves the reverse mappings alone.
    pub owner: u64,
    /// Where in the fork the blocks lie, in blocks; 0 for all but contents of files.
    pub offset: u64,
    /// The blocks are of the attribute fork.
    pub attr_fork: bool,
    /// The blocks are of the fork's btree.
    pub bmbt_block: bool,
}

impl RmapOwner {
    /// The reverse mapping is somebody else's affair: of contents of files it is deferred with the mapping.
    pub const SKIP: Self = Self::special(owner::NULL);
    /// Free space and reverse mapping btrees, free list.
    pub const AG: Self = Self::special(owner::AG);
    /// Inode btrees.
    pub const INOBT: Self = Self::special(owner::INOBT);
    /// Inodes.
    pub const INODES: Self = Self::special(owner::INODES);
    /// Reference count btree.
    pub const REFC: Self = Self::special(owner::REFC);
    /// Blocks held for copy on write.
    pub const COW: Self = Self::special(owner::COW);

    const fn special(owner: u64) -> Self {
        RmapOwner { owner, offset: 0, attr_fork: false, bmbt_block: false }
    }

    /// A block of the mapping btree of a fork.
    pub fn bmbt(ino: Ino, fork: ForkKind) -> Self {
        RmapOwner { owner: ino.0, offset: 0, attr_fork: fork == ForkKind::Attr, bmbt_block: true }
    }

    /// Contents of a fork, from its block `offset` on.
    pub fn file(ino: Ino, fork: ForkKind, offset: u64) -> Self {
        RmapOwner { owner: ino.0, offset, attr_fork: fork == ForkKind::Attr, bmbt_block: false }
    }

    /// Whether reverse mappings are left alone.
    pub fn is_skip(&self) -> bool {
        self.owner == owner::NULL
    }
}
