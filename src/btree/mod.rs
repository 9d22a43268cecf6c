//! One engine for the nine btrees of XFS.
//!
//! | file | what it holds |
//! |---|---|
//! | `layout` | where records, keys and pointers lie in a block or in a root inside an inode |
//! | `key` | how the records of each tree are ordered, and what key stands for them |
//! | `record_check` | what the records of each tree must say |
//! | `node` | a block taken apart, and put together again |
//! | `tree` | which tree: its kind, owner and root |
//! | `walk` | every block and record of a tree that may be damaged, with all that is wrong |
//! | `cursor` | records of a sound tree from a key on, and those that overlap a range |
//! | `position` | a place among the records of a sound tree, from which one can go both ways |
//! | `store` | where a tree that is changed keeps its blocks |
//! | `bulk_load` | a tree from sorted records |
//! | `in_place` | changes of one leaf, which most are |
//! | `insert`, `delete` | changes of a tree, with splits, merges and a root that moves |

mod bulk_load;
mod cursor;
#[cfg(test)]
mod damage;
mod delete;
mod edit;
mod in_place;
mod insert;
mod key;
mod layout;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // test records are small
mod model;
mod node;
mod position;
mod record_check;
mod store;
mod tree;
mod walk;

pub use bulk_load::{Fill, bulk_load, bulk_size};
pub use cursor::{Cursor, NodeSource, overlapping};
pub use edit::{EditRoot, Editor};
pub use key::{KeyBytes, SortKey};
pub use layout::Layout;
pub use node::{Item, Node, NodeBuf};
pub use position::Position;
pub use record_check::{RecordContext, check_record};
pub use store::{BlockStore, MemoryStore, TreeIdentity};
pub use tree::{ForkContents, Root, Tree, TreeOwner};
pub use walk::{Step, Visit, Walked, walk};
