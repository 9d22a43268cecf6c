//! A block of a btree taken apart, and put together again.

use super::key::{KeyBytes, SortKey, high_key, low_key};
use super::layout::{Header, Layout};
use super::store::TreeIdentity;
use crate::error::{Check, Rule};
use crate::geometry::BtreeKind;
use crate::ondisk::{
    Be16, Be32, Be64, NULLAGBLOCK, NULLFSBLOCK, OnDisk, RawBmdrRoot, RawLongBlock, RawLongBlockV5, RawShortBlock,
    RawShortBlockV5, crc,
};

/// A block, or a root inside an inode, over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    layout: Layout,
    bytes: &'a [u8],
    /// Level: 0 is a leaf.
    pub level: u32,
    /// Records or children.
    pub count: usize,
    /// Block to the left.
    pub left: Option<u64>,
    /// Block to the right.
    pub right: Option<u64>,
}

fn long(pointer: u64) -> Option<u64> {
    (pointer != NULLFSBLOCK).then_some(pointer)
}

fn short(pointer: u32) -> Option<u64> {
    (pointer != NULLAGBLOCK).then_some(u64::from(pointer))
}

impl<'a> Node<'a> {
    /// Takes a block apart. Its identity is the affair of who read it.
    ///
    /// # Errors
    /// `count` when the block cannot hold as many records as it says, `block` when it is cut short.
    pub fn decode(layout: Layout, bytes: &'a [u8]) -> Result<Self, Check> {
        let name = layout.kind().name();
        let truncated = Check::new(name, "block", Rule::Truncated);
        let (level, count, left, right) = match layout.header {
            Header::Short => {
                let (head, _) = RawShortBlock::prefix(bytes).ok_or(truncated)?;
                (head.level, head.numrecs, short(head.leftsib.get()), short(head.rightsib.get()))
            }
            Header::Long => {
                let (head, _) = RawLongBlock::prefix(bytes).ok_or(truncated)?;
                (head.level, head.numrecs, long(head.leftsib.get()), long(head.rightsib.get()))
            }
            Header::Root => {
                let (head, _) = RawBmdrRoot::prefix(bytes).ok_or(truncated)?;
                (head.level, head.numrecs, None, None)
            }
        };
        let (level, count) = (u32::from(level.get()), usize::from(count.get()));
        if count > layout.most(level) {
            return Err(Check::new(name, "numrecs", Rule::Count));
        }
        if bytes.len() < layout.size() {
            return Err(truncated);
        }
        Ok(Node { layout, bytes, level, count, left, right })
    }

    /// Whether it holds records.
    pub fn is_leaf(&self) -> bool {
        self.level == 0
    }

    /// Record `index` of a leaf; empty behind the last.
    pub fn record(&self, index: usize) -> &'a [u8] {
        if index < self.count { self.bytes.get(self.layout.record(index)).unwrap_or(&[]) } else { &[] }
    }

    /// The records of a leaf; none of a node.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a> {
        let node = *self;
        (0..if self.is_leaf() { self.count } else { 0 }).map(move |index| node.record(index))
    }

    /// The lowest key of entry `index`: of a child, or of a record.
    pub fn low_key(&self, index: usize) -> KeyBytes {
        if self.is_leaf() {
            return low_key(self.layout.kind(), self.record(index));
        }
        KeyBytes::new(self.bytes.get(self.layout.low_key(index)).unwrap_or(&[]))
    }

    /// The highest key of entry `index`; `None` for children in trees whose nodes do not keep it.
    pub fn high_key(&self, index: usize) -> Option<KeyBytes> {
        if self.is_leaf() {
            return Some(high_key(self.layout.kind(), self.record(index)));
        }
        self.layout.high_key(index).and_then(|range| self.bytes.get(range)).map(KeyBytes::new)
    }

    /// What entry `index` is compared by.
    pub fn sort_key(&self, index: usize) -> SortKey {
        SortKey::of_key(self.layout.kind(), self.low_key(index).as_bytes())
    }

    /// The pointer to child `index` of a node: a block of the group, or a filesystem block.
    pub fn pointer(&self, index: usize) -> u64 {
        let field = self.bytes.get(self.layout.pointer(index)).unwrap_or(&[]);
        field.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    /// The pointers to all children; none of a leaf.
    pub fn pointers(&self) -> impl Iterator<Item = u64> + use<'a> {
        let node = *self;
        (0..if self.is_leaf() { 0 } else { self.count }).map(move |index| node.pointer(index))
    }

    /// How many entries come before all those that are greater than `key`.
    pub fn partition(&self, key: SortKey) -> usize {
        self.partition_by(|other| other <= key)
    }

    /// How many entries are less than `key`.
    pub fn below(&self, key: SortKey) -> usize {
        self.partition_by(|other| other < key)
    }

    fn partition_by(&self, before: impl Fn(SortKey) -> bool) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if before(self.sort_key(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// An entry of a node that is being changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A record.
    Record(Vec<u8>),
    /// A child with its keys.
    Child {
        /// Lowest key.
        low: KeyBytes,
        /// Highest key; nodes of most trees do not keep it.
        high: KeyBytes,
        /// Where it lies.
        pointer: u64,
    },
}

impl Item {
    /// The lowest key.
    pub fn low(&self, kind: BtreeKind) -> KeyBytes {
        match self {
            Item::Record(record) => low_key(kind, record),
            Item::Child { low, .. } => *low,
        }
    }

    /// The highest key.
    pub fn high(&self, kind: BtreeKind) -> KeyBytes {
        match self {
            Item::Record(record) => high_key(kind, record),
            Item::Child { high, .. } => *high,
        }
    }

    /// What it is compared by.
    pub fn sort(&self, kind: BtreeKind) -> SortKey {
        SortKey::of_key(kind, self.low(kind).as_bytes())
    }
}

/// A node that is being changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeBuf {
    /// Level: 0 is a leaf.
    pub level: u32,
    /// Block to the left.
    pub left: Option<u64>,
    /// Block to the right.
    pub right: Option<u64>,
    /// Records or children.
    pub items: Vec<Item>,
}

