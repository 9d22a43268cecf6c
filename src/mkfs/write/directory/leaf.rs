//! Directories of several data blocks with one leaf: leaf entries from the front, the largest free range of each data block at
//! the end. Source: Linux `fs/xfs/libxfs/xfs_dir2_leaf.c`.

use zerocopy::{FromZeros, IntoBytes};

use super::block::{leaf_at, leaf_entry};
use super::data::DataBlock;
use super::{Directory, Form, NewEntry, damaged};
use crate::error::Result;
use crate::geometry::Ino;
use crate::mkfs::write::maker::Maker;
use crate::mkfs::write::shape::Shape;
use crate::ondisk::da_block::RawDa3Blkinfo;
use crate::ondisk::dir_leaf::{
    DIR2_LEAF1_MAGIC, DIR2_LEAFN_MAGIC, DIR3_LEAF1_MAGIC, DIR3_LEAFN_MAGIC, RawDir2LeafHdr, RawDir3LeafHdr,
    RawDirLeafEntry, RawDirLeafTail,
};
use crate::ondisk::{Be16, OnDisk, crc};

/// A leaf.
pub(super) struct LeafBlock<'a> {
    /// The directory block.
    pub bytes: &'a mut [u8],
    crc: bool,
}

impl<'a> LeafBlock<'a> {
    /// The leaf in `bytes`.
    pub fn new(shape: &Shape, bytes: &'a mut [u8]) -> Self {
        LeafBlock { bytes, crc: shape.layout.features.crc }
    }

    /// Makes the block, which lies at byte `offset` of the device, an empty leaf.
    pub fn init(&mut self, shape: &Shape, owner: Ino, offset: u64, single: bool) -> Result<()> {
        if self.crc {
            let (head, _) = RawDir3LeafHdr::prefix_mut(self.bytes).ok_or_else(damaged)?;
            *head = RawDir3LeafHdr::new_zeroed();
            head.info.blkno.set(offset / 512);
            head.info.owner.set(owner.0);
            head.info.uuid = *shape.layout.uuid.as_bytes();
        } else {
            let (head, _) = RawDir2LeafHdr::prefix_mut(self.bytes).ok_or_else(damaged)?;
            *head = RawDir2LeafHdr::new_zeroed();
        }
        self.set_single(single)
    }

    /// Says whether it is the only leaf.
    pub fn set_single(&mut self, single: bool) -> Result<()> {
        let magic = match (self.crc, single) {
            (true, true) => DIR3_LEAF1_MAGIC,
            (true, false) => DIR3_LEAFN_MAGIC,
            (false, true) => DIR2_LEAF1_MAGIC,
            (false, false) => DIR2_LEAFN_MAGIC,
        };
        // the magic number has the same place in both versions
        let (head, _) = RawDir2LeafHdr::prefix_mut(self.bytes).ok_or_else(damaged)?;
        head.info.magic.set(magic);
        Ok(())
    }

    /// Where the entries begin.
    pub fn first(&self) -> usize {
        if self.crc { RawDir3LeafHdr::SIZE } else { RawDir2LeafHdr::SIZE }
    }

    /// Entries that a leaf without the table of free space holds.
    pub fn capacity(&self) -> usize {
        (self.bytes.len() - self.first()) / RawDirLeafEntry::SIZE
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        let count = if self.crc {
            RawDir3LeafHdr::prefix(self.bytes).map(|(head, _)| head.count.get())
        } else {
            RawDir2LeafHdr::prefix(self.bytes).map(|(head, _)| head.count.get())
        };
        usize::from(count.unwrap_or(0))
    }

    /// Sets the number of entries.
    pub fn set_len(&mut self, len: usize) -> Result<()> {
        let len = u16::try_from(len).map_err(|_| damaged())?;
        if self.crc {
            RawDir3LeafHdr::prefix_mut(self.bytes).ok_or_else(damaged)?.0.count.set(len);
        } else {
            RawDir2LeafHdr::prefix_mut(self.bytes).ok_or_else(damaged)?.0.count.set(len);
        }
        Ok(())
    }

