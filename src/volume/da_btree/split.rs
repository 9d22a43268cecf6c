//! Blocks added behind a leaf, and what that makes of the nodes above (`xfs_da3_split`).

use super::file::DaFile;
use super::node::{block, links, number, set_links};
use super::path::{Path, Step};
use crate::error::{Error, Result};
use crate::forms::encode::{Siblings, encode_da_node};
use crate::geometry::FileBlock;
use crate::ondisk::da_block::{DA_NODE_MAXDEPTH, RawDaNodeEntry};
use crate::transaction::Logged;

/// The contents of a leaf, links and address left out, and its greatest hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::volume) struct NewLeaf {
    pub bytes: Vec<u8>,
    pub last_hash: u32,
}

/// Puts `leaves`, in order, in the place of the one that `path` leads to: its block takes the first, new ones the others.
///
/// # Errors
/// `NoSpace` when there is no block for them, or the tree would grow too high.
pub(in crate::volume) fn install(file: &mut DaFile<'_, '_>, mut path: Path, leaves: Vec<NewLeaf>) -> Result<()> {
    if leaves.len() > 1 && !path.has_nodes() {
        lift_root(file, &mut path, leaves[0].last_hash)?;
    }
    let kind = file.hash_kind();
    let mut leaves = leaves.into_iter();
    let first = leaves.next().ok_or_else(|| Error::Internal("a leaf is split into nothing".to_owned()))?;
    let old = file.read(kind, path.leaf)?;
    let mut bytes = first.bytes;
    set_links(&mut bytes, links(&old));
    keep_address(&mut bytes, &old, file.crc());
    file.write(kind, path.leaf, bytes)?;
    let mut added = Vec::new();
    let mut before = path.leaf;
    for leaf in leaves {
        let at = file.add(file.root())?;
        insert_behind(file, before, at, leaf.bytes)?;
        added.push(RawDaNodeEntry { hashval: leaf.last_hash.into(), before: number(at)?.into() });
        before = at;
    }
    if added.is_empty() {
        return path.fix_leaf_hash(file, first.last_hash);
    }
    add_children(file, &path, first.last_hash, added)
}

/// The identity that a block has keeps it, so that the journal need not hold it again.
fn keep_address(new: &mut [u8], old: &[u8], crc: bool) {
    use crate::ondisk::OnDisk;
    use crate::ondisk::da_block::RawDa3Blkinfo;
    if !crc {
        return;
    }
    if let (Some((new, _)), Some((old, _))) = (RawDa3Blkinfo::prefix_mut(new), RawDa3Blkinfo::prefix(old)) {
        let hdr = new.hdr;
        *new = *old;
        new.hdr = hdr;
    }
}

/// Writes a new block and puts it into the chain behind `before`.
fn insert_behind(file: &mut DaFile<'_, '_>, before: FileBlock, at: FileBlock, mut bytes: Vec<u8>) -> Result<()> {
    let kind = file.hash_kind();
    let (here, back) = (number(at)?, number(before)?);
    let forw = links(&file.read(kind, before)?).forw;
    set_links(&mut bytes, Siblings { forw, back });
    file.write_new(kind, at, bytes, &Logged::All)?;
    // the root of a tree of attributes is block 0, which has no neighbours
    let mut old = file.read(kind, before)?.to_vec();
    let back = links(&old).back;
    set_links(&mut old, Siblings { forw: here, back });
    file.write(kind, before, old)?;
    file.relink(forw, |links| links.back = here)
}

/// The root, a leaf whose greatest hash is `hash`, moves to a block of its own, and a node takes its place.
pub(in crate::volume) fn lift_root(file: &mut DaFile<'_, '_>, path: &mut Path, hash: u32) -> Result<()> {
    let at = file.add(file.root())?;
    let bytes = file.read(file.hash_kind(), file.root())?.to_vec();
    file.write_new(file.hash_kind(), at, bytes, &Logged::All)?;
    let only = RawDaNodeEntry { hashval: hash.into(), before: number(at)?.into() };
    put_root(file, 1, &[only])?;
    path.steps.push(Step { at: file.root(), index: 0 });
    path.leaf = at;
    Ok(())
}

