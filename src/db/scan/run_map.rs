//! A map from blocks to values in runs: memory goes with the number of extents, not of blocks.

use std::collections::BTreeMap;

/// Runs of blocks that have a value; all other blocks have the default value.
#[derive(Clone, Debug, Default)]
pub struct RunMap<V> {
    /// By first block: length and value. Runs do not overlap; neighbours may have the same value.
    runs: BTreeMap<u64, (u64, V)>,
}

impl<V: Copy + PartialEq + Default> RunMap<V> {
    /// Calls `visit` for each run of the `len` blocks from `start` on, in order, those of the default value included.
    pub fn for_each(&self, start: u64, len: u64, visit: &mut dyn FnMut(u64, u64, V)) {
        let end = start.saturating_add(len);
        let mut at = start;
        let before = self.runs.range(..start).next_back();
        let first = before.filter(|(from, (len, _))| *from + len > start).map(|(from, run)| (*from, *run));
        let rest = self.runs.range(start..end).map(|(from, run)| (*from, *run));
        for (from, (run, value)) in first.into_iter().chain(rest) {
            if from > at {
                visit(at, from - at, V::default());
            }
            let (low, high) = (from.max(start), (from + run).min(end));
            visit(low, high - low, value);
            at = high;
        }
        if at < end {
            visit(at, end - at, V::default());
        }
    }

    /// Changes the values of the `len` blocks from `start` on.
    pub fn update(&mut self, start: u64, len: u64, change: &mut dyn FnMut(V) -> V) {
        let end = start.saturating_add(len);
        if start == end {
            return;
        }
        if self.is_untouched(start, end) {
            return self.put(start, len, change(V::default()));
        }
        self.split(start);
        self.split(end);
        let mut changed: Vec<(u64, u64, V)> = Vec::new();
        self.for_each(start, len, &mut |at, run, value| {
            let value = change(value);
            match changed.last_mut() {
                Some(last) if last.2 == value => last.1 += run,
                _ => changed.push((at, run, value)),
            }
        });
        let old: Vec<u64> = self.runs.range(start..end).map(|(from, _)| *from).collect();
        for from in old {
            self.runs.remove(&from);
        }
        for (at, run, value) in changed {
            self.put(at, run, value);
        }
    }

    fn put(&mut self, start: u64, len: u64, value: V) {
        if value != V::default() {
            self.runs.insert(start, (len, value));
        }
    }

    fn is_untouched(&self, start: u64, end: u64) -> bool {
        self.runs.range(..end).next_back().is_none_or(|(from, (len, _))| from + len <= start)
    }

    /// Makes `at` the first block of a run if it lies in one.
    fn split(&mut self, at: u64) {
        let Some((from, (len, value))) = self.runs.range_mut(..at).next_back() else { return };
        let head = at - from;
        if *len > head {
            let (tail, value) = (*len - head, *value);
            *len = head;
            self.runs.insert(at, (tail, value));
        }
    }

    /// The runs in order: first block, length, value.
    pub fn into_runs(self) -> impl Iterator<Item = (u64, u64, V)> {
        self.runs.into_iter().map(|(start, (len, value))| (start, len, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The same as an array of blocks.
        #[test]
        fn it_is_an_array(steps in proptest::collection::vec((0u64..60, 0u64..30, 0u8..4), 0..40)) {
            let mut map = RunMap::<u8>::default();
            let mut plain = [0_u8; 100];
            for (start, len, add) in steps {
                map.update(start, len, &mut |value| (value + add) % 5);
                for at in start..start + len {
                    let slot = &mut plain[usize::try_from(at).expect("invariant: small")];
                    *slot = (*slot + add) % 5;
                }
            }
            let mut read = Vec::new();
            map.for_each(3, 90, &mut |at, len, value| {
                assert_eq!(at, 3 + read.len() as u64);
                read.extend(std::iter::repeat_n(value, usize::try_from(len).expect("invariant: small")));
            });
            prop_assert_eq!(&read[..], &plain[3..93]);
            let mut end = 0;
            for (start, len, value) in map.into_runs() {
                prop_assert!(start >= end && len > 0 && value != 0);
                end = start + len;
            }
        }
    }
}