impl NodeBuf {
    /// The node over some bytes as one that can be changed.
    pub fn of(node: &Node<'_>) -> Self {
        let item = |index| match node.level {
            0 => Item::Record(node.record(index).to_vec()),
            _ => {
                let low = node.low_key(index);
                Item::Child { low, high: node.high_key(index).unwrap_or(low), pointer: node.pointer(index) }
            }
        };
        NodeBuf { level: node.level, left: node.left, right: node.right, items: (0..node.count).map(item).collect() }
    }

    /// The entry that stands for this node in its parent; `None` of an empty node.
    pub fn as_child(&self, kind: BtreeKind, pointer: u64) -> Option<Item> {
        let low = self.items.first()?.low(kind);
        let highest = |key: &KeyBytes| SortKey::of_key(kind, key.as_bytes());
        let high = self.items.iter().map(|item| item.high(kind)).max_by_key(highest)?;
        Some(Item::Child { low, high, pointer })
    }

    /// The block as stored, with its identity; its LSN is 0.
    ///
    /// `None` when there are more entries than it holds.
    pub fn encode(&self, layout: &Layout, identity: &TreeIdentity, daddr: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; layout.size()];
        let (level, count) = (u16::try_from(self.level).ok()?, u16::try_from(self.items.len()).ok()?);
        if self.items.len() > layout.most(self.level) {
            return None;
        }
        let (level, numrecs) = (Be16::new(level), Be16::new(count));
        match layout.header {
            Header::Root => put(&mut bytes, &RawBmdrRoot { level, numrecs })?,
            Header::Short => self.put_short(&mut bytes, layout, identity, level, numrecs)?,
            Header::Long => self.put_long(&mut bytes, layout, identity, level, numrecs)?,
        }
        for (index, item) in self.items.iter().enumerate() {
            put_item(&mut bytes, layout, index, item)?;
        }
        if identity.crc && layout.header != Header::Root {
            put_v5(&mut bytes, layout.header, identity, daddr)?;
        }
        Some(bytes)
    }

    fn put_short(
        &self,
        bytes: &mut [u8],
        layout: &Layout,
        identity: &TreeIdentity,
        level: Be16,
        numrecs: Be16,
    ) -> Option<()> {
        let sibling = |pointer: Option<u64>| u32::try_from(pointer.unwrap_or(u64::from(NULLAGBLOCK))).ok();
        let (leftsib, rightsib) = (Be32::new(sibling(self.left)?), Be32::new(sibling(self.right)?));
        let magic = Be32::new(layout.kind().magic(identity.crc));
        put(bytes, &RawShortBlock { magic, level, numrecs, leftsib, rightsib })
    }

    fn put_long(
        &self,
        bytes: &mut [u8],
        layout: &Layout,
        identity: &TreeIdentity,
        level: Be16,
        numrecs: Be16,
    ) -> Option<()> {
        let sibling = |pointer: Option<u64>| Be64::new(pointer.unwrap_or(NULLFSBLOCK));
        let magic = Be32::new(layout.kind().magic(identity.crc));
        let (leftsib, rightsib) = (sibling(self.left), sibling(self.right));
        put(bytes, &RawLongBlock { magic, level, numrecs, leftsib, rightsib })
    }
}

fn put<T: OnDisk>(bytes: &mut [u8], value: &T) -> Option<()> {
    bytes.get_mut(..T::SIZE)?.copy_from_slice(value.as_bytes());
    Some(())
}

fn put_item(bytes: &mut [u8], layout: &Layout, index: usize, item: &Item) -> Option<()> {
    match item {
        Item::Record(record) => {
            let place = bytes.get_mut(layout.record(index))?;
            (place.len() == record.len()).then(|| place.copy_from_slice(record))
        }
        Item::Child { low, high, pointer } => {
            bytes.get_mut(layout.low_key(index))?.copy_from_slice(low.as_bytes());
            if let Some(range) = layout.high_key(index) {
                bytes.get_mut(range)?.copy_from_slice(high.as_bytes());
            }
            let place = bytes.get_mut(layout.pointer(index))?;
            let stored = pointer.to_be_bytes();
            let field = stored.get(stored.len() - layout.pointer_size()..)?;
            place.copy_from_slice(field);
            Some(())
        }
    }
}

/// Fills in what version 5 adds to a header, and the CRC.
fn put_v5(bytes: &mut [u8], header: Header, identity: &TreeIdentity, daddr: u64) -> Option<()> {
    let blkno = Be64::new(daddr);
    if header == Header::Long {
        let (head, _) = RawLongBlockV5::prefix_mut(bytes)?;
        head.blkno = blkno;
        head.uuid = identity.uuid;
        head.owner = Be64::new(identity.owner);
        crc::stamp(bytes, RawLongBlockV5::CRC_OFFSET);
    } else {
        let (head, _) = RawShortBlockV5::prefix_mut(bytes)?;
        head.blkno = blkno;
        head.uuid = identity.uuid;
        head.owner = Be32::new(u32::try_from(identity.owner).ok()?);
        crc::stamp(bytes, RawShortBlockV5::CRC_OFFSET);
    }
    Some(())
}
