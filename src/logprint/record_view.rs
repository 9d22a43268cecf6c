//! Record by record: the whole log, in the order in which it was written.

use std::io;

use super::entry::{Entry, Fields, Value};
use super::header::{Journal, byte_order};
use super::heading::{Heading, Operation};
use super::item_fields::item_entry;
use super::output::Output;
use super::print::{Outcome, fault_entry, gap_entry, is_fault};
use super::request::Request;
use super::tour::{Part, Span, whole};
use crate::geometry::Lsn;
use crate::journal::{Assembler, CrcState, Fault, JournalRecord, OpMeaning, Piece, Records};
use crate::ondisk::log_record::{
    BBSIZE, CLIENT_LOG, CLIENT_TRANSACTION, LogOp, RawLogRecExtHeader, RawLogRecHeader, op,
};
use crate::ondisk::{Be32, OnDisk};

/// Shows the records.
pub(super) fn show(
    journal: &Journal<'_>,
    request: &Request,
    output: &mut Output<'_>,
    outcome: &mut Outcome,
) -> io::Result<()> {
    let mut reader = Reader { journal, request, assembler: Assembler::of_log(journal.area()), faults: 0 };
    for Span { start, blocks, part } in whole(journal, request) {
        for piece in Records::new(journal.area(), start, blocks) {
            match piece {
                Piece::Gap(gap) => {
                    if is_fault(&gap) {
                        reader.assembler.interrupt();
                        outcome.count(part, request);
                    }
                    output.entry(&gap_entry(&gap, part))?;
                }
                Piece::Record(record) => {
                    let part = if part == Part::Active && is_stale(journal, &record) { Part::Stale } else { part };
                    if part == Part::Stale {
                        outcome.count(part, request);
                    }
                    reader.record(&record, part, output)?;
                    (0..std::mem::take(&mut reader.faults)).for_each(|_| outcome.count(part, request));
                }
            }
            if outcome.stopped {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Whether a record between tail and head was written in an earlier cycle than its neighbours.
fn is_stale(journal: &Journal<'_>, record: &JournalRecord) -> bool {
    journal.found().is_some_and(|found| {
        let newest = found.last_record;
        // what lies behind the last record was written in the cycle before
        let cycle = newest.cycle().wrapping_sub(u32::from(record.block > newest.block()));
        record.lsn().cycle() != cycle
    })
}

/// Makes entries of records.
struct Reader<'a> {
    journal: &'a Journal<'a>,
    request: &'a Request,
    assembler: Assembler,
    /// Faults in the record.
    faults: u64,
}

impl Reader<'_> {
    fn record(&mut self, record: &JournalRecord, part: Part, output: &mut Output<'_>) -> io::Result<()> {
        let named = vec![("block", Value::from(record.block))];
        let mut fields = record_fields(record, part);
        if self.request.saved_words {
            fields.push(("saved_words", Value::List(saved_words(record))));
        }
        let entry = Entry::new("record", format!("record at {}:", record.block), fields).named(named);
        output.entry_with(entry, "operations", |operations| {
            if let Some(fault) = record.fault() {
                operations.entry(&self.fault(&fault))?;
            }
            if self.request.headers_only {
                return Ok(());
            }
            record.ops().enumerate().try_for_each(|(index, op)| match op {
                Ok(op) => operations.entry(&self.op(record, index, &op)),
                Err(check) => {
                    self.assembler.interrupt();
                    let fault = Fault { block: record.block, tid: None, check, detail: String::new() };
                    operations.entry(&self.fault(&fault))
                }
            })
        })
    }

    fn fault(&mut self, fault: &Fault) -> Entry {
        self.faults += 1;
        fault_entry(fault)
    }

    fn op(&mut self, record: &JournalRecord, index: usize, op: &LogOp<'_>) -> Entry {
        let tid = op.header.tid.get();
        let mut children = Vec::new();
        let is = match self.assembler.feed(record, op) {
            Ok(meaning) => self.meaning(tid, &meaning, &mut children),
            Err(fault) => {
                children.push(self.fault(&fault));
                Operation::Unknown
            }
        };
        let mut fields = vec![("tid", Value::Hex(u64::from(tid))), ("len", Value::from(op.header.len.get()))];
        if op.header.clientid != CLIENT_TRANSACTION {
            fields.push(("client", client_word(op.header.clientid)));
        }
        if op.header.flags != 0 {
            fields.push(("flags", Value::Words(flag_words(op.header.flags))));
        }
        let entry = Entry::new("operation", Heading::Operation(index, is), fields);
        if children.is_empty() { entry } else { entry.with("contents", children) }
    }

    /// What an operation is; an item that it completes is put into `children`.
    fn meaning(&self, tid: u32, meaning: &OpMeaning, children: &mut Vec<Entry>) -> Operation {
        let open = self.assembler.open(tid);
        Operation::Word(match meaning {
            OpMeaning::Start => "start",
            OpMeaning::Header => {
                let header = open.and_then(|open| open.header).unwrap_or_default();
                return Operation::Header { kind: header.kind, regions: header.num_items };
            }
            OpMeaning::Region { item, region, completes, .. } => {
                let item = open.and_then(|open| open.item(*item));
                let item = item.expect("invariant: the region was just added to it");
                if *completes {
                    children.push(item_entry(item, self.journal.geometry(), self.request.detail));
                }
                let name = item.kind().map_or("?", |kind| kind.name());
                return Operation::Region { item: name, region: region + 1, count: item.regions_announced() };
            }
            OpMeaning::Empty => "nothing",
            OpMeaning::Commit(_) => "commit",
            OpMeaning::Unmount => "unmount",
            OpMeaning::Orphan => "of a transaction that began before",
        })
    }
}

/// What a record's header says, and whether its contents are what was written.
fn record_fields(record: &JournalRecord, part: Part) -> Fields {
    let header = &record.header;
    let previous = header.prev_block.get();
    let crc = match record.crc {
        CrcState::Matches => Value::Word("good"),
        CrcState::MatchesI386 => Value::Word("good-i386"),
        CrcState::Absent => Value::Word("absent"),
        CrcState::Wrong { .. } => Value::Word("bad"),
    };
    let mut fields = vec![
        ("part", Value::Word(part.word())),
        ("lsn", Value::Lsn(Lsn(header.lsn.get()))),
        ("tail_lsn", Value::Lsn(Lsn(header.tail_lsn.get()))),
        ("previous", if previous == u32::MAX { Value::Null } else { Value::from(previous) }),
        ("blocks", Value::from(record.blocks)),
        ("length", Value::from(header.len.get())),
        ("ops", Value::from(header.num_logops.get())),
        ("cycle", Value::from(header.cycle.get())),
        ("version", Value::from(header.version.get())),
        ("byte_order", byte_order(header.fmt.get())),
        ("buffer_size", Value::from(header.size.get())),
        ("crc", crc),
        ("uuid", Value::Uuid(record.uuid())),
    ];
    if record.foreign_blocks > 0 {
        fields.push(("torn_blocks", Value::from(record.foreign_blocks)));
    }
    fields
}

/// The words that the headers keep for the blocks of the payload.
fn saved_words(record: &JournalRecord) -> Vec<Value> {
    let words = |words: &[Be32]| -> Vec<Value> { words.iter().map(|word| Value::Hex(u64::from(word.get()))).collect() };
    let mut all = words(&record.header.cycle_data);
    for bytes in record.headers().chunks_exact(BBSIZE).skip(1) {
        if let Some((header, _)) = RawLogRecExtHeader::prefix(bytes) {
            all.extend(words(&header.cycle_data));
        }
    }
    all.truncate(record.payload().len().div_ceil(RawLogRecHeader::SIZE));
    all
}

fn client_word(client: u8) -> Value {
    match client {
        CLIENT_TRANSACTION => Value::Word("transaction"),
        CLIENT_LOG => Value::Word("log"),
        _ => Value::Hex(u64::from(client)),
    }
}

fn flag_words(flags: u8) -> Vec<&'static str> {
    let names = [
        (op::START_TRANS, "start"),
        (op::COMMIT_TRANS, "commit"),
        (op::CONTINUE_TRANS, "continue"),
        (op::WAS_CONT_TRANS, "was-cont"),
        (op::END_TRANS, "end"),
        (op::UNMOUNT_TRANS, "unmount"),
    ];
    names.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| name).collect()
}
