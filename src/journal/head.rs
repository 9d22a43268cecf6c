//! The head of the log: where the next record goes (Linux `xfs_log_recover.c`, `xlog_find_head`).
//!
//! The log is a ring that records are written to in cycles; the first word of each block says in which cycle the block was
//! written. The head is where the number falls. Records on their way at a crash arrive in any order, so that the fall need
//! not be clean: an area of that size before it is searched for holes.

use super::area::LogArea;
use super::record::LogRecord;
use crate::error::{Result, Rule};

/// Where the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// Nothing was ever written.
    Zeroed,
    /// The block behind the last complete record.
    At(u32),
}

/// Finds the head.
///
/// # Errors
/// `Io`; `Corrupt` when there is no record before it, or the record is of another filesystem.
pub(super) fn find_head(area: &LogArea<'_>) -> Result<Head> {
    let last = area.blocks() - 1;
    let (first_cycle, last_cycle) = (area.cycle(0)?, area.cycle(last)?);
    if first_cycle == 0 {
        return Ok(Head::Zeroed);
    }
    let fall = if last_cycle == 0 {
        let guess = first_of_half(area, last, 0)?;
        let start = guess.saturating_sub(area.in_flight_blocks());
        area.find_cycle(start, guess - start, 0)?.unwrap_or(guess)
    } else {
        // with one cycle throughout, the fall is at the end, which is the start
        let whole = first_cycle == last_cycle;
        let guess = if whole { area.blocks() } else { first_of_half(area, last, last_cycle)? };
        let older = if whole { last_cycle.wrapping_sub(1) } else { last_cycle };
        earliest_hole(area, guess, older)?.unwrap_or(guess)
    };
    not_inside_a_record(area, fall).map(Head::At)
}

/// The first block of the part of the log that carries `cycle`, the part that ends with block `last`: by bisection, so that
/// a stray block can mislead it.
fn first_of_half(area: &LogArea<'_>, last: u32, cycle: u32) -> Result<u32> {
    let (mut other, mut found) = (0, last);
    while found - other > 1 {
        let middle = other + (found - other) / 2;
        if area.cycle(middle)? == cycle {
            found = middle;
        } else {
            other = middle;
        }
    }
    Ok(found)
}

/// The first block in the area of records in flight before `guess` that was not written in the newest cycle: one that
/// carries `older` there, or the one before `older` where the area reaches back over the start of the log.
fn earliest_hole(area: &LogArea<'_>, guess: u32, older: u32) -> Result<Option<u32>> {
    let reach = area.in_flight_blocks().min(area.blocks());
    if guess >= reach {
        return area.find_cycle(guess - reach, reach, older);
    }
    let at_end = reach - guess;
    match area.find_cycle(area.blocks() - at_end, at_end, older.wrapping_sub(1))? {
        Some(hole) => Ok(Some(hole)),
        None => area.find_cycle(0, guess, older),
    }
}

/// `fall`, or the start of the last record before it if that record does not end there.
fn not_inside_a_record(area: &LogArea<'_>, fall: u32) -> Result<u32> {
    let head = fall % area.blocks();
    // a record that would reach over the start of a log that is not full yet cannot be: none is looked for there
    let reach = area.record_blocks() + area.record_blocks() / 64;
    let record = LogRecord::last_before(area, head, reach)?
        .ok_or_else(|| area.corrupt("head", Rule::Magic, head, "no record ends before it"))?;
    let uuid = record.header.fs_uuid;
    if uuid != area.uuid() && uuid != [0; 16] {
        return Err(area.corrupt("fs_uuid", Rule::Uuid, record.block, "the record is of another filesystem"));
    }
    let used = u64::from(area.distance(record.block, head));
    let used = if used == 0 { u64::from(area.blocks()) } else { used };
    Ok(if record.blocks(area) == used { head } else { record.block })
}
