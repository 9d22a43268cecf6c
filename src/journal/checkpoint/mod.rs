//! Checkpoints being collected: what many transactions changed becomes one transaction of the journal
//! (Linux `fs/xfs/xfs_log_cil.c`).
//!
//! A transaction hands over a [`Commit`]. [`Cil`] keeps each item once: what is logged again replaces what was there, and is
//! given its form only when the checkpoint is written, through [`FormatItem`]. An intent whose done item comes in the same
//! checkpoint says nothing that a replay could use, since a checkpoint is replayed as a whole or not at all: neither is
//! written (*whiteouts*). [`ItemTotals`] and [`WhiteoutCounters`] tell what that saves.

mod cil;
mod counters;
mod item;
mod layout;
mod regions;
#[cfg(test)]
mod tests;

pub use cil::{CheckpointItem, Cil, CilOptions, Committed, TakenCheckpoint};
pub use counters::{ItemTotal, ItemTotals, WhiteoutCounters};
pub(in crate::journal) use item::OP_HEADER;
pub use item::{BufferKey, Commit, FormatItem, ItemKey, ItemSize, LoggedDone, LoggedIntent};
pub use layout::WriterLayout;
pub use regions::Regions;
