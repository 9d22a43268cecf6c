//! Checkpoints and unmount records written to the log.

use std::sync::Arc;

use zerocopy::IntoBytes;
use zerocopy::byteorder::{ByteOrder, U32};

use super::frame::{Frame, unmount_operation};
use super::options::LogWriterOptions;
use super::position::LogPosition;
use super::run::{RecordShape, Run};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::geometry::limits::BASIC_BLOCK;
use crate::geometry::{Geometry, Lsn};
use crate::journal::checkpoint::{CheckpointItem, FormatItem, ItemTotals, OP_HEADER, Regions, TakenCheckpoint};
use crate::journal::parse::in_order;
use crate::journal::{LogArea, WriterLayout};
use crate::ondisk::OnDisk;
use crate::ondisk::log_record::{
    CLIENT_TRANSACTION, MAX_ICLOGS, RawLogOpHeader, RawTransHeader, TRANS_CHECKPOINT, TRANS_HEADER_MAGIC, op,
};

/// Bytes that the transaction header and the operations of start and header take.
const LEAD: u64 = (2 * OP_HEADER + size_of::<RawTransHeader<crate::ondisk::LittleEndian>>()) as u64;

/// A checkpoint that is in the log, durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenCheckpoint {
    /// Its number.
    pub sequence: u64,
    /// The record in which it begins: what its items wait for in the order of write-back, and what is stamped on metadata.
    pub start: Lsn,
    /// The record with its commit.
    pub commit: Lsn,
    /// Bytes of log that it took, with headers and what fills blocks and stripe units.
    pub bytes: u64,
    /// Records that it took.
    pub records: u32,
    /// What it holds, by type.
    pub totals: ItemTotals,
}

/// What a writer wrote since it was opened, unmount records left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStatistics {
    /// Checkpoints.
    pub checkpoints: u64,
    /// Records.
    pub records: u64,
    /// Bytes of log that they took, with headers and what fills blocks and stripe units.
    pub bytes: u64,
    /// What the checkpoints held, by type.
    pub totals: ItemTotals,
}

impl LogStatistics {
    /// What was written since it was like `before`.
    #[must_use]
    pub fn since(&self, before: &LogStatistics) -> Self {
        LogStatistics {
            checkpoints: self.checkpoints - before.checkpoints,
            records: self.records - before.records,
            bytes: self.bytes - before.bytes,
            totals: self.totals.since(&before.totals),
        }
    }

    fn count(&mut self, written: &WrittenCheckpoint) {
        self.checkpoints += 1;
        self.records += u64::from(written.records);
        self.bytes += written.bytes;
        self.totals.merge(&written.totals);
    }
}

/// Writes to the log.
pub struct LogWriter {
    log: Arc<dyn Device>,
    /// Devices whose contents must be durable before the log speaks of them: all but the one with the log.
    others: Vec<Arc<dyn Device>>,
    shape: RecordShape,
    layout: WriterLayout,
    position: LogPosition,
    /// The tail that the last record states.
    stated_tail: Option<Lsn>,
    statistics: LogStatistics,
    memory: Vec<u8>,
    regions: Regions,
}

impl LogWriter {
    /// Opens the log for writing from `position` on; nothing is written yet.
    ///
    /// `log` is the device with the log: the data device if it is internal. `others` are the filesystem's other devices, if it
    /// has any: they are flushed before each checkpoint.
    ///
    /// # Errors
    /// `Usage` when the log does not take such records; `Corrupt` when it does not lie on its device.
    pub fn open(
        log: Arc<dyn Device>,
        others: Vec<Arc<dyn Device>>,
        geometry: &Geometry,
        position: LogPosition,
        options: LogWriterOptions,
    ) -> Result<Self> {
        options.check(&geometry.log)?;
        let area = LogArea::new(&*log, geometry)?;
        if position.block >= area.blocks() || position.cycle == 0 {
            return Err(Error::Internal(format!("a log of {} blocks cannot go on at {position:?}", area.blocks())));
        }
        let unit = if geometry.log.version >= 2 && geometry.log.stripe_unit > 1 {
            geometry.log.stripe_unit
        } else {
            geometry.log.sectsize.max(BASIC_BLOCK)
        };
        let shape = RecordShape {
            frame: Frame {
                version: geometry.log.version,
                uuid: geometry.uuid,
                format: options.layout.format(),
                size: options.record_size,
            },
            reach: options.layout.crc_reach(),
            // a full record must not become longer than its headers have room for
            size: (options.record_size - options.record_size % unit) as usize,
            unit: unit as usize,
            start: area.start().0 * u64::from(BASIC_BLOCK),
            log_blocks: area.blocks(),
        };
        let layout = options.layout;
        let regions = Regions::new(layout);
        let statistics = LogStatistics::default();
        let memory = Vec::new();
        Ok(LogWriter { log, others, shape, layout, position, stated_tail: None, statistics, memory, regions })
    }

