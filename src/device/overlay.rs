//! Copy on write: changes go to memory, the device below stays as it is.

use std::sync::{PoisonError, RwLock};

use super::contract::{ByteRange, Device, SectorSize, check_range, length_of};
use super::extents::Extents;
use super::pages::{PAGE, Pages, pieces};
use crate::error::{DeviceRole, Result};

/// A device whose changes live in memory and vanish with it; the device below is only read.
///
/// Memory is taken by written pages alone; zeroed ranges cost next to none, however long.
pub struct OverlayDevice<D> {
    inner: D,
    changes: RwLock<Changes>,
}

/// What differs from the device below. A page that is there wins over a zeroed range, that over the device.
#[derive(Default)]
struct Changes {
    pages: Pages,
    zeroed: Extents,
}

impl<D: Device> OverlayDevice<D> {
    /// Lays an overlay over `inner`.
    pub fn new(inner: D) -> Self {
        OverlayDevice { inner, changes: RwLock::default() }
    }

    fn check(&self, offset: u64, len: u64) -> Result<()> {
        check_range(self.inner.role(), self.inner.len(), offset, len)
    }

    /// The contents of a page that has not been written, as far as the device has it.
    fn fill_page(&self, zeroed: &Extents, page: u64, bytes: &mut [u8; PAGE]) -> Result<()> {
        let start = page * length_of(&[0; PAGE]);
        if zeroed.contains(start) {
            bytes.fill(0);
            return Ok(());
        }
        let len = usize::try_from(self.inner.len() - start).unwrap_or(PAGE).min(PAGE);
        self.inner.read_at(start, &mut bytes[..len])
    }

    /// Writes into pages; `source` gives the bytes for a part of the range.
    fn store(&self, changes: &mut Changes, offset: u64, len: usize, source: impl Fn(usize, &mut [u8])) -> Result<()> {
        let Changes { pages, zeroed } = changes;
        for piece in pieces(offset, len) {
            let page = pages.get_or_fill(piece.page, |bytes| match piece.len {
                PAGE => Ok(()),
                _ => self.fill_page(zeroed, piece.page, bytes),
            })?;
            source(piece.at, &mut page[piece.within..][..piece.len]);
        }
        Ok(())
    }
}

impl<D: Device> Device for OverlayDevice<D> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn role(&self) -> DeviceRole {
        self.inner.role()
    }

    fn sector_size(&self) -> SectorSize {
        self.inner.sector_size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let range = ByteRange { start: offset, len: length_of(buf) };
        self.check(range.start, range.len)?;
        let changes = self.changes.read().unwrap_or_else(PoisonError::into_inner);
        let mut rest = &mut *buf;
        for (part, zeroed) in changes.zeroed.split(range) {
            let (bytes, behind) = rest.split_at_mut(usize::try_from(part.len).unwrap_or(usize::MAX));
            rest = behind;
            if zeroed {
                bytes.fill(0);
            } else {
                self.inner.read_at(part.start, bytes)?;
            }
        }
        for piece in pieces(offset, buf.len()) {
            if let Some(page) = changes.pages.get(piece.page) {
                buf[piece.at..][..piece.len].copy_from_slice(&page[piece.within..][..piece.len]);
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.check(offset, length_of(buf))?;
        let mut changes = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        self.store(&mut changes, offset, buf.len(), |at, bytes| bytes.copy_from_slice(&buf[at..][..bytes.len()]))
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
        self.check(offset, len)?;
        let range = ByteRange { start: offset, len };
        let mut changes = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        let whole = changes.pages.forget_within(range);
        changes.zeroed.insert(whole.unwrap_or(ByteRange { start: offset, len: 0 }));
        let head = ByteRange { start: offset, len: whole.map_or(range.end(), |whole| whole.start) - offset };
        let tail_start = whole.map_or(range.end(), |whole| whole.end());
        let tail = ByteRange { start: tail_start, len: range.end() - tail_start };
        for edge in [head, tail] {
            let len = usize::try_from(edge.len).unwrap_or(usize::MAX);
            self.store(&mut changes, edge.start, len, |_, bytes| bytes.fill(0))?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        self.write_zeroes(offset, len).map(|()| true)
    }

    fn next_allocated(&self, from: u64) -> Result<Option<ByteRange>> {
        let changes = self.changes.read().unwrap_or_else(PoisonError::into_inner);
        let written = changes.pages.next_run(from, self.len());
        let mut below = self.inner.next_allocated(from)?;
        while let Some(found) = below {
            match changes.zeroed.split(found).find(|(_, zeroed)| !zeroed) {
                Some((part, _)) => {
                    below = Some(part);
                    break;
                }
                None => below = self.inner.next_allocated(found.end())?,
            }
        }
        // Where both begin, the earlier counts; where they overlap, the later one is found from its end on.
        Ok(match (written, below) {
            (Some(written), Some(below)) if written.start <= below.start => Some(written),
            (Some(written), Some(below)) => {
                Some(ByteRange { start: below.start, len: below.len.min(written.start - below.start) })
            }
            (written, below) => written.or(below),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::MemoryDevice;

    #[test]
    fn the_device_below_stays_as_it_is() {
        let below = MemoryDevice::from_bytes(&[7; 10_000]);
        let overlay = OverlayDevice::new(&below);
        overlay.write_at(5000, &[9; 3000]).expect("writable");
        overlay.write_zeroes(0, 6000).expect("writable");
        let mut bytes = [0; 10_000];
        overlay.read_at(0, &mut bytes).expect("readable");
        assert_eq!(bytes[..6000], [0; 6000]);
        assert_eq!(bytes[6000..8000], [9; 2000]);
        assert_eq!(bytes[8000..], [7; 2000]);
        below.read_at(0, &mut bytes).expect("readable");
        assert_eq!(bytes, [7; 10_000]);
    }

    #[test]
    fn zeroing_a_large_device_takes_no_memory() {
        let overlay = OverlayDevice::new(MemoryDevice::new(1 << 60));
        overlay.write_at((1 << 59) + 1, b"x").expect("writable");
        overlay.write_zeroes(1, (1 << 60) - 2).expect("writable");
        let ranges: Vec<_> =
            (&overlay as &dyn Device).allocated_ranges().map(|range| range.expect("listable")).collect();
        assert!(ranges.iter().map(|range| range.len).sum::<u64>() <= 2 * 4096, "{ranges:?}");
    }
}
