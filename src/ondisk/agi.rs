//! The header of an allocation group's inodes: its third sector (Linux `xfs_format.h`, `struct xfs_agi`).

use std::mem::offset_of;

use super::{Be32, Be64, Le32, RawUuid};

ondisk! {
    /// Inodes of an allocation group. Block and inode numbers are relative to the group.
    pub struct RawAgi("agi"): 344 {
        /// [`RawAgi::MAGIC`].
        0 => magicnum: Be32,
        /// [`RawAgi::VERSION`].
        4 => versionnum: Be32,
        /// Number of the group.
        8 => seqno: Be32,
        /// Size of the group in blocks.
        12 => length: Be32,
        /// Inodes allocated.
        16 => count: Be32,
        /// Root of the inode btree.
        20 => root: Be32,
        /// Levels of the inode btree.
        24 => level: Be32,
        /// Inodes allocated and not in use.
        28 => freecount: Be32,
        /// First inode of the chunk allocated last; [`NULLAGINO`](super::NULLAGINO) when there is none.
        32 => newino: Be32,
        /// Not used since IRIX: [`NULLAGINO`](super::NULLAGINO).
        36 => dirino: Be32,
        /// Heads of the lists of unlinked inodes that were still open, hashed by inode number modulo 64.
        40 => unlinked: [Be32; 64],
        /// UUID of the metadata.
        296 => uuid: RawUuid,
        /// CRC of the sector.
        312 => crc: Le32,
        /// Zero.
        316 => pad32: Be32,
        /// Point of the log at which the sector was last written.
        320 => lsn: Be64,
        /// Root of the free inode btree.
        328 => free_root: Be32,
        /// Levels of the free inode btree.
        332 => free_level: Be32,
        /// Blocks of the inode btree.
        336 => iblocks: Be32,
        /// Blocks of the free inode btree.
        340 => fblocks: Be32,
    }
}

impl RawAgi {
    /// `XAGI`.
    pub const MAGIC: u32 = 0x5841_4749;
    /// The only version.
    pub const VERSION: u32 = 1;
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = offset_of!(RawAgi, crc);
    /// Which sector of its group it is.
    pub const SECTOR: u32 = 2;
    /// Number of lists of unlinked inodes.
    pub const UNLINKED_BUCKETS: usize = 64;
}
