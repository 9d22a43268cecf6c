//! The way from the root of the tree to a leaf.

use super::file::DaFile;
use super::node::{Node, block, is_node};
use crate::error::{Check, Result, Rule};
use crate::geometry::FileBlock;
use crate::ondisk::da_block::DA_NODE_MAXDEPTH;

/// A node on the way, and which of its entries leads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) at: FileBlock,
    pub(super) index: usize,
}

/// The way from the root to a leaf; the root itself may be the leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::volume) struct Path {
    pub(super) steps: Vec<Step>,
    /// The leaf.
    pub leaf: FileBlock,
}

impl Path {
    /// The way to the first leaf that may have entries of `hash`; the last one, when all hashes are lower.
    pub fn to(file: &mut DaFile<'_, '_>, hash: u32) -> Result<Self> {
        let mut path = Path { steps: Vec::new(), leaf: file.root() };
        path.go_down(file, |node| {
            let at = node.entries.partition_point(|entry| entry.hashval.get() < hash);
            at.min(node.entries.len() - 1)
        })?;
        Ok(path)
    }

    /// Whether there are nodes.
    pub fn has_nodes(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Follows nodes from `leaf` on until it is one.
    fn go_down(&mut self, file: &mut DaFile<'_, '_>, choose: impl Fn(&Node) -> usize) -> Result<()> {
        let mut above = match self.steps.last() {
            Some(step) => Some(file.node(step.at)?.level),
            None => None,
        };
        loop {
            let wrong = Check::new("da_node", "level", Rule::Mismatch);
            if above == Some(1) {
                return Ok(());
            }
            let bytes = file.read(file.hash_kind(), self.leaf)?;
            if !is_node(&bytes) {
                return if above.is_none() { Ok(()) } else { Err(file.corrupt(wrong)) };
            }
            let node = Node::decode(&bytes, file.crc()).map_err(|check| file.corrupt(check))?;
            if above.is_some_and(|above| node.level + 1 != above) || node.level >= DA_NODE_MAXDEPTH {
                return Err(file.corrupt(wrong));
            }
            above = Some(node.level);
            let index = choose(&node);
            self.steps.push(Step { at: self.leaf, index });
            self.leaf = block(node.entries[index].before.get());
        }
    }

    /// Goes on to the neighbour at depth `depth`, the root's being 0; what is below is left away, the block itself becomes the
    /// path's end. `false`, and nothing has changed, when there is none.
    pub(super) fn shift(&mut self, file: &mut DaFile<'_, '_>, depth: usize, forward: bool) -> Result<bool> {
        for above in (0..depth).rev() {
            let node = file.node(self.steps[above].at)?;
            let index = self.steps[above].index;
            let next = if forward { index.checked_add(1) } else { index.checked_sub(1) };
            let Some(next) = next.filter(|&next| next < node.entries.len()) else { continue };
            self.steps.truncate(above + 1);
            self.steps[above].index = next;
            self.leaf = block(node.entries[next].before.get());
            while self.steps.len() < depth {
                let node = file.node(self.leaf)?;
                let index = if forward { 0 } else { node.entries.len() - 1 };
                self.steps.push(Step { at: self.leaf, index });
                self.leaf = block(node.entries[index].before.get());
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Goes on to the next leaf.
    pub fn next_leaf(&mut self, file: &mut DaFile<'_, '_>) -> Result<bool> {
        let depth = self.steps.len();
        self.shift(file, depth, true)
    }

    /// The block at depth `depth`.
    pub(super) fn at(&self, depth: usize) -> FileBlock {
        self.steps.get(depth).map_or(self.leaf, |step| step.at)
    }

    /// The greatest hash of the block at depth `depth` is `hash` from now on: the nodes above say so
    /// (`xfs_da3_fixhashpath`).
    pub(super) fn fix_hash(&self, file: &mut DaFile<'_, '_>, depth: usize, hash: u32) -> Result<()> {
        for step in self.steps[..depth].iter().rev() {
            let mut node = file.node(step.at)?;
            let last = step.index + 1 == node.entries.len();
            let Some(entry) = node.entries.get_mut(step.index) else {
                return Err(file.corrupt(Check::new("da_node", "count", Rule::Mismatch)));
            };
            if entry.hashval.get() == hash {
                return Ok(());
            }
            entry.hashval.set(hash);
            file.store_node(step.at, &node.entries)?;
            if !last {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The same for the leaf.
    pub fn fix_leaf_hash(&self, file: &mut DaFile<'_, '_>, hash: u32) -> Result<()> {
        self.fix_hash(file, self.steps.len(), hash)
    }
}
