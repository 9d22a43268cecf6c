//! Space of allocation groups: free extents, who owns blocks, and how many share them (Linux `libxfs/xfs_alloc.c`,
//! `xfs_rmap.c`, `xfs_refcount.c`, `xfs_ag_resv.c`).
//!
//! | file | what it holds |
//! |---|---|
//! | `request`, `owner` | what is to be allocated, and to whom it will belong |
//! | `allocate`, `search` | an extent chosen and taken |
//! | `free` | blocks freed |
//! | `fix_up`, `free_extents` | the free list brought to its length, and the two btrees of free extents |
//! | `reverse`, `shared` | reverse mappings and reference counts |
//! | `header`, `free_list` | the headers of a group, and the list of blocks kept for its btrees |
//! | `group_tree` | the btrees of a group, for reading and for change |
//! | `hold` | what groups keep back for the growth of their btrees |
//! | `later` | changes that are put off to the transactions that follow |

mod allocate;
mod fix_up;
mod free;
mod free_extents;
mod free_list;
mod group_tree;
mod header;
mod hold;
mod later;
mod owner;
mod request;
mod reverse;
mod search;
mod shared;

pub use allocate::allocate;
pub(in crate::volume) use free::{free_extent, free_list_block};
pub use group_tree::{GroupBlocks, GroupTree, edit_tree};
pub use header::{agf, agi, change_agf, change_agi};
pub use hold::hold_reserves;
pub use later::{
    MappingOwner, cow_alloc, cow_free, free_later, refcount_decrease, refcount_increase, rmap_alloc, rmap_convert,
    rmap_free, rmap_map, rmap_unmap,
};
pub use owner::RmapOwner;
pub use request::{AllocationRequest, Purpose, Target};
pub(in crate::volume) use reverse::apply_rmap;
pub(in crate::volume) use shared::{Progress, apply_refcount};
