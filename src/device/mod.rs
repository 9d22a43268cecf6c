//! Storage: a small trait, and devices that stack on each other.

use crate::error::Result;

/// Sector sizes of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorSize {
    /// The smallest unit that the device takes.
    pub logical: u32,
    /// The unit that it writes without reading first.
    pub physical: u32,
}

/// A range of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Where it starts.
    pub start: u64,
    /// How long it is.
    pub len: u64,
}

/// Something that holds bytes at offsets: a file, a block device, memory, or a layer over another device.
///
/// All methods take `&self`, so that many threads can use one device. Offsets and lengths are in bytes.
pub trait Device: Send + Sync {
    /// Size in bytes.
    fn len(&self) -> u64;

    /// Whether it has no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

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
    ///
    /// # Errors
    /// `Io`; a device that cannot discard succeeds.
    fn discard(&self, offset: u64, len: u64) -> Result<()>;

    /// The ranges that may hold something other than zeroes, in order; one range for the whole device where it is not known.
    ///
    /// # Errors
    /// `Io`.
    fn allocated_ranges(&self) -> Result<Vec<ByteRange>>;
}
