//! Blocks that each kind of transaction reserves (Linux `libxfs/xfs_trans_space.h`, `xfs_trans_space.c`).

use super::Geometry;
use super::btree_levels::BtreeKind;
use super::reservation::ReservationInputs;
use crate::ondisk::da_block::DA_NODE_MAXDEPTH;

/// Blocks that each kind of transaction reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockReservations {
    inode_chunk: u64,
    inobt_levels: u64,
    finobt: bool,
    dir_blocks: u64,
    depth: u64,
    data_levels: u64,
    attr_levels: u64,
    rmap_levels: u64,
    /// Extents that a leaf of a mapping btree takes at worst before it splits. Linux takes the numbers of free space btrees.
    extents_per_block: u64,
    parent: bool,
}

impl BlockReservations {
    /// Those of a filesystem.
    pub fn new(geometry: &Geometry) -> Self {
        let levels = ReservationInputs::of(geometry).levels();
        let alloc = geometry.btree(BtreeKind::Bnobt);
        BlockReservations {
            inode_chunk: u64::from(geometry.inodes.alloc_blocks),
            inobt_levels: u64::from(levels.inobt),
            finobt: geometry.features.has_finobt(),
            dir_blocks: 1 << (geometry.directory.blklog - geometry.blocklog),
            depth: u64::from(DA_NODE_MAXDEPTH),
            data_levels: u64::from(levels.bmbt_data),
            attr_levels: u64::from(levels.bmbt_attr),
            rmap_levels: u64::from(levels.rmapbt),
            extents_per_block: u64::from(alloc.leaf_max.saturating_sub(alloc.leaf_min)).max(1),
            parent: geometry.features.has_parent(),
        }
    }

    fn extents(&self, count: u64, levels: u64) -> u64 {
        count.div_ceil(self.extents_per_block) * levels.saturating_sub(1)
    }

    /// `count` extents added to a data fork.
    pub fn data_extents(&self, count: u64) -> u64 {
        self.extents(count, self.data_levels)
    }

    /// The same with their reverse mappings.
    pub fn data_extents_and_rmaps(&self, count: u64) -> u64 {
        self.data_extents(count) + count.div_ceil(self.extents_per_block) * self.rmap_levels
    }

    /// A file of `blocks` blocks written: the blocks, and one extent (`XFS_DIOSTRAT_SPACE_RES`).
    pub fn write(&self, blocks: u64) -> u64 {
        self.data_levels.saturating_sub(1) + blocks
    }

    /// A name added to a directory.
    pub fn directory_enter(&self) -> u64 {
        let blocks = self.depth + 2;
        blocks * self.dir_blocks + blocks * self.data_extents(self.dir_blocks)
    }

    /// A name taken from a directory.
    pub fn directory_remove(&self) -> u64 {
        (self.depth + 2) * self.data_extents(self.dir_blocks)
    }

    /// An attribute removed.
    pub fn attribute_remove(&self) -> u64 {
        self.depth * self.extents(1, self.attr_levels)
    }

    /// An attribute fork added.
    pub fn add_attribute_fork(&self) -> u64 {
        self.dir_blocks + self.data_extents(self.dir_blocks)
    }

    /// A parent pointer for a name of so many bytes, which Linux takes for a number of extents.
    pub fn parent(&self, name: usize) -> u64 {
        if !self.parent {
            return 0;
        }
        let name = u64::try_from(name).unwrap_or(u64::MAX);
        self.depth + self.depth * self.extents(1, self.attr_levels) + self.extents(name, self.attr_levels)
    }

    fn inode(&self) -> u64 {
        self.inode_chunk + if self.finobt { 2 } else { 1 } * self.inobt_levels
    }

    /// A file or directory created.
    pub fn create(&self, name: usize) -> u64 {
        self.inode() + self.directory_enter() + self.parent(name)
    }

    /// A symbolic link created, whose target takes `blocks` blocks.
    pub fn symlink(&self, name: usize, blocks: u64) -> u64 {
        self.create(name) + blocks
    }

    /// A link added.
    pub fn link(&self, name: usize) -> u64 {
        self.directory_enter() + self.parent(name)
    }

    /// A link removed.
    pub fn remove(&self, name: usize) -> u64 {
        self.directory_remove() + self.parent(name)
    }

    /// A link moved to another name, which may be there already.
    pub fn rename(&self, target_name: usize, replaced: bool) -> u64 {
        let parents = if replaced { 3 } else { 2 };
        self.directory_remove() + self.directory_enter() + parents * self.parent(target_name)
    }
}
