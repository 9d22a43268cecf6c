//! Space for the forks of a file: blocks get their place, lists of extents that do not fit an inode become btrees.

use super::builder::Image;
use super::dinode::Fork;
use super::file_blocks::FileMetadata;
use super::space::Piece;
use crate::btree::{BlockStore, Fill, Layout, TreeIdentity, TreeOwner, bulk_load};
use crate::error::{Error, Result};
use crate::forms::encode::BlockOwner;
use crate::geometry::{AgNumber, BtreeKind, FsBlock, Ino};
use crate::ondisk::extent::MAX_BLOCKCOUNT;
use crate::ondisk::{Extent, OnDisk, RawExtent, Rmap};
use zerocopy::IntoBytes;

/// Which fork of which file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    /// The inode.
    pub ino: Ino,
    /// Its group.
    pub agno: AgNumber,
    /// It is the attribute fork.
    pub attr: bool,
}

/// Extents of a file in the order in which they come; those that continue each other are joined.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtentList {
    /// The extents.
    pub list: Vec<Extent>,
    /// Blocks.
    pub blocks: u64,
}

impl ExtentList {
    /// Adds a piece that stands at block `at` of the file.
    pub fn push(&mut self, at: u64, piece: Piece, unwritten: bool) {
        self.blocks += u64::from(piece.len);
        if let Some(last) = self.list.last_mut() {
            let len = u64::from(last.blockcount);
            let joined = last.blockcount.checked_add(piece.len).filter(|&len| len <= MAX_BLOCKCOUNT);
            let follows = last.startoff + len == at && last.startblock + len == piece.start.0;
            if let Some(joined) = joined.filter(|_| follows && last.unwritten == unwritten) {
                last.blockcount = joined;
                return;
            }
        }
        self.list.push(Extent { startoff: at, startblock: piece.start.0, blockcount: piece.len, unwritten });
    }
}

