//! Extents of a fork as it stands.

use super::window::end_of;
use crate::btree::{Cursor, Layout, NodeSource, SortKey};
use crate::buffer::{BlockKind, Request};
use crate::error::{Check, Error, Result, Rule};
use crate::forms::{BlockSource, Fork, ForkForm, ForkKind, Inode, find_extent};
use crate::geometry::{BtreeKind, FileBlock, FsBlock};
use crate::ondisk::extent::MAX_STARTOFF;
use crate::ondisk::{Extent, OnDisk, RawExtent};

/// The extent that maps block `at` of a fork; `None` for a hole.
///
/// # Errors
/// `Io`; `Corrupt` when the fork is damaged.
pub fn lookup(source: &dyn BlockSource, inode: &Inode, fork: ForkKind, at: FileBlock) -> Result<Option<Extent>> {
    match inode.fork(fork)? {
        Some(fork) => find_extent(source, &fork, at),
        None => Ok(None),
    }
}

/// The extents that cover any of `count` blocks from `at` on, whole.
///
/// # Errors
/// As [`lookup`].
pub fn extents_in(
    source: &dyn BlockSource,
    inode: &Inode,
    fork: ForkKind,
    at: FileBlock,
    count: u64,
) -> Result<Vec<Extent>> {
    let Some(fork) = inode.fork(fork)? else { return Ok(Vec::new()) };
    let end = at.0.saturating_add(count);
    let (extents, _) = extents_around(source, &fork, at.0, end)?;
    Ok(extents.into_iter().filter(|extent| extent.startoff < end && end_of(extent) > at.0).collect())
}

/// The first block behind all extents of a fork.
///
/// # Errors
/// As [`lookup`].
pub fn last_block(source: &dyn BlockSource, inode: &Inode, fork: ForkKind) -> Result<FileBlock> {
    let Some(fork) = inode.fork(fork)? else { return Ok(FileBlock(0)) };
    let last = last_extents(source, &fork, (0, MAX_STARTOFF + 1), 0)?;
    Ok(FileBlock(last.last().map_or(0, end_of)))
}

/// The extents that touch the blocks from `start` to before `end`, with a neighbour to each side; of a list, all. Whether no
/// more follow.
pub(super) fn extents_around(
    source: &dyn BlockSource,
    fork: &Fork<'_>,
    start: u64,
    end: u64,
) -> Result<(Vec<Extent>, bool)> {
    let Some(tree) = ForkTree::of(source, fork) else { return Ok((list_of(fork), true)) };
    let mut cursor = Cursor::at_or_before(&tree, key_of(start.saturating_sub(1)))?;
    let mut extents = Vec::new();
    while let Some(record) = cursor.next_record()? {
        let extent = extent_of(&record)?;
        extents.push(extent);
        if extent.startoff >= end {
            return Ok((extents, false));
        }
    }
    Ok((extents, true))
}

/// The last `most` extents that touch the blocks from `start` to before `end`, and the one before them; of a list, all.
pub(super) fn last_extents(
    source: &dyn BlockSource,
    fork: &Fork<'_>,
    (start, end): (u64, u64),
    most: usize,
) -> Result<Vec<Extent>> {
    let Some(tree) = ForkTree::of(source, fork) else { return Ok(list_of(fork)) };
    let (mut extents, mut behind) = (Vec::new(), end);
    while let Some(last) = behind.checked_sub(1).filter(|_| extents.len() <= most) {
        let record = Cursor::at_or_before(&tree, key_of(last))?.next_record()?;
        let Some(extent) = record.map(|record| extent_of(&record)).transpose()? else { break };
        if extent.startoff > last {
            break;
        }
        extents.push(extent);
        if end_of(&extent) <= start {
            break;
        }
        behind = extent.startoff;
    }
    extents.reverse();
    Ok(extents)
}

fn list_of(fork: &Fork<'_>) -> Vec<Extent> {
    match fork.form {
        ForkForm::Extents(list) => list.iter().map(RawExtent::decode).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn key_of(at: u64) -> SortKey {
    SortKey([at, 0, 0])
}

pub(super) fn extent_of(record: &[u8]) -> Result<Extent> {
    let raw = RawExtent::prefix(record).ok_or_else(|| Error::Internal("a record of an extent btree".to_owned()))?;
    Ok(raw.0.decode())
}

/// The extent btree of a fork, for reading.
pub(super) struct ForkTree<'a> {
    source: &'a dyn BlockSource,
    inode: &'a Inode,
    root: &'a [u8],
}

impl<'a> ForkTree<'a> {
    /// The btree of a fork; `None` when it has another form.
    pub(super) fn of(source: &'a dyn BlockSource, fork: &Fork<'a>) -> Option<Self> {
        matches!(fork.form, ForkForm::Btree(_)).then(|| ForkTree { source, inode: fork.inode, root: fork.bytes() })
    }
}

impl NodeSource for ForkTree<'_> {
    fn layout(&self) -> Layout {
        Layout::of_block(self.source.geometry(), BtreeKind::Bmbt)
    }

    fn root(&self) -> Result<(Layout, Vec<u8>)> {
        Ok((self.layout().in_inode(self.root.len()), self.root.to_vec()))
    }

    fn block(&self, pointer: u64, level: u32) -> Result<Vec<u8>> {
        let (geometry, fsb) = (self.source.geometry(), FsBlock(pointer));
        let daddr = geometry.is_usable_fsb(fsb).then(|| geometry.fsb_daddr(fsb)).flatten();
        let outside = || Error::corrupt(Check::new("bmbt", "pointer", Rule::Range), self.inode.place.clone());
        let request = Request::new(geometry, BlockKind::Btree(BtreeKind::Bmbt), daddr.ok_or_else(outside)?);
        let block = self.source.read(request.of_inode(self.inode.ino).at_level(level))?;
        Ok(block.sound()?.bytes().to_vec())
    }
}
