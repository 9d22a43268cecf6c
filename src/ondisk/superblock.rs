//! The superblock, a copy of which starts every allocation group (Linux `xfs_format.h`, `struct xfs_dsb`).

use std::mem::offset_of;

use super::{Be16, Be32, Be64, Le32, RawUuid};

ondisk! {
    /// The superblock. Fields from `features_compat` on have a meaning in version 5 alone; those from `metadirino` to
    /// `rgblklog` need the metadir feature, the last two the zoned feature.
    pub struct RawSuperblock("sb"): 304 {
        /// [`RawSuperblock::MAGIC`].
        0 => magicnum: Be32,
        /// Block size in bytes.
        4 => blocksize: Be32,
        /// Blocks of the data device.
        8 => dblocks: Be64,
        /// Blocks of the realtime section.
        16 => rblocks: Be64,
        /// Realtime extents.
        24 => rextents: Be64,
        /// UUID that users see.
        32 => uuid: RawUuid,
        /// First block of an internal log, as a filesystem block number; 0 for an external log.
        48 => logstart: Be64,
        /// Inode of the root directory.
        56 => rootino: Be64,
        /// Inode of the realtime bitmap.
        64 => rbmino: Be64,
        /// Inode of the realtime summary.
        72 => rsumino: Be64,
        /// Realtime extent size in blocks.
        80 => rextsize: Be32,
        /// Blocks of an allocation group; the last one may have fewer.
        84 => agblocks: Be32,
        /// Number of allocation groups.
        88 => agcount: Be32,
        /// Blocks of one realtime bitmap file.
        92 => rbmblocks: Be32,
        /// Blocks of the log.
        96 => logblocks: Be32,
        /// Version in the low four bits, feature bits above ([`versionnum`](super::feature_bits::versionnum)).
        100 => versionnum: Be16,
        /// Sector size in bytes.
        102 => sectsize: Be16,
        /// Inode size in bytes.
        104 => inodesize: Be16,
        /// Inodes per block.
        106 => inopblock: Be16,
        /// Label, padded with zeroes; no terminating zero when all 12 bytes are used.
        108 => fname: [u8; 12],
        /// log2 of `blocksize`.
        120 => blocklog: u8,
        /// log2 of `sectsize`.
        121 => sectlog: u8,
        /// log2 of `inodesize`.
        122 => inodelog: u8,
        /// log2 of `inopblock`.
        123 => inopblog: u8,
        /// log2 of `agblocks`, rounded up.
        124 => agblklog: u8,
        /// log2 of `rextents`, rounded down.
        125 => rextslog: u8,
        /// 1 while mkfs is at work.
        126 => inprogress: u8,
        /// Largest percentage of the data device that inodes may take; 0 is no limit.
        127 => imax_pct: u8,
        /// Inodes allocated.
        128 => icount: Be64,
        /// Inodes allocated and not in use.
        136 => ifree: Be64,
        /// Free blocks of the data device.
        144 => fdblocks: Be64,
        /// Free realtime extents.
        152 => frextents: Be64,
        /// Inode of the user quota file.
        160 => uquotino: Be64,
        /// Inode of the group quota file; in version 4, of the group or the project quota file.
        168 => gquotino: Be64,
        /// Quota state ([`qflags`](super::feature_bits::qflags)).
        176 => qflags: Be16,
        /// Other flags ([`sb_flags`](super::feature_bits::sb_flags)).
        178 => flags: u8,
        /// Shared version number: always 0.
        179 => shared_vn: u8,
        /// Alignment of inode chunks in blocks.
        180 => inoalignmt: Be32,
        /// Stripe unit in blocks.
        184 => unit: Be32,
        /// Stripe width in blocks.
        188 => width: Be32,
        /// log2 of a directory block's size in filesystem blocks.
        192 => dirblklog: u8,
        /// log2 of `logsectsize`; 0 where the sector bit is not set.
        193 => logsectlog: u8,
        /// Sector size of the log device in bytes; 0 where the sector bit is not set.
        194 => logsectsize: Be16,
        /// Stripe unit of the log in bytes.
        196 => logsunit: Be32,
        /// More feature bits ([`features2`](super::feature_bits::features2)).
        200 => features2: Be32,
        /// Copy of `features2`: some kernels put the word here.
        204 => bad_features2: Be32,
        /// Features that any kernel can ignore ([`compat`](super::feature_bits::compat)).
        208 => features_compat: Be32,
        /// Features without which a kernel may still read ([`ro_compat`](super::feature_bits::ro_compat)).
        212 => features_ro_compat: Be32,
        /// Features without which a kernel must not mount ([`incompat`](super::feature_bits::incompat)).
        216 => features_incompat: Be32,
        /// Features of what the log holds now ([`log_incompat`](super::feature_bits::log_incompat)).
        220 => features_log_incompat: Be32,
        /// CRC of the sector.
        224 => crc: Le32,
        /// Alignment of sparse inode chunks in blocks.
        228 => spino_align: Be32,
        /// Inode of the project quota file.
        232 => pquotino: Be64,
        /// Point of the log at which the superblock was last written.
        240 => lsn: Be64,
        /// UUID that metadata carries, where the metauuid bit is set.
        248 => meta_uuid: RawUuid,
        /// Inode of the metadata directory tree's root.
        264 => metadirino: Be64,
        /// Number of realtime groups.
        272 => rgcount: Be32,
        /// Size of a realtime group in realtime extents.
        276 => rgextents: Be32,
        /// log2 of a realtime group's size in blocks, rounded up.
        280 => rgblklog: u8,
        /// Zeroes.
        281 => pad: [u8; 7],
        /// Where the realtime section starts on the data device, in blocks; 0 for a device of its own (zoned).
        288 => rtstart: Be64,
        /// Realtime blocks held back for garbage collection (zoned).
        296 => rtreserved: Be64,
    }
}

impl RawSuperblock {
    /// `XFSB`.
    pub const MAGIC: u32 = 0x5846_5342;
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = offset_of!(RawSuperblock, crc);
    /// Where version 4 ends: the first byte that only version 5 uses.
    pub const SIZE_V4: usize = offset_of!(RawSuperblock, features_compat);

    /// The version: the low four bits of `versionnum`.
    pub fn version(&self) -> u16 {
        self.versionnum.get() & super::feature_bits::versionnum::NUMBITS
    }

    /// Whether it is a version 5 superblock, whose metadata carry CRCs.
    pub fn is_v5(&self) -> bool {
        self.version() == 5
    }
}
