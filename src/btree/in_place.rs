//! Changes of one leaf that leave the shape of the tree as it is: most of them. Records are moved in the block as it is
//! stored, and the keys above it are brought up to date where they change.

use super::edit::{EditRoot, Editor, defect};
use super::key::{KeyBytes, SortKey};
use super::layout::{Header, Layout};
use super::node::{Item, Node};
use super::store::BlockStore;
use crate::error::{Error, Place, Result};
use crate::ondisk::{OnDisk, RawLongBlock, RawLongBlockV5, RawShortBlock, RawShortBlockV5, crc};

/// A block on the way down, as it is stored.
struct Step {
    pointer: u64,
    bytes: Vec<u8>,
    /// The child that the way goes through.
    index: usize,
}

/// The way to a leaf in a block, the leaf included.
struct Way {
    /// The child that it goes through in a root that lies in an inode.
    in_inode: Option<usize>,
    steps: Vec<Step>,
}

fn decode(layout: Layout, bytes: &[u8]) -> Result<Node<'_>> {
    Node::decode(layout, bytes).map_err(|check| Error::corrupt(check, Place::default()))
}

/// Writes the number of records into a header.
fn set_count(layout: &Layout, bytes: &mut [u8], count: usize) -> Option<()> {
    let count = u16::try_from(count).ok()?;
    match layout.header {
        Header::Short => RawShortBlock::prefix_mut(bytes)?.0.numrecs.set(count),
        Header::Long => RawLongBlock::prefix_mut(bytes)?.0.numrecs.set(count),
        Header::Root => return None,
    }
    Some(())
}

/// The keys that stand for a node in its parent: lowest and highest. `None` of an empty node.
fn keys_of(node: &Node<'_>, layout: Layout) -> Option<(KeyBytes, KeyBytes)> {
    if node.count == 0 {
        return None;
    }
    let low = node.low_key(0);
    if !layout.kind().is_overlapping() {
        return Some((low, low));
    }
    let highest = |key: &KeyBytes| SortKey::of_key(layout.kind(), key.as_bytes());
    let high = (0..node.count).filter_map(|index| node.high_key(index)).max_by_key(highest)?;
    Some((low, high))
}

/// Stores the keys of a child in its parent. Whether they were others.
fn set_keys(layout: &Layout, bytes: &mut [u8], index: usize, low: &KeyBytes, high: &KeyBytes) -> Option<bool> {
    let mut put = |range: std::ops::Range<usize>, key: &KeyBytes| {
        let place = bytes.get_mut(range)?;
        let differs = *place != *key.as_bytes();
        place.copy_from_slice(key.as_bytes());
        Some(differs)
    };
    let mut changed = put(layout.low_key(index), low)?;
    if let Some(range) = layout.high_key(index) {
        changed |= put(range, high)?;
    }
    Some(changed)
}

