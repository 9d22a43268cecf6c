//! The index of the free space of the data blocks of a large directory. Source: Linux
//! `fs/xfs/libxfs/xfs_dir2_node.c`.

use zerocopy::FromZeros;

use super::{Directory, damaged};
use crate::error::Result;
use crate::geometry::Ino;
use crate::mkfs::write::maker::Maker;
use crate::mkfs::write::shape::Shape;
use crate::ondisk::dir_data::RawDir3BlkHdr;
use crate::ondisk::dir_leaf::{DIR2_FREE_MAGIC, DIR3_FREE_MAGIC, NULLDATAOFF, RawDir2FreeHdr, RawDir3FreeHdr};
use crate::ondisk::{Be16, Be32, OnDisk, crc};

/// A block of the index.
struct FreeBlock<'a> {
    bytes: &'a mut [u8],
    crc: bool,
}

impl<'a> FreeBlock<'a> {
    fn new(shape: &Shape, bytes: &'a mut [u8]) -> Self {
        FreeBlock { bytes, crc: shape.layout.features.crc }
    }

    /// Makes the block, which lies at byte `offset` of the device, an empty one whose first data block is `firstdb`.
    fn init(&mut self, shape: &Shape, owner: Ino, offset: u64, firstdb: usize) -> Result<()> {
        let first = u32::try_from(firstdb).map_err(|_| damaged())?;
        if self.crc {
            let (head, _) = RawDir3FreeHdr::prefix_mut(self.bytes).ok_or_else(damaged)?;
            *head = RawDir3FreeHdr::new_zeroed();
            head.hdr.magic.set(DIR3_FREE_MAGIC);
            head.hdr.blkno.set(offset / 512);
            head.hdr.owner.set(owner.0);
            head.hdr.uuid = *shape.layout.uuid.as_bytes();
            head.firstdb.set(first);
        } else {
            let (head, _) = RawDir2FreeHdr::prefix_mut(self.bytes).ok_or_else(damaged)?;
            *head = RawDir2FreeHdr::new_zeroed();
            head.magic.set(DIR2_FREE_MAGIC);
            head.firstdb.set(first);
        }
        Ok(())
    }

    fn header(&self) -> usize {
        if self.crc { RawDir3FreeHdr::SIZE } else { RawDir2FreeHdr::SIZE }
    }

    /// Counts of listed data blocks, and of those that exist.
    fn counts(&mut self) -> Result<(&mut Be32, &mut Be32)> {
        if self.crc {
            let (head, _) = RawDir3FreeHdr::prefix_mut(self.bytes).ok_or_else(damaged)?;
            Ok((&mut head.nvalid, &mut head.nused))
        } else {
            let (head, _) = RawDir2FreeHdr::prefix_mut(self.bytes).ok_or_else(damaged)?;
            Ok((&mut head.nvalid, &mut head.nused))
        }
    }

    fn slot(&mut self, index: usize) -> Result<&mut [u8; size_of::<Be16>()]> {
        let at = self.header() + index * size_of::<Be16>();
        self.bytes.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut()).ok_or_else(damaged)
    }

    fn best(&mut self, index: usize) -> Result<u16> {
        Ok(u16::from_be_bytes(*self.slot(index)?))
    }

    fn set_best(&mut self, index: usize, best: u16) -> Result<()> {
        *self.slot(index)? = best.to_be_bytes();
        Ok(())
    }

    fn seal(&mut self) {
        if self.crc {
            crc::stamp(self.bytes, RawDir3BlkHdr::CRC_OFFSET);
        }
    }
}

impl Maker<'_> {
    /// Data blocks that a block of the index lists.
    fn listed_blocks(&self) -> usize {
        let header = if self.shape.layout.features.crc { RawDir3FreeHdr::SIZE } else { RawDir2FreeHdr::SIZE };
        (self.directory_bytes() - header) / size_of::<Be16>()
    }

    /// Block of the file where block `number` of the index lies.
    fn free_index_at(&self, number: usize) -> u64 {
        self.free_space() + number as u64 * self.directory_blocks()
    }

    /// Gives the directory block `number` of the index.
    pub(super) fn add_free_index(&mut self, directory: &mut Directory, number: usize) -> Result<()> {
        let lowest = self.free_space();
        let at = self.grow_directory(directory, lowest)?;
        if at != self.free_index_at(number) {
            return Err(damaged());
        }
        directory.free_blocks = number + 1;
        let (shape, owner, byte) = (self.shape, directory.inode.ino, self.file_byte(&directory.inode, at)?);
        let first = number * self.listed_blocks();
        let mut block = FreeBlock::new(shape, self.directory_block(directory, at)?);
        block.init(shape, owner, byte, first)?;
        block.seal();
        Ok(())
    }

    /// Fills the first block of the index with what the only leaf said.
    pub(super) fn set_free_index(&mut self, directory: &Directory, bests: &[u16]) -> Result<()> {
        let (shape, at) = (self.shape, self.free_index_at(0));
        let mut block = FreeBlock::new(shape, self.directory_block(directory, at)?);
        for (index, &best) in bests.iter().enumerate() {
            block.set_best(index, best)?;
        }
        let count = u32::try_from(bests.len()).map_err(|_| damaged())?;
        let (valid, used) = block.counts()?;
        valid.set(count);
        used.set(count);
        block.seal();
        Ok(())
    }

    /// The last data block with `len` bytes free in one range.
    pub(super) fn find_free(&mut self, directory: &Directory, len: usize) -> Result<Option<usize>> {
        let (shape, listed) = (self.shape, self.listed_blocks());
        for number in (0..directory.free_blocks).rev() {
            let at = self.free_index_at(number);
            let mut block = FreeBlock::new(shape, self.directory_block(directory, at)?);
            let valid = usize::try_from(block.counts()?.0.get()).map_err(|_| damaged())?;
            for index in (0..valid).rev() {
                let best = block.best(index)?;
                if best != NULLDATAOFF && usize::from(best) >= len {
                    return Ok(Some(number * listed + index));
                }
            }
        }
        Ok(None)
    }

    /// Lists a new data block, with a new block of the index if that is needed.
    pub(super) fn list_data_block(&mut self, directory: &mut Directory, data: usize) -> Result<()> {
        let (shape, listed) = (self.shape, self.listed_blocks());
        let number = data / listed;
        if number >= directory.free_blocks {
            self.add_free_index(directory, number)?;
        }
        let at = self.free_index_at(number);
        let mut block = FreeBlock::new(shape, self.directory_block(directory, at)?);
        let (valid, used) = block.counts()?;
        valid.set(u32::try_from(data % listed + 1).map_err(|_| damaged())?);
        used.set(used.get() + 1);
        Ok(())
    }

    /// Notes the largest free range of a data block.
    pub(super) fn set_best(&mut self, directory: &Directory, data: usize, best: usize) -> Result<()> {
        let (shape, listed) = (self.shape, self.listed_blocks());
        let at = self.free_index_at(data / listed);
        let mut block = FreeBlock::new(shape, self.directory_block(directory, at)?);
        block.set_best(data % listed, u16::try_from(best).map_err(|_| damaged())?)?;
        block.seal();
        Ok(())
    }
}
