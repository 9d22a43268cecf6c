//! Operations put together to checkpoints (Linux `xfs_log_recover.c`, `xlog_recover_process_ophdr` and what it calls).

use std::collections::HashMap;
use std::fmt;

use super::checkpoint::{Checkpoint, ItemSpan, TransactionHeader};
use super::order::{Order, in_order};
use super::records::JournalRecord;
use crate::error::{Check, Rule};
use crate::geometry::limits::BASIC_BLOCK;
use crate::journal::area::LogArea;
use crate::ondisk::log_item::item_head;
use crate::ondisk::log_record::{CLIENT_LOG, CLIENT_TRANSACTION, LogOp, RawTransHeader, TRANS_HEADER_MAGIC, op};
use crate::ondisk::{LittleEndian, OnDisk};
use zerocopy::byteorder::ByteOrder;

/// Regions that an item has at most: a buffer of 64 KiB of which every other chunk changed, and its format
/// (`XLOG_MAX_REGIONS_IN_ITEM`).
const MAX_REGIONS: u16 = 257;
/// Transactions that are open at once at most. Kernels have a handful.
const MAX_OPEN: usize = 1 << 12;
/// Bytes that are held in a log of any size.
const SMALLEST_LIMIT: u64 = 1 << 20;
/// Bytes of a transaction header.
const HEADER_SIZE: usize = size_of::<RawTransHeader<LittleEndian>>();

/// Something in the journal that cannot be understood, and would end a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Block of the record in which it is.
    pub block: u32,
    /// The transaction, where one is concerned.
    pub tid: Option<u32>,
    /// Which check it fails.
    pub check: Check,
    /// What was found.
    pub detail: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record at block {}", self.block)?;
        if let Some(tid) = self.tid {
            write!(f, ", transaction {tid:#x}")?;
        }
        write!(f, ": {}", self.check)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, " ({})", self.detail) }
    }
}

/// What an operation was.
#[derive(Debug)]
pub enum OpMeaning {
    /// A transaction begins.
    Start,
    /// The transaction header, or a part of it.
    Header,
    /// A region of an item, or a part of one.
    Region {
        /// Which item of the checkpoint.
        item: usize,
        /// Which region of the item.
        region: usize,
        /// Whether the region began in an operation before.
        continued: bool,
        /// Whether the region goes on in an operation to come.
        goes_on: bool,
        /// Whether this was the last that the item lacked.
        completes: bool,
    },
    /// No contents, where some might be.
    Empty,
    /// The transaction is complete.
    Commit(Box<Checkpoint>),
    /// The filesystem was unmounted.
    Unmount,
    /// Belongs to a transaction of which the beginning was not seen: it was before the tail.
    Orphan,
}

/// Puts operations together to checkpoints, in the order in which they stand in the log.
#[derive(Debug)]
pub struct Assembler {
    open: HashMap<u32, Checkpoint>,
    limit: usize,
    held: usize,
}

impl Assembler {
    /// An assembler that holds up to `limit` bytes of what is not committed yet, and refuses transactions that want more.
    pub fn new(limit: usize) -> Self {
        Assembler { open: HashMap::new(), limit: limit.min(u32::MAX as usize), held: 0 }
    }

    /// An assembler for the transactions of a log. It holds up to half of the log, which no kernel comes near: before 5.8
    /// they let a checkpoint grow to an eighth of the log and a little more, later ones to a quarter, but not beyond 64 MiB.
    pub fn of_log(area: &LogArea<'_>) -> Self {
        let half = u64::from(area.blocks()) * u64::from(BASIC_BLOCK) / 2;
        Self::new(usize::try_from(half.max(SMALLEST_LIMIT)).unwrap_or(usize::MAX))
    }

    /// A transaction that is not committed yet.
    pub fn open(&self, tid: u32) -> Option<&Checkpoint> {
        self.open.get(&tid)
    }

    /// Something is missing between the operations so far and those to come: what is open is incomplete.
    pub fn interrupt(&mut self) {
        self.open.values_mut().for_each(|checkpoint| checkpoint.damaged = true);
    }

