//! Ranges of two files exchanged (Linux `libxfs/xfs_exchmaps.c`).

use super::remap::{defer_map, defer_unmap};
use super::share::{Run, grow_size, run_at};
use crate::error::{Check, Error, Place, Result, Rule};
use crate::forms::ForkKind;
use crate::geometry::Ino;
use crate::ondisk::Extent;
use crate::ondisk::log_xmi::{XmiLogFormat, exchange};
use crate::transaction::{Deferred, Transaction};
use crate::volume::inodes;

/// Puts off the exchange of ranges of two files.
pub fn defer_exchange(tx: &mut Transaction<'_>, exchange: XmiLogFormat) {
    tx.defer(Deferred::Exchange(Box::new(exchange)));
}

/// Does a step of an exchange, which then says what is left of it. Whether it is done; else what the step has deferred is to
/// be finished before the next one.
///
/// # Errors
/// `Corrupt` when a file is damaged; `Unsupported` for realtime files.
pub fn finish_exchange(tx: &mut Transaction<'_>, operation: &mut XmiLogFormat) -> Result<bool> {
    let fork = if operation.flags & exchange::ATTR_FORK != 0 { ForkKind::Attr } else { ForkKind::Data };
    if let Some((first, second)) = next_difference(tx, operation, fork)? {
        exchange_runs(tx, operation, fork, first, second)?;
        advance(operation, first.len);
    }
    if operation.blockcount > 0 {
        return Ok(false);
    }
    if operation.flags & exchange::SET_SIZES != 0 {
        for (ino, size) in operation.inodes.into_iter().zip(operation.isizes) {
            inodes::change(tx, Ino(ino), 0, |raw, _| {
                raw.core.size.set(size);
                Ok(())
            })?;
        }
    }
    Ok(true)
}

fn advance(operation: &mut XmiLogFormat, len: u32) {
    let len = u64::from(len);
    operation.startoffs = operation.startoffs.map(|start| start.saturating_add(len));
    operation.blockcount = operation.blockcount.saturating_sub(len);
}

/// The next mappings that differ, both as long as the shorter one; the operation is advanced to them.
fn next_difference(tx: &Transaction<'_>, operation: &mut XmiLogFormat, fork: ForkKind) -> Result<Option<(Run, Run)>> {
    while operation.blockcount > 0 {
        let [first, second] = operation.inodes.map(Ino);
        let mut one = run_at(tx, first, fork, operation.startoffs[0], operation.blockcount)?;
        if operation.flags & exchange::INO1_WRITTEN != 0 && !one.is_written() {
            advance(operation, one.len);
            continue;
        }
        let mut two = run_at(tx, second, fork, operation.startoffs[1], u64::from(one.len))?;
        one.len = one.len.min(two.len);
        two.len = one.len;
        match (one.blocks, two.blocks) {
            (Some((a, one_state)), Some((b, two_state))) if a == b => {
                if one_state != two_state {
                    let place = Place { inode: Some(first.0), ..Place::default() };
                    return Err(Error::corrupt(Check::new("bmbt_rec", "state", Rule::Mismatch), place));
                }
            }
            (None, None) => {}
            _ => return Ok(Some((one, two))),
        }
        advance(operation, one.len);
    }
    Ok(None)
}

fn exchange_runs(tx: &mut Transaction<'_>, operation: &XmiLogFormat, fork: ForkKind, one: Run, two: Run) -> Result<()> {
    let [first, second] = operation.inodes.map(Ino);
    for (ino, run) in [(first, &one), (second, &two)] {
        if let Some(extent) = run.extent() {
            defer_unmap(tx, ino, fork, &extent);
        }
    }
    for (ino, run, start) in [(first, &two, one.start), (second, &one, two.start)] {
        if let Some(extent) = run.extent() {
            defer_map(tx, ino, fork, &Extent { startoff: start, ..extent });
        }
    }
    if fork == ForkKind::Data && operation.flags & exchange::SET_SIZES != 0 {
        let len = u64::from(one.len);
        grow_size(tx, first, one.start + len, operation.isizes[0])?;
        grow_size(tx, second, two.start + len, operation.isizes[1])?;
    }
    Ok(())
}
