//! What a buffer item changes, by the fields of what the buffer holds.

use super::entry::{Entry, Fields, Value};
use super::heading::Heading;
use crate::journal::BufferItem;
use crate::ondisk::attr_leaf::{ATTR_LEAF_MAGIC, ATTR3_LEAF_MAGIC, RawAttr3LeafHdr, RawAttrLeafHdr};
use crate::ondisk::btree_block::magic;
use crate::ondisk::da_block::{DA_NODE_MAGIC, DA3_NODE_MAGIC, RawDa3NodeHdr, RawDaBlkinfo, RawDaNodeHdr};
use crate::ondisk::dir_data::{
    DIR2_BLOCK_MAGIC, DIR2_DATA_MAGIC, DIR3_BLOCK_MAGIC, DIR3_DATA_MAGIC, RawDir2DataHdr, RawDir3DataHdr,
};
use crate::ondisk::dir_leaf::{
    DIR2_FREE_MAGIC, DIR2_LEAF1_MAGIC, DIR2_LEAFN_MAGIC, DIR3_FREE_MAGIC, DIR3_LEAF1_MAGIC, DIR3_LEAFN_MAGIC,
    RawDir2FreeHdr, RawDir2LeafHdr, RawDir3FreeHdr, RawDir3LeafHdr,
};
use crate::ondisk::log_buffer::{BufType, flag};
use crate::ondisk::remote::{ATTR3_RMT_MAGIC, RawAttr3RmtHdr, RawDsymlinkHdr, SYMLINK_MAGIC};
use crate::ondisk::{
    Field, FieldKind, OnDisk, RawAgf, RawAgfl, RawAgi, RawDinode, RawDinodeCore, RawDiskDquot, RawDquotBlock,
    RawLongBlock, RawLongBlockV5, RawRtBlockHeader, RawShortBlock, RawShortBlockV5, RawSuperblock,
};

/// A structure that a block begins with: its name, and its fields.
type Structure = (&'static str, &'static [Field]);

/// Structures by their magic number of four bytes.
const BY_LONG_MAGIC: &[(u32, Structure)] = &[
    (RawSuperblock::MAGIC, ("superblock", RawSuperblock::FIELDS)),
    (RawAgf::MAGIC, ("agf", RawAgf::FIELDS)),
    (RawAgi::MAGIC, ("agi", RawAgi::FIELDS)),
    (RawAgfl::MAGIC, ("agfl", RawAgfl::FIELDS)),
    (magic::BNOBT, ("bnobt", RawShortBlock::FIELDS)),
    (magic::BNOBT_V5, ("bnobt", RawShortBlockV5::FIELDS)),
    (magic::CNTBT, ("cntbt", RawShortBlock::FIELDS)),
    (magic::CNTBT_V5, ("cntbt", RawShortBlockV5::FIELDS)),
    (magic::INOBT, ("inobt", RawShortBlock::FIELDS)),
    (magic::INOBT_V5, ("inobt", RawShortBlockV5::FIELDS)),
    (magic::FINOBT, ("finobt", RawShortBlock::FIELDS)),
    (magic::FINOBT_V5, ("finobt", RawShortBlockV5::FIELDS)),
    (magic::RMAPBT_V5, ("rmapbt", RawShortBlockV5::FIELDS)),
    (magic::REFCOUNTBT_V5, ("refcountbt", RawShortBlockV5::FIELDS)),
    (magic::BMBT, ("bmbt", RawLongBlock::FIELDS)),
    (magic::BMBT_V5, ("bmbt", RawLongBlockV5::FIELDS)),
    (magic::RTRMAPBT_V5, ("rtrmapbt", RawLongBlockV5::FIELDS)),
    (magic::RTREFCOUNTBT_V5, ("rtrefcountbt", RawLongBlockV5::FIELDS)),
    (DIR2_BLOCK_MAGIC, ("directory block", RawDir2DataHdr::FIELDS)),
    (DIR3_BLOCK_MAGIC, ("directory block", RawDir3DataHdr::FIELDS)),
    (DIR2_DATA_MAGIC, ("directory data", RawDir2DataHdr::FIELDS)),
    (DIR3_DATA_MAGIC, ("directory data", RawDir3DataHdr::FIELDS)),
    (DIR2_FREE_MAGIC, ("directory free index", RawDir2FreeHdr::FIELDS)),
    (DIR3_FREE_MAGIC, ("directory free index", RawDir3FreeHdr::FIELDS)),
    (ATTR3_RMT_MAGIC, ("remote attribute value", RawAttr3RmtHdr::FIELDS)),
    (SYMLINK_MAGIC, ("symlink", RawDsymlinkHdr::FIELDS)),
    (RawRtBlockHeader::BITMAP_MAGIC, ("realtime bitmap", RawRtBlockHeader::FIELDS)),
    (RawRtBlockHeader::SUMMARY_MAGIC, ("realtime summary", RawRtBlockHeader::FIELDS)),
];

