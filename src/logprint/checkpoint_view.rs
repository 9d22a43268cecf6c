//! Checkpoint by checkpoint: what a replay would see.

use std::io;

use super::entry::{Entry, Fields, Value};
use super::header::Journal;
use super::item_fields::item_entry;
use super::output::Output;
use super::print::{Outcome, fault_entry, gap_entry, is_fault};
use super::request::Request;
use super::tour::{Part, Span, to_replay};
use crate::journal::{Checkpoint, Checkpoints, LogArea, Piece, Records, Step};

/// The pieces of some spans, one span after the other.
pub(super) fn pieces<'a>(area: &'a LogArea<'a>, spans: Vec<Span>) -> impl Iterator<Item = Piece> + 'a {
    spans.into_iter().flat_map(move |span| Records::new(area, span.start, span.blocks))
}

/// In which part a block is.
pub(super) fn part_of(area: &LogArea<'_>, spans: &[Span], block: u32) -> Part {
    let within = |span: &&Span| area.distance(span.start, block) < span.blocks;
    spans.iter().find(within).map_or(Part::Unknown, |span| span.part)
}

/// Walks what a replay would see, counts the faults on the way and shows them, and gives everything else to `take`.
pub(super) fn walk(
    journal: &Journal<'_>,
    request: &Request,
    output: &mut Output<'_>,
    outcome: &mut Outcome,
    mut take: impl FnMut(&mut Output<'_>, Step) -> io::Result<()>,
) -> io::Result<()> {
    let area = journal.area();
    let spans = to_replay(journal, request);
    for step in Checkpoints::new(area, pieces(area, spans.clone())) {
        match &step {
            Step::Gap(gap) => {
                let part = part_of(area, &spans, gap.block);
                if is_fault(gap) {
                    outcome.count(part, request);
                }
                output.entry(&gap_entry(gap, part))?;
            }
            Step::Fault(fault) => {
                outcome.count(part_of(area, &spans, fault.block), request);
                output.entry(&fault_entry(fault))?;
            }
            _ => take(output, step)?,
        }
        if outcome.stopped {
            break;
        }
    }
    Ok(())
}

/// Shows the checkpoints.
pub(super) fn show(
    journal: &Journal<'_>,
    request: &Request,
    output: &mut Output<'_>,
    outcome: &mut Outcome,
) -> io::Result<()> {
    let mut number = 0_u64;
    walk(journal, request, output, outcome, |output, step| match step {
        Step::Checkpoint(checkpoint) => {
            number += 1;
            let heading = format!("checkpoint {number}:");
            write(journal, request, output, &checkpoint, entry(&checkpoint, "checkpoint", heading, Some(number)))
        }
        Step::Uncommitted(checkpoint) => {
            let heading = "never committed:".to_owned();
            write(journal, request, output, &checkpoint, entry(&checkpoint, "uncommitted", heading, None))
        }
        Step::Unmount => output.entry(&Entry::new("unmount", "unmount", Vec::new())),
        _ => Ok(()),
    })
}

/// Writes the entry of a checkpoint, and its items.
fn write(
    journal: &Journal<'_>,
    request: &Request,
    output: &mut Output<'_>,
    checkpoint: &Checkpoint,
    entry: Entry,
) -> io::Result<()> {
    if request.headers_only {
        return output.entry(&entry);
    }
    output.entry_with(entry, "items", |items| {
        let mut entries = checkpoint.items().map(|item| item_entry(item, journal.geometry(), request.detail));
        entries.try_for_each(|entry| items.entry(&entry))
    })
}

fn entry(checkpoint: &Checkpoint, kind: &'static str, heading: String, number: Option<u64>) -> Entry {
    let header = checkpoint.header.unwrap_or_default();
    let mut fields = vec![
        ("tid", Value::Hex(u64::from(checkpoint.tid))),
        ("lsn", Value::Lsn(checkpoint.lsn)),
        ("commit", checkpoint.commit_lsn.map_or(Value::Null, Value::Lsn)),
        ("records", Value::from(checkpoint.records)),
        ("regions", Value::from(checkpoint.regions())),
        ("bytes", Value::from(checkpoint.log_bytes())),
    ];
    if header.num_items as usize != checkpoint.regions() {
        fields.push(("regions_announced", Value::from(header.num_items)));
    }
    if checkpoint.damaged {
        fields.push(("damaged", Value::Bool(true)));
    }
    let count = checkpoint.items().len();
    let mut named: Fields = number.map(|number| ("number", Value::from(number))).into_iter().collect();
    named.push(("item_count", Value::from(count)));
    Entry::new(kind, format!("{heading} {count} items"), fields).named(named)
}
