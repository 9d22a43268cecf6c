//! Old contents go to a file before they are overwritten, and can be put back from it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;
use zerocopy::{FromZeros, IntoBytes};

use super::contract::{ByteRange, Device, SectorSize, check_range, io_error, length_of};
use super::extents::Extents;
use super::random::random_uuid;
use crate::error::{DeviceRole, Result};
use crate::ondisk::crc;
use crate::ondisk::undo::{RawUndoHeader, RawUndoRecord};

/// Old contents are kept in units of this many bytes.
const UNIT: u64 = 4096;

/// A device that keeps what it overwrites in an undo file.
///
/// The old contents are durable before the first byte of the change goes out, so that the file puts back whatever
/// happened until the moment at which it ends.
pub struct UndoDevice<D> {
    inner: D,
    log: Mutex<UndoLog>,
}

impl<D: Device> UndoDevice<D> {
    /// Begins a new undo file at `path` for changes to `inner`; `fs_uuid` says what filesystem it is, where it is known.
    ///
    /// # Errors
    /// `Io`, also if there is a file already.
    pub fn create(inner: D, path: &Path, fs_uuid: Option<Uuid>) -> Result<Self> {
        let log = UndoLog::create(path, &inner, fs_uuid).map_err(|error| io_error(inner.role(), 0, error))?;
        Ok(UndoDevice { inner, log: Mutex::new(log) })
    }

    /// Keeps the old contents of many ranges with a single wait for the disk; later writes there need none.
    ///
    /// # Errors
    /// `Io`: then nothing there may be written.
    pub fn keep(&self, ranges: &[ByteRange]) -> Result<()> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let units = ranges.iter().map(|range| self.whole_units(*range));
        units.filter(|range| range.len > 0).try_for_each(|range| log.keep(&self.inner, range))?;
        log.make_durable().map_err(|error| io_error(self.inner.role(), 0, error))
    }

    /// Makes the changes durable and notes in the undo file that they are complete.
    ///
    /// # Errors
    /// `Io`.
    pub fn finish(&self) -> Result<()> {
        self.inner.flush()?;
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let end = ByteRange { start: 0, len: 0 };
        log.append(RawUndoRecord::FINISHED, end, &[])
            .and_then(|()| log.file.sync_data())
            .map_err(|error| io_error(self.inner.role(), 0, error))
    }

    /// The units that a range touches, as far as the device reaches.
    fn whole_units(&self, range: ByteRange) -> ByteRange {
        let start = range.start / UNIT * UNIT;
        let end = range.end().div_ceil(UNIT).saturating_mul(UNIT).min(self.inner.len());
        ByteRange { start, len: end.saturating_sub(start) }
    }

    fn before_change(&self, offset: u64, len: u64) -> Result<()> {
        check_range(self.inner.role(), self.inner.len(), offset, len)?;
        if len == 0 { Ok(()) } else { self.keep(&[ByteRange { start: offset, len }]) }
    }
}

impl<D: Device> Device for UndoDevice<D> {
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
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.before_change(offset, length_of(buf))?;
        self.inner.write_at(offset, buf)
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
        self.before_change(offset, len)?;
        self.inner.write_zeroes(offset, len)
    }

    fn flush(&self) -> Result<()> {
        self.inner.flush()
    }

    /// Does nothing: to keep what is of no use would cost more than discarding it gains.
    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        check_range(self.inner.role(), self.inner.len(), offset, len)?;
        Ok(false)
    }

    fn next_allocated(&self, from: u64) -> Result<Option<ByteRange>> {
        self.inner.next_allocated(from)
    }
}

/// The undo file while it grows.
struct UndoLog {
    file: File,
    uuid: [u8; 16],
    /// Where the next record goes. It moves only behind a record that was written whole.
    end: u64,
    sequence: u64,
    kept: Extents,
    /// Ranges that are in the file, but perhaps not on its disk.
    pending: Vec<ByteRange>,
    buffer: Vec<u8>,
}

