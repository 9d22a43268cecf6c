//! Quota records (Linux `xfs_format.h`, `struct xfs_disk_dquot`, `struct xfs_dqblk`).

use std::mem::offset_of;

use super::{Be16, Be32, Be64, Le32, OnDisk, RawUuid};

ondisk! {
    /// Limits and use of one user, group or project. The record of id 0 holds the defaults and grace periods.
    pub struct RawDiskDquot("dquot"): 104 {
        /// [`RawDiskDquot::MAGIC`].
        0 => magic: Be16,
        /// [`RawDiskDquot::VERSION`].
        2 => version: u8,
        /// Kind of quota, with a bit for bigtime timers ([`dqtype`]).
        3 => dqtype: u8,
        /// User, group or project.
        4 => id: Be32,
        /// Blocks that cannot be exceeded; 0 is no limit.
        8 => blk_hardlimit: Be64,
        /// Blocks that can be exceeded for the grace period.
        16 => blk_softlimit: Be64,
        /// Inodes that cannot be exceeded.
        24 => ino_hardlimit: Be64,
        /// Inodes that can be exceeded for the grace period.
        32 => ino_softlimit: Be64,
        /// Blocks in use.
        40 => bcount: Be64,
        /// Inodes in use.
        48 => icount: Be64,
        /// When the grace period of inodes ends; 0 when within limits.
        56 => itimer: Be32,
        /// When the grace period of blocks ends.
        60 => btimer: Be32,
        /// Warnings given about inodes.
        64 => iwarns: Be16,
        /// Warnings given about blocks.
        66 => bwarns: Be16,
        /// Zero.
        68 => pad0: Be32,
        /// Realtime blocks that cannot be exceeded.
        72 => rtb_hardlimit: Be64,
        /// Realtime blocks that can be exceeded for the grace period.
        80 => rtb_softlimit: Be64,
        /// Realtime blocks in use.
        88 => rtbcount: Be64,
        /// When the grace period of realtime blocks ends.
        96 => rtbtimer: Be32,
        /// Warnings given about realtime blocks.
        100 => rtbwarns: Be16,
        /// Zero.
        102 => pad: Be16,
    }
}

ondisk! {
    /// A slot of a quota file.
    pub struct RawDquotBlock("dqblk"): 136 {
        /// The record.
        0 => diskdq: RawDiskDquot,
        /// Zeroes.
        104 => fill: [u8; 4],
        /// CRC of the slot (version 5).
        108 => crc: Le32,
        /// Point of the log at which the slot was last written (version 5).
        112 => lsn: Be64,
        /// UUID of the metadata (version 5).
        120 => uuid: RawUuid,
    }
}

/// Values and bits of `dqtype`.
pub mod dqtype {
    /// User quota.
    pub const USER: u8 = 1 << 0;
    /// Project quota.
    pub const PROJ: u8 = 1 << 1;
    /// Group quota.
    pub const GROUP: u8 = 1 << 2;
    /// Timers are in units of four seconds.
    pub const BIGTIME: u8 = 1 << 7;
    /// The bits that tell the kind.
    pub const REC_MASK: u8 = USER | PROJ | GROUP;
}

impl RawDiskDquot {
    /// `DQ`.
    pub const MAGIC: u16 = 0x4451;
    /// The only version.
    pub const VERSION: u8 = 1;
}

impl RawDquotBlock {
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = offset_of!(RawDquotBlock, crc);

    /// Slots of a block of `blocksize` bytes; what is left over stays zero.
    #[allow(clippy::cast_possible_truncation)] // 136
    pub const fn per_block(blocksize: u32) -> u32 {
        blocksize / (Self::SIZE as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_records_fit_a_page() {
        assert_eq!(RawDquotBlock::per_block(4096), 30);
        assert_eq!(RawDquotBlock::per_block(512), 3);
    }
}
