//! From the blocks of the journal to the items that its transactions logged (Linux `xfs_log_recover.c`).
//!
//! The journal is layered, and so is this module:
//!
//! 1. [`Records`] walks the blocks and cuts them into records, of which each is what the log wrote at once, and gaps
//!    between them. A record's payload has the first words of its blocks put back and its CRC looked at.
//! 2. The payload of a record is a row of operations. [`Assembler`] collects the operations of each transaction over any
//!    number of records: what it logs are *regions*, which several operations may carry piece by piece, and some regions
//!    make an *item*, of which the first region says the type and the number of regions.
//! 3. A transaction that was committed is a [`Checkpoint`]: all of its items are replayed, or none. One without a commit
//!    record never happened. [`Checkpoints`] goes from records to checkpoints at once; this is what a replay wants.
//! 4. [`LogItem::decode`] gives an item a type, [`ItemBody`], whatever machine wrote it.
//!
//! Nothing is trusted: what is broken is a [`Fault`] with its place, after which the parser goes on as well as it can. Who
//! must not go on, as a replay, stops at the first. Memory is bounded by what one checkpoint may hold, whatever the log says.

mod assembler;
mod attribute_item;
mod body;
mod buffer_item;
mod checkpoint;
mod checkpoints;
#[cfg(test)]
mod decode_tests;
mod inode_item;
mod item;
mod order;
mod records;
#[cfg(test)]
mod tests;

pub use assembler::{Assembler, Fault, OpMeaning};
pub use attribute_item::AttributeItem;
pub use body::{DquotItem, ItemBody};
pub use buffer_item::{BufferItem, BufferRun};
pub use checkpoint::{Checkpoint, TransactionHeader};
pub use checkpoints::{Checkpoints, Step};
pub use inode_item::InodeItem;
pub use item::LogItem;
pub use order::Order;
pub(super) use order::in_order;
pub use records::{CrcState, Gap, GapKind, JournalRecord, Piece, Records};