    /// How items are laid out.
    pub fn layout(&self) -> WriterLayout {
        self.layout
    }

    /// What was written so far.
    pub fn statistics(&self) -> &LogStatistics {
        &self.statistics
    }

    /// LSN that the next record will have. It is the tail of a log that holds nothing that is not in place.
    pub fn head(&self) -> Lsn {
        self.position.lsn()
    }

    /// Size of the log in bytes.
    pub fn size(&self) -> u64 {
        u64::from(self.shape.log_blocks) * u64::from(BASIC_BLOCK)
    }

    /// Bytes that can be written before the head comes to `tail`, the oldest record that is still needed; the head itself
    /// when none is.
    pub fn free_bytes(&self, tail: Lsn) -> u64 {
        let (head, blocks) = (self.position, self.shape.log_blocks);
        let free = if tail.cycle() == head.cycle {
            blocks.saturating_sub(head.block.saturating_sub(tail.block()))
        } else {
            tail.block().saturating_sub(head.block)
        };
        // a log that is full looks like one that is empty
        u64::from(free.saturating_sub(1)) * u64::from(BASIC_BLOCK)
    }

    /// Whether no record states this tail: a replay would then begin earlier than it must. Linux commits the superblock once
    /// more in that case before it leaves the log alone (`xfs_log_cover`).
    pub fn needs_cover(&self, tail: Lsn) -> bool {
        self.stated_tail != Some(tail)
    }

    /// Bytes of log that a checkpoint takes at most beyond `bytes` of items, as [`Cil::used`](crate::journal::Cil::used) counts
    /// them: headers of records and of the transaction, operations that split regions need, and what fills blocks or stripe
    /// units (`xlog_calc_unit_res`).
    pub fn checkpoint_overhead(&self, bytes: u64) -> u64 {
        let (header, op) = (self.shape.header_len() as u64, OP_HEADER as u64);
        // of each record, an operation's header is taken by a region that goes on, or is left empty
        let usable = self.shape.capacity() as u64 - op;
        let records = bytes.saturating_add(LEAD).div_ceil(usable);
        // the last record of the items, and the one with the commit alone, are filled up
        LEAD + records * (op + header) + op + header + 2 * self.shape.unit as u64
    }

    /// Writes a checkpoint, and makes it durable. `tail` is the oldest record that is still needed: the first of the oldest
    /// checkpoint that has items which are not in place, or [`LogWriter::head`] when there is none.
    ///
    /// # Errors
    /// `Io`: the checkpoint may be in the log or not, and the log must not be written to any more. `Internal`, before anything
    /// is written when the log has no room, and before the commit when items are not of the size that they announced. What
    /// formatting an item gives.
    pub fn write_checkpoint<F: FormatItem + ?Sized>(
        &mut self,
        checkpoint: &TakenCheckpoint,
        format: &F,
        tail: Lsn,
    ) -> Result<WrittenCheckpoint> {
        let needed = checkpoint.bytes() + self.checkpoint_overhead(checkpoint.bytes());
        if needed > self.free_bytes(tail) {
            return Err(Error::Internal(format!("a checkpoint of {needed} bytes does not fit the log")));
        }
        self.flush_all()?;
        let run = Run::new(self.shape, self.position, tail, std::mem::take(&mut self.memory));
        let start = self.position.lsn();
        let mut operations = Operations { log: &*self.log, run, tid: tid_at(start) };
        operations.run.begin();
        operations.put_lead(self.layout, checkpoint.regions())?;
        for (item, size) in &checkpoint.items {
            self.regions.clear();
            match item {
                CheckpointItem::Relogged(key) => format.format(key, &mut self.regions)?,
                CheckpointItem::Formatted { regions, .. } => regions.iter().for_each(|bytes| self.regions.push(bytes)),
            }
            if self.regions.size() != *size {
                let found = self.regions.size();
                return Err(Error::Internal(format!("{item:?} has {found:?} instead of {size:?}")));
            }
            for region in self.regions.operations() {
                operations.put(region)?;
            }
        }
        let commit = operations.commit()?;
        let run = operations.run;
        let written = WrittenCheckpoint {
            sequence: checkpoint.sequence,
            start,
            commit,
            bytes: run.written(),
            records: run.records(),
            totals: checkpoint.totals,
        };
        self.end(run, tail);
        self.statistics.count(&written);
        Ok(written)
    }

