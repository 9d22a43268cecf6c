//! Data of files in a temporary file without a name, until it is known how large the image will be.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::build::Builder;
use super::data::{Bytes, DataSink, Stored};
use crate::error::{Error, Result};

/// Bytes that are copied at once.
const CHUNK: usize = 1 << 20;

/// A temporary file that data go to first.
#[derive(Debug)]
pub struct Spool {
    file: File,
    block_size: u32,
    /// Length in bytes of what begins at a block of the file.
    stored: BTreeMap<u64, (Stored, u64)>,
    end: u64,
    run: Vec<u8>,
}

impl Spool {
    /// An empty spool in `folder`, for an image with blocks of `block_size` bytes.
    ///
    /// # Errors
    /// `Source` when no file can be made there.
    pub fn new(folder: &Path, block_size: u32) -> Result<Self> {
        let file = unnamed(folder).map_err(|error| {
            Error::source(folder.display().to_string(), format_args!("no temporary file can be made: {error}"))
        })?;
        Ok(Spool { file, block_size, stored: BTreeMap::new(), end: 0, run: Vec::new() })
    }

    /// Blocks that the data take in the image.
    pub fn blocks(&self) -> u64 {
        self.stored.values().map(|(stored, _)| stored.blocks).sum()
    }

    /// Gives all data to the builder of the image.
    ///
    /// # Errors
    /// Those of the builder and of reading.
    pub fn copy_to(&self, builder: &mut Builder<'_>) -> Result<()> {
        for (stored, len) in self.stored.values() {
            let at = stored.start * u64::from(self.block_size);
            builder.adopt(*stored, *len, &mut FromFile { spool: self, at })?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let at = self.end * u64::from(self.block_size) - self.run.len() as u64;
        self.file.write_all_at(&self.run, at).map_err(failed)?;
        self.run.clear();
        Ok(())
    }
}

/// A new file that has no name.
fn unnamed(folder: &Path) -> std::io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    if let Ok(file) = rustix::fs::open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        return Ok(file.into());
    }
    // not every filesystem can do that
    let number = u64::from_ne_bytes(crate::device::random_bytes());
    let path = folder.join(format!(".xfskit-{number:016x}"));
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, mode)?;
    std::fs::remove_file(&path)?;
    Ok(file.into())
}

impl DataSink for Spool {
    fn block_size(&self) -> u32 {
        self.block_size
    }

    fn store(&mut self, len: u64, bytes: &mut dyn Bytes) -> Result<Stored> {
        let unit = u64::from(self.block_size);
        let stored = Stored { start: self.end, blocks: len.div_ceil(unit) };
        let mut left = stored.blocks;
        let mut held = len;
        while left > 0 {
            let room = u64::try_from(CHUNK.saturating_sub(self.run.len())).unwrap_or(0) / unit;
            if room == 0 {
                self.write()?;
                continue;
            }
            let now = left.min(room);
            let from = self.run.len();
            let fill = usize::try_from(held.min(now * unit)).map_err(|_| too_long())?;
            self.run.resize(from + usize::try_from(now * unit).map_err(|_| too_long())?, 0);
            if let Err(error) = bytes.fill(&mut self.run[from..from + fill]) {
                self.run.truncate(from);
                return Err(error);
            }
            self.end += now;
            left -= now;
            held -= fill as u64;
        }
        self.stored.insert(stored.start, (stored, len));
        if self.run.len() >= CHUNK {
            self.write()?
        }
        Ok(stored)
    }

    fn release(&mut self, stored: Stored) -> Result<()> {
        let known = self.stored.remove(&stored.start).filter(|(known, _)| *known == stored);
        known.map(|_| ()).ok_or_else(|| Error::Internal("data are given back that were not stored".into()))
    }
}

/// Bytes of the spool from some byte on.
struct FromFile<'s> {
    spool: &'s Spool,
    at: u64,
}

impl Bytes for FromFile<'_> {
    fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
        let spool = self.spool;
        let written = spool.end * u64::from(spool.block_size) - spool.run.len() as u64;
        let in_file = usize::try_from(written.saturating_sub(self.at)).unwrap_or(usize::MAX).min(buf.len());
        let (from_file, from_run) = buf.split_at_mut(in_file);
        spool.file.read_exact_at(from_file, self.at).map_err(failed)?;
        self.at += in_file as u64;
        if !from_run.is_empty() {
            let start = usize::try_from(self.at - written).map_err(|_| too_long())?;
            let held = spool.run.get(start..start + from_run.len()).ok_or_else(too_long)?;
            from_run.copy_from_slice(held);
            self.at += from_run.len() as u64;
        }
        Ok(())
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::source("temporary file", error)
}

fn too_long() -> Error {
    Error::Internal("data are longer than the temporary file".into())
}
