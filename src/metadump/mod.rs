//! Metadata dumps: what of a filesystem is metadata, written to a stream, and put back from there.
//!
//! | file | what it holds |
//! |---|---|
//! | `dump` | a dump from beginning to end: its options, its order |
//! | `group` | headers and btrees of an allocation group |
//! | `tree` | the blocks of a btree that may be damaged |
//! | `chunk`, `inode` | inodes, and what hangs from their forks |
//! | `object` | the extents of a fork, and the files whose contents are metadata |
//! | `directory`, `attribute`, `symlink` | what of these goes into the dump, with stale bytes and names taken out |
//! | `index` | the hash index of directories and attributes, when hashes have changed |
//! | `stale` | bytes that mean nothing |
//! | `obscure` | names that stand for others |
//! | `log` | the journal |
//! | `segment`, `order` | pieces of a dump, made by many threads and written in one order |
//! | `container` | the two formats, written |
//! | `dump_head`, `stream` | the two formats, read |
//! | `restore`, `restored_superblock` | what is in them, put back onto devices |
//!
//! Which blocks are metadata is decided as xfs_metadump decides it, so that a dump restored is the same bytes. Nothing
//! is believed that a block says: what is not sound costs only itself.

mod attribute;
mod chunk;
mod container;
mod directory;
mod dump;
mod dump_head;
mod group;
mod index;
mod inode;
mod log;
mod object;
mod obscure;
mod order;
mod restore;
mod restored_superblock;
mod segment;
mod stale;
mod stream;
mod symlink;
mod tree;

pub use container::Format;
pub use dump::{DumpOptions, Dumped, dump};
pub use dump_head::{DumpInfo, Sizes};
pub use restore::{DumpReader, Target, Targets};
