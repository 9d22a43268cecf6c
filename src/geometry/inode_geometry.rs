//! How inodes are laid out and allocated (Linux `libxfs/xfs_ialloc.c`, `xfs_ialloc_setup_geometry`).

use super::bounds::Bounds;
use super::features::Features;
use crate::ondisk::dinode::{
    MAX_EXTCNT_ATTR_LARGE, MAX_EXTCNT_ATTR_SMALL, MAX_EXTCNT_DATA_LARGE, MAX_EXTCNT_DATA_SMALL,
};
use crate::ondisk::{Be64, INODES_PER_CHUNK, OnDisk, RawBmbtKey, RawBmdrRoot, RawDinode, RawDinodeCore, RawSuperblock};

/// Bytes of an inode cluster, before it is scaled by the inode size.
pub const CLUSTER_BYTES: u64 = 8192;

/// How inodes are laid out and allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InodeGeometry {
    /// Bytes of an inode.
    pub size: u32,
    /// log2 of the same.
    pub log: u32,
    /// Inodes of a block.
    pub per_block: u32,
    /// log2 of the same.
    pub per_block_log: u32,
    /// Bits of an inode number that lie within its group.
    pub agino_log: u32,
    /// Bytes before the literal area.
    pub core_size: u32,
    /// Bytes of the literal area, which the forks share.
    pub literal_size: u32,
    /// Where the attribute fork of a new inode starts in the literal area, in bytes.
    pub attr_fork_offset: u32,
    /// Inodes allocated at once: one or more chunks.
    pub alloc_inodes: u32,
    /// Blocks of the same.
    pub alloc_blocks: u32,
    /// The fewest blocks that can be allocated for inodes.
    pub alloc_min_blocks: u32,
    /// Most inodes that `imax_pct` allows; 0 is no limit.
    pub max_count: u64,
    /// Bytes of a cluster: the unit in which inodes are read and written.
    pub cluster_size: u32,
    /// Bytes of a cluster as wished for, where blocks are larger.
    pub cluster_size_raw: u32,
    /// Blocks of a cluster.
    pub cluster_blocks: u32,
    /// Inodes of a cluster.
    pub cluster_inodes: u32,
    /// Alignment of clusters in blocks.
    pub cluster_align: u32,
    /// Alignment of clusters in inodes.
    pub cluster_align_inodes: u32,
    /// Alignment of chunks by the stripe unit, in blocks; 0 is none.
    pub stripe_align: u32,
    /// `inoalignmt` of the superblock: alignment of chunks in blocks.
    pub chunk_align: u32,
    /// `spino_align` of the superblock: alignment of sparse chunks in blocks; 0 without the feature.
    pub sparse_align: u32,
    /// Most extents of a data fork.
    pub max_data_extents: u64,
    /// Most extents of an attribute fork.
    pub max_attr_extents: u64,
}

impl InodeGeometry {
    #[allow(clippy::cast_possible_truncation)] // sizes of structures
    pub(super) fn of(sb: &RawSuperblock, bounds: &Bounds, features: &Features) -> Self {
        let size = 1_u32 << bounds.inodelog;
        let per_block_log = bounds.blocklog - bounds.inodelog;
        let per_block = 1_u32 << per_block_log;
        let core_size = if features.has_crc() { RawDinode::SIZE } else { RawDinodeCore::SIZE } as u32;
        let alloc_inodes = INODES_PER_CHUNK.max(per_block);
        let alloc_blocks = alloc_inodes >> per_block_log;
        let (chunk_align, sparse_align) =
            (sb.inoalignmt.get(), if features.is_v5() { sb.spino_align.get() } else { 0 });
        let cluster_size_raw = cluster_size_raw(bounds, features, size, chunk_align);
        let cluster_blocks = (cluster_size_raw >> bounds.blocklog).max(1);
        let aligned = features.has_align() && chunk_align >= cluster_blocks;
        let cluster_align = if aligned { chunk_align } else { 1 };
        let literal_size = size - core_size;
        let (max_data_extents, max_attr_extents) = if features.has_nrext64() {
            (MAX_EXTCNT_DATA_LARGE, MAX_EXTCNT_ATTR_LARGE)
        } else {
            (MAX_EXTCNT_DATA_SMALL, MAX_EXTCNT_ATTR_SMALL)
        };
        InodeGeometry {
            size,
            log: bounds.inodelog,
            per_block,
            per_block_log,
            agino_log: bounds.agblklog + per_block_log,
            core_size,
            literal_size,
            attr_fork_offset: if size == 256 { literal_size.saturating_sub(root_size(2)) } else { root_size(12) },
            alloc_inodes,
            alloc_blocks,
            alloc_min_blocks: if sparse_align == 0 { alloc_blocks } else { sparse_align },
            max_count: max_count(sb, alloc_blocks, per_block),
            cluster_size: cluster_blocks << bounds.blocklog,
            cluster_size_raw,
            cluster_blocks,
            cluster_inodes: cluster_blocks << per_block_log,
            cluster_align,
            cluster_align_inodes: cluster_align.saturating_mul(per_block),
            stripe_align: stripe_align(sb, features, cluster_align),
            chunk_align,
            sparse_align,
            max_data_extents,
            max_attr_extents,
        }
    }
}

/// Version 5 scales clusters with the inode size, if the alignment allows it.
#[allow(clippy::cast_possible_truncation)] // at most 64 KiB
fn cluster_size_raw(bounds: &Bounds, features: &Features, size: u32, chunk_align: u32) -> u32 {
    let plain = CLUSTER_BYTES as u32;
    let scaled = plain * (size / 256);
    if features.has_crc() && chunk_align >= scaled >> bounds.blocklog { scaled } else { plain }
}

fn stripe_align(sb: &RawSuperblock, features: &Features, cluster_align: u32) -> u32 {
    let (unit, mask) = (sb.unit.get(), cluster_align - 1);
    if features.has_dalign() && mask != 0 && unit & mask == 0 { unit } else { 0 }
}

/// Bytes of an extent btree's root with `keys` keys.
#[allow(clippy::cast_possible_truncation)] // sizes of structures
const fn root_size(keys: u32) -> u32 {
    RawBmdrRoot::SIZE as u32 + keys * (RawBmbtKey::SIZE + size_of::<Be64>()) as u32
}

#[allow(clippy::cast_possible_truncation)] // bounded before
fn max_count(sb: &RawSuperblock, alloc_blocks: u32, per_block: u32) -> u64 {
    let blocks = u128::from(sb.dblocks.get()) * u128::from(sb.imax_pct) / 100;
    let whole = blocks / u128::from(alloc_blocks) * u128::from(alloc_blocks);
    (whole * u128::from(per_block)).min(u128::from(u64::MAX)) as u64
}
