//! What the tables of all btree blocks have in common: the headers, the arrays, and where pointers stand.

use crate::db::field::at;
use crate::db::field::formats::{AG_BLOCK, AG_NUMBER, AG_POINTER, CRC, FS_BLOCK, FS_POINTER, INO, U16, UUID, X32, X64};
use crate::db::field::{Bits, Format, Object, Row};
use crate::db::types::TypeId;
use crate::ondisk::{Be32, Be64, OnDisk, RawLongBlock, RawLongBlockV5, RawShortBlock, RawShortBlockV5};

/// What a btree's blocks hold, and where `addr` leads from them.
#[derive(Clone, Copy)]
pub(super) struct Tree {
    /// A record.
    pub record: Format,
    /// A key; where blocks have two for each child, both.
    pub key: Format,
    /// What the neighbours of a block are taken for.
    pub siblings: TypeId,
    /// What a block is taken for that its own address leads to.
    pub own: TypeId,
    /// What children are taken for.
    pub children: TypeId,
}

const SHORT: usize = RawShortBlock::SIZE;
const SHORT_V5: usize = RawShortBlockV5::SIZE;
const LONG: usize = RawLongBlock::SIZE;
const LONG_V5: usize = RawLongBlockV5::SIZE;

/// Size of a filesystem block, which blocks of btrees are.
pub(super) fn block_bits(object: &Object<'_>, _: Bits, _: usize) -> Bits {
    usize::try_from(object.geometry.blocksize).map_or(0, |bytes| bytes.saturating_mul(8))
}

/// Level and number of records; both forms of the header start alike.
fn head(object: &Object<'_>) -> (u16, usize) {
    let block: Option<&RawShortBlock> = object.structure(0);
    block.map_or((0, 0), |block| (block.level.get(), usize::from(block.numrecs.get())))
}

fn record_count(object: &Object<'_>, _: Bits) -> usize {
    let (level, count) = head(object);
    if level == 0 { count } else { 0 }
}

fn key_count(object: &Object<'_>, _: Bits) -> usize {
    let (level, count) = head(object);
    if level == 0 { 0 } else { count }
}

/// Pointers stand behind the room for as many keys as the block can hold.
fn pointer<const HEADER: usize, const KEY: usize, const POINTER: usize>(
    object: &Object<'_>,
    _: Bits,
    index: usize,
) -> Bits {
    let room = (block_bits(object, 0, 0) / 8).saturating_sub(HEADER);
    let keys = room / (KEY + POINTER) * KEY;
    let before = index.saturating_sub(1).saturating_mul(POINTER);
    HEADER.saturating_add(keys).saturating_add(before).saturating_mul(8)
}

const fn records(header: usize, tree: &Tree) -> Row {
    Row::new("recs", header * 8, tree.record).counted(record_count).array_from_one()
}

const fn keys(header: usize, tree: &Tree) -> Row {
    Row::new("keys", header * 8, tree.key).counted(key_count).array_from_one()
}

const fn short_pointers<const HEADER: usize, const KEY: usize>(tree: &Tree) -> Row {
    Row::computed("ptrs", pointer::<HEADER, KEY, { size_of::<Be32>() }>, AG_POINTER)
        .counted(key_count)
        .array_from_one()
        .leads_to(tree.children)
}

const fn long_pointers<const HEADER: usize, const KEY: usize>(tree: &Tree) -> Row {
    Row::computed("ptrs", pointer::<HEADER, KEY, { size_of::<Be64>() }>, FS_POINTER)
        .counted(key_count)
        .array_from_one()
        .leads_to(tree.children)
}

/// Fields of a block of an allocation group's btree without CRC, whose keys take `KEY` bytes for each child.
pub(super) const fn short<const KEY: usize>(tree: &Tree) -> [Row; 8] {
    [
        Row::new("magic", at!(RawShortBlock, magic), X32),
        Row::new("level", at!(RawShortBlock, level), U16),
        Row::new("numrecs", at!(RawShortBlock, numrecs), U16),
        Row::new("leftsib", at!(RawShortBlock, leftsib), AG_BLOCK).leads_to(tree.siblings),
        Row::new("rightsib", at!(RawShortBlock, rightsib), AG_BLOCK).leads_to(tree.siblings),
        records(SHORT, tree),
        keys(SHORT, tree),
        short_pointers::<SHORT, KEY>(tree),
    ]
}

/// The same with CRC.
pub(super) const fn short_v5<const KEY: usize>(tree: &Tree) -> [Row; 13] {
    let [magic, level, numrecs, leftsib, rightsib, ..] = short::<KEY>(tree);
    [
        magic,
        level,
        numrecs,
        leftsib,
        rightsib,
        Row::new("bno", at!(RawShortBlockV5, blkno), FS_BLOCK).leads_to(tree.own),
        Row::new("lsn", at!(RawShortBlockV5, lsn), X64),
        Row::new("uuid", at!(RawShortBlockV5, uuid), UUID),
        Row::new("owner", at!(RawShortBlockV5, owner), AG_NUMBER),
        Row::new("crc", at!(RawShortBlockV5, crc), CRC),
        records(SHORT_V5, tree),
        keys(SHORT_V5, tree),
        short_pointers::<SHORT_V5, KEY>(tree),
    ]
}

/// Fields of a block of an inode's btree without CRC, whose keys take `KEY` bytes for each child.
pub(super) const fn long<const KEY: usize>(tree: &Tree) -> [Row; 8] {
    [
        Row::new("magic", at!(RawLongBlock, magic), X32),
        Row::new("level", at!(RawLongBlock, level), U16),
        Row::new("numrecs", at!(RawLongBlock, numrecs), U16),
        Row::new("leftsib", at!(RawLongBlock, leftsib), FS_BLOCK).leads_to(tree.siblings),
        Row::new("rightsib", at!(RawLongBlock, rightsib), FS_BLOCK).leads_to(tree.siblings),
        records(LONG, tree),
        keys(LONG, tree),
        long_pointers::<LONG, KEY>(tree),
    ]
}

/// The same with CRC.
pub(super) const fn long_v5<const KEY: usize>(tree: &Tree) -> [Row; 13] {
    let [magic, level, numrecs, leftsib, rightsib, ..] = long::<KEY>(tree);
    [
        magic,
        level,
        numrecs,
        leftsib,
        rightsib,
        Row::new("bno", at!(RawLongBlockV5, blkno), FS_BLOCK).leads_to(tree.own),
        Row::new("lsn", at!(RawLongBlockV5, lsn), X64),
        Row::new("uuid", at!(RawLongBlockV5, uuid), UUID),
        Row::new("owner", at!(RawLongBlockV5, owner), INO),
        Row::new("crc", at!(RawLongBlockV5, crc), CRC),
        records(LONG_V5, tree),
        keys(LONG_V5, tree),
        long_pointers::<LONG_V5, KEY>(tree),
    ]
}
