//! Block by block: headers and changes of cycle, or the bytes.

use std::io;

use super::entry::{Entry, Value};
use super::header::Journal;
use super::output::Output;
use super::request::Request;
use super::tour::{Span, whole};
use crate::geometry::Lsn;
use crate::ondisk::OnDisk;
use crate::ondisk::log_record::{BBSIZE, HEADER_MAGIC, RawLogRecHeader, block_cycle};

/// Blocks that are read at once.
const READ_AT_ONCE: u32 = 2048;

/// Calls `take` with each of `count` blocks from `start` on; with nothing for one that cannot be read.
fn each_block(
    journal: &Journal<'_>,
    start: u32,
    count: u32,
    mut take: impl FnMut(u32, Option<&[u8]>) -> io::Result<()>,
) -> io::Result<()> {
    let area = journal.area();
    let mut done = 0;
    while done < count {
        let (block, ahead) = (area.behind(start, done), READ_AT_ONCE.min(count - done));
        let (bytes, ahead) = match area.read(block, ahead) {
            Ok(bytes) => (Some(bytes), ahead),
            Err(_) => (area.read(block, 1).ok(), 1),
        };
        match bytes {
            Some(bytes) => {
                for (steps, bytes) in (0..ahead).zip(bytes.chunks_exact(BBSIZE)) {
                    take(area.behind(block, steps), Some(bytes))?;
                }
            }
            None => take(block, None)?,
        }
        done += ahead;
    }
    Ok(())
}

/// Shows where records begin and where cycles change, from the first block of the log to the last.
pub(super) fn show_headers(journal: &Journal<'_>, request: &Request, output: &mut Output<'_>) -> io::Result<()> {
    let start = request.start.unwrap_or(0).min(journal.area().blocks());
    let mut run: Option<(u32, Option<u32>)> = None;
    each_block(journal, start, journal.area().blocks() - start, |block, bytes| {
        let cycle = bytes.and_then(block_cycle);
        if run.is_none_or(|(_, before)| before != cycle) {
            if let Some((from, before)) = run {
                output.entry(&cycle_entry(from, block - 1, before))?;
            }
            run = Some((block, cycle));
        }
        match bytes.and_then(RawLogRecHeader::prefix) {
            Some((header, _)) if header.magicno.get() == HEADER_MAGIC && !request.headers_only => {
                output.entry(&header_entry(block, header))
            }
            _ => Ok(()),
        }
    })?;
    match run {
        Some((from, cycle)) => output.entry(&cycle_entry(from, journal.area().blocks() - 1, cycle)),
        None => Ok(()),
    }
}

fn cycle_entry(from: u32, to: u32, cycle: Option<u32>) -> Entry {
    let fields = vec![("cycle", cycle.map_or(Value::Word("unreadable"), Value::from))];
    let named = vec![("from", Value::from(from)), ("to", Value::from(to))];
    Entry::new("cycle", format!("blocks {from} to {to}:"), fields).named(named)
}

fn header_entry(block: u32, header: &RawLogRecHeader) -> Entry {
    let fields = vec![
        ("lsn", Value::Lsn(Lsn(header.lsn.get()))),
        ("tail_lsn", Value::Lsn(Lsn(header.tail_lsn.get()))),
        ("length", Value::from(header.len.get())),
        ("ops", Value::from(header.num_logops.get())),
    ];
    Entry::new("header", format!("  header at {block}:"), fields).named(vec![("block", Value::from(block))])
}

/// Shows the bytes of all blocks, from the oldest on.
pub(super) fn show_blocks(journal: &Journal<'_>, request: &Request, output: &mut Output<'_>) -> io::Result<()> {
    for Span { start, blocks, part } in whole(journal, request) {
        each_block(journal, start, blocks, |block, bytes| {
            let contents = match bytes {
                Some(bytes) => ("bytes", Value::Bytes(bytes.to_vec())),
                None => ("problem", Value::Word("cannot be read")),
            };
            let fields = vec![("part", Value::Word(part.word())), contents];
            let named = vec![("block", Value::from(block))];
            output.entry(&Entry::new("block", format!("block {block}:"), fields).named(named))
        })?;
    }
    Ok(())
}
