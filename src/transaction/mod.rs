//! Changes of a filesystem in transactions (Linux `fs/xfs/xfs_trans.c`, `xfs_buf_item.c`, `xfs_inode_item.c`, `xfs_trans_ail.c`).
//!
//! | file | what it holds |
//! |---|---|
//! | `store` | a filesystem opened for change: its devices, the blocks that are newer in memory, counters, groups |
//! | `view` | reading through what is newer in memory, so that the walkers of `forms` see it |
//! | `handle` | a transaction: what it reserved, what it changed, and the way back |
//! | `change` | the changes that a transaction can make to blocks and inodes |
//! | `deferred` | deferred operations, as data |
//! | `buffer`, `inode_item`, `chunk_map` | a block or inode that is newer in memory, and which parts of it the journal must hold |
//! | `space` | room in the log: what a transaction needs, and where it comes from |
//! | `push` | a checkpoint written to the log |
//! | `ail` | what the log must keep: items by the checkpoint that holds them |
//! | `write_back` | blocks written to their place once the log holds them |
//! | `counters` | the superblock's counters |
//! | `group` | what is known of an allocation group in memory alone |
//!
//! Everything happens in one thread: a [`Transaction`] borrows its [`Store`]. Contents of blocks have one copy, which a
//! transaction replaces; what it replaced is kept until it commits, so that it can be cancelled at any time. The journal
//! takes the contents as they stand when a checkpoint is written, always between two transactions.

mod ail;
mod buffer;
mod change;
mod chunk_map;
mod counters;
mod deferred;
mod format;
mod group;
mod handle;
mod inode_item;
mod push;
mod space;
mod store;
mod view;
mod write_back;

pub use change::Logged;
pub use counters::{CounterChange, Counters};
pub use deferred::{AttributeChange, AttributeProgress, Deferrals, Deferred, DeferredKind, FreedExtent, PendingIntent};
pub use group::{BusyExtents, Group, Hold, Holdings};
pub use handle::Transaction;
pub use store::{Store, StoreOptions};
