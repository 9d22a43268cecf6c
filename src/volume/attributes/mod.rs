//! Extended attributes set and removed, in every form, and parent pointers, which are attributes (Linux `libxfs/xfs_attr.c`
//! and the files beside it, `libxfs/xfs_parent.c`).
//!
//! | file | what it holds |
//! |---|---|
//! | `set` | attributes set and removed, at once or deferred, and what that reserves |
//! | `step` | a deferred change, one transaction after the other |
//! | `parent` | parent pointers |
//! | `wanted` | which attribute is meant |
//! | `fork` | where the attribute fork begins |
//! | `short` | attributes in the inode |
//! | `leaf` | the bytes of leaves |
//! | `tree` | leaves in the fork |
//! | `remote` | values in blocks of their own |
//! | `release` | the fork of an inode that is about to be freed |

mod fork;
mod leaf;
mod parent;
mod release;
mod remote;
mod set;
mod short;
mod step;
#[cfg(test)]
mod tests;
mod tree;
mod wanted;

pub use fork::add_fork;
pub use parent::{parent_add, parent_remove, parent_replace};
pub use release::release;
pub use set::{enable_logging, remove, remove_reservation, set, set_reservation, value_blocks};
pub use step::step;

use crate::ondisk::attr_short::AttrNamespace;

/// An attribute's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeName<'a> {
    /// Namespace.
    pub namespace: AttrNamespace,
    /// The name in it.
    pub name: &'a [u8],
}
