//! Blocks of attribute forks: leaves, nodes, and values in blocks of their own.

use super::attribute_short::{PARENT, in_byte, is_parent};
use super::btree_block::block_bits;
use super::da_header::{ATTR_IDENTITY, ATTR_LINKS, ATTR_NODE, ATTR_NODE_ENTRY, ATTR_NODE_V5, magic16, magic32};
use crate::db::field::at;
use crate::db::field::formats::{CHARACTERS, CRC, FLAG, FS_BLOCK, INO, U8, U16, U32, UUID, X8, X32, X64};
use crate::db::field::{Bits, Format, Object, Row};
use crate::db::types::TypeId;
use crate::ondisk::OnDisk;
use crate::ondisk::attr_leaf::{
    ATTR_LEAF_MAGIC, ATTR3_LEAF_MAGIC, RawAttr3LeafHdr, RawAttrLeafEntry, RawAttrLeafHdr, RawAttrLeafMap,
    RawAttrLeafNameLocal, RawAttrLeafNameRemote, local_len, remote_len,
};
use crate::ondisk::attr_short::{ATTR_INCOMPLETE, ATTR_LOCAL, ATTR_PARENT, ATTR_ROOT, ATTR_SECURE};
use crate::ondisk::da_block::{DA_NODE_MAGIC, DA3_NODE_MAGIC, RawDa3NodeHdr, RawDaNodeHdr};
use crate::ondisk::remote::{ATTR3_RMT_MAGIC, RawAttr3RmtHdr};

const fn structure<T: OnDisk>(rows: &'static [Row]) -> Format {
    Format::structure(rows, T::SIZE * 8)
}

/// How many of the largest free ranges a leaf lists.
const RANGES: usize = size_of::<[RawAttrLeafMap; 3]>() / RawAttrLeafMap::SIZE;

const RANGE: Format = Format::records(
    &[Row::new("base", at!(RawAttrLeafMap, base), U16), Row::new("size", at!(RawAttrLeafMap, size), U16)],
    RawAttrLeafMap::SIZE * 8,
);

const LEAF_HEADER: Format = structure::<RawAttrLeafHdr>(&[
    Row::new("info", at!(RawAttrLeafHdr, info), ATTR_LINKS),
    Row::new("count", at!(RawAttrLeafHdr, count), U16),
    Row::new("usedbytes", at!(RawAttrLeafHdr, usedbytes), U16),
    Row::new("firstused", at!(RawAttrLeafHdr, firstused), U16),
    Row::new("holes", at!(RawAttrLeafHdr, holes), U8),
    Row::new("pad1", at!(RawAttrLeafHdr, pad1), X8).hidden(),
    Row::new("freemap", at!(RawAttrLeafHdr, freemap), RANGE).times(RANGES).array(),
]);

const LEAF_HEADER_V5: Format = structure::<RawAttr3LeafHdr>(&[
    Row::new("info", at!(RawAttr3LeafHdr, info), ATTR_IDENTITY),
    Row::new("count", at!(RawAttr3LeafHdr, count), U16),
    Row::new("usedbytes", at!(RawAttr3LeafHdr, usedbytes), U16),
    Row::new("firstused", at!(RawAttr3LeafHdr, firstused), U16),
    Row::new("holes", at!(RawAttr3LeafHdr, holes), U8),
    Row::new("pad1", at!(RawAttr3LeafHdr, pad1), X8).hidden(),
    Row::new("freemap", at!(RawAttr3LeafHdr, freemap), RANGE).times(RANGES).array(),
]);

const FLAGS: Bits = at!(RawAttrLeafEntry, flags);

const LEAF_ENTRY: Format = Format::records(
    &[
        Row::new("hashval", at!(RawAttrLeafEntry, hashval), X32),
        Row::new("nameidx", at!(RawAttrLeafEntry, nameidx), U16),
        Row::new("flags", FLAGS, X8).hidden(),
        Row::new("incomplete", in_byte(FLAGS, ATTR_INCOMPLETE), FLAG),
        Row::new("root", in_byte(FLAGS, ATTR_ROOT), FLAG),
        Row::new("secure", in_byte(FLAGS, ATTR_SECURE), FLAG),
        Row::new("local", in_byte(FLAGS, ATTR_LOCAL), FLAG),
        Row::new("parent", in_byte(FLAGS, ATTR_PARENT), FLAG),
        Row::new("pad2", at!(RawAttrLeafEntry, pad2), X8).hidden(),
    ],
    RawAttrLeafEntry::SIZE * 8,
);

