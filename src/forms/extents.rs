//! The extents of a fork: from the list in the inode, or from the extent btree that hangs from it
//! (Linux `fs/xfs/libxfs/xfs_bmap.c`, `xfs_bmap_btree.c`).

use super::fork::{Fork, ForkForm, ForkKind};
use super::source::{BlockSource, Piece, corrupt, demand_sound, place_of, request_of};
use crate::btree::{Node, SortKey};
use crate::buffer::{Block, BlockKind};
use crate::error::{Check, Error, Place, Result, Rule};
use crate::geometry::{BtreeKind, FileBlock, FsBlock, Geometry, RtBlock};
use crate::ondisk::extent::MAX_STARTOFF;
use crate::ondisk::{Extent, OnDisk, RawExtent};
use std::collections::HashSet;

/// The extents of a fork in order of the file's blocks.
///
/// An extent or a btree block that fails a check comes out as an error, and the walk goes on behind it. No block is
/// visited twice.
pub struct Extents<'a> {
    source: &'a dyn BlockSource,
    fork: Fork<'a>,
    /// Extents of the list that are left.
    list: std::slice::Iter<'a, RawExtent>,
    /// The path down the btree: for each level what is left of its block.
    path: Vec<Level>,
    visited: HashSet<FsBlock>,
    /// First block of the file behind all extents so far.
    end: u64,
    found: u64,
    done: bool,
}

/// What is left of a block on the path.
enum Level {
    Node { level: u32, children: std::vec::IntoIter<FsBlock> },
    Leaf { records: std::vec::IntoIter<Extent>, place: Place },
}

impl Level {
    fn of_node(node: &Node<'_>) -> Self {
        let children: Vec<_> = node.pointers().map(FsBlock).collect();
        Level::Node { level: node.level, children: children.into_iter() }
    }
}

impl<'a> Extents<'a> {
    pub(super) fn new(source: &'a dyn BlockSource, fork: Fork<'a>) -> Self {
        let mut walk = Extents {
            source,
            fork,
            list: [].iter(),
            path: Vec::new(),
            visited: HashSet::new(),
            end: 0,
            found: 0,
            done: false,
        };
        match fork.form {
            ForkForm::Extents(list) => walk.list = list.iter(),
            ForkForm::Btree(root) => walk.path.push(Level::of_node(&root)),
            ForkForm::Device(_) | ForkForm::Local(_) | ForkForm::MetaBtree(_) => walk.done = true,
        }
        walk
    }

    /// The next extent that was found, not checked yet, or a btree block that is damaged.
    fn step(&mut self) -> Option<Result<(Extent, Place)>> {
        if let Some(raw) = self.list.next() {
            return Some(Ok((raw.decode(), self.fork.inode.place.clone())));
        }
        loop {
            match self.path.last_mut()? {
                Level::Leaf { records, place } => match records.next() {
                    Some(extent) => return Some(Ok((extent, place.clone()))),
                    None => drop(self.path.pop()),
                },
                Level::Node { level, children } => {
                    let below = *level - 1;
                    match children.next() {
                        Some(child) => match self.enter(child, below) {
                            Ok(level) => self.path.push(level),
                            Err(error) => return Some(Err(error)),
                        },
                        None => drop(self.path.pop()),
                    }
                }
            }
        }
    }

    fn enter(&mut self, fsb: FsBlock, level: u32) -> Result<Level> {
        if !self.visited.insert(fsb) {
            let check = Check::new("bmbt", "pointer", Rule::Cycle);
            return Err(corrupt(check, &self.fork.inode.place, format!("block {fsb}")));
        }
        let block = read_bmbt(self.source, &self.fork, fsb, level)?;
        let node = decode_bmbt(self.source, &self.fork, &block, level)?;
        if !node.is_leaf() {
            return Ok(Level::of_node(&node));
        }
        let records: Vec<_> = node.records().filter_map(extent_of).collect();
        Ok(Level::Leaf { records: records.into_iter(), place: place_of(self.source, &block) })
    }

    fn check(&mut self, extent: Extent, place: &Place) -> Result<Extent> {
        self.found += 1;
        let failed = |field, rule| corrupt(Check::new("bmbt_rec", field, rule), place, format!("{extent:?}"));
        if let Some((field, rule)) = check_extent(self.source.geometry(), &self.fork, &extent) {
            return Err(failed(field, rule));
        }
        if extent.startoff < self.end {
            return Err(failed("startoff", Rule::Order));
        }
        self.end = extent.startoff + u64::from(extent.blockcount);
        Ok(extent)
    }

    fn count_error(&self) -> Option<Error> {
        let check = Check::new("dinode", "nextents", Rule::Mismatch);
        let detail = || format!("{} in the inode, {} found", self.fork.nextents, self.found);
        (self.found != self.fork.nextents).then(|| corrupt(check, &self.fork.inode.place, detail()))
    }
}

