//! Blocks of directories. One table has the fields of every kind of block; the magic number says which are there.

use super::da_header::{DIR_IDENTITY, DIR_LINKS, DIR_NODE, DIR_NODE_ENTRY, DIR_NODE_V5, magic16, magic32};
use super::directory_entry::{ENTRY, ENTRY_FTYPE, entry_after};
use crate::db::field::at;
use crate::db::field::formats::{CRC, FS_BLOCK, I32, INO, U16, U32, UUID, X16, X32, X64};
use crate::db::field::{Bits, Format, Object, Row};
use crate::db::types::TypeId;
use crate::ondisk::da_block::{DA_NODE_MAGIC, DA3_NODE_MAGIC, RawDa3NodeHdr, RawDaNodeHdr};
use crate::ondisk::dir_data::{
    DIR2_BLOCK_MAGIC, DIR2_DATA_MAGIC, DIR3_BLOCK_MAGIC, DIR3_DATA_MAGIC, RawDir2DataHdr, RawDir3BlkHdr,
    RawDir3DataHdr, RawDirBlockTail, RawDirDataFree, header_len,
};
use crate::ondisk::dir_leaf::{
    DIR2_FREE_MAGIC, DIR2_LEAF1_MAGIC, DIR2_LEAFN_MAGIC, DIR3_FREE_MAGIC, DIR3_LEAF1_MAGIC, DIR3_LEAFN_MAGIC,
    RawDir2FreeHdr, RawDir2LeafHdr, RawDir3FreeHdr, RawDir3LeafHdr, RawDirLeafEntry, RawDirLeafTail,
};
use crate::ondisk::{Be16, OnDisk};

const fn structure<T: OnDisk>(rows: &'static [Row]) -> Format {
    Format::structure(rows, T::SIZE * 8)
}

/// An offset or a length within a directory block.
const OFFSET: Format = X16;
/// How many of the largest unused ranges a data block lists.
const RANGES: usize = size_of::<[RawDirDataFree; 3]>() / RawDirDataFree::SIZE;

const RANGE: Format = structure::<RawDirDataFree>(&[
    Row::new("offset", at!(RawDirDataFree, offset), OFFSET),
    Row::new("length", at!(RawDirDataFree, length), OFFSET),
]);

const DATA_HEADER: Format = structure::<RawDir2DataHdr>(&[
    Row::new("magic", at!(RawDir2DataHdr, magic), X32),
    Row::new("bestfree", at!(RawDir2DataHdr, bestfree), RANGE).times(RANGES).array(),
]);

const IDENTITY: Format = structure::<RawDir3BlkHdr>(&[
    Row::new("magic", at!(RawDir3BlkHdr, magic), X32),
    Row::new("crc", at!(RawDir3BlkHdr, crc), CRC),
    Row::new("bno", at!(RawDir3BlkHdr, blkno), FS_BLOCK).leads_to(TypeId::Bmapbtd),
    Row::new("lsn", at!(RawDir3BlkHdr, lsn), X64),
    Row::new("uuid", at!(RawDir3BlkHdr, uuid), UUID),
    Row::new("owner", at!(RawDir3BlkHdr, owner), INO),
]);

const DATA_HEADER_V5: Format = structure::<RawDir3DataHdr>(&[
    Row::new("hdr", at!(RawDir3DataHdr, hdr), IDENTITY),
    Row::new("bestfree", at!(RawDir3DataHdr, best_free), RANGE).times(RANGES).array(),
    Row::new("pad", at!(RawDir3DataHdr, pad), X32).hidden(),
]);

const BLOCK_TAIL: Format = structure::<RawDirBlockTail>(&[
    Row::new("count", at!(RawDirBlockTail, count), U32),
    Row::new("stale", at!(RawDirBlockTail, stale), U32),
]);

const LEAF_ENTRY: Format = structure::<RawDirLeafEntry>(&[
    Row::new("hashval", at!(RawDirLeafEntry, hashval), X32),
    Row::new("address", at!(RawDirLeafEntry, address), X32),
]);