    /// Entry `index`.
    pub fn get(&self, index: usize) -> Option<RawDirLeafEntry> {
        leaf_at(self.bytes, self.first(), index)
    }

    /// Number of entries whose hash is less than `hash`; they come first.
    pub fn position(&self, hash: u32) -> usize {
        (0..self.len())
            .find(|&index| self.get(index).is_none_or(|entry| entry.hashval.get() >= hash))
            .unwrap_or(self.len())
    }

    /// Puts an entry before entry `index`.
    pub fn insert(&mut self, index: usize, entry: &RawDirLeafEntry) -> Result<()> {
        let len = self.len();
        let start = self.first() + index * RawDirLeafEntry::SIZE;
        let end = self.first() + len * RawDirLeafEntry::SIZE;
        if index < len {
            self.bytes.copy_within(start..end, start + RawDirLeafEntry::SIZE);
        }
        let slot = self.bytes.get_mut(start..start + RawDirLeafEntry::SIZE).ok_or_else(damaged)?;
        slot.copy_from_slice(entry.as_bytes());
        self.set_len(len + 1)
    }

    /// Number of data blocks in the table of free space.
    pub fn best_count(&self) -> Result<usize> {
        let tail = self.bytes.len() - RawDirLeafTail::SIZE;
        let (tail, _) = RawDirLeafTail::prefix(&self.bytes[tail..]).ok_or_else(damaged)?;
        usize::try_from(tail.bestcount.get()).map_err(|_| damaged())
    }

    fn set_best_count(&mut self, count: usize) -> Result<()> {
        let at = self.bytes.len() - RawDirLeafTail::SIZE;
        let (tail, _) = RawDirLeafTail::prefix_mut(&mut self.bytes[at..]).ok_or_else(damaged)?;
        tail.bestcount.set(u32::try_from(count).map_err(|_| damaged())?);
        Ok(())
    }

    /// Where the table of free space begins.
    fn bests_at(&self) -> Result<usize> {
        let tail = self.bytes.len() - RawDirLeafTail::SIZE;
        tail.checked_sub(self.best_count()? * size_of::<Be16>()).ok_or_else(damaged)
    }

    /// Largest free range of data block `index`.
    pub fn best(&self, index: usize) -> Result<u16> {
        let at = self.bests_at()? + index * size_of::<Be16>();
        let bytes = self.bytes.get(at..at + size_of::<Be16>()).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u16::from_be_bytes).ok_or_else(damaged)
    }

    /// Sets the largest free range of data block `index`.
    fn set_best(&mut self, index: usize, best: usize) -> Result<()> {
        let at = self.bests_at()? + index * size_of::<Be16>();
        let best = u16::try_from(best).map_err(|_| damaged())?;
        self.bytes.get_mut(at..at + size_of::<Be16>()).ok_or_else(damaged)?.copy_from_slice(&best.to_be_bytes());
        Ok(())
    }

    /// Makes room for one more data block at the end of the table.
    fn extend_bests(&mut self) -> Result<()> {
        let count = self.best_count()?;
        let from = self.bests_at()?;
        self.bytes.copy_within(from..from + count * size_of::<Be16>(), from - size_of::<Be16>());
        self.set_best_count(count + 1)
    }

    /// Computes the checksum.
    pub fn seal(&mut self) {
        if self.crc {
            crc::stamp(self.bytes, RawDa3Blkinfo::CRC_OFFSET);
        }
    }
}

