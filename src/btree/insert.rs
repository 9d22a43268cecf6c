//! A record added to a tree: blocks that are full split, and a root that is full moves down.

use super::edit::{EditRoot, Editor, Stop, defect};
use super::key::SortKey;
use super::node::{Item, NodeBuf};
use super::store::BlockStore;
use crate::error::{Error, Result};

impl<S: BlockStore> Editor<'_, S> {
    /// Adds a record.
    ///
    /// # Errors
    /// `Usage` when the tree has a record of this key, or `record` has not the length of records; those of the store.
    pub fn insert(&mut self, record: &[u8]) -> Result<()> {
        if record.len() != self.layout.record_size() {
            return Err(Error::Usage(format!("a btree record of {} bytes", record.len())));
        }
        let kind = self.kind();
        let key = SortKey::of_record(kind, record);
        if self.insert_in_place(key, record)? {
            return Ok(());
        }
        let mut path = self.path_to(key)?;
        let mut leaf = path.pop().ok_or_else(|| defect("no way to the leaf"))?;
        let at = leaf.node.items.partition_point(|item| item.sort(kind) < key);
        if leaf.node.items.get(at).is_some_and(|item| item.sort(kind) == key) {
            return Err(Error::Usage("the btree has a record of this key already".to_owned()));
        }
        leaf.node.items.insert(at, Item::Record(record.to_vec()));
        self.settle(path, leaf)
    }

    /// Stores a node that may be one entry too full, and what follows from it above.
    fn settle(&mut self, mut path: Vec<Stop>, mut stop: Stop) -> Result<()> {
        while stop.node.items.len() > self.most_of(stop.pointer, stop.node.level) {
            let Some(mut parent) = path.pop() else { return self.grow(stop) };
            let left = stop.pointer.ok_or_else(|| defect("a root below the root"))?;
            let new = self.split(left, &mut stop.node)?;
            self.refresh(&mut parent, &stop.node, left);
            parent.node.items.insert(parent.index + 1, new);
            self.store_node(Some(left), stop.node)?;
            stop = parent;
        }
        self.store_and_refresh(path, stop)
    }

    /// Moves the upper half of `node`, whose block is `left`, to a new block right of it; returns the entry for that.
    fn split(&mut self, left: u64, node: &mut NodeBuf) -> Result<Item> {
        let right = self.store.allocate()?;
        let upper = node.items.split_off(node.items.len().div_ceil(2));
        let new = NodeBuf { level: node.level, left: Some(left), right: node.right, items: upper };
        if let Some(beyond) = node.right {
            let mut neighbour = self.read_node(beyond)?;
            neighbour.left = Some(right);
            self.write_block(beyond, &neighbour)?;
        }
        node.right = Some(right);
        self.write_block(right, &new)?;
        new.as_child(self.kind(), right).ok_or_else(|| defect("half of a full block is empty"))
    }

    /// The fork that holds the root has `size` bytes from now on; the tree gets a level more if the root does not fit.
    ///
    /// # Errors
    /// Those of the store; `Internal` when the root lies in a block.
    pub fn set_fork_size(&mut self, size: usize) -> Result<()> {
        let EditRoot::Inode { node, .. } = &self.root else { return Err(defect("a root in a block has no fork")) };
        let node = node.clone();
        self.root = EditRoot::Inode { node: node.clone(), fork_size: size };
        if node.items.len() <= self.most_of(None, node.level) {
            return Ok(());
        }
        self.grow(Stop { pointer: None, node, index: 0 })
    }

    /// The root is one entry too full: the tree gets a level more.
    fn grow(&mut self, root: Stop) -> Result<()> {
        let level = root.node.level + 1;
        match (root.pointer, &self.root) {
            (Some(pointer), EditRoot::Block { levels, .. }) => {
                let levels = levels + 1;
                let mut lower = root.node;
                let second = self.split(pointer, &mut lower)?;
                let first = lower.as_child(self.kind(), pointer).ok_or_else(|| defect("half of a root is empty"))?;
                self.write_block(pointer, &lower)?;
                let top = self.store.allocate()?;
                self.write_block(top, &NodeBuf { level, items: vec![first, second], ..NodeBuf::default() })?;
                self.root = EditRoot::Block { pointer: top, levels };
                Ok(())
            }
            (None, EditRoot::Inode { fork_size, .. }) => {
                // a block holds more than the inode, so that what was there fits as it is
                let fork_size = *fork_size;
                let pointer = self.store.allocate()?;
                self.write_block(pointer, &root.node)?;
                let child = root.node.as_child(self.kind(), pointer).ok_or_else(|| defect("a full root is empty"))?;
                let node = NodeBuf { level, items: vec![child], ..NodeBuf::default() };
                self.root = EditRoot::Inode { node, fork_size };
                Ok(())
            }
            _ => Err(defect("a root that is nowhere")),
        }
    }
}