/// Structures by the magic number of two bytes that [`RawDaBlkinfo`] has.
const BY_SHORT_MAGIC: &[(u16, Structure)] = &[
    (DA_NODE_MAGIC, ("node", RawDaNodeHdr::FIELDS)),
    (DA3_NODE_MAGIC, ("node", RawDa3NodeHdr::FIELDS)),
    (DIR2_LEAF1_MAGIC, ("directory leaf", RawDir2LeafHdr::FIELDS)),
    (DIR3_LEAF1_MAGIC, ("directory leaf", RawDir3LeafHdr::FIELDS)),
    (DIR2_LEAFN_MAGIC, ("directory leaf", RawDir2LeafHdr::FIELDS)),
    (DIR3_LEAFN_MAGIC, ("directory leaf", RawDir3LeafHdr::FIELDS)),
    (ATTR_LEAF_MAGIC, ("attribute leaf", RawAttrLeafHdr::FIELDS)),
    (ATTR3_LEAF_MAGIC, ("attribute leaf", RawAttr3LeafHdr::FIELDS)),
];

/// Size of an inode where it is not known: what is not logged of larger ones is passed over.
const SMALLEST_INODE: usize = 256;

/// Flags of dquot buffers.
const DQUOTS: u16 = flag::UDQUOT_BUF | flag::PDQUOT_BUF | flag::GDQUOT_BUF;

/// The fields of what the buffer holds, as far as the item has them: one entry for each structure.
pub(super) fn contents(item: &BufferItem<'_>, inode_size: Option<usize>) -> Vec<Entry> {
    let entry = |name: &'static str, fields: Fields| Entry::new("contents", Heading::Structure(name), fields);
    if item.is_inodes() {
        return unlinked(item, inode_size.unwrap_or(SMALLEST_INODE))
            .into_iter()
            .map(|fields| entry("inode", fields))
            .collect();
    }
    if item.format.flags & DQUOTS != 0 {
        return dquots(item).map(|fields| entry("dquot", fields)).collect();
    }
    let Some((name, table)) = structure(item) else { return Vec::new() };
    let fields = logged_fields(item, 0, table);
    if fields.is_empty() { Vec::new() } else { vec![entry(name, fields)] }
}

/// What a block begins with, as its magic number or else the item's flags say.
fn structure(item: &BufferItem<'_>) -> Option<Structure> {
    let info = item.bytes_at(0, RawDaBlkinfo::SIZE).and_then(RawDaBlkinfo::prefix);
    if let Some((info, _)) = info {
        let long = item.bytes_at(0, 4)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))?;
        let short = info.magic.get();
        let by_long = BY_LONG_MAGIC.iter().find(|(magic, _)| *magic == long).map(|(_, found)| *found);
        let by_short = || BY_SHORT_MAGIC.iter().find(|(magic, _)| *magic == short).map(|(_, found)| *found);
        return by_long.or_else(by_short);
    }
    Some(match item.format.kind? {
        BufType::Sb => ("superblock", RawSuperblock::FIELDS),
        BufType::Agf => ("agf", RawAgf::FIELDS),
        BufType::Agi => ("agi", RawAgi::FIELDS),
        BufType::Agfl => ("agfl", RawAgfl::FIELDS),
        _ => return None,
    })
}

/// The links of the unlinked list in a buffer of inodes: nothing else of it is replayed.
fn unlinked(item: &BufferItem<'_>, inode_size: usize) -> Vec<Fields> {
    let Some(field) = RawDinodeCore::FIELDS.iter().find(|field| field.name == "next_unlinked") else {
        return Vec::new();
    };
    let offsets = (0..item.len()).step_by(inode_size.max(RawDinodeCore::SIZE)).enumerate();
    let links = offsets.filter_map(|(index, offset)| {
        let value = logged_value(item, offset, field)?;
        Some(vec![("index", Value::from(index)), (field.name, value)])
    });
    links.collect()
}

