//! Where records, keys and pointers lie in a block, or in a root inside an inode.

use std::ops::Range;

use crate::geometry::{BtreeGeometry, BtreeKind, Geometry, inode_root_max};
use crate::ondisk::{OnDisk, RawBmdrRoot};

/// What stands at the start of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// 32-bit siblings.
    Short,
    /// 64-bit siblings.
    Long,
    /// Level and count alone: the root lies in an inode.
    Root,
}

/// Where records, keys and pointers lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    kind: BtreeKind,
    pub(super) header: Header,
    header_size: usize,
    record_size: usize,
    key_size: usize,
    pointer_size: usize,
    leaf_max: usize,
    node_max: usize,
    leaf_min: usize,
    node_min: usize,
    size: usize,
}

fn bytes(count: u32) -> usize {
    usize::try_from(count).expect("invariant: usize has at least 32 bits")
}

impl Layout {
    /// The layout of a block of a btree.
    pub fn of_block(geometry: &Geometry, kind: BtreeKind) -> Self {
        Self::with_sizes(kind, geometry.btree(kind), bytes(geometry.blocksize))
    }

    fn with_sizes(kind: BtreeKind, sizes: &BtreeGeometry, size: usize) -> Self {
        Layout {
            kind,
            header: if kind.is_long() { Header::Long } else { Header::Short },
            header_size: bytes(sizes.header_size),
            record_size: bytes(sizes.record_size),
            key_size: bytes(sizes.key_size),
            pointer_size: bytes(sizes.pointer_size),
            leaf_max: bytes(sizes.leaf_max),
            node_max: bytes(sizes.node_max),
            leaf_min: bytes(sizes.leaf_min),
            node_min: bytes(sizes.node_min),
            size,
        }
    }

    /// The layout of the root of such a tree in a fork of `fork_size` bytes.
    pub fn in_inode(&self, fork_size: usize) -> Self {
        Layout {
            header: Header::Root,
            header_size: RawBmdrRoot::SIZE,
            // the records of a file never lie in its inode as a btree root
            leaf_max: if self.kind == BtreeKind::Bmbt { 0 } else { bytes(inode_root_max(self.kind, fork_size, true)) },
            node_max: bytes(inode_root_max(self.kind, fork_size, false)),
            leaf_min: 0,
            node_min: 0,
            size: fork_size,
            ..*self
        }
    }

    /// Which btree.
    pub fn kind(&self) -> BtreeKind {
        self.kind
    }

    /// Bytes of a block, or of the fork.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes of a record.
    pub fn record_size(&self) -> usize {
        self.record_size
    }

    /// Bytes of a key.
    pub fn key_size(&self) -> usize {
        self.key_size
    }

    /// Bytes of a pointer.
    pub(super) fn pointer_size(&self) -> usize {
        self.pointer_size
    }

    /// Most records (`level` 0) or children.
    pub fn most(&self, level: u32) -> usize {
        if level == 0 { self.leaf_max } else { self.node_max }
    }

    /// Fewest records (`level` 0) or children of a block that is not the root.
    pub fn fewest(&self, level: u32) -> usize {
        if level == 0 { self.leaf_min } else { self.node_min }
    }

    /// Bytes of the keys of one child: two keys where there are high keys.
    fn keys_size(&self) -> usize {
        if self.kind.is_overlapping() { 2 * self.key_size } else { self.key_size }
    }

    /// Where record `index` of a leaf lies.
    pub fn record(&self, index: usize) -> Range<usize> {
        let start = self.header_size + index * self.record_size;
        start..start + self.record_size
    }

    /// Where the low key of child `index` of a node lies.
    pub fn low_key(&self, index: usize) -> Range<usize> {
        let start = self.header_size + index * self.keys_size();
        start..start + self.key_size
    }

    /// Where the high key of child `index` of a node lies; `None` in trees that have none.
    pub fn high_key(&self, index: usize) -> Option<Range<usize>> {
        let low = self.low_key(index);
        self.kind.is_overlapping().then_some(low.end..low.end + self.key_size)
    }

    /// Where the pointer to child `index` of a node lies: behind the room for all keys.
    pub fn pointer(&self, index: usize) -> Range<usize> {
        let start = self.header_size + self.node_max * self.keys_size() + index * self.pointer_size;
        start..start + self.pointer_size
    }
}
