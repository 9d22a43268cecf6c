//! The builder: takes data while the source is read, and the tree at its end.

use std::sync::Arc;

use super::group::Group;
use super::inodes::InodeCount;
use super::output::Output;
use super::space::{Piece, Space};
use super::stored::StoredPieces;
use crate::buffer::{BlockCache, Verifier};
use crate::device::{Device, random_bytes};
use crate::error::{Error, Result};
use crate::forms::Inode;
use crate::geometry::Geometry;
use crate::ondisk::dinode::flags;
use crate::ondisk::{RawSuperblock, Timestamp};
use crate::populate::data::{Bytes, DataSink, Stored};

/// Bytes of blocks that are kept while the new filesystem is looked at.
const CACHE: usize = 1 << 20;

/// How the image is built.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOptions {
    /// The generation of all inodes; `None` takes random ones.
    pub seed: Option<u32>,
    /// Nothing is written: it is only to be known whether all fits.
    pub trial: bool,
}

/// What was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Files of all kinds, the root among them.
    pub files: u64,
    /// Bytes of the data that were stored.
    pub data_bytes: u64,
    /// Inodes of the filesystem.
    pub icount: u64,
    /// Free inodes among them.
    pub ifree: u64,
    /// Free blocks.
    pub fdblocks: u64,
    /// Blocks that may still be taken; the rest of the free ones is kept for the btrees.
    pub available: u64,
}

/// The image, as far as it has come.
pub(super) struct Image<'a> {
    /// The superblock that will be written last.
    pub superblock: RawSuperblock,
    /// What follows from it.
    pub geometry: Geometry,
    /// Blocks of the filesystem as it was before.
    pub cache: BlockCache,
    /// Where all goes.
    pub output: Output<'a>,
    /// What is free.
    pub space: Space,
    /// How many inodes there are.
    pub inodes: InodeCount,
    /// Where the data lie.
    pub stored: StoredPieces,
    /// The root as it was made.
    pub root: Inode,
    /// When the filesystem was made.
    pub time: Timestamp,
    /// Where generations come from.
    pub generations: Generations,
}

/// The generations of inodes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Generations {
    /// One for all.
    Fixed(u32),
    /// Random ones, from a state that was random to begin with.
    Random(u64),
}

impl Generations {
    fn new(seed: Option<u32>) -> Self {
        seed.map_or_else(|| Generations::Random(u64::from_ne_bytes(random_bytes())), Generations::Fixed)
    }

    /// The next one.
    #[allow(clippy::cast_possible_truncation)] // the upper half is what is taken
    pub fn next(&mut self) -> u32 {
        match self {
            Generations::Fixed(number) => *number,
            Generations::Random(state) => {
                // a sequence of Weyl, mixed: what is to be avoided is that an inode gets the same number again
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                (mixed >> 32) as u32
            }
        }
    }
}

/// Fills a filesystem that is all there but for its primary superblock.
///
/// It takes the data of files as a [`DataSink`] and then, with [`Builder::finish`], the tree. Everything is written directly,
/// the primary superblock last: after an error, or when it is dropped, what stands on the device is no filesystem.
pub struct Builder<'a> {
    pub(super) image: Image<'a>,
    next_stored: u64,
    data_bytes: u64,
}

