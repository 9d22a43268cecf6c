//! Which module does an operation.

use crate::error::Result;
use crate::transaction::{Deferred, Transaction};
use crate::volume::{attributes, mapping, space};

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The operation is done.
    Done,
    /// The operation says what is left of it, for another transaction.
    GoesOn,
}

/// The operations of one intent, in one transaction.
#[derive(Debug, Default)]
pub(super) struct Steps {
    refcounts: space::Progress,
}

fn outcome(done: bool) -> Outcome {
    if done { Outcome::Done } else { Outcome::GoesOn }
}

impl Steps {
    /// Does an operation, or as much of it as one transaction holds.
    pub(super) fn take(&mut self, tx: &mut Transaction<'_>, operation: &mut Deferred) -> Result<Outcome> {
        match operation {
            Deferred::Free(extent) => space::free_extent(tx, extent).map(|()| Outcome::Done),
            Deferred::FreeListBlock { agno, extent } => {
                space::free_list_block(tx, *agno, extent).map(|()| Outcome::Done)
            }
            Deferred::Rmap(extent) => space::apply_rmap(tx, extent).map(|()| Outcome::Done),
            Deferred::Refcount(extent) => {
                let left = space::apply_refcount(tx, extent, &mut self.refcounts)?;
                if let Some(left) = left {
                    *extent = left;
                }
                Ok(outcome(left.is_none()))
            }
            Deferred::Mapping(extent) => mapping::finish_mapping(tx, extent).map(outcome),
            Deferred::Exchange(exchange) => mapping::finish_exchange(tx, exchange).map(outcome),
            Deferred::Attribute(change) => attributes::step(tx, change).map(outcome),
        }
    }
}
