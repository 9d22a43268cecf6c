//! Checks of directory blocks (Linux `__xfs_dir3_data_check`, `xfs_dir3_leaf_check_int`, `xfs_da3_node_verify`,
//! `xfs_dir3_free_verify`).

use std::collections::HashSet;

use super::checks::Checks;
use crate::error::{Check, Rule};
use crate::geometry::Ino;
use crate::ondisk::da_block::DaNode;
use crate::ondisk::dir_data::{DATA_ALIGN, DataKind, DirData, DirDataEntry, DirDataItem, ftype};
use crate::ondisk::dir_leaf::{DirFree, DirLeaf, NULL_DATAPTR, check_leaf_entries};
use crate::ondisk::name_hash::NameHash;

/// Notes what decoders found, except the magic number, which was checked before.
pub(super) fn note_all(checks: &mut Checks<'_>, found: impl IntoIterator<Item = Check>) {
    for check in found {
        if check.rule != Rule::Magic {
            checks.note(check, String::new());
        }
    }
}

pub(super) fn verify_data(checks: &mut Checks<'_>) {
    let features = &checks.geometry.features;
    let data = match DirData::decode(checks.bytes, features.has_crc(), features.has_ftype()) {
        Ok(data) => data,
        Err(check) => return note_all(checks, [check]),
    };
    note_all(checks, data.verify());
    let mut entries = 0;
    for item in data.items() {
        let Ok(DirDataItem::Entry(entry)) = item else { continue };
        entries += 1;
        verify_entry(checks, &entry);
    }
    if data.kind == DataKind::Block {
        verify_block_leaf(checks, &data, entries);
    }
}

fn verify_entry(checks: &mut Checks<'_>, entry: &DirDataEntry<'_>) {
    let ino = Ino(entry.inumber);
    let fine = checks.geometry.is_valid_ino(ino) && !checks.geometry.is_internal_ino(ino);
    checks.require(fine, "inumber", Rule::Range, || format!("{ino} at {}", entry.offset));
    if let Some(kind) = entry.ftype {
        checks.require(kind < ftype::MAX, "ftype", Rule::Range, || format!("{kind} at {}", entry.offset));
    }
}

/// In a directory of one block each entry has its leaf entry, and no leaf entry is left over.
fn verify_block_leaf(checks: &mut Checks<'_>, data: &DirData<'_>, entries: usize) {
    note_all(
        checks,
        check_leaf_entries(data.leaf, data.stale).into_iter().map(|check| match check.field {
            "stale" => Check::new("dir2_data", "tail.stale", check.rule),
            field => Check::new("dir2_data", field, check.rule),
        }),
    );
    let stale = usize::try_from(data.stale).unwrap_or(usize::MAX);
    let live = data.leaf.len().saturating_sub(stale);
    checks.require(live == entries, "tail.count", Rule::Mismatch, || format!("{live}, there are {entries} entries"));
    let hash = if checks.geometry.features.has_asciici() { NameHash::AsciiCi } else { NameHash::Bytes };
    let leaf: HashSet<(u32, u32)> = data.leaf.iter().map(|entry| (entry.hashval.get(), entry.address.get())).collect();
    for item in data.items() {
        let Ok(DirDataItem::Entry(entry)) = item else { continue };
        let address = u32::from(entry.offset) / DATA_UNIT;
        let found = leaf.contains(&(hash.hash(entry.name), address));
        checks.require(found, "leaf", Rule::Mismatch, || format!("no leaf entry for the entry at {}", entry.offset));
    }
}

/// Leaf entries point in units of this many bytes.
#[allow(clippy::cast_possible_truncation)] // 8
const DATA_UNIT: u32 = DATA_ALIGN as u32;

pub(super) fn verify_leaf(checks: &mut Checks<'_>) {
    let leaf = match DirLeaf::decode(checks.bytes, checks.geometry.features.has_crc()) {
        Ok(leaf) => leaf,
        Err(check) => return note_all(checks, [check]),
    };
    note_all(checks, leaf.verify());
    let blocks = leaf.bests.len() as u64;
    for entry in leaf.entries {
        let address = entry.address.get();
        let block = (u64::from(address) * u64::from(DATA_UNIT)) >> checks.geometry.directory.blklog;
        let fine = address == NULL_DATAPTR || block < blocks;
        checks.require(fine, "address", Rule::Range, || format!("in block {block} of {blocks}"));
    }
}

pub(super) fn verify_hash(checks: &mut Checks<'_>) {
    let crc = checks.geometry.features.has_crc();
    match DirLeaf::decode(checks.bytes, crc) {
        Err(check) if check.rule == Rule::Magic => verify_node(checks),
        Err(check) => note_all(checks, [check]),
        Ok(leaf) => note_all(checks, leaf.verify()),
    }
}

/// Nodes of directories and of attribute forks.
pub(super) fn verify_node(checks: &mut Checks<'_>) {
    match DaNode::decode(checks.bytes, checks.geometry.features.has_crc()) {
        Err(check) => note_all(checks, [check]),
        Ok(node) => note_all(checks, node.check_order()),
    }
}

pub(super) fn verify_free(checks: &mut Checks<'_>) {
    match DirFree::decode(checks.bytes, checks.geometry.features.has_crc()) {
        Err(check) => note_all(checks, [check]),
        Ok(free) => note_all(checks, free.verify()),
    }
}
