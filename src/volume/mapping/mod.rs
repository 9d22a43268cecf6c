//! Which blocks a fork has, and how it gets and loses them (Linux `libxfs/xfs_bmap.c`, `libxfs/xfs_bmap_btree.c`).
//!
//! A change is made to a window of the fork's extents in memory, and what differs then goes into the list in the inode,
//! or into the btree that hangs from it.
//!
//! | file | what it holds |
//! |---|---|
//! | `window` | extents in memory, and the changes that can be made to them |
//! | `fork` | a fork opened to be changed, and stored as list or btree |
//! | `tree_blocks` | the blocks of its btree |
//! | `lookup` | extents of a fork as it stands |
//! | `grow`, `placement` | blocks allocated for a range of a file, and where |
//! | `unmap` | blocks taken from a file |
//! | `remap` | blocks that exist mapped and unmapped; written and unwritten |
//! | `resize` | a fork that gets less room in its inode |
//! | `shift` | a range of a file that collapses, or is inserted |
//! | `share` | blocks shared between files |
//! | `exchange` | ranges of two files exchanged |

mod exchange;
mod fork;
mod grow;
mod lookup;
mod placement;
mod remap;
mod resize;
mod share;
mod shift;
mod tree_blocks;
mod unmap;
mod window;

pub use exchange::{defer_exchange, finish_exchange};
pub use grow::{Growth, grow};
pub use lookup::{extents_in, last_block, lookup};
pub use remap::{convert, defer_map, defer_unmap, finish_mapping, map};
pub use resize::set_fork_size;
pub use share::{Owned, first_shared, own, set_shared_flag, share_step};
pub use shift::{collapse, insert};
pub use unmap::{truncate, unmap};
