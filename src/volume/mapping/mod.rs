//! Which blocks a fork has, and how it gets and loses them (Linux `libxfs/xfs_bmap.c`, `libxfs/xfs_bmap_btree.c`).
//!
//! A change is made to a window of the fork's extents in memory, and what differs then goes into the list in the inode,
//! or into the btree that hangs from it.
//!
//! | file | what it holds |
//! |---|---|
//! | `lookup` | extents of a fork as it stands |
//! | `grow` | blocks allocated for a range of a file |
//! | `unmap` | blocks taken from a file |

mod grow;
mod lookup;
mod unmap;

pub use grow::{Growth, grow};
pub use lookup::{extents_in, last_block, lookup};
pub use unmap::{truncate, unmap};
