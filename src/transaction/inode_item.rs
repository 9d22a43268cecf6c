//! An inode that is newer in memory than on disk. Its bytes stand in the buffer of its cluster.

use crate::buffer::{BlockKind, Request};
use crate::geometry::{AgBlock, Geometry, Ino, Lsn};

use crate::journal::BufferKey;

/// An inode that is newer in memory than on disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct InodeItem {
    /// Parts that changed since the inode was last written to its place ([`crate::ondisk::log_inode::field`]).
    pub(super) fields: u32,
    /// It is part of the checkpoint that is being collected.
    pub(super) pinned: bool,
    /// The checkpoint that holds the changes.
    pub(super) lsn: Option<Lsn>,
    /// The cluster.
    pub(super) cluster: BufferKey,
    /// Where in it the inode starts, in bytes.
    pub(super) offset: u32,
}

/// The cluster in which inode `ino` is read and written, and where in it the inode starts, in bytes (Linux `xfs_imap`).
/// `None` for a number that no inode can have.
///
/// Without alignment (old version 4 filesystems) a block is a cluster, since only the inode btree could tell more.
pub(super) fn cluster_of(geometry: &Geometry, ino: Ino) -> Option<(Request, u32)> {
    let parts = geometry.ino_parts(ino)?;
    let (agno, agbno) = geometry.fsb_parts(geometry.ino_fsb(ino)?)?;
    let inodes = &geometry.inodes;
    let aligned = inodes.cluster_align > 1 && inodes.cluster_align.is_power_of_two();
    let blocks = if aligned || inodes.cluster_blocks == 1 { inodes.cluster_blocks.max(1) } else { 1 };
    let chunk = if aligned { agbno.0 & !(inodes.cluster_align - 1) } else { agbno.0 };
    let start = chunk + (agbno.0 - chunk) / blocks * blocks;
    let daddr = geometry.ag_daddr(agno, AgBlock(start))?;
    let request = Request::of_len(BlockKind::InodeCluster, daddr, blocks.checked_mul(geometry.blocksize)?);
    let offset = (agbno.0 - start) * geometry.blocksize + (parts.index << inodes.log);
    Some((request, offset))
}
