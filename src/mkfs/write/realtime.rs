//! Bitmap and summary of free realtime extents. Sources: `rtinit_nogroups` and `rtfreesp_init` of xfsprogs `mkfs/proto.c`,
//! `xfs_rtfree_extent` and `xfs_rtfile_initialize_blocks` of Linux `fs/xfs/libxfs/xfs_rtbitmap.c`.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::geometry::FsBlock;
use crate::mkfs::write::chunk::Parent;
use crate::mkfs::write::inode::{Inode, mode};
use crate::mkfs::write::maker::Maker;
use crate::mkfs::write::shape::Shape;
use crate::mkfs::write::superblock::highbit;
use crate::ondisk::dinode::flags;
use crate::ondisk::{Extent, OnDisk, RawRtBlockHeader, RtWordForm, Timestamp, crc};

/// Bits of a word of the bitmap.
const WORD_BITS: u64 = 32;
/// Bytes that are made and written at once.
const PIECE: usize = 256 * 1024;

/// Bitmap or summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bitmap,
    Summary,
}

/// The free space of the realtime section, or of a group of it: all extents but the first few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Free {
    /// First free extent.
    pub start: u64,
    /// The extent behind the last one.
    pub end: u64,
}

/// What the sizes of bitmap and summary follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BitmapShape {
    /// How words are stored.
    form: RtWordForm,
    /// Extents that a block of the bitmap covers.
    extents_per_block: u64,
    /// Blocks of the bitmap.
    pub bitmap_blocks: u64,
    /// Blocks of the summary.
    pub summary_blocks: u64,
}

impl BitmapShape {
    /// The shape for the layout's realtime section.
    pub fn new(shape: &Shape) -> Self {
        let realtime = &shape.layout.realtime;
        let form = if realtime.groups.is_some() { RtWordForm::Groups } else { RtWordForm::LegacyLittle };
        let block = usize::try_from(shape.block).expect("invariant: 64 KiB at most");
        let words = form.words_per_block(block) as u64;
        let bits = match (realtime.extents, realtime.groups) {
            (0, _) => 0,
            (_, Some(groups)) => u64::from(groups.extents),
            (extents, None) => extents,
        };
        let levels = if bits == 0 { 1 } else { u64::from(highbit(bits)) + 1 };
        let bitmap_blocks = bits.div_ceil(words * WORD_BITS);
        let summary_blocks = if shape.layout.features.zoned { 0 } else { (bitmap_blocks * levels).div_ceil(words) };
        BitmapShape { form, extents_per_block: words * WORD_BITS, bitmap_blocks, summary_blocks }
    }
}

impl Maker<'_> {
    /// Makes the bitmap and the summary of a filesystem without realtime groups, which it has in any case.
    pub fn make_realtime_inodes(&mut self) -> Result<()> {
        let bitmaps = BitmapShape::new(self.shape);
        let block = u64::from(self.shape.block);

        let ino = self.allocate_inode(Parent::None)?;
        let generation = self.random();
        let mut bitmap = Inode::new(self.shape, ino, mode::REGULAR, generation);
        bitmap.size = u64::from(self.shape.layout.realtime.bitmap_blocks) * block;
        bitmap.flags |= flags::NEWRTBM;
        bitmap.atime = Timestamp { seconds: 0, nanoseconds: 0 };
        self.progress.rbmino = ino;
        self.commit(&mut bitmap)?;

        let ino = self.allocate_inode(Parent::None)?;
        let generation = self.random();
        let mut summary = Inode::new(self.shape, ino, mode::REGULAR, generation);
        summary.size = bitmaps.summary_blocks * block;
        self.progress.rsumino = ino;
        self.commit(&mut summary)?;

        let free = Free { start: 0, end: self.shape.layout.realtime.extents };
        self.fill_bitmap_files(&bitmaps, &mut bitmap, &mut summary, free)?;
        if free.end > 0 {
            // the last extent that is freed resets the bitmap's time of access, which is 0 already
            self.commit(&mut bitmap)?;
        }
        Ok(())
    }

    /// Allocates bitmap and summary, and writes them for the free space `free`.
    pub fn fill_bitmap_files(
        &mut self,
        bitmaps: &BitmapShape,
        bitmap: &mut Inode,
        summary: &mut Inode,
        free: Free,
    ) -> Result<()> {
        let blocks = u64::from(self.shape.layout.realtime.bitmap_blocks);
        let bitmap_extents = self.allocate_whole(bitmap, blocks)?;
        let summary_extents = self.allocate_whole(summary, bitmaps.summary_blocks)?;
        self.progress.frextents += free.end.saturating_sub(free.start);
        let files = BitmapFiles { shape: self.shape, bitmaps, free };
        for extent in bitmap_extents {
            files.write(self.data, Kind::Bitmap, bitmap, extent)?;
        }
        for extent in summary_extents {
            files.write(self.data, Kind::Summary, summary, extent)?;
        }
        Ok(())
    }

    /// Allocates all blocks of a file, in as few extents as possible.
    fn allocate_whole(&mut self, inode: &mut Inode, blocks: u64) -> Result<Vec<Extent>> {
        let mut made = Vec::new();
        let mut offset = 0;
        while offset < blocks {
            let extent = self.extend_file(inode, offset, blocks - offset)?;
            offset += u64::from(extent.blockcount);
            made.push(extent);
            self.commit(inode)?;
        }
        Ok(made)
    }
}

