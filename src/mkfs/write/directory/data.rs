//! Blocks of entries: use and release of the space in them. Source: Linux `fs/xfs/libxfs/xfs_dir2_data.c`.

use super::{NewEntry, damaged};
use crate::error::Result;
use crate::geometry::Ino;
use crate::mkfs::write::shape::Shape;
use crate::ondisk::dir_data::{
    DATA_FREE_TAG, DIR2_BLOCK_MAGIC, DIR2_DATA_MAGIC, DIR3_BLOCK_MAGIC, DIR3_DATA_MAGIC, RawDir2DataHdr, RawDir3BlkHdr,
    RawDir3DataHdr, RawDirBlockTail, RawDirDataEntry, RawDirDataFree, RawDirDataUnused, entry_len, header_len,
};
use crate::ondisk::dir_leaf::RawDirLeafEntry;
use crate::ondisk::{Be16, OnDisk, crc};
use zerocopy::{FromZeros, IntoBytes};

/// Bytes of the tag that ends entries and unused ranges.
const TAG: usize = size_of::<Be16>();

/// A block of entries.
pub(super) struct DataBlock<'a> {
    /// The directory block.
    pub bytes: &'a mut [u8],
    crc: bool,
    ftype: bool,
}

impl<'a> DataBlock<'a> {
    /// The block in `bytes`.
    pub fn new(shape: &Shape, bytes: &'a mut [u8]) -> Self {
        DataBlock { bytes, crc: shape.layout.features.crc, ftype: shape.layout.features.ftype }
    }

    /// Makes the block, which lies at byte `offset` of the device, one unused range.
    pub fn init(&mut self, shape: &Shape, owner: Ino, offset: u64) -> Result<()> {
        if self.crc {
            let (head, _) = RawDir3DataHdr::prefix_mut(self.bytes).ok_or_else(damaged)?;
            head.hdr = RawDir3BlkHdr::new_zeroed();
            head.hdr.magic.set(DIR3_DATA_MAGIC);
            head.hdr.blkno.set(offset / 512);
            head.hdr.owner.set(owner.0);
            head.hdr.uuid = *shape.layout.uuid.as_bytes();
        } else {
            let (head, _) = RawDir2DataHdr::prefix_mut(self.bytes).ok_or_else(damaged)?;
            head.magic.set(DIR2_DATA_MAGIC);
        }
        let first = self.first();
        let len = self.bytes.len() - first;
        *self.best()? = [free(first, len)?, RawDirDataFree::new_zeroed(), RawDirDataFree::new_zeroed()];
        self.put_unused(first, len)
    }

    /// Says whether the block is the only one of its directory.
    pub fn set_single(&mut self, single: bool) -> Result<()> {
        // the magic number has the same place in both versions
        let (head, _) = RawDir2DataHdr::prefix_mut(self.bytes).ok_or_else(damaged)?;
        head.magic.set(match (self.crc, single) {
            (true, true) => DIR3_BLOCK_MAGIC,
            (true, false) => DIR3_DATA_MAGIC,
            (false, true) => DIR2_BLOCK_MAGIC,
            (false, false) => DIR2_DATA_MAGIC,
        });
        Ok(())
    }

    /// Offset of the first entry.
    pub fn first(&self) -> usize {
        header_len(self.crc)
    }

    /// Bytes of an entry with a name of `len` bytes.
    pub fn entry_len(&self, len: usize) -> usize {
        entry_len(len, self.ftype)
    }

    /// The three largest unused ranges.
    pub fn best(&mut self) -> Result<&mut [RawDirDataFree; 3]> {
        if self.crc {
            RawDir3DataHdr::prefix_mut(self.bytes).map(|(head, _)| &mut head.best_free).ok_or_else(damaged)
        } else {
            RawDir2DataHdr::prefix_mut(self.bytes).map(|(head, _)| &mut head.bestfree).ok_or_else(damaged)
        }
    }

