//! A tree that is being changed: its root, and the way down to a record.

use super::cursor::NodeSource;
use super::key::SortKey;
use super::layout::Layout;
use super::node::{Item, Node, NodeBuf};
use super::store::{BlockStore, TreeIdentity};
use crate::error::{Error, Place, Result};
use crate::geometry::BtreeKind;
use crate::ondisk::{Be64, OnDisk, RawBmbtKey};
use zerocopy::IntoBytes;

/// Where a tree that is changed starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditRoot {
    /// In a block.
    Block {
        /// Its pointer.
        pointer: u64,
        /// Levels of the tree.
        levels: u32,
    },
    /// In a fork of an inode.
    Inode {
        /// The root itself.
        node: NodeBuf,
        /// Bytes of the fork.
        fork_size: usize,
    },
}

/// A tree that is being changed. Blocks go to the store at each change; the root is asked for at the end.
pub struct Editor<'s, S: BlockStore> {
    pub(super) store: &'s mut S,
    pub(super) layout: Layout,
    pub(super) identity: TreeIdentity,
    pub(super) root: EditRoot,
}

/// A node on the way down.
pub(super) struct Stop {
    /// Its block; `None` for a root in an inode.
    pub(super) pointer: Option<u64>,
    pub(super) node: NodeBuf,
    /// The child that the way goes through.
    pub(super) index: usize,
}

pub(super) fn defect(what: &str) -> Error {
    Error::Internal(format!("a btree being changed: {what}"))
}

impl<'s, S: BlockStore> Editor<'s, S> {
    /// An empty tree with its root in a block.
    ///
    /// # Errors
    /// Those of the store.
    pub fn new_in_block(store: &'s mut S, layout: Layout, identity: TreeIdentity) -> Result<Self> {
        let pointer = store.allocate()?;
        let mut editor = Editor { store, layout, identity, root: EditRoot::Block { pointer, levels: 1 } };
        editor.write_block(pointer, &NodeBuf::default())?;
        Ok(editor)
    }

    /// An empty tree with its root in a fork of `fork_size` bytes. That of an extent tree has one child from the start.
    ///
    /// # Errors
    /// Those of the store.
    pub fn new_in_inode(store: &'s mut S, layout: Layout, identity: TreeIdentity, fork_size: usize) -> Result<Self> {
        let root = EditRoot::Inode { node: NodeBuf::default(), fork_size };
        let mut editor = Editor { store, layout, identity, root };
        if layout.kind() == BtreeKind::Bmbt {
            let pointer = editor.store.allocate()?;
            editor.write_block(pointer, &NodeBuf::default())?;
            let key = super::key::KeyBytes::new(RawBmbtKey { startoff: Be64::new(0) }.as_bytes());
            debug_assert_eq!(key.as_bytes().len(), RawBmbtKey::SIZE);
            let items = vec![Item::Child { low: key, high: key, pointer }];
            editor.root = EditRoot::Inode { node: NodeBuf { level: 1, items, ..NodeBuf::default() }, fork_size };
        }
        Ok(editor)
    }

    /// A tree that exists.
    pub fn open(store: &'s mut S, layout: Layout, identity: TreeIdentity, root: EditRoot) -> Self {
        Editor { store, layout, identity, root }
    }

    /// Where the tree starts now.
    pub fn root(&self) -> &EditRoot {
        &self.root
    }

    /// The bytes of the fork that hold the root; `None` when it lies in a block.
    pub fn inode_root_bytes(&self) -> Option<Vec<u8>> {
        let EditRoot::Inode { node, fork_size } = &self.root else { return None };
        node.encode(&self.layout.in_inode(*fork_size), &self.identity, 0)
    }

    /// The kind of the tree.
    pub fn kind(&self) -> BtreeKind {
        self.layout.kind()
    }

    /// The level below which a root in an inode cannot fall.
    pub(super) fn lowest_inode_root(&self) -> u32 {
        u32::from(self.kind() == BtreeKind::Bmbt)
    }

    pub(super) fn read_node(&self, pointer: u64) -> Result<NodeBuf> {
        let bytes = self.store.read(pointer)?;
        let node = Node::decode(self.layout, &bytes).map_err(|check| Error::corrupt(check, Place::default()))?;
        Ok(NodeBuf::of(&node))
    }

    pub(super) fn write_block(&mut self, pointer: u64, node: &NodeBuf) -> Result<()> {
        let daddr = self.store.daddr(pointer);
        let bytes = node.encode(&self.layout, &self.identity, daddr);
        self.store.write(pointer, bytes.ok_or_else(|| defect("a block holds too many entries"))?)
    }

    pub(super) fn read_root(&self) -> Result<(Option<u64>, NodeBuf)> {
        match &self.root {
            EditRoot::Block { pointer, .. } => Ok((Some(*pointer), self.read_node(*pointer)?)),
            EditRoot::Inode { node, .. } => Ok((None, node.clone())),
        }
    }

    /// Most entries of the node that `stop` stands at.
    pub(super) fn most_of(&self, pointer: Option<u64>, level: u32) -> usize {
        match (&self.root, pointer) {
            (EditRoot::Inode { fork_size, .. }, None) => self.layout.in_inode(*fork_size).most(level),
            _ => self.layout.most(level),
        }
    }