/// The dquots of a buffer that are there from their beginning.
fn dquots(item: &BufferItem<'_>) -> impl Iterator<Item = Fields> {
    let slots = (0..item.len()).step_by(RawDquotBlock::SIZE);
    slots.filter_map(|offset| {
        let fields = logged_fields(item, offset, RawDiskDquot::FIELDS);
        (fields.first().is_some_and(|(name, _)| *name == "magic")).then_some(fields)
    })
}

/// Those fields of a structure at `offset` that the item has.
fn logged_fields(item: &BufferItem<'_>, offset: usize, table: &[Field]) -> Fields {
    let mut fields = Fields::new();
    for field in table.iter().filter(|field| is_of_interest(field)) {
        if let FieldKind::Struct(inner) = field.kind {
            fields.extend(logged_fields(item, offset + field.offset, inner));
        } else if let Some(value) = logged_value(item, offset, field) {
            fields.push((field.name, value));
        }
    }
    fields
}

/// A field of a structure at `offset`, if the item has it; of an array, the elements that it has.
fn logged_value(item: &BufferItem<'_>, offset: usize, field: &Field) -> Option<Value> {
    let start = offset + field.offset;
    let FieldKind::Array { size, count } = field.kind else {
        return item.bytes_at(start, field.size).map(|bytes| value_of(field, bytes));
    };
    let element = |index: usize| item.bytes_at(start + index * size, size).map(number);
    let first = (0..count).find(|index| element(*index).is_some())?;
    let elements = (first..count).map_while(element).collect();
    Some(if first == 0 { Value::List(elements) } else { Value::Slice(first, elements) })
}

/// The fields of a structure of which all bytes are there.
pub(super) fn all_fields(bytes: &[u8], table: &[Field]) -> Fields {
    let mut fields = Fields::new();
    push_all_fields(&mut fields, bytes, table);
    fields
}

fn push_all_fields(fields: &mut Fields, bytes: &[u8], table: &[Field]) {
    fields.reserve(table.len());
    for field in table.iter().filter(|field| is_of_interest(field)) {
        let Some(part) = bytes.get(field.offset..field.offset + field.size) else { continue };
        match field.kind {
            FieldKind::Struct(inner) => push_all_fields(fields, part, inner),
            _ => fields.push((field.name, value_of(field, part))),
        }
    }
}

/// CRCs and LSNs in the journal are those of an earlier write; nobody asks for padding.
fn is_of_interest(field: &Field) -> bool {
    // patterns of bytes: all fields of all inodes in a journal are asked
    !matches!(
        field.name.as_bytes(),
        b"crc"
            | b"lsn"
            | [b'p', b'a', b'd', ..]
            | [b's', b'p', b'a', b'r', b'e', ..]
            | [b'f', b'i', b'l', b'l', ..]
            | [b'r', b'e', b's', b'e', b'r', b'v', b'e', b'd', ..]
    )
}

/// The value of a field.
fn value_of(field: &Field, bytes: &[u8]) -> Value {
    match field.kind {
        FieldKind::Int(_) if field.name.starts_with("magic") => Value::Hex(big_endian(bytes)),
        FieldKind::Int(_) => number(bytes),
        FieldKind::Bytes(16) => bytes.first_chunk().map_or(Value::Null, |uuid| Value::Uuid(*uuid)),
        FieldKind::Bytes(_) => {
            let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            Value::Name(bytes[..len].to_vec())
        }
        FieldKind::Array { size, .. } => Value::List(bytes.chunks_exact(size.max(1)).map(number).collect()),
        FieldKind::Struct(inner) => Value::Group(all_fields(bytes, inner)),
    }
}

/// An integer; with all bits set, it is the address of nothing.
fn number(bytes: &[u8]) -> Value {
    match (bytes.len(), big_endian(bytes)) {
        (4, 0xffff_ffff) | (8, u64::MAX) => Value::Null,
        (_, number) => Value::Number(number),
    }
}

fn big_endian(bytes: &[u8]) -> u64 {
    match *bytes {
        [byte] => u64::from(byte),
        [high, low] => u64::from(u16::from_be_bytes([high, low])),
        [a, b, c, d] => u64::from(u32::from_be_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

/// The fields of an inode's core, whose version says how many there are.
pub(super) fn core_fields(core: &RawDinode) -> Fields {
    use zerocopy::IntoBytes;
    if core.core.version >= 3 {
        all_fields(core.as_bytes(), RawDinode::FIELDS)
    } else {
        all_fields(core.core.as_bytes(), RawDinodeCore::FIELDS)
    }
}