/// Makes the root a node. Of the journal, it needs the header and the entries alone.
fn put_root(file: &mut DaFile<'_, '_>, level: u16, entries: &[RawDaNodeEntry]) -> Result<()> {
    if level >= DA_NODE_MAXDEPTH {
        return Err(Error::NoSpace(format!("the hash tree of inode {} has too many levels", file.ino)));
    }
    let at = file.root();
    write_node(file, at, level, Siblings::default(), entries)
}

fn write_node(
    file: &mut DaFile<'_, '_>,
    at: FileBlock,
    level: u16,
    siblings: Siblings,
    entries: &[RawDaNodeEntry],
) -> Result<()> {
    let size = u32::try_from(file.size()).map_err(|_| Error::Internal("a block of 64 KiB at most".to_owned()))?;
    let full = || Error::Internal("a node is given more entries than it holds".to_owned());
    let bytes = encode_da_node(size, &file.owner(), siblings, level, entries).ok_or_else(full)?;
    let used = file.size() - file.node_entries() * size_of::<RawDaNodeEntry>() + size_of_val(entries);
    file.write_new(file.hash_kind(), at, bytes, &Logged::Except(used..file.size()))
}

/// The leaf that `path` leads to has `hash` as its greatest now, and `added` follow it.
fn add_children(file: &mut DaFile<'_, '_>, path: &Path, hash: u32, added: Vec<RawDaNodeEntry>) -> Result<()> {
    let (mut hash, mut added) = (hash, added);
    for depth in (0..path.steps.len()).rev() {
        let Step { at, index } = path.steps[depth];
        let mut node = file.node(at)?;
        node.entries[index].hashval.set(hash);
        node.entries.splice(index + 1..index + 1, added);
        if node.entries.len() <= file.node_entries() {
            file.store_node(at, &node.entries)?;
            return path.fix_hash(file, depth, node.last_hash());
        }
        let right = node.entries.split_off(node.entries.len() / 2);
        let right_hash = right.last().map_or(0, |entry| entry.hashval.get());
        if depth == 0 {
            return split_root(file, node.level, &node.entries, &right);
        }
        let new = file.add(file.root())?;
        file.store_node(at, &node.entries)?;
        let old_links = links(&file.read(file.hash_kind(), at)?);
        let (here, back) = (number(new)?, number(at)?);
        write_node(file, new, node.level, Siblings { forw: old_links.forw, back }, &right)?;
        file.relink(back, |links| links.forw = here)?;
        file.relink(old_links.forw, |links| links.back = here)?;
        hash = node.last_hash();
        added = vec![RawDaNodeEntry { hashval: right_hash.into(), before: here.into() }];
    }
    Err(Error::Internal("a tree without nodes is given children".to_owned()))
}

/// Both halves of the root get blocks of their own.
fn split_root(file: &mut DaFile<'_, '_>, level: u16, left: &[RawDaNodeEntry], right: &[RawDaNodeEntry]) -> Result<()> {
    if level + 1 >= DA_NODE_MAXDEPTH {
        return Err(Error::NoSpace(format!("the hash tree of inode {} has too many levels", file.ino)));
    }
    let mut entries = Vec::new();
    let second = file.add(file.root())?;
    let first = file.add(file.root())?;
    let (first_number, second_number) = (number(first)?, number(second)?);
    write_node(file, first, level, Siblings { forw: second_number, back: 0 }, left)?;
    write_node(file, second, level, Siblings { forw: 0, back: first_number }, right)?;
    for (half, before) in [(left, first_number), (right, second_number)] {
        let hashval = half.last().map_or_else(|| 0.into(), |entry| entry.hashval);
        entries.push(RawDaNodeEntry { hashval, before: before.into() });
    }
    debug_assert!(entries.iter().all(|entry| block(entry.before.get()) != file.root()));
    put_root(file, level + 1, &entries)
}
