//! Blocks of directory entries, filled from the start to the end (Linux `fs/xfs/libxfs/xfs_dir2_data.c`,
//! `xfs_dir2_block.c`).

use zerocopy::{FromZeros, IntoBytes};

use super::owner::{BlockOwner, put};
use crate::geometry::{Geometry, Ino};
use crate::ondisk::OnDisk;
use crate::ondisk::dir_data::{
    DIR2_BLOCK_MAGIC, DIR2_DATA_MAGIC, DIR3_BLOCK_MAGIC, DIR3_DATA_MAGIC, RawDir2DataHdr, RawDir3DataHdr,
    RawDirBlockTail, RawDirDataFree, entry_len, header_len, put_entry, put_unused,
};
use crate::ondisk::dir_leaf::RawDirLeafEntry;

/// A block of directory entries that is being filled.
#[derive(Clone, Debug)]
pub struct DirDataBuilder {
    block: Vec<u8>,
    at: usize,
    ftype: bool,
}

impl DirDataBuilder {
    /// An empty block.
    pub fn new(geometry: &Geometry) -> Self {
        let size = usize::try_from(geometry.directory.blksize).expect("invariant: 64 KiB at most");
        let at = header_len(geometry.features.has_crc());
        DirDataBuilder { block: vec![0; size], at, ftype: geometry.features.has_ftype() }
    }

    /// Bytes that are not used yet.
    pub fn room(&self) -> usize {
        self.block.len() - self.at
    }

    /// Adds an entry: where it stands in the block. `None`, and nothing has changed, when it does not fit.
    pub fn push(&mut self, ino: Ino, name: &[u8], ftype: u8) -> Option<u16> {
        if entry_len(name.len(), self.ftype) > self.room() {
            return None;
        }
        let offset = u16::try_from(self.at).ok()?;
        self.at += put_entry(&mut self.block, offset, ino.0, name, self.ftype.then_some(ftype))?;
        Some(offset)
    }

    /// Leaves `bytes` unused, a multiple of 8. `None`, and nothing has changed, when there are fewer. The table of the longest
    /// unused ranges will not have them.
    pub fn skip(&mut self, bytes: usize) -> Option<()> {
        if bytes > self.room() {
            return None;
        }
        if bytes > 0 {
            put_unused(&mut self.block, u16::try_from(self.at).ok()?, u16::try_from(bytes).ok()?)?;
        }
        self.at += bytes;
        Some(())
    }

    /// The block as one of several, and the length of its longest unused range.
    pub fn into_data(mut self, owner: &BlockOwner) -> (Vec<u8>, u16) {
        let end = self.block.len();
        let best = self.finish(owner, end, DIR2_DATA_MAGIC, DIR3_DATA_MAGIC);
        (self.block, best)
    }

    /// The block as the only one of its directory, with the hash index `leaf` in it, which is sorted. `None` when that does not
    /// fit.
    pub fn into_only(mut self, owner: &BlockOwner, leaf: &[RawDirLeafEntry]) -> Option<Vec<u8>> {
        let tail = self.block.len() - RawDirBlockTail::SIZE;
        let start = tail.checked_sub(size_of_val(leaf)).filter(|&start| start >= self.at)?;
        self.finish(owner, start, DIR2_BLOCK_MAGIC, DIR3_BLOCK_MAGIC);
        self.block[start..tail].copy_from_slice(leaf.as_bytes());
        let count = u32::try_from(leaf.len()).ok()?;
        self.block[tail..].copy_from_slice(RawDirBlockTail { count: count.into(), stale: 0.into() }.as_bytes());
        Some(self.block)
    }

    /// Makes what is left up to `end` an unused range and writes the header.
    fn finish(&mut self, owner: &BlockOwner, end: usize, magic: u32, magic_v5: u32) -> u16 {
        let mut best = [RawDirDataFree::new_zeroed(); 3];
        let length = u16::try_from(end - self.at).expect("invariant: a block has 64 KiB at most, and a header");
        if length > 0 {
            let offset = u16::try_from(self.at).expect("invariant: a block has 64 KiB at most");
            put_unused(&mut self.block, offset, length).expect("invariant: the range is in the block, and aligned");
            best[0] = RawDirDataFree { offset: offset.into(), length: length.into() };
        }
        let done = if owner.crc {
            let hdr = owner.dir_header(magic_v5);
            put(&mut self.block, &RawDir3DataHdr { hdr, best_free: best, pad: 0.into() })
        } else {
            put(&mut self.block, &RawDir2DataHdr { magic: magic.into(), bestfree: best })
        };
        done.expect("invariant: a block is longer than its header");
        length
    }
}
