//! An extent chosen and taken.

use super::request::AllocationRequest;
use crate::error::{Error, Result};
use crate::geometry::FsBlock;
use crate::transaction::Transaction;

/// Allocates one extent: first block and length. `None` when there is none of the kind that is asked for; then nothing but
/// free lists may have changed, and other wishes can be tried.
///
/// The blocks come out of those that the transaction has reserved, or out of those that the group holds for its btrees.
///
/// # Errors
/// `Corrupt` when the group is damaged; `Io`; `Usage` when the request contradicts itself.
pub fn allocate(_tx: &mut Transaction<'_>, _request: &AllocationRequest) -> Result<Option<(FsBlock, u32)>> {
    Err(Error::Unsupported("allocating space".to_owned()))
}
