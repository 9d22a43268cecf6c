//! The changes that a transaction can make to blocks and inodes.

use std::ops::Range;
use std::sync::Arc;

use zerocopy::IntoBytes;

use super::buffer::Buffer;
use super::handle::Transaction;
use super::inode_item::InodeItem;
use super::store::Newer;
use crate::buffer::{BlockKind, Request};
use crate::error::{Error, Result};
use crate::forms::Inode;
use crate::geometry::Ino;
use crate::journal::BufferKey;
use crate::journal::ItemKey;
use crate::ondisk::log_buffer::CHUNK;
use crate::ondisk::log_inode::field;
use crate::ondisk::{Be32, OnDisk, RawDinode, RawDinodeCore, RawSuperblock, crc};

/// Which bytes of a new block the journal must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logged {
    /// All.
    All,
    /// All but these, which have no meaning yet.
    Except(Range<usize>),
}

impl Newer {
    /// Puts a buffer in the place of another, or none.
    pub(super) fn put_buffer(&mut self, key: BufferKey, buffer: Option<Buffer>) {
        self.bytes += buffer.as_ref().map_or(0, |buffer| buffer.bytes.len());
        let old = match buffer {
            Some(buffer) => self.buffers.insert(key, buffer),
            None => self.buffers.remove(&key),
        };
        self.bytes -= old.map_or(0, |old| old.bytes.len());
    }

    /// Puts an inode's item in the place of another, or none.
    pub(super) fn put_inode(&mut self, ino: Ino, item: Option<InodeItem>) {
        let old = match item {
            Some(item) => {
                self.clusters.entry(item.cluster).or_default().insert(ino);
                self.inodes.insert(ino, item)
            }
            None => self.inodes.remove(&ino),
        };
        if let (None, Some(old)) = (item, old)
            && let Some(inodes) = self.clusters.get_mut(&old.cluster)
        {
            inodes.remove(&ino);
            if inodes.is_empty() {
                self.clusters.remove(&old.cluster);
            }
        }
    }

    /// The checkpoint that is being collected holds this item from now on.
    pub(super) fn pin(&mut self, key: &ItemKey) {
        match key {
            ItemKey::Buffer(key) => {
                if let Some(buffer) = self.buffers.get_mut(key) {
                    buffer.pinned = true;
                }
            }
            ItemKey::Inode(ino) => {
                if let Some(item) = self.inodes.get_mut(ino) {
                    item.pinned = true;
                }
            }
            ItemKey::Dquot { .. } => {}
        }
    }
}

