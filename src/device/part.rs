//! A range of another device as a device of its own: a partition inside a whole-disk image.

use super::contract::{ByteRange, Device, SectorSize, check_range, length_of};
use crate::error::{DeviceRole, Result};

/// The sub-range of a device.
#[derive(Debug)]
pub struct PartDevice<D> {
    inner: D,
    range: ByteRange,
}

impl<D: Device> PartDevice<D> {
    /// The bytes of `range` as a device.
    ///
    /// # Errors
    /// `Io` if the range ends behind `inner`.
    pub fn new(inner: D, range: ByteRange) -> Result<Self> {
        check_range(inner.role(), inner.len(), range.start, range.len)?;
        Ok(PartDevice { inner, range })
    }

    /// Where the device lies in the one below.
    pub fn range(&self) -> ByteRange {
        self.range
    }

    /// The place of an access on the device below.
    fn below(&self, offset: u64, len: u64) -> Result<u64> {
        check_range(self.inner.role(), self.range.len, offset, len)?;
        Ok(self.range.start + offset)
    }
}

impl<D: Device> Device for PartDevice<D> {
    fn len(&self) -> u64 {
        self.range.len
    }

    fn role(&self) -> DeviceRole {
        self.inner.role()
    }

    fn sector_size(&self) -> SectorSize {
        self.inner.sector_size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.inner.read_at(self.below(offset, length_of(buf))?, buf)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.inner.write_at(self.below(offset, length_of(buf))?, buf)
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.write_zeroes(self.below(offset, len)?, len)
    }

    fn flush(&self) -> Result<()> {
        self.inner.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        self.inner.discard(self.below(offset, len)?, len)
    }

    fn next_allocated(&self, from: u64) -> Result<Option<ByteRange>> {
        if from >= self.range.len {
            return Ok(None);
        }
        let found = self.inner.next_allocated(self.range.start + from)?;
        let inside = found.and_then(|found| found.intersection(self.range));
        Ok(inside.map(|inside| ByteRange { start: inside.start - self.range.start, len: inside.len }))
    }
}
