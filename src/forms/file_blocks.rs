//! Blocks of a file's fork by their place in the file.

use super::extents::{Extents, find_extent};
use super::fork::Fork;
use super::source::{BlockSource, Piece, corrupt, read_pieces};
use crate::buffer::{Block, BlockKind};
use crate::error::{Check, Result, Rule};
use crate::geometry::{FileBlock, FsBlock};
use crate::ondisk::Extent;

/// Reads `count` filesystem blocks of `fork` from `at` on as one block of `kind`; `None` when none of them is mapped.
///
/// # Errors
/// `Io`; `Corrupt` when the mapping fails a check, or covers only some of the blocks.
pub fn read_file_block(
    source: &dyn BlockSource,
    fork: &Fork<'_>,
    kind: BlockKind,
    at: FileBlock,
    count: u32,
) -> Result<Option<Block>> {
    let Some(pieces) = map_file_block(source, fork, at, count)? else { return Ok(None) };
    read_pieces(source, kind, fork.inode.ino, &pieces).map(Some)
}

/// Where `count` filesystem blocks of `fork` from `at` on lie; `None` when the first of them is not mapped.
///
/// # Errors
/// `Io`; `Corrupt` when the mapping fails a check, or covers only the first of the blocks.
pub fn map_file_block(
    source: &dyn BlockSource,
    fork: &Fork<'_>,
    at: FileBlock,
    count: u32,
) -> Result<Option<Vec<Piece>>> {
    let mut pieces = Vec::new();
    let mut next = at.0;
    let end = at.0.saturating_add(u64::from(count));
    while next < end {
        let Some(extent) = find_extent(source, fork, FileBlock(next))? else { break };
        let piece = piece_of(&extent, next, end);
        next += u64::from(piece.count);
        pieces.push(piece);
    }
    if pieces.is_empty() {
        return Ok(None);
    }
    if next < end {
        let check = Check::new("bmbt_rec", "startoff", Rule::Mismatch);
        return Err(corrupt(check, &fork.inode.place, format!("hole at file block {next}")));
    }
    Ok(Some(pieces))
}

/// The part of `extent` from file block `from`, which it covers, up to file block `end`.
pub(super) fn piece_of(extent: &Extent, from: u64, end: u64) -> Piece {
    let skip = from.saturating_sub(extent.startoff);
    let left = u64::from(extent.blockcount).saturating_sub(skip).min(end.saturating_sub(from));
    Piece {
        start: FsBlock(extent.startblock + skip),
        count: u32::try_from(left).expect("invariant: an extent's length has 21 bits"),
    }
}

/// Runs over the blocks of a fork that are mapped, `unit` filesystem blocks at a time, up to file block `end`.
///
/// A walk maps no more blocks than the data device has: an inode of more, whose blocks are not shared, is damaged.
pub(super) struct MappedBlocks<'a> {
    source: &'a dyn BlockSource,
    fork: Fork<'a>,
    extents: Extents<'a>,
    unit: u64,
    end: u64,
    /// What is left of the current extent: it and the next file block in it.
    current: Option<(Extent, u64)>,
    /// Filesystem blocks that may still be mapped.
    budget: u64,
    done: bool,
}

impl<'a> MappedBlocks<'a> {
    pub(super) fn new(source: &'a dyn BlockSource, fork: Fork<'a>, unit: u32, end: FileBlock) -> Self {
        let budget = source.geometry().dblocks;
        let (unit, end, extents) = (u64::from(unit.max(1)), end.0, fork.extents(source));
        MappedBlocks { source, fork, extents, unit, end, current: None, budget, done: false }
    }

    /// What is left of the current extent, or the next one below the end; with the next file block in it.
    fn extent(&mut self) -> Option<Result<(Extent, u64)>> {
        if let Some(current) = self.current.take() {
            return Some(Ok(current));
        }
        match self.extents.next()? {
            Ok(extent) if extent.startoff >= self.end => None,
            Ok(extent) => Some(Ok((extent, extent.startoff))),
            Err(error) => Some(Err(error)),
        }
    }

    /// The pieces of the next unit, and the file block that it starts with.
    fn unit(&mut self) -> Option<Result<(u64, Vec<Piece>)>> {
        let (mut extent, mut at) = match self.extent()? {
            Ok(found) => found,
            Err(error) => return Some(Err(error)),
        };
        let start = at / self.unit * self.unit;
        let end = start.saturating_add(self.unit);
        let mut next = start;
        let mut pieces = Vec::new();
        while at == next {
            let piece = piece_of(&extent, at, end);
            next += u64::from(piece.count);
            pieces.push(piece);
            if next < extent.startoff + u64::from(extent.blockcount) {
                self.current = Some((extent, next));
            }
            if next == end {
                return Some(self.charge(start, pieces));
            }
            match self.extent() {
                Some(Ok(found)) => (extent, at) = found,
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            }
        }
        if at != next {
            // the extent starts behind the hole: in this unit, then its rest is of no use, or in a later one
            let usable = at.max(end);
            let left = usable < extent.startoff + u64::from(extent.blockcount);
            self.current = left.then_some((extent, usable));
        }
        let check = Check::new("bmbt_rec", "startoff", Rule::Mismatch);
        Some(Err(corrupt(check, &self.fork.inode.place, format!("hole in the block at file block {start}"))))
    }

    fn charge(&mut self, start: u64, pieces: Vec<Piece>) -> Result<(u64, Vec<Piece>)> {
        match self.budget.checked_sub(self.unit) {
            Some(left) => {
                self.budget = left;
                Ok((start, pieces))
            }
            None => {
                self.done = true;
                let check = Check::new("bmbt_rec", "blockcount", Rule::Count);
                Err(corrupt(check, &self.fork.inode.place, "more blocks than the device has"))
            }
        }
    }

    /// Reads a block that this walk found.
    pub(super) fn read(&self, kind: BlockKind, pieces: &[Piece]) -> Result<Block> {
        read_pieces(self.source, kind, self.fork.inode.ino, pieces)
    }
}

impl Iterator for MappedBlocks<'_> {
    type Item = Result<(FileBlock, Vec<Piece>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let unit = self.unit();
        self.done |= unit.is_none();
        unit.map(|unit| unit.map(|(start, pieces)| (FileBlock(start), pieces)))
    }
}
