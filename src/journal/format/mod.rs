//! Items in the form in which they stand in the log, made from what they describe; `parse` does the reverse.
//!
//! Buffers, inodes and dquots are added to [`Regions`](crate::journal::Regions), when a checkpoint is written; how much they will take is known without
//! making them ([`BufferChange::size`], [`InodeChange::size`], [`DQUOT_SIZE`]). Intents and done items are made at once, and
//! kept.

mod btree_root;
mod buffer;
mod dquot;
mod inode;
mod intent;
#[cfg(test)]
mod tests;

pub use buffer::BufferChange;
pub use dquot::{DQUOT_SIZE, format_dquot};
pub use inode::InodeChange;
pub use intent::{DoneBody, IntentBody, format_icreate};
