//! Headers of btree blocks (Linux `xfs_format.h`, `struct xfs_btree_block`): the short form with 32-bit pointers for
//! btrees of an allocation group, the long form with 64-bit pointers for btrees that hang from an inode.

use std::mem::offset_of;

use super::{Be16, Be32, Be64, Le32, RawUuid};

ondisk! {
    /// Short header: the whole of it in version 4, its start in version 5.
    pub struct RawShortBlock("short_block"): 16 {
        /// One of [`magic`].
        0 => magic: Be32,
        /// Level: 0 is a leaf.
        4 => level: Be16,
        /// Records or keys in the block.
        6 => numrecs: Be16,
        /// Block to the left; all ones when there is none.
        8 => leftsib: Be32,
        /// Block to the right; all ones when there is none.
        12 => rightsib: Be32,
    }
}

ondisk! {
    /// Short header of version 5.
    pub struct RawShortBlockV5("short_block_v5"): 56 {
        /// What version 4 has too.
        0 => base: RawShortBlock,
        /// Own disk address in 512-byte units.
        16 => blkno: Be64,
        /// Point of the log at which the block was last written.
        24 => lsn: Be64,
        /// UUID of the metadata.
        32 => uuid: RawUuid,
        /// Number of the allocation group.
        48 => owner: Be32,
        /// CRC of the block.
        52 => crc: Le32,
    }
}

ondisk! {
    /// Long header: the whole of it in version 4, its start in version 5.
    pub struct RawLongBlock("long_block"): 24 {
        /// One of [`magic`].
        0 => magic: Be32,
        /// Level: 0 is a leaf.
        4 => level: Be16,
        /// Records or keys in the block.
        6 => numrecs: Be16,
        /// Block to the left; all ones when there is none.
        8 => leftsib: Be64,
        /// Block to the right; all ones when there is none.
        16 => rightsib: Be64,
    }
}

ondisk! {
    /// Long header of version 5.
    pub struct RawLongBlockV5("long_block_v5"): 72 {
        /// What version 4 has too.
        0 => base: RawLongBlock,
        /// Own disk address in 512-byte units.
        24 => blkno: Be64,
        /// Point of the log at which the block was last written.
        32 => lsn: Be64,
        /// UUID of the metadata.
        40 => uuid: RawUuid,
        /// Inode that the btree belongs to.
        56 => owner: Be64,
        /// CRC of the block.
        64 => crc: Le32,
        /// Zero.
        68 => pad: Be32,
    }
}

impl RawShortBlockV5 {
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = offset_of!(RawShortBlockV5, crc);
}

impl RawLongBlockV5 {
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = offset_of!(RawLongBlockV5, crc);
}

/// Magic numbers of btree blocks; names that end in `_V5` are those of version 5.
pub mod magic {
    /// Free space by block number: `ABTB`.
    pub const BNOBT: u32 = 0x4142_5442;
    /// Free space by block number: `AB3B`.
    pub const BNOBT_V5: u32 = 0x4142_3342;
    /// Free space by size: `ABTC`.
    pub const CNTBT: u32 = 0x4142_5443;
    /// Free space by size: `AB3C`.
    pub const CNTBT_V5: u32 = 0x4142_3343;
    /// Inodes: `IABT`.
    pub const INOBT: u32 = 0x4941_4254;
    /// Inodes: `IAB3`.
    pub const INOBT_V5: u32 = 0x4941_4233;
    /// Free inodes without CRC: `FIBT`. No superblock allows it; kernels know the number.
    pub const FINOBT: u32 = 0x4649_4254;
    /// Free inodes: `FIB3`.
    pub const FINOBT_V5: u32 = 0x4649_4233;
    /// Reverse mappings: `RMB3`.
    pub const RMAPBT_V5: u32 = 0x524d_4233;
    /// Reference counts: `R3FC`.
    pub const REFCOUNTBT_V5: u32 = 0x5233_4643;
    /// Extents of a file: `BMAP`.
    pub const BMBT: u32 = 0x424d_4150;
    /// Extents of a file: `BMA3`.
    pub const BMBT_V5: u32 = 0x424d_4133;
    /// Reverse mappings of a realtime group: `MAPR`.
    pub const RTRMAPBT_V5: u32 = 0x4d41_5052;
    /// Reference counts of a realtime group: `RCNT`.
    pub const RTREFCOUNTBT_V5: u32 = 0x5243_4e54;
}
