//! Which chunks of a block the journal must hold.

use crate::ondisk::log_buffer::CHUNK;
use std::ops::Range;

/// One bit for each chunk of 128 bytes of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkMap {
    words: Vec<u64>,
}

impl ChunkMap {
    /// Marks chunk `index`.
    pub fn set(&mut self, index: usize) {
        let word = index / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (index % 64);
    }

    /// Whether chunk `index` is marked.
    fn get(&self, index: usize) -> bool {
        self.words.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Marks the chunks that hold any of the bytes in `range`.
    pub fn set_bytes(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            (range.start / CHUNK..range.end.div_ceil(CHUNK)).for_each(|index| self.set(index));
        }
    }

    /// Marks the chunks in which `new` differs from `old`. Whether there are any.
    pub fn set_differences(&mut self, old: &[u8], new: &[u8]) -> bool {
        let mut any = false;
        for (index, (a, b)) in old.chunks(CHUNK).zip(new.chunks(CHUNK)).enumerate() {
            if a != b {
                self.set(index);
                any = true;
            }
        }
        any
    }

    /// Runs of marked chunks below `end`, in order: first chunk, and how many.
    pub fn runs(&self, end: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = (at..end).find(|index| self.get(*index))?;
            let stop = (start..end).find(|index| !self.get(*index)).unwrap_or(end);
            at = stop;
            Some((start, stop - start))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_what_was_marked() {
        let mut map = ChunkMap::default();
        map.set_bytes(100..300);
        map.set_bytes(64 * CHUNK..64 * CHUNK + 1);
        map.set_bytes(5..5);
        assert_eq!(map.runs(512).collect::<Vec<_>>(), [(0, 3), (64, 1)]);
        assert_eq!(map.runs(2).collect::<Vec<_>>(), [(0, 2)]);
    }

    #[test]
    fn only_chunks_that_differ_are_marked() {
        let old = vec![0; 512];
        let mut new = old.clone();
        let mut map = ChunkMap::default();
        assert!(!map.set_differences(&old, &new));
        new[511] = 1;
        assert!(map.set_differences(&old, &new));
        assert_eq!(map.runs(4).collect::<Vec<_>>(), [(3, 1)]);
    }
}