const REMOTE_HEADER: Format = Format::structure_sized(
    &[
        Row::new("magic", at!(RawAttr3RmtHdr, magic), X32),
        Row::new("offset", at!(RawAttr3RmtHdr, offset), U32),
        Row::new("bytes", at!(RawAttr3RmtHdr, bytes), U32),
        Row::new("crc", at!(RawAttr3RmtHdr, crc), CRC),
        Row::new("uuid", at!(RawAttr3RmtHdr, uuid), UUID),
        Row::new("owner", at!(RawAttr3RmtHdr, owner), INO),
        Row::new("bno", at!(RawAttr3RmtHdr, blkno), FS_BLOCK).leads_to(TypeId::Bmapbtd),
        Row::new("lsn", at!(RawAttr3RmtHdr, lsn), X64),
    ],
    block_bits,
);

fn is_leaf<const V5: bool>(object: &Object<'_>) -> bool {
    magic16(object) == Some(if V5 { ATTR3_LEAF_MAGIC } else { ATTR_LEAF_MAGIC })
}

fn is_node<const V5: bool>(object: &Object<'_>) -> bool {
    magic16(object) == Some(if V5 { DA3_NODE_MAGIC } else { DA_NODE_MAGIC })
}

fn if_leaf<const V5: bool>(object: &Object<'_>, _: Bits) -> usize {
    usize::from(is_leaf::<V5>(object))
}

fn if_node<const V5: bool>(object: &Object<'_>, _: Bits) -> usize {
    usize::from(is_node::<V5>(object))
}

fn if_remote(object: &Object<'_>, _: Bits) -> usize {
    usize::from(magic32(object) == Some(ATTR3_RMT_MAGIC))
}

fn leaf_count<const V5: bool>(object: &Object<'_>, _: Bits) -> usize {
    let count = if V5 {
        object.structure(0).map(|header: &RawAttr3LeafHdr| header.count.get())
    } else {
        object.structure(0).map(|header: &RawAttrLeafHdr| header.count.get())
    };
    if is_leaf::<V5>(object) { count.map_or(0, usize::from) } else { 0 }
}

fn node_count<const V5: bool>(object: &Object<'_>, _: Bits) -> usize {
    let count = if V5 {
        object.structure(0).map(|header: &RawDa3NodeHdr| header.count.get())
    } else {
        object.structure(0).map(|header: &RawDaNodeHdr| header.count.get())
    };
    if is_node::<V5>(object) { count.map_or(0, usize::from) } else { 0 }
}

/// Without CRCs, values in blocks of their own have no header: what is nothing else is taken for one.
fn bare_value(object: &Object<'_>, _: Bits) -> usize {
    if is_leaf::<false>(object) || is_node::<false>(object) { 0 } else { block_bits(object, 0, 0) / 8 }
}

fn value_length(object: &Object<'_>, start: Bits) -> usize {
    let header: Option<&RawAttr3RmtHdr> = object.structure(0);
    let Some(header) = header.filter(|_| if_remote(object, start) == 1) else { return 0 };
    header.bytes.get().min(object.geometry.attributes.remote_space).try_into().unwrap_or(0)
}

/// The entries of the leaf, by its own version.
fn leaf_entries<'a>(object: &Object<'a>) -> &'a [RawAttrLeafEntry] {
    let (header, count) = if is_leaf::<true>(object) {
        (RawAttr3LeafHdr::SIZE, leaf_count::<true>(object, 0))
    } else if is_leaf::<false>(object) {
        (RawAttrLeafHdr::SIZE, leaf_count::<false>(object, 0))
    } else {
        return &[];
    };
    let rest = object.from(header * 8);
    let count = count.min(rest.len() / RawAttrLeafEntry::SIZE);
    RawAttrLeafEntry::prefix_slice(rest, count).map_or(&[], |(entries, _)| entries)
}

/// As many names as there are entries in the block.
fn name_count<const V5: bool>(object: &Object<'_>, _: Bits) -> usize {
    if is_leaf::<V5>(object) { leaf_entries(object).len() } else { 0 }
}

/// Flags of the name at `start`: those of the first entry that leads there.
fn flags(object: &Object<'_>, start: Bits) -> Option<u8> {
    let entries = leaf_entries(object);
    entries.iter().find(|entry| usize::from(entry.nameidx.get()) * 8 == start).map(|entry| entry.flags)
}

fn local<'a>(object: &Object<'a>, start: Bits) -> Option<&'a RawAttrLeafNameLocal> {
    flags(object, start).filter(|flags| flags & ATTR_LOCAL != 0)?;
    object.structure(start)
}

fn remote<'a>(object: &Object<'a>, start: Bits) -> Option<&'a RawAttrLeafNameRemote> {
    flags(object, start).filter(|flags| flags & ATTR_LOCAL == 0)?;
    object.structure(start)
}

