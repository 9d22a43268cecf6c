//! The header of an allocation group's free space: its second sector (Linux `xfs_format.h`, `struct xfs_agf`).

use std::mem::offset_of;

use super::{Be32, Be64, Le32, RawUuid};

ondisk! {
    /// Free space of an allocation group. Block numbers are relative to the group.
    pub struct RawAgf("agf"): 224 {
        /// [`RawAgf::MAGIC`].
        0 => magicnum: Be32,
        /// [`RawAgf::VERSION`].
        4 => versionnum: Be32,
        /// Number of the group.
        8 => seqno: Be32,
        /// Size of the group in blocks.
        12 => length: Be32,
        /// Root of the free space btree by block number.
        16 => bno_root: Be32,
        /// Root of the free space btree by size.
        20 => cnt_root: Be32,
        /// Root of the reverse mapping btree.
        24 => rmap_root: Be32,
        /// Levels of the btree by block number.
        28 => bno_level: Be32,
        /// Levels of the btree by size.
        32 => cnt_level: Be32,
        /// Levels of the reverse mapping btree.
        36 => rmap_level: Be32,
        /// Index of the first block in the free list.
        40 => flfirst: Be32,
        /// Index of the last block in the free list.
        44 => fllast: Be32,
        /// Blocks in the free list.
        48 => flcount: Be32,
        /// Free blocks, without those of the free list.
        52 => freeblks: Be32,
        /// Length of the longest free extent in blocks.
        56 => longest: Be32,
        /// Blocks of the free space and reverse mapping btrees beyond their roots.
        60 => btreeblks: Be32,
        /// UUID of the metadata.
        64 => uuid: RawUuid,
        /// Blocks of the reverse mapping btree.
        80 => rmap_blocks: Be32,
        /// Blocks of the reference count btree.
        84 => refcount_blocks: Be32,
        /// Root of the reference count btree.
        88 => refcount_root: Be32,
        /// Levels of the reference count btree.
        92 => refcount_level: Be32,
        /// Zeroes.
        96 => spare64: [Be64; 14],
        /// Point of the log at which the sector was last written.
        208 => lsn: Be64,
        /// CRC of the sector.
        216 => crc: Le32,
        /// Zero.
        220 => spare2: Be32,
    }
}

impl RawAgf {
    /// `XAGF`.
    pub const MAGIC: u32 = 0x5841_4746;
    /// The only version.
    pub const VERSION: u32 = 1;
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = offset_of!(RawAgf, crc);
    /// Which sector of its group it is.
    pub const SECTOR: u32 = 1;
}
