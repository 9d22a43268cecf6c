//! The end: inodes, trees and headers of the groups, and the primary superblock last.

use std::collections::BTreeMap;

use zerocopy::IntoBytes;

use super::builder::{Builder, Image, Summary};
use super::dinode::{encode, encode_free};
use super::numbering::Numbering;
use super::trees::GroupCount;
use crate::error::{Error, Result};
use crate::geometry::{AgIno, AgNumber, Ino};
use crate::ondisk::feature_bits::{features2, versionnum};
use crate::ondisk::{INODES_PER_CHUNK, InodeChunk, OnDisk, RawSuperblock, crc};
use crate::populate::content::Content;

impl Builder<'_> {
    /// Builds the tree, whose data have been stored, and makes the image a filesystem with the last write.
    ///
    /// # Errors
    /// `Usage` when the image is full, or something of the tree cannot be in it; `Io`. There is no filesystem then.
    pub fn finish(mut self, content: &Content) -> Result<Summary> {
        let data_bytes = self.data_bytes();
        let image = &mut self.image;
        let before: Vec<BTreeMap<u32, u64>> = image.space.groups.iter().map(|group| masks(&group.chunks)).collect();
        let numbering = Numbering::new(
            content,
            image.geometry.rootino,
            &image.geometry,
            &mut image.space,
            &mut image.inodes,
            &image.stored,
        )?;
        image.write_files(content, &numbering, &before)?;
        if image.stored.len() > 0 {
            return Err(Error::Internal("data are stored that belong to no file".into()));
        }
        let mut total = GroupCount::default();
        for index in 0..image.space.groups.len() {
            let count = image.finish_group(index)?;
            total.icount += count.icount;
            total.ifree += count.ifree;
            total.fdblocks += count.fdblocks;
            total.kept += count.kept;
        }
        image.superblock.icount.set(total.icount);
        image.superblock.ifree.set(total.ifree);
        image.superblock.fdblocks.set(total.fdblocks);
        image.write_superblock()?;
        Ok(Summary {
            files: numbering.placed.len() as u64,
            data_bytes,
            icount: total.icount,
            ifree: total.ifree,
            fdblocks: total.fdblocks,
            available: total.fdblocks - total.kept.min(total.fdblocks),
        })
    }
}

/// For each chunk, the inodes that have blocks.
fn masks(chunks: &BTreeMap<u32, InodeChunk>) -> BTreeMap<u32, u64> {
    chunks.iter().map(|(&first, chunk)| (first, chunk.allocated_mask())).collect()
}

