//! The writer: from a [`Layout`](super::Layout) to the bytes on the devices.

mod attribute;
mod blocks;
mod chunk;
mod directory;
mod extents;
mod format;
#[cfg(test)]
mod golden;
mod group;
mod inode;
mod journal;
mod leaf;
mod maker;
mod metadir;
mod realtime;
mod root;
mod shape;
mod space;
mod superblock;
mod tree;
mod tree_entries;

pub use format::{Report, Unfinished, format, prepare};
