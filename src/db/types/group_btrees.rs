//! Blocks of the btrees that hang from the headers of an allocation group.

use super::btree_block::{Tree, block_bits, short, short_v5};
use crate::db::field::at;
use crate::db::field::formats::{AG_BLOCK, AG_INO, FLAG, I32, I64, U8, U32, X16, X64};
use crate::db::field::{Bits, Format, Row, Target};
use crate::db::types::TypeId;
use crate::ondisk::rmap_record::{OFFSET_ATTR_FORK, OFFSET_BMBT_BLOCK, OFFSET_MASK, OFFSET_UNWRITTEN};
use crate::ondisk::{
    OnDisk, RawAllocRecord, RawInobtKey, RawInobtRecord, RawRefcountKey, RawRefcountRecord, RawRmapKey, RawRmapRecord,
    RawSparseInobtRecord, refcount_record,
};

const fn records<T: OnDisk>(rows: &'static [Row]) -> Format {
    Format::records(rows, T::SIZE * 8)
}

const fn block(rows: &'static [Row]) -> Format {
    Format::structure_sized(rows, block_bits)
}

const FREE_EXTENT: &[Row] = &[
    Row::new("startblock", at!(RawAllocRecord, startblock), AG_BLOCK).leads_to(TypeId::Data),
    Row::new("blockcount", at!(RawAllocRecord, blockcount), U32),
];

const FREE_EXTENT_BY_SIZE: &[Row] = &[FREE_EXTENT[1], FREE_EXTENT[0]];

const BNOBT_TREE: Tree = Tree {
    record: records::<RawAllocRecord>(FREE_EXTENT),
    key: records::<RawAllocRecord>(FREE_EXTENT),
    siblings: TypeId::Bnobt,
    own: TypeId::Bnobt,
    children: TypeId::Bnobt,
};

const CNTBT_TREE: Tree = Tree {
    record: records::<RawAllocRecord>(FREE_EXTENT),
    key: records::<RawAllocRecord>(FREE_EXTENT_BY_SIZE),
    siblings: TypeId::Cntbt,
    own: TypeId::Cntbt,
    children: TypeId::Cntbt,
};

/// Free space by block, version 4.
pub static BNOBT: Format = block(&short::<{ RawAllocRecord::SIZE }>(&BNOBT_TREE));
/// Free space by block, version 5.
pub static BNOBT_V5: Format = block(&short_v5::<{ RawAllocRecord::SIZE }>(&BNOBT_TREE));
/// Free space by size, version 4.
pub static CNTBT: Format = block(&short::<{ RawAllocRecord::SIZE }>(&CNTBT_TREE));
/// Free space by size, version 5.
pub static CNTBT_V5: Format = block(&short_v5::<{ RawAllocRecord::SIZE }>(&CNTBT_TREE));

const CHUNK: &[Row] = &[
    Row::new("startino", at!(RawInobtRecord, startino), AG_INO).leads_to(TypeId::Inode),
    Row::new("freecount", at!(RawInobtRecord, freecount), I32),
    Row::new("free", at!(RawInobtRecord, free), X64),
];

const SPARSE_CHUNK: &[Row] = &[
    Row::new("startino", at!(RawSparseInobtRecord, startino), AG_INO).leads_to(TypeId::Inode),
    Row::new("holemask", at!(RawSparseInobtRecord, holemask), X16),
    Row::new("count", at!(RawSparseInobtRecord, count), U8),
    Row::new("freecount", at!(RawSparseInobtRecord, freecount), U8),
    Row::new("free", at!(RawSparseInobtRecord, free), X64),
];

const CHUNK_KEY: &[Row] = &[Row::new("startino", at!(RawInobtKey, startino), AG_INO).leads_to(TypeId::Inode)];

const INOBT_TREE: Tree = Tree {
    record: records::<RawInobtRecord>(CHUNK),
    key: records::<RawInobtKey>(CHUNK_KEY),
    siblings: TypeId::Inobt,
    own: TypeId::Inobt,
    children: TypeId::Inobt,
};

const SPARSE_INOBT_TREE: Tree = Tree { record: records::<RawSparseInobtRecord>(SPARSE_CHUNK), ..INOBT_TREE };

/// Only the children of a block are taken for blocks of the same tree.
const FINOBT_TREE: Tree = Tree { children: TypeId::Finobt, ..INOBT_TREE };

const SPARSE_FINOBT_TREE: Tree = Tree { children: TypeId::Finobt, ..SPARSE_INOBT_TREE };

/// Inode chunks, version 4.
pub static INOBT: Format = block(&short::<{ RawInobtKey::SIZE }>(&INOBT_TREE));
/// Inode chunks, version 5.
pub static INOBT_V5: Format = block(&short_v5::<{ RawInobtKey::SIZE }>(&INOBT_TREE));
/// Inode chunks that may have holes.
pub static INOBT_SPARSE: Format = block(&short_v5::<{ RawInobtKey::SIZE }>(&SPARSE_INOBT_TREE));
/// Chunks with free inodes, version 4.
pub static FINOBT: Format = block(&short::<{ RawInobtKey::SIZE }>(&FINOBT_TREE));
/// Chunks with free inodes, version 5.
pub static FINOBT_V5: Format = block(&short_v5::<{ RawInobtKey::SIZE }>(&FINOBT_TREE));
/// Chunks with free inodes that may have holes.
pub static FINOBT_SPARSE: Format = block(&short_v5::<{ RawInobtKey::SIZE }>(&SPARSE_FINOBT_TREE));