const LEAF_HEADER: Format = structure::<RawDir2LeafHdr>(&[
    Row::new("info", at!(RawDir2LeafHdr, info), DIR_LINKS),
    Row::new("count", at!(RawDir2LeafHdr, count), U16),
    Row::new("stale", at!(RawDir2LeafHdr, stale), U16),
]);

const LEAF_HEADER_V5: Format = structure::<RawDir3LeafHdr>(&[
    Row::new("info", at!(RawDir3LeafHdr, info), DIR_IDENTITY),
    Row::new("count", at!(RawDir3LeafHdr, count), U16),
    Row::new("stale", at!(RawDir3LeafHdr, stale), U16),
    Row::new("pad", at!(RawDir3LeafHdr, pad), X32).hidden(),
]);

const LEAF_TAIL: Format = structure::<RawDirLeafTail>(&[Row::new("bestcount", at!(RawDirLeafTail, bestcount), U32)]);

const FREE_HEADER: Format = structure::<RawDir2FreeHdr>(&[
    Row::new("magic", at!(RawDir2FreeHdr, magic), X32),
    Row::new("firstdb", at!(RawDir2FreeHdr, firstdb), I32),
    Row::new("nvalid", at!(RawDir2FreeHdr, nvalid), I32),
    Row::new("nused", at!(RawDir2FreeHdr, nused), I32),
]);

const FREE_HEADER_V5: Format = structure::<RawDir3FreeHdr>(&[
    Row::new("hdr", at!(RawDir3FreeHdr, hdr), IDENTITY),
    Row::new("firstdb", at!(RawDir3FreeHdr, firstdb), I32),
    Row::new("nvalid", at!(RawDir3FreeHdr, nvalid), I32),
    Row::new("nused", at!(RawDir3FreeHdr, nused), I32),
    Row::new("pad", at!(RawDir3FreeHdr, pad), X32).hidden(),
]);

/// What a directory block is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The only block of a directory.
    Block,
    /// Entries.
    Data,
    /// The only leaf.
    Leaf1,
    /// One leaf of several.
    LeafN,
    /// A node above leaves.
    Node,
    /// Index of free space.
    Free,
}

/// What the block is, and whether it has the header of version 5.
fn kind(object: &Object<'_>) -> Option<(Kind, bool)> {
    let found = match magic32(object)? {
        DIR2_BLOCK_MAGIC => (Kind::Block, false),
        DIR3_BLOCK_MAGIC => (Kind::Block, true),
        DIR2_DATA_MAGIC => (Kind::Data, false),
        DIR3_DATA_MAGIC => (Kind::Data, true),
        DIR2_FREE_MAGIC => (Kind::Free, false),
        DIR3_FREE_MAGIC => (Kind::Free, true),
        _ => match magic16(object)? {
            DIR2_LEAF1_MAGIC => (Kind::Leaf1, false),
            DIR3_LEAF1_MAGIC => (Kind::Leaf1, true),
            DIR2_LEAFN_MAGIC => (Kind::LeafN, false),
            DIR3_LEAFN_MAGIC => (Kind::LeafN, true),
            DA_NODE_MAGIC => (Kind::Node, false),
            DA3_NODE_MAGIC => (Kind::Node, true),
            _ => return None,
        },
    };
    Some(found)
}

fn is<const V5: bool>(object: &Object<'_>, kinds: &[Kind]) -> bool {
    kind(object).is_some_and(|(kind, v5)| v5 == V5 && kinds.contains(&kind))
}

fn if_block<const V5: bool>(object: &Object<'_>, _: Bits) -> usize {
    usize::from(is::<V5>(object, &[Kind::Block]))
}

fn if_data<const V5: bool>(object: &Object<'_>, _: Bits) -> usize {
    usize::from(is::<V5>(object, &[Kind::Data]))
}

fn if_leaf<const V5: bool>(object: &Object<'_>, _: Bits) -> usize {
    usize::from(is::<V5>(object, &[Kind::Leaf1, Kind::LeafN]))
}

fn if_leaf1<const V5: bool>(object: &Object<'_>, _: Bits) -> usize {
    usize::from(is::<V5>(object, &[Kind::Leaf1]))
}

