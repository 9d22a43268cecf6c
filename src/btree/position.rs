//! A place among the records of a sound tree, from which one can go both ways.

use super::cursor::NodeSource;
use super::key::SortKey;
use super::layout::Layout;
use super::node::Node;
use crate::error::{Check, Error, Place, Result, Rule};

/// A node on the way to a record.
struct Stop {
    layout: Layout,
    bytes: Vec<u8>,
    level: u32,
    count: usize,
    /// The entry at which the way goes on; in a leaf it may stand behind the last one.
    index: usize,
}

/// A place among the records of a tree. Each step down goes to a lower level, so that it ends whatever the blocks say.
pub struct Position<'a, S: NodeSource + ?Sized> {
    source: &'a S,
    path: Vec<Stop>,
}

impl Stop {
    fn new(layout: Layout, bytes: Vec<u8>) -> Result<Self> {
        let node = Node::decode(layout, &bytes).map_err(|check| Error::corrupt(check, Place::default()))?;
        let (level, count) = (node.level, node.count);
        Ok(Stop { layout, bytes, level, count, index: 0 })
    }
}

/// At which entry a step down begins.
#[derive(Clone, Copy)]
enum Side {
    First,
    Last,
    Key(SortKey),
}

impl<'a, S: NodeSource + ?Sized> Position<'a, S> {
    /// Before the first record that is not less than `key`; behind the last one if there is none.
    ///
    /// # Errors
    /// Those of the source.
    pub fn at_or_after(source: &'a S, key: SortKey) -> Result<Self> {
        let (layout, bytes) = source.root()?;
        let mut position = Position { source, path: vec![Stop::new(layout, bytes)?] };
        position.descend(Side::Key(key), true)?;
        position.leave_end()?;
        Ok(position)
    }

    /// At the last record that is not greater than `key`; `None` if there is none.
    ///
    /// # Errors
    /// Those of the source.
    pub fn at_or_before(source: &'a S, key: SortKey) -> Result<Option<Self>> {
        let mut position = Self::at_or_after(source, key)?;
        let kind = source.layout().kind();
        if position.record()?.is_some_and(|record| SortKey::of_record(kind, record) == key) {
            return Ok(Some(position));
        }
        Ok(position.back()?.then_some(position))
    }

    /// At the last record; `None` if there is none.
    ///
    /// # Errors
    /// Those of the source.
    pub fn last(source: &'a S) -> Result<Option<Self>> {
        let (layout, bytes) = source.root()?;
        let mut position = Position { source, path: vec![Stop::new(layout, bytes)?] };
        position.descend(Side::Last, true)?;
        Ok(position.record()?.is_some().then_some(position))
    }

    /// The record that it stands at; `None` behind the last.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn record(&self) -> Result<Option<&[u8]>> {
        let Some(leaf) = self.path.last().filter(|leaf| leaf.index < leaf.count) else { return Ok(None) };
        Ok(leaf.bytes.get(leaf.layout.record(leaf.index)))
    }

    /// Goes to the next record. Whether there is one; if not, it stands behind the last.
    ///
    /// # Errors
    /// Those of the source.
    pub fn forward(&mut self) -> Result<bool> {
        if let Some(leaf) = self.path.last_mut() {
            leaf.index = (leaf.index + 1).min(leaf.count);
        }
        self.leave_end()?;
        Ok(self.record()?.is_some())
    }

    /// Goes to the record before. Whether there is one; if not, it stays.
    ///
    /// # Errors
    /// Those of the source.
    pub fn back(&mut self) -> Result<bool> {
        let Some(up) = self.path.iter().rposition(|stop| stop.index > 0) else { return Ok(false) };
        self.path.truncate(up + 1);
        self.path[up].index -= 1;
        self.descend(Side::Last, false)?;
        Ok(true)
    }

    /// Whether it stands in the last leaf of the tree.
    pub fn in_last_leaf(&self) -> bool {
        self.path.split_last().is_some_and(|(_, above)| above.iter().all(|stop| stop.index + 1 >= stop.count))
    }

    /// Goes to the first record of the leaf that it stands in.
    pub fn to_start_of_leaf(&mut self) {
        if let Some(leaf) = self.path.last_mut() {
            leaf.index = 0;
        }
    }

    /// Behind the last record of a leaf, goes on to the next leaf if there is one.
    fn leave_end(&mut self) -> Result<()> {
        if self.path.last().is_none_or(|leaf| leaf.index < leaf.count) {
            return Ok(());
        }
        let above = self.path.len() - 1;
        let Some(up) = self.path[..above].iter().rposition(|stop| stop.index + 1 < stop.count) else { return Ok(()) };
        self.path.truncate(up + 1);
        self.path[up].index += 1;
        self.descend(Side::First, false)
    }

    /// Goes down to a leaf from the lowest node of the path, whose own index is yet to be found if it is `fresh`.
    fn descend(&mut self, side: Side, mut fresh: bool) -> Result<()> {
        loop {
            let Some(top) = self.path.last_mut() else { return Ok(()) };
            let node = Node::decode(top.layout, &top.bytes).map_err(|check| Error::corrupt(check, Place::default()))?;
            let index = match side {
                _ if !fresh => top.index,
                Side::First => 0,
                Side::Last => node.count.saturating_sub(1),
                Side::Key(key) if node.is_leaf() => node.below(key),
                Side::Key(key) => node.partition(key).saturating_sub(1),
            };
            if node.is_leaf() || node.count == 0 {
                top.index = index;
                return Ok(());
            }
            let (pointer, level) = (node.pointer(index), node.level - 1);
            top.index = index;
            let below = Stop::new(self.source.layout(), self.source.block(pointer, level)?)?;
            if below.level != level {
                let check = Check::new(below.layout.kind().name(), "level", Rule::Mismatch);
                return Err(Error::corrupt(check, Place::default()));
            }
            self.path.push(below);
            fresh = true;
        }
    }
}
