//! Inodes allocated and freed, and the lists of those without a name (Linux `libxfs/xfs_ialloc.c`,
//! `libxfs/xfs_inode_util.c`).
//!
//! | file | what it holds |
//! |---|---|
//! | `allocate` | a free inode found or made |
//! | `initial` | the core of a new inode |
//! | `free` | an inode freed |
//! | `unlinked` | the lists of inodes without a name |

mod allocate;
mod free;
mod initial;
mod unlinked;

pub use allocate::allocate;
pub use free::free;
pub use initial::{NewInode, create};
pub use unlinked::{unlinked_add, unlinked_remove};
