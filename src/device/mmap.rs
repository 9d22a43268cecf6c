//! Regular files mapped into memory, for tools that only read.
//!
//! A page of a mapped file that was cut off, or that the disk cannot deliver, is reported by the signal SIGBUS, which
//! ends a process that is not prepared. Here the handler puts a page of zeroes in its place and notes that; the reader
//! sees the note behind its copy, and from then on reads by pread, which reports what is wrong as an error. So a map
//! never makes anything worse than a file: it only saves calls.
//!
//! This file and `block_ioctl` are the only places of the crate with `unsafe`.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use memmap2::{Advice, Mmap};

use super::contract::{ByteRange, Device, SectorSize, check_range, io_error, length_of};
use super::file::{Access, FileDevice, FileKind};
use crate::error::{DeviceRole, Result};

/// A regular file that is read through a map.
pub struct MappedDevice {
    inner: FileDevice,
    size: u64,
    map: Option<Guarded>,
}

impl MappedDevice {
    /// Maps a file that was opened for reading. Where the system refuses to map it, it is read like any other file.
    ///
    /// # Errors
    /// `Io` (`InvalidInput`) for a block device, and for a file that was opened for writing.
    pub fn new(inner: FileDevice) -> Result<Self> {
        if inner.kind() != FileKind::Regular || inner.access() != Access::Read {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "only files opened for reading are mapped");
            return Err(io_error(inner.role(), 0, error));
        }
        let size = inner.len();
        let map = Guarded::new(&inner);
        Ok(MappedDevice { inner, size, map })
    }

    /// Whether the last bytes of a copy may be missing in the file.
    ///
    /// Of the page in which a file ends, the map shows the rest as zeroes, and no signal tells. All pages behind it
    /// raise one, so only a copy that ends in zeroes can be wrong, and only that needs a look at the file's size.
    fn lacks_the_end_of(&self, copy: &[u8]) -> bool {
        copy.last() == Some(&0) && !self.inner.file().metadata().is_ok_and(|now| now.len() >= self.size)
    }

    /// Whether reads still go through the map.
    pub fn is_mapped(&self) -> bool {
        self.map.as_ref().is_some_and(|map| !map.is_broken())
    }
}

impl Device for MappedDevice {
    fn len(&self) -> u64 {
        self.size
    }

    fn role(&self) -> DeviceRole {
        self.inner.role()
    }

    fn sector_size(&self) -> SectorSize {
        self.inner.sector_size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(self.role(), self.size, offset, length_of(buf))?;
        match &self.map {
            Some(map) if map.copy(offset, buf) && !self.lacks_the_end_of(buf) => Ok(()),
            _ => self.inner.read_at(offset, buf),
        }
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.inner.write_at(offset, buf)
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.write_zeroes(offset, len)
    }

    fn flush(&self) -> Result<()> {
        self.inner.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        self.inner.discard(offset, len)
    }

    fn next_allocated(&self, from: u64) -> Result<Option<ByteRange>> {
        self.inner.next_allocated(from)
    }
}

/// A map whose address range the signal handler knows.
struct Guarded {
    map: Mmap,
    slot: &'static Slot,
}

impl Guarded {
    /// `None` if the file is empty, the system cannot map it, or too many files are mapped already.
    fn new(device: &FileDevice) -> Option<Self> {
        if device.is_empty() || !install_handler() {
            return None;
        }
        // SAFETY: the bytes of a map may change under the reader. No reference to them is ever made: `copy` moves them
        // out through a raw pointer. What a cut file does to a map is what the signal handler is for.
        let map = unsafe { Mmap::map(device.file()) }.ok()?;
        // Walks over metadata jump about; reading ahead would only fill memory.
        map.advise(Advice::Random).ok()?;
        let slot = Slot::claim(map.as_ptr().addr(), map.len())?;
        Some(Guarded { map, slot })
    }

    fn is_broken(&self) -> bool {
        self.slot.broken.load(Ordering::Acquire)
    }

    /// Copies from the map; `false` if the bytes did not all come from the file.
    fn copy(&self, offset: u64, buf: &mut [u8]) -> bool {
        let Ok(offset) = usize::try_from(offset) else { return false };
        if self.is_broken() || offset.checked_add(buf.len()).is_none_or(|end| end > self.map.len()) {
            return false;
        }
        // SAFETY: the source lies in the map, as was just checked, and the map lives as long as `self`. The target is
        // an exclusive reference, which cannot overlap with a map that nobody else has.
        unsafe { ptr::copy_nonoverlapping(self.map.as_ptr().add(offset), buf.as_mut_ptr(), buf.len()) };
        !self.is_broken()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.slot.release();
    }
}

/// The address range of a map, for the signal handler: only atomics, since a handler must not take locks.
struct Slot {
    taken: AtomicBool,
    start: AtomicUsize,
    len: AtomicUsize,
    broken: AtomicBool,
}

/// More files than any tool maps at once; one more is simply not mapped.
static SLOTS: [Slot; 64] = [const {
    Slot {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        broken: AtomicBool::new(false),
    }
}; 64];

impl Slot {
    fn claim(start: usize, len: usize) -> Option<&'static Slot> {
        let slot = SLOTS.iter().find(|slot| !slot.taken.swap(true, Ordering::AcqRel))?;
        slot.broken.store(false, Ordering::Release);
        slot.len.store(len, Ordering::Release);
        slot.start.store(start, Ordering::Release);
        Some(slot)
    }

    fn release(&self) {
        self.start.store(0, Ordering::Release);
        self.len.store(0, Ordering::Release);
        self.taken.store(false, Ordering::Release);
    }

    /// Whether the address lies in the map's pages.
    fn holds(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::Acquire);
        start != 0 && address.checked_sub(start).is_some_and(|at| at < self.len.load(Ordering::Acquire))
    }
}

