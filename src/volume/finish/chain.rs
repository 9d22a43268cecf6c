//! One transaction after the other, until nothing is left.

use super::intent::{log_done, log_intent};
use super::step::{Outcome, Steps};
use crate::error::Result;
use crate::geometry::Geometry;
use crate::transaction::{Deferred, PendingIntent, Transaction};

/// Finishes all deferred operations, in as many transactions as they take; the last one stays open and has changed nothing
/// yet (`xfs_defer_finish`).
///
/// # Errors
/// Those of the operations: then what was committed before stands, and an intent tells what is left.
pub fn finish_some(tx: &mut Transaction<'_>) -> Result<()> {
    finish_all(tx)?;
    if tx.is_dirty() { tx.roll() } else { Ok(()) }
}

/// Finishes all deferred operations and commits.
///
/// # Errors
/// As [`finish_some`]; those of the commit.
pub fn finish(mut tx: Transaction<'_>) -> Result<()> {
    finish_all(&mut tx)?;
    tx.commit()
}

/// Until nothing is left: intents for what is new are logged before any of it is begun, and what an operation puts off
/// itself comes before what was put off already.
fn finish_all(tx: &mut Transaction<'_>) -> Result<()> {
    let mut begun = false;
    while !tx.deferrals().is_empty() {
        tx.deferrals().take_up();
        let logged = log_new(tx)?;
        if logged || begun {
            tx.roll()?;
            if relog(tx)? {
                tx.roll()?;
            }
        }
        let Some(next) = tx.deferrals().pending().pop_front() else { break };
        begun = true;
        finish_one(tx, next)?;
    }
    Ok(())
}

/// Logs an intent for all that has none. Whether there was anything.
fn log_new(tx: &mut Transaction<'_>) -> Result<bool> {
    let mut pending = std::mem::take(tx.deferrals().pending());
    let mut any = false;
    for intent in pending.iter_mut().filter(|intent| intent.id.is_none()) {
        sort(intent, tx.store().geometry());
        intent.id = log_intent(tx, intent)?;
        any |= intent.id.is_some();
    }
    *tx.deferrals().pending() = pending;
    Ok(any)
}

/// Logs intents anew that would keep the log from moving on. Whether there were any.
fn relog(tx: &mut Transaction<'_>) -> Result<bool> {
    let mut pending = std::mem::take(tx.deferrals().pending());
    let mut any = false;
    for intent in &mut pending {
        if intent.id.is_some_and(|id| tx.store().should_relog(id)) {
            log_done(tx, intent)?;
            intent.id = log_intent(tx, intent)?;
            any = true;
        }
    }
    *tx.deferrals().pending() = pending;
    Ok(any)
}

/// Does the operations of one intent. If one needs another transaction to go on, an intent is logged for what is left.
fn finish_one(tx: &mut Transaction<'_>, mut intent: PendingIntent) -> Result<()> {
    log_done(tx, &intent)?;
    let mut steps = Steps::default();
    while let Some(mut operation) = intent.operations.pop_front() {
        if steps.take(tx, &mut operation)? == Outcome::GoesOn {
            intent.operations.push_front(operation);
            intent.id = log_intent(tx, &intent)?;
            tx.deferrals().pending().push_front(intent);
            break;
        }
    }
    Ok(())
}

/// Brings the operations in the order of their groups, so that these are changed one after the other.
fn sort(intent: &mut PendingIntent, geometry: &Geometry) {
    let group =
        |operation: &Deferred| operation.start().and_then(|start| geometry.fsb_parts(start)).map(|(agno, _)| agno);
    intent.operations.make_contiguous().sort_by_key(group);
}
