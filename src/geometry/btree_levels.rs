//! How many records fit into a block of each btree, and how tall each tree can get.
//!
//! The height of a tree bounds walks and decides how much log a transaction reserves. The rules are those of Linux
//! `xfs_*bt_maxrecs` and `xfs_*_compute_maxlevels`; they use the numbers of the superblock alone, so that a formatter
//! can apply them before there is one.

use super::limits::{MAX_AG_BYTES, MAX_RGBLOCKS, MIN_BLOCKSIZE, MIN_BLOCKSIZE_V5, MIN_INODESIZE};
use crate::ondisk::dinode::MAX_EXTCNT_DATA_LARGE;
use crate::ondisk::{
    Be32, Be64, INODES_PER_CHUNK, RawAllocRecord, RawBmbtKey, RawExtent, RawInobtKey, RawInobtRecord, RawLongBlock,
    RawLongBlockV5, RawRefcountKey, RawRefcountRecord, RawRmapKey, RawRmapRecord, RawShortBlock, RawShortBlockV5,
};

/// The nine btrees of XFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BtreeKind {
    /// Free extents by position.
    Bnobt,
    /// Free extents by length.
    Cntbt,
    /// Inode chunks.
    Inobt,
    /// Inode chunks with free inodes.
    Finobt,
    /// Owners of the blocks of a group.
    Rmapbt,
    /// Shared extents of a group.
    Refcountbt,
    /// Extents of a file.
    Bmbt,
    /// Owners of the blocks of a realtime group.
    Rtrmapbt,
    /// Shared extents of a realtime group.
    Rtrefcountbt,
}

/// Sizes in bytes of what the blocks of a btree hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtreeSizes {
    /// Header of a block.
    pub header: u32,
    /// One record in a leaf.
    pub record: u32,
    /// Keys of one child in a node: twice the key where the tree keeps high keys too.
    pub keys: u32,
    /// One pointer in a node.
    pub pointer: u32,
}

impl BtreeKind {
    /// Every btree.
    pub const ALL: [BtreeKind; 9] = [
        BtreeKind::Bnobt,
        BtreeKind::Cntbt,
        BtreeKind::Inobt,
        BtreeKind::Finobt,
        BtreeKind::Rmapbt,
        BtreeKind::Refcountbt,
        BtreeKind::Bmbt,
        BtreeKind::Rtrmapbt,
        BtreeKind::Rtrefcountbt,
    ];

    /// Sizes of the tree's header, records, keys and pointers; `crc` for v5 filesystems.
    pub fn sizes(self, crc: bool) -> BtreeSizes {
        let header = match (self.is_long(), crc) {
            (false, false) => size_of::<RawShortBlock>(),
            (false, true) => size_of::<RawShortBlockV5>(),
            (true, false) => size_of::<RawLongBlock>(),
            (true, true) => size_of::<RawLongBlockV5>(),
        };
        let pointer = if self.is_long() { size_of::<Be64>() } else { size_of::<Be32>() };
        let (record, keys) = match self {
            BtreeKind::Bnobt | BtreeKind::Cntbt => (size_of::<RawAllocRecord>(), size_of::<RawAllocRecord>()),
            BtreeKind::Inobt | BtreeKind::Finobt => (size_of::<RawInobtRecord>(), size_of::<RawInobtKey>()),
            BtreeKind::Rmapbt | BtreeKind::Rtrmapbt => (size_of::<RawRmapRecord>(), 2 * size_of::<RawRmapKey>()),
            BtreeKind::Refcountbt | BtreeKind::Rtrefcountbt => {
                (size_of::<RawRefcountRecord>(), size_of::<RawRefcountKey>())
            }
            BtreeKind::Bmbt => (size_of::<RawExtent>(), size_of::<RawBmbtKey>()),
        };
        let bytes = |size: usize| u32::try_from(size).expect("invariant: structures are small");
        BtreeSizes { header: bytes(header), record: bytes(record), keys: bytes(keys), pointer: bytes(pointer) }
    }

    /// The tree hangs from an inode: pointers are filesystem blocks of 64 bits, not blocks of the group of 32.
    pub const fn is_long(self) -> bool {
        matches!(self, BtreeKind::Bmbt | BtreeKind::Rtrmapbt | BtreeKind::Rtrefcountbt)
    }

    /// Records in a leaf or, with `leaf` false, children of a node, that a block of `blocksize` bytes holds at most.
    pub fn maxrecs(self, blocksize: u32, crc: bool, leaf: bool) -> u32 {
        // trees that only v5 has always have the longer header
        let crc = crc || !matches!(self, Self::Bnobt | Self::Cntbt | Self::Inobt | Self::Finobt | Self::Bmbt);
        let sizes = self.sizes(crc);
        let room = blocksize.saturating_sub(sizes.header);
        if leaf { room / sizes.record } else { room / (sizes.keys + sizes.pointer) }
    }

