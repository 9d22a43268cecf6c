//! The contents of regular files: where they are, and who takes them.

use crate::error::{Error, Result};

/// Bytes that a sink has taken: `len` of them, contiguous in the sink's own space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Where they begin, in whatever the sink counts.
    pub start: u64,
    /// How many blocks of [`DataSink::block_size`] they take.
    pub blocks: u64,
}

/// What stands behind a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes that the sink has.
    Stored(Stored),
    /// Space that is reserved and holds nothing: an unwritten extent.
    Reserved {
        /// Blocks of [`DataSink::block_size`].
        blocks: u64,
    },
}

impl Piece {
    /// Blocks of [`DataSink::block_size`] that it takes.
    pub fn blocks(self) -> u64 {
        match self {
            Piece::Stored(Stored { blocks, .. }) | Piece::Reserved { blocks } => blocks,
        }
    }
}

/// A range of a file that is no hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Its first block in the file, in blocks of [`DataSink::block_size`].
    pub block: u64,
    /// What stands there.
    pub piece: Piece,
}

/// The contents of a regular file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Size in bytes. What is reserved may lie behind it.
    pub size: u64,
    /// Ranges in ascending order that do not overlap; everything else is a hole.
    pub ranges: Vec<Range>,
}

/// Bytes that come in one after the other.
pub trait Bytes {
    /// Fills `buf` with the next bytes.
    ///
    /// # Errors
    /// `Source`, when there are not so many, or they cannot be read.
    fn fill(&mut self, buf: &mut [u8]) -> Result<()>;
}

impl Bytes for &[u8] {
    fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
        let (now, rest) = self
            .split_at_checked(buf.len())
            .ok_or_else(|| Error::Internal("more bytes were asked for than there are".into()))?;
        buf.copy_from_slice(now);
        *self = rest;
        Ok(())
    }
}

/// Takes the contents of files.
pub trait DataSink {
    /// Bytes of a block of the image: the unit in which files have holes.
    fn block_size(&self) -> u32;

    /// Takes the next `len` bytes of `bytes`, more than 0. Behind the last byte the rest of its block becomes zeroes.
    ///
    /// # Errors
    /// Those of `bytes`; `Usage` when the image is full; those of writing.
    fn store(&mut self, len: u64, bytes: &mut dyn Bytes) -> Result<Stored>;

    /// Gives back what was stored: the file is not to be in the image after all.
    ///
    /// # Errors
    /// `Internal` when it was not stored.
    fn release(&mut self, stored: Stored) -> Result<()>;
}

impl Data {
    /// Takes a file of `size` bytes, of which `segments` (first byte and length, ascending, not empty, not overlapping, not
    /// behind the end) are no holes. `bytes` yields the bytes of the segments, one after the other. Segments are widened to
    /// whole blocks, with zeroes.
    ///
    /// # Errors
    /// Those of the sink; `Internal`, when the segments are not as said.
    pub fn store(size: u64, segments: &[(u64, u64)], bytes: &mut dyn Bytes, sink: &mut dyn DataSink) -> Result<Self> {
        let unit = u64::from(sink.block_size());
        check(size, segments)?;
        let mut data = Data { size, ranges: Vec::new() };
        let mut rest = segments;
        while let Some(first) = rest.first() {
            let begin = first.0 / unit * unit;
            let count = together(rest, unit);
            let (run, behind) = rest.split_at(count);
            let end = run.last().map_or(begin, |last| last.0 + last.1);
            let mut padded = Padded { at: begin, segments: run, bytes };
            let stored = sink.store(end - begin, &mut padded)?;
            data.ranges.push(Range { block: begin / unit, piece: Piece::Stored(stored) });
            rest = behind;
        }
        Ok(data)
    }

    /// Gives all that is stored back to the sink.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn release(self, sink: &mut dyn DataSink) -> Result<()> {
        for range in self.ranges {
            if let Piece::Stored(stored) = range.piece {
                sink.release(stored)?;
            }
        }
        Ok(())
    }
}

fn check(size: u64, segments: &[(u64, u64)]) -> Result<()> {
    let mut at = 0;
    for &(start, len) in segments {
        let end = start.checked_add(len).filter(|end| start >= at && len > 0 && *end <= size);
        at = end.ok_or_else(|| Error::Internal("the segments of a file are not in order".into()))?;
    }
    Ok(())
}

