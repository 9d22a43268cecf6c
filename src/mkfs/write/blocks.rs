//! Blocks of files and inode chunks that are made, held until they are written in the order in which they lie.

use std::collections::BTreeMap;

use crate::device::Device;
use crate::error::{Error, Result};

/// Bytes held before blocks that were made earlier are written.
const BUDGET: usize = 3 << 20;
/// Longest single write, in bytes.
const LONGEST_WRITE: usize = 1 << 20;

/// Pieces of the data device by the byte where they begin; they do not overlap.
pub(super) struct Blocks<'a> {
    device: &'a dyn Device,
    pieces: BTreeMap<u64, Vec<u8>>,
    held: usize,
}

impl<'a> Blocks<'a> {
    /// Nothing is held yet.
    pub fn new(device: &'a dyn Device) -> Self {
        Blocks { device, pieces: BTreeMap::new(), held: 0 }
    }

    /// A piece whose former contents are of no interest.
    pub fn put(&mut self, offset: u64, bytes: Vec<u8>) {
        self.held += bytes.len();
        if let Some(old) = self.pieces.insert(offset, bytes) {
            self.held -= old.len();
        }
    }

    /// The bytes of a piece, or of a part of it; they are read if they have been written meanwhile.
    pub fn get(&mut self, offset: u64, len: usize) -> Result<&mut [u8]> {
        let known = self.pieces.range(..=offset).next_back().map(|(&at, piece)| (at, piece.len()));
        let inside = known.filter(|&(at, held)| offset - at < held as u64);
        let at = match inside {
            Some((at, _)) => at,
            None => {
                let mut bytes = vec![0; len];
                self.device.read_at(offset, &mut bytes)?;
                self.put(offset, bytes);
                offset
            }
        };
        let from = usize::try_from(offset - at).map_err(|_| outside())?;
        self.pieces.get_mut(&at).and_then(|piece| piece.get_mut(from..from + len)).ok_or_else(outside)
    }

    /// Writes all that is held if it has become much.
    pub fn relieve(&mut self) -> Result<()> {
        if self.held > BUDGET { self.write() } else { Ok(()) }
    }

    /// Writes all that is held, neighbours together.
    pub fn write(&mut self) -> Result<()> {
        let mut run: Vec<u8> = Vec::new();
        let mut start = 0;
        for (offset, bytes) in std::mem::take(&mut self.pieces) {
            let joins = !run.is_empty() && start + run.len() as u64 == offset && run.len() < LONGEST_WRITE;
            if !joins {
                if !run.is_empty() {
                    self.device.write_at(start, &run)?;
                }
                run.clear();
                start = offset;
            }
            run.extend_from_slice(&bytes);
        }
        if !run.is_empty() {
            self.device.write_at(start, &run)?;
        }
        self.held = 0;
        Ok(())
    }
}

fn outside() -> Error {
    Error::Internal("making a filesystem: a piece of the device is asked for across its end".to_string())
}