impl Iterator for Extents<'_> {
    type Item = Result<Extent>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        match self.step() {
            Some(Ok((extent, place))) => Some(self.check(extent, &place)),
            Some(Err(error)) => Some(Err(error)),
            None => {
                self.done = true;
                self.count_error().map(Err)
            }
        }
    }
}

/// The rule that an extent by itself breaks, with the field.
fn check_extent(geometry: &Geometry, fork: &Fork<'_>, extent: &Extent) -> Option<(&'static str, Rule)> {
    let len = u64::from(extent.blockcount);
    if len == 0 {
        return Some(("blockcount", Rule::Range));
    }
    if extent.startoff + len - 1 > MAX_STARTOFF {
        return Some(("startoff", Rule::Range));
    }
    let realtime = fork.kind == ForkKind::Data && fork.inode.is_realtime();
    let inside = if realtime {
        geometry.is_usable_rt_extent(RtBlock(extent.startblock), len)
    } else {
        geometry.is_usable_extent(FsBlock(extent.startblock), len)
    };
    if !inside {
        return Some(("startblock", Rule::Range));
    }
    let unwritten = fork.kind == ForkKind::Data && geometry.features.has_extflg();
    (extent.unwritten && !unwritten).then_some(("state", Rule::Flags))
}

/// The extent that maps block `at` of the fork; `None` for a hole. In a btree this reads one block a level.
///
/// # Errors
/// `Io`; `Corrupt` when the way down, or the extent found, fails a check.
pub fn find_extent(source: &dyn BlockSource, fork: &Fork<'_>, at: FileBlock) -> Result<Option<Extent>> {
    let records = match fork.form {
        ForkForm::Extents(list) => list.iter().map(RawExtent::decode).collect(),
        ForkForm::Btree(root) => leaf_of(source, fork, root, at)?,
        ForkForm::Device(_) | ForkForm::Local(_) | ForkForm::MetaBtree(_) => return Ok(None),
    };
    let behind = records.partition_point(|record| record.startoff <= at.0);
    let Some(extent) = behind.checked_sub(1).and_then(|index| records.get(index)).copied() else { return Ok(None) };
    if let Some((field, rule)) = check_extent(source.geometry(), fork, &extent) {
        return Err(corrupt(Check::new("bmbt_rec", field, rule), &fork.inode.place, format!("{extent:?}")));
    }
    Ok((at.0 - extent.startoff < u64::from(extent.blockcount)).then_some(extent))
}

/// The extents of the leaf below `root` that covers file block `at`.
fn leaf_of(source: &dyn BlockSource, fork: &Fork<'_>, root: Node<'_>, at: FileBlock) -> Result<Vec<Extent>> {
    let (mut level, mut child) = (root.level, child_of(&root, at));
    // levels fall by one with each step, so that this ends
    while let (Some(fsb), Some(below)) = (child, level.checked_sub(1)) {
        level = below;
        let block = read_bmbt(source, fork, fsb, level)?;
        let node = decode_bmbt(source, fork, &block, level)?;
        if node.is_leaf() {
            return Ok(node.records().filter_map(extent_of).collect());
        }
        child = child_of(&node, at);
    }
    Ok(Vec::new())
}

/// The child of a node in which file block `at` is mapped, if it is mapped at all.
fn child_of(node: &Node<'_>, at: FileBlock) -> Option<FsBlock> {
    let behind = node.partition(SortKey::of_key(BtreeKind::Bmbt, &at.0.to_be_bytes()));
    behind.checked_sub(1).map(|index| FsBlock(node.pointer(index)))
}

fn extent_of(record: &[u8]) -> Option<Extent> {
    RawExtent::prefix(record).map(|(raw, _)| raw.decode())
}

/// A block of the extent btree that was read for `level`.
fn decode_bmbt<'b>(source: &dyn BlockSource, fork: &Fork<'_>, block: &'b Block, level: u32) -> Result<Node<'b>> {
    let failed = |check| corrupt(check, &place_of(source, block), "");
    let node = Node::decode(*fork.inode.bmbt_layout(), block.bytes()).map_err(failed)?;
    if node.level != level {
        return Err(failed(Check::new("bmbt", "level", Rule::Mismatch)));
    }
    if node.count == 0 { Err(failed(Check::new("bmbt", "numrecs", Rule::Range))) } else { Ok(node) }
}

/// Reads a block of the extent btree; one that fails a check of its identity is an error.
fn read_bmbt(source: &dyn BlockSource, fork: &Fork<'_>, fsb: FsBlock, level: u32) -> Result<Block> {
    if !source.geometry().is_usable_fsb(fsb) {
        let check = Check::new("bmbt", "pointer", Rule::Range);
        return Err(corrupt(check, &fork.inode.place, format!("block {fsb}")));
    }
    let kind = BlockKind::Btree(BtreeKind::Bmbt);
    let request = request_of(source.geometry(), kind, fork.inode.ino, &[Piece { start: fsb, count: 1 }])?;
    let block = source.read(request.at_level(level))?;
    demand_sound(&block)?;
    Ok(block)
}
