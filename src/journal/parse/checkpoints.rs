//! From records to checkpoints.

use std::collections::VecDeque;

use super::assembler::{Assembler, Fault, OpMeaning};
use super::checkpoint::Checkpoint;
use super::records::{CrcState, Gap, GapKind, JournalRecord, Piece};
use crate::error::{Check, Rule};
use crate::journal::area::LogArea;

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
pub struct Checkpoints<I> {
    pieces: I,
    assembler: Option<Assembler>,
    steps: VecDeque<Step>,
}

impl<I: Iterator<Item = Piece>> Checkpoints<I> {
    /// The checkpoints in the pieces of `area` that [`Records`](super::Records) gives.
    pub fn new(area: &LogArea<'_>, pieces: I) -> Self {
        Checkpoints { pieces, assembler: Some(Assembler::of_log(area)), steps: VecDeque::new() }
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

impl<I: Iterator<Item = Piece>> Iterator for Checkpoints<I> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Some(step);
            }
            match self.pieces.next() {
                Some(piece) => self.take(piece),
                None => {
                    let open = self.assembler.take()?.into_open();
                    self.steps.extend(open.into_iter().map(|open| Step::Uncommitted(Box::new(open))));
                }
            }
        }
    }
}