impl Image<'_> {
    /// Writes all files, in the order of their inodes.
    fn write_files(
        &mut self,
        content: &Content,
        numbering: &Numbering<'_>,
        before: &[BTreeMap<u32, u64>],
    ) -> Result<()> {
        let root = self.root.raw().core.generation.get();
        let generations: Vec<u32> =
            (0..numbering.placed.len()).map(|at| if at == 0 { root } else { self.generations.next() }).collect();
        let mut order: Vec<(Ino, usize)> = numbering.placed.iter().map(|placed| placed.ino).zip(0..).collect();
        order.sort_unstable();
        let mut rest = &order[..];
        for (index, before) in before.iter().enumerate() {
            let agno = self.space.groups[index].agno;
            let chunks: Vec<InodeChunk> = self.space.groups[index].chunks.values().copied().collect();
            for chunk in chunks {
                let first = self.geometry.ino(agno, AgIno(chunk.startino)).ok_or_else(outside)?;
                let count = rest.partition_point(|(ino, _)| ino.0 < first.0 + u64::from(INODES_PER_CHUNK));
                let (own, behind) = rest.split_at(count);
                rest = behind;
                let old = before.get(&chunk.startino).copied().unwrap_or(0);
                let fresh = chunk.allocated_mask() & !old;
                if own.is_empty() && fresh == 0 {
                    continue;
                }
                // whether all fits does not depend on the bytes of the inodes
                let mut bytes = if self.output.is_void() {
                    None
                } else {
                    Some(self.chunk_bytes(first, old, chunk.free & fresh)?)
                };
                let size = usize::try_from(self.geometry.inodes.size).map_err(|_| outside())?;
                for &(ino, at) in own {
                    let inode = self.build_file(content, numbering, &generations, at)?;
                    let Some(bytes) = &mut bytes else { continue };
                    let slot = usize::try_from(ino.0 - first.0).map_err(|_| outside())? * size;
                    encode(&self.geometry, ino, &inode, bytes.get_mut(slot..slot + size).ok_or_else(outside)?)?;
                }
                if let Some(bytes) = bytes {
                    self.write_chunk(agno, &chunk, &bytes)?;
                }
            }
        }
        if rest.is_empty() { Ok(()) } else { Err(outside()) }
    }

    /// The bytes of a chunk: the inodes `old` as they were, those of `free` new and free, the others zero.
    fn chunk_bytes(&mut self, first: Ino, old: u64, free: u64) -> Result<Vec<u8>> {
        let size = usize::try_from(self.geometry.inodes.size).map_err(|_| outside())?;
        let mut bytes = vec![0; size * 64];
        let start = self.geometry.ino_offset(first).ok_or_else(outside)?;
        for (index, part) in bytes.chunks_exact_mut(size).enumerate() {
            let bit = 1_u64 << index;
            if old & bit != 0 {
                self.cache.read_raw(start + (index * size) as u64, part)?;
            } else if free & bit != 0 {
                encode_free(&self.geometry, Ino(first.0 + index as u64), self.generations.next(), part);
            }
        }
        Ok(bytes)
    }

    /// Writes the inodes of a chunk that have blocks.
    fn write_chunk(&mut self, agno: AgNumber, chunk: &InodeChunk, bytes: &[u8]) -> Result<()> {
        let size = usize::try_from(self.geometry.inodes.size).map_err(|_| outside())?;
        let first = self.geometry.ino(agno, AgIno(chunk.startino)).ok_or_else(outside)?;
        let start = self.geometry.ino_offset(first).ok_or_else(outside)?;
        let mut mask = chunk.allocated_mask();
        let mut at = 0;
        while mask != 0 {
            let skip = mask.trailing_zeros() as usize;
            mask >>= skip;
            at += skip;
            let count = mask.trailing_ones() as usize;
            let part = bytes.get(at * size..(at + count) * size).ok_or_else(outside)?;
            self.output.metadata(start + (at * size) as u64, part.to_vec())?;
            mask = mask.checked_shr(u32::try_from(count).unwrap_or(64)).unwrap_or(0);
            at += count;
        }
        Ok(())
    }

    /// The superblock says that there are attributes.
    pub(super) fn note_attributes(&mut self) {
        let sb = &mut self.superblock;
        sb.versionnum.set(sb.versionnum.get() | versionnum::ATTR);
        if !self.geometry.features.has_crc() {
            sb.versionnum.set(sb.versionnum.get() | versionnum::MOREBITS);
            let bits = sb.features2.get() | features2::ATTR2;
            sb.features2.set(bits);
            sb.bad_features2.set(bits);
        }
    }

    /// Writes what is held, and then the superblock.
    fn write_superblock(&mut self) -> Result<()> {
        self.output.write()?;
        let Some(device) = self.output.device() else { return Ok(()) };
        device.flush()?;
        let mut sector = vec![0; usize::try_from(self.geometry.sectsize).map_err(|_| outside())?];
        sector.get_mut(..RawSuperblock::SIZE).ok_or_else(outside)?.copy_from_slice(self.superblock.as_bytes());
        if self.geometry.features.has_crc() {
            crc::stamp(&mut sector, RawSuperblock::CRC_OFFSET);
        }
        device.write_at(0, &sector)?;
        device.flush()
    }
}

fn outside() -> Error {
    Error::Internal("an inode outside of its chunk".into())
}