    /// The way to the leaf where `key` belongs, the leaf included.
    pub(super) fn path_to(&self, key: SortKey) -> Result<Vec<Stop>> {
        let kind = self.kind();
        let (mut pointer, mut node) = self.read_root()?;
        let mut path = Vec::new();
        while node.level > 0 {
            let index = node.items.partition_point(|item| item.sort(kind) <= key).saturating_sub(1);
            let Some(Item::Child { pointer: child, .. }) = node.items.get(index) else {
                return Err(defect("a node without children"));
            };
            let child = *child;
            let below = self.read_node(child)?;
            if below.level + 1 != node.level {
                return Err(defect("a child at a wrong level"));
            }
            path.push(Stop { pointer, node, index });
            (pointer, node) = (Some(child), below);
        }
        path.push(Stop { pointer, node, index: 0 });
        Ok(path)
    }

    /// Stores a node that fits.
    pub(super) fn store_node(&mut self, pointer: Option<u64>, node: NodeBuf) -> Result<()> {
        match pointer {
            Some(pointer) => self.write_block(pointer, &node),
            None => {
                let EditRoot::Inode { node: root, .. } = &mut self.root else {
                    return Err(defect("a root that is nowhere"));
                };
                *root = node;
                Ok(())
            }
        }
    }

    /// Brings the entry for `child` in its parent up to date. Whether anything changed.
    pub(super) fn refresh(&self, parent: &mut Stop, child: &NodeBuf, pointer: u64) -> bool {
        let Some(item) = child.as_child(self.kind(), pointer) else { return false };
        let Some(slot) = parent.node.items.get_mut(parent.index) else { return false };
        // high keys that are not stored are not looked at
        let same = match (&*slot, &item) {
            (Item::Child { low: a, high: b, .. }, Item::Child { low: c, high: d, .. }) => {
                a == c && (b == d || !self.kind().is_overlapping())
            }
            _ => false,
        };
        *slot = item;
        !same
    }

    /// The record of this key.
    ///
    /// # Errors
    /// Those of the store.
    pub fn get(&self, key: SortKey) -> Result<Option<Vec<u8>>> {
        if let Some(found) = self.find_in_leaf(key)? {
            return Ok(found);
        }
        let kind = self.kind();
        let path = self.path_to(key)?;
        let leaf = path.last().ok_or_else(|| defect("no way to the leaf"))?;
        Ok(leaf.node.items.iter().find(|item| item.sort(kind) == key).and_then(|item| match item {
            Item::Record(record) => Some(record.clone()),
            Item::Child { .. } => None,
        }))
    }

    /// Replaces the record of `key` by `record`, which may belong elsewhere. `false` when there is none of this key.
    ///
    /// # Errors
    /// Those of the store; `Usage` when there is another record of the new key.
    pub fn replace(&mut self, key: SortKey, record: &[u8]) -> Result<bool> {
        if SortKey::of_record(self.kind(), record) == key {
            return self.replace_between(key, record);
        }
        if self.get(SortKey::of_record(self.kind(), record))?.is_some() {
            return Err(Error::Usage("the btree has a record of this key already".to_owned()));
        }
        if !self.delete(key)? {
            return Ok(false);
        }
        self.insert(record).map(|()| true)
    }

    /// Replaces the record of `key` by one that belongs between the same two records. `false` when there is none of this key.
    ///
    /// # Errors
    /// Those of the store; `Internal` when the record belongs elsewhere, as far as its block tells.
    pub fn replace_between(&mut self, key: SortKey, record: &[u8]) -> Result<bool> {
        if let Some(found) = self.replace_in_leaf(key, record)? {
            return Ok(found);
        }
        let kind = self.kind();
        let mut path = self.path_to(key)?;
        let mut leaf = path.pop().ok_or_else(|| defect("no way to the leaf"))?;
        let Ok(at) = leaf.node.items.binary_search_by_key(&key, |item| item.sort(kind)) else { return Ok(false) };
        leaf.node.items[at] = Item::Record(record.to_vec());
        let near = &leaf.node.items[at.saturating_sub(1)..(at + 2).min(leaf.node.items.len())];
        if !near.is_sorted_by_key(|item| item.sort(kind)) {
            return Err(defect("a record between others that belongs elsewhere"));
        }
        self.store_and_refresh(path, leaf)?;
        Ok(true)
    }

    /// Stores a node that fits, and the keys above it as far as they change.
    pub(super) fn store_and_refresh(&mut self, mut path: Vec<Stop>, mut stop: Stop) -> Result<()> {
        while let Some(mut parent) = path.pop() {
            let pointer = stop.pointer.ok_or_else(|| defect("a root below the root"))?;
            let changed = self.refresh(&mut parent, &stop.node, pointer);
            self.store_node(stop.pointer, stop.node)?;
            if !changed {
                return Ok(());
            }
            stop = parent;
        }
        self.store_node(stop.pointer, stop.node)
    }
}

impl<S: BlockStore> NodeSource for Editor<'_, S> {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn root(&self) -> Result<(Layout, Vec<u8>)> {
        match &self.root {
            EditRoot::Block { pointer, .. } => Ok((self.layout, self.store.read(*pointer)?)),
            EditRoot::Inode { fork_size, .. } => {
                let bytes = self.inode_root_bytes().ok_or_else(|| defect("a root that does not fit"))?;
                Ok((self.layout.in_inode(*fork_size), bytes))
            }
        }
    }

    fn block(&self, pointer: u64, _level: u32) -> Result<Vec<u8>> {
        self.store.read(pointer)
    }
}