impl<'a> Builder<'a> {
    /// Takes over the filesystem on `data` that was just made, with the primary superblock that it is to have.
    ///
    /// # Errors
    /// `Io`; `Unsupported` when new files would lie in the realtime section; `Corrupt` or `Internal` when the filesystem is not
    /// as it was made.
    pub fn new(superblock: RawSuperblock, data: &'a Arc<dyn Device>, options: BuildOptions) -> Result<Self> {
        let geometry = Geometry::from_superblock(&superblock).map_err(|verdict| {
            let first = verdict.failures().first().map(ToString::to_string).unwrap_or_default();
            Error::Internal(format!("the superblock of the new filesystem is not sound: {first}"))
        })?;
        let cache = BlockCache::new(Verifier::new(geometry.clone()), data.clone(), CACHE);
        let root = Inode::read(&cache, geometry.rootino)?;
        root.verdict.clone().into_result()?;
        if root.raw().core.flags.get() & flags::RTINHERIT != 0 {
            return Err(Error::Unsupported("files in the realtime section (-d rtinherit=1)".into()));
        }
        let groups: Result<Vec<Group>> = geometry.ag_numbers().map(|agno| Group::take_over(&cache, agno)).collect();
        let time = root.raw().timestamp(root.raw().core.mtime);
        let image = Image {
            space: Space::new(&geometry, groups?),
            inodes: InodeCount { count: superblock.icount.get(), most: geometry.inodes.max_count },
            stored: StoredPieces::default(),
            output: Output::new((!options.trial).then_some(&**data)),
            generations: Generations::new(options.seed),
            superblock,
            geometry,
            cache,
            root,
            time,
        };
        Ok(Builder { image, next_stored: 0, data_bytes: 0 })
    }

    /// Takes `len` bytes as [`DataSink::store`] does, for data that are known by `stored` elsewhere.
    ///
    /// # Errors
    /// As for [`DataSink::store`].
    pub fn adopt(&mut self, stored: Stored, len: u64, bytes: &mut dyn Bytes) -> Result<()> {
        let blocks = len.div_ceil(u64::from(self.image.geometry.blocksize));
        if blocks != stored.blocks {
            return Err(Error::Internal("data are not as long as they were said to be".into()));
        }
        let pieces = self.image.space.take_data(&self.image.geometry, blocks)?;
        if let Err(error) = self.image.write_data(&pieces, len, bytes) {
            for piece in pieces {
                self.image.space.give_back(&self.image.geometry, piece)?;
            }
            return Err(error);
        }
        if !self.image.stored.insert(stored, pieces) {
            return Err(Error::Internal("data are stored twice".into()));
        }
        self.data_bytes += len;
        Ok(())
    }

    /// Bytes of data that were stored.
    pub(super) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }
}

impl DataSink for Builder<'_> {
    fn block_size(&self) -> u32 {
        self.image.geometry.blocksize
    }

    fn store(&mut self, len: u64, bytes: &mut dyn Bytes) -> Result<Stored> {
        let blocks = len.div_ceil(u64::from(self.image.geometry.blocksize));
        let stored = Stored { start: self.next_stored, blocks };
        self.next_stored += 1;
        self.adopt(stored, len, bytes)?;
        Ok(stored)
    }

    fn release(&mut self, stored: Stored) -> Result<()> {
        let pieces = self.image.stored.remove(stored);
        let pieces = pieces.ok_or_else(|| Error::Internal("data are given back that were not stored".into()))?;
        for piece in pieces {
            self.image.space.give_back(&self.image.geometry, piece)?;
        }
        Ok(())
    }
}

impl Image<'_> {
    /// Reads `len` bytes into `pieces`; the rest of the last block becomes zeroes.
    fn write_data(&mut self, pieces: &[Piece], len: u64, bytes: &mut dyn Bytes) -> Result<()> {
        if self.output.is_void() {
            return Ok(());
        }
        let mut left = len;
        for piece in pieces {
            let daddr = self.geometry.fsb_daddr(piece.start);
            let offset = daddr.and_then(|daddr| self.geometry.daddr_offset(daddr));
            let mut offset = offset.ok_or_else(|| Error::Internal("blocks outside of the device".into()))?;
            let mut room = u64::from(piece.len) << self.geometry.blocklog;
            while room > 0 {
                let now = usize::try_from(room).unwrap_or(Output::MOST_DATA).min(Output::MOST_DATA);
                let held = usize::try_from(left).unwrap_or(now).min(now);
                let buffer = self.output.data(offset, now)?;
                if let Err(error) = bytes.fill(&mut buffer[..held]) {
                    self.output.retract(now);
                    return Err(error);
                }
                (offset, room, left) = (offset + now as u64, room - now as u64, left - held as u64);
            }
        }
        Ok(())
    }
}