impl<S: BlockStore> Editor<'_, S> {
    /// The way to the leaf where `key` belongs; `None` when the records lie in the inode.
    fn way_to(&self, key: SortKey) -> Result<Option<Way>> {
        let kind = self.kind();
        let (in_inode, mut pointer, mut level) = match &self.root {
            EditRoot::Block { pointer, levels } => (None, *pointer, levels.saturating_sub(1)),
            EditRoot::Inode { node, .. } => {
                let index = node.items.partition_point(|item| item.sort(kind) <= key).saturating_sub(1);
                let Some(Item::Child { pointer, .. }) = node.items.get(index) else { return Ok(None) };
                (Some(index), *pointer, node.level.saturating_sub(1))
            }
        };
        let mut steps = Vec::new();
        loop {
            let bytes = self.store.read(pointer)?;
            let node = decode(self.layout, &bytes)?;
            if node.level != level {
                return Err(defect("a child at a wrong level"));
            }
            if node.is_leaf() {
                steps.push(Step { pointer, bytes, index: 0 });
                return Ok(Some(Way { in_inode, steps }));
            }
            if node.count == 0 {
                return Err(defect("a node without children"));
            }
            let index = node.partition(key).saturating_sub(1);
            let child = node.pointer(index);
            steps.push(Step { pointer, bytes, index });
            (pointer, level) = (child, level - 1);
        }
    }

    /// Stores a leaf that was changed, and the keys above it as far as they change.
    fn put_back(&mut self, mut way: Way) -> Result<()> {
        let mut child = way.steps.pop().ok_or_else(|| defect("no way to the leaf"))?;
        loop {
            let keys = keys_of(&decode(self.layout, &child.bytes)?, self.layout);
            self.write_changed(child)?;
            let Some((low, high)) = keys else { return Ok(()) };
            let Some(mut parent) = way.steps.pop() else { return self.set_root_keys(way.in_inode, low, high) };
            let changed = set_keys(&self.layout, &mut parent.bytes, parent.index, &low, &high);
            if !changed.ok_or_else(|| defect("a child outside its parent"))? {
                return Ok(());
            }
            child = parent;
        }
    }

    fn set_root_keys(&mut self, index: Option<usize>, new_low: KeyBytes, new_high: KeyBytes) -> Result<()> {
        let (EditRoot::Inode { node, .. }, Some(index)) = (&mut self.root, index) else { return Ok(()) };
        let Some(Item::Child { low, high, .. }) = node.items.get_mut(index) else {
            return Err(defect("a root that is nowhere"));
        };
        (*low, *high) = (new_low, new_high);
        Ok(())
    }

    fn write_changed(&mut self, mut step: Step) -> Result<()> {
        if self.identity.crc && self.store.wants_crc() {
            let offset = if self.layout.header == Header::Long {
                RawLongBlockV5::CRC_OFFSET
            } else {
                RawShortBlockV5::CRC_OFFSET
            };
            crc::stamp(&mut step.bytes, offset);
        }
        self.store.write(step.pointer, step.bytes)
    }

    /// Adds a record to a leaf that has room. `false` when it has none.
    pub(super) fn insert_in_place(&mut self, key: SortKey, record: &[u8]) -> Result<bool> {
        let layout = self.layout;
        let Some(mut way) = self.way_to(key)? else { return Ok(false) };
        let leaf = way.steps.last_mut().ok_or_else(|| defect("no way to the leaf"))?;
        let node = decode(layout, &leaf.bytes)?;
        let (at, count) = (node.below(key), node.count);
        if at < count && node.sort_key(at) == key {
            return Err(Error::Usage("the btree has a record of this key already".to_owned()));
        }
        if count >= layout.most(0) {
            return Ok(false);
        }
        let (place, end) = (layout.record(at), layout.record(count).start);
        leaf.bytes.copy_within(place.start..end, place.end);
        leaf.bytes[place].copy_from_slice(record);
        set_count(&layout, &mut leaf.bytes, count + 1).ok_or_else(|| defect("a leaf without a header"))?;
        self.put_back(way)?;
        Ok(true)
    }

    /// Takes a record out of a leaf that keeps enough. Whether there was one; `None` when the leaf would hold too little.
    pub(super) fn delete_in_place(&mut self, key: SortKey) -> Result<Option<bool>> {
        let layout = self.layout;
        let Some(mut way) = self.way_to(key)? else { return Ok(None) };
        let is_root = way.in_inode.is_none() && way.steps.len() == 1;
        let leaf = way.steps.last_mut().ok_or_else(|| defect("no way to the leaf"))?;
        let node = decode(layout, &leaf.bytes)?;
        let (at, count) = (node.below(key), node.count);
        if at >= count || node.sort_key(at) != key {
            return Ok(Some(false));
        }
        if count <= layout.fewest(0) && !is_root {
            return Ok(None);
        }
        let (place, end) = (layout.record(at), layout.record(count).start);
        leaf.bytes.copy_within(place.end..end, place.start);
        set_count(&layout, &mut leaf.bytes, count - 1).ok_or_else(|| defect("a leaf without a header"))?;
        let in_inode = way.in_inode.is_some();
        self.put_back(way)?;
        if in_inode {
            // what is left may fit into the inode now
            self.shrink()?;
        }
        Ok(Some(true))
    }

    /// Replaces the record of `key` by one that belongs between the same two records. `false` when there is none of this key;
    /// `None` when the records lie in the inode.
    pub(super) fn replace_in_leaf(&mut self, key: SortKey, record: &[u8]) -> Result<Option<bool>> {
        let (kind, layout) = (self.kind(), self.layout);
        let Some(mut way) = self.way_to(key)? else { return Ok(None) };
        let leaf = way.steps.last_mut().ok_or_else(|| defect("no way to the leaf"))?;
        let node = decode(layout, &leaf.bytes)?;
        let at = node.below(key);
        if at >= node.count || node.sort_key(at) != key {
            return Ok(Some(false));
        }
        let new = SortKey::of_record(kind, record);
        let behind = at.checked_sub(1).is_none_or(|before| node.sort_key(before) < new);
        let before = at + 1 >= node.count || new < node.sort_key(at + 1);
        if record.len() != layout.record_size() || !(behind && before) {
            return Err(defect("a record between others that belongs elsewhere"));
        }
        leaf.bytes[layout.record(at)].copy_from_slice(record);
        self.put_back(way)?;
        Ok(Some(true))
    }

    /// The record of a key in a leaf; `None` when the records lie in the inode.
    pub(super) fn find_in_leaf(&self, key: SortKey) -> Result<Option<Option<Vec<u8>>>> {
        let Some(way) = self.way_to(key)? else { return Ok(None) };
        let leaf = way.steps.last().ok_or_else(|| defect("no way to the leaf"))?;
        let node = decode(self.layout, &leaf.bytes)?;
        let at = node.below(key);
        let found = at < node.count && node.sort_key(at) == key;
        Ok(Some(found.then(|| node.record(at).to_vec())))
    }
}