    /// Offset and length of the largest unused range.
    pub fn largest(&mut self) -> Result<(usize, usize)> {
        let best = self.best()?[0];
        Ok((usize::from(best.offset.get()), usize::from(best.length.get())))
    }

    /// Length of the unused range at `at`; `None` if an entry is there.
    pub fn unused_len(&self, at: usize) -> Option<usize> {
        let (head, _) = RawDirDataUnused::prefix(self.bytes.get(at..)?)?;
        (head.freetag.get() == DATA_FREE_TAG).then(|| usize::from(head.length.get()))
    }

    /// Offset of what ends before `end`, as its tag says.
    pub fn before(&self, end: usize) -> Option<usize> {
        let tag = self.bytes.get(end.checked_sub(TAG)?..end)?;
        Some(usize::from(u16::from_be_bytes(tag.try_into().ok()?)))
    }

    /// Puts an entry at `at`, whose padding stays what it was.
    pub fn put_entry(&mut self, at: usize, entry: &NewEntry<'_>) -> Result<()> {
        self.put(at, entry.ino, entry.name, entry.ftype())
    }

    /// Puts an entry at `at`.
    pub fn put(&mut self, at: usize, ino: Ino, name: &[u8], ftype: u8) -> Result<()> {
        let len = self.entry_len(name.len());
        let bytes = self.bytes.get_mut(at..at + len).ok_or_else(damaged)?;
        let (head, rest) = RawDirDataEntry::prefix_mut(bytes).ok_or_else(damaged)?;
        head.inumber.set(ino.0);
        head.namelen = u8::try_from(name.len()).map_err(|_| damaged())?;
        rest[..name.len()].copy_from_slice(name);
        if self.ftype {
            rest[name.len()] = ftype;
        }
        self.put_tag(at, len)
    }

    /// Marks a range as unused.
    pub fn put_unused(&mut self, at: usize, len: usize) -> Result<()> {
        let head = RawDirDataUnused { freetag: DATA_FREE_TAG.into(), length: narrow(len)?.into() };
        let range = self.bytes.get_mut(at..at + RawDirDataUnused::SIZE).ok_or_else(damaged)?;
        range.copy_from_slice(head.as_bytes());
        self.put_tag(at, len)
    }

    fn put_tag(&mut self, at: usize, len: usize) -> Result<()> {
        let tag = self.bytes.get_mut(at + len - TAG..at + len).ok_or_else(damaged)?;
        tag.copy_from_slice(&narrow(at)?.to_be_bytes());
        Ok(())
    }

    /// Takes `len` bytes at `offset` out of the unused range at `at`. `true` if the table of the largest ranges must be
    /// made anew.
    pub fn use_free(&mut self, at: usize, offset: usize, len: usize) -> Result<bool> {
        let old = self.unused_len(at).ok_or_else(damaged)?;
        let (front, back) = (at == offset, at + old == offset + len);
        let slot = self.find(at)?;
        match (front, back) {
            (true, true) => {
                let Some(slot) = slot else { return Ok(false) };
                let rescan = self.best()?[2].offset.get() != 0;
                if !rescan {
                    self.forget(slot)?;
                }
                Ok(rescan)
            }
            (true, false) => {
                self.put_unused(offset + len, old - len)?;
                self.replace(slot, offset + len, old - len)
            }
            (false, true) => {
                self.put_unused(at, offset - at)?;
                self.replace(slot, at, offset - at)
            }
            (false, false) => {
                let rest = old - len - (offset - at);
                self.put_unused(at, offset - at)?;
                self.put_unused(offset + len, rest)?;
                let Some(slot) = slot else { return Ok(false) };
                if self.best()?[2].length.get() != 0 {
                    return Ok(true);
                }
                self.forget(slot)?;
                self.remember(at, offset - at)?;
                self.remember(offset + len, rest)?;
                Ok(false)
            }
        }
    }