    /// The transactions that were never committed, in the order in which they began. A replay ignores them.
    pub fn into_open(self) -> Vec<Checkpoint> {
        let mut open: Vec<Checkpoint> = self.open.into_values().collect();
        open.sort_by_key(|checkpoint| (checkpoint.lsn, checkpoint.tid));
        open
    }

    /// Takes the next operation.
    ///
    /// # Errors
    /// What is wrong with it. The transaction that it belongs to is then marked as damaged, or dropped when nothing more can
    /// be made of it.
    pub fn feed(&mut self, record: &JournalRecord, op: &LogOp<'_>) -> Result<OpMeaning, Fault> {
        let tid = op.header.tid.get();
        let fault = |check, detail| Fault { block: record.block, tid: Some(tid), check, detail };
        if ![CLIENT_TRANSACTION, CLIENT_LOG].contains(&op.header.clientid) {
            let check = Check::new("log_op_header", "clientid", Rule::Range);
            return Err(fault(check, format!("{:#x}", op.header.clientid)));
        }
        let flags = op.header.flags;
        if !self.open.contains_key(&tid) || flags & op::START_TRANS != 0 {
            return self.begin(record, tid, flags).map_err(|(check, detail)| fault(check, detail));
        }
        let result = self.add(record, tid, flags, op.contents);
        result.map_err(|(check, detail)| fault(check, detail))
    }

    /// An operation of a transaction that is not open, or that begins one.
    fn begin(&mut self, record: &JournalRecord, tid: u32, flags: u8) -> Result<OpMeaning, (Check, String)> {
        if flags & op::START_TRANS == 0 {
            return Ok(if flags & op::UNMOUNT_TRANS != 0 { OpMeaning::Unmount } else { OpMeaning::Orphan });
        }
        let replaced = self.remove(tid);
        if self.open.len() >= MAX_OPEN {
            return Err((Check::new("log_op_header", "tid", Rule::Count), "too many open transactions".to_owned()));
        }
        let order = Order::of_format(record.header.fmt.get()).unwrap_or(Order::Little);
        let mut checkpoint = Checkpoint::new(tid, order, record.lsn());
        (checkpoint.records, checkpoint.ops, checkpoint.last_record) = (1, 1, record.lsn());
        self.open.insert(tid, checkpoint);
        match replaced {
            None => Ok(OpMeaning::Start),
            Some(_) => Err((Check::new("log_op_header", "flags", Rule::Flags), "it begins a second time".to_owned())),
        }
    }

    fn remove(&mut self, tid: u32) -> Option<Checkpoint> {
        let checkpoint = self.open.remove(&tid)?;
        self.held -= checkpoint.held();
        Some(checkpoint)
    }

    /// An operation of an open transaction.
    fn add(
        &mut self,
        record: &JournalRecord,
        tid: u32,
        flags: u8,
        contents: &[u8],
    ) -> Result<OpMeaning, (Check, String)> {
        let over = self.held.saturating_add(contents.len()) > self.limit;
        let checkpoint = self.open.get_mut(&tid).expect("invariant: the caller found it");
        checkpoint.ops = checkpoint.ops.saturating_add(1);
        if checkpoint.last_record != record.lsn() {
            checkpoint.last_record = record.lsn();
            checkpoint.records += 1;
        }
        let mut flags = flags & !op::END_TRANS;
        let goes_on = flags & op::CONTINUE_TRANS != 0;
        if flags & op::WAS_CONT_TRANS != 0 {
            flags &= !op::CONTINUE_TRANS;
        }
        let before = checkpoint.held();
        let result = match flags {
            op::COMMIT_TRANS => {
                checkpoint.commit_lsn = Some(record.lsn());
                let checkpoint = self.remove(tid).expect("invariant: it was found just before");
                return Ok(OpMeaning::Commit(Box::new(checkpoint)));
            }
            op::UNMOUNT_TRANS => {
                self.remove(tid);
                return Ok(OpMeaning::Unmount);
            }
            0 | op::CONTINUE_TRANS | op::WAS_CONT_TRANS if over => {
                self.remove(tid);
                let detail = "larger than any checkpoint of this log; it is dropped".to_owned();
                return Err((Check::new("log_op_header", "len", Rule::Count), detail));
            }
            0 | op::CONTINUE_TRANS => checkpoint.begin_region(contents, goes_on),
            op::WAS_CONT_TRANS => checkpoint.continue_region(contents, goes_on),
            _ => Err((Check::new("log_op_header", "flags", Rule::Flags), format!("{flags:#x}"))),
        };
        self.held += checkpoint.held() - before;
        checkpoint.damaged |= result.is_err();
        result
    }
}