fn if_local_name(object: &Object<'_>, start: Bits) -> usize {
    usize::from(local(object, start).is_some())
}

fn if_remote_name(object: &Object<'_>, start: Bits) -> usize {
    usize::from(remote(object, start).is_some())
}

fn local_namelen(object: &Object<'_>, start: Bits) -> usize {
    local(object, start).map_or(0, |name| usize::from(name.namelen))
}

fn remote_namelen(object: &Object<'_>, start: Bits) -> usize {
    remote(object, start).map_or(0, |name| usize::from(name.namelen))
}

fn is_parent_pointer(object: &Object<'_>, start: Bits) -> bool {
    flags(object, start).is_some_and(is_parent)
}

fn local_valuelen(object: &Object<'_>, start: Bits) -> usize {
    let value = local(object, start).map_or(0, |name| usize::from(name.valuelen.get()));
    if is_parent_pointer(object, start) { 0 } else { value }
}

fn if_parent(object: &Object<'_>, start: Bits) -> usize {
    usize::from(local(object, start).is_some() && is_parent_pointer(object, start))
}

fn behind_name(object: &Object<'_>, start: Bits, _: usize) -> Bits {
    (RawAttrLeafNameLocal::SIZE + local_namelen(object, start)) * 8
}

fn name(object: &Object<'_>, _: Bits, index: usize) -> Bits {
    leaf_entries(object).get(index).map_or(0, |entry| usize::from(entry.nameidx.get()) * 8)
}

fn name_bits(object: &Object<'_>, start: Bits, index: usize) -> Bits {
    let at = name(object, start, index);
    let local = local(object, at).map(|name| local_len(usize::from(name.namelen), usize::from(name.valuelen.get())));
    let remote = || remote(object, at).map(|name| remote_len(usize::from(name.namelen)));
    local.or_else(remote).unwrap_or(0) * 8
}

const NAME: Format = Format::structure_sized(
    &[
        Row::new("valuelen", at!(RawAttrLeafNameLocal, valuelen), U16).counted(if_local_name),
        Row::new("namelen", at!(RawAttrLeafNameLocal, namelen), U8).counted(if_local_name),
        Row::new("name", RawAttrLeafNameLocal::SIZE * 8, CHARACTERS).counted(local_namelen),
        Row::computed("parent_dir", behind_name, PARENT).counted(if_parent),
        Row::computed("value", behind_name, CHARACTERS).counted(local_valuelen),
        Row::new("valueblk", at!(RawAttrLeafNameRemote, valueblk), X32).counted(if_remote_name),
        Row::new("valuelen", at!(RawAttrLeafNameRemote, valuelen), U32).counted(if_remote_name),
        Row::new("namelen", at!(RawAttrLeafNameRemote, namelen), U8).counted(if_remote_name),
        Row::new("name", RawAttrLeafNameRemote::SIZE * 8, CHARACTERS).counted(remote_namelen),
    ],
    name_bits,
);

/// A block of an attribute fork, version 4.
pub static ATTR: Format = Format::structure_sized(
    &[
        Row::new("hdr", 0, LEAF_HEADER).counted(if_leaf::<false>),
        Row::new("hdr", 0, ATTR_NODE).counted(if_node::<false>),
        Row::new("data", 0, CHARACTERS).counted(bare_value),
        Row::new("entries", RawAttrLeafHdr::SIZE * 8, LEAF_ENTRY).counted(leaf_count::<false>).array(),
        Row::new("btree", RawDaNodeHdr::SIZE * 8, ATTR_NODE_ENTRY).counted(node_count::<false>).array(),
        Row::computed("nvlist", name, NAME).counted(name_count::<false>).array(),
    ],
    block_bits,
);

/// A block of an attribute fork, version 5.
pub static ATTR3: Format = Format::structure_sized(
    &[
        Row::new("hdr", 0, LEAF_HEADER_V5).counted(if_leaf::<true>),
        Row::new("hdr", 0, ATTR_NODE_V5).counted(if_node::<true>),
        Row::new("hdr", 0, REMOTE_HEADER).counted(if_remote),
        Row::new("data", RawAttr3RmtHdr::SIZE * 8, CHARACTERS).counted(value_length),
        Row::new("entries", RawAttr3LeafHdr::SIZE * 8, LEAF_ENTRY).counted(leaf_count::<true>).array(),
        Row::new("btree", RawDa3NodeHdr::SIZE * 8, ATTR_NODE_ENTRY).counted(node_count::<true>).array(),
        Row::computed("nvlist", name, NAME).counted(name_count::<true>).array(),
    ],
    block_bits,
);
