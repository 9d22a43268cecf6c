//! Where the blocks of a file lie, for the files that a scan looks into.

use crate::ondisk::Extent;

/// The extents of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileMap {
    extents: Vec<Extent>,
    /// Stretches of the file without holes: first block and the block behind the last.
    stretches: Vec<(u64, u64)>,
}

/// Blocks of a file that lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub fsb: u64,
    pub len: u64,
}

/// Where a walk over the file stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Block of the file.
    pub at: u64,
    stretch: usize,
}

impl FileMap {
    /// The map of these extents. Where they overlap, the first one is taken.
    pub fn new(mut extents: Vec<Extent>) -> Self {
        extents.sort_by_key(|extent| extent.startoff);
        let (mut map, mut end) = (FileMap::default(), 0);
        for extent in extents {
            let last = extent.startoff + u64::from(extent.blockcount);
            let start = extent.startoff.max(end);
            let Some(left) = last.checked_sub(start).filter(|left| *left > 0) else { continue };
            let skip = start - extent.startoff;
            let blockcount = u32::try_from(left).unwrap_or(extent.blockcount);
            map.extents.push(Extent { startoff: start, startblock: extent.startblock + skip, blockcount, ..extent });
            match map.stretches.last_mut() {
                Some(stretch) if stretch.1 == start => stretch.1 = last,
                _ => map.stretches.push((start, last)),
            }
            end = last;
        }
        map
    }

    /// The block behind the last one; `None` of an empty file.
    pub fn end(&self) -> Option<u64> {
        self.stretches.last().map(|stretch| stretch.1)
    }

    /// The first block that is mapped.
    pub fn first(&self) -> Option<Place> {
        self.stretches.first().map(|stretch| Place { at: stretch.0, stretch: 0 })
    }

    /// The mapped block behind `at`, where a walk at `place` has come to: the next one of the stretch, or the first one
    /// of the next stretch.
    pub fn next(&self, place: Place, at: u64) -> Option<Place> {
        if self.stretches.get(place.stretch).is_some_and(|stretch| at + 1 < stretch.1) {
            return Some(Place { at: at + 1, ..place });
        }
        let stretch = place.stretch + 1;
        self.stretches.get(stretch).map(|next| Place { at: next.0, stretch })
    }

    /// Where block `at` lies.
    pub fn block(&self, at: u64) -> Option<u64> {
        self.runs(at, 1).first().map(|run| run.fsb)
    }

    /// Where `count` blocks from `at` on lie; holes are left out.
    pub fn runs(&self, at: u64, count: u64) -> Vec<Run> {
        let end = at.saturating_add(count);
        let from = self.extents.partition_point(|extent| extent.startoff + u64::from(extent.blockcount) <= at);
        let mut runs: Vec<(u64, Run)> = Vec::new();
        for extent in self.extents[from..].iter().take_while(|extent| extent.startoff < end) {
            let start = extent.startoff.max(at);
            let len = (extent.startoff + u64::from(extent.blockcount)).min(end) - start;
            let fsb = extent.startblock + (start - extent.startoff);
            match runs.last_mut() {
                Some((off, run)) if *off + run.len == start && run.fsb + run.len == fsb => run.len += len,
                _ => runs.push((start, Run { fsb, len })),
            }
        }
        runs.into_iter().map(|(_, run)| run).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(startoff: u64, startblock: u64, blockcount: u32) -> Extent {
        Extent { startoff, startblock, blockcount, unwritten: false }
    }

    #[test]
    fn blocks_are_found_across_extents() {
        let map = FileMap::new(vec![extent(4, 100, 2), extent(6, 102, 1), extent(7, 50, 1), extent(20, 9, 3)]);
        assert_eq!(map.end(), Some(23));
        assert_eq!(map.runs(0, 100).len(), 3);
        assert_eq!(map.runs(5, 3), [Run { fsb: 101, len: 2 }, Run { fsb: 50, len: 1 }]);
        assert_eq!((map.block(3), map.block(22), map.block(23)), (None, Some(11), None));
        let mut seen = Vec::new();
        let mut place = map.first();
        while let Some(now) = place {
            seen.push(now.at);
            place = map.next(now, now.at);
        }
        assert_eq!(seen, [4, 5, 6, 7, 20, 21, 22]);
    }

    #[test]
    fn overlaps_and_disorder_are_made_good() {
        let map = FileMap::new(vec![extent(10, 100, 5), extent(0, 7, 3), extent(12, 200, 5)]);
        assert_eq!(map.runs(10, 10), [Run { fsb: 100, len: 5 }, Run { fsb: 203, len: 2 }]);
        assert_eq!(map.block(0), Some(7));
    }
}
