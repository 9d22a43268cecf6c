//! What is to be allocated (Linux `struct xfs_alloc_arg`).

use super::owner::RmapOwner;
use crate::geometry::{AgBlock, AgNumber, FsBlock};

/// Where blocks are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// In any group, from that of this block on around all of them; in that group near the block, unless it is the group's
    /// first (`xfs_alloc_vextent_start_ag`).
    StartingAt(FsBlock),
    /// In this group alone, as near to the block as possible (`xfs_alloc_vextent_near_bno`).
    Near(FsBlock),
    /// Exactly from this block on (`xfs_alloc_vextent_exact_bno`).
    Exact(FsBlock),
    /// In this group, wherever an extent of the right size is (`xfs_alloc_vextent_this_ag`).
    InGroup(AgNumber),
}

/// What the blocks are for: who pays for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Contents of files.
    UserData,
    /// Metadata that the transaction has reserved blocks for.
    Metadata,
    /// Blocks of the reference count and the free inode btree, for which the group holds some.
    Reserved,
}

/// What is to be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationRequest {
    /// Where.
    pub target: Target,
    /// Fewest blocks.
    pub min: u32,
    /// Most blocks.
    pub max: u32,
    /// The first block is a multiple of this within its group; 1 is any.
    pub align: u32,
    /// Blocks that an extent must have beside those asked for and their alignment.
    pub align_slop: u32,
    /// The length is to be a multiple of this, plus [`AllocationRequest::modulo`]; 1 is any.
    pub multiple: u32,
    /// What remains of the length divided by [`AllocationRequest::multiple`].
    pub modulo: u32,
    /// Blocks that must be left in the group.
    pub min_left: u32,
    /// Blocks that the whole transaction needs in the group.
    pub total: u32,
    /// The extent starts in this range of blocks of the group, both ends included.
    pub range: Option<(AgBlock, AgBlock)>,
    /// To whom the blocks will belong.
    pub owner: RmapOwner,
    /// What they are for.
    pub purpose: Purpose,
}

impl AllocationRequest {
    /// From `min` to `max` blocks anywhere near `target`, without further wishes.
    pub fn new(target: Target, min: u32, max: u32, owner: RmapOwner, purpose: Purpose) -> Self {
        AllocationRequest {
            target,
            min,
            max,
            align: 1,
            align_slop: 0,
            multiple: 1,
            modulo: 0,
            min_left: 0,
            total: 0,
            range: None,
            owner,
            purpose,
        }
    }
}
