//! Names added to directories, taken out and replaced, in every form (Linux `libxfs/xfs_dir2.c` and the files beside it).
//!
//! | file | what it holds |
//! |---|---|
//! | `change` | which form a directory has, and which it takes |
//! | `short` | directories in the inode |
//! | `block` | directories of one block |
//! | `leaf` | directories of several data blocks and one leaf |
//! | `node` | directories with more leaves, and a free index |
//! | `data` | the bytes of data blocks |
//! | `index` | the bytes of leaves and of the free index |

mod block;
mod change;
mod data;
mod index;
mod leaf;
mod node;
mod short;
#[cfg(test)]
mod tests;

pub(super) use change::leave_inode;
pub use change::{add, init, remove, replace};

use crate::geometry::Ino;

/// What a new entry of a directory says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewEntry<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The inode.
    pub ino: Ino,
    /// Its type, as entries have it.
    pub ftype: u8,
}