/// What happened on SIGBUS before this handler came.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler once; `false` if that failed.
fn install_handler() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
        // SAFETY: sigaction is a plain C structure for which zeroes are valid; both pointers are to such structures,
        // and the handler has the signature that SA_SIGINFO asks for.
        unsafe {
            let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
            if libc::sigaction(libc::SIGBUS, ptr::null(), previous.as_mut_ptr()) != 0 {
                return false;
            }
            if PREVIOUS.set(previous.assume_init()).is_err() {
                return false;
            }
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            action.sa_sigaction = handler as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) == 0
        }
    })
}

/// Replaces the page that could not be had by zeroes if it belongs to a map of ours; else lets happen what would have
/// happened without us.
extern "C" fn on_bus_error(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t, and for SIGBUS its address is set. All calls made here are system
    // calls, and all that is touched are atomics: nothing that a signal handler may not do. `errno` is put back.
    unsafe {
        let address = (*info).si_addr().addr();
        let errno = *libc::__errno_location();
        let replaced = SLOTS.iter().find(|slot| slot.holds(address)).is_some_and(|slot| {
            slot.broken.store(true, Ordering::Release);
            replace_page(address)
        });
        *libc::__errno_location() = errno;
        if !replaced && let Some(previous) = PREVIOUS.get() {
            // The access is repeated after the return, and the signal then meets the handler that was there before.
            libc::sigaction(libc::SIGBUS, previous, ptr::null_mut());
        }
    }
}

/// Maps a page of zeroes over the page of `address`.
///
/// # Safety
/// The address must lie in a map of a [`Guarded`], whose bytes nobody holds a reference to.
unsafe fn replace_page(address: usize) -> bool {
    // SAFETY: sysconf only reads; mmap replaces a page of a read-only private use, which the caller vouches for.
    unsafe {
        let Ok(page) = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)) else { return false };
        let start = ptr::without_provenance_mut(address / page * page);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        libc::mmap(start, page, libc::PROT_READ, flags, -1, 0) == start
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use crate::device::OpenFile;
    use crate::error::Error;

    fn mapped(len: u64) -> (tempfile::NamedTempFile, MappedDevice) {
        let file = tempfile::NamedTempFile::new().expect("invariant: a temporary file can be made");
        let bytes: Vec<u8> = (0..len).map(|at| at.to_le_bytes()[0] | 1).collect();
        std::fs::write(file.path(), bytes).expect("invariant: writable");
        let inner = FileDevice::open(file.path(), OpenFile::READ).expect("invariant: readable");
        let device = MappedDevice::new(inner).expect("a file opened for reading");
        (file, device)
    }

    fn cut(file: &tempfile::NamedTempFile, len: u64) {
        OpenOptions::new()
            .write(true)
            .open(file.path())
            .and_then(|file| file.set_len(len))
            .expect("invariant: writable");
    }

    #[test]
    fn a_file_cut_before_the_read_is_an_error() {
        let (file, device) = mapped(1 << 20);
        assert!(device.is_mapped());
        cut(&file, 100_000);
        let mut buf = vec![0; 1 << 20];
        let error = device.read_at(0, &mut buf).expect_err("most of it is gone");
        assert!(matches!(error, Error::Io { error, .. } if error.kind() == io::ErrorKind::UnexpectedEof));
        assert!(!device.is_mapped());
        device.read_at(0, &mut buf[..100_000]).expect("what is left is readable");
        assert!(buf[..100_000].iter().all(|byte| byte & 1 == 1));
        assert!(device.read_at(99_999, &mut buf[..2]).is_err());
    }

    #[test]
    fn the_rest_of_the_last_page_is_no_zeroes() {
        let (file, device) = mapped(1 << 20);
        cut(&file, 100_000);
        assert!(device.read_at(100_000, &mut [0; 100]).is_err());
        assert!(device.read_at(99_999, &mut [0; 2]).is_err());
        device.read_at(99_999, &mut [0]).expect("the last byte that is left");
    }

    #[test]
    fn a_file_cut_under_readers_never_yields_zeroes() {
        for round in 0..20_u64 {
            let (file, device) = mapped(4 << 20);
            std::thread::scope(|scope| {
                for reader in 0..3 {
                    let device = &device;
                    scope.spawn(move || {
                        let mut buf = vec![0; 256 << 10];
                        for turn in 0..64 {
                            let offset = (turn + reader) % 16 * (256 << 10);
                            if device.read_at(offset, &mut buf).is_ok() {
                                assert!(buf.iter().all(|byte| byte & 1 == 1));
                            }
                        }
                    });
                }
                cut(&file, round * 200_000);
            });
            let mut last = [0];
            assert!(device.read_at((4 << 20) - 1, &mut last).is_err());
        }
    }

    #[test]
    fn an_empty_file_and_a_writable_one() {
        let (file, device) = mapped(0);
        assert!(device.is_empty() && !device.is_mapped());
        assert!(device.read_at(0, &mut [0]).is_err());
        assert!(device.write_at(0, &[]).is_err());
        let writable = FileDevice::open(file.path(), OpenFile::WRITE).expect("invariant: writable");
        assert!(MappedDevice::new(writable).is_err());
    }

    #[test]
    fn more_maps_than_slots() {
        let all: Vec<_> = (0..70).map(|_| mapped(5000)).collect();
        for (_, device) in &all {
            let mut buf = [0; 10];
            device.read_at(4990, &mut buf).expect("readable, mapped or not");
            assert!(buf.iter().all(|byte| byte & 1 == 1));
        }
    }
}
