//! A set of byte ranges.

use std::collections::BTreeMap;

use super::contract::ByteRange;

/// Ranges by their start; they neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extents {
    ends: BTreeMap<u64, u64>,
}

impl Extents {
    /// Adds a range, and joins it with what it touches.
    pub(super) fn insert(&mut self, range: ByteRange) {
        if range.len == 0 {
            return;
        }
        let (mut start, mut end) = (range.start, range.end());
        let joined: Vec<u64> = self
            .ends
            .range(..=end)
            .rev()
            .take_while(|(_, other_end)| **other_end >= range.start)
            .map(|(other, _)| *other)
            .collect();
        for other in joined {
            let other_end = self.ends.remove(&other).unwrap_or(other);
            start = start.min(other);
            end = end.max(other_end);
        }
        self.ends.insert(start, end);
    }

    /// The first part of the set that lies in `within`.
    pub(super) fn next_in(&self, within: ByteRange) -> Option<ByteRange> {
        let before = self.ends.range(..=within.start).next_back().filter(|(_, end)| **end > within.start);
        let (start, end) = before.or_else(|| self.ends.range(within.start..).next())?;
        ByteRange { start: *start, len: end - start }.intersection(within)
    }

    /// Whether `at` lies in the set.
    pub(super) fn contains(&self, at: u64) -> bool {
        self.next_in(ByteRange { start: at, len: 1 }).is_some()
    }

    /// Cuts `range` into parts that lie wholly inside (`true`) or outside (`false`) of the set.
    pub(super) fn split(&self, range: ByteRange) -> impl Iterator<Item = (ByteRange, bool)> {
        let mut at = range.start;
        std::iter::from_fn(move || {
            let rest = ByteRange { start: at, len: range.end() - at };
            let part = match self.next_in(rest) {
                _ if rest.len == 0 => return None,
                Some(inside) if inside.start == at => (inside, true),
                Some(inside) => (ByteRange { start: at, len: inside.start - at }, false),
                None => (rest, false),
            };
            at = part.0.end();
            Some(part)
        })
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // Small numbers.
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_flags(ranges in prop::collection::vec((0_u64..60, 0_u64..12), 0..20), from in 0_u64..80) {
            let mut flags = [false; 80];
            let mut extents = Extents::default();
            for (start, len) in ranges {
                extents.insert(ByteRange { start, len });
                flags[start as usize..(start + len) as usize].fill(true);
            }
            for (at, flag) in flags.iter().enumerate() {
                prop_assert_eq!(extents.contains(at as u64), *flag);
            }
            let mut seen = from;
            for (part, inside) in extents.split(ByteRange { start: from, len: 80 - from }) {
                prop_assert_eq!(part.start, seen);
                prop_assert!(part.len > 0);
                seen = part.end();
                prop_assert!(flags[part.start as usize..seen as usize].iter().all(|flag| *flag == inside));
            }
            prop_assert_eq!(seen, 80);
            let pairs: Vec<_> = extents.ends.iter().collect();
            prop_assert!(pairs.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