impl UndoLog {
    fn create(path: &Path, device: &dyn Device, fs_uuid: Option<Uuid>) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        let mut header = RawUndoHeader::new_zeroed();
        header.magic = RawUndoHeader::MAGIC;
        header.version = RawUndoHeader::VERSION.into();
        let uuid = random_uuid().into_bytes();
        header.uuid = uuid;
        header.fs_uuid = fs_uuid.unwrap_or_default().into_bytes();
        header.device_size = device.len().into();
        header.role = role_number(device.role()).into();
        crc::stamp(header.as_mut_bytes(), RawUndoHeader::CRC_OFFSET);
        file.write_all_at(header.as_bytes(), 0)?;
        file.sync_all()?;
        // A file is only there after a crash if its folder says so.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
        let (kept, pending, buffer) = (Extents::default(), Vec::new(), Vec::new());
        Ok(UndoLog { file, uuid, end: RawUndoRecord::UNIT, sequence: 0, kept, pending, buffer })
    }

    /// Appends what the file does not have yet of a range of units.
    fn keep(&mut self, device: &dyn Device, range: ByteRange) -> Result<()> {
        let missing: Vec<ByteRange> = self.kept.split(range).filter(|(_, kept)| !kept).map(|(part, _)| part).collect();
        for part in missing {
            self.keep_part(device, part)?;
            self.pending.push(part);
        }
        Ok(())
    }

    fn keep_part(&mut self, device: &dyn Device, part: ByteRange) -> Result<()> {
        let mut at = part.start;
        while at < part.end() {
            let rest = ByteRange { start: at, len: part.end() - at };
            let data = device.next_allocated(at)?.and_then(|found| found.intersection(rest));
            let data = data.unwrap_or(ByteRange { start: rest.end(), len: 0 });
            let zeroes = ByteRange { start: at, len: data.start - at };
            if zeroes.len > 0 {
                self.append(RawUndoRecord::ZEROES, zeroes, &[]).map_err(|error| io_error(device.role(), at, error))?;
            }
            self.keep_data(device, data)?;
            at = data.end();
        }
        Ok(())
    }

    fn keep_data(&mut self, device: &dyn Device, data: ByteRange) -> Result<()> {
        let mut at = data.start;
        while at < data.end() {
            let len = RawUndoRecord::MAX_DATA.min(data.end() - at);
            let mut bytes = std::mem::take(&mut self.buffer);
            bytes.resize(usize::try_from(len).expect("invariant: a record is small"), 0);
            device.read_at(at, &mut bytes)?;
            self.append(RawUndoRecord::DATA, ByteRange { start: at, len }, &bytes)
                .map_err(|error| io_error(device.role(), at, error))?;
            self.buffer = bytes;
            at += len;
        }
        Ok(())
    }

    fn append(&mut self, kind: u32, range: ByteRange, data: &[u8]) -> io::Result<()> {
        let mut record = RawUndoRecord::new_zeroed();
        record.magic = RawUndoRecord::MAGIC.into();
        record.uuid = self.uuid;
        record.sequence = self.sequence.into();
        record.kind = kind.into();
        record.data_crc = crc32c::crc32c(data).into();
        record.offset = range.start.into();
        record.len = range.len.into();
        crc::stamp(record.as_mut_bytes(), RawUndoRecord::CRC_OFFSET);
        self.file.write_all_at(record.as_bytes(), self.end)?;
        self.file.write_all_at(data, self.end + RawUndoRecord::UNIT)?;
        // The padding is a hole, or bytes behind the end of the file that the next record lies behind.
        self.end += RawUndoRecord::UNIT + length_of(data).next_multiple_of(RawUndoRecord::UNIT);
        self.sequence += 1;
        Ok(())
    }

    /// Only what the disk has counts as kept: a range whose record may be lost must be kept again.
    fn make_durable(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return Ok(());
        }
        self.file.sync_data()?;
        pending.into_iter().for_each(|range| self.kept.insert(range));
        Ok(())
    }
}

/// The role as the undo file's header has it.
pub(super) fn role_number(role: DeviceRole) -> u32 {
    match role {
        DeviceRole::Data => 0,
        DeviceRole::Log => 1,
        DeviceRole::Realtime => 2,
    }
}
