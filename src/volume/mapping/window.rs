//! Part of a fork's extents in memory, and the changes that can be made to it.

use crate::ondisk::Extent;
use crate::ondisk::extent::MAX_BLOCKCOUNT;

/// Extents of a fork in order, without gaps in the list: all that a change looks at, and a neighbour to each side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    extents: Vec<Extent>,
}

/// The first block of the file behind an extent.
pub(super) fn end_of(extent: &Extent) -> u64 {
    extent.startoff + u64::from(extent.blockcount)
}

/// The part of `extent` from block `start` of the file to before `end`; `None` when they do not meet.
pub(super) fn cut(extent: &Extent, start: u64, end: u64) -> Option<Extent> {
    let (first, last) = (extent.startoff.max(start), end_of(extent).min(end));
    let blockcount = u32::try_from(last.checked_sub(first)?).ok().filter(|count| *count > 0)?;
    Some(Extent { startoff: first, startblock: extent.startblock + (first - extent.startoff), blockcount, ..*extent })
}

fn are_adjacent(left: &Extent, right: &Extent) -> bool {
    end_of(left) == right.startoff
        && left.startblock + u64::from(left.blockcount) == right.startblock
        && left.unwritten == right.unwritten
}

fn fit_together(counts: &[u32]) -> bool {
    counts.iter().map(|count| u64::from(*count)).sum::<u64>() <= u64::from(MAX_BLOCKCOUNT)
}

impl Window {
    pub(super) fn new(extents: Vec<Extent>) -> Self {
        Window { extents }
    }

    pub(super) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Index of the first extent that ends behind block `at`.
    fn from(&self, at: u64) -> usize {
        self.extents.partition_point(|extent| end_of(extent) <= at)
    }

    /// The extent that covers `at`, else the next one.
    pub(super) fn at_or_after(&self, at: u64) -> Option<Extent> {
        self.extents.get(self.from(at)).copied()
    }

    /// The last extent that ends at or before `at`.
    pub(super) fn before(&self, at: u64) -> Option<Extent> {
        self.extents.get(self.from(at).checked_sub(1)?).copied()
    }

    /// The last extent that begins before `end`.
    pub(super) fn last_below(&self, end: u64) -> Option<Extent> {
        let index = self.extents.partition_point(|extent| extent.startoff < end).checked_sub(1)?;
        self.extents.get(index).copied()
    }

    /// The parts of extents from `start` to before `end`.
    pub(super) fn parts(&self, start: u64, end: u64) -> Vec<Extent> {
        self.extents.iter().filter_map(|extent| cut(extent, start, end)).collect()
    }

    /// Adds an extent where there was a hole, and joins it with neighbours that it continues: with both, if all three fit
    /// into one record, else with the one before it if that fits. `false`, and nothing is changed, when there is no hole.
    #[must_use]
    pub(super) fn insert(&mut self, new: Extent) -> bool {
        let at = self.from(new.startoff);
        if self.extents.get(at).is_some_and(|next| next.startoff < end_of(&new)) {
            return false;
        }
        let left = at.checked_sub(1).map(|index| self.extents[index]);
        let left = left.filter(|left| are_adjacent(left, &new) && fit_together(&[left.blockcount, new.blockcount]));
        let right = self.extents.get(at).copied();
        let right =
            right.filter(|right| are_adjacent(&new, right) && fit_together(&[new.blockcount, right.blockcount]));
        match (left, right) {
            (Some(left), Some(right)) if fit_together(&[left.blockcount, new.blockcount, right.blockcount]) => {
                self.extents[at - 1].blockcount += new.blockcount + right.blockcount;
                self.extents.remove(at);
            }
            (Some(_), _) => self.extents[at - 1].blockcount += new.blockcount,
            (None, Some(right)) => {
                self.extents[at] = Extent { blockcount: new.blockcount + right.blockcount, ..new };
            }
            (None, None) => self.extents.insert(at, new),
        }
        true
    }

    /// Takes out what is mapped from `start` to before `end`; returns the parts taken, in order.
    pub(super) fn remove(&mut self, start: u64, end: u64) -> Vec<Extent> {
        let parts = self.parts(start, end);
        if parts.is_empty() {
            return parts;
        }
        let (first, behind) = (self.from(start), self.extents.partition_point(|extent| extent.startoff < end));
        let rest: Vec<_> = [
            self.extents.get(first).and_then(|extent| cut(extent, 0, start)),
            behind.checked_sub(1).and_then(|last| cut(&self.extents[last], end, u64::MAX)),
        ]
        .into_iter()
        .flatten()
        .collect();
        self.extents.splice(first..behind, rest);
        parts
    }

    /// Makes what is mapped from `start` to before `end` unwritten, or written; returns the parts that change, as they were.
    pub(super) fn convert(&mut self, start: u64, end: u64, unwritten: bool) -> Vec<Extent> {
        let parts: Vec<_> = self.parts(start, end).into_iter().filter(|part| part.unwritten != unwritten).collect();
        for part in &parts {
            self.remove(part.startoff, end_of(part));
            let inserted = self.insert(Extent { unwritten, ..*part });
            debug_assert!(inserted, "a hole was made for it");
        }
        parts
    }

    /// Splits the extent in whose midst block `at` lies. Whether there was one.
    pub(super) fn split(&mut self, at: u64) -> bool {
        let index = self.from(at);
        let Some(extent) = self.extents.get(index).copied() else { return false };
        match (cut(&extent, 0, at), cut(&extent, at, u64::MAX)) {
            (Some(left), Some(right)) => {
                self.extents.splice(index..=index, [left, right]);
                true
            }
            _ => false,
        }
    }

