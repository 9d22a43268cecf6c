//! Where the walkers get their blocks from.

use crate::buffer::{Block, BlockCache, BlockKind, Fragment, Request};
use crate::error::{Check, Corruption, Error, Place, Result, Rule, Verdict};
use crate::geometry::{FsBlock, Geometry, Ino};

/// A run of filesystem blocks on the data device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first.
    pub start: FsBlock,
    /// How many; not 0.
    pub count: u32,
}

/// Something that reads verified blocks of a filesystem: a cache, or what lies over one. The filesystem may be
/// damaged, and its geometry wrong.
pub trait BlockSource {
    /// The geometry.
    fn geometry(&self) -> &Geometry;

    /// The block that `request` asks for, with every check that it fails: what to do with it is the caller's choice.
    ///
    /// # Errors
    /// `Io`; `Usage` for a request that cannot be met.
    fn read(&self, request: Request) -> Result<Block>;

    /// Every check that `bytes`, as long as an inode, fail as inode `ino`.
    fn verify_inode(&self, ino: Ino, bytes: &[u8]) -> Verdict;
}

impl BlockSource for BlockCache {
    fn geometry(&self) -> &Geometry {
        BlockCache::geometry(self)
    }

    fn read(&self, request: Request) -> Result<Block> {
        BlockCache::read(self, request)
    }

    fn verify_inode(&self, ino: Ino, bytes: &[u8]) -> Verdict {
        self.verifier().verify_inode(ino, bytes)
    }
}

/// Reads the blocks of `pieces` as one block of `kind` that belongs to inode `owner`.
pub(super) fn read_pieces(source: &dyn BlockSource, kind: BlockKind, owner: Ino, pieces: &[Piece]) -> Result<Block> {
    source.read(request_of(source.geometry(), kind, owner, pieces)?)
}

/// The request for the blocks of `pieces` as one block of `kind` that belongs to inode `owner`.
///
/// # Errors
/// `Corrupt` when a piece lies outside the filesystem.
pub fn request_of(geometry: &Geometry, kind: BlockKind, owner: Ino, pieces: &[Piece]) -> Result<Request> {
    let fragment = |piece: &Piece| {
        let daddr = geometry.fsb_daddr(piece.start)?;
        Some(Fragment { daddr, len: piece.count.checked_mul(geometry.blocksize)? })
    };
    let fragments: Option<Vec<_>> = pieces.iter().map(fragment).collect();
    let place = Place { inode: Some(owner.0), ..Place::default() };
    let fragments = fragments.ok_or_else(|| {
        corrupt(Check::new("bmbt_rec", "startblock", Rule::Range), &place, format!("{pieces:?} outside the filesystem"))
    })?;
    Ok(Request::of_fragments(kind, fragments).of_inode(owner))
}

/// Where `block` lies.
pub(super) fn place_of(source: &dyn BlockSource, block: &Block) -> Place {
    block.request().place(source.geometry())
}

/// The first check that `block` fails, as an error.
pub(super) fn demand_sound(block: &Block) -> Result<()> {
    if block.verdict().is_sound() { Ok(()) } else { block.verdict().clone().into_result() }
}

/// Every check that `block` fails, as errors.
pub(super) fn damage_of(block: &Block) -> impl Iterator<Item = Error> + '_ {
    block.verdict().failures().iter().map(|failure| Error::Corrupt(Box::new(failure.clone())))
}

/// A failed check at `place`, with what was found.
pub(super) fn corrupt(check: Check, place: &Place, detail: impl Into<String>) -> Error {
    Error::Corrupt(Box::new(Corruption { check, place: place.clone(), detail: detail.into() }))
}
