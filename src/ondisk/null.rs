//! The values that stand for "none" in fields of each kind of address (Linux `xfs_types.h`).

/// No inode, where an inode number within a group is expected.
pub const NULLAGINO: u32 = u32::MAX;
/// No block, where a block number within a group is expected.
pub const NULLAGBLOCK: u32 = u32::MAX;
/// No inode, where an inode number is expected.
pub const NULLFSINO: u64 = u64::MAX;
/// No block, where a filesystem block number is expected.
pub const NULLFSBLOCK: u64 = u64::MAX;
