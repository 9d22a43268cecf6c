//! Inodes allocated and freed, and the lists of those without a name (Linux `libxfs/xfs_ialloc.c`,
//! `libxfs/xfs_inode_util.c`).
//!
//! | file | what it holds |
//! |---|---|
//! | `core` | the core of an inode changed in place |
//! | `allocate` | a free inode found or made |
//! | `chunk` | new inodes made |
//! | `tree`, `group` | the btrees of a group's inodes, and its numbers of inodes |
//! | `times` | timestamps in the form that an inode's flags ask for |
//! | `initial` | the core of a new inode |
//! | `free` | an inode freed |
//! | `unlinked` | the lists of inodes without a name |

mod allocate;
mod chunk;
mod core;
mod free;
mod group;
mod initial;
mod times;
mod tree;
mod unlinked;

pub use self::core::change;
pub use allocate::allocate;
pub use free::free;
pub(super) use initial::note_attributes;
pub use initial::{NewInode, create};
pub use unlinked::{unlinked_add, unlinked_remove};