impl Checkpoint {
    /// A new region, or the transaction header.
    fn begin_region(&mut self, contents: &[u8], goes_on: bool) -> Result<OpMeaning, (Check, String)> {
        if contents.is_empty() {
            return Ok(OpMeaning::Empty);
        }
        if self.header.is_none() {
            return self.add_header(contents);
        }
        if self.items().next_back().is_none_or(|item| item.is_complete()) {
            let order = self.order;
            let total = in_order!(order, O => item_head::<O>(contents)).map_or(0, |(_, total)| total);
            if total == 0 || total > MAX_REGIONS {
                return Err((Check::new("log_item", "size", Rule::Count), format!("{total} regions")));
            }
            let first_region = u32::try_from(self.region_ends.len()).expect("invariant: within the limit of bytes");
            self.items.push(ItemSpan { first_region, total });
        }
        self.bytes.extend_from_slice(contents);
        self.region_ends.push(u32::try_from(self.bytes.len()).expect("invariant: within the limit of bytes"));
        Ok(self.region_meaning(false, goes_on))
    }

    /// More of the last region, or of the transaction header.
    fn continue_region(&mut self, contents: &[u8], goes_on: bool) -> Result<OpMeaning, (Check, String)> {
        if self.header.is_none() {
            return self.add_header(contents);
        }
        let Some(end) = self.region_ends.last_mut() else {
            return Err((Check::new("log_op_header", "flags", Rule::Flags), "nothing to go on with".to_owned()));
        };
        self.bytes.extend_from_slice(contents);
        *end = u32::try_from(self.bytes.len()).expect("invariant: within the limit of bytes");
        Ok(self.region_meaning(true, goes_on))
    }

    fn region_meaning(&self, continued: bool, goes_on: bool) -> OpMeaning {
        let item = self.items().next_back().expect("invariant: a region was added to it");
        let completes = !goes_on && item.is_complete();
        OpMeaning::Region { item: item.index(), region: item.regions() - 1, continued, goes_on, completes }
    }

    /// The transaction header, which may come in pieces.
    fn add_header(&mut self, contents: &[u8]) -> Result<OpMeaning, (Check, String)> {
        let check = |field, rule| Check::new("trans_header", field, rule);
        if self.header_bytes.len() + contents.len() > HEADER_SIZE {
            let len = self.header_bytes.len() + contents.len();
            return Err((check("magic", Rule::Count), format!("{len} bytes instead of {HEADER_SIZE}")));
        }
        self.header_bytes.extend_from_slice(contents);
        if self.header_bytes.len() < HEADER_SIZE {
            return Ok(OpMeaning::Header);
        }
        // old kernels do not say what they are
        self.order = Order::of_transaction_header(&self.header_bytes).unwrap_or(self.order);
        let (magic, header) = in_order!(self.order, O => decode_header::<O>(&self.header_bytes));
        self.header = Some(header);
        if magic == TRANS_HEADER_MAGIC {
            Ok(OpMeaning::Header)
        } else {
            Err((check("magic", Rule::Magic), format!("{magic:#x}")))
        }
    }
}

/// Magic number and contents of a complete transaction header.
fn decode_header<O: ByteOrder>(bytes: &[u8]) -> (u32, TransactionHeader) {
    let (raw, _) = RawTransHeader::<O>::prefix(bytes).expect("invariant: the header is complete");
    let header = TransactionHeader { kind: raw.type_.get(), tid: raw.tid.get(), num_items: raw.num_items.get() };
    (raw.magic.get(), header)
}
