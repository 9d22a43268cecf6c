//! Records in the making.

use zerocopy::IntoBytes;

use super::frame::{Frame, seal};
use super::position::LogPosition;
use crate::device::Device;
use crate::error::Result;
use crate::geometry::Lsn;
use crate::ondisk::log_record::{BBSIZE, CrcReach, header_blocks};

/// How records of a log are laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordShape {
    pub frame: Frame,
    pub reach: CrcReach,
    /// Bytes of a full record, with headers: a multiple of the unit.
    pub size: usize,
    /// Records are filled up to a multiple of so many bytes: the stripe unit, or a sector.
    pub unit: usize,
    /// Where the log begins on its device, in bytes.
    pub start: u64,
    /// Blocks of the log.
    pub log_blocks: u32,
}

impl RecordShape {
    /// Bytes of the headers of each record.
    pub fn header_len(&self) -> usize {
        header_blocks(self.frame.version, self.frame.size) as usize * BBSIZE
    }

    /// Bytes of operations in a full record.
    pub fn capacity(&self) -> usize {
        self.size - self.header_len()
    }
}

/// The record that is being filled.
#[derive(Debug)]
struct Open {
    position: LogPosition,
    /// Where its headers begin in the buffer.
    start: usize,
    ops: u32,
}

/// Some records that follow each other: those that are complete, and one that is being filled. They are written at once.
#[derive(Debug)]
pub(super) struct Run {
    shape: RecordShape,
    tail: Lsn,
    /// Where the first record of the buffer goes.
    first: LogPosition,
    bytes: Vec<u8>,
    open: Option<Open>,
    /// Complete records in the buffer.
    complete: u32,
    /// Where the next record goes, once none is being filled.
    next: LogPosition,
    /// Bytes of all complete records, also of those that were written before.
    written: u64,
    records: u32,
}

impl Run {
    /// No records yet: the first one goes to `position`. `bytes` is memory to be used.
    pub fn new(shape: RecordShape, position: LogPosition, tail: Lsn, mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Run { shape, tail, first: position, bytes, open: None, complete: 0, next: position, written: 0, records: 0 }
    }

    /// Bytes of operations that the record being filled has room for; 0 if there is none.
    pub fn room(&self) -> usize {
        match &self.open {
            Some(open) => self.shape.size - (self.bytes.len() - open.start),
            None => 0,
        }
    }

    /// LSN of the record that is being filled.
    pub fn lsn(&self) -> Lsn {
        self.open.as_ref().map_or(self.next, |open| open.position).lsn()
    }

    /// Where the next record goes.
    pub fn next(&self) -> LogPosition {
        self.next
    }

    /// Bytes of the log that the records took.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// How many records there were.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Complete records that are not written.
    pub fn complete(&self) -> u32 {
        self.complete
    }

    /// Begins a record; the one before it must be complete.
    pub fn begin(&mut self) {
        let start = self.bytes.len();
        self.bytes.resize(start + self.shape.header_len(), 0);
        self.open = Some(Open { position: self.next, start, ops: 0 });
    }

    /// Adds an operation, or the part of one, for which there is room; `header` and `contents` follow each other.
    pub fn put(&mut self, header: &[u8], contents: &[u8]) {
        let open = self.open.as_mut().expect("invariant: a record was begun");
        open.ops += 1;
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(contents);
    }

    /// Completes the record that is being filled.
    ///
    /// # Errors
    /// `Internal`.
    pub fn close(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let shape = &self.shape;
        let header_len = shape.header_len();
        let filled = self.bytes.len() - open.start;
        let whole = filled.next_multiple_of(shape.unit);
        self.bytes.resize(open.start + whole, 0);
        // version 1 counts what is there, version 2 what is written
        let len = if shape.frame.version >= 2 { whole } else { filled } - header_len;
        let record = &mut self.bytes[open.start..];
        let position = open.position;
        let stated = u32::try_from(len).expect("invariant: a record is of 256 KiB and a stripe unit at most");
        let header = shape.frame.header(position.lsn(), self.tail, position.previous, stated, open.ops);
        record[..BBSIZE].copy_from_slice(header.as_bytes());
        seal(record, header_len, len, (shape.log_blocks - position.block) as usize, shape.reach)?;
        let blocks =
            u32::try_from(whole / BBSIZE).expect("invariant: a record is of 256 KiB and a stripe unit at most");
        self.next = position.behind(blocks, shape.log_blocks);
        self.written += whole as u64;
        self.records += 1;
        self.complete += 1;
        Ok(())
    }

    /// Writes the complete records.
    ///
    /// # Errors
    /// `Io`.
    pub fn write(&mut self, device: &dyn Device) -> Result<()> {
        let end = self.open.as_ref().map_or(self.bytes.len(), |open| open.start);
        let at = u64::from(self.first.block) * BBSIZE as u64;
        let until_end = (self.shape.log_blocks - self.first.block) as usize * BBSIZE;
        let (first, second) = self.bytes[..end].split_at(until_end.min(end));
        for (offset, part) in [(self.shape.start + at, first), (self.shape.start, second)] {
            if !part.is_empty() {
                device.write_at(offset, part)?;
            }
        }
        self.bytes.drain(..end);
        self.complete = 0;
        self.first = match &mut self.open {
            Some(open) => {
                open.start = 0;
                open.position
            }
            None => self.next,
        };
        Ok(())
    }

    /// Gives the memory back.
    pub fn into_memory(self) -> Vec<u8> {
        self.bytes
    }
}
