//! A tree from sorted records: each level is filled evenly, so that no block holds too little.

use super::edit::{EditRoot, Editor, defect};
use super::key::in_order;
use super::layout::Layout;
use super::node::{Item, NodeBuf};
use super::store::{BlockStore, TreeIdentity};
use crate::error::{Error, Result};
use crate::geometry::BtreeKind;

/// How full blocks are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// As full as they can be: for trees that will not grow.
    Full,
    /// Half way between the least and the most, as online repair makes them, so that changes find room.
    Middle,
}

impl Fill {
    fn entries(self, layout: &Layout, level: u32) -> usize {
        let (fewest, most) = (layout.fewest(level), layout.most(level));
        match self {
            Fill::Full => most,
            Fill::Middle => fewest + (most - fewest).div_ceil(2),
        }
        .max(1)
    }
}

/// Makes a tree of `count` records that come in order. The root lies in a fork of `fork_size` bytes, or in a block.
///
/// # Errors
/// `Usage` when the records are not in order, not as many as stated, or not as long as they must be; those of the
/// store.
pub fn bulk_load<'s, S: BlockStore>(
    store: &'s mut S,
    layout: Layout,
    identity: TreeIdentity,
    fork_size: Option<usize>,
    fill: Fill,
    count: usize,
    records: &mut dyn Iterator<Item = Vec<u8>>,
) -> Result<Editor<'s, S>> {
    let root = EditRoot::Inode { node: NodeBuf::default(), fork_size: fork_size.unwrap_or(0) };
    let mut editor = Editor { store, layout, identity, root };
    let mut checked = Checked { kind: layout.kind(), size: layout.record_size(), last: None, records };
    let mut level = 0;
    let mut items = Items::Records(&mut checked, count);
    loop {
        let left = items.len();
        if let Some(fork_size) = fork_size.filter(|&size| layout.in_inode(size).most(level) >= left)
            && (level > 0 || layout.kind() != BtreeKind::Bmbt)
        {
            let node = NodeBuf { level, items: items.take(left)?, ..NodeBuf::default() };
            editor.root = EditRoot::Inode { node, fork_size };
            break;
        }
        let children = editor.load_level(level, fill, &mut items)?;
        if let ([Item::Child { pointer, .. }], None) = (&children[..], fork_size) {
            editor.root = EditRoot::Block { pointer: *pointer, levels: level + 1 };
            break;
        }
        items = Items::Children(children.into_iter());
        level += 1;
    }
    match checked.next() {
        None => Ok(editor),
        Some(_) => Err(Error::Usage("there are more records than stated".to_owned())),
    }
}

/// Blocks and levels of a tree of `count` records with its root in a block, as [`bulk_load`] makes it.
pub fn bulk_size(layout: &Layout, fill: Fill, count: usize) -> (usize, u32) {
    let (mut total, mut level, mut left) = (0, 0, count);
    loop {
        left = block_count(layout, level, fill, left);
        total += left;
        level += 1;
        if left == 1 {
            return (total, level);
        }
    }
}

/// Blocks of a level with `count` entries.
fn block_count(layout: &Layout, level: u32, fill: Fill, count: usize) -> usize {
    let (fewest, most) = (layout.fewest(level).max(1), layout.most(level).max(1));
    if count <= most {
        return 1;
    }
    let wanted = count.div_ceil(fill.entries(layout, level));
    wanted.min(count / fewest).max(count.div_ceil(most))
}

/// The records, refused where they break the order.
struct Checked<'r> {
    kind: BtreeKind,
    size: usize,
    last: Option<Vec<u8>>,
    records: &'r mut dyn Iterator<Item = Vec<u8>>,
}

impl Checked<'_> {
    fn next(&mut self) -> Option<Result<Item>> {
        let record = self.records.next()?;
        let sound =
            record.len() == self.size && self.last.as_ref().is_none_or(|last| in_order(self.kind, last, &record));
        if !sound {
            return Some(Err(Error::Usage("records of a btree are not in order, or not of its kind".to_owned())));
        }
        self.last = Some(record.clone());
        Some(Ok(Item::Record(record)))
    }
}

/// The entries of a level, in order.
enum Items<'c, 'r> {
    Records(&'c mut Checked<'r>, usize),
    Children(std::vec::IntoIter<Item>),
}

impl Items<'_, '_> {
    fn len(&self) -> usize {
        match self {
            Items::Records(_, left) => *left,
            Items::Children(children) => children.len(),
        }
    }

    fn take(&mut self, count: usize) -> Result<Vec<Item>> {
        let mut taken = Vec::new();
        for _ in 0..count {
            let next = match self {
                Items::Records(records, left) => {
                    *left -= 1;
                    records.next().ok_or_else(|| Error::Usage("there are fewer records than stated".to_owned()))??
                }
                Items::Children(children) => children.next().ok_or_else(|| defect("a level has too few entries"))?,
            };
            taken.push(next);
        }
        Ok(taken)
    }
}

impl<S: BlockStore> Editor<'_, S> {
    /// Writes the blocks of a level; returns the entries that stand for them above.
    fn load_level(&mut self, level: u32, fill: Fill, items: &mut Items<'_, '_>) -> Result<Vec<Item>> {
        let count = items.len();
        let blocks = block_count(&self.layout, level, fill, count);
        let mut pointer = self.store.allocate()?;
        let mut left = None;
        let mut children = Vec::new();
        for index in 0..blocks {
            // the first blocks take what is left over of an even share
            let share = count / blocks + usize::from(index < count % blocks);
            let next = if index + 1 < blocks { Some(self.store.allocate()?) } else { None };
            let node = NodeBuf { level, left, right: next, items: items.take(share)? };
            self.write_block(pointer, &node)?;
            let child = node.as_child(self.kind(), pointer);
            children.push(child.unwrap_or_else(|| Self::empty_child(self.layout, pointer)));
            left = Some(pointer);
            pointer = next.unwrap_or(pointer);
        }
        Ok(children)
    }

    /// The entry for the only block of a tree without records.
    fn empty_child(layout: Layout, pointer: u64) -> Item {
        let key = super::key::KeyBytes::new(&vec![0; layout.key_size()]);
        Item::Child { low: key, high: key, pointer }
    }
}