impl Transaction<'_> {
    fn remember_buffer(&mut self, key: BufferKey) {
        let now = self.store.newer.buffers.get(&key);
        self.before.buffers.entry(key).or_insert_with(|| now.cloned());
    }

    fn remember_cancelled(&mut self, key: BufferKey) {
        let now = self.store.newer.cancelled.get(&key);
        self.before.cancelled.entry(key).or_insert_with(|| now.cloned());
    }

    fn remember_inode(&mut self, ino: Ino) {
        let now = self.store.newer.inodes.get(&ino);
        self.before.inodes.entry(ino).or_insert_with(|| now.copied());
    }

    /// The bytes of a block that passes its checks, or that was changed before.
    ///
    /// # Errors
    /// `Io`; `Corrupt` with the first check that the block fails.
    pub fn bytes_of(&self, request: &Request) -> Result<Arc<[u8]>> {
        self.store.bytes_of(request)
    }

    /// An inode that passes its checks.
    ///
    /// # Errors
    /// `Io`; `Corrupt` with the first check that it fails.
    pub fn inode(&self, ino: Ino) -> Result<Inode> {
        self.store.inode(ino)
    }

    /// Replaces the contents of a block; the journal gets the parts in which they differ.
    ///
    /// # Errors
    /// As [`Transaction::bytes_of`]; `Internal` when the block has another length.
    pub fn write(&mut self, request: &Request, bytes: Vec<u8>) -> Result<()> {
        let key = BufferKey::of(request);
        let old = self.bytes_of(request)?;
        if old.len() != bytes.len() {
            return Err(Error::Internal(format!("a block of {} bytes is given {}", old.len(), bytes.len())));
        }
        if *old == *bytes {
            return Ok(());
        }
        self.remember_buffer(key);
        let mut buffer = match self.store.newer.buffers.get(&key) {
            Some(buffer) => buffer.clone(),
            None => Buffer::new(request.clone(), old.clone()),
        };
        buffer.logged.set_differences(&old, &bytes);
        buffer.bytes = bytes.into();
        buffer.request = request.clone();
        self.store.newer.put_buffer(key, Some(buffer));
        self.touched.push(ItemKey::Buffer(key));
        Ok(())
    }

    /// Changes the contents of a block in place; else as [`Transaction::write`].
    ///
    /// # Errors
    /// As [`Transaction::write`]; those of `change`.
    pub fn modify(&mut self, request: &Request, change: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
        let mut bytes = self.bytes_of(request)?.to_vec();
        change(&mut bytes)?;
        self.write(request, bytes)
    }

    /// Gives contents to a block that was just allocated. What stood there is not read.
    ///
    /// # Errors
    /// `Internal` when the length is not the block's.
    pub fn write_new(&mut self, request: &Request, bytes: Vec<u8>, logged: &Logged) -> Result<()> {
        let key = BufferKey::of(request);
        let len = bytes.len();
        self.put_new(request, bytes)?;
        if let Some(buffer) = self.store.newer.buffers.get_mut(&key) {
            match logged {
                Logged::All => buffer.logged.set_bytes(0..len),
                Logged::Except(gap) => {
                    buffer.logged.set_bytes(0..gap.start.min(len));
                    buffer.logged.set_bytes(gap.end.min(len)..len);
                }
            }
            buffer.in_full = request.kind == BlockKind::InodeCluster;
            buffer.allocation = buffer.in_full;
        }
        self.touched.push(ItemKey::Buffer(key));
        Ok(())
    }

    /// Gives contents to new inodes that an ICREATE item stands for: they are not logged themselves.
    ///
    /// # Errors
    /// `Internal` when the length is not the block's.
    pub fn write_ordered(&mut self, request: &Request, bytes: Vec<u8>) -> Result<()> {
        let key = BufferKey::of(request);
        self.put_new(request, bytes)?;
        if let Some(buffer) = self.store.newer.buffers.get_mut(&key) {
            buffer.allocation = true;
            buffer.pinned = true;
        }
        if self.store.ordered.insert(key) {
            self.before.ordered.insert(key);
        }
        Ok(())
    }

    fn put_new(&mut self, request: &Request, bytes: Vec<u8>) -> Result<()> {
        let key = BufferKey::of(request);
        if request.len() != bytes.len() as u64 {
            return Err(Error::Internal(format!("a block of {} bytes is given {}", request.len(), bytes.len())));
        }
        self.remember_buffer(key);
        self.remember_cancelled(key);
        self.store.newer.cancelled.remove(&key);
        let old = self.store.newer.buffers.get(&key);
        let mut buffer = Buffer::new(request.clone(), bytes.into());
        if let Some(old) = old {
            buffer.pinned = old.pinned;
            buffer.lsn = old.lsn;
            buffer.logged = old.logged.clone();
        }
        self.store.newer.put_buffer(key, Some(buffer));
        Ok(())
    }

    /// Drops a block that is freed: nothing that the journal holds of it will be brought back.
    pub fn invalidate(&mut self, request: &Request) {
        let key = BufferKey::of(request);
        self.remember_buffer(key);
        self.remember_cancelled(key);
        if request.kind == BlockKind::InodeCluster {
            let inodes = self.store.newer.clusters.get(&key).cloned().unwrap_or_default();
            for ino in inodes {
                self.remember_inode(ino);
                self.store.newer.put_inode(ino, None);
                self.touched.retain(|item| *item != ItemKey::Inode(ino));
                self.dropped.push(ino);
            }
        }
        self.store.newer.put_buffer(key, None);
        self.store.newer.cancelled.insert(key, request.clone());
        self.touched.push(ItemKey::Buffer(key));
    }

    /// Changes an inode. `fields` names the parts that change beside the core ([`field`]); `change` gets all its bytes.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when the cluster of the inode fails its checks; those of `change`.
    pub fn log_inode(&mut self, ino: Ino, fields: u32, change: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
        let (request, offset) = self.store.cluster(ino)?;
        let key = BufferKey::of(&request);
        self.change_inode_bytes(&request, offset, change)?;
        self.remember_inode(ino);
        let old = self.store.newer.inodes.get(&ino).copied();
        let item = InodeItem {
            fields: old.map_or(0, |old| old.fields) | fields | field::CORE,
            pinned: old.is_some_and(|old| old.pinned),
            lsn: old.and_then(|old| old.lsn),
            cluster: key,
            offset,
        };
        self.store.newer.put_inode(ino, Some(item));
        self.touched.push(ItemKey::Inode(ino));
        Ok(())
    }

    /// Sets the next inode of the unlinked list that `ino` is on; it is logged with the cluster, not with the inode.
    ///
    /// # Errors
    /// As [`Transaction::log_inode`].
    pub fn log_next_unlinked(&mut self, ino: Ino, next: u32) -> Result<()> {
        let (request, offset) = self.store.cluster(ino)?;
        self.change_inode_bytes(&request, offset, |bytes| {
            let core =
                RawDinodeCore::prefix_mut(bytes).ok_or_else(|| Error::Internal("an inode has a core".to_owned()))?;
            core.0.next_unlinked = Be32::new(next);
            Ok(())
        })?;
        let key = BufferKey::of(&request);
        let at = offset as usize + std::mem::offset_of!(RawDinodeCore, next_unlinked);
        if let Some(buffer) = self.store.newer.buffers.get_mut(&key) {
            buffer.logged.set(at / CHUNK);
        }
        self.touched.push(ItemKey::Buffer(key));
        Ok(())
    }

    fn change_inode_bytes(
        &mut self,
        request: &Request,
        offset: u32,
        change: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let key = BufferKey::of(request);
        let old = self.bytes_of(request)?;
        let mut bytes = old.to_vec();
        let size = self.store.geometry().inodes.size as usize;
        let start = offset as usize;
        let inode = bytes.get_mut(start..start + size);
        let inode = inode.ok_or_else(|| Error::Internal("an inode lies outside its cluster".to_owned()))?;
        change(inode)?;
        if self.store.geometry().features.has_crc() {
            crc::stamp(inode, RawDinode::CRC_OFFSET);
        }
        self.remember_buffer(key);
        let mut buffer = match self.store.newer.buffers.get(&key) {
            Some(buffer) => buffer.clone(),
            None => Buffer::new(request.clone(), old),
        };
        buffer.bytes = bytes.into();
        self.store.newer.put_buffer(key, Some(buffer));
        Ok(())
    }

    /// Changes the superblock.
    ///
    /// # Errors
    /// As [`Transaction::write`].
    pub fn log_superblock(&mut self, change: impl FnOnce(&mut RawSuperblock)) -> Result<()> {
        let request = self.store.superblock_request();
        let mut superblock = self.store.superblock;
        change(&mut superblock);
        self.modify(&request, |bytes| {
            bytes[..RawSuperblock::SIZE].copy_from_slice(superblock.as_bytes());
            Ok(())
        })?;
        self.before.superblock.get_or_insert(self.store.superblock);
        self.store.superblock = superblock;
        Ok(())
    }
}