fn if_node<const V5: bool>(object: &Object<'_>, _: Bits) -> usize {
    usize::from(is::<V5>(object, &[Kind::Node]))
}

fn if_free<const V5: bool>(object: &Object<'_>, _: Bits) -> usize {
    usize::from(is::<V5>(object, &[Kind::Free]))
}

/// Where a structure of `size` bytes stands that ends the block.
fn tail(object: &Object<'_>, size: usize) -> Bits {
    object.bytes.len().saturating_sub(size).saturating_mul(8)
}

fn block_tail(object: &Object<'_>, _: Bits, _: usize) -> Bits {
    tail(object, RawDirBlockTail::SIZE)
}

fn leaf_tail(object: &Object<'_>, _: Bits, _: usize) -> Bits {
    tail(object, RawDirLeafTail::SIZE)
}

/// Elements of a table that a tail counts, no more than the block has room for.
fn tabled(object: &Object<'_>, count: u32, element: usize, tail: Bits) -> usize {
    let room = (tail / 8).min(object.bytes.len()) / element;
    usize::try_from(count).unwrap_or(usize::MAX).min(room)
}

/// Where element `index` of `count` stands in a table that ends at `end`.
fn in_table(end: Bits, count: usize, element: usize, index: usize) -> Bits {
    let behind = count.saturating_sub(index).saturating_mul(element).saturating_mul(8);
    end.saturating_sub(behind)
}

fn block_leaf_count(object: &Object<'_>, _: Bits) -> usize {
    if !kind(object).is_some_and(|(kind, _)| kind == Kind::Block) {
        return 0;
    }
    let end = block_tail(object, 0, 0);
    let tail: Option<&RawDirBlockTail> = object.structure(end);
    tail.map_or(0, |tail| tabled(object, tail.count.get(), RawDirLeafEntry::SIZE, end))
}

fn block_leaf(object: &Object<'_>, _: Bits, index: usize) -> Bits {
    in_table(block_tail(object, 0, 0), block_leaf_count(object, 0), RawDirLeafEntry::SIZE, index)
}

fn best_count(object: &Object<'_>, _: Bits) -> usize {
    if !kind(object).is_some_and(|(kind, _)| kind == Kind::Leaf1) {
        return 0;
    }
    let end = leaf_tail(object, 0, 0);
    let tail: Option<&RawDirLeafTail> = object.structure(end);
    tail.map_or(0, |tail| tabled(object, tail.bestcount.get(), size_of::<Be16>(), end))
}

fn best(object: &Object<'_>, _: Bits, index: usize) -> Bits {
    in_table(leaf_tail(object, 0, 0), best_count(object, 0), size_of::<Be16>(), index)
}

/// Where the first entry stands, and the end of all.
fn entries(object: &Object<'_>) -> (usize, usize) {
    let end = match kind(object) {
        Some((Kind::Block, _)) => block_leaf(object, 0, 0) / 8,
        _ => object.bytes.len(),
    };
    (header_len(object.geometry.features.has_crc()), end)
}

fn count_entries(object: &Object<'_>) -> usize {
    let (mut at, end) = entries(object);
    let mut count = 0;
    while at < end {
        count += 1;
        at = entry_after(object, at);
    }
    count
}

fn block_entry_count(object: &Object<'_>, _: Bits) -> usize {
    if kind(object).is_some_and(|(kind, _)| kind == Kind::Block) { count_entries(object) } else { 0 }
}

fn data_entry_count(object: &Object<'_>, _: Bits) -> usize {
    if kind(object).is_some_and(|(kind, _)| kind == Kind::Data) { count_entries(object) } else { 0 }
}

fn entry(object: &Object<'_>, _: Bits, index: usize) -> Bits {
    let (first, end) = entries(object);
    let mut at = first;
    for _ in 0..index {
        if at >= end {
            break;
        }
        at = entry_after(object, at);
    }
    at.saturating_mul(8)
}

fn leaf_count<const V5: bool>(object: &Object<'_>, start: Bits) -> usize {
    let count = if V5 {
        object.structure(0).map(|header: &RawDir3LeafHdr| header.count.get())
    } else {
        object.structure(0).map(|header: &RawDir2LeafHdr| header.count.get())
    };
    let room = object.bytes.len() / RawDirLeafEntry::SIZE;
    if if_leaf::<V5>(object, start) == 0 { 0 } else { count.map_or(0, usize::from).min(room) }
}

