//! Blocks of the btrees that hang from an inode: extents of its forks, and the btrees of realtime groups.

use super::btree_block::{Tree, block_bits, long, long_v5};
use super::group_btrees::{COUNTED_BLOCK, HIGH, LOW, RMAP_KEYS, refcount, refcount_key, rmap_key, rmap_record};
use crate::db::field::at;
use crate::db::field::formats::{AG_NUMBER, FLAG};
use crate::db::field::{Format, Row, Target};
use crate::db::types::TypeId;
use crate::ondisk::extent::{MAX_BLOCKCOUNT, MAX_STARTBLOCK, MAX_STARTOFF, bit};
use crate::ondisk::{OnDisk, RawBmbtKey, RawExtent, RawRefcountKey, RawRefcountRecord, RawRmapKey, RawRmapRecord};

const fn block(rows: &'static [Row]) -> Format {
    Format::structure_sized(rows, block_bits)
}

/// An extent: `file` says which fork `startoff` is a block of, `next` what its blocks are taken for.
const fn extent(file: Target, next: TypeId) -> [Row; 4] {
    let startoff = Format::decimal(MAX_STARTOFF.count_ones() as usize).addressing(file);
    let startblock = Format::decimal(MAX_STARTBLOCK.count_ones() as usize).addressing(Target::FsBlock);
    let blockcount = Format::decimal(MAX_BLOCKCOUNT.count_ones() as usize);
    [
        Row::new("startoff", bit::STARTOFF, startoff).leads_to(next),
        Row::new("startblock", bit::STARTBLOCK, startblock).leads_to(next),
        Row::new("blockcount", bit::BLOCKCOUNT, blockcount),
        Row::new("extentflag", bit::UNWRITTEN, FLAG),
    ]
}

const fn extent_key(file: Target, next: TypeId) -> [Row; 1] {
    [Row::new("startoff", at!(RawBmbtKey, startoff), Format::decimal(64).addressing(file)).leads_to(next)]
}

/// An extent of a data fork.
pub const DATA_EXTENT: Format = Format::records(&extent(Target::DataFork, TypeId::Inodata), RawExtent::SIZE * 8);
/// An extent of an attribute fork.
pub const ATTR_EXTENT: Format = Format::records(&extent(Target::AttrFork, TypeId::Attr), RawExtent::SIZE * 8);
/// Key of the extent btree of a data fork.
pub const DATA_EXTENT_KEY: Format =
    Format::records(&extent_key(Target::DataFork, TypeId::Inodata), RawBmbtKey::SIZE * 8);
/// Key of the extent btree of an attribute fork.
pub const ATTR_EXTENT_KEY: Format = Format::records(&extent_key(Target::AttrFork, TypeId::Attr), RawBmbtKey::SIZE * 8);

const DATA_TREE: Tree = Tree {
    record: DATA_EXTENT,
    key: DATA_EXTENT_KEY,
    siblings: TypeId::Bmapbtd,
    own: TypeId::Bmapbtd,
    children: TypeId::Bmapbtd,
};

const ATTR_TREE: Tree = Tree {
    record: ATTR_EXTENT,
    key: ATTR_EXTENT_KEY,
    siblings: TypeId::Bmapbta,
    own: TypeId::Bmapbtd,
    children: TypeId::Bmapbta,
};

/// Extents of a data fork, version 4.
pub static BMAPBTD: Format = block(&long::<{ RawBmbtKey::SIZE }>(&DATA_TREE));
/// Extents of a data fork, version 5.
pub static BMAPBTD_V5: Format = block(&long_v5::<{ RawBmbtKey::SIZE }>(&DATA_TREE));
/// Extents of an attribute fork, version 4.
pub static BMAPBTA: Format = block(&long::<{ RawBmbtKey::SIZE }>(&ATTR_TREE));
/// Extents of an attribute fork, version 5.
pub static BMAPBTA_V5: Format = block(&long_v5::<{ RawBmbtKey::SIZE }>(&ATTR_TREE));

/// Keys of realtime mappings are shown without the unwritten flag, which no key has.
const fn both_keys() -> [Row; 10] {
    let [a, b, c, _, d, e] = rmap_key(0, LOW, AG_NUMBER);
    let [f, g, h, _, i, j] = rmap_key(RawRmapKey::SIZE * 8, HIGH, AG_NUMBER);
    [a, b, c, d, e, f, g, h, i, j]
}

/// A reverse mapping of a realtime group.
pub const RT_RMAP: Format = Format::records(&rmap_record(AG_NUMBER), RawRmapRecord::SIZE * 8);
/// Keys of the same.
pub const RT_RMAP_KEY: Format = Format::records(&both_keys(), RMAP_KEYS * 8);
/// A reference count of a realtime group.
pub const RT_REFCOUNT: Format = Format::records(&refcount(COUNTED_BLOCK), RawRefcountRecord::SIZE * 8);
/// Key of the same.
pub const RT_REFCOUNT_KEY: Format = Format::records(&refcount_key(COUNTED_BLOCK), RawRefcountKey::SIZE * 8);

const RTRMAPBT_TREE: Tree = Tree {
    record: RT_RMAP,
    key: RT_RMAP_KEY,
    siblings: TypeId::Rtrmapbt,
    own: TypeId::Rtrmapbt,
    children: TypeId::Rtrmapbt,
};

const RTREFCNTBT_TREE: Tree = Tree {
    record: RT_REFCOUNT,
    key: RT_REFCOUNT_KEY,
    siblings: TypeId::Rtrefcntbt,
    own: TypeId::Refcntbt,
    children: TypeId::Rtrefcntbt,
};

/// Reverse mappings of a realtime group.
pub static RTRMAPBT: Format = block(&long_v5::<RMAP_KEYS>(&RTRMAPBT_TREE));
/// Reference counts of a realtime group.
pub static RTREFCNTBT: Format = block(&long_v5::<{ RawRefcountKey::SIZE }>(&RTREFCNTBT_TREE));
