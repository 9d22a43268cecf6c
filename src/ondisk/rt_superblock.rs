//! The realtime superblock: the first block of the realtime section when it has groups (Linux `xfs_format.h`,
//! `struct xfs_rtsb`).

use std::mem::offset_of;

use super::{Be32, Le32, RawUuid};

ondisk! {
    /// The realtime superblock. Its CRC covers the whole block.
    pub struct RawRtSuperblock("rtsb"): 56 {
        /// [`RawRtSuperblock::MAGIC`].
        0 => magicnum: Be32,
        /// CRC of the block.
        4 => crc: Le32,
        /// Zero.
        8 => pad: Be32,
        /// Label, as in the superblock.
        12 => fname: [u8; 12],
        /// UUID that users see.
        24 => uuid: RawUuid,
        /// UUID that metadata carry.
        40 => meta_uuid: RawUuid,
    }
}

impl RawRtSuperblock {
    /// `Frog`.
    pub const MAGIC: u32 = 0x4672_6f67;
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = offset_of!(RawRtSuperblock, crc);
}
