//! The filesystem while it is made: the groups that something is allocated in, the pieces of files, the counters.

use std::collections::BTreeMap;

use crate::device::{Device, random_bytes};
use crate::error::{Error, Result};
use crate::mkfs::write::blocks::Blocks;
use crate::mkfs::write::group::Group;
use crate::mkfs::write::inode::Inode;
use crate::mkfs::write::shape::Shape;
use crate::mkfs::write::space::{Extent, Owner, Request};
use crate::mkfs::write::superblock::Progress;

/// The filesystem while it is made.
pub(super) struct Maker<'a> {
    /// What it is to be.
    pub shape: &'a Shape,
    /// The data device.
    pub data: &'a dyn Device,
    /// Groups that something was allocated in or looked for.
    groups: BTreeMap<u32, Group>,
    /// Contents of files, directories and inode chunks.
    pub blocks: Blocks<'a>,
    /// What the superblock will say.
    pub progress: Progress,
    /// Extents of the present transaction that are not yet in the reverse mappings: group, extent, owner.
    pub unmapped: Vec<(u32, Extent, Owner)>,
}

impl<'a> Maker<'a> {
    /// Starts with empty groups.
    pub fn new(shape: &'a Shape, data: &'a dyn Device) -> Self {
        Maker {
            shape,
            data,
            groups: BTreeMap::new(),
            blocks: Blocks::new(data),
            progress: Progress::begin(shape),
            unmapped: Vec::new(),
        }
    }

    /// Group `agno` in its present state.
    pub fn group(&mut self, agno: u32) -> Result<&mut Group> {
        if !self.groups.contains_key(&agno) {
            self.groups.insert(agno, new_group(self.shape, agno)?);
        }
        self.groups.get_mut(&agno).ok_or_else(|| Error::Internal("a group vanished".to_string()))
    }

    /// Takes group `agno` out, in its present state.
    pub fn take_group(&mut self, agno: u32) -> Result<Group> {
        match self.groups.remove(&agno) {
            Some(group) => Ok(group),
            None => new_group(self.shape, agno),
        }
    }

    /// Number of allocation groups.
    pub fn agcount(&self) -> u32 {
        self.shape.layout.data.agcount
    }

    /// The next "random" number.
    pub fn random(&self) -> u32 {
        self.shape.layout.seed.unwrap_or_else(|| u32::from_ne_bytes(random_bytes()))
    }

    /// A commit: writes the present state of `inode` to its place.
    pub fn commit(&mut self, inode: &mut Inode) -> Result<()> {
        let shape = self.shape;
        let (agno, agino) = shape.split_ino(inode.ino);
        let bytes = u64::from(shape.layout.inode.bytes());
        let offset = shape.offset(agno, 0) + u64::from(agino) * bytes;
        let len = usize::try_from(bytes).expect("invariant: 2 KiB at most");
        self.put_extent_leaf(inode)?;
        inode.flush(shape, self.blocks.get(offset, len)?)?;
        self.map_extents()
    }
}

/// A group as it is before the first inode is made: its freelist filled, if there is space for all of it.
fn new_group(shape: &Shape, agno: u32) -> Result<Group> {
    let mut group = Group::new(shape, agno);
    group.prepare(shape, &mut Request::exactly(0))?;
    Ok(group)
}