    /// How the records differ from those of `old`.
    pub(super) fn difference(&self, old: &Window) -> Difference {
        let mut difference = Difference::default();
        let (mut before, mut after) = (old.extents.iter().peekable(), self.extents.iter().peekable());
        loop {
            match (before.peek(), after.peek()) {
                (Some(left), Some(right)) if left.startoff == right.startoff => {
                    if left != right {
                        difference.replaced.push(**right);
                    }
                    before.next();
                    after.next();
                }
                (Some(left), right) if right.is_none_or(|right| left.startoff < right.startoff) => {
                    difference.removed.push(left.startoff);
                    before.next();
                }
                (_, Some(right)) => {
                    difference.added.push(**right);
                    after.next();
                }
                _ => return difference,
            }
        }
    }
}

/// How the records of two windows differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Where records begin that are there no longer.
    pub(super) removed: Vec<u64>,
    /// Records that begin where one began before.
    pub(super) replaced: Vec<Extent>,
    /// Records that begin where none began.
    pub(super) added: Vec<Extent>,
}

impl Difference {
    pub(super) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.replaced.is_empty() && self.added.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn extent(startoff: u64, startblock: u64, blockcount: u32, unwritten: bool) -> Extent {
        Extent { startoff, startblock, blockcount, unwritten }
    }

    /// What each block of the file is mapped to.
    fn blocks_of(window: &Window) -> BTreeMap<u64, (u64, bool)> {
        let mut blocks = BTreeMap::new();
        for extent in window.extents() {
            for index in 0..u64::from(extent.blockcount) {
                let old = blocks.insert(extent.startoff + index, (extent.startblock + index, extent.unwritten));
                assert_eq!(old, None);
            }
        }
        blocks
    }

    proptest! {
        #[test]
        fn a_window_is_a_map_of_blocks(steps in prop::collection::vec((0_u8..4, 0_u64..60, 1_u32..12, 0_u64..3, any::<bool>()), 1..60)) {
            let (mut window, mut model) = (Window::default(), BTreeMap::new());
            for (kind, at, count, shift, unwritten) in steps {
                let end = at + u64::from(count);
                let old = window.clone();
                match kind {
                    0 | 1 => {
                        // blocks that continue each other are common, so that extents join
                        let new = extent(at, 1000 + at + shift * 500, count, unwritten);
                        let hole = model.range(at..end).next().is_none();
                        prop_assert_eq!(window.insert(new), hole);
                        if hole {
                            model.extend((0..u64::from(count)).map(|i| (at + i, (new.startblock + i, unwritten))));
                        }
                    }
                    2 => {
                        let removed = Window::new(window.remove(at, end));
                        let wanted: BTreeMap<_, _> = model.range(at..end).map(|(k, v)| (*k, *v)).collect();
                        prop_assert_eq!(blocks_of(&removed), wanted);
                        model.retain(|block, _| *block < at || *block >= end);
                    }
                    _ => {
                        let changed = Window::new(window.convert(at, end, unwritten));
                        let wanted: BTreeMap<_, _> =
                            model.range(at..end).filter(|(_, v)| v.1 != unwritten).map(|(k, v)| (*k, *v)).collect();
                        prop_assert_eq!(blocks_of(&changed), wanted);
                        model.range_mut(at..end).for_each(|(_, value)| value.1 = unwritten);
                    }
                }
                prop_assert_eq!(&blocks_of(&window), &model);
                prop_assert!(window.extents().windows(2).all(|pair| !are_adjacent(&pair[0], &pair[1])));
                let difference = window.difference(&old);
                let mut patched: BTreeMap<u64, Extent> = old.extents().iter().map(|e| (e.startoff, *e)).collect();
                difference.removed.iter().for_each(|at| assert!(patched.remove(at).is_some()));
                difference.replaced.iter().for_each(|e| assert!(patched.insert(e.startoff, *e).is_some()));
                difference.added.iter().for_each(|e| assert!(patched.insert(e.startoff, *e).is_none()));
                prop_assert_eq!(patched.into_values().collect::<Vec<_>>(), window.extents().to_vec());
                prop_assert_eq!(difference.is_empty(), old == window);
            }
        }
    }

    #[test]
    fn a_record_holds_no_more_than_its_bits() {
        let mut window = Window::new(vec![extent(0, 100, MAX_BLOCKCOUNT - 1, false)]);
        assert!(window.insert(extent(u64::from(MAX_BLOCKCOUNT), 101 + u64::from(MAX_BLOCKCOUNT) - 1, 5, false)));
        assert_eq!(window.extents().len(), 2);
        // the block between joins with the one before it, not with both
        assert!(window.insert(extent(u64::from(MAX_BLOCKCOUNT) - 1, 100 + u64::from(MAX_BLOCKCOUNT) - 1, 1, false)));
        let counts: Vec<_> = window.extents().iter().map(|extent| extent.blockcount).collect();
        assert_eq!(counts, [MAX_BLOCKCOUNT, 5]);
    }

    #[test]
    fn neighbours_are_found() {
        let window = Window::new(vec![extent(2, 100, 2, false), extent(6, 200, 2, true)]);
        assert_eq!(window.at_or_after(3).map(|found| found.startoff), Some(2));
        assert_eq!(window.at_or_after(4).map(|found| found.startoff), Some(6));
        assert_eq!(window.before(4).map(|found| found.startoff), Some(2));
        assert_eq!(window.before(3), None);
        assert_eq!(window.last_below(6).map(|found| found.startoff), Some(2));
        let mut window = window;
        assert!(window.split(7) && !window.split(6) && !window.split(9));
        assert_eq!(window.extents().len(), 3);
    }
}
