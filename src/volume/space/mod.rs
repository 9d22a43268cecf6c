//! Space of allocation groups: free extents, who owns blocks, and how many share them (Linux `libxfs/xfs_alloc.c`,
//! `xfs_rmap.c`, `xfs_refcount.c`, `xfs_ag_resv.c`).
//!
//! | file | what it holds |
//! |---|---|
//! | `request`, `owner` | what is to be allocated, and to whom it will belong |
//! | `allocate` | an extent chosen and taken |
//! | `header`, `free_list` | the headers of a group, and the list of blocks kept for its btrees |
//! | `group_tree` | the btrees of a group, for reading and for change |
//! | `hold` | what groups keep back for the growth of their btrees |
//! | `later` | changes that are put off to the transactions that follow |

mod allocate;
mod free_list;
mod group_tree;
mod header;
mod hold;
mod later;
mod owner;
mod request;

pub use allocate::allocate;
pub use group_tree::{GroupBlocks, GroupTree, edit_tree};
pub use header::{agf, agi, change_agf, change_agi};
pub use hold::hold_reserves;
pub use later::{
    MappingOwner, cow_alloc, cow_free, free_later, refcount_decrease, refcount_increase, rmap_alloc, rmap_convert,
    rmap_free, rmap_map, rmap_unmap,
};
pub use owner::RmapOwner;
pub use request::{AllocationRequest, Purpose, Target};
