//! A block that is newer in memory than on disk.

use std::sync::Arc;

use super::chunk_map::ChunkMap;
use crate::buffer::Request;
use crate::geometry::Lsn;

/// A block that is newer in memory than on disk.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub(super) request: Request,
    pub(super) bytes: Arc<[u8]>,
    /// What changed since the block was last written to its place.
    pub(super) logged: ChunkMap,
    /// It is part of the checkpoint that is being collected.
    pub(super) pinned: bool,
    /// New inodes: until they are in place, the log must keep the checkpoint that made them (`xfs_buf_item_committed`).
    pub(super) allocation: bool,
    /// New inodes whose contents the checkpoint being collected logs in full.
    pub(super) in_full: bool,
    /// The checkpoint that holds the changes.
    pub(super) lsn: Option<Lsn>,
}

impl Buffer {
    pub(super) fn new(request: Request, bytes: Arc<[u8]>) -> Self {
        Buffer {
            request,
            bytes,
            logged: ChunkMap::default(),
            pinned: false,
            allocation: false,
            in_full: false,
            lsn: None,
        }
    }
}
