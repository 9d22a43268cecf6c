//! Where what is built goes: the device, neighbours together.

use std::collections::BTreeMap;

use crate::device::Device;
use crate::error::Result;

/// Longest single write, in bytes.
const LONGEST_WRITE: usize = 1 << 20;
/// Bytes of metadata that are held before they are written.
const BUDGET: usize = 8 << 20;

/// Writes to a device, or to nothing when it is only to be known whether all fits.
pub(super) struct Output<'a> {
    device: Option<&'a dyn Device>,
    /// Data of files that were stored last, from this byte of the device on.
    run: Vec<u8>,
    start: u64,
    /// Metadata by the byte where they begin; they do not overlap.
    pieces: BTreeMap<u64, Vec<u8>>,
    held: usize,
}

impl<'a> Output<'a> {
    /// Writes to `device`; to nothing without.
    pub fn new(device: Option<&'a dyn Device>) -> Self {
        Output { device, run: Vec::new(), start: 0, pieces: BTreeMap::new(), held: 0 }
    }

    /// Where it writes.
    pub fn device(&self) -> Option<&'a dyn Device> {
        self.device
    }

    /// Whether nothing is written.
    pub fn is_void(&self) -> bool {
        self.device.is_none()
    }

    /// Gives `len` bytes of file data at byte `offset` to be filled in; what came before may be written first.
    pub fn data(&mut self, offset: u64, len: usize) -> Result<&mut [u8]> {
        let follows = self.start + self.run.len() as u64 == offset;
        if !follows || self.run.len() + len > LONGEST_WRITE {
            self.write_data()?;
            self.start = offset;
        }
        let from = self.run.len();
        self.run.resize(from + len, 0);
        Ok(&mut self.run[from..])
    }

    /// Most bytes that [`Output::data`] is asked for at once.
    pub const MOST_DATA: usize = LONGEST_WRITE;

    /// Takes the last `len` bytes back, since they could not be filled in.
    pub fn retract(&mut self, len: usize) {
        self.run.truncate(self.run.len().saturating_sub(len));
    }

    /// Holds metadata to be written at byte `offset`.
    pub fn metadata(&mut self, offset: u64, bytes: Vec<u8>) -> Result<()> {
        if self.is_void() {
            return Ok(());
        }
        self.held += bytes.len();
        self.pieces.insert(offset, bytes);
        if self.held > BUDGET { self.write_metadata() } else { Ok(()) }
    }

    /// Writes all that is held.
    pub fn write(&mut self) -> Result<()> {
        self.write_data()?;
        self.write_metadata()
    }

    fn write_data(&mut self) -> Result<()> {
        if let Some(device) = self.device.filter(|_| !self.run.is_empty()) {
            device.write_at(self.start, &self.run)?;
        }
        self.run.clear();
        Ok(())
    }

    fn write_metadata(&mut self) -> Result<()> {
        self.held = 0;
        let pieces = std::mem::take(&mut self.pieces);
        let Some(device) = self.device else { return Ok(()) };
        let mut run: Vec<u8> = Vec::new();
        let mut start = 0;
        for (offset, bytes) in pieces {
            if start + run.len() as u64 != offset || run.len() + bytes.len() > LONGEST_WRITE {
                if !run.is_empty() {
                    device.write_at(start, &run)?;
                }
                run.clear();
                start = offset;
            }
            run.extend_from_slice(&bytes);
        }
        if run.is_empty() { Ok(()) } else { device.write_at(start, &run) }
    }
}
