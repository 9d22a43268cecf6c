//! Sizes of the nine btrees: header, records, keys, pointers, how many a block holds, and the most levels (Linux
//! `libxfs/xfs_btree.c`, `xfs_*_btree.c`, `xfs_bmap.c`).

use super::bounds::Bounds;
use super::features::Features;
use crate::ondisk::btree_block::magic;
use crate::ondisk::dinode::{
    MAX_EXTCNT_ATTR_LARGE, MAX_EXTCNT_ATTR_SMALL, MAX_EXTCNT_DATA_LARGE, MAX_EXTCNT_DATA_SMALL,
};
use crate::ondisk::{
    Be32, Be64, OnDisk, RawAllocRecord, RawBmbtKey, RawBmdrRoot, RawExtent, RawInobtKey, RawInobtRecord, RawLongBlock,
    RawLongBlockV5, RawRefcountKey, RawRefcountRecord, RawRmapKey, RawRmapRecord, RawShortBlock, RawShortBlockV5,
};

/// The btrees of XFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BtreeKind {
    /// Free space by block number.
    Bnobt,
    /// Free space by size.
    Cntbt,
    /// Inode chunks.
    Inobt,
    /// Inode chunks with free inodes.
    Finobt,
    /// Reverse mappings.
    Rmapbt,
    /// Reference counts.
    Refcountbt,
    /// Extents of a file's fork.
    Bmbt,
    /// Reverse mappings of a realtime group.
    Rtrmapbt,
    /// Reference counts of a realtime group.
    Rtrefcountbt,
}

impl BtreeKind {
    /// All of them.
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

    /// Whether the root lies in an inode and pointers have 64 bits.
    pub const fn is_long(self) -> bool {
        matches!(self, BtreeKind::Bmbt | BtreeKind::Rtrmapbt | BtreeKind::Rtrefcountbt)
    }

    /// Whether nodes hold two keys for each child, its lowest and its highest.
    pub const fn is_overlapping(self) -> bool {
        matches!(self, BtreeKind::Rmapbt | BtreeKind::Rtrmapbt)
    }

    /// The magic number of its blocks, with or without CRC. Btrees that need version 5 have one number only.
    pub const fn magic(self, crc: bool) -> u32 {
        match (self, crc) {
            (BtreeKind::Bnobt, false) => magic::BNOBT,
            (BtreeKind::Bnobt, true) => magic::BNOBT_V5,
            (BtreeKind::Cntbt, false) => magic::CNTBT,
            (BtreeKind::Cntbt, true) => magic::CNTBT_V5,
            (BtreeKind::Inobt, false) => magic::INOBT,
            (BtreeKind::Inobt, true) => magic::INOBT_V5,
            (BtreeKind::Finobt, false) => magic::FINOBT,
            (BtreeKind::Finobt, true) => magic::FINOBT_V5,
            (BtreeKind::Rmapbt, _) => magic::RMAPBT_V5,
            (BtreeKind::Refcountbt, _) => magic::REFCOUNTBT_V5,
            (BtreeKind::Bmbt, false) => magic::BMBT,
            (BtreeKind::Bmbt, true) => magic::BMBT_V5,
            (BtreeKind::Rtrmapbt, _) => magic::RTRMAPBT_V5,
            (BtreeKind::Rtrefcountbt, _) => magic::RTREFCOUNTBT_V5,
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// Sizes of one btree. Bytes unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtreeGeometry {
    /// Header of a block.
    pub header_size: u32,
    /// A record.
    pub record_size: u32,
    /// A key; overlapping btrees have two for each child.
    pub key_size: u32,
    /// A pointer.
    pub pointer_size: u32,
    /// Most records of a leaf.
    pub leaf_max: u32,
    /// Most children of a node.
    pub node_max: u32,
    /// Fewest records of a leaf that is not the root.
    pub leaf_min: u32,
    /// Fewest children of a node that is not the root.
    pub node_min: u32,
    /// Most levels, with the root in the inode where there is one; 0 when the filesystem has no such btree.
    pub max_levels: u32,
}

/// Sizes of all nine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtreeGeometries {
    kinds: [BtreeGeometry; 9],
    /// Most levels of the extent btree of an attribute fork; [`BtreeKind::Bmbt`] has those of a data fork.
    pub attr_bmbt_max_levels: u32,
    /// The most levels of any btree of an allocation group.
    pub ag_max_levels: u32,
    /// The most levels of any btree of a realtime group.
    pub rt_max_levels: u32,
}

impl BtreeGeometries {
    pub(super) fn of(bounds: &Bounds, features: &Features, dblocks: u64) -> Self {
        let blocksize = 1 << bounds.blocklog;
        let mut all =
            BtreeGeometries { kinds: BtreeKind::ALL.map(|kind| fill(kind, blocksize, features)), ..Self::none() };
        let agblocks = u64::from(bounds.agblocks);
        let alloc = all.get(BtreeKind::Bnobt).levels_for_records(agblocks.div_ceil(2));
        all.set_levels(&[BtreeKind::Bnobt, BtreeKind::Cntbt], alloc);
        let chunks = 1 << (bounds.agblklog + bounds.blocklog - bounds.inodelog) >> 6;
        let inobt = all.get(BtreeKind::Inobt).levels_for_records(chunks);
        all.set_levels(&[BtreeKind::Inobt, BtreeKind::Finobt], inobt);
        all.shared_space_levels(features, agblocks);
        all.realtime_levels(bounds, features, dblocks);
        let (data, attr) = if features.has_nrext64() {
            (MAX_EXTCNT_DATA_LARGE, MAX_EXTCNT_ATTR_LARGE)
        } else {
            (MAX_EXTCNT_DATA_SMALL, MAX_EXTCNT_ATTR_SMALL)
        };
        let bmbt = *all.get(BtreeKind::Bmbt);
        all.set_levels(&[BtreeKind::Bmbt], bmbt.fork_levels(data, 3));
        all.attr_bmbt_max_levels = bmbt.fork_levels(attr, 2);
        all.ag_max_levels = all.most_levels(|kind| !kind.is_long());
        all.rt_max_levels = all.most_levels(|kind| matches!(kind, BtreeKind::Rtrmapbt | BtreeKind::Rtrefcountbt));
        all
    }

