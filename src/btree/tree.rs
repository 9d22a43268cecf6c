//! Which btree is meant: its kind, its owner, its root.

use super::layout::Layout;
use super::node::Node;
use crate::buffer::{BlockKind, Request};
use crate::error::{Check, Place};
use crate::geometry::{AgBlock, AgNumber, BtreeKind, Daddr, FsBlock, Geometry, Ino};

/// To whom a tree belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeOwner {
    /// An allocation group.
    Group(AgNumber),
    /// An inode.
    Inode(Ino),
}

/// What the fork holds from which a tree hangs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForkContents {
    /// Contents on the data device.
    #[default]
    Data,
    /// Contents in the realtime section.
    Realtime,
    /// Attributes.
    Attributes,
}

/// Where a tree starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root<'a> {
    /// In a block.
    Block {
        /// Block of the group, or filesystem block.
        pointer: u64,
        /// Levels of the tree, as the header of the group has it.
        levels: u32,
    },
    /// In a fork of its inode: the bytes of the fork.
    Inode(&'a [u8]),
}

/// A btree of a filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree<'a> {
    /// The kind.
    pub kind: BtreeKind,
    /// Whose it is.
    pub owner: TreeOwner,
    /// Where it starts.
    pub root: Root<'a>,
    /// For extent trees: what the fork holds.
    pub fork: ForkContents,
}

impl<'a> Tree<'a> {
    /// A btree of group `agno`, with the root and the levels that AGF or AGI state.
    pub fn of_group(kind: BtreeKind, agno: AgNumber, root: AgBlock, levels: u32) -> Self {
        let root = Root::Block { pointer: u64::from(root.0), levels };
        Tree { kind, owner: TreeOwner::Group(agno), root, fork: ForkContents::Data }
    }

    /// A btree with its root in a fork of inode `ino`, whose bytes are `bytes`.
    pub fn of_fork(kind: BtreeKind, ino: Ino, fork: ForkContents, bytes: &'a [u8]) -> Self {
        Tree { kind, owner: TreeOwner::Inode(ino), root: Root::Inode(bytes), fork }
    }

    /// The most levels that the tree can have; for roots in inodes, that root included.
    pub fn max_levels(&self, geometry: &Geometry) -> u32 {
        match (self.kind, self.fork) {
            (BtreeKind::Bmbt, ForkContents::Attributes) => geometry.btrees.attr_bmbt_max_levels,
            _ => geometry.btree(self.kind).max_levels,
        }
    }

    /// The root in the inode; `None` when it lies in a block.
    ///
    /// # Errors
    /// The check that it fails.
    pub fn inode_root(&self, geometry: &Geometry) -> Result<Option<Node<'a>>, Check> {
        match self.root {
            Root::Block { .. } => Ok(None),
            Root::Inode(bytes) => {
                let layout = Layout::of_block(geometry, self.kind).in_inode(bytes.len());
                Node::decode(layout, bytes).map(Some)
            }
        }
    }

    /// Disk address of a block of the tree; `None` when no block of it can lie there.
    pub fn daddr(&self, geometry: &Geometry, pointer: u64) -> Option<Daddr> {
        match self.owner {
            TreeOwner::Group(agno) => {
                let agbno = AgBlock(u32::try_from(pointer).ok()?);
                geometry.is_usable_agbno(agno, agbno).then(|| geometry.ag_daddr(agno, agbno))?
            }
            TreeOwner::Inode(_) => {
                let fsb = FsBlock(pointer);
                geometry.is_usable_fsb(fsb).then(|| geometry.fsb_daddr(fsb))?
            }
        }
    }

    /// The request for a block of the tree at `level`.
    pub fn request(&self, geometry: &Geometry, pointer: u64, level: u32) -> Option<Request> {
        let daddr = self.daddr(geometry, pointer)?;
        let request = Request::new(geometry, BlockKind::Btree(self.kind), daddr).at_level(level);
        Some(match self.owner {
            TreeOwner::Group(_) => request,
            TreeOwner::Inode(ino) => request.of_inode(ino),
        })
    }

    /// The place of the tree, for reports of what has no block.
    pub fn place(&self) -> Place {
        match self.owner {
            TreeOwner::Group(agno) => Place { agno: Some(agno.0), ..Place::default() },
            TreeOwner::Inode(ino) => Place { inode: Some(ino.0), ..Place::default() },
        }
    }
}
