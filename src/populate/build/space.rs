//! Space in the groups: for the data of files first, for what describes them then.

use super::free_space::Run;
use super::group::Group;
use crate::error::{Error, Result};
use crate::geometry::{AgBlock, AgNumber, FsBlock, Geometry};
use crate::ondisk::extent::MAX_BLOCKCOUNT;

/// Bytes of data that go to one group before the next one has its turn.
const TURN_BYTES: u64 = 64 << 20;
/// The share of a group that a turn takes at most.
const TURN_SHARE: u32 = 8;

/// A contiguous run of blocks of the filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its first block.
    pub start: FsBlock,
    /// Blocks: what an extent holds at most.
    pub len: u32,
}

/// The groups, and where data go next.
pub(super) struct Space {
    /// All groups.
    pub groups: Vec<Group>,
    /// The group whose turn it is, and what it has got.
    turn: usize,
    taken: u32,
    /// Blocks after which the next group has its turn.
    turn_blocks: u32,
    /// For each group, where data go on.
    next: Vec<u32>,
}

impl Space {
    /// The space of the groups.
    pub fn new(geometry: &Geometry, groups: Vec<Group>) -> Self {
        let blocks = u32::try_from(TURN_BYTES >> geometry.blocklog).expect("invariant: blocks have 512 bytes or more");
        let turn_blocks = blocks.min(geometry.agblocks / TURN_SHARE).max(1);
        let next = vec![0; groups.len()];
        Space { groups, turn: 0, taken: 0, turn_blocks, next }
    }

    /// Blocks that files may still take.
    pub fn available(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.available())).sum()
    }

    /// Takes `blocks` blocks for the data of a file, in as few pieces as can be.
    ///
    /// # Errors
    /// `Usage` when there are not so many; then none are taken.
    pub fn take_data(&mut self, geometry: &Geometry, blocks: u64) -> Result<Vec<Piece>> {
        if self.taken >= self.turn_blocks {
            self.turn = (self.turn + 1) % self.groups.len();
            self.taken = 0;
        }
        self.refuse_if_full(self.turn, blocks, "the data of a file")?;
        let unit = geometry.stripe_unit;
        let align = if unit > 1 && blocks >= u64::from(unit) { unit } else { 1 };
        let pieces = self.take(geometry, self.turn, blocks, align)?;
        let len = u32::try_from(blocks).unwrap_or(u32::MAX);
        self.taken = self.taken.saturating_add(len);
        Ok(pieces)
    }

    /// Takes `blocks` blocks for metadata of a file whose inode lies in group `agno`.
    ///
    /// # Errors
    /// `Usage` when there are not so many; then none are taken.
    pub fn take_near(&mut self, geometry: &Geometry, agno: AgNumber, blocks: u64, what: &str) -> Result<Vec<Piece>> {
        let index = usize::try_from(agno.0).map_err(|_| Error::Internal("a group without number".into()))?;
        self.refuse_if_full(index, blocks, what)?;
        self.take(geometry, index, blocks, 1)
    }

    /// Refuses what does not fit, into group `first` or all of them.
    fn refuse_if_full(&self, first: usize, blocks: u64, what: &str) -> Result<()> {
        if self.groups.get(first).is_some_and(|group| u64::from(group.available()) >= blocks) {
            return Ok(());
        }
        let available = self.available();
        if blocks <= available {
            return Ok(());
        }
        Err(Error::Usage(format!("the image is full: {what} takes {blocks} blocks more, and {available} are left")))
    }

    /// Takes blocks, of which there are enough, from group number `first` on.
    fn take(&mut self, geometry: &Geometry, first: usize, blocks: u64, align: u32) -> Result<Vec<Piece>> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut left = blocks;
        while left > 0 {
            let want = u32::try_from(left).unwrap_or(u32::MAX).min(MAX_BLOCKCOUNT);
            let align = if pieces.is_empty() { align } else { 1 };
            let found = self.follow(geometry, pieces.last(), want).or_else(|| self.find(first, want, align));
            let (index, run) = found
                .or_else(|| self.largest(want))
                .ok_or_else(|| Error::Internal("there are enough free blocks, and none is found".into()))?;
            let group = &mut self.groups[index];
            if !group.free.take(run) {
                return Err(Error::Internal("blocks that are not free are taken".into()));
            }
            self.next[index] = run.start + run.len;
            let start = geometry.fsb(group.agno, AgBlock(run.start));
            let start = start.ok_or_else(|| Error::Internal("free blocks outside of their group".into()))?;
            pieces.push(Piece { start, len: run.len });
            left -= u64::from(run.len);
        }
        Ok(pieces)
    }

    /// The blocks right behind a piece.
    fn follow(&self, geometry: &Geometry, last: Option<&Piece>, want: u32) -> Option<(usize, Run)> {
        let last = last?;
        let (agno, agbno) = geometry.fsb_parts(last.start)?;
        let index = usize::try_from(agno.0).ok()?;
        let group = self.groups.get(index)?;
        let start = agbno.0 + last.len;
        let run = group.free.at_or_behind(start).filter(|run| run.start <= start)?;
        let len = want.min(run.start + run.len - start).min(group.available());
        (len == want).then_some((index, Run { start, len }))
    }

    /// The first group, from `first` on, that has the blocks in one piece.
    fn find(&self, first: usize, want: u32, align: u32) -> Option<(usize, Run)> {
        let order = || (first..self.groups.len()).chain(0..first.min(self.groups.len()));
        let at = |align: u32| {
            order().find_map(|index| {
                let group = &self.groups[index];
                let start = (group.available() >= want).then(|| group.free.find(want, align, self.next[index]))??;
                Some((index, Run { start, len: want }))
            })
        };
        at(align).or_else(|| if align > 1 { at(1) } else { None })
    }

    /// The longest piece that a group can give.
    fn largest(&self, want: u32) -> Option<(usize, Run)> {
        let longest = |index: usize| {
            let group = &self.groups[index];
            let run = group.free.longest()?;
            Some((index, Run { start: run.start, len: run.len.min(group.available()).min(want) }))
        };
        let all = (0..self.groups.len()).rev().filter_map(longest);
        all.filter(|(_, run)| run.len > 0).max_by_key(|(_, run)| run.len)
    }

    /// Gives blocks back.
    pub fn give_back(&mut self, geometry: &Geometry, piece: Piece) -> Result<()> {
        let (agno, agbno) = geometry.fsb_parts(piece.start).ok_or_else(|| Error::Internal("no such block".into()))?;
        let index = usize::try_from(agno.0).map_err(|_| Error::Internal("no such group".into()))?;
        let group = self.groups.get_mut(index).ok_or_else(|| Error::Internal("no such group".into()))?;
        group.free.insert(Run { start: agbno.0, len: piece.len });
        Ok(())
    }
}
