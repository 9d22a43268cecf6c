//! Directories with a hash btree, and an index of the free space of their data blocks. Source: Linux
//! `fs/xfs/libxfs/xfs_dir2_node.c` and `xfs_da_btree.c`.

use super::block::leaf_entry;
use super::leaf::LeafBlock;
use super::tree::{NodeBlock, links};
use super::{Directory, Form, NewEntry, damaged};
use crate::error::Result;
use crate::mkfs::write::maker::Maker;
use crate::ondisk::OnDisk;
use crate::ondisk::da_block::{RawDa3Blkinfo, RawDaNodeEntry};
use crate::ondisk::dir_data::entry_len;
use crate::ondisk::dir_leaf::RawDirLeafEntry;

/// A block on the way from the root to a leaf.
#[derive(Clone, Copy, Debug)]
struct Stop {
    /// Block of the file.
    at: u64,
    /// Entry that leads on, or is to be inserted.
    index: usize,
}

/// A block that was split off, for the level above.
#[derive(Clone, Copy, Debug)]
struct Added {
    at: u64,
    hash: u32,
}

impl Maker<'_> {
    /// Makes the leaf of a directory the first of a hash btree.
    pub(super) fn leaf_to_node(&mut self, directory: &mut Directory) -> Result<()> {
        self.add_free_index(directory, 0)?;
        directory.form = Form::Node;
        let (shape, at) = (self.shape, self.leaf_space());
        let mut leaf = LeafBlock::new(shape, self.directory_block(directory, at)?);
        let bests = (0..leaf.best_count()?).map(|index| leaf.best(index)).collect::<Result<Vec<_>>>()?;
        leaf.set_single(false)?;
        leaf.seal();
        self.set_free_index(directory, &bests)
    }

    /// Adds an entry to a directory with a hash btree.
    pub(super) fn add_to_node(&mut self, directory: &mut Directory, entry: &NewEntry<'_>) -> Result<()> {
        let hash = self.name_hash().hash(entry.name);
        let mut path = self.path_to(directory, hash)?;
        let len = entry_len(entry.name.len(), self.shape.layout.features.ftype);
        let block = match self.find_free(directory, len)? {
            Some(block) => block,
            None => {
                let block = self.add_data_block(directory)?;
                self.list_data_block(directory, block)?;
                block
            }
        };
        let (offset, best) = self.add_to_data(directory, block, entry)?;
        self.set_best(directory, block, best)?;
        let entry = leaf_entry(hash, offset)?;

        let shape = self.shape;
        let stop = path.pop().ok_or_else(damaged)?;
        let mut leaf = LeafBlock::new(shape, self.directory_block(directory, stop.at)?);
        if leaf.len() < leaf.capacity() {
            leaf.insert(stop.index, &entry)?;
            leaf.seal();
            let last = last_hash(&leaf)?;
            return self.fix_hashes(directory, &path, last);
        }
        self.split(directory, path, stop, &entry)
    }

    /// The way to the leaf where `hash` belongs.
    fn path_to(&mut self, directory: &Directory, hash: u32) -> Result<Vec<Stop>> {
        let (shape, mut at) = (self.shape, self.leaf_space());
        let mut path = Vec::new();
        loop {
            let bytes = self.directory_block(directory, at)?;
            if !NodeBlock::is_node(bytes) {
                let index = LeafBlock::new(shape, bytes).position(hash);
                path.push(Stop { at, index });
                return Ok(path);
            }
            let node = NodeBlock::new(shape, bytes);
            let index = node.position(hash)?;
            path.push(Stop { at, index });
            at = u64::from(node.get(index)?.before.get());
        }
    }

    /// Makes the nodes above a leaf say that its greatest hash is `last`.
    fn fix_hashes(&mut self, directory: &Directory, path: &[Stop], mut last: u32) -> Result<()> {
        let shape = self.shape;
        for stop in path.iter().rev() {
            let mut node = NodeBlock::new(shape, self.directory_block(directory, stop.at)?);
            let mut entry = node.get(stop.index)?;
            if entry.hashval.get() == last {
                break;
            }
            entry.hashval.set(last);
            node.set(stop.index, entry)?;
            node.seal();
            last = node.last_hash()?;
        }
        Ok(())
    }

    /// Splits a full leaf, and the nodes above it where they are full, too.
    fn split(
        &mut self,
        directory: &mut Directory,
        mut path: Vec<Stop>,
        leaf: Stop,
        entry: &RawDirLeafEntry,
    ) -> Result<()> {
        let (mut added, last) = self.split_leaf(directory, leaf, entry)?;
        self.fix_hashes(directory, &path, last)?;
        let mut below = Added { at: leaf.at, hash: last };
        while let Some(stop) = path.pop() {
            let Some((split, last)) = self.add_to_index(directory, stop, added)? else { return Ok(()) };
            self.fix_hashes(directory, &path, last)?;
            below = Added { at: stop.at, hash: last };
            added = split;
        }
        self.split_root(directory, below, added)
    }

    /// Moves half of a leaf to a new one, and inserts the entry; gives the new one, and the greatest hash of the old one.
    fn split_leaf(&mut self, directory: &mut Directory, stop: Stop, entry: &RawDirLeafEntry) -> Result<(Added, u32)> {
        let at = self.leaf_space();
        let new = self.grow_directory(directory, at)?;
        let (shape, owner, byte) = (self.shape, directory.inode.ino, self.file_byte(&directory.inode, new)?);
        let mut old = LeafBlock::new(shape, self.directory_block(directory, stop.at)?);
        let len = old.len();
        let mid = len / 2;
        let middle = old.get(mid).ok_or_else(damaged)?.hashval.get();
        let goes_left = len % 2 == 0 || entry.hashval.get() <= middle;
        let moved = len - mid + usize::from(!goes_left);
        let kept = len - moved;
        let entries = (kept..len).map(|index| old.get(index).ok_or_else(damaged)).collect::<Result<Vec<_>>>()?;
        old.set_len(kept)?;
        let into_old = kept > moved || (kept == moved && stop.index <= kept);
        if into_old {
            old.insert(stop.index, entry)?;
        }
        let last = last_hash(&old)?;

        let mut leaf = LeafBlock::new(shape, self.directory_block(directory, new)?);
        leaf.init(shape, owner, byte, false)?;
        for (index, moved) in entries.iter().enumerate() {
            leaf.insert(index, moved)?;
        }
        if !into_old {
            leaf.insert(stop.index - kept, entry)?;
        }
        let added = Added { at: new, hash: last_hash(&leaf)? };
        self.link_behind(directory, stop.at, new)?;
        Ok((added, last))
    }

    /// Links the new block `new` behind block `old` at their level, and computes the checksums of both.
    fn link_behind(&mut self, directory: &Directory, old: u64, new: u64) -> Result<()> {
        let narrow = |at: u64| u32::try_from(at).map_err(|_| damaged());
        let info = links(self.directory_block(directory, old)?)?;
        let behind = info.forw.get();
        info.forw.set(narrow(new)?);
        let info = links(self.directory_block(directory, new)?)?;
        info.forw.set(behind);
        info.back.set(narrow(old)?);
        if behind != 0 {
            links(self.directory_block(directory, u64::from(behind))?)?.back.set(narrow(new)?);
            self.seal(directory, u64::from(behind))?;
        }
        self.seal(directory, old)?;
        self.seal(directory, new)
    }

    /// Enters a block into the node above it; a full node is split. Gives the new node, and the greatest hash of the old.
    fn add_to_index(&mut self, directory: &mut Directory, stop: Stop, added: Added) -> Result<Option<(Added, u32)>> {
        let shape = self.shape;
        let entry = RawDaNodeEntry {
            hashval: added.hash.into(),
            before: u32::try_from(added.at).map_err(|_| damaged())?.into(),
        };
        let mut node = NodeBlock::new(shape, self.directory_block(directory, stop.at)?);
        if node.len() < node.capacity() {
            node.insert(stop.index + 1, entry)?;
            node.seal();
            return Ok(None);
        }
        let at = self.leaf_space();
        let new = self.grow_directory(directory, at)?;
        let (owner, byte) = (directory.inode.ino, self.file_byte(&directory.inode, new)?);
        let mut node = NodeBlock::new(shape, self.directory_block(directory, stop.at)?);
        let level = node.level();
        let len = node.len();
        let kept = len - len / 2;
        let entries = (kept..len).map(|index| node.get(index)).collect::<Result<Vec<_>>>()?;
        node.set_len(kept)?;
        let into_old = stop.index < kept;
        if into_old {
            node.insert(stop.index + 1, entry)?;
        }
        let last = node.last_hash()?;
        let mut split = NodeBlock::new(shape, self.directory_block(directory, new)?);
        split.init(shape, owner, byte, level)?;
        for (index, moved) in entries.into_iter().enumerate() {
            split.insert(index, moved)?;
        }
        if !into_old {
            split.insert(stop.index - kept + 1, entry)?;
        }
        let added = Added { at: new, hash: split.last_hash()? };
        self.link_behind(directory, stop.at, new)?;
        Ok(Some((added, last)))
    }

    /// The root was split: moves it to a new block, and makes its place the root over both.
    fn split_root(&mut self, directory: &mut Directory, old: Added, added: Added) -> Result<()> {
        let shape = self.shape;
        let moved = self.grow_directory(directory, old.at)?;
        let (owner, root_byte) = (directory.inode.ino, self.file_byte(&directory.inode, old.at)?);
        let moved_byte = self.file_byte(&directory.inode, moved)?;
        let bytes = self.directory_block(directory, old.at)?;
        let (level, used) = if NodeBlock::is_node(bytes) {
            let node = NodeBlock::new(shape, bytes);
            (node.level() + 1, node.first() + node.len() * RawDaNodeEntry::SIZE)
        } else {
            let leaf = LeafBlock::new(shape, bytes);
            (1, leaf.first() + leaf.len() * RawDirLeafEntry::SIZE)
        };
        let copy = bytes.get(..used).ok_or_else(damaged)?.to_vec();
        let target = self.directory_block(directory, moved)?;
        target.get_mut(..used).ok_or_else(damaged)?.copy_from_slice(&copy);
        if shape.layout.features.crc {
            RawDa3Blkinfo::prefix_mut(target).ok_or_else(damaged)?.0.blkno.set(moved_byte / 512);
        }
        let narrow = |at: u64| u32::try_from(at).map_err(|_| damaged());
        let mut root = NodeBlock::new(shape, self.directory_block(directory, old.at)?);
        root.init(shape, owner, root_byte, level)?;
        root.set(0, RawDaNodeEntry { hashval: old.hash.into(), before: narrow(moved)?.into() })?;
        root.set(1, RawDaNodeEntry { hashval: added.hash.into(), before: narrow(added.at)?.into() })?;
        root.set_len(2)?;
        links(self.directory_block(directory, added.at)?)?.back.set(narrow(moved)?);
        for at in [old.at, moved, added.at] {
            self.seal(directory, at)?;
        }
        Ok(())
    }

    /// Computes the checksum of a leaf or node.
    fn seal(&mut self, directory: &Directory, at: u64) -> Result<()> {
        let shape = self.shape;
        LeafBlock::new(shape, self.directory_block(directory, at)?).seal();
        Ok(())
    }
}

/// The greatest hash of a leaf.
fn last_hash(leaf: &LeafBlock<'_>) -> Result<u32> {
    let last = leaf.len().checked_sub(1).and_then(|index| leaf.get(index)).ok_or_else(damaged)?;
    Ok(last.hashval.get())
}