    const fn none() -> Self {
        let none = BtreeGeometry {
            header_size: 0,
            record_size: 0,
            key_size: 0,
            pointer_size: 0,
            leaf_max: 0,
            node_max: 0,
            leaf_min: 0,
            node_min: 0,
            max_levels: 0,
        };
        BtreeGeometries { kinds: [none; 9], attr_bmbt_max_levels: 0, ag_max_levels: 0, rt_max_levels: 0 }
    }

    /// Sizes of one btree.
    pub fn get(&self, kind: BtreeKind) -> &BtreeGeometry {
        &self.kinds[kind.index()]
    }

    fn set_levels(&mut self, kinds: &[BtreeKind], levels: u32) {
        for kind in kinds {
            self.kinds[kind.index()].max_levels = levels;
        }
    }

    fn most_levels(&self, of: impl Fn(BtreeKind) -> bool) -> u32 {
        BtreeKind::ALL.into_iter().filter(|kind| of(*kind)).map(|kind| self.get(kind).max_levels).max().unwrap_or(0)
    }

    /// Reverse mappings may outnumber the blocks once blocks are shared: then the space limits the height, not the count.
    fn shared_space_levels(&mut self, features: &Features, agblocks: u64) {
        let rmap = self.get(BtreeKind::Rmapbt);
        let rmap = match (features.has_rmapbt(), features.has_reflink()) {
            (false, _) => 0,
            (true, true) => rmap.levels_for_space(agblocks),
            (true, false) => rmap.levels_for_records(agblocks),
        };
        self.set_levels(&[BtreeKind::Rmapbt], rmap);
        if features.has_reflink() {
            let refcount = self.get(BtreeKind::Refcountbt).levels_for_records(agblocks);
            self.set_levels(&[BtreeKind::Refcountbt], refcount);
        }
    }

