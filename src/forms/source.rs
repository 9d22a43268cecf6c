//! Where the walkers get their blocks from.

use crate::error::{Check, Corruption, Error, Place, Result, Rule, Verdict};
use crate::geometry::{FsBlock, Geometry, Ino};

/// What a block is read as; this decides how its identity is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// A filesystem block of inodes, each of which has an identity of its own.
    Inodes,
    /// A block of the extent btree.
    Bmbt,
    /// Entries of a directory: a data block, or the only block.
    DirData,
    /// A leaf or an inner node of a directory.
    DirIndex,
    /// The free index of a directory.
    DirFree,
    /// A leaf or an inner node of attributes.
    AttrIndex,
    /// One filesystem block of a remote attribute value.
    AttrRemote,
    /// A piece of a symbolic link's target.
    Symlink,
    /// Dquots, each of which has an identity of its own.
    Dquots,
    /// The realtime bitmap.
    RtBitmap,
    /// The realtime summary.
    RtSummary,
}

/// A block as it was read, and what its identity is worth.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its bytes: of all pieces, in their order.
    pub bytes: Vec<u8>,
    /// Which of the checks of its identity it failed: magic number, CRC, UUID, owner, own address, LSN.
    pub verdict: Verdict,
    /// Where its first piece lies.
    pub place: Place,
}

/// A run of filesystem blocks on the data device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first.
    pub start: FsBlock,
    /// How many; not 0.
    pub count: u32,
}

/// Something that reads blocks of a filesystem and verifies their identity. The filesystem may be damaged, and its
/// geometry wrong.
pub trait BlockSource {
    /// The geometry.
    fn geometry(&self) -> &Geometry;

    /// Reads the blocks of `pieces` as one block of `kind` that belongs to inode `owner`.
    ///
    /// A block that fails a check is returned with its verdict: what to do with it is the caller's choice.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when a piece lies outside the filesystem.
    fn read(&self, kind: BlockKind, owner: Ino, pieces: &[Piece]) -> Result<Block>;
}

/// A failed check at `place`, with what was found.
pub(super) fn corrupt(check: Check, place: &Place, detail: impl Into<String>) -> Error {
    Error::Corrupt(Box::new(Corruption { check, place: place.clone(), detail: detail.into() }))
}

/// The same for a block that cannot be read because it lies nowhere.
pub(super) fn outside(structure: &'static str, field: &'static str, place: &Place, what: impl Into<String>) -> Error {
    corrupt(Check::new(structure, field, Rule::Range), place, what)
}
