//! Bytes kept in memory by pages: the store of the memory device and of the overlay.

use std::collections::BTreeMap;

use super::contract::ByteRange;

/// Size of a page, in bytes.
pub(super) const PAGE: usize = 4096;
const PAGE_BYTES: u64 = 4096;

/// A part of an access that lies in one page.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    /// Number of the page.
    pub(super) page: u64,
    /// Where the piece starts in the page.
    pub(super) within: usize,
    /// Where it starts in the caller's buffer.
    pub(super) at: usize,
    /// How long it is.
    pub(super) len: usize,
}

/// Cuts an access of `len` bytes at `offset` at the pages' ends.
pub(super) fn pieces(offset: u64, len: usize) -> impl Iterator<Item = Piece> {
    let mut page = offset / PAGE_BYTES;
    let mut within = usize::try_from(offset % PAGE_BYTES).expect("invariant: a remainder of 4096 fits");
    let mut at = 0;
    std::iter::from_fn(move || {
        let piece = Piece { page, within, at, len: (PAGE - within).min(len - at) };
        page += 1;
        within = 0;
        at += piece.len;
        (piece.len > 0).then_some(piece)
    })
}

/// Pages by number. What is not there is for the owner to know.
#[derive(Default)]
pub(super) struct Pages {
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
}

impl Pages {
    /// A page that is there.
    pub(super) fn get(&self, page: u64) -> Option<&[u8; PAGE]> {
        self.pages.get(&page).map(Box::as_ref)
    }

    /// A page, made by `fill` if it is not there.
    ///
    /// # Errors
    /// Those of `fill`; the page is not made then.
    pub(super) fn get_or_fill<E>(
        &mut self,
        page: u64,
        fill: impl FnOnce(&mut [u8; PAGE]) -> Result<(), E>,
    ) -> Result<&mut [u8; PAGE], E> {
        use std::collections::btree_map::Entry;
        match self.pages.entry(page) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let mut fresh = Box::new([0; PAGE]);
                fill(&mut fresh)?;
                Ok(entry.insert(fresh))
            }
        }
    }

    /// Forgets pages that lie wholly in `range`, and returns the range that they would fill.
    pub(super) fn forget_within(&mut self, range: ByteRange) -> Option<ByteRange> {
        let first = range.start.div_ceil(PAGE_BYTES);
        let behind = range.end() / PAGE_BYTES;
        if first >= behind {
            return None;
        }
        let mut tail = self.pages.split_off(&first);
        self.pages.append(&mut tail.split_off(&behind));
        Some(ByteRange { start: first * PAGE_BYTES, len: (behind - first) * PAGE_BYTES })
    }

    /// Zeroes what `range` covers of the pages at its two ends, where these are there.
    pub(super) fn zero_edges(&mut self, range: ByteRange) {
        if range.len == 0 {
            return;
        }
        for number in [range.start / PAGE_BYTES, (range.end() - 1) / PAGE_BYTES] {
            let page_range = ByteRange { start: number * PAGE_BYTES, len: PAGE_BYTES };
            let Some(part) = page_range.intersection(range) else { continue };
            let Some(page) = self.pages.get_mut(&number) else { continue };
            for piece in pieces(part.start, usize::try_from(part.len).unwrap_or(PAGE)) {
                page[piece.within..][..piece.len].fill(0);
            }
        }
    }

    /// The run of pages at or behind `from`, cut at `from` and at `size`.
    pub(super) fn next_run(&self, from: u64, size: u64) -> Option<ByteRange> {
        let mut numbers = self.pages.range(from / PAGE_BYTES..).map(|(number, _)| *number);
        let first = numbers.next()?;
        let more = numbers.zip(first + 1..).take_while(|(found, expected)| found == expected).count();
        let behind = first + 1 + u64::try_from(more).ok()?;
        let run = ByteRange { start: first * PAGE_BYTES, len: (behind - first) * PAGE_BYTES };
        run.intersection(ByteRange { start: from, len: size.saturating_sub(from) })
    }
}
