//! Directories of one block: entries from the front, leaf entries at the end. Source: Linux
//! `fs/xfs/libxfs/xfs_dir2_block.c`.

use zerocopy::IntoBytes;

use super::data::DataBlock;
use super::{Directory, Form, NewEntry, damaged};
use crate::error::Result;
use crate::mkfs::write::inode::Data;
use crate::mkfs::write::maker::Maker;
use crate::ondisk::OnDisk;
use crate::ondisk::dir_data::{DATA_ALIGN, RawDirBlockTail, ftype};
use crate::ondisk::dir_leaf::RawDirLeafEntry;
use crate::ondisk::name_hash::NameHash;

impl Maker<'_> {
    /// Moves a directory out of its inode into a block.
    pub(super) fn short_to_block(&mut self, directory: &mut Directory) -> Result<()> {
        let Form::Short(entries) = std::mem::replace(&mut directory.form, Form::Block) else { return Err(damaged()) };
        directory.inode.data = Data::Extents(Vec::new());
        directory.inode.size = 0;
        let at = self.grow_directory(directory, 0)?;
        let byte = self.file_byte(&directory.inode, at)?;
        let (owner, parent, hash, shape) = (directory.inode.ino, directory.parent, self.name_hash(), self.shape);

        let mut block = DataBlock::new(shape, self.directory_block(directory, at)?);
        block.init(shape, owner, byte)?;
        block.set_single(true)?;
        let first = block.first();
        let count = entries.len() + 2;
        let tail = RawDirBlockTail::SIZE + count * RawDirLeafEntry::SIZE;
        let end = block.bytes.len() - tail;
        block.use_free(first, end, tail)?;
        block.set_leaf_count(count)?;
        block.use_free(first, first, end - first)?;

        let mut leaves = Vec::with_capacity(count);
        let mut next = first;
        let dots = [(&b"."[..], owner, ftype::DIR), (&b".."[..], parent, ftype::DIR)];
        let listed = entries.iter().map(|entry| (&entry.name[..], entry.ino, entry.ftype));
        for (name, ino, kind) in dots.into_iter().chain(listed) {
            block.put(next, ino, name, kind)?;
            // the names of the directory itself and its parent are hashed alike in all directories
            let hash = if leaves.len() < dots.len() { NameHash::Bytes } else { hash };
            leaves.push(leaf_entry(hash.hash(name), next)?);
            next += block.entry_len(name.len());
        }
        if next < end {
            block.put_unused(next, end - next)?;
            block.remember(next, end - next)?;
        }
        leaves.sort_by_key(|leaf| leaf.hashval.get());
        for (slot, leaf) in block.bytes[end..].chunks_exact_mut(RawDirLeafEntry::SIZE).zip(&leaves) {
            slot.copy_from_slice(leaf.as_bytes());
        }
        block.seal();
        Ok(())
    }

    /// Adds an entry to the block; `false` if it does not fit, and nothing has changed.
    pub(super) fn add_to_block(&mut self, directory: &Directory, entry: &NewEntry<'_>) -> Result<bool> {
        let (shape, hash) = (self.shape, self.name_hash().hash(entry.name));
        let mut block = DataBlock::new(shape, self.directory_block(directory, 0)?);
        let len = block.entry_len(entry.name.len());
        let (leaves, count) = block.leaf_entries()?;
        let end = block.before(leaves).and_then(|at| Some((at, block.unused_len(at)?)));
        let Some((end_at, end_len)) = end else { return Ok(false) };
        let (at, room) = block.largest()?;
        let fits = if at == end_at {
            room >= len + RawDirLeafEntry::SIZE
        } else {
            end_len >= RawDirLeafEntry::SIZE && room >= len
        };
        if !fits {
            return Ok(false);
        }
        let rescan = block.use_free(end_at, end_at + end_len - RawDirLeafEntry::SIZE, RawDirLeafEntry::SIZE)?;
        block.set_leaf_count(count + 1)?;
        let start = leaves - RawDirLeafEntry::SIZE;
        if rescan {
            block.rescan(start)?;
        }
        let before = (0..count)
            .take_while(|&index| leaf_at(block.bytes, leaves, index).is_some_and(|leaf| leaf.hashval.get() < hash));
        let moved = before.count() * RawDirLeafEntry::SIZE;
        block.bytes.copy_within(leaves..leaves + moved, start);
        let slot = block.bytes.get_mut(start + moved..start + moved + RawDirLeafEntry::SIZE).ok_or_else(damaged)?;
        slot.copy_from_slice(leaf_entry(hash, at)?.as_bytes());
        let rescan = block.use_free(at, at, len)?;
        block.put_entry(at, entry)?;
        if rescan {
            block.rescan(start)?;
        }
        block.seal();
        Ok(true)
    }
}

/// Leaf entry `index` of those that begin at `start`.
pub(super) fn leaf_at(bytes: &[u8], start: usize, index: usize) -> Option<RawDirLeafEntry> {
    let (entry, _) = RawDirLeafEntry::prefix(bytes.get(start + index * RawDirLeafEntry::SIZE..)?)?;
    Some(*entry)
}

/// The leaf entry for an entry at byte `at` of the directory.
pub(super) fn leaf_entry(hash: u32, at: usize) -> Result<RawDirLeafEntry> {
    let address = u32::try_from(at / DATA_ALIGN).map_err(|_| damaged())?;
    Ok(RawDirLeafEntry { hashval: hash.into(), address: address.into() })
}
