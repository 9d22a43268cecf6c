//! A btree block with records, changed in place as the kernel changes it: records move within the block, and what a
//! removed record leaves behind its end stays there.

use crate::ondisk::OnDisk;
use crate::ondisk::RawShortBlock;

/// A block of records.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// The whole block.
    pub block: Vec<u8>,
    /// Bytes of the header.
    header: usize,
}

impl Leaf {
    /// An empty block of `size` bytes whose header, of `header` bytes, is written by the caller.
    pub fn new(size: usize, header: usize) -> Self {
        Leaf { block: vec![0; size], header }
    }

    /// The header that all versions share.
    pub fn head(&self) -> &RawShortBlock {
        RawShortBlock::prefix(&self.block).expect("invariant: a block is larger than its header").0
    }

    /// The same, for change.
    pub fn head_mut(&mut self) -> &mut RawShortBlock {
        RawShortBlock::prefix_mut(&mut self.block).expect("invariant: a block is larger than its header").0
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        usize::from(self.head().numrecs.get())
    }

    /// Sets the number of records.
    pub fn set_len(&mut self, len: usize) {
        let len = u16::try_from(len).expect("invariant: fewer records than bytes of a block");
        self.head_mut().numrecs.set(len);
    }

    /// Records that the block can hold.
    pub fn capacity<R: OnDisk>(&self) -> usize {
        (self.block.len() - self.header) / R::SIZE
    }

    /// Record `index`.
    pub fn get<R: OnDisk + Copy>(&self, index: usize) -> R {
        let start = self.header + index * R::SIZE;
        *R::prefix(&self.block[start..]).expect("invariant: the record lies in the block").0
    }

    /// Overwrites record `index`.
    pub fn set<R: OnDisk>(&mut self, index: usize, record: &R) {
        let start = self.header + index * R::SIZE;
        self.block[start..start + R::SIZE].copy_from_slice(record.as_bytes());
    }

    /// Number of records for which `before` holds; these come first.
    pub fn partition<R: OnDisk + Copy>(&self, mut before: impl FnMut(&R) -> bool) -> usize {
        (0..self.len()).find(|&index| !before(&self.get::<R>(index))).unwrap_or(self.len())
    }

    /// Puts a record before record `index`.
    pub fn insert<R: OnDisk>(&mut self, index: usize, record: &R) {
        let len = self.len();
        let start = self.header + index * R::SIZE;
        let end = self.header + len * R::SIZE;
        self.block.copy_within(start..end, start + R::SIZE);
        self.set(index, record);
        self.set_len(len + 1);
    }

    /// Removes record `index`.
    pub fn remove<R: OnDisk>(&mut self, index: usize) {
        let len = self.len();
        let start = self.header + (index + 1) * R::SIZE;
        let end = self.header + len * R::SIZE;
        self.block.copy_within(start..end, start - R::SIZE);
        self.set_len(len - 1);
    }
}