/// How many of the first segments share blocks, or lie in blocks side by side.
fn together(segments: &[(u64, u64)], unit: u64) -> usize {
    let apart = |pair: &[(u64, u64)]| (pair[0].0 + pair[0].1).div_ceil(unit) < pair[1].0 / unit;
    segments.windows(2).position(apart).map_or(segments.len(), |at| at + 1)
}

/// Segments with zeroes between them, from some byte of the file on.
struct Padded<'a> {
    at: u64,
    segments: &'a [(u64, u64)],
    bytes: &'a mut dyn Bytes,
}

impl Bytes for Padded<'_> {
    fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
        let mut rest = buf;
        while !rest.is_empty() {
            let room = u64::try_from(rest.len()).unwrap_or(u64::MAX);
            let (wanted, holds) = match self.segments.first() {
                Some(&(start, _)) if self.at < start => (start - self.at, false),
                Some(&(start, len)) => (start + len - self.at, true),
                None => (room, false),
            };
            let now = wanted.min(room);
            let (part, behind) = rest.split_at_mut(usize::try_from(now).unwrap_or(usize::MAX));
            if holds {
                self.bytes.fill(part)?
            } else {
                part.fill(0)
            }
            self.at += now;
            if holds && now == wanted {
                self.segments = &self.segments[1..];
            }
            rest = behind;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::populate::memory_sink::MemorySink;
    use proptest::prelude::*;

    struct Count(u8);

    impl Bytes for Count {
        fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
            for byte in buf {
                self.0 = self.0 % 250 + 1;
                *byte = self.0;
            }
            Ok(())
        }
    }

    /// The file as it should read, bytes of segments counted from 1 on.
    fn expected(size: u64, segments: &[(u64, u64)]) -> Vec<u8> {
        let mut file = vec![0; usize::try_from(size).expect("small")];
        let mut count = Count(0);
        for &(start, len) in segments {
            let (start, len) = (usize::try_from(start).expect("small"), usize::try_from(len).expect("small"));
            count.fill(&mut file[start..start + len]).expect("never fails");
        }
        file
    }

    fn blocks(data: &Data) -> Vec<(u64, u64)> {
        data.ranges.iter().map(|range| (range.block, range.piece.blocks())).collect()
    }

    #[test]
    fn holes_that_are_smaller_than_a_block_are_filled() {
        let mut sink = MemorySink::new(4096);
        let segments = [(1024, 1024), (3072, 1024), (5000, 10), (16_384, 1)];
        let data = Data::store(20_000, &segments, &mut Count(0), &mut sink).expect("stored");
        assert_eq!(blocks(&data), [(0, 2), (4, 1)]);
        assert_eq!(sink.read(&data), expected(20_000, &segments));
        data.release(&mut sink).expect("it was stored");
        assert_eq!(sink.held(), 0);
    }

    #[test]
    fn blocks_of_zeroes_stay() {
        let mut sink = MemorySink::new(1024);
        struct Zeroes;
        impl Bytes for Zeroes {
            fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
                buf.fill(0);
                Ok(())
            }
        }
        let data = Data::store(4096, &[(0, 4096)], &mut Zeroes, &mut sink).expect("stored");
        assert_eq!(blocks(&data), [(0, 4)]);
    }

    #[test]
    fn segments_out_of_order_are_refused() {
        let mut sink = MemorySink::new(1024);
        for segments in [&[(0, 0)][..], &[(5, 5), (9, 1)], &[(0, 11)], &[(3, u64::MAX)]] {
            assert!(Data::store(10, segments, &mut Count(0), &mut sink).is_err(), "{segments:?}");
        }
    }

    proptest! {
        #[test]
        fn every_file_reads_as_it_was(gaps in proptest::collection::vec((0_u64..5000, 1_u64..5000), 0..12), tail in 0_u64..5000) {
            let mut at = 0;
            let mut segments = Vec::new();
            for (gap, len) in gaps {
                segments.push((at + gap, len));
                at += gap + len;
            }
            for unit in [512, 1024, 4096, 65_536] {
                let mut sink = MemorySink::new(unit);
                let data = Data::store(at + tail, &segments, &mut Count(0), &mut sink).expect("stored");
                prop_assert_eq!(sink.read(&data), expected(at + tail, &segments));
                for pair in data.ranges.windows(2) {
                    prop_assert!(pair[0].block + pair[0].piece.blocks() < pair[1].block);
                }
            }
        }
    }
}
