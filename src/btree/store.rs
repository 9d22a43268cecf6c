//! Where a tree that is changed keeps its blocks.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::geometry::{Geometry, Ino};
use crate::ondisk::RawUuid;

/// Space for the blocks of one tree.
pub trait BlockStore {
    /// Space for a block: its pointer.
    ///
    /// # Errors
    /// `Usage` when there is none left.
    fn allocate(&mut self) -> Result<u64>;

    /// Gives the space of a block back.
    ///
    /// # Errors
    /// Those of the store.
    fn free(&mut self, pointer: u64) -> Result<()>;

    /// The contents of a block.
    ///
    /// # Errors
    /// Those of the store.
    fn read(&self, pointer: u64) -> Result<Vec<u8>>;

    /// Replaces the contents of a block.
    ///
    /// # Errors
    /// Those of the store.
    fn write(&mut self, pointer: u64, bytes: Vec<u8>) -> Result<()>;

    /// Disk address of a block, in units of 512 bytes: version 5 stores it in the block.
    fn daddr(&self, pointer: u64) -> u64;

    /// Whether blocks must have their CRC when they are given to it; else it is filled in later.
    fn wants_crc(&self) -> bool {
        true
    }
}

/// What every block of a tree states about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeIdentity {
    /// Version 5: blocks have CRC, UUID, owner and address.
    pub crc: bool,
    /// UUID of the metadata.
    pub uuid: RawUuid,
    /// Group or inode.
    pub owner: u64,
}

impl TreeIdentity {
    /// Of a tree of a group, or of an inode.
    pub fn new(geometry: &Geometry, owner: super::tree::TreeOwner) -> Self {
        let owner = match owner {
            super::tree::TreeOwner::Group(agno) => u64::from(agno.0),
            super::tree::TreeOwner::Inode(Ino(ino)) => ino,
        };
        TreeIdentity { crc: geometry.features.has_crc(), uuid: geometry.meta_uuid, owner }
    }
}

/// A store in memory, whose pointers count up from a first one.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    blocks: BTreeMap<u64, Vec<u8>>,
    next: u64,
    /// Units of 512 bytes in a block.
    basic_blocks: u64,
}

impl MemoryStore {
    /// An empty store whose first block is `first`; blocks are `basic_blocks` units of 512 bytes long.
    pub fn new(first: u64, basic_blocks: u64) -> Self {
        MemoryStore { blocks: BTreeMap::new(), next: first, basic_blocks }
    }

    /// The blocks in use, by pointer.
    pub fn blocks(&self) -> &BTreeMap<u64, Vec<u8>> {
        &self.blocks
    }
}

fn missing(pointer: u64) -> Error {
    Error::Internal(format!("the tree has no block {pointer}"))
}

impl BlockStore for MemoryStore {
    fn allocate(&mut self) -> Result<u64> {
        let pointer = self.next;
        self.next += 1;
        self.blocks.insert(pointer, Vec::new());
        Ok(pointer)
    }

    fn free(&mut self, pointer: u64) -> Result<()> {
        self.blocks.remove(&pointer).map(|_| ()).ok_or_else(|| missing(pointer))
    }

    fn read(&self, pointer: u64) -> Result<Vec<u8>> {
        self.blocks.get(&pointer).cloned().ok_or_else(|| missing(pointer))
    }

    fn write(&mut self, pointer: u64, bytes: Vec<u8>) -> Result<()> {
        *self.blocks.get_mut(&pointer).ok_or_else(|| missing(pointer))? = bytes;
        Ok(())
    }

    fn daddr(&self, pointer: u64) -> u64 {
        pointer * self.basic_blocks
    }
}
