//! Limits of the format (Linux `libxfs/xfs_types.h`, `xfs_fs.h`, `xfs_format.h`, `xfs_log_format.h`).

/// Smallest block size in bytes (version 4).
pub const MIN_BLOCKSIZE: u32 = 1 << MIN_BLOCKLOG;
/// Smallest block size in bytes in version 5.
pub const MIN_BLOCKSIZE_V5: u32 = 1024;
/// Largest block size in bytes, also of a directory block.
pub const MAX_BLOCKSIZE: u32 = 1 << MAX_BLOCKLOG;
/// log2 of [`MIN_BLOCKSIZE`].
pub const MIN_BLOCKLOG: u32 = 9;
/// log2 of [`MAX_BLOCKSIZE`].
pub const MAX_BLOCKLOG: u32 = 16;
/// Smallest sector size in bytes.
pub const MIN_SECTSIZE: u32 = 1 << MIN_SECTLOG;
/// Largest sector size in bytes.
pub const MAX_SECTSIZE: u32 = 1 << MAX_SECTLOG;
/// log2 of [`MIN_SECTSIZE`].
pub const MIN_SECTLOG: u32 = 9;
/// log2 of [`MAX_SECTSIZE`].
pub const MAX_SECTLOG: u32 = 15;
/// Smallest inode size in bytes.
pub const MIN_INODESIZE: u32 = 1 << MIN_INODELOG;
/// Largest inode size in bytes.
pub const MAX_INODESIZE: u32 = 1 << MAX_INODELOG;
/// log2 of [`MIN_INODESIZE`].
pub const MIN_INODELOG: u32 = 8;
/// log2 of [`MAX_INODESIZE`].
pub const MAX_INODELOG: u32 = 11;
/// Smallest size of an allocation group in bytes; the last group may be smaller.
pub const MIN_AG_BYTES: u64 = 1 << 24;
/// Largest size of an allocation group in bytes.
pub const MAX_AG_BYTES: u64 = 1 << 40;
/// Fewest blocks of the last allocation group.
pub const MIN_AG_BLOCKS: u32 = 64;
/// Most blocks of a log.
pub const MAX_LOG_BLOCKS: u32 = 1024 * 1024;
/// Smallest size of a log in bytes that mkfs makes by itself.
pub const MIN_LOG_BYTES: u64 = 10 * 1024 * 1024;
/// Largest size of a log in bytes.
pub const MAX_LOG_BYTES: u64 = (1 << 31) - MIN_LOG_BYTES;
/// Largest record of a log in bytes, and so its largest stripe unit.
pub const MAX_LOG_RECORD_BYTES: u32 = 256 * 1024;
/// Smallest realtime extent in bytes.
pub const MIN_RTEXT_BYTES: u64 = 4096;
/// Largest realtime extent in bytes.
pub const MAX_RTEXT_BYTES: u64 = 1 << 30;
/// Most blocks of a realtime group.
pub const MAX_RGBLOCKS: u32 = (1 << 31) - 1;
/// Fewest realtime extents of a realtime group.
pub const MIN_RGEXTENTS: u32 = 2;
/// Size of a disk address unit in bytes.
pub const BASIC_BLOCK: u32 = 1 << BASIC_BLOCK_LOG;
/// log2 of [`BASIC_BLOCK`].
pub const BASIC_BLOCK_LOG: u32 = 9;
/// Headers of an allocation group: superblock, AGF, AGI, AGFL, a sector each.
pub const AG_HEADER_SECTORS: u32 = 4;
