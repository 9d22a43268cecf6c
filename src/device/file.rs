//! Regular files and block devices, by pread and pwrite.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, OFlags, SeekFrom, fallocate, ioctl_blkpbszget, ioctl_blksszget, seek};
use rustix::io::Errno;

use super::block_ioctl::discard_range;
use super::contract::{ByteRange, Device, SectorSize, check_range, io_error, length_of};
use super::in_use;
use crate::error::{DeviceRole, Error, Place, Result};

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading; of anything, mounted or not.
    Read,
    /// Reading and writing; refused while the device or the file's loop device is in use, and locked for others.
    Write,
    /// As `Write`; a regular file that is not there is made, empty.
    Create,
}

/// What stands behind a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A block device.
    Block,
}

/// How to open a file as a device.
#[derive(Clone, Copy, Debug)]
pub struct OpenFile {
    /// What for.
    pub access: Access,
    /// Which of the filesystem's devices it is.
    pub role: DeviceRole,
}

impl OpenFile {
    /// Reading, as the data device.
    pub const READ: OpenFile = OpenFile { access: Access::Read, role: DeviceRole::Data };
    /// Reading and writing, as the data device.
    pub const WRITE: OpenFile = OpenFile { access: Access::Write, role: DeviceRole::Data };

    /// The same access to another device.
    pub fn on(self, role: DeviceRole) -> Self {
        OpenFile { role, ..self }
    }
}

/// A regular file or a block device.
#[derive(Debug)]
pub struct FileDevice {
    file: File,
    path: PathBuf,
    kind: FileKind,
    access: Access,
    role: DeviceRole,
    size: AtomicU64,
    sector_size: SectorSize,
}

/// Zeroes are written in pieces of this size where the system cannot do it by itself.
static ZEROES: [u8; 1 << 17] = [0; 1 << 17];

/// Discards go out in pieces of this size, so that a signal need not wait for the whole device.
const DISCARD_STEP: u64 = 2 << 30;

impl FileDevice {
    /// Opens `path`.
    ///
    /// # Errors
    /// `Io`: the system's, `InvalidInput` if the path is neither a regular file nor a block device, and `ResourceBusy`
    /// for a write to a device that is mounted, in use or locked; the message says by whom.
    pub fn open(path: &Path, how: OpenFile) -> Result<Self> {
        Self::open_file(path, how).map_err(|error| io_error_of_open(how.role, error))
    }

