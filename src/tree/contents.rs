//! The bytes of regular files.

use std::io::{self, Write};

use super::reader::Reader;
use crate::error::{Place, Result};
use crate::forms::{Inode, StoredData, StoredRange};

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;
static ZEROES: [u8; 1 << 16] = [0; 1 << 16];

impl Reader<'_> {
    /// Fills `buf` with the bytes of `range` from `skip` on.
    ///
    /// # Errors
    /// `Io`; `Usage` when the device is not given.
    pub fn read_range(&self, range: &StoredRange, skip: u64, buf: &mut [u8]) -> Result<()> {
        self.image().device(range.device)?.read_at(range.at.saturating_add(skip), buf)
    }

    /// Writes all bytes of the file `inode` to `out`, holes as zeroes. What cannot be read is reported, and is zeroes, too.
    ///
    /// # Errors
    /// Those of `out`, and `InvalidInput` when it is no regular file.
    pub fn cat(&self, inode: &Inode, out: &mut dyn Write) -> io::Result<()> {
        let data = StoredData::open(self.source(), inode);
        let data = data.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        let mut at = 0;
        let mut buf = Vec::new();
        for range in data {
            match range {
                Ok(range) if range.unwritten => {}
                Ok(range) => {
                    zeroes(out, range.offset - at)?;
                    self.copy(inode, &range, &mut buf, &mut |_, bytes| out.write_all(bytes))?;
                    at = range.end();
                }
                Err(error) => self.report(&error),
            }
        }
        zeroes(out, inode.size() - at)
    }

    /// Gives the bytes of `range`, a part of `inode`, to `take`, piece by piece, with the place of each in the file. A piece
    /// that cannot be read is reported and comes as zeroes.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn copy(
        &self,
        inode: &Inode,
        range: &StoredRange,
        buf: &mut Vec<u8>,
        take: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut done = 0;
        let mut failed = false;
        while done < range.len {
            let len = usize::try_from(range.len - done).unwrap_or(usize::MAX).min(PIECE);
            if buf.len() < len {
                buf.resize(len, 0);
            }
            if failed {
                buf[..len].fill(0);
            } else if let Err(error) = self.read_range(range, done, &mut buf[..len]) {
                let place = Place { inode: Some(inode.ino.0), ..Place::at_offset(range.at + done) };
                self.report(&in_file(error, place.on(range.device)));
                buf[..len].fill(0);
                // a device that is missing or too short gives nothing more
                failed = true;
            }
            take(range.offset + done, &buf[..len])?;
            done += u64::try_from(len).expect("invariant: a piece is small");
        }
        Ok(())
    }
}

/// The error with the file that it is about.
fn in_file(error: crate::error::Error, place: Place) -> crate::error::Error {
    match error {
        crate::error::Error::Io { error, .. } => crate::error::Error::io(place, error),
        other => crate::error::Error::io(place, io::Error::other(other.to_string())),
    }
}

/// Writes `len` zeroes.
pub fn zeroes(out: &mut dyn Write, len: u64) -> io::Result<()> {
    let mut left = len;
    while left > 0 {
        let piece = usize::try_from(left).unwrap_or(usize::MAX).min(ZEROES.len());
        out.write_all(&ZEROES[..piece])?;
        left -= u64::try_from(piece).expect("invariant: a piece is small");
    }
    Ok(())
}
