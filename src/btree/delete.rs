//! A record taken from a tree: blocks that hold too little are filled from a neighbour or joined with it, and a root
//! with one child gives way to it.

use super::edit::{EditRoot, Editor, Stop, defect};
use super::key::SortKey;
use super::node::{Item, NodeBuf};
use super::store::BlockStore;
use crate::error::Result;

/// A node and its block.
type Placed = (u64, NodeBuf);

impl<S: BlockStore> Editor<'_, S> {
    /// Takes the record of `key` out. `false` when there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub fn delete(&mut self, key: SortKey) -> Result<bool> {
        if let Some(found) = self.delete_in_place(key)? {
            return Ok(found);
        }
        let kind = self.kind();
        let mut path = self.path_to(key)?;
        let mut leaf = path.pop().ok_or_else(|| defect("no way to the leaf"))?;
        let at = leaf.node.items.partition_point(|item| item.sort(kind) < key);
        if leaf.node.items.get(at).is_none_or(|item| item.sort(kind) != key) {
            return Ok(false);
        }
        leaf.node.items.remove(at);
        self.refill(path, leaf)?;
        self.shrink()?;
        Ok(true)
    }

    /// Stores a node that may hold too little, and what follows from it above.
    fn refill(&mut self, mut path: Vec<Stop>, mut stop: Stop) -> Result<()> {
        while stop.node.items.len() < self.layout.fewest(stop.node.level) {
            // the root, and its only child, may hold as little as they like
            if path.last().is_none_or(|parent| parent.node.items.len() < 2) {
                break;
            }
            let Some(mut parent) = path.pop() else { break };
            let (left_index, left, right) = self.with_neighbour(&parent, stop)?;
            self.join_or_share(&mut parent, left_index, left, right)?;
            stop = parent;
        }
        self.store_and_refresh(path, stop)
    }

    /// The node of `stop` and a neighbour below the same parent, left one first, with the left one's place there.
    fn with_neighbour(&self, parent: &Stop, stop: Stop) -> Result<(usize, Placed, Placed)> {
        let own = (stop.pointer.ok_or_else(|| defect("a root below the root"))?, stop.node);
        let other_index = if parent.index > 0 { parent.index - 1 } else { 1 };
        let Some(Item::Child { pointer, .. }) = parent.node.items.get(other_index) else {
            return Err(defect("no neighbour"));
        };
        let other = (*pointer, self.read_node(*pointer)?);
        Ok(if other_index < parent.index { (other_index, other, own) } else { (parent.index, own, other) })
    }

    /// Joins two neighbours if they fit into one block, else shares their entries evenly.
    fn join_or_share(
        &mut self,
        parent: &mut Stop,
        left_index: usize,
        (left_pointer, mut left): Placed,
        (right_pointer, mut right): Placed,
    ) -> Result<()> {
        let kind = self.kind();
        left.items.append(&mut right.items);
        if left.items.len() <= self.layout.most(left.level) {
            left.right = right.right;
            if let Some(beyond) = right.right {
                let mut neighbour = self.read_node(beyond)?;
                neighbour.left = Some(left_pointer);
                self.write_block(beyond, &neighbour)?;
            }
            self.store.free(right_pointer)?;
            parent.node.items.remove(left_index + 1);
        } else {
            right.items = left.items.split_off(left.items.len().div_ceil(2));
            self.write_block(right_pointer, &right)?;
            let item = right.as_child(kind, right_pointer).ok_or_else(|| defect("half of two blocks is empty"))?;
            *parent.node.items.get_mut(left_index + 1).ok_or_else(|| defect("no neighbour"))? = item;
        }
        self.write_block(left_pointer, &left)?;
        if let Some(item) = left.as_child(kind, left_pointer) {
            *parent.node.items.get_mut(left_index).ok_or_else(|| defect("no neighbour"))? = item;
        }
        parent.index = left_index;
        Ok(())
    }

    /// A root with one child gives way to it, in an inode only if the child's entries fit there.
    pub(super) fn shrink(&mut self) -> Result<()> {
        loop {
            let (pointer, root) = self.read_root()?;
            let [Item::Child { pointer: child, .. }] = root.items[..] else { return Ok(()) };
            match &self.root {
                EditRoot::Block { levels, .. } => {
                    let levels = levels - 1;
                    self.store.free(pointer.ok_or_else(|| defect("a root that is nowhere"))?)?;
                    self.root = EditRoot::Block { pointer: child, levels };
                }
                EditRoot::Inode { fork_size, .. } => {
                    let fork_size = *fork_size;
                    let node = self.read_node(child)?;
                    let fits = node.items.len() <= self.most_of(None, node.level);
                    if node.level < self.lowest_inode_root() || !fits {
                        return Ok(());
                    }
                    self.store.free(child)?;
                    self.root = EditRoot::Inode { node, fork_size };
                }
            }
        }
    }
}
