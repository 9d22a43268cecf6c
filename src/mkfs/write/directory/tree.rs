//! Nodes of the hash btree over the leaves of a large directory. Source: Linux `fs/xfs/libxfs/xfs_da_btree.c`.

use zerocopy::{FromZeros, IntoBytes};

use super::damaged;
use crate::error::Result;
use crate::geometry::Ino;
use crate::mkfs::write::shape::Shape;
use crate::ondisk::da_block::{
    DA_NODE_MAGIC, DA3_NODE_MAGIC, RawDa3Blkinfo, RawDa3NodeHdr, RawDaBlkinfo, RawDaNodeEntry, RawDaNodeHdr,
};
use crate::ondisk::{OnDisk, crc};

/// A node.
pub(super) struct NodeBlock<'a> {
    /// The directory block.
    pub bytes: &'a mut [u8],
    crc: bool,
}

impl<'a> NodeBlock<'a> {
    /// The node in `bytes`.
    pub fn new(shape: &Shape, bytes: &'a mut [u8]) -> Self {
        NodeBlock { bytes, crc: shape.layout.features.crc }
    }

    /// Whether the block is a node, and not a leaf.
    pub fn is_node(bytes: &[u8]) -> bool {
        let magic = RawDaBlkinfo::prefix(bytes).map(|(info, _)| info.magic.get());
        matches!(magic, Some(DA_NODE_MAGIC | DA3_NODE_MAGIC))
    }

    /// Makes the block, which lies at byte `offset` of the device, an empty node. What is behind its header stays.
    pub fn init(&mut self, shape: &Shape, owner: Ino, offset: u64, level: u16) -> Result<()> {
        if self.crc {
            let (head, _) = RawDa3NodeHdr::prefix_mut(self.bytes).ok_or_else(damaged)?;
            *head = RawDa3NodeHdr::new_zeroed();
            head.info.hdr.magic.set(DA3_NODE_MAGIC);
            head.info.blkno.set(offset / 512);
            head.info.owner.set(owner.0);
            head.info.uuid = *shape.layout.uuid.as_bytes();
            head.level.set(level);
        } else {
            let (head, _) = RawDaNodeHdr::prefix_mut(self.bytes).ok_or_else(damaged)?;
            *head = RawDaNodeHdr::new_zeroed();
            head.info.magic.set(DA_NODE_MAGIC);
            head.level.set(level);
        }
        Ok(())
    }

    /// Level above the leaves.
    pub fn level(&self) -> u16 {
        let level = if self.crc {
            RawDa3NodeHdr::prefix(self.bytes).map(|(head, _)| head.level.get())
        } else {
            RawDaNodeHdr::prefix(self.bytes).map(|(head, _)| head.level.get())
        };
        level.unwrap_or(0)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        let count = if self.crc {
            RawDa3NodeHdr::prefix(self.bytes).map(|(head, _)| head.count.get())
        } else {
            RawDaNodeHdr::prefix(self.bytes).map(|(head, _)| head.count.get())
        };
        usize::from(count.unwrap_or(0))
    }

    /// Sets the number of entries.
    pub fn set_len(&mut self, len: usize) -> Result<()> {
        let len = u16::try_from(len).map_err(|_| damaged())?;
        if self.crc {
            RawDa3NodeHdr::prefix_mut(self.bytes).ok_or_else(damaged)?.0.count.set(len);
        } else {
            RawDaNodeHdr::prefix_mut(self.bytes).ok_or_else(damaged)?.0.count.set(len);
        }
        Ok(())
    }

    /// Where the entries begin.
    pub fn first(&self) -> usize {
        if self.crc { RawDa3NodeHdr::SIZE } else { RawDaNodeHdr::SIZE }
    }

    /// Entries that a node holds.
    pub fn capacity(&self) -> usize {
        (self.bytes.len() - self.first()) / RawDaNodeEntry::SIZE
    }

    /// Entry `index`.
    pub fn get(&self, index: usize) -> Result<RawDaNodeEntry> {
        let bytes = self.bytes.get(self.first() + index * RawDaNodeEntry::SIZE..).ok_or_else(damaged)?;
        RawDaNodeEntry::prefix(bytes).map(|(entry, _)| *entry).ok_or_else(damaged)
    }

    /// Overwrites entry `index`.
    pub fn set(&mut self, index: usize, entry: RawDaNodeEntry) -> Result<()> {
        let start = self.first() + index * RawDaNodeEntry::SIZE;
        let slot = self.bytes.get_mut(start..start + RawDaNodeEntry::SIZE).ok_or_else(damaged)?;
        slot.copy_from_slice(entry.as_bytes());
        Ok(())
    }

    /// Puts an entry before entry `index`.
    pub fn insert(&mut self, index: usize, entry: RawDaNodeEntry) -> Result<()> {
        let len = self.len();
        let start = self.first() + index * RawDaNodeEntry::SIZE;
        let end = self.first() + len * RawDaNodeEntry::SIZE;
        if index < len {
            self.bytes.copy_within(start..end, start + RawDaNodeEntry::SIZE);
        }
        self.set(index, entry)?;
        self.set_len(len + 1)
    }

    /// The entry below which `hash` belongs: the first whose hash is not less, or the last.
    pub fn position(&self, hash: u32) -> Result<usize> {
        for index in 0..self.len() {
            if self.get(index)?.hashval.get() >= hash {
                return Ok(index);
            }
        }
        self.len().checked_sub(1).ok_or_else(damaged)
    }

    /// The greatest hash below the node.
    pub fn last_hash(&self) -> Result<u32> {
        Ok(self.get(self.len().checked_sub(1).ok_or_else(damaged)?)?.hashval.get())
    }

    /// Computes the checksum.
    pub fn seal(&mut self) {
        if self.crc {
            crc::stamp(self.bytes, RawDa3Blkinfo::CRC_OFFSET);
        }
    }
}

/// The links of a leaf or node.
pub(super) fn links(bytes: &mut [u8]) -> Result<&mut RawDaBlkinfo> {
    RawDaBlkinfo::prefix_mut(bytes).map(|(info, _)| info).ok_or_else(damaged)
}
