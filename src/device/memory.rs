//! A device in memory.

use std::convert::Infallible;
use std::sync::{PoisonError, RwLock};

use super::contract::{ByteRange, Device, SectorSize, check_range, length_of};
use super::pages::{Pages, pieces};
use crate::error::{DeviceRole, Result};

/// Bytes in memory, all zero at first; only pages that were written take memory, so that the device may be of any size.
pub struct MemoryDevice {
    size: u64,
    role: DeviceRole,
    sector_size: SectorSize,
    pages: RwLock<Pages>,
}

impl MemoryDevice {
    /// A data device of `size` zeroes with sectors of 512 bytes.
    pub fn new(size: u64) -> Self {
        Self::with_sectors(size, SectorSize::FILE)
    }

    /// As `new`, with other sector sizes.
    pub fn with_sectors(size: u64, sector_size: SectorSize) -> Self {
        MemoryDevice { size, role: DeviceRole::Data, sector_size, pages: RwLock::default() }
    }

    /// A device with these contents.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let device = Self::new(length_of(bytes));
        device.store(0, bytes);
        device
    }

    /// The same device in another role.
    #[must_use]
    pub fn on(mut self, role: DeviceRole) -> Self {
        self.role = role;
        self
    }

    fn check(&self, offset: u64, len: u64) -> Result<()> {
        check_range(self.role, self.size, offset, len)
    }

    fn store(&self, offset: u64, buf: &[u8]) {
        let mut pages = self.pages.write().unwrap_or_else(PoisonError::into_inner);
        for piece in pieces(offset, buf.len()) {
            let Ok(page) = pages.get_or_fill(piece.page, |_| Ok::<_, Infallible>(()));
            page[piece.within..][..piece.len].copy_from_slice(&buf[piece.at..][..piece.len]);
        }
    }
}

impl Device for MemoryDevice {
    fn len(&self) -> u64 {
        self.size
    }

    fn role(&self) -> DeviceRole {
        self.role
    }

    fn sector_size(&self) -> SectorSize {
        self.sector_size
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check(offset, length_of(buf))?;
        let pages = self.pages.read().unwrap_or_else(PoisonError::into_inner);
        for piece in pieces(offset, buf.len()) {
            let part = &mut buf[piece.at..][..piece.len];
            match pages.get(piece.page) {
                Some(page) => part.copy_from_slice(&page[piece.within..][..piece.len]),
                None => part.fill(0),
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.check(offset, length_of(buf))?;
        self.store(offset, buf);
        Ok(())
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
        self.check(offset, len)?;
        let range = ByteRange { start: offset, len };
        let mut pages = self.pages.write().unwrap_or_else(PoisonError::into_inner);
        pages.forget_within(range);
        pages.zero_edges(range);
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        self.write_zeroes(offset, len).map(|()| true)
    }

    fn next_allocated(&self, from: u64) -> Result<Option<ByteRange>> {
        let pages = self.pages.read().unwrap_or_else(PoisonError::into_inner);
        Ok(pages.next_run(from, self.size))
    }
}