    /// The least numbers of records in a leaf and of children in a node, other than the root.
    pub fn minrecs(self, blocksize: u32, crc: bool) -> [u32; 2] {
        [self.maxrecs(blocksize, crc, true) / 2, self.maxrecs(blocksize, crc, false) / 2]
    }

    /// The most levels that the tree can have in any filesystem: `xfs_*bt_maxlevels_ondisk`.
    pub fn most_levels(self) -> u32 {
        let (old, new) = (self.minrecs(MIN_BLOCKSIZE, false), self.minrecs(MIN_BLOCKSIZE_V5, true));
        let ag_blocks = MAX_AG_BYTES / u64::from(MIN_BLOCKSIZE_V5);
        match self {
            Self::Bnobt | Self::Cntbt => {
                let extents = (MAX_AG_BYTES / u64::from(MIN_BLOCKSIZE)).div_ceil(2);
                levels_for_records(old, extents)
            }
            Self::Inobt | Self::Finobt => {
                let chunks = MAX_AG_BYTES / u64::from(MIN_INODESIZE) / u64::from(INODES_PER_CHUNK);
                levels_for_records(old, chunks).max(levels_for_records(new, chunks))
            }
            Self::Rmapbt => levels_for_space(new, ag_blocks),
            Self::Refcountbt => levels_for_records(new, ag_blocks),
            // and the root in the inode
            Self::Bmbt => levels_for_records(old, MAX_EXTCNT_DATA_LARGE) + 1,
            Self::Rtrmapbt => levels_for_space(new, u64::from(u32::MAX) * ag_blocks),
            Self::Rtrefcountbt => levels_for_records(new, u64::from(MAX_RGBLOCKS)),
        }
    }
}

/// Levels of a tree whose blocks hold at least `minrecs` (leaf, node), when it has `records` records.
///
/// Linux `xfs_btree_compute_maxlevels`.
pub fn levels_for_records(minrecs: [u32; 2], records: u64) -> u32 {
    let [leaf, node] = fanout(minrecs);
    let mut blocks = records.div_ceil(leaf);
    let mut levels = 1;
    while blocks > 1 {
        blocks = blocks.div_ceil(node);
        levels += 1;
    }
    levels
}

/// Levels of the tallest tree that `blocks` blocks can hold, where a root needs two children only.
///
/// Linux `xfs_btree_space_to_height`.
pub fn levels_for_space(minrecs: [u32; 2], blocks: u64) -> u32 {
    let [_, node] = fanout(minrecs);
    let Some(mut left) = blocks.checked_sub(1) else { return 0 };
    let mut level_blocks: u64 = 2;
    let mut levels = 1;
    while level_blocks < left {
        left -= level_blocks;
        level_blocks = level_blocks.saturating_mul(node);
        levels += 1;
    }
    levels
}

/// The counts as divisors: a block size too small for the tree would otherwise divide by zero or never end.
fn fanout(minrecs: [u32; 2]) -> [u64; 2] {
    minrecs.map(|count| u64::from(count).max(2))
}

/// What decides how tall the trees of a filesystem get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelInputs {
    /// Block size in bytes.
    pub blocksize: u32,
    /// Blocks of an allocation group.
    pub agblocks: u32,
    /// Bits of an inode number within its group: `agblklog + inopblog`.
    pub agino_log: u32,
    /// Blocks of the data device.
    pub dblocks: u64,
    /// Version 5 (`crc=1`).
    pub crc: bool,
    /// There is a reverse mapping btree.
    pub rmapbt: bool,
    /// There is a reference count btree.
    pub reflink: bool,
    /// Extent counts of 64 and 32 bits.
    pub nrext64: bool,
    /// There is a realtime section in groups.
    pub rtgroups: bool,
    /// Blocks of a realtime group.
    pub rgblocks: u64,
    /// Extents of a realtime group.
    pub rgextents: u64,
}

/// The most levels that each tree of a filesystem can have; 0 for a tree that it does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BtreeLevels {
    /// Free space, both trees.
    pub alloc: u32,
    /// Inodes, both trees.
    pub inobt: u32,
    /// Reverse mappings.
    pub rmapbt: u32,
    /// Reference counts.
    pub refcountbt: u32,
    /// Data fork, with the root in the inode.
    pub bmbt_data: u32,
    /// Attribute fork, with the root in the inode.
    pub bmbt_attr: u32,
    /// Realtime reverse mappings, with the root in the inode.
    pub rtrmapbt: u32,
    /// Realtime reference counts, with the root in the inode.
    pub rtrefcountbt: u32,
}

/// Records of one inode chunk, as a shift.
const INODES_PER_CHUNK_LOG: u32 = 6;
/// Children that the root of a data fork always has room for.
const MIN_DATA_ROOT: u64 = 3;
/// Children that the root of an attribute fork always has room for.
const MIN_ATTR_ROOT: u64 = 2;