impl Image<'_> {
    /// Gives blocks of metadata a place and writes them.
    pub(super) fn place(&mut self, owner: Owner, what: &str, blocks: Vec<FileMetadata>) -> Result<ExtentList> {
        let unit = usize::try_from(self.geometry.blocksize).map_err(|_| lost())?;
        let count: usize = blocks.iter().map(|block| block.bytes.len() / unit).sum();
        let pieces = self.space.take_near(&self.geometry, owner.agno, count as u64, what)?;
        let mut places =
            pieces.iter().flat_map(|piece| (0..u64::from(piece.len)).map(|at| FsBlock(piece.start.0 + at)));
        let mut extents = ExtentList::default();
        let seal = BlockOwner::new(&self.geometry, owner.ino);
        for mut block in blocks {
            let run: Vec<FsBlock> = places.by_ref().take(block.bytes.len() / unit).collect();
            let daddr = run.first().and_then(|&first| self.geometry.fsb_daddr(first)).ok_or_else(lost)?;
            if let Some(header) = block.header {
                seal.seal(header, &mut block.bytes, daddr);
            }
            for (at, &start) in (block.at..).zip(&run) {
                extents.push(at, Piece { start, len: 1 }, false);
            }
            self.write_blocks(&run, block.bytes)?;
        }
        self.note_extents(owner, &extents.list)?;
        Ok(extents)
    }

    /// Writes bytes to blocks, one after the other.
    fn write_blocks(&mut self, run: &[FsBlock], bytes: Vec<u8>) -> Result<()> {
        let offset = |block: FsBlock| {
            let daddr = self.geometry.fsb_daddr(block)?;
            self.geometry.daddr_offset(daddr)
        };
        let first = *run.first().ok_or_else(lost)?;
        if run.iter().zip(first.0..).all(|(block, at)| block.0 == at) {
            return self.output.metadata(offset(first).ok_or_else(lost)?, bytes);
        }
        let unit = usize::try_from(self.geometry.blocksize).map_err(|_| lost())?;
        let places: Option<Vec<u64>> = run.iter().map(|&block| offset(block)).collect();
        for (place, part) in places.ok_or_else(lost)?.into_iter().zip(bytes.chunks(unit)) {
            self.output.metadata(place, part.to_vec())?;
        }
        Ok(())
    }

    /// Notes to whom the blocks of extents belong.
    pub(super) fn note_extents(&mut self, owner: Owner, extents: &[Extent]) -> Result<()> {
        if !self.geometry.features.has_rmapbt() {
            return Ok(());
        }
        for extent in extents {
            let (agno, agbno) = self.geometry.fsb_parts(FsBlock(extent.startblock)).ok_or_else(lost)?;
            let group = usize::try_from(agno.0).ok().and_then(|index| self.space.groups.get_mut(index));
            group.ok_or_else(lost)?.rmaps.push(Rmap {
                startblock: agbno.0,
                blockcount: extent.blockcount,
                owner: owner.ino.0,
                offset: extent.startoff,
                attr_fork: owner.attr,
                bmbt_block: false,
                unwritten: extent.unwritten,
            });
        }
        Ok(())
    }

    /// A fork of `room` bytes that lists `extents`, and the blocks that the list takes besides.
    pub(super) fn extent_fork(&mut self, owner: Owner, room: usize, extents: Vec<Extent>) -> Result<(Fork, u64)> {
        if extents.len() * RawExtent::SIZE <= room {
            return Ok((Fork::Extents(extents), 0));
        }
        let layout = Layout::of_block(&self.geometry, BtreeKind::Bmbt);
        let identity = TreeIdentity::new(&self.geometry, TreeOwner::Inode(owner.ino));
        let count = extents.len();
        let encoded: Option<Vec<RawExtent>> = extents.iter().map(Extent::encode).collect();
        let encoded = encoded.ok_or_else(lost)?;
        let mut records = encoded.iter().map(|record| record.as_bytes().to_vec());
        let mut store = ForkStore { image: self, owner, blocks: 0 };
        let editor = bulk_load(&mut store, layout, identity, Some(room), Fill::Full, count, &mut records)?;
        let root = editor.inode_root_bytes().ok_or_else(lost)?;
        let blocks = store.blocks;
        Ok((Fork::Btree { root, extents: count as u64 }, blocks))
    }
}

/// The blocks of a list of extents, which are written as they come.
struct ForkStore<'s, 'a> {
    image: &'s mut Image<'a>,
    owner: Owner,
    blocks: u64,
}

impl BlockStore for ForkStore<'_, '_> {
    fn allocate(&mut self) -> Result<u64> {
        let image = &mut *self.image;
        let pieces = image.space.take_near(&image.geometry, self.owner.agno, 1, "a list of extents")?;
        let start = pieces.first().ok_or_else(lost)?.start;
        let (agno, agbno) = image.geometry.fsb_parts(start).ok_or_else(lost)?;
        let group = usize::try_from(agno.0).ok().and_then(|index| image.space.groups.get_mut(index));
        let rmap = Rmap {
            startblock: agbno.0,
            blockcount: 1,
            owner: self.owner.ino.0,
            attr_fork: self.owner.attr,
            bmbt_block: true,
            ..Rmap::default()
        };
        group.ok_or_else(lost)?.note(&image.geometry, rmap);
        self.blocks += 1;
        Ok(start.0)
    }

    fn free(&mut self, _pointer: u64) -> Result<()> {
        Err(lost())
    }

    fn read(&self, _pointer: u64) -> Result<Vec<u8>> {
        Err(lost())
    }

    fn write(&mut self, pointer: u64, bytes: Vec<u8>) -> Result<()> {
        self.image.write_blocks(&[FsBlock(pointer)], bytes)
    }

    fn daddr(&self, pointer: u64) -> u64 {
        self.image.geometry.fsb_daddr(FsBlock(pointer)).map_or(0, |daddr| daddr.0)
    }
}

fn lost() -> Error {
    Error::Internal("the place of a block of a file is not known".into())
}
