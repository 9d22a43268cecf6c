//! What the engine writes, judged from outside: xfs_repair and xfs_logprint of xfsprogs 7.2, and this machine's kernel.

#![allow(clippy::print_stdout, reason = "a test's report is its output")]

#[path = "../oracle/reference.rs"]
#[allow(dead_code)] // shared with other tests, which use more of it
mod reference;

mod attributes;
mod crash;
mod directory;
mod image;
mod inodes;
mod mapping;
mod model;
mod random;
mod sharing;
mod space;
mod store;
