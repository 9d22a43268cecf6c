//! The free space of a group, by block and by size.

use std::collections::{BTreeMap, BTreeSet};

/// A run of blocks of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// First block.
    pub start: u32,
    /// Blocks.
    pub len: u32,
}

impl Run {
    fn end(self) -> u32 {
        self.start + self.len
    }

    /// The first aligned block from which on `len` blocks are in the run.
    fn fit(self, len: u32, align: u32) -> Option<u32> {
        let start = self.start.checked_next_multiple_of(align.max(1))?;
        (start.checked_add(len)? <= self.end()).then_some(start)
    }
}

/// Runs of free blocks that do not touch.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeSpace {
    runs: BTreeMap<u32, u32>,
    sizes: BTreeSet<(u32, u32)>,
    total: u32,
}

impl FreeSpace {
    /// Blocks that are free.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// The longest run, the first of several.
    pub fn longest(&self) -> Option<Run> {
        let &(len, _) = self.sizes.last()?;
        let &(len, start) = self.sizes.range((len, 0)..).next()?;
        Some(Run { start, len })
    }

    /// All runs by block.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = Run> {
        self.runs.iter().map(|(&start, &len)| Run { start, len })
    }

    /// All runs by size, and by block where that is equal: start and length.
    pub fn by_size(&self) -> impl ExactSizeIterator<Item = Run> {
        self.sizes.iter().map(|&(len, start)| Run { start, len })
    }

    /// The run that holds `block`, or else the first one behind it.
    pub fn at_or_behind(&self, block: u32) -> Option<Run> {
        let before = self.runs.range(..=block).next_back().map(|(&start, &len)| Run { start, len });
        let behind = || self.runs.range(block..).next().map(|(&start, &len)| Run { start, len });
        before.filter(|run| block < run.end()).or_else(behind)
    }

    /// Where `len` blocks are free, aligned to `align`: in the run at or behind `near` if they fit there, else in the smallest
    /// run that is large enough.
    pub fn find(&self, len: u32, align: u32, near: u32) -> Option<u32> {
        if let Some(run) = self.at_or_behind(near) {
            let rest = if run.start < near { Run { start: near, len: run.end() - near } } else { run };
            if let Some(start) = rest.fit(len, align) {
                return Some(start);
            }
        }
        self.sizes.range((len, 0)..).find_map(|&(size, start)| Run { start, len: size }.fit(len, align))
    }

    /// Marks blocks as free that are not; they join their neighbours.
    pub fn insert(&mut self, run: Run) {
        if run.len == 0 {
            return;
        }
        let mut joined = run;
        let before = self.runs.range(..run.start).next_back().map(|(&start, &len)| Run { start, len });
        if let Some(before) = before.filter(|before| before.end() == run.start) {
            self.remove(before);
            joined = Run { start: before.start, len: before.len + joined.len };
        }
        if let Some(len) = self.runs.get(&run.end()).copied() {
            self.remove(Run { start: run.end(), len });
            joined.len += len;
        }
        self.runs.insert(joined.start, joined.len);
        self.sizes.insert((joined.len, joined.start));
        self.total += run.len;
    }

    /// Takes blocks; `false`, and nothing has changed, when they are not all free.
    pub fn take(&mut self, run: Run) -> bool {
        let held = self.runs.range(..=run.start).next_back().map(|(&start, &len)| Run { start, len });
        let Some(held) = held.filter(|held| run.end() <= held.end()) else { return false };
        self.remove(held);
        for rest in [
            Run { start: held.start, len: run.start - held.start },
            Run { start: run.end(), len: held.end() - run.end() },
        ] {
            if rest.len > 0 {
                self.runs.insert(rest.start, rest.len);
                self.sizes.insert((rest.len, rest.start));
            }
        }
        self.total -= run.len;
        true
    }

    fn remove(&mut self, run: Run) {
        self.runs.remove(&run.start);
        self.sizes.remove(&(run.len, run.start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_free_is_what_a_model_says(steps in proptest::collection::vec((0_u32..60, 1_u32..9, any::<bool>()), 1..80)) {
            let mut space = FreeSpace::default();
            let mut model = [false; 80];
            for (start, len, give) in steps {
                let range = start as usize..(start + len) as usize;
                if give && model[range.clone()].iter().all(|free| !free) {
                    space.insert(Run { start, len });
                    model[range].fill(true);
                } else if !give {
                    let held = model[range.clone()].iter().all(|free| *free);
                    prop_assert_eq!(space.take(Run { start, len }), held);
                    if held {
                        model[range].fill(false);
                    }
                }
                let free: Vec<u32> = space.runs().flat_map(|run| run.start..run.end()).collect();
                let expected: Vec<u32> = (0..80).filter(|&at| model[at as usize]).collect();
                prop_assert_eq!(space.total() as usize, expected.len());
                prop_assert_eq!(free, expected);
                prop_assert_eq!(space.by_size().len(), space.runs().len());
            }
        }
    }

    #[test]
    fn what_fits_near_comes_first() {
        let mut space = FreeSpace::default();
        space.insert(Run { start: 10, len: 4 });
        space.insert(Run { start: 20, len: 40 });
        assert_eq!(space.find(4, 1, 20), Some(20));
        assert_eq!(space.find(4, 1, 58), Some(10));
        assert_eq!(space.find(8, 16, 10), Some(32));
        assert_eq!(space.find(41, 1, 0), None);
        assert_eq!(space.longest(), Some(Run { start: 20, len: 40 }));
    }
}
