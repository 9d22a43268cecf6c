//! From records to checkpoints.

use std::collections::VecDeque;

use super::assembler::{Assembler, Fault, OpMeaning};
use super::checkpoint::Checkpoint;
use super::records::{CrcState, Gap, GapKind, JournalRecord, Piece, Records};
use crate::error::{Check, Rule};
use crate::geometry::limits::BASIC_BLOCK;
use crate::journal::area::LogArea;

/// What a checkpoint holds at most in a log of any size. Kernels that are older than 5.8 let it grow to an eighth of the
/// log and more, later ones to twice 32 MiB and more.
const SMALLEST_LIMIT: u64 = 1 << 20;

/// One thing that was found on the way through the journal, in the order of the log.
#[derive(Debug)]
pub enum Step {
    /// A record. What came of its operations follows.
    Record(Box<JournalRecord>),
    /// Blocks without a record.
    Gap(Gap),
    /// A transaction was committed.
    Checkpoint(Box<Checkpoint>),
    /// The filesystem was unmounted.
    Unmount,
    /// Something cannot be understood. A replay must end here; who only looks may go on.
    Fault(Fault),
    /// The journal ends before this transaction is committed: it never happened. These come last.
    Uncommitted(Box<Checkpoint>),
}

/// Walks the journal from record to record, and gives the checkpoints that they make.
pub struct Checkpoints<'a> {
    records: Records<'a>,
    assembler: Option<Assembler>,
    steps: VecDeque<Step>,
}

impl<'a> Checkpoints<'a> {
    /// The checkpoints in `records`, which lie in `area`.
    pub fn new(area: &LogArea<'_>, records: Records<'a>) -> Self {
        Checkpoints { records, assembler: Some(Assembler::new(limit(area))), steps: VecDeque::new() }
    }

    fn take(&mut self, piece: Piece) {
        let Some(assembler) = &mut self.assembler else { return };
        match piece {
            Piece::Gap(gap) => {
                if !matches!(gap.kind, GapKind::Zeroed | GapKind::Cleared) {
                    assembler.interrupt();
                }
                self.steps.push_back(Step::Gap(gap));
            }
            Piece::Record(record) => {
                let outcomes = read_record(assembler, &record);
                self.steps.push_back(Step::Record(record));
                self.steps.extend(outcomes);
            }
        }
    }
}

/// Bytes of open transactions that are held at most: half of the log, which no kernel comes near.
fn limit(area: &LogArea<'_>) -> usize {
    let half = u64::from(area.blocks()) * u64::from(BASIC_BLOCK) / 2;
    usize::try_from(half.max(SMALLEST_LIMIT)).unwrap_or(usize::MAX)
}

/// Gives the operations of a record to the assembler.
fn read_record(assembler: &mut Assembler, record: &JournalRecord) -> Vec<Step> {
    let mut steps = Vec::new();
    steps.extend(record.fault().map(Step::Fault));
    for op in record.ops() {
        let met = match op {
            Ok(op) => assembler.feed(record, &op),
            Err(check) => {
                assembler.interrupt();
                Err(Fault { block: record.block, tid: None, check, detail: String::new() })
            }
        };
        match met {
            Ok(OpMeaning::Commit(checkpoint)) => steps.push(Step::Checkpoint(checkpoint)),
            Ok(OpMeaning::Unmount) => steps.push(Step::Unmount),
            Ok(_) => {}
            Err(fault) => steps.push(Step::Fault(fault)),
        }
    }
    steps
}

impl JournalRecord {
    /// What is wrong with the record as a whole.
    pub fn fault(&self) -> Option<Fault> {
        let (check, detail) = match self.crc {
            CrcState::Wrong { computed } => {
                let detail = format!("{:#010x} instead of {computed:#010x}", self.header.crc.get());
                (Check::new("log_rec_header", "crc", Rule::Crc), detail)
            }
            _ if self.foreign_blocks > 0 => {
                let detail = format!("{} blocks are of another cycle", self.foreign_blocks);
                (Check::new("log_rec_header", "len", Rule::Truncated), detail)
            }
            _ => return None,
        };
        Some(Fault { block: self.block, tid: None, check, detail })
    }
}

impl Iterator for Checkpoints<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Some(step);
            }
            match self.records.next() {
                Some(piece) => self.take(piece),
                None => {
                    let open = self.assembler.take()?.into_open();
                    self.steps.extend(open.into_iter().map(|open| Step::Uncommitted(Box::new(open))));
                }
            }
        }
    }
}
