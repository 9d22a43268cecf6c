//! Records of a sound tree from a key on, and those that overlap a range.

use super::key::SortKey;
use super::layout::Layout;
use super::node::Node;
use super::tree::{Root, Tree};
use crate::buffer::BlockCache;
use crate::error::{Check, Error, Result, Rule};
use crate::geometry::BtreeKind;

/// Where the nodes of a tree come from: a filesystem, or the store of a tree that is being made.
pub trait NodeSource {
    /// The layout of the blocks.
    fn layout(&self) -> Layout;

    /// The root: its layout, its bytes and its level. Level and layout of other nodes follow from it.
    ///
    /// # Errors
    /// `Corrupt` when there is none.
    fn root(&self) -> Result<(Layout, Vec<u8>)>;

    /// The bytes of the block at `pointer`, which passed its checks as one of this level.
    ///
    /// # Errors
    /// `Io`; `Corrupt` with the check that the block fails.
    fn block(&self, pointer: u64, level: u32) -> Result<Vec<u8>>;
}

/// A tree of a filesystem, whose blocks come through the cache.
impl NodeSource for (&BlockCache, Tree<'_>) {
    fn layout(&self) -> Layout {
        Layout::of_block(self.0.geometry(), self.1.kind)
    }

    fn root(&self) -> Result<(Layout, Vec<u8>)> {
        match self.1.root {
            Root::Block { pointer, levels } => {
                let level = levels.checked_sub(1).filter(|_| levels <= self.1.max_levels(self.0.geometry()));
                let level = level.ok_or_else(|| self.corrupt("level", Rule::Range))?;
                Ok((self.layout(), self.block(pointer, level)?))
            }
            Root::Inode(bytes) => Ok((self.layout().in_inode(bytes.len()), bytes.to_vec())),
        }
    }

    fn block(&self, pointer: u64, level: u32) -> Result<Vec<u8>> {
        let request = self.1.request(self.0.geometry(), pointer, level);
        let request = request.ok_or_else(|| self.corrupt("ptr", Rule::Range))?;
        Ok(self.0.read_sound(request)?.bytes().to_vec())
    }
}

trait CorruptTree {
    fn corrupt(&self, field: &'static str, rule: Rule) -> Error;
}

impl CorruptTree for (&BlockCache, Tree<'_>) {
    fn corrupt(&self, field: &'static str, rule: Rule) -> Error {
        Error::corrupt(Check::new(self.1.kind.name(), field, rule), self.1.place())
    }
}

/// A node on the way to a record.
struct Place {
    layout: Layout,
    bytes: Vec<u8>,
    /// The entry that comes next.
    index: usize,
}

/// Goes through the records of a tree in order. Each step down goes to a lower level, so that it ends whatever the
/// blocks say.
pub struct Cursor<'a, S: NodeSource + ?Sized> {
    source: &'a S,
    path: Vec<Place>,
}

fn decode(layout: Layout, bytes: &[u8]) -> Result<Node<'_>> {
    Node::decode(layout, bytes).map_err(|check| Error::corrupt(check, crate::error::Place::default()))
}

impl<'a, S: NodeSource + ?Sized> Cursor<'a, S> {
    /// A cursor before the first record.
    ///
    /// # Errors
    /// Those of the source.
    pub fn first(source: &'a S) -> Result<Self> {
        let (layout, bytes) = source.root()?;
        Ok(Cursor { source, path: vec![Place { layout, bytes, index: 0 }] })
    }

    /// A cursor before the last record that is not greater than `key`; before the first if all are greater.
    ///
    /// # Errors
    /// Those of the source.
    pub fn at_or_before(source: &'a S, key: SortKey) -> Result<Self> {
        let mut cursor = Self::first(source)?;
        while let Some(top) = cursor.path.last_mut() {
            let node = decode(top.layout, &top.bytes)?;
            let index = node.partition(key).saturating_sub(1);
            top.index = index;
            if node.is_leaf() || node.count == 0 {
                break;
            }
            let (pointer, level) = (node.pointer(index), node.level - 1);
            top.index += 1;
            cursor.descend(pointer, level)?;
        }
        Ok(cursor)
    }

    fn descend(&mut self, pointer: u64, level: u32) -> Result<()> {
        let (layout, bytes) = (self.source.layout(), self.source.block(pointer, level)?);
        if decode(layout, &bytes)?.level != level {
            let check = Check::new(layout.kind().name(), "level", Rule::Mismatch);
            return Err(Error::corrupt(check, crate::error::Place::default()));
        }
        self.path.push(Place { layout, bytes, index: 0 });
        Ok(())
    }

    /// The next record; `None` behind the last.
    ///
    /// # Errors
    /// Those of the source.
    pub fn next_record(&mut self) -> Result<Option<Vec<u8>>> {
        while let Some(top) = self.path.last_mut() {
            let node = decode(top.layout, &top.bytes)?;
            let index = top.index;
            top.index += 1;
            if index >= node.count {
                self.path.pop();
            } else if node.is_leaf() {
                return Ok(Some(node.record(index).to_vec()));
            } else {
                let (pointer, level) = (node.pointer(index), node.level - 1);
                self.descend(pointer, level)?;
            }
        }
        Ok(None)
    }
}

/// The records of `source` that cover any key from `low` to `high`, in order.
///
/// In trees with high keys a record may begin long before the range; others are only looked for from the record before
/// it on.
///
/// # Errors
/// Those of the source, and of `found`.
pub fn overlapping<S: NodeSource + ?Sized>(
    source: &S,
    low: SortKey,
    high: SortKey,
    found: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let kind = source.layout().kind();
    if kind.is_overlapping() {
        let (layout, bytes) = source.root()?;
        return overlapping_below(source, layout, &bytes, (low, high), found);
    }
    let mut cursor = Cursor::at_or_before(source, low)?;
    while let Some(record) = cursor.next_record()? {
        if SortKey::of_record(kind, &record) > high {
            break;
        }
        if SortKey::of_key(kind, super::key::high_key(kind, &record).as_bytes()) >= low {
            found(&record)?;
        }
    }
    Ok(())
}

fn overlapping_below<S: NodeSource + ?Sized>(
    source: &S,
    layout: Layout,
    bytes: &[u8],
    range: (SortKey, SortKey),
    found: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let node = decode(layout, bytes)?;
    let kind: BtreeKind = layout.kind();
    for index in 0..node.count {
        let highest = node.high_key(index).map(|key| SortKey::of_key(kind, key.as_bytes()));
        if node.sort_key(index) > range.1 {
            break;
        }
        if highest.is_some_and(|highest| highest < range.0) {
            continue;
        }
        if node.is_leaf() {
            found(node.record(index))?;
        } else {
            // levels fall at each step, so that the depth is bounded by that of the root
            let below = source.block(node.pointer(index), node.level - 1)?;
            let level = decode(source.layout(), &below)?.level;
            if level != node.level - 1 {
                let check = Check::new(kind.name(), "level", Rule::Mismatch);
                return Err(Error::corrupt(check, crate::error::Place::default()));
            }
            overlapping_below(source, source.layout(), &below, range, found)?;
        }
    }
    Ok(())
}
