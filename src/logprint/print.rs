//! The journal shown as was asked for.

use std::io::{self, Write};

use super::entry::{Entry, Value};
use super::header::Journal;
use super::output::Output;
use super::request::{Request, View};
use super::tour::Part;
use super::{block_view, checkpoint_view, intent_view, record_view, summary_view};
use crate::error::Error;
use crate::geometry::limits::BASIC_BLOCK;
use crate::journal::{Fault, Gap, GapKind};
use crate::report::{Observer, Unit};

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What could not be understood or read of that which a replay needs.
    pub faults: u64,
    /// Whether the rest was left out because of one.
    pub stopped: bool,
}

impl Outcome {
    /// Counts a fault in `part`. Where the log is old, records are overwritten in part, and that is no fault.
    pub(super) fn count(&mut self, part: Part, request: &Request) {
        if matches!(part, Part::Active | Part::Stale | Part::Unknown) {
            self.faults += 1;
            self.stopped |= request.stop;
        }
    }
}

/// Shows `journal` as `request` asks for it.
///
/// # Errors
/// Those of the writer. Whatever is wrong with the journal is shown, and counted in the outcome.
pub fn print(journal: &Journal<'_>, request: &Request, output: &mut Output<'_>) -> io::Result<Outcome> {
    output.begin(&journal.entry())?;
    let mut outcome = Outcome::default();
    if journal.found().is_none() {
        outcome.count(Part::Unknown, request);
    }
    match request.view {
        View::Records => record_view::show(journal, request, output, &mut outcome)?,
        View::Checkpoints => checkpoint_view::show(journal, request, output, &mut outcome)?,
        View::Headers => block_view::show_headers(journal, request, output)?,
        View::Blocks => block_view::show_blocks(journal, request, output)?,
        View::Intents => intent_view::show(journal, request, output, &mut outcome)?,
        View::Summary => summary_view::show(journal, request, output, &mut outcome)?,
    }
    output.end()?;
    Ok(outcome)
}

/// Blocks that are copied at once.
const COPIED_AT_ONCE: u32 = 2048;

/// Copies the log to `out`, from its first block on. Blocks that cannot be read become zeroes.
///
/// # Errors
/// Those of the writer.
pub fn copy(journal: &Journal<'_>, out: &mut dyn Write, observer: &dyn Observer) -> io::Result<()> {
    let area = journal.area();
    observer.begin("copying the log", u64::from(area.blocks()) * u64::from(BASIC_BLOCK), Unit::Bytes);
    for block in (0..area.blocks()).step_by(COPIED_AT_ONCE as usize) {
        let count = COPIED_AT_ONCE.min(area.blocks() - block);
        match area.read(block, count) {
            Ok(bytes) => out.write_all(&bytes)?,
            Err(_) => {
                (block..block + count).try_for_each(|block| out.write_all(&one_block(journal, block, observer)))?
            }
        }
        observer.advance(u64::from(count) * u64::from(BASIC_BLOCK));
    }
    observer.end();
    Ok(())
}

fn one_block(journal: &Journal<'_>, block: u32, observer: &dyn Observer) -> Vec<u8> {
    journal.area().read(block, 1).unwrap_or_else(|error: Error| {
        observer.warn(&error);
        vec![0; BASIC_BLOCK as usize]
    })
}

/// What is said of blocks without a record.
pub(super) fn gap_entry(gap: &Gap, part: Part) -> Entry {
    let mut fields = vec![("blocks", Value::from(gap.blocks))];
    let what = match gap.kind {
        GapKind::Zeroed => "never written",
        GapKind::Cleared => "cleared after a crash",
        GapKind::BadHeader => "a record header that makes no sense",
        GapKind::Overlong => "the header of a record that was overwritten in part",
        GapKind::Leftover { cycle } => {
            fields.push(("cycle", Value::from(cycle)));
            "no record"
        }
        GapKind::Unreadable => "cannot be read",
    };
    fields.push(("part", Value::Word(part.word())));
    let named = vec![("block", Value::from(gap.block)), ("what", Value::Word(what))];
    Entry::new("gap", format!("gap at {}: {what}", gap.block), fields).named(named)
}

/// Whether blocks without a record are a fault, where a replay needs them.
pub(super) fn is_fault(gap: &Gap) -> bool {
    !matches!(gap.kind, GapKind::Zeroed | GapKind::Cleared)
}

/// What is said of a fault.
pub(super) fn fault_entry(fault: &Fault) -> Entry {
    let mut fields = vec![("problem", Value::Text(fault.check.to_string()))];
    if !fault.detail.is_empty() {
        fields.push(("detail", Value::Text(fault.detail.clone())));
    }
    let mut named = vec![("block", Value::from(fault.block))];
    let mut heading = format!("FAULT in the record at {}", fault.block);
    if let Some(tid) = fault.tid {
        heading += &format!(", transaction {tid:#x}");
        named.push(("tid", Value::Hex(u64::from(tid))));
    }
    Entry::new("fault", heading + ":", fields).named(named)
}
