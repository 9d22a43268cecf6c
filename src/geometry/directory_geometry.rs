//! How directories and attribute forks are divided into blocks (Linux `libxfs/xfs_dir2.c`, `xfs_da_mount`;
//! `xfs_da_format.h`).

use super::bounds::Bounds;
use super::features::Features;
use super::inode_geometry::InodeGeometry;
use super::{FileBlock, Geometry};
use crate::ondisk::dir_leaf::SPACE_SIZE;
use crate::ondisk::{Be16, OnDisk, dir_data, dir_leaf, remote};
use crate::ondisk::{attr_leaf, da_block};

/// Sizes and places of a directory. Directory blocks are one or more filesystem blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryGeometry {
    /// Bytes of a directory block.
    pub blksize: u32,
    /// log2 of the same.
    pub blklog: u32,
    /// Filesystem blocks of a directory block.
    pub fsbcount: u32,
    /// Bytes of a data block's header.
    pub data_header_size: u32,
    /// Where the first entry after `.` and `..` stands in the first data block.
    pub data_first_offset: u32,
    /// Most entries of a leaf block that has no tail.
    pub leaf_max_entries: u32,
    /// Most entries of a node.
    pub node_entries: u32,
    /// Most "best free" values of a free index block.
    pub free_max_bests: u32,
    /// First filesystem block of leaf and node blocks.
    pub leaf_start: FileBlock,
    /// First filesystem block of free index blocks.
    pub free_start: FileBlock,
    /// End of all: the first filesystem block that no directory has.
    pub end: FileBlock,
}

/// Sizes of an attribute fork, whose blocks are filesystem blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeGeometry {
    /// Bytes of a leaf's header.
    pub leaf_header_size: u32,
    /// Most entries of a node.
    pub node_entries: u32,
    /// Bytes that name and value may take together, from which on the value lies in blocks of its own.
    pub local_limit: u32,
    /// Bytes of a value that one block of its own holds.
    pub remote_space: u32,
    /// Most extents of the fork.
    pub max_extents: u64,
}

#[allow(clippy::cast_possible_truncation)] // sizes of structures
impl DirectoryGeometry {
    pub(super) fn of(bounds: &Bounds, features: &Features) -> Self {
        let (crc, ftype) = (features.has_crc(), features.has_ftype());
        let blklog = bounds.blocklog + bounds.dirblklog;
        let blksize = 1_u32 << blklog;
        let data_header = dir_data::header_len(crc);
        let leaf_header = if crc { dir_leaf::RawDir3LeafHdr::SIZE } else { dir_leaf::RawDir2LeafHdr::SIZE };
        let free_header = if crc { dir_leaf::RawDir3FreeHdr::SIZE } else { dir_leaf::RawDir2FreeHdr::SIZE };
        let space = |number: u64| FileBlock((number * SPACE_SIZE) >> bounds.blocklog);
        DirectoryGeometry {
            blksize,
            blklog,
            fsbcount: 1 << bounds.dirblklog,
            data_header_size: data_header as u32,
            data_first_offset: (data_header + dir_data::entry_len(1, ftype) + dir_data::entry_len(2, ftype)) as u32,
            leaf_max_entries: (blksize - leaf_header as u32) / dir_leaf::RawDirLeafEntry::SIZE as u32,
            node_entries: node_entries(blksize, crc),
            free_max_bests: (blksize - free_header as u32) / size_of::<Be16>() as u32,
            leaf_start: space(1),
            free_start: space(2),
            end: space(3),
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // sizes of structures
impl AttributeGeometry {
    pub(super) fn of(bounds: &Bounds, features: &Features, inodes: &InodeGeometry) -> Self {
        let (blocksize, crc) = (1_u32 << bounds.blocklog, features.has_crc());
        AttributeGeometry {
            leaf_header_size: attr_leaf::header_len(crc) as u32,
            node_entries: node_entries(blocksize, crc),
            local_limit: blocksize / 2 + blocksize / 4,
            remote_space: blocksize - if crc { remote::RawAttr3RmtHdr::SIZE as u32 } else { 0 },
            max_extents: inodes.max_attr_extents,
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // sizes of structures
fn node_entries(blksize: u32, crc: bool) -> u32 {
    let header = if crc { da_block::RawDa3NodeHdr::SIZE } else { da_block::RawDaNodeHdr::SIZE };
    (blksize - header as u32) / da_block::RawDaNodeEntry::SIZE as u32
}

/// Directories and attributes.
impl Geometry {
    /// Directory block in which a filesystem block of a directory lies, counted in directory blocks.
    pub fn directory_block(&self, block: FileBlock) -> u64 {
        block.0 >> (self.directory.blklog - self.blocklog)
    }

    /// Blocks of their own that an attribute value of `len` bytes takes.
    pub fn attr_remote_blocks(&self, len: u32) -> u32 {
        len.div_ceil(self.attributes.remote_space)
    }
}
