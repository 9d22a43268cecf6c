//! Blocks written to their places once the log holds them.

use std::collections::BTreeSet;

use super::ail::Kept;
use super::store::Store;
use crate::buffer::BlockKind;
use crate::error::{Error, Result};
use crate::geometry::{Ino, Lsn};
use crate::journal::BufferKey;
use crate::ondisk::{OnDisk, RawDinode, crc};

impl Store {
    /// Writes blocks to their places that checkpoints up to `until` hold, or all. What has changed since its checkpoint was
    /// written stays until the next one is. The log writer makes these blocks durable before it overwrites what held them.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when a block would not pass its checks: the log still holds it.
    pub fn write_back(&mut self, until: Option<Lsn>) -> Result<()> {
        let due = self.ail.items().take_while(|(lsn, _)| until.is_none_or(|until| *lsn <= until));
        let keys: BTreeSet<BufferKey> = due
            .filter_map(|(_, kept)| match kept {
                Kept::Buffer(key) => Some(key),
                Kept::Inode(ino) => self.newer.inodes.get(&ino).map(|item| item.cluster),
                Kept::Intent(_) => None,
            })
            .collect();
        let mut written = Vec::with_capacity(keys.len());
        for key in keys {
            if self.write_buffer(key)? {
                written.push(key);
            }
        }
        for key in written {
            self.forget(key);
        }
        Ok(())
    }

    /// Writes a block, unless a part of it has changed since the log took it.
    fn write_buffer(&mut self, key: BufferKey) -> Result<bool> {
        let Some(buffer) = self.newer.buffers.get(&key) else { return Ok(false) };
        let inodes: Vec<Ino> = self.newer.clusters.get(&key).into_iter().flatten().copied().collect();
        let pinned = |ino: &Ino| self.newer.inodes.get(ino).is_some_and(|item| item.pinned);
        if buffer.pinned || inodes.iter().any(pinned) {
            return Ok(false);
        }
        let mut bytes = buffer.bytes.to_vec();
        let lsn = if buffer.request.kind == BlockKind::InodeCluster { None } else { buffer.lsn };
        for ino in &inodes {
            self.complete_inode(*ino, &mut bytes)?;
        }
        self.cache.write(buffer.request.clone(), bytes, lsn)?;
        Ok(true)
    }

    /// Gives an inode the number of the checkpoint that holds it, and verifies it.
    fn complete_inode(&self, ino: Ino, cluster: &mut [u8]) -> Result<()> {
        let defect = || Error::Internal("an inode lies outside its cluster".to_owned());
        let item = self.newer.inodes.get(&ino).ok_or_else(defect)?;
        let size = self.geometry().inodes.size as usize;
        let bytes =
            cluster.get_mut(item.offset as usize..).and_then(|bytes| bytes.get_mut(..size)).ok_or_else(defect)?;
        if self.geometry().features.has_crc() {
            let (raw, _) = RawDinode::prefix_mut(bytes).ok_or_else(defect)?;
            if let Some(lsn) = item.lsn {
                raw.lsn.set(lsn.0);
            }
            crc::stamp(bytes, RawDinode::CRC_OFFSET);
        }
        self.cache.verifier().verify_inode(ino, bytes).into_result()
    }

    /// A block is in its place: the log need not keep it.
    fn forget(&mut self, key: BufferKey) {
        for ino in self.newer.clusters.get(&key).cloned().unwrap_or_default() {
            self.newer.put_inode(ino, None);
            self.ail.remove(Kept::Inode(ino));
        }
        self.newer.put_buffer(key, None);
        self.ail.remove(Kept::Buffer(key));
    }
}
