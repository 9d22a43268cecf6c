//! Regions on their way to the log.

use std::ops::Range;

use zerocopy::IntoBytes;

use super::item::{ItemSize, OP_HEADER, padded};
use super::layout::WriterLayout;
use crate::ondisk::OnDisk;
use crate::ondisk::log_record::{CLIENT_TRANSACTION, RawLogOpHeader};

/// Regions end to end in one buffer, each behind the header of its operation and padded with zeroes to whole words.
///
/// The buffer is used again from item to item, and holds nothing but what was put into it.
#[derive(Clone, Debug)]
pub struct Regions {
    layout: WriterLayout,
    bytes: Vec<u8>,
    /// Where each region ends in `bytes`.
    ends: Vec<usize>,
}

impl Regions {
    /// No regions yet, for items in this layout.
    pub fn new(layout: WriterLayout) -> Self {
        Regions { layout, bytes: Vec::new(), ends: Vec::new() }
    }

    /// How the writer lays its items out.
    pub fn layout(&self) -> WriterLayout {
        self.layout
    }

    /// Forgets all regions.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a region.
    pub fn push(&mut self, contents: &[u8]) {
        self.push_parts(&[contents]);
    }

    /// Adds a region that consists of these parts.
    pub fn push_parts(&mut self, parts: &[&[u8]]) {
        let start = self.begin();
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.end(start);
    }

    /// Adds a region of `len` zero bytes, to be filled in.
    pub fn push_zeroed(&mut self, len: usize) -> &mut [u8] {
        let start = self.begin();
        let at = self.bytes.len();
        self.bytes.resize(at + len, 0);
        self.end(start);
        &mut self.bytes[at..at + len]
    }

    fn begin(&mut self) -> usize {
        let start = self.bytes.len();
        self.bytes.resize(start + OP_HEADER, 0);
        start
    }

    fn end(&mut self, start: usize) {
        let len = padded(self.bytes.len() - start - OP_HEADER);
        self.bytes.resize(start + OP_HEADER + len, 0);
        let header = RawLogOpHeader {
            tid: 0.into(),
            len: u32::try_from(len).expect("invariant: a region is smaller than the log").into(),
            clientid: CLIENT_TRANSACTION,
            flags: 0,
            res2: [0; 2],
        };
        self.bytes[start..start + OP_HEADER].copy_from_slice(header.as_bytes());
        self.ends.push(self.bytes.len());
    }

    /// The size of the regions together.
    pub fn size(&self) -> ItemSize {
        let headers = self.ends.len() * OP_HEADER;
        ItemSize {
            regions: u32::try_from(self.ends.len()).expect("invariant: there are fewer regions than bytes in the log"),
            bytes: (self.bytes.len() - headers) as u64,
        }
    }

    /// Number of regions.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The contents of a region, with what pads them.
    pub fn contents(&self, index: usize) -> Option<&[u8]> {
        let range = self.range(index)?;
        self.bytes.get(range.start + OP_HEADER..range.end)
    }

    /// The regions, each with the header of its operation, in which the transaction is not named yet.
    pub(in crate::journal) fn operations(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|index| self.bytes.get(self.range(index)?))
    }

    fn range(&self, index: usize) -> Option<Range<usize>> {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends.get(index).map(|end| start..*end)
    }
}

const _: () = assert!(RawLogOpHeader::SIZE == OP_HEADER);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_padded_with_zeroes() {
        let mut regions = Regions::new(WriterLayout::USUAL);
        regions.push(&[0xff; 40]);
        regions.clear();
        regions.push(&[1, 2, 3, 4, 5]);
        regions.push_parts(&[&[6, 7], &[8]]);
        regions.push_zeroed(2).copy_from_slice(&[9, 10]);
        assert_eq!(regions.contents(0), Some(&[1, 2, 3, 4, 5, 0, 0, 0][..]));
        assert_eq!(regions.contents(1), Some(&[6, 7, 8, 0][..]));
        assert_eq!(regions.contents(2), Some(&[9, 10, 0, 0][..]));
        assert_eq!(regions.contents(3), None);
        assert_eq!(regions.size(), ItemSize { regions: 3, bytes: 16 });
        assert_eq!(regions.size(), ItemSize::of(&[&[0; 5][..], &[0; 3], &[0; 2]]));
        let lengths: Vec<usize> = regions.operations().map(<[u8]>::len).collect();
        assert_eq!(lengths, [20, 16, 16]);
    }
}