fn node_count<const V5: bool>(object: &Object<'_>, start: Bits) -> usize {
    let count = if V5 {
        object.structure(0).map(|header: &RawDa3NodeHdr| header.count.get())
    } else {
        object.structure(0).map(|header: &RawDaNodeHdr| header.count.get())
    };
    if if_node::<V5>(object, start) == 0 { 0 } else { count.map_or(0, usize::from) }
}

fn free_count<const V5: bool>(object: &Object<'_>, start: Bits) -> usize {
    let count = if V5 {
        object.structure(0).map(|header: &RawDir3FreeHdr| header.nvalid.get())
    } else {
        object.structure(0).map(|header: &RawDir2FreeHdr| header.nvalid.get())
    };
    let count = if if_free::<V5>(object, start) == 0 { None } else { count };
    count.map_or(0, |count| usize::try_from(count).unwrap_or(usize::MAX))
}

/// What the two versions of the table differ in.
struct Version {
    data_header: Format,
    entry: Format,
    leaf_header: Format,
    leaf_entries: usize,
    node_header: Format,
    node_entries: usize,
    free_header: Format,
    free_table: usize,
}

const fn table<const V5: bool>(version: &Version) -> [Row; 14] {
    [
        Row::new("bhdr", 0, version.data_header).counted(if_block::<V5>),
        Row::computed("bu", entry, version.entry).counted(block_entry_count).array(),
        Row::computed("bleaf", block_leaf, LEAF_ENTRY).counted(block_leaf_count).array(),
        Row::computed("btail", block_tail, BLOCK_TAIL).counted(if_block::<V5>),
        Row::new("dhdr", 0, version.data_header).counted(if_data::<V5>),
        Row::computed("du", entry, version.entry).counted(data_entry_count).array(),
        Row::new("lhdr", 0, version.leaf_header).counted(if_leaf::<V5>),
        Row::computed("lbests", best, OFFSET).counted(best_count).array(),
        Row::new("lents", version.leaf_entries * 8, LEAF_ENTRY).counted(leaf_count::<V5>).array(),
        Row::computed("ltail", leaf_tail, LEAF_TAIL).counted(if_leaf1::<V5>),
        Row::new("nhdr", 0, version.node_header).counted(if_node::<V5>),
        Row::new("nbtree", version.node_entries * 8, DIR_NODE_ENTRY).counted(node_count::<V5>).array(),
        Row::new("fhdr", 0, version.free_header).counted(if_free::<V5>),
        Row::new("fbests", version.free_table * 8, OFFSET.without_zeroes()).counted(free_count::<V5>).array(),
    ]
}

fn block_bits(object: &Object<'_>, _: Bits, _: usize) -> Bits {
    usize::try_from(object.geometry.directory.blksize).map_or(0, |bytes| bytes.saturating_mul(8))
}

const V4: Version = Version {
    data_header: DATA_HEADER,
    entry: ENTRY,
    leaf_header: LEAF_HEADER,
    leaf_entries: RawDir2LeafHdr::SIZE,
    node_header: DIR_NODE,
    node_entries: RawDaNodeHdr::SIZE,
    free_header: FREE_HEADER,
    free_table: RawDir2FreeHdr::SIZE,
};

const V5: Version = Version {
    data_header: DATA_HEADER_V5,
    entry: ENTRY_FTYPE,
    leaf_header: LEAF_HEADER_V5,
    leaf_entries: RawDir3LeafHdr::SIZE,
    node_header: DIR_NODE_V5,
    node_entries: RawDa3NodeHdr::SIZE,
    free_header: FREE_HEADER_V5,
    free_table: RawDir3FreeHdr::SIZE,
};

/// A directory block, version 4.
pub static DIR2: Format = Format::structure_sized(&table::<false>(&V4), block_bits);
/// A directory block, version 5.
pub static DIR3: Format = Format::structure_sized(&table::<true>(&V5), block_bits);
