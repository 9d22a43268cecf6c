//! Walkers over raw blocks: inodes, forks, extents, directories, attributes.
//!
//! They work on filesystems that cannot be opened. Damage comes out as an error in its place and the walk goes on
//! behind it; every walk ends, and takes memory in proportion to the blocks that it really found.

mod attribute;
mod da_btree;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // test blocks are small
mod damage;
mod dir_lookup;
mod directory;
pub mod encode;
mod extents;
mod file_blocks;
mod fork;
mod inode;
mod inode_chunks;
mod metadir;
mod parent_pointer;
mod posix_acl;
mod quota;
mod realtime_file;
mod source;
mod stored_data;
mod symlink;

pub use attribute::{AttrForm, AttrValue, Attribute, Attributes, VisitAttribute};
pub use dir_lookup::Found;
pub use directory::{DirEntry, DirForm, Directory, VisitEntry};
pub use extents::{Extents, find_extent};
pub use file_blocks::{map_file_block, read_file_block};
pub use fork::{Fork, ForkForm, ForkKind};
pub use inode::{FileType, Inode};
pub use inode_chunks::{ChunkInode, ChunkInodes, VisitChunk, for_each_inode_chunk};
pub use metadir::{RtGroupFile, metadir_lookup, quota_file, rtgroup_file};
pub use parent_pointer::{ParentPointer, for_each_parent};
pub use posix_acl::{AclEntry, AclSubject, PosixAcl};
pub use quota::{Dquot, QuotaKind, for_each_dquot};
pub use realtime_file::{RtFileKind, RtWords, for_each_rt_words};
pub use source::{BlockSource, Piece, request_of};
pub use stored_data::{StoredData, StoredRange};
pub use symlink::read_symlink;