    /// Gives back `len` bytes at `offset`, which reach to the end of the block; they join the range before them.
    pub fn release_tail(&mut self, offset: usize, len: usize) -> Result<bool> {
        let before = self.before(offset).filter(|_| offset > self.first());
        let Some((at, old)) = before.and_then(|at| Some((at, self.unused_len(at)?))) else {
            self.put_unused(offset, len)?;
            self.remember(offset, len)?;
            return Ok(false);
        };
        let slot = self.find(at)?;
        self.put_unused(at, old + len)?;
        match slot {
            Some(slot) => {
                self.forget(slot)?;
                self.remember(at, old + len)?;
                Ok(false)
            }
            None => Ok(old + len > usize::from(self.best()?[2].length.get())),
        }
    }

    /// Makes the table of the largest ranges anew, from all that lies before `end`.
    pub fn rescan(&mut self, end: usize) -> Result<()> {
        *self.best()? = [RawDirDataFree::new_zeroed(); 3];
        let mut at = self.first();
        while at < end {
            at += match self.unused_len(at) {
                Some(len) if len > 0 => {
                    self.remember(at, len)?;
                    len
                }
                Some(_) => return Err(damaged()),
                None => {
                    let (head, _) = self.bytes.get(at..).and_then(RawDirDataEntry::prefix).ok_or_else(damaged)?;
                    self.entry_len(usize::from(head.namelen))
                }
            };
        }
        Ok(())
    }

    /// Slot of the table that names the unused range at `at`.
    fn find(&mut self, at: usize) -> Result<Option<usize>> {
        Ok(self.best()?.iter().position(|best| usize::from(best.offset.get()) == at && best.length.get() != 0))
    }

    fn forget(&mut self, slot: usize) -> Result<()> {
        let best = self.best()?;
        best.copy_within(slot + 1.., slot);
        best[2] = RawDirDataFree::new_zeroed();
        Ok(())
    }

    /// Enters an unused range into the table if it is large enough; says in which slot.
    pub fn remember(&mut self, at: usize, len: usize) -> Result<Option<usize>> {
        let new = free(at, len)?;
        let best = self.best()?;
        let slot = best.iter().position(|old| new.length.get() > old.length.get());
        if let Some(slot) = slot {
            best.copy_within(slot..2, slot + 1);
            best[slot] = new;
        }
        Ok(slot)
    }

    fn replace(&mut self, slot: Option<usize>, at: usize, len: usize) -> Result<bool> {
        let Some(slot) = slot else { return Ok(false) };
        self.forget(slot)?;
        // in the last slot, a range that is not in the table may be larger
        Ok(self.remember(at, len)? == Some(2))
    }

    /// Where the leaf entries of a single block begin, and how many they are.
    pub fn leaf_entries(&self) -> Result<(usize, usize)> {
        let tail = self.bytes.len() - RawDirBlockTail::SIZE;
        let (tail_head, _) = RawDirBlockTail::prefix(&self.bytes[tail..]).ok_or_else(damaged)?;
        let count = usize::try_from(tail_head.count.get()).map_err(|_| damaged())?;
        Ok((tail.checked_sub(count * RawDirLeafEntry::SIZE).ok_or_else(damaged)?, count))
    }

    /// Sets the number of leaf entries of a single block.
    pub fn set_leaf_count(&mut self, count: usize) -> Result<()> {
        let at = self.bytes.len() - RawDirBlockTail::SIZE;
        let (tail, _) = RawDirBlockTail::prefix_mut(&mut self.bytes[at..]).ok_or_else(damaged)?;
        tail.count.set(u32::try_from(count).map_err(|_| damaged())?);
        tail.stale.set(0);
        Ok(())
    }

    /// Computes the checksum.
    pub fn seal(&mut self) {
        if self.crc {
            crc::stamp(self.bytes, RawDir3BlkHdr::CRC_OFFSET);
        }
    }
}

fn free(at: usize, len: usize) -> Result<RawDirDataFree> {
    Ok(RawDirDataFree { offset: narrow(at)?.into(), length: narrow(len)?.into() })
}

fn narrow(value: usize) -> Result<u16> {
    u16::try_from(value).map_err(|_| damaged())
}
