//! Entries and unused ranges of directory blocks: one table has the fields of both, and what stands first says which
//! are there.

use crate::db::field::at;
use crate::db::field::formats::{CHARACTERS, INO, U8, X16};
use crate::db::field::{Bits, Format, Object, Row};
use crate::db::types::TypeId;
use crate::ondisk::dir_data::{DATA_ALIGN, DATA_FREE_TAG, RawDirDataEntry, RawDirDataUnused, entry_len};
use crate::ondisk::{Be16, OnDisk};

/// Bytes of the tag that ends entries and unused ranges.
const TAG: usize = size_of::<Be16>();

/// What stands at a place of a directory block.
enum Item {
    /// An entry with a name of so many bytes.
    Entry { namelen: usize },
    /// An unused range of so many bytes.
    Unused { length: usize },
}

fn item(object: &Object<'_>, at: usize) -> Option<Item> {
    let start = at.checked_mul(8)?;
    let unused: Option<&RawDirDataUnused> = object.structure(start);
    if let Some(unused) = unused.filter(|unused| unused.freetag.get() == DATA_FREE_TAG) {
        return Some(Item::Unused { length: usize::from(unused.length.get()) });
    }
    let entry: &RawDirDataEntry = object.structure(start)?;
    Some(Item::Entry { namelen: usize::from(entry.namelen) })
}

fn item_len(object: &Object<'_>, item: &Item) -> usize {
    match *item {
        Item::Entry { namelen } => entry_len(namelen, object.geometry.features.has_ftype()),
        Item::Unused { length } => length,
    }
}

/// Where what follows the entry or range at `at` begins. A damaged length leads on by the least that there can be, so
/// that a walk ends.
pub(super) fn entry_after(object: &Object<'_>, at: usize) -> usize {
    let length = item(object, at).map_or(0, |item| item_len(object, &item));
    at.saturating_add(length.max(DATA_ALIGN))
}

/// A tag that is all there says that a range is unused, even where its length is cut off.
fn is_unused(object: &Object<'_>, start: Bits) -> Option<bool> {
    object.number(start, TAG * 8).map(|tag| tag == u64::from(DATA_FREE_TAG))
}

/// Whether the field that ends `bytes` behind the start is all there, in an entry or a range.
fn holds<const UNUSED: bool>(object: &Object<'_>, start: Bits, bytes: usize) -> bool {
    is_unused(object, start) == Some(UNUSED) && object.from(start).len() >= bytes
}

fn if_freetag(object: &Object<'_>, start: Bits) -> usize {
    usize::from(holds::<true>(object, start, TAG))
}

fn if_length(object: &Object<'_>, start: Bits) -> usize {
    usize::from(holds::<true>(object, start, RawDirDataUnused::SIZE))
}

fn if_inumber(object: &Object<'_>, start: Bits) -> usize {
    usize::from(holds::<false>(object, start, std::mem::offset_of!(RawDirDataEntry, namelen)))
}

fn if_namelen(object: &Object<'_>, start: Bits) -> usize {
    usize::from(holds::<false>(object, start, RawDirDataEntry::SIZE))
}

fn name_length(object: &Object<'_>, start: Bits) -> usize {
    let length = match item(object, start / 8) {
        Some(Item::Entry { namelen }) => namelen,
        _ => 0,
    };
    if object.from(start).len() >= RawDirDataEntry::SIZE + length { length } else { 0 }
}

fn tag(object: &Object<'_>, start: Bits, _: usize) -> Bits {
    let length = item(object, start / 8).map_or(0, |item| item_len(object, &item));
    length.saturating_sub(TAG).saturating_mul(8)
}

fn if_tag(object: &Object<'_>, start: Bits) -> usize {
    let there = item(object, start / 8).is_some_and(|item| {
        let length = item_len(object, &item);
        length >= TAG && object.from(start).len() >= length
    });
    usize::from(there)
}

/// The file type stands behind the name. Unused ranges have none; there the first byte of the tag is shown.
fn ftype(object: &Object<'_>, start: Bits, index: usize) -> Bits {
    match item(object, start / 8) {
        Some(Item::Entry { namelen }) => (RawDirDataEntry::SIZE + namelen).saturating_mul(8),
        _ => tag(object, start, index),
    }
}

fn size(object: &Object<'_>, start: Bits, _: usize) -> Bits {
    item(object, start / 8).map_or(0, |item| item_len(object, &item)).saturating_mul(8)
}

const ROWS: [Row; 6] = [
    Row::new("freetag", at!(RawDirDataUnused, freetag), X16).counted(if_freetag),
    Row::new("inumber", at!(RawDirDataEntry, inumber), INO).counted(if_inumber).leads_to(TypeId::Inode),
    Row::new("length", at!(RawDirDataUnused, length), X16).counted(if_length),
    Row::new("namelen", at!(RawDirDataEntry, namelen), U8).counted(if_namelen),
    Row::new("name", RawDirDataEntry::SIZE * 8, CHARACTERS).counted(name_length),
    Row::computed("tag", tag, X16).counted(if_tag),
];

const ROWS_FTYPE: [Row; 7] =
    [ROWS[0], ROWS[1], ROWS[2], ROWS[3], ROWS[4], Row::computed("filetype", ftype, U8), ROWS[5]];

/// An entry or an unused range, version 4.
pub(super) const ENTRY: Format = Format::structure_sized(&ROWS, size);
/// An entry or an unused range, version 5.
pub(super) const ENTRY_FTYPE: Format = Format::structure_sized(&ROWS_FTYPE, size);
