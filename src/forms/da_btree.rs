//! The hash btree that directories and attribute forks share (Linux `fs/xfs/libxfs/xfs_da_btree.c`).

use super::directory::{dir_unit, leaf_start};
use super::extents::find_extent;
use super::file_blocks::read_file_block;
use super::fork::Fork;
use super::source::{BlockSource, corrupt, demand_sound, place_of};
use crate::buffer::{Block, BlockKind};
use crate::error::{Check, Error, Result, Rule};
use crate::geometry::FileBlock;
use crate::ondisk::OnDisk;
use crate::ondisk::attr_leaf::AttrLeaf;
use crate::ondisk::da_block::{DA_NODE_MAGIC, DA3_NODE_MAGIC, DaNode, RawDaBlkinfo};
use crate::ondisk::dir_leaf::DirLeaf;
use std::cell::RefCell;
use std::collections::HashSet;

/// The index of a directory, or the attribute fork.
pub(super) struct HashIndex<'a> {
    source: &'a dyn BlockSource,
    fork: Fork<'a>,
    kind: BlockKind,
    root: FileBlock,
    unit: u32,
    /// Leaves that were reached by their siblings: the chain must not come back.
    chained: RefCell<HashSet<u32>>,
}

/// A block of the index.
pub(super) enum IndexBlock<'b> {
    Node(DaNode<'b>),
    DirLeaf(DirLeaf<'b>),
    AttrLeaf(AttrLeaf<'b>),
}

impl<'a> HashIndex<'a> {
    /// The index of the directory whose data fork is `fork`.
    ///
    /// With a free index there are nodes, without it there is one leaf.
    pub(super) fn directory(source: &'a dyn BlockSource, fork: Fork<'a>) -> Result<Self> {
        let (unit, root) = (dir_unit(source.geometry()), leaf_start(source.geometry()));
        let free = find_extent(source, &fork, source.geometry().directory.free_start)?;
        let kind = if free.is_some() { BlockKind::DirHash } else { BlockKind::DirLeaf1 };
        Ok(HashIndex { source, fork, kind, root, unit, chained: RefCell::default() })
    }

    /// The attributes in `fork`.
    pub(super) fn attributes(source: &'a dyn BlockSource, fork: Fork<'a>) -> Self {
        let chained = RefCell::default();
        HashIndex { source, fork, kind: BlockKind::AttrHash, root: FileBlock(0), unit: 1, chained }
    }

    fn failed(&self, field: &'static str, rule: Rule, at: FileBlock) -> Error {
        corrupt(Check::new("da_node", field, rule), &self.fork.inode.place, format!("file block {at}"))
    }

    /// Reads block `at` of the index, whatever its identity is worth.
    fn read_raw(&self, at: FileBlock) -> Result<Block> {
        if at.0 < self.root.0 || at.0 % u64::from(self.unit) != 0 {
            return Err(self.failed("before", Rule::Range, at));
        }
        let block = read_file_block(self.source, &self.fork, self.kind, at, self.unit)?;
        block.ok_or_else(|| self.failed("before", Rule::Truncated, at))
    }

    /// Reads block `at` of the index; one that fails a check of its identity is an error.
    fn read(&self, at: FileBlock) -> Result<Block> {
        let block = self.read_raw(at)?;
        demand_sound(&block)?;
        Ok(block)
    }

    /// What `block` is, by its magic number.
    pub(super) fn decode<'b>(&self, block: &'b Block) -> Result<IndexBlock<'b>> {
        let crc = self.source.geometry().features.has_crc();
        let bytes = block.bytes();
        let magic = RawDaBlkinfo::prefix(bytes).map_or(0, |(info, _)| info.magic.get());
        let decoded = match (magic, self.kind) {
            (DA_NODE_MAGIC | DA3_NODE_MAGIC, _) => DaNode::decode(bytes, crc).map(IndexBlock::Node),
            (_, BlockKind::AttrHash) => AttrLeaf::decode(bytes, crc).map(IndexBlock::AttrLeaf),
            _ => DirLeaf::decode(bytes, crc).map(IndexBlock::DirLeaf),
        };
        decoded.map_err(|check| corrupt(check, &place_of(self.source, block), ""))
    }

    /// Whether there are inner nodes.
    pub(super) fn has_nodes(&self) -> Result<bool> {
        let root = self.read(self.root)?;
        Ok(matches!(self.decode(&root)?, IndexBlock::Node(_)))
    }

    /// Levels fall by one with each step down, and a leaf is level 0: so every way down ends.
    fn check_level(&self, block: &IndexBlock<'_>, above: Option<u16>, at: FileBlock) -> Result<()> {
        let level = if let IndexBlock::Node(node) = block { node.level } else { 0 };
        if above.is_some_and(|above| level + 1 != above) {
            return Err(self.failed("level", Rule::Mismatch, at));
        }
        Ok(())
    }

    /// The first leaf that can have entries of `hash`, with its place in the file; `None` when all hashes are lower.
    pub(super) fn leaf_of(&self, hash: u32) -> Result<Option<(Block, FileBlock)>> {
        self.chained.borrow_mut().clear();
        let mut at = self.root;
        let mut above = None;
        loop {
            let block = self.read(at)?;
            let decoded = self.decode(&block)?;
            self.check_level(&decoded, above, at)?;
            let IndexBlock::Node(node) = decoded else { return Ok(Some((block, at))) };
            above = Some(node.level);
            match node.child(hash) {
                Some(child) => at = FileBlock(u64::from(child)),
                None => return Ok(None),
            }
        }
    }

    /// The leaf `forw` that follows another; `None` at the end.
    pub(super) fn next_leaf(&self, forw: u32) -> Result<Option<(Block, FileBlock)>> {
        let at = FileBlock(u64::from(forw));
        if forw == 0 {
            return Ok(None);
        }
        if !self.chained.borrow_mut().insert(forw) {
            return Err(self.failed("forw", Rule::Cycle, at));
        }
        self.read(at).map(|block| Some((block, at)))
    }

    /// All leaves below the root in order, whatever their identity is worth. A node that is damaged comes out as an
    /// error, and the walk goes on behind it; no block is visited twice.
    pub(super) fn leaves(&self) -> Leaves<'_, 'a> {
        Leaves { index: self, path: vec![(None, vec![self.root].into_iter())], visited: HashSet::new() }
    }
}

