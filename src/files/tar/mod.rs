//! A tree of files as an archive in the pax format (POSIX.1-2017, `pax`, "pax Interchange Format"), with the records that
//! GNU tar and libarchive know for what POSIX has no words: extended attributes (`SCHILY.xattr.`), access control lists
//! (`SCHILY.acl.`) and sparse files (`GNU.sparse.`, version 1.0).
//!
//! | file | what it holds |
//! |---|---|
//! | `header` | the block of 512 bytes that stands before each file |
//! | `records` | extended header records |
//! | `sparse` | where the data of a file with holes lie, and the map that tells |
//! | `archive` | the files of a tree, one after the other |

mod archive;
mod header;
mod records;
mod sparse;

pub use archive::{Archive, Archived};