    /// Says that the filesystem was unmounted: a clean log ends with this. Everything must be in place.
    ///
    /// # Errors
    /// `Io`; `Internal` when the log has no room.
    pub fn write_unmount(&mut self, tail: Lsn) -> Result<Lsn> {
        if (self.shape.header_len() + self.shape.unit) as u64 > self.free_bytes(tail) {
            return Err(Error::Internal("the log has no room for an unmount record".to_owned()));
        }
        self.flush_all()?;
        let mut run = Run::new(self.shape, self.position, tail, std::mem::take(&mut self.memory));
        let lsn = self.position.lsn();
        run.begin();
        run.put(&in_order!(self.layout.order, O => unmount_operation::<O>(tid_at(lsn))), &[]);
        run.close()?;
        run.write(&*self.log)?;
        self.log.flush()?;
        self.end(run, tail);
        Ok(lsn)
    }

    /// Makes durable what was written to any device, so that the log may speak of it, or overwrite what spoke of it.
    fn flush_all(&self) -> Result<()> {
        self.others.iter().try_for_each(|device| device.flush())?;
        self.log.flush()
    }

    fn end(&mut self, run: Run, tail: Lsn) {
        self.position = run.next();
        self.stated_tail = Some(tail);
        self.memory = run.into_memory();
    }
}

/// The number of the transaction that begins at `lsn`: no two between head and tail have the same.
fn tid_at(lsn: Lsn) -> u32 {
    // an odd constant, far from the numbers of blocks
    lsn.cycle().wrapping_mul(0x9e37_79b1).wrapping_add(lsn.block())
}

/// The operations of a transaction on their way into records.
struct Operations<'a> {
    log: &'a dyn Device,
    run: Run,
    tid: u32,
}

impl Operations<'_> {
    fn header(&self, len: usize, flags: u8) -> RawLogOpHeader {
        let len = u32::try_from(len).expect("invariant: a record is of 256 KiB at most");
        RawLogOpHeader { tid: self.tid.into(), len: len.into(), clientid: CLIENT_TRANSACTION, flags, res2: [0; 2] }
    }

    /// The operations with which a transaction begins; there is room for them.
    fn put_lead(&mut self, layout: WriterLayout, regions: u64) -> Result<()> {
        let regions = u32::try_from(regions).map_err(|_| Error::Internal("too many regions".to_owned()))?;
        self.run.put(self.header(0, op::START_TRANS).as_bytes(), &[]);
        let header = in_order!(layout.order, O => transaction_header::<O>(self.tid, regions));
        self.run.put(self.header(header.len(), 0).as_bytes(), &header);
        Ok(())
    }

    /// Adds a region, which begins with the header of its operation, in as many pieces as the ends of records make of it
    /// (`xlog_write_partial`).
    fn put(&mut self, region: &[u8]) -> Result<()> {
        let mut rest = region.get(OP_HEADER..).unwrap_or_default();
        // a piece without contents would be taken for no region at all
        if self.run.room() <= OP_HEADER {
            self.next_record()?;
        }
        let mut flags = 0;
        loop {
            let (now, later) = rest.split_at(rest.len().min(self.run.room() - OP_HEADER));
            let more = match (flags, later.is_empty()) {
                (_, false) => op::CONTINUE_TRANS,
                (op::WAS_CONT_TRANS, true) => op::END_TRANS,
                (_, true) => 0,
            };
            self.run.put(self.header(now.len(), flags | more).as_bytes(), now);
            if later.is_empty() {
                return Ok(());
            }
            (flags, rest) = (op::WAS_CONT_TRANS, later);
            self.next_record()?;
        }
    }

    /// Completes the record, and begins the next. As many records as may be on their way at once are written together.
    fn next_record(&mut self) -> Result<()> {
        self.run.close()?;
        if self.run.complete() >= MAX_ICLOGS {
            self.run.write(self.log)?;
            self.log.flush()?;
        }
        self.run.begin();
        Ok(())
    }

    /// Commits the transaction: everything before the record with the commit is durable when that is written. Gives the LSN
    /// of that record.
    fn commit(&mut self) -> Result<Lsn> {
        // Linux begins no operation where two headers do not fit
        if self.run.room() < 2 * OP_HEADER {
            self.next_record()?;
        }
        self.run.put(self.header(0, op::COMMIT_TRANS).as_bytes(), &[]);
        if self.run.complete() > 0 {
            self.run.write(self.log)?;
            self.log.flush()?;
        }
        let commit = self.run.lsn();
        self.run.close()?;
        self.run.write(self.log)?;
        self.log.flush()?;
        Ok(commit)
    }
}

fn transaction_header<O: ByteOrder>(tid: u32, regions: u32) -> Vec<u8> {
    let header = RawTransHeader::<O> {
        magic: U32::new(TRANS_HEADER_MAGIC),
        type_: U32::new(TRANS_CHECKPOINT),
        tid: U32::new(tid),
        num_items: U32::new(regions),
    };
    header.as_bytes().to_vec()
}

const _: () = assert!(RawLogOpHeader::SIZE == OP_HEADER);
