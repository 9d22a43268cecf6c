//! What blocks of directories and of attribute forks have in common: links, identity, and nodes of the hash tree.

use crate::db::field::at;
use crate::db::field::formats::{CRC, FS_BLOCK, INO, U16, UUID, X16, X32, X64};
use crate::db::field::{Format, Object, Row, Target};
use crate::db::types::TypeId;
use crate::ondisk::da_block::{RawDa3Blkinfo, RawDa3NodeHdr, RawDaBlkinfo, RawDaNodeEntry, RawDaNodeHdr};
use crate::ondisk::{Be32, OnDisk};

/// A block of a directory; 0 is none.
const DIR_BLOCK: Format = Format::decimal(32).addressing(Target::DirBlock);
/// A block of an attribute fork; 0 is none.
const ATTR_BLOCK: Format = Format::decimal(32).addressing(Target::AttrBlock);

/// The magic number that stands between the links of a leaf or node.
pub(super) fn magic16(object: &Object<'_>) -> Option<u16> {
    object.structure::<RawDaBlkinfo>(0).map(|info| info.magic.get())
}

/// The magic number at the start of other blocks.
pub(super) fn magic32(object: &Object<'_>) -> Option<u32> {
    object.bytes.first_chunk().map(|bytes| Be32::from_bytes(*bytes).get())
}

const fn structure<T: OnDisk>(rows: &'static [Row]) -> Format {
    Format::structure(rows, T::SIZE * 8)
}

const fn links(block: Format, next: TypeId) -> [Row; 4] {
    [
        Row::new("forw", at!(RawDaBlkinfo, forw), block).leads_to(next),
        Row::new("back", at!(RawDaBlkinfo, back), block).leads_to(next),
        Row::new("magic", at!(RawDaBlkinfo, magic), X16),
        Row::new("pad", at!(RawDaBlkinfo, pad), X16).hidden(),
    ]
}

const fn identity(links: Format) -> [Row; 6] {
    [
        Row::new("hdr", at!(RawDa3Blkinfo, hdr), links),
        Row::new("crc", at!(RawDa3Blkinfo, crc), CRC),
        Row::new("bno", at!(RawDa3Blkinfo, blkno), FS_BLOCK).leads_to(TypeId::Bmapbtd),
        Row::new("lsn", at!(RawDa3Blkinfo, lsn), X64),
        Row::new("uuid", at!(RawDa3Blkinfo, uuid), UUID),
        Row::new("owner", at!(RawDa3Blkinfo, owner), INO),
    ]
}

const fn node(links: Format) -> [Row; 3] {
    [
        Row::new("info", at!(RawDaNodeHdr, info), links),
        Row::new("count", at!(RawDaNodeHdr, count), U16),
        Row::new("level", at!(RawDaNodeHdr, level), U16),
    ]
}

const fn node_v5(identity: Format) -> [Row; 4] {
    [
        Row::new("info", at!(RawDa3NodeHdr, info), identity),
        Row::new("count", at!(RawDa3NodeHdr, count), U16),
        Row::new("level", at!(RawDa3NodeHdr, level), U16),
        Row::new("pad", at!(RawDa3NodeHdr, pad32), X32).hidden(),
    ]
}

const fn node_entry(block: Format, next: TypeId) -> [Row; 2] {
    [
        Row::new("hashval", at!(RawDaNodeEntry, hashval), X32),
        Row::new("before", at!(RawDaNodeEntry, before), block).leads_to(next),
    ]
}

/// Links of a directory's block.
pub(super) const DIR_LINKS: Format = structure::<RawDaBlkinfo>(&links(DIR_BLOCK, TypeId::Inodata));
/// Links and identity of a directory's block.
pub(super) const DIR_IDENTITY: Format = structure::<RawDa3Blkinfo>(&identity(DIR_LINKS));
/// Header of a directory's node, version 4.
pub(super) const DIR_NODE: Format = structure::<RawDaNodeHdr>(&node(DIR_LINKS));
/// Header of a directory's node, version 5.
pub(super) const DIR_NODE_V5: Format = structure::<RawDa3NodeHdr>(&node_v5(DIR_IDENTITY));
/// Entry of a directory's node.
pub(super) const DIR_NODE_ENTRY: Format =
    Format::records(&node_entry(DIR_BLOCK, TypeId::Inodata), RawDaNodeEntry::SIZE * 8);

/// Links of an attribute fork's block.
pub(super) const ATTR_LINKS: Format = structure::<RawDaBlkinfo>(&links(ATTR_BLOCK, TypeId::Attr));
/// Links and identity of an attribute fork's block.
pub(super) const ATTR_IDENTITY: Format = structure::<RawDa3Blkinfo>(&identity(ATTR_LINKS));
/// Header of an attribute fork's node, version 4.
pub(super) const ATTR_NODE: Format = structure::<RawDaNodeHdr>(&node(ATTR_LINKS));
/// Header of an attribute fork's node, version 5.
pub(super) const ATTR_NODE_V5: Format = structure::<RawDa3NodeHdr>(&node_v5(ATTR_IDENTITY));
/// Entry of an attribute fork's node.
pub(super) const ATTR_NODE_ENTRY: Format =
    Format::records(&node_entry(ATTR_BLOCK, TypeId::Attr), RawDaNodeEntry::SIZE * 8);