impl Maker<'_> {
    /// Gives a directory of one block a leaf.
    pub(super) fn block_to_leaf(&mut self, directory: &mut Directory) -> Result<()> {
        let at = self.leaf_space();
        let at = self.grow_directory(directory, at)?;
        directory.form = Form::Leaf;
        let shape = self.shape;
        let mut block = DataBlock::new(shape, self.directory_block(directory, 0)?);
        let (start, count) = block.leaf_entries()?;
        let entries = block.bytes[start..start + count * RawDirLeafEntry::SIZE].to_vec();
        let len = block.bytes.len() - start;
        let rescan = block.release_tail(start, len)?;
        block.set_single(false)?;
        if rescan {
            block.rescan(start + len)?;
        }
        let (_, best) = block.largest()?;
        block.seal();

        let byte = self.file_byte(&directory.inode, at)?;
        let owner = directory.inode.ino;
        let mut leaf = LeafBlock::new(shape, self.directory_block(directory, at)?);
        leaf.init(shape, owner, byte, true)?;
        leaf.set_len(count)?;
        let first = leaf.first();
        leaf.bytes.get_mut(first..first + entries.len()).ok_or_else(damaged)?.copy_from_slice(&entries);
        leaf.set_best_count(1)?;
        leaf.set_best(0, best)?;
        leaf.seal();
        Ok(())
    }

    /// Adds an entry to a directory with one leaf; `false` if the leaf is full, and nothing has changed.
    pub(super) fn add_to_leaf(&mut self, directory: &mut Directory, entry: &NewEntry<'_>) -> Result<bool> {
        let (shape, hash, at) = (self.shape, self.name_hash().hash(entry.name), self.leaf_space());
        let mut leaf = LeafBlock::new(shape, self.directory_block(directory, at)?);
        let index = leaf.position(hash);
        let len = crate::ondisk::dir_data::entry_len(entry.name.len(), shape.layout.features.ftype);
        let count = leaf.best_count()?;
        let mut found = None;
        for block in 0..count {
            if usize::from(leaf.best(block)?) >= len {
                found = Some(block);
                break;
            }
        }
        let need = RawDirLeafEntry::SIZE + if found.is_none() { size_of::<Be16>() } else { 0 };
        let used = leaf.first() + leaf.len() * RawDirLeafEntry::SIZE;
        if leaf.bests_at()? - used < need {
            return Ok(false);
        }
        if found.is_none() {
            leaf.extend_bests()?;
        }
        let block = match found {
            Some(block) => block,
            None => self.add_data_block(directory)?,
        };
        let (offset, best) = self.add_to_data(directory, block, entry)?;
        let mut leaf = LeafBlock::new(shape, self.directory_block(directory, at)?);
        leaf.set_best(block, best)?;
        leaf.insert(index, &leaf_entry(hash, offset)?)?;
        leaf.seal();
        Ok(true)
    }

    /// Gives the directory another data block; says which.
    pub(super) fn add_data_block(&mut self, directory: &mut Directory) -> Result<usize> {
        let at = self.grow_directory(directory, 0)?;
        let (byte, owner, shape) = (self.file_byte(&directory.inode, at)?, directory.inode.ino, self.shape);
        DataBlock::new(shape, self.directory_block(directory, at)?).init(shape, owner, byte)?;
        usize::try_from(at / self.directory_blocks()).map_err(|_| damaged())
    }

    /// Puts an entry into the largest free range of a data block; gives its byte in the directory, and the range that
    /// is the largest now.
    pub(super) fn add_to_data(
        &mut self,
        directory: &Directory,
        index: usize,
        entry: &NewEntry<'_>,
    ) -> Result<(usize, usize)> {
        let (shape, size) = (self.shape, self.directory_bytes());
        let at = index as u64 * self.directory_blocks();
        let mut block = DataBlock::new(shape, self.directory_block(directory, at)?);
        let (offset, _) = block.largest()?;
        let rescan = block.use_free(offset, offset, block.entry_len(entry.name.len()))?;
        block.put_entry(offset, entry)?;
        if rescan {
            block.rescan(size)?;
        }
        let (_, best) = block.largest()?;
        block.seal();
        Ok((index * size + offset, best))
    }
}
