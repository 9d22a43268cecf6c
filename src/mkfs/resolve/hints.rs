//! The hints for extent sizes that the root directory hands down.

use super::stages::usage;
use crate::error::Result;
use crate::mkfs::layout::RootDefaults;

/// The longest extent of a file, in blocks.
const LONGEST_EXTENT: u64 = (1 << 21) - 1;

/// Refuses hints that a file could not have: longer than half a group, or not whole realtime extents.
pub(super) fn check(root: &RootDefaults, agblocks: u64, extent_blocks: u32) -> Result<()> {
    for (option, blocks) in [("-d extszinherit", root.extent_size), ("-d cowextsize", root.cow_extent_size)] {
        let largest = LONGEST_EXTENT.min(agblocks / 2);
        let whole = !root.rt_inherit || blocks % extent_blocks == 0;
        if u64::from(blocks) > largest || !whole {
            let multiples = if root.rt_inherit { format!(", multiples of {extent_blocks}") } else { String::new() };
            return Err(usage(format!("{option}={blocks}: allowed: 0 to {largest} blocks{multiples}")));
        }
    }
    Ok(())
}
