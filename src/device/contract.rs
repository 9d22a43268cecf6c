//! The trait that every device fulfils, and the types it speaks in.

use std::io;
use std::sync::Arc;

use crate::error::{DeviceRole, Error, Place, Result};

/// Sector sizes of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorSize {
    /// The smallest unit that the device takes.
    pub logical: u32,
    /// The unit that it writes without reading first.
    pub physical: u32,
}

impl SectorSize {
    /// 512 bytes, logical and physical: what a regular file is taken for.
    pub const FILE: SectorSize = SectorSize { logical: 512, physical: 512 };
}

/// A range of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Where it starts.
    pub start: u64,
    /// How long it is.
    pub len: u64,
}

impl ByteRange {
    /// The first byte behind the range; saturates at the end of the number range.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// The part of the range that lies in `other`, if any.
    pub fn intersection(&self, other: ByteRange) -> Option<ByteRange> {
        let start = self.start.max(other.start);
        let end = self.end().min(other.end());
        (start < end).then(|| ByteRange { start, len: end - start })
    }
}

/// Something that holds bytes at offsets: a file, a block device, memory, or a layer over another device.
///
/// All methods take `&self`, so that many threads can use one device. Offsets and lengths are in bytes. An access that
/// ends behind the device is an error of the kind `UnexpectedEof` and changes nothing.
pub trait Device: Send + Sync {
    /// Size in bytes.
    fn len(&self) -> u64;

    /// Whether it has no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which of a filesystem's devices this is; errors name it.
    fn role(&self) -> DeviceRole;

    /// Sector sizes; 512 and 512 for files.
    fn sector_size(&self) -> SectorSize;

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// `Io`, also when the range ends behind the device.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Writes `buf` at `offset`.
    ///
    /// # Errors
    /// `Io`, also when the device is read-only or the range ends behind it.
    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()>;

    /// Makes `len` bytes at `offset` read as zero.
    ///
    /// # Errors
    /// As for [`Device::write_at`].
    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()>;

    /// Makes all that was written durable.
    ///
    /// # Errors
    /// `Io`.
    fn flush(&self) -> Result<()>;

    /// Tells the device that the contents of the range are of no use; what is read there afterwards is not defined.
    /// `false` if the device cannot discard.
    ///
    /// # Errors
    /// As for [`Device::write_at`].
    fn discard(&self, offset: u64, len: u64) -> Result<bool>;

    /// The first range at or behind `from` that may hold something other than zeroes, cut at `from`; `None` if there
    /// is none. A device that does not know answers with all that is left of it.
    ///
    /// # Errors
    /// `Io`.
    fn next_allocated(&self, from: u64) -> Result<Option<ByteRange>>;
}

impl dyn Device + '_ {
    /// All ranges that may hold something other than zeroes, in ascending order, found one at a time.
    pub fn allocated_ranges(&self) -> AllocatedRanges<'_> {
        AllocatedRanges { device: self, at: 0 }
    }
}

/// Iterator over the allocated ranges of a device; ends after the first error.
pub struct AllocatedRanges<'a> {
    device: &'a dyn Device,
    at: u64,
}

impl Iterator for AllocatedRanges<'_> {
    type Item = Result<ByteRange>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.device.next_allocated(self.at) {
            Ok(Some(range)) => {
                self.at = range.end();
                Some(Ok(range))
            }
            Ok(None) => None,
            Err(error) => {
                self.at = u64::MAX;
                Some(Err(error))
            }
        }
    }
}

/// A pointer to a device is one: the layers above need not know how the layer below is held.
macro_rules! forward_device {
    ($($holder:ty),*) => {$(
        impl<D: Device + ?Sized> Device for $holder {
            fn len(&self) -> u64 {
                (**self).len()
            }
            fn role(&self) -> DeviceRole {
                (**self).role()
            }
            fn sector_size(&self) -> SectorSize {
                (**self).sector_size()
            }
            fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
                (**self).read_at(offset, buf)
            }
            fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
                (**self).write_at(offset, buf)
            }
            fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
                (**self).write_zeroes(offset, len)
            }
            fn flush(&self) -> Result<()> {
                (**self).flush()
            }
            fn discard(&self, offset: u64, len: u64) -> Result<bool> {
                (**self).discard(offset, len)
            }
            fn next_allocated(&self, from: u64) -> Result<Option<ByteRange>> {
                (**self).next_allocated(from)
            }
        }
    )*};
}

forward_device!(&D, Box<D>, Arc<D>);

/// Wraps a system error of an access at `offset` of `device`.
pub(super) fn io_error(role: DeviceRole, offset: u64, source: impl Into<io::Error>) -> Error {
    Error::io(Place::at_offset(offset).on(role), source.into())
}

/// Refuses an access that ends behind `size`.
pub(super) fn check_range(role: DeviceRole, size: u64, offset: u64, len: u64) -> Result<()> {
    match offset.checked_add(len) {
        Some(end) if end <= size => Ok(()),
        _ => {
            let what = format!("access to {len} bytes ends behind the device's {size} bytes");
            Err(io_error(role, offset, io::Error::new(io::ErrorKind::UnexpectedEof, what)))
        }
    }
}

/// Length of a buffer as a device counts.
pub(super) fn length_of(buf: &[u8]) -> u64 {
    u64::try_from(buf.len()).expect("invariant: a buffer in memory has fewer than 2^64 bytes")
}