impl BtreeLevels {
    /// The levels for a filesystem of these numbers.
    pub fn new(inputs: &LevelInputs) -> Self {
        let minrecs = |kind: BtreeKind| kind.minrecs(inputs.blocksize, inputs.crc);
        let agblocks = u64::from(inputs.agblocks);
        let chunks = 1u64.checked_shl(inputs.agino_log).unwrap_or(u64::MAX) >> INODES_PER_CHUNK_LOG;
        let (data, attr) = if inputs.nrext64 { ((1 << 48) - 1, (1 << 32) - 1) } else { ((1 << 31) - 1, (1 << 15) - 1) };
        BtreeLevels {
            alloc: levels_for_records(minrecs(BtreeKind::Bnobt), agblocks.div_ceil(2)),
            inobt: levels_for_records(minrecs(BtreeKind::Inobt), u64::from(low_half(chunks))),
            rmapbt: match (inputs.rmapbt, inputs.reflink) {
                (false, _) => 0,
                (true, false) => levels_for_records(minrecs(BtreeKind::Rmapbt), agblocks),
                // shared blocks have any number of owners: only the space bounds the tree
                (true, true) => levels_for_space(minrecs(BtreeKind::Rmapbt), agblocks),
            },
            refcountbt: if inputs.reflink { levels_for_records(minrecs(BtreeKind::Refcountbt), agblocks) } else { 0 },
            bmbt_data: fork_levels(minrecs(BtreeKind::Bmbt), data, MIN_DATA_ROOT),
            bmbt_attr: fork_levels(minrecs(BtreeKind::Bmbt), attr, MIN_ATTR_ROOT),
            rtrmapbt: rtrmapbt_levels(inputs),
            rtrefcountbt: rtrefcountbt_levels(inputs),
        }
    }
}

/// Linux counts the inode chunks of a group in 32 bits.
#[allow(clippy::cast_possible_truncation)] // the lower half is what is asked for
fn low_half(value: u64) -> u32 {
    value as u32
}

/// Levels of a fork with `extents` extents, whose root has room for `root` children.
fn fork_levels(minrecs: [u32; 2], extents: u64, root: u64) -> u32 {
    let [leaf, node] = fanout(minrecs);
    let mut blocks = extents.div_ceil(leaf);
    let mut levels = 1;
    while blocks > 1 {
        blocks = if blocks <= root { 1 } else { blocks.div_ceil(node) };
        levels += 1;
    }
    levels
}

/// The tree lies on the data device, so that its size bounds it too; one more level for the root in the inode.
fn rtrmapbt_levels(inputs: &LevelInputs) -> u32 {
    if !(inputs.rtgroups && inputs.rmapbt) {
        return 0;
    }
    let minrecs = BtreeKind::Rtrmapbt.minrecs(inputs.blocksize, inputs.crc);
    let space = levels_for_space(minrecs, inputs.dblocks);
    if inputs.reflink { space + 1 } else { space.min(levels_for_records(minrecs, inputs.rgblocks)) + 1 }
}

fn rtrefcountbt_levels(inputs: &LevelInputs) -> u32 {
    if !(inputs.rtgroups && inputs.reflink) {
        return 0;
    }
    let minrecs = BtreeKind::Rtrefcountbt.minrecs(inputs.blocksize, inputs.crc);
    levels_for_space(minrecs, inputs.dblocks).min(levels_for_records(minrecs, inputs.rgextents)) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_counts_of_the_usual_block_size() {
        let counts = |kind: BtreeKind| (kind.maxrecs(4096, true, true), kind.maxrecs(4096, true, false));
        assert_eq!(counts(BtreeKind::Bnobt), (505, 336));
        assert_eq!(counts(BtreeKind::Inobt), (252, 505));
        assert_eq!(counts(BtreeKind::Rmapbt), (168, 91));
        assert_eq!(counts(BtreeKind::Refcountbt), (336, 505));
        assert_eq!(counts(BtreeKind::Bmbt), (251, 251));
        assert_eq!(BtreeKind::Bmbt.maxrecs(4096, false, true), 254);
    }

    #[test]
    fn the_tallest_trees_are_those_of_the_reference() {
        // as `btheight -w absmax all` of xfs_db 7.2 shows them
        assert_eq!(BtreeKind::ALL.map(BtreeKind::most_levels), [7, 7, 6, 6, 10, 6, 14, 21, 6]);
    }

    #[test]
    fn heights_end_for_any_input() {
        for blocksize in [0, 1, 56, 100, 512] {
            for kind in BtreeKind::ALL {
                let minrecs = kind.minrecs(blocksize, true);
                assert!(levels_for_records(minrecs, u64::MAX) <= 65);
                assert!(levels_for_space(minrecs, u64::MAX) <= 65);
            }
        }
        assert_eq!(levels_for_space([2, 2], 0), 0);
    }
}
