//! Many cells that have few different values: the values once, and a short number for each cell.

/// Cells of 4 or 8 bits that stand for values.
#[derive(Debug)]
pub(super) struct Palette<V> {
    /// The values in the order in which they came up. None is taken out.
    values: Vec<V>,
    /// A byte for each cell, or for two of them.
    numbers: Box<[u8]>,
    /// Two cells share a byte.
    halves: bool,
}

/// Values that 4 bits tell apart.
const MOST_OF_HALVES: usize = 1 << 4;
/// Values that 8 bits tell apart.
const MOST: usize = 1 << 8;

impl<V: Copy + PartialEq + Default> Palette<V> {
    /// So many cells of the default value.
    pub fn new(cells: usize) -> Self {
        Palette { values: vec![V::default()], numbers: vec![0; cells.div_ceil(2)].into_boxed_slice(), halves: true }
    }

    fn number(&self, at: usize) -> u8 {
        if self.halves {
            let pair = self.numbers.get(at / 2).copied().unwrap_or_default();
            pair >> (at % 2 * 4) & 0xf
        } else {
            self.numbers.get(at).copied().unwrap_or_default()
        }
    }

    /// The value of cell `at`.
    pub fn get(&self, at: usize) -> V {
        self.values.get(usize::from(self.number(at))).copied().unwrap_or_default()
    }

    /// Gives cell `at` a value; `false` when there are too many values.
    #[must_use]
    pub fn set(&mut self, at: usize, value: V) -> bool {
        let Some(number) = self.number_of(value) else { return false };
        if !self.halves {
            self.numbers[at] = number;
            return true;
        }
        let (pair, shift) = (&mut self.numbers[at / 2], at % 2 * 4);
        *pair = *pair & !(0xf << shift) | number << shift;
        true
    }

    /// The number that stands for a value, which becomes one of the values.
    fn number_of(&mut self, value: V) -> Option<u8> {
        // what came up last is what comes up next
        let known = self.values.iter().rposition(|known| *known == value);
        if known.is_none() {
            if self.values.len() == MOST {
                return None;
            }
            if self.values.len() == MOST_OF_HALVES {
                self.widen();
            }
            self.values.push(value);
        }
        u8::try_from(known.unwrap_or(self.values.len() - 1)).ok()
    }

    /// Makes room for more values.
    fn widen(&mut self) {
        self.numbers = self.numbers.iter().flat_map(|pair| [pair & 0xf, pair >> 4]).collect();
        self.halves = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The same as an array of values, as long as they are not too many.
        #[test]
        fn it_is_an_array(steps in proptest::collection::vec((0usize..31, 0u16..300), 0..600)) {
            let mut palette = Palette::<u16>::new(31);
            let mut plain = [0; 31];
            let mut seen = std::collections::BTreeSet::from([0]);
            for (at, value) in steps {
                seen.insert(value);
                let fits = seen.len() <= MOST;
                prop_assert_eq!(palette.set(at, value), fits);
                if !fits {
                    break;
                }
                plain[at] = value;
                for (at, value) in plain.iter().enumerate() {
                    prop_assert_eq!(palette.get(at), *value);
                }
            }
        }
    }
}
