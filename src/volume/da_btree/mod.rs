//! The hash btree over the leaves of directories and attribute forks, changed (Linux `libxfs/xfs_da_btree.c`).
//!
//! | file | what it holds |
//! |---|---|
//! | `file` | the blocks of a fork: read, written, added and taken out |
//! | `node` | the bytes of nodes, and the links of all blocks |
//! | `path` | the way from the root to a leaf |
//! | `split` | blocks added behind a leaf, and what that makes of the nodes above |
//! | `join` | leaves that have become empty or small, and what that makes of the nodes above |
//! | `swap` | a block taken out when there is no other for the mapping that is split |
//!
//! What a leaf holds is known to who uses the tree: [`Leaves`].

mod file;
mod join;
mod node;
mod path;
mod split;
mod swap;

pub(super) use file::{DaFile, first_unused};
pub(super) use join::{Leaves, join};
pub(super) use node::is_node;
pub(super) use path::Path;
pub(super) use split::{NewLeaf, install, lift_root};
