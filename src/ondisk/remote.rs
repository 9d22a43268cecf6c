//! Headers of blocks that hold plain bytes: remote attribute values and symbolic link targets. Only v5 has them
//! (Linux `fs/xfs/libxfs/xfs_da_format.h`, `xfs_format.h`).

use crate::ondisk::{Be32, Be64, Le32, RawUuid};

/// Magic number of a remote attribute block: `XARM`.
pub const ATTR3_RMT_MAGIC: u32 = 0x5841_524d;
/// Magic number of a symbolic link block: `XSLM`.
pub const SYMLINK_MAGIC: u32 = 0x5853_4c4d;
/// Longest target of a symbolic link in bytes.
pub const SYMLINK_MAXLEN: u32 = 1024;
/// Longest value of an attribute in bytes.
pub const ATTR_MAX_VALUELEN: u32 = 64 * 1024;

ondisk! {
    /// Header of each block of a remote attribute value (`xfs_attr3_rmt_hdr`). It has no LSN that counts.
    pub struct RawAttr3RmtHdr("attr3_rmt"): 56 {
        /// Magic number.
        0 => magic: Be32,
        /// Which byte of the value the block starts with.
        4 => offset: Be32,
        /// Bytes of the value in this block.
        8 => bytes: Be32,
        /// CRC of the block.
        12 => crc: Le32,
        /// UUID of the filesystem.
        16 => uuid: RawUuid,
        /// Inode that owns the block.
        32 => owner: Be64,
        /// Own disk address, in 512-byte units.
        40 => blkno: Be64,
        /// Always -1: the block is written before the transaction that makes it reachable.
        48 => lsn: Be64,
    }
}

ondisk! {
    /// Header of each buffer of a symbolic link's target (`xfs_dsymlink_hdr`).
    pub struct RawDsymlinkHdr("symlink"): 56 {
        /// Magic number.
        0 => magic: Be32,
        /// Which byte of the target the buffer starts with.
        4 => offset: Be32,
        /// Bytes of the target in this buffer.
        8 => bytes: Be32,
        /// CRC of the buffer.
        12 => crc: Le32,
        /// UUID of the filesystem.
        16 => uuid: RawUuid,
        /// Inode that owns the buffer.
        32 => owner: Be64,
        /// Own disk address, in 512-byte units.
        40 => blkno: Be64,
        /// LSN of the last write.
        48 => lsn: Be64,
    }
}

impl RawAttr3RmtHdr {
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = std::mem::offset_of!(RawAttr3RmtHdr, crc);
}

impl RawDsymlinkHdr {
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = std::mem::offset_of!(RawDsymlinkHdr, crc);
}
