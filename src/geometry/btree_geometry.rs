//! Sizes of the nine btrees in a filesystem: header, records, keys, pointers, how many a block holds, and the most levels.

use super::bounds::Bounds;
use super::btree_levels::{BtreeKind, BtreeLevels, LevelInputs, levels_for_records};
use super::features::Features;
use crate::ondisk::btree_block::magic;
use crate::ondisk::{
    Be64, OnDisk, RawBmbtKey, RawBmdrRoot, RawExtent, RawRefcountKey, RawRefcountRecord, RawRmapKey, RawRmapRecord,
};

impl BtreeKind {
    /// Its name, as checks and reports use it.
    pub const fn name(self) -> &'static str {
        match self {
            BtreeKind::Bnobt => "bnobt",
            BtreeKind::Cntbt => "cntbt",
            BtreeKind::Inobt => "inobt",
            BtreeKind::Finobt => "finobt",
            BtreeKind::Rmapbt => "rmapbt",
            BtreeKind::Refcountbt => "refcountbt",
            BtreeKind::Bmbt => "bmbt",
            BtreeKind::Rtrmapbt => "rtrmapbt",
            BtreeKind::Rtrefcountbt => "rtrefcountbt",
        }
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
        let levels = BtreeLevels::new(&LevelInputs {
            blocksize: 1 << bounds.blocklog,
            agblocks: bounds.agblocks,
            agino_log: bounds.agblklog + bounds.blocklog - bounds.inodelog,
            dblocks,
            crc: features.has_crc(),
            rmapbt: features.has_rmapbt(),
            reflink: features.has_reflink(),
            nrext64: features.has_nrext64(),
            rtgroups: features.has_rtgroups() && features.has_realtime(),
            rgblocks: u64::from(bounds.rgextents) * u64::from(bounds.rextsize),
            rgextents: u64::from(bounds.rgextents),
        });
        BtreeGeometries {
            kinds: BtreeKind::ALL
                .map(|kind| BtreeGeometry::of(kind, 1 << bounds.blocklog, features.has_crc(), &levels)),
            attr_bmbt_max_levels: levels.bmbt_attr,
            ag_max_levels: levels.alloc.max(levels.inobt).max(levels.rmapbt).max(levels.refcountbt),
            rt_max_levels: levels.rtrmapbt.max(levels.rtrefcountbt),
        }
    }

    /// Sizes of one btree.
    pub fn get(&self, kind: BtreeKind) -> &BtreeGeometry {
        &self.kinds[kind as usize]
    }
}

impl BtreeGeometry {
    fn of(kind: BtreeKind, blocksize: u32, crc: bool, levels: &BtreeLevels) -> Self {
        let sizes = kind.sizes(crc);
        let [leaf_min, node_min] = kind.minrecs(blocksize, crc);
        BtreeGeometry {
            header_size: sizes.header,
            record_size: sizes.record,
            key_size: if kind.is_overlapping() { sizes.keys / 2 } else { sizes.keys },
            pointer_size: sizes.pointer,
            leaf_max: kind.maxrecs(blocksize, crc, true),
            node_max: kind.maxrecs(blocksize, crc, false),
            leaf_min,
            node_min,
            max_levels: match kind {
                BtreeKind::Bnobt | BtreeKind::Cntbt => levels.alloc,
                BtreeKind::Inobt | BtreeKind::Finobt => levels.inobt,
                BtreeKind::Rmapbt => levels.rmapbt,
                BtreeKind::Refcountbt => levels.refcountbt,
                BtreeKind::Bmbt => levels.bmbt_data,
                BtreeKind::Rtrmapbt => levels.rtrmapbt,
                BtreeKind::Rtrefcountbt => levels.rtrefcountbt,
            },
        }
    }

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
        levels_for_records([self.leaf_min, self.node_min], records)
    }

    /// The blocks of a tree of `records` records whose blocks are as empty as they may be: `xfs_btree_calc_size`.
    pub fn blocks_for_records(&self, records: u64) -> u64 {
        let mut level = records.div_ceil(u64::from(self.leaf_min));
        let mut blocks = level;
        while level > 1 {
            level = level.div_ceil(u64::from(self.node_min));
            blocks += level;
        }
        blocks
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
