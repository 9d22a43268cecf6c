//! What is done to an opened filesystem, each step in a transaction (`fs/xfs/libxfs` of Linux): functions on a
//! [`crate::transaction::Transaction`].
//!
//! | module | what it holds |
//! |---|---|
//! | [`space`] | blocks allocated and freed, reverse mappings, reference counts |
//! | [`finish`] | deferred operations finished |
//! | [`mapping`] | which blocks a fork has, and how it gets and loses them |
//! | [`inodes`] | inodes allocated and freed, and the lists of those without a name |
//! | [`directory`] | names added to directories, taken out and replaced |
//! | [`attributes`] | extended attributes and parent pointers |
//! | [`operation`] | files created, linked, moved, changed and removed: whole operations |
//! | [`symlink`] | targets of symbolic links |

pub mod attributes;
mod da_btree;
pub mod directory;
pub mod finish;
pub mod inodes;
pub mod mapping;
pub mod operation;
pub mod space;
pub mod symlink;
