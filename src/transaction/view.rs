//! Reading through what is newer in memory, so that the walkers of `forms` see it.

use std::sync::Arc;

use super::handle::Transaction;
use super::inode_item::cluster_of;
use super::store::Store;
use crate::buffer::{Block, BlockKind, Request};
use crate::error::{Error, Result, Verdict};
use crate::forms::{BlockSource, Inode};
use crate::geometry::{Geometry, Ino};
use crate::journal::BufferKey;

impl Store {
    /// The bytes that are newer in memory for a request of the very block, or of part of an inode cluster.
    fn newer_bytes(&self, request: &Request) -> Option<Arc<[u8]>> {
        if let Some(buffer) = self.newer.buffers.get(&BufferKey::of(request)) {
            return Some(buffer.bytes.clone());
        }
        if request.kind != BlockKind::InodeCluster {
            return None;
        }
        let geometry = self.geometry();
        let ino = geometry.daddr_fsb(request.daddr()).and_then(|fsb| geometry.fsb_ino(fsb))?;
        let (cluster, offset) = cluster_of(geometry, ino)?;
        let buffer = self.newer.buffers.get(&BufferKey::of(&cluster))?;
        let start = usize::try_from(offset).ok()?;
        let len = usize::try_from(request.len()).ok()?;
        buffer.bytes.get(start..start.checked_add(len)?).map(Arc::from)
    }

    /// The bytes of a block that passes its checks, or that is newer in memory.
    ///
    /// # Errors
    /// `Io`; `Corrupt` with the first check that it fails.
    pub fn bytes_of(&self, request: &Request) -> Result<Arc<[u8]>> {
        match self.newer_bytes(request) {
            Some(bytes) => Ok(bytes),
            None => Ok(Arc::from(self.cache.read_sound(request.clone())?.bytes())),
        }
    }

    /// An inode that passes its checks.
    ///
    /// # Errors
    /// `Io`; `Corrupt` with the first check that it fails.
    pub fn inode(&self, ino: Ino) -> Result<Inode> {
        let inode = Inode::read(self, ino)?;
        inode.verdict.clone().into_result()?;
        Ok(inode)
    }

    /// The cluster in which an inode lies, and where in it, in bytes.
    ///
    /// # Errors
    /// `Usage` when no inode can have this number.
    pub fn cluster(&self, ino: Ino) -> Result<(Request, u32)> {
        let outside = || Error::Usage(format!("no inode can have the number {ino}"));
        cluster_of(self.geometry(), ino).ok_or_else(outside)
    }
}

impl BlockSource for Store {
    fn geometry(&self) -> &Geometry {
        Store::geometry(self)
    }

    fn read(&self, request: Request) -> Result<Block> {
        match self.newer_bytes(&request) {
            Some(bytes) => Ok(Block::in_memory(request, bytes)),
            None => self.cache.read(request),
        }
    }

    /// An inode that is being changed may be anything between two steps: it is verified when it is written to its place.
    fn verify_inode(&self, ino: Ino, bytes: &[u8]) -> Verdict {
        if self.newer.inodes.contains_key(&ino) {
            return Verdict::new();
        }
        self.cache.verifier().verify_inode(ino, bytes)
    }
}

impl BlockSource for Transaction<'_> {
    fn geometry(&self) -> &Geometry {
        self.store().geometry()
    }

    fn read(&self, request: Request) -> Result<Block> {
        BlockSource::read(self.store(), request)
    }

    fn verify_inode(&self, ino: Ino, bytes: &[u8]) -> Verdict {
        BlockSource::verify_inode(self.store(), ino, bytes)
    }
}