/// Iterator of [`HashIndex::leaves`].
pub(super) struct Leaves<'i, 'a> {
    index: &'i HashIndex<'a>,
    /// The path down: for each node its level and the children that are left.
    path: Vec<(Option<u16>, std::vec::IntoIter<FileBlock>)>,
    visited: HashSet<FileBlock>,
}

impl Leaves<'_, '_> {
    /// Reads block `at`, which hangs from a node of level `above`. A leaf is returned, a node is put on the path.
    fn enter(&mut self, at: FileBlock, above: Option<u16>) -> Result<Option<(Block, FileBlock)>> {
        if !self.visited.insert(at) {
            return Err(self.index.failed("before", Rule::Cycle, at));
        }
        let block = self.index.read_raw(at)?;
        let decoded = self.index.decode(&block)?;
        self.index.check_level(&decoded, above, at)?;
        let IndexBlock::Node(node) = decoded else { return Ok(Some((block, at))) };
        let children: Vec<_> = node.entries.iter().map(|entry| FileBlock(u64::from(entry.before.get()))).collect();
        self.path.push((Some(node.level), children.into_iter()));
        demand_sound(&block)?;
        Ok(None)
    }
}

impl Iterator for Leaves<'_, '_> {
    type Item = Result<(Block, FileBlock)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (above, children) = self.path.last_mut()?;
            let above = *above;
            let Some(child) = children.next() else {
                self.path.pop();
                continue;
            };
            if let Some(found) = self.enter(child, above).transpose() {
                return Some(found);
            }
        }
    }
}