/// Bytes that the lowest and the highest key of a child take together.
pub(super) const RMAP_KEYS: usize = 2 * RawRmapKey::SIZE;

/// Bits of an rmap's block in its file.
const OFFSET: Format = Format::decimal(OFFSET_MASK.count_ones() as usize);

/// Where a part of the packed `offset` begins that has its highest bit at that of `mask`.
const fn in_offset(offset: Bits, mask: u64) -> Bits {
    offset + mask.leading_zeros() as usize
}

/// A reverse mapping, with `startblock` in the group's own kind of block.
pub(super) const fn rmap_record(startblock: Format) -> [Row; 7] {
    let offset = at!(RawRmapRecord, offset);
    [
        Row::new("startblock", at!(RawRmapRecord, startblock), startblock).leads_to(TypeId::Data),
        Row::new("blockcount", at!(RawRmapRecord, blockcount), U32),
        Row::new("owner", at!(RawRmapRecord, owner), I64),
        Row::new("offset", in_offset(offset, OFFSET_MASK), OFFSET),
        Row::new("extentflag", in_offset(offset, OFFSET_UNWRITTEN), FLAG),
        Row::new("attrfork", in_offset(offset, OFFSET_ATTR_FORK), FLAG),
        Row::new("bmbtblock", in_offset(offset, OFFSET_BMBT_BLOCK), FLAG),
    ]
}

/// The lowest (`low` is 0) or the highest key of a child; `names` in the order of the fields.
pub(super) const fn rmap_key(low: Bits, names: [&'static str; 6], startblock: Format) -> [Row; 6] {
    let offset = low + at!(RawRmapKey, offset);
    [
        Row::new(names[0], low + at!(RawRmapKey, startblock), startblock).leads_to(TypeId::Data),
        Row::new(names[1], low + at!(RawRmapKey, owner), I64),
        Row::new(names[2], in_offset(offset, OFFSET_MASK), OFFSET),
        Row::new(names[3], in_offset(offset, OFFSET_UNWRITTEN), FLAG),
        Row::new(names[4], in_offset(offset, OFFSET_ATTR_FORK), FLAG),
        Row::new(names[5], in_offset(offset, OFFSET_BMBT_BLOCK), FLAG),
    ]
}

/// Names of the fields of a child's lowest key.
pub(super) const LOW: [&str; 6] = ["startblock", "owner", "offset", "extentflag", "attrfork", "bmbtblock"];
/// Names of the fields of a child's highest key.
pub(super) const HIGH: [&str; 6] =
    ["startblock_hi", "owner_hi", "offset_hi", "extentflag_hi", "attrfork_hi", "bmbtblock_hi"];

const fn both_keys() -> [Row; 12] {
    let [a, b, c, d, e, f] = rmap_key(0, LOW, AG_BLOCK);
    let [g, h, i, j, k, l] = rmap_key(RawRmapKey::SIZE * 8, HIGH, AG_BLOCK);
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

const RMAPBT_TREE: Tree = Tree {
    record: records::<RawRmapRecord>(&rmap_record(AG_BLOCK)),
    key: Format::records(&both_keys(), RMAP_KEYS * 8),
    siblings: TypeId::Rmapbt,
    own: TypeId::Rmapbt,
    children: TypeId::Rmapbt,
};

/// Reverse mappings.
pub static RMAPBT: Format = block(&short_v5::<RMAP_KEYS>(&RMAPBT_TREE));

/// Bits of a reference count's block number; the bit above them is a flag.
pub(super) const COUNTED_BLOCK: Format = Format::nullable(refcount_record::COW_FLAG.trailing_zeros() as usize);

/// A reference count, with `startblock` in the group's own kind of block.
pub(super) const fn refcount(startblock: Format) -> [Row; 4] {
    let [block, flag] = refcount_key(startblock);
    [
        block,
        Row::new("blockcount", at!(RawRefcountRecord, blockcount), U32),
        Row::new("refcount", at!(RawRefcountRecord, refcount), U32),
        flag,
    ]
}

/// The key of a reference count: records start like it.
pub(super) const fn refcount_key(startblock: Format) -> [Row; 2] {
    let flag = at!(RawRefcountKey, startblock);
    [Row::new("startblock", flag + 1, startblock).leads_to(TypeId::Data), Row::new("cowflag", flag, FLAG)]
}

const SHARED_BLOCK: Format = COUNTED_BLOCK.addressing(Target::AgBlock);

const REFCNTBT_TREE: Tree = Tree {
    record: records::<RawRefcountRecord>(&refcount(SHARED_BLOCK)),
    key: records::<RawRefcountKey>(&refcount_key(SHARED_BLOCK)),
    siblings: TypeId::Refcntbt,
    own: TypeId::Refcntbt,
    children: TypeId::Refcntbt,
};

/// Reference counts.
pub static REFCNTBT: Format = block(&short_v5::<{ RawRefcountKey::SIZE }>(&REFCNTBT_TREE));
