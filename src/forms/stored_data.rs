//! Where the bytes of a regular file are stored.

use super::extents::Extents;
use super::fork::ForkKind;
use super::inode::{FileType, Inode};
use super::source::{BlockSource, corrupt};
use crate::error::{Check, DeviceRole, Error, Result, Rule};
use crate::geometry::{FsBlock, Geometry, RtBlock};
use crate::ondisk::Extent;

/// The largest size of a file, in bytes: Linux counts them in 63 bits.
const LARGEST: u64 = u64::MAX >> 1;

/// Bytes of a file that follow each other on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRange {
    /// The first of them in the file.
    pub offset: u64,
    /// How many; not 0.
    pub len: u64,
    /// The space is allocated, but the bytes read as zeroes.
    pub unwritten: bool,
    /// The device that holds them.
    pub device: DeviceRole,
    /// Where they start on it.
    pub at: u64,
}

impl StoredRange {
    /// The first byte of the file behind them.
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// The stored bytes of a regular file in order, up to its size. What lies between them are holes, which read as zeroes.
///
/// Extents that follow each other in the file and on the device come as one range. Damage comes as an error, and the walk
/// goes on behind it.
pub struct StoredData<'a> {
    geometry: &'a Geometry,
    extents: Option<Extents<'a>>,
    realtime: bool,
    size: u64,
    /// The range that the next extent may go on.
    pending: Option<StoredRange>,
    /// An error that was met while a range was pending.
    error: Option<Error>,
}

impl<'a> StoredData<'a> {
    /// The stored bytes of `inode`.
    ///
    /// # Errors
    /// `Usage` when it is no regular file; `Corrupt` when its size is more than any can be, or its data fork cannot be
    /// decoded.
    pub fn open(source: &'a dyn BlockSource, inode: &'a Inode) -> Result<Self> {
        if inode.file_type() != Some(FileType::Regular) {
            return Err(Error::Usage(format!("inode {} is not a regular file", inode.ino)));
        }
        if inode.size() > LARGEST {
            let check = Check::new("dinode", "size", Rule::Range);
            return Err(corrupt(check, &inode.place, inode.size().to_string()));
        }
        let fork = inode.fork(ForkKind::Data)?;
        Ok(StoredData {
            geometry: source.geometry(),
            extents: fork.map(|fork| fork.extents(source)),
            realtime: inode.is_realtime(),
            size: inode.size(),
            pending: None,
            error: None,
        })
    }

    /// The bytes of `extent` that are below the size; `None` when there are none.
    fn range_of(&self, extent: &Extent) -> Option<StoredRange> {
        let offset = self.geometry.blocks_to_bytes(extent.startoff).filter(|&offset| offset < self.size)?;
        let len = self.geometry.blocks_to_bytes(u64::from(extent.blockcount))?.min(self.size - offset);
        let daddr = if self.realtime {
            self.geometry.rtb_daddr(RtBlock(extent.startblock))
        } else {
            self.geometry.fsb_daddr(FsBlock(extent.startblock))
        };
        let of_its_own = self.realtime && self.geometry.realtime.start == 0;
        let device = if of_its_own { DeviceRole::Realtime } else { DeviceRole::Data };
        let at = self.geometry.daddr_offset(daddr?)?;
        Some(StoredRange { offset, len, unwritten: extent.unwritten, device, at })
    }
}

/// `first` with `second` behind it, if that goes on where it ends.
fn joined(first: &StoredRange, second: &StoredRange) -> Option<StoredRange> {
    let goes_on = first.end() == second.offset
        && first.at.checked_add(first.len) == Some(second.at)
        && first.device == second.device
        && first.unwritten == second.unwritten;
    goes_on.then(|| StoredRange { len: first.len + second.len, ..*first })
}

impl Iterator for StoredData<'_> {
    type Item = Result<StoredRange>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        while let Some(next) = self.extents.as_mut().and_then(Iterator::next) {
            let extent = match next {
                Ok(extent) => extent,
                Err(error) => match self.pending.take() {
                    Some(pending) => {
                        self.error = Some(error);
                        return Some(Ok(pending));
                    }
                    None => return Some(Err(error)),
                },
            };
            let Some(range) = self.range_of(&extent) else {
                // extents are in order: all that follows lies behind the size
                self.extents = None;
                break;
            };
            let Some(pending) = self.pending else {
                self.pending = Some(range);
                continue;
            };
            match joined(&pending, &range) {
                Some(longer) => self.pending = Some(longer),
                None => {
                    self.pending = Some(range);
                    return Some(Ok(pending));
                }
            }
        }
        self.pending.take().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_goes_on_is_joined() {
        let range = |offset, len, at| StoredRange { offset, len, unwritten: false, device: DeviceRole::Data, at };
        assert_eq!(joined(&range(0, 8, 100), &range(8, 4, 108)), Some(range(0, 12, 100)));
        assert_eq!(joined(&range(0, 8, 100), &range(9, 4, 108)), None);
        assert_eq!(joined(&range(0, 8, 100), &range(8, 4, 109)), None);
        let unwritten = StoredRange { unwritten: true, ..range(8, 4, 108) };
        assert_eq!(joined(&range(0, 8, 100), &unwritten), None);
        let elsewhere = StoredRange { device: DeviceRole::Realtime, ..range(8, 4, 108) };
        assert_eq!(joined(&range(0, 8, 100), &elsewhere), None);
    }
}