/// The contents of bitmap and summary.
struct BitmapFiles<'a> {
    shape: &'a Shape,
    bitmaps: &'a BitmapShape,
    free: Free,
}

impl BitmapFiles<'_> {
    /// Writes the part of a file that `extent` holds.
    fn write(&self, device: &dyn Device, kind: Kind, inode: &Inode, extent: Extent) -> Result<()> {
        let (agno, agblock) = self.shape.split(FsBlock(extent.startblock));
        let start = self.shape.offset(agno, agblock);
        let block = u64::from(self.shape.block);
        if kind == Kind::Summary && self.bitmaps.form != RtWordForm::Groups {
            return self.write_plain_summary(device, start, extent);
        }
        let size = usize::try_from(block).map_err(|_| unfit())?;
        let per_piece = (PIECE / size).max(1) as u64;
        let mut bytes = Vec::with_capacity(PIECE.max(size));
        let count = u64::from(extent.blockcount);
        for first in (0..count).step_by(usize::try_from(per_piece).map_err(|_| unfit())?) {
            let number = per_piece.min(count - first);
            bytes.clear();
            bytes.resize(usize::try_from(number * block).map_err(|_| unfit())?, 0);
            for (index, piece) in (first..).zip(bytes.chunks_exact_mut(size)) {
                self.fill(kind, inode, extent.startoff + index, start + index * block, piece)?;
            }
            device.write_at(start + first * block, &bytes)?;
        }
        Ok(())
    }

    /// A summary without block headers is zeroes but for one word.
    fn write_plain_summary(&self, device: &dyn Device, start: u64, extent: Extent) -> Result<()> {
        let block = u64::from(self.shape.block);
        device.write_zeroes(start, u64::from(extent.blockcount) * block)?;
        let Some((index, word)) = self.summary_word() else { return Ok(()) };
        let mut bytes = vec![0; usize::try_from(block).map_err(|_| unfit())?];
        let within = index.checked_sub(extent.startoff).filter(|&within| within < u64::from(extent.blockcount));
        let Some(within) = within else { return Ok(()) };
        self.bitmaps.form.set_word(&mut bytes, word, 1).ok_or_else(unfit)?;
        device.write_at(start + within * block, &bytes)
    }

    /// The block of the summary, and the word in it, that counts the one free extent; `None` if nothing is free.
    fn summary_word(&self) -> Option<(u64, usize)> {
        let len = self.free.end.checked_sub(self.free.start).filter(|&len| len > 0)?;
        let block = self.free.start / self.bitmaps.extents_per_block;
        let index = u64::from(highbit(len)) * self.bitmaps.bitmap_blocks + block;
        let words = self.bitmaps.extents_per_block / WORD_BITS;
        Some((index / words, usize::try_from(index % words).ok()?))
    }

    /// Fills block `index` of a file, which lies at byte `offset` of the device.
    fn fill(&self, kind: Kind, inode: &Inode, index: u64, offset: u64, bytes: &mut [u8]) -> Result<()> {
        match kind {
            Kind::Bitmap => self.fill_bitmap(index, bytes)?,
            Kind::Summary => {
                if let Some((block, word)) = self.summary_word().filter(|&(block, _)| block == index) {
                    debug_assert_eq!(block, index);
                    self.bitmaps.form.set_word(bytes, word, 1).ok_or_else(unfit)?;
                }
            }
        }
        if self.bitmaps.form == RtWordForm::Groups {
            let (head, _) = RawRtBlockHeader::prefix_mut(bytes).ok_or_else(unfit)?;
            head.magic.set(match kind {
                Kind::Bitmap => RawRtBlockHeader::BITMAP_MAGIC,
                Kind::Summary => RawRtBlockHeader::SUMMARY_MAGIC,
            });
            head.owner.set(inode.ino.0);
            head.blkno.set(offset / 512);
            head.uuid = *self.shape.layout.uuid.as_bytes();
            crc::stamp(bytes, RawRtBlockHeader::CRC_OFFSET);
        }
        Ok(())
    }

    /// Sets the bits of the free extents that block `index` of the bitmap covers.
    fn fill_bitmap(&self, index: u64, bytes: &mut [u8]) -> Result<()> {
        let first = index * self.bitmaps.extents_per_block;
        let from = self.free.start.clamp(first, first + self.bitmaps.extents_per_block) - first;
        let to = self.free.end.clamp(first, first + self.bitmaps.extents_per_block) - first;
        let header = self.bitmaps.form.header_size();
        let whole = usize::try_from(from.div_ceil(WORD_BITS)).map_err(|_| unfit())?
            ..usize::try_from(to / WORD_BITS).map_err(|_| unfit())?;
        if whole.start < whole.end {
            bytes[header + whole.start * 4..header + whole.end * 4].fill(0xff);
        }
        let mut edges = vec![from / WORD_BITS, to / WORD_BITS];
        edges.dedup();
        for word in edges {
            let low = from.saturating_sub(word * WORD_BITS).min(WORD_BITS);
            let high = to.saturating_sub(word * WORD_BITS).min(WORD_BITS);
            if low < high {
                let ones = |bits: u64| u32::try_from((1u64 << bits) - 1).expect("invariant: 32 bits at most");
                let at = usize::try_from(word).map_err(|_| unfit())?;
                self.bitmaps.form.set_word(bytes, at, ones(high) & !ones(low)).ok_or_else(unfit)?;
            }
        }
        Ok(())
    }
}

fn unfit() -> Error {
    Error::Internal("making a filesystem: a realtime block does not hold what it should".to_string())
}
