//! The contents of a regular file, holes being holes.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, SeekFrom, Stat, fstat, seek};
use rustix::io::{Errno, pread};

use super::place::FileIdentity;
use crate::error::{Error, Result};
use crate::populate::data::{Bytes, Data, DataSink};

/// A regular file that is open, and what it was when it was opened.
pub(in super::super) struct Opened<'a> {
    file: &'a OwnedFd,
    stat: Stat,
    shown: &'a dyn Fn() -> String,
}

impl<'a> Opened<'a> {
    /// A file. `shown` is its name in errors.
    ///
    /// # Errors
    /// `Source`, when the system says nothing about it.
    pub fn new(file: &'a OwnedFd, shown: &'a dyn Fn() -> String) -> Result<Self> {
        let stat = fstat(file).map_err(|error| Error::source(shown(), error))?;
        Ok(Opened { file, stat, shown })
    }

    /// What it was when it was opened.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Whether it is a regular file.
    pub fn is_regular(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == FileType::RegularFile
    }

    /// Whether it is what `earlier` told of.
    pub fn is_as(&self, earlier: &Stat) -> bool {
        let kind = |stat: &Stat| FileType::from_raw_mode(stat.st_mode);
        FileIdentity::of(&self.stat) == FileIdentity::of(earlier) && kind(&self.stat) == kind(earlier)
    }

    /// Gives its contents to the sink.
    ///
    /// # Errors
    /// `Source`, when it cannot be read, or was changed meanwhile. Those of the sink.
    pub fn store(&self, sink: &mut dyn DataSink) -> Result<Data> {
        let size = u64::try_from(self.stat.st_size).unwrap_or(0);
        // what fits into a block of the image and is stored at all needs no search for holes
        let one_block = (1..=u64::from(sink.block_size())).contains(&size) && self.stat.st_blocks > 0;
        let segments =
            if one_block { vec![(0, size)] } else { self.segments(size).map_err(|error| self.error(error))? };
        let mut bytes = Segments { file: self, rest: &segments, done: 0 };
        let data = Data::store(size, &segments, &mut bytes, sink)?;
        let now = fstat(self.file).map_err(|error| self.error(error))?;
        let state = |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
        if state(&now) != state(&self.stat) {
            return Err(self.changed());
        }
        Ok(data)
    }

    /// Where it is no hole: first byte and length. Where the filesystem does not know of holes, there is none.
    fn segments(&self, size: u64) -> rustix::io::Result<Vec<(u64, u64)>> {
        let mut segments = Vec::new();
        let mut at = 0;
        while at < size {
            let start = match seek(self.file, SeekFrom::Data(at)) {
                Ok(start) if start < size => start,
                Ok(_) | Err(Errno::NXIO) => break,
                Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
                Err(error) => return Err(error),
            };
            let end = match seek(self.file, SeekFrom::Hole(start)) {
                Ok(end) => end.min(size),
                Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NXIO) => size,
                Err(error) => return Err(error),
            };
            if end <= start {
                break;
            }
            segments.push((start, end - start));
            at = end;
        }
        Ok(segments)
    }

    fn error(&self, error: Errno) -> Error {
        Error::source((self.shown)(), error)
    }

    fn changed(&self) -> Error {
        Error::source((self.shown)(), "it was changed while it was read")
    }
}

/// The bytes of the segments of a file.
struct Segments<'a> {
    file: &'a Opened<'a>,
    rest: &'a [(u64, u64)],
    /// Bytes of the first segment that were read.
    done: u64,
}

impl Bytes for Segments<'_> {
    fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
        let mut rest = buf;
        while !rest.is_empty() {
            let &(start, len) = self.rest.first().ok_or_else(|| self.file.changed())?;
            let wanted = usize::try_from(len - self.done).unwrap_or(usize::MAX).min(rest.len());
            let read = match pread(self.file.file.as_fd(), &mut rest[..wanted], start + self.done) {
                Ok(0) => return Err(self.file.changed()),
                Ok(read) => read,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(self.file.error(error)),
            };
            rest = &mut rest[read..];
            self.done += u64::try_from(read).unwrap_or(0);
            if self.done == len {
                (self.rest, self.done) = (&self.rest[1..], 0);
            }
        }
        Ok(())
    }
}
