//! Directories in short form, which lie in the data fork of their inode.

use crate::db::field::at;
use crate::db::field::formats::{CHARACTERS, U8, X16};
use crate::db::field::{Bits, Format, Object, Row, Target};
use crate::db::types::TypeId;
use crate::ondisk::dir_short::{RawDirSfCounts, RawDirSfEntry, RawDirSfHdr4, RawDirSfHdr8};
use crate::ondisk::{Be32, Be64, OnDisk, RawDinodeCore};

/// Where the data fork of the inode begins.
fn fork(object: &Object<'_>) -> Bits {
    object.structure(0).map_or(0, |core: &RawDinodeCore| core.literal_offset().saturating_mul(8))
}

fn counts<'a>(object: &Object<'a>, start: Bits) -> Option<&'a RawDirSfCounts> {
    object.structure(start)
}

/// Whether inode numbers take eight bytes, as the directory at `start` says.
fn is_wide(object: &Object<'_>, start: Bits) -> bool {
    counts(object, start).is_some_and(|counts| counts.i8count != 0)
}

/// Inode numbers know the directory that they are of only by the inode.
fn if_narrow(object: &Object<'_>, _: Bits) -> usize {
    usize::from(!is_wide(object, fork(object)))
}

fn if_wide(object: &Object<'_>, _: Bits) -> usize {
    usize::from(is_wide(object, fork(object)))
}

fn inumber_len(wide: bool) -> usize {
    if wide { size_of::<Be64>() } else { size_of::<Be32>() }
}

fn inumber_bits(object: &Object<'_>, _: Bits, _: usize) -> Bits {
    inumber_len(is_wide(object, fork(object))) * 8
}

fn header_len(wide: bool) -> usize {
    if wide { RawDirSfHdr8::SIZE } else { RawDirSfHdr4::SIZE }
}

fn header_bits(object: &Object<'_>, start: Bits, _: usize) -> Bits {
    header_len(is_wide(object, start)) * 8
}

fn namelen(object: &Object<'_>, start: Bits) -> usize {
    object.structure(start).map_or(0, |entry: &RawDirSfEntry| usize::from(entry.namelen))
}

fn entry_len(object: &Object<'_>, at: Bits, wide: bool) -> usize {
    let ftype = usize::from(object.geometry.features.has_ftype());
    RawDirSfEntry::SIZE + namelen(object, at) + ftype + inumber_len(wide)
}

/// Where entry `index` of the directory at `start` stands, from there.
fn entry(object: &Object<'_>, start: Bits, index: usize) -> Bits {
    let wide = is_wide(object, start);
    let mut at = header_len(wide) * 8;
    for _ in 0..index.min(usize::from(u8::MAX)) {
        at += entry_len(object, start.saturating_add(at), wide) * 8;
    }
    at
}

fn entry_count(object: &Object<'_>, start: Bits) -> usize {
    counts(object, start).map_or(0, |counts| usize::from(counts.count))
}

fn entry_bits(object: &Object<'_>, start: Bits, index: usize) -> Bits {
    let at = start.saturating_add(entry(object, start, index));
    entry_len(object, at, is_wide(object, start)) * 8
}

fn directory_bits(object: &Object<'_>, start: Bits, _: usize) -> Bits {
    entry(object, start, entry_count(object, start))
}

fn behind_name(object: &Object<'_>, start: Bits, _: usize) -> Bits {
    (RawDirSfEntry::SIZE + namelen(object, start)) * 8
}

fn behind_ftype(object: &Object<'_>, start: Bits, index: usize) -> Bits {
    behind_name(object, start, index) + 8
}

/// An inode number of either width: exactly one of the fields is there.
const INUMBER: Format = Format::structure_sized(
    &[
        Row::new("i8", 0, Format::decimal(64).addressing(Target::Ino)).counted(if_wide).leads_to(TypeId::Inode),
        Row::new("i4", 0, Format::decimal(32).addressing(Target::Ino)).counted(if_narrow).leads_to(TypeId::Inode),
    ],
    inumber_bits,
);

const HEADER: Format = Format::structure_sized(
    &[
        Row::new("count", at!(RawDirSfCounts, count), U8),
        Row::new("i8count", at!(RawDirSfCounts, i8count), U8),
        Row::new("parent", at!(RawDirSfHdr4, parent), INUMBER),
    ],
    header_bits,
);

const NAMELEN: Row = Row::new("namelen", at!(RawDirSfEntry, namelen), U8);
const OFFSET: Row = Row::new("offset", at!(RawDirSfEntry, offset), X16);
const NAME: Row = Row::new("name", RawDirSfEntry::SIZE * 8, CHARACTERS).counted(namelen);

const ENTRY: Format =
    Format::structure_sized(&[NAMELEN, OFFSET, NAME, Row::computed("inumber", behind_name, INUMBER)], entry_bits);

const ENTRY_FTYPE: Format = Format::structure_sized(
    &[
        NAMELEN,
        OFFSET,
        NAME,
        Row::computed("inumber", behind_ftype, INUMBER),
        Row::computed("filetype", behind_name, U8),
    ],
    entry_bits,
);

/// A directory in short form without file types.
pub const DIR2_SHORT: Format = Format::structure_sized(
    &[Row::new("hdr", 0, HEADER), Row::computed("list", entry, ENTRY).counted(entry_count).array()],
    directory_bits,
);

/// A directory in short form with file types.
pub const DIR3_SHORT: Format = Format::structure_sized(
    &[Row::new("hdr", 0, HEADER), Row::computed("list", entry, ENTRY_FTYPE).counted(entry_count).array()],
    directory_bits,
);