    /// Realtime btrees lie on the data device, which limits their space; the root in the inode is one level more.
    fn realtime_levels(&mut self, bounds: &Bounds, features: &Features, dblocks: u64) {
        let rgblocks = u64::from(bounds.rgextents) * u64::from(bounds.rextsize);
        let rmap = self.get(BtreeKind::Rtrmapbt);
        let by_space = rmap.levels_for_space(dblocks);
        let rmap = match (features.has_rtrmapbt(), features.has_rtreflink()) {
            (false, _) => 0,
            (true, true) => by_space + 1,
            (true, false) => by_space.min(rmap.levels_for_records(rgblocks)) + 1,
        };
        self.set_levels(&[BtreeKind::Rtrmapbt], rmap);
        if features.has_rtreflink() {
            let refcount = self.get(BtreeKind::Rtrefcountbt);
            let by_records = refcount.levels_for_records(u64::from(bounds.rgextents));
            let levels = refcount.levels_for_space(dblocks).min(by_records) + 1;
            self.set_levels(&[BtreeKind::Rtrefcountbt], levels);
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // sizes of structures
fn fill(kind: BtreeKind, blocksize: u32, features: &Features) -> BtreeGeometry {
    let (record, key) = match kind {
        BtreeKind::Bnobt | BtreeKind::Cntbt => (RawAllocRecord::SIZE, RawAllocRecord::SIZE),
        BtreeKind::Inobt | BtreeKind::Finobt => (RawInobtRecord::SIZE, RawInobtKey::SIZE),
        BtreeKind::Rmapbt | BtreeKind::Rtrmapbt => (RawRmapRecord::SIZE, RawRmapKey::SIZE),
        BtreeKind::Refcountbt | BtreeKind::Rtrefcountbt => (RawRefcountRecord::SIZE, RawRefcountKey::SIZE),
        BtreeKind::Bmbt => (RawExtent::SIZE, RawBmbtKey::SIZE),
    };
    let (header, pointer) = match (kind.is_long(), features.has_crc()) {
        (false, false) => (RawShortBlock::SIZE, size_of::<Be32>()),
        (false, true) => (RawShortBlockV5::SIZE, size_of::<Be32>()),
        (true, false) => (RawLongBlock::SIZE, size_of::<Be64>()),
        (true, true) => (RawLongBlockV5::SIZE, size_of::<Be64>()),
    };
    let keys = if kind.is_overlapping() { 2 * key } else { key };
    let space = blocksize - header as u32;
    let (leaf_max, node_max) = (space / record as u32, space / (keys + pointer) as u32);
    BtreeGeometry {
        header_size: header as u32,
        record_size: record as u32,
        key_size: key as u32,
        pointer_size: pointer as u32,
        leaf_max,
        node_max,
        leaf_min: leaf_max / 2,
        node_min: node_max / 2,
        max_levels: 0,
    }
}

impl BtreeGeometry {
    /// Most records (`level` 0) or children of a block.
    pub fn max_records(&self, level: u32) -> u32 {
        if level == 0 { self.leaf_max } else { self.node_max }
    }

    /// Fewest records (`level` 0) or children of a block that is not the root.
    pub fn min_records(&self, level: u32) -> u32 {
        if level == 0 { self.leaf_min } else { self.node_min }
    }

    /// The height of a btree with `records` records in blocks as empty as they may be.
    pub fn levels_for_records(&self, records: u64) -> u32 {
        let mut blocks = records.div_ceil(u64::from(self.leaf_min.max(1)));
        let mut levels = 1;
        while blocks > 1 {
            blocks = blocks.div_ceil(u64::from(self.node_min.max(2)));
            levels += 1;
        }
        levels
    }

    /// The greatest height that a btree of `blocks` blocks can have.
    pub fn levels_for_space(&self, blocks: u64) -> u32 {
        let Some(mut left) = blocks.checked_sub(1) else { return 0 };
        let (mut wide, mut levels) = (2_u64, 1);
        while wide < left {
            left -= wide;
            wide = wide.saturating_mul(u64::from(self.node_min.max(2)));
            levels += 1;
        }
        levels
    }

    /// The height of an extent btree with `extents` extents, whose root in the inode has at least `root_keys` keys.
    fn fork_levels(&self, extents: u64, root_keys: u64) -> u32 {
        let mut blocks = extents.div_ceil(u64::from(self.leaf_min.max(1)));
        let mut levels = 1;
        while blocks > 1 {
            blocks = if blocks <= root_keys { 1 } else { blocks.div_ceil(u64::from(self.node_min.max(2))) };
            levels += 1;
        }
        levels
    }
}

/// Most records (`leaf`) or children of a btree's root in an inode, given the bytes of its fork. Extent btrees never have
/// records there; the space for the keys of a reference count root is counted twice (Linux
/// `xfs_rtrefcountbt_droot_maxrecs`).
///
/// 0 for btrees whose roots do not lie in inodes.
#[allow(clippy::cast_possible_truncation)] // sizes of structures, and a fork is smaller than an inode
pub fn inode_root_max(kind: BtreeKind, fork_size: usize, leaf: bool) -> u32 {
    let (record, keys) = match kind {
        BtreeKind::Bmbt => (RawExtent::SIZE, RawBmbtKey::SIZE),
        BtreeKind::Rtrmapbt => (RawRmapRecord::SIZE, 2 * RawRmapKey::SIZE),
        BtreeKind::Rtrefcountbt => (RawRefcountRecord::SIZE, 2 * RawRefcountKey::SIZE),
        _ => return 0,
    };
    let entry = if leaf { record } else { keys + size_of::<Be64>() };
    (fork_size.saturating_sub(RawBmdrRoot::SIZE) / entry) as u32
}
