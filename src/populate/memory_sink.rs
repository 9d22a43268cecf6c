//! A sink in memory, for tests.

use super::data::{Bytes, Data, DataSink, Piece, Stored};
use crate::error::{Error, Result};

/// Keeps what it takes.
pub(super) struct MemorySink {
    unit: u32,
    stored: Vec<Option<Vec<u8>>>,
}

impl MemorySink {
    /// A sink with blocks of `unit` bytes.
    pub fn new(unit: u32) -> Self {
        MemorySink { unit, stored: Vec::new() }
    }

    /// A file that it has, as it reads.
    pub fn read(&self, data: &Data) -> Vec<u8> {
        let mut file = vec![0; usize::try_from(data.size).expect("a file of a test")];
        for range in &data.ranges {
            let Piece::Stored(stored) = range.piece else { continue };
            let bytes = self.stored[usize::try_from(stored.start).expect("an index")].as_ref().expect("not released");
            let start = usize::try_from(range.block * u64::from(self.unit)).expect("a file of a test");
            let end = (start + bytes.len()).min(file.len());
            file[start..end].copy_from_slice(&bytes[..end - start]);
        }
        file
    }

    /// How many pieces it has that were not given back.
    pub fn held(&self) -> usize {
        self.stored.iter().flatten().count()
    }
}

impl DataSink for MemorySink {
    fn block_size(&self) -> u32 {
        self.unit
    }

    fn store(&mut self, len: u64, bytes: &mut dyn Bytes) -> Result<Stored> {
        let mut taken = vec![0; usize::try_from(len).expect("a file of a test")];
        for part in taken.chunks_mut(1000) {
            bytes.fill(part)?;
        }
        self.stored.push(Some(taken));
        let start = u64::try_from(self.stored.len()).expect("few") - 1;
        Ok(Stored { start, blocks: len.div_ceil(u64::from(self.unit)) })
    }

    fn release(&mut self, stored: Stored) -> Result<()> {
        let slot = usize::try_from(stored.start).ok().and_then(|start| self.stored.get_mut(start));
        slot.and_then(Option::take).map(|_| ()).ok_or_else(|| Error::Internal("it was not stored".into()))
    }
}