    fn open_file(path: &Path, how: OpenFile) -> io::Result<Self> {
        let kind = Self::kind_of(path, how.access)?;
        let writes = how.access != Access::Read;
        let mut options = OpenOptions::new();
        options.read(true).write(writes).create(how.access == Access::Create && kind == FileKind::Regular);
        if writes && kind == FileKind::Block {
            // On block devices, O_EXCL without O_CREAT is refused by the kernel while somebody else claims the device.
            options.custom_flags(flag_bits(OFlags::EXCL));
        }
        let file = options.open(path).map_err(|error| explain_busy(path, error))?;
        let metadata = file.metadata()?;
        if metadata.file_type().is_block_device() != (kind == FileKind::Block) {
            return Err(io::Error::other("the path was replaced while it was opened"));
        }
        if writes {
            if let Some(reason) = in_use::reason(&file)? {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, reason));
            }
            in_use::lock(&file)?;
        }
        let (size, sector_size) = match kind {
            FileKind::Regular => (metadata.len(), SectorSize::FILE),
            FileKind::Block => (
                // Seeking tells the same size as BLKGETSIZE64, and in 64 bits everywhere.
                seek(&file, SeekFrom::End(0))?,
                SectorSize { logical: ioctl_blksszget(&file)?, physical: ioctl_blkpbszget(&file)? },
            ),
        };
        let size = AtomicU64::new(size);
        Ok(FileDevice { file, path: path.to_owned(), kind, access: how.access, role: how.role, size, sector_size })
    }

    /// Looks before opening: to open a FIFO would wait for its other end, to open a tape would move it.
    fn kind_of(path: &Path, access: Access) -> io::Result<FileKind> {
        let file_type = match std::fs::metadata(path) {
            Ok(metadata) => metadata.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound && access == Access::Create => {
                return Ok(FileKind::Regular);
            }
            Err(error) => return Err(error),
        };
        match file_type {
            kind if kind.is_file() => Ok(FileKind::Regular),
            kind if kind.is_block_device() => Ok(FileKind::Block),
            kind if kind.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory")),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "is neither a regular file nor a block device")),
        }
    }

    /// What stands behind the path.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it was opened for.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The open file itself.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Whether both are the same file or the same block device.
    pub fn is_same_as(&self, other: &FileDevice) -> bool {
        match (self.file.metadata(), other.file.metadata()) {
            (Ok(a), Ok(b)) if self.kind == FileKind::Block => self.kind == other.kind && a.rdev() == b.rdev(),
            (Ok(a), Ok(b)) => self.kind == other.kind && a.dev() == b.dev() && a.ino() == b.ino(),
            _ => false,
        }
    }

    /// Makes a regular file `size` bytes long; what it grows by is a hole.
    ///
    /// # Errors
    /// `Io`: the system's, `Unsupported` on a block device.
    pub fn set_len(&self, size: u64) -> Result<()> {
        if self.kind == FileKind::Block {
            let error = io::Error::new(io::ErrorKind::Unsupported, "a block device has a size of its own");
            return Err(io_error(self.role, size, error));
        }
        self.check_writable(size)?;
        self.file.set_len(size).map_err(|error| io_error(self.role, size, error))?;
        self.size.store(size, Ordering::Release);
        Ok(())
    }

    fn check_writable(&self, offset: u64) -> Result<()> {
        if self.access == Access::Read {
            return Err(io_error(self.role, offset, Errno::ROFS));
        }
        Ok(())
    }

    fn check(&self, offset: u64, len: u64) -> Result<()> {
        check_range(self.role, self.len(), offset, len)
    }

    /// The part of a range that consists of whole logical sectors.
    fn whole_sectors(&self, offset: u64, len: u64) -> Option<ByteRange> {
        let sector = u64::from(self.sector_size.logical);
        let start = offset.checked_next_multiple_of(sector)?;
        let end = (offset + len) / sector * sector;
        (start < end).then(|| ByteRange { start, len: end - start })
    }

    /// Zeroes by a request to the system; `false` if it cannot.
    fn zero_by_system(&self, range: ByteRange) -> io::Result<bool> {
        // A file shall stay sparse: zeroing its range would fill it. A device shall have zeroes, unmapped or not.
        let modes = match self.kind {
            FileKind::Regular => &[FallocateFlags::PUNCH_HOLE][..],
            FileKind::Block => &[FallocateFlags::ZERO_RANGE, FallocateFlags::PUNCH_HOLE],
        };
        for mode in modes {
            match retry(|| fallocate(&self.file, *mode | FallocateFlags::KEEP_SIZE, range.start, range.len)) {
                Ok(()) => return Ok(true),
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::NODEV) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    fn zero_by_writing(&self, range: ByteRange) -> io::Result<()> {
        let mut at = range.start;
        while at < range.end() {
            let piece = length_of(&ZEROES).min(range.end() - at);
            let bytes = usize::try_from(piece).map_or(&ZEROES[..], |piece| &ZEROES[..piece]);
            self.file.write_all_at(bytes, at)?;
            at += piece;
        }
        Ok(())
    }

    /// Writes zeroes where there may be anything else.
    fn zero_allocated(&self, range: ByteRange) -> io::Result<()> {
        let mut at = range.start;
        while let Some(part) = self.find_allocated(at)?.and_then(|found| found.intersection(range)) {
            self.zero_by_writing(part)?;
            at = part.end();
        }
        Ok(())
    }

    /// The first range from `from` on that is no hole.
    fn find_allocated(&self, from: u64) -> io::Result<Option<ByteRange>> {
        let size = self.len();
        if from >= size {
            return Ok(None);
        }
        if self.kind == FileKind::Block {
            return Ok(Some(ByteRange { start: from, len: size - from }));
        }
        let start = match seek(&self.file, SeekFrom::Data(from)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(None),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => from,
            Err(error) => return Err(error.into()),
        };
        // A writer may have cut the file in between: then there is no hole, and the rest counts as allocated.
        let end = seek(&self.file, SeekFrom::Hole(start)).unwrap_or(size).min(size);
        Ok((start < end).then(|| ByteRange { start, len: end - start }))
    }

    fn zero(&self, range: ByteRange) -> io::Result<()> {
        let Some(whole) = self.whole_sectors(range.start, range.len) else { return self.zero_by_writing(range) };
        if !self.zero_by_system(whole)? {
            return self.zero_allocated(range);
        }
        self.zero_by_writing(ByteRange { start: range.start, len: whole.start - range.start })?;
        self.zero_by_writing(ByteRange { start: whole.end(), len: range.end() - whole.end() })
    }

    fn discard_piece(&self, piece: ByteRange) -> io::Result<()> {
        match self.kind {
            FileKind::Block => discard_range(&self.file, piece.start, piece.len),
            FileKind::Regular => {
                let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                Ok(retry(|| fallocate(&self.file, mode, piece.start, piece.len))?)
            }
        }
    }
}

impl Device for FileDevice {
    fn len(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    fn role(&self) -> DeviceRole {
        self.role
    }

    fn sector_size(&self) -> SectorSize {
        self.sector_size
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check(offset, length_of(buf))?;
        self.file.read_exact_at(buf, offset).map_err(|error| io_error(self.role, offset, error))
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.check_writable(offset)?;
        self.check(offset, length_of(buf))?;
        self.file.write_all_at(buf, offset).map_err(|error| io_error(self.role, offset, error))
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
        self.check_writable(offset)?;
        self.check(offset, len)?;
        self.zero(ByteRange { start: offset, len }).map_err(|error| io_error(self.role, offset, error))
    }

    fn flush(&self) -> Result<()> {
        if self.access == Access::Read {
            return Ok(());
        }
        self.file.sync_data().map_err(|error| io_error(self.role, 0, error))
    }

    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        self.check_writable(offset)?;
        self.check(offset, len)?;
        let Some(whole) = self.whole_sectors(offset, len) else { return Ok(true) };
        let mut at = whole.start;
        while at < whole.end() {
            let piece = ByteRange { start: at, len: DISCARD_STEP.min(whole.end() - at) };
            match self.discard_piece(piece) {
                Ok(()) => at = piece.end(),
                Err(error) if cannot_discard(&error) => return Ok(false),
                Err(error) => return Err(io_error(self.role, at, error)),
            }
        }
        Ok(true)
    }

    fn next_allocated(&self, from: u64) -> Result<Option<ByteRange>> {
        self.find_allocated(from).map_err(|error| io_error(self.role, from, error))
    }
}

/// Repeats a call that a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

fn cannot_discard(error: &io::Error) -> bool {
    let codes = [Errno::OPNOTSUPP, Errno::NOTTY, Errno::NOSYS, Errno::NODEV, Errno::INVAL];
    codes.iter().any(|code| error.raw_os_error() == Some(code.raw_os_error()))
}

/// Open flags in the type that the standard library takes.
#[allow(clippy::cast_possible_wrap)] // The flags are small bits; both types have 32.
fn flag_bits(flags: OFlags) -> i32 {
    flags.bits() as i32
}

/// Puts the holder's name in place of a bare "device or resource busy".
fn explain_busy(path: &Path, error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::ResourceBusy {
        return error;
    }
    let reason = File::open(path).and_then(|file| in_use::reason(&file)).ok().flatten();
    let reason = reason.unwrap_or_else(|| "is in use by the system".to_owned());
    io::Error::new(io::ErrorKind::ResourceBusy, reason)
}

/// Of a call that concerns the device as a whole.
fn io_error_of_open(role: DeviceRole, source: io::Error) -> Error {
    Error::io(Place::default().on(role), source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn kind_of_error(result: Result<FileDevice>) -> (io::ErrorKind, String) {
        match result {
            Err(Error::Io { error, .. }) => (error.kind(), error.to_string()),
            other => panic!("expected an I/O error, got {other:?}"),
        }
    }

    #[test]
    fn refuses_what_is_no_file() {
        let folder = tempfile::tempdir().expect("invariant: a temporary folder can be made");
        let open = |path: &Path| FileDevice::open(path, OpenFile::READ);
        assert_eq!(kind_of_error(open(folder.path())).0, io::ErrorKind::IsADirectory);
        assert_eq!(kind_of_error(open(Path::new("/dev/null"))).0, io::ErrorKind::InvalidInput);
        assert_eq!(kind_of_error(open(&folder.path().join("missing"))).0, io::ErrorKind::NotFound);
    }

    #[test]
    fn creates_and_grows() {
        let folder = tempfile::tempdir().expect("invariant: a temporary folder can be made");
        let path = folder.path().join("new");
        let how = OpenFile { access: Access::Create, role: DeviceRole::Log };
        let device = FileDevice::open(&path, how).expect("invariant: the file can be made");
        assert!(device.is_empty());
        device.set_len(1 << 40).expect("invariant: a sparse file can be large");
        device.write_at(1 << 39, b"middle").expect("invariant: writable");
        device.write_zeroes(0, 1 << 40).expect("invariant: zeroing a sparse file is quick");
        let mut buf = [1; 6];
        device.read_at(1 << 39, &mut buf).expect("invariant: readable");
        assert_eq!(buf, [0; 6]);
        let error = device.read_at(1 << 40, &mut buf).expect_err("behind the end");
        assert!(error.to_string().starts_with("log device"), "{error}");
    }

    #[test]
    fn a_second_writer_is_refused_by_name() {
        let file = tempfile::NamedTempFile::new().expect("invariant: a temporary file can be made");
        let first = FileDevice::open(file.path(), OpenFile::WRITE).expect("invariant: nobody else has it");
        let (kind, text) = kind_of_error(FileDevice::open(file.path(), OpenFile::WRITE));
        assert_eq!(kind, io::ErrorKind::ResourceBusy);
        assert!(text.contains("locked by"), "{text}");
        FileDevice::open(file.path(), OpenFile::READ).expect("readers are let in");
        drop(first);
        FileDevice::open(file.path(), OpenFile::WRITE).expect("the lock ends with its holder");
    }

    #[test]
    fn a_reader_cannot_write() {
        let file = tempfile::NamedTempFile::new().expect("invariant: a temporary file can be made");
        let device = FileDevice::open(file.path(), OpenFile::READ).expect("invariant: readable");
        assert!(device.write_at(0, &[]).is_err());
        assert!(device.write_zeroes(0, 0).is_err());
        assert!(device.discard(0, 0).is_err());
        assert!(device.set_len(5).is_err());
    }
}
