//! Blocks of metadata: read, verified, cached, and stamped when they are written.
//!
//! A [`Request`] says what is expected where; [`BlockCache::read`] gives the [`Block`] as it stands and a verdict with
//! every check that it fails. Who needs a sound block demands one with [`Block::sound`]; tools that work on damaged
//! filesystems look at the verdict and go on. Which checks apply follows from the request and from the features of the
//! superblock, never from the block itself.
//!
//! The checks run in one order, in [`Verifier::verify`] alone: magic number, CRC, UUID, owner, own address, LSN against
//! the log, then ranges. The ranges of each structure are in the file named for it; they are those of the verifiers of
//! Linux 7.3 (`fs/xfs/libxfs`).

mod agf;
mod agfl;
mod agi;
mod attributes;
mod block;
mod block_lsn;
mod btree_block;
mod cache;
mod checks;
mod dinode;
mod directory;
mod dquot;
mod identity;
mod inode_cluster;
mod kind;
#[cfg(test)]
mod mutations;
mod realtime;
mod remote;
mod superblock;
mod superblock_read;
mod superblock_search;
mod verifier;

pub use block::{Block, SoundBlock, Verified};
pub use block_lsn::block_lsn;
pub use cache::BlockCache;
pub use kind::{BlockKind, Fragment, Owner, Request};
pub use superblock_read::{SuperblockRead, read_superblock};
pub use superblock_search::{FoundSuperblock, Primary, SearchEffort, find_superblock};
pub use verifier::Verifier;
