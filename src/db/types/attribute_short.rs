//! Attributes in short form, which lie in the attribute fork of their inode; and parent pointers in any form.

use crate::db::field::at;
use crate::db::field::formats::{CHARACTERS, FLAG, INO, U8, U16, U32, X8};
use crate::db::field::{Bits, Format, Object, Row};
use crate::db::types::TypeId;
use crate::ondisk::OnDisk;
use crate::ondisk::attr_short::{
    ATTR_NSP_ONDISK_MASK, ATTR_PARENT, ATTR_ROOT, ATTR_SECURE, RawAttrSfEntry, RawAttrSfHdr,
};
use crate::ondisk::parent::RawParentRec;

/// Where in the byte at `place` the flag is that `mask` has set.
pub(super) const fn in_byte(place: Bits, mask: u8) -> Bits {
    place + mask.leading_zeros() as usize
}

/// Whether the attribute is a parent pointer.
pub(super) fn is_parent(flags: u8) -> bool {
    flags & ATTR_NSP_ONDISK_MASK == ATTR_PARENT
}

/// Value of a parent pointer.
pub(super) const PARENT: Format = Format::structure(
    &[
        Row::new("inumber", at!(RawParentRec, ino), INO).leads_to(TypeId::Inode),
        Row::new("gen", at!(RawParentRec, generation), U32),
    ],
    RawParentRec::SIZE * 8,
);

fn head<'a>(object: &Object<'a>, start: Bits) -> Option<&'a RawAttrSfEntry> {
    object.structure(start)
}

fn namelen(object: &Object<'_>, start: Bits) -> usize {
    head(object, start).map_or(0, |entry| usize::from(entry.namelen))
}

fn valuelen(object: &Object<'_>, start: Bits) -> usize {
    head(object, start).filter(|entry| !is_parent(entry.flags)).map_or(0, |entry| usize::from(entry.valuelen))
}

fn if_parent(object: &Object<'_>, start: Bits) -> usize {
    usize::from(head(object, start).is_some_and(|entry| is_parent(entry.flags)))
}

fn behind_name(object: &Object<'_>, start: Bits, _: usize) -> Bits {
    (RawAttrSfEntry::SIZE + namelen(object, start)) * 8
}

fn entry_len(object: &Object<'_>, at: Bits) -> usize {
    let lengths = head(object, at).map_or(0, |entry| usize::from(entry.namelen) + usize::from(entry.valuelen));
    RawAttrSfEntry::SIZE + lengths
}

/// Where entry `index` of the attributes at `start` stands, from there.
fn entry(object: &Object<'_>, start: Bits, index: usize) -> Bits {
    let mut at = RawAttrSfHdr::SIZE * 8;
    for _ in 0..index.min(usize::from(u8::MAX)) {
        at += entry_len(object, start.saturating_add(at)) * 8;
    }
    at
}

fn entry_count(object: &Object<'_>, start: Bits) -> usize {
    object.structure(start).map_or(0, |header: &RawAttrSfHdr| usize::from(header.count))
}

fn entry_bits(object: &Object<'_>, start: Bits, index: usize) -> Bits {
    entry_len(object, start.saturating_add(entry(object, start, index))) * 8
}

fn all_bits(object: &Object<'_>, start: Bits, _: usize) -> Bits {
    entry(object, start, entry_count(object, start))
}

const HEADER: Format = Format::structure(
    &[Row::new("totsize", at!(RawAttrSfHdr, totsize), U16), Row::new("count", at!(RawAttrSfHdr, count), U8)],
    RawAttrSfHdr::SIZE * 8,
);

const FLAGS: Bits = at!(RawAttrSfEntry, flags);

const ENTRY: Format = Format::structure_sized(
    &[
        Row::new("namelen", at!(RawAttrSfEntry, namelen), U8),
        Row::new("valuelen", at!(RawAttrSfEntry, valuelen), U8),
        Row::new("flags", FLAGS, X8).hidden(),
        Row::new("root", in_byte(FLAGS, ATTR_ROOT), FLAG),
        Row::new("secure", in_byte(FLAGS, ATTR_SECURE), FLAG),
        Row::new("parent", in_byte(FLAGS, ATTR_PARENT), FLAG),
        Row::new("name", RawAttrSfEntry::SIZE * 8, CHARACTERS).counted(namelen),
        Row::computed("parent_dir", behind_name, PARENT).counted(if_parent),
        Row::computed("value", behind_name, CHARACTERS).counted(valuelen),
    ],
    entry_bits,
);

/// Attributes in short form.
pub const ATTR_SHORT: Format = Format::structure_sized(
    &[Row::new("hdr", 0, HEADER), Row::computed("list", entry, ENTRY).counted(entry_count).array()],
    all_bits,
);
