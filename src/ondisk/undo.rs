//! The undo file: what a device held before it was changed. A format of xfskit's own, big-endian like XFS.
//!
//! A header, and records in the order in which they were written, each in units of 512 bytes: [`RawUndoRecord`], and
//! for [`RawUndoRecord::DATA`] the old bytes, padded with zeroes.

use std::mem::offset_of;

use super::{Be32, Be64, Le32, RawUuid};

ondisk! {
    /// The first 512 bytes of an undo file. They never change.
    pub struct RawUndoHeader("undo"): 512 {
        /// [`RawUndoHeader::MAGIC`].
        0 => magic: [u8; 8],
        /// [`RawUndoHeader::VERSION`].
        8 => version: Be32,
        /// CRC of these 512 bytes.
        12 => crc: Le32,
        /// Made at random for this file; each record repeats it.
        16 => uuid: RawUuid,
        /// UUID of the filesystem that was changed; zero if it was not known.
        32 => fs_uuid: RawUuid,
        /// Size of the device in bytes.
        48 => device_size: Be64,
        /// Which of the filesystem's devices: 0 data, 1 log, 2 realtime.
        56 => role: Be32,
        /// Zero.
        60 => pad: [u8; 452],
    }
}

impl RawUndoHeader {
    /// `xfskundo`.
    pub const MAGIC: [u8; 8] = *b"xfskundo";
    /// The only version.
    pub const VERSION: u32 = 1;
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = offset_of!(RawUndoHeader, crc);
}

ondisk! {
    /// Head of a record.
    pub struct RawUndoRecord("undorecord"): 512 {
        /// [`RawUndoRecord::MAGIC`].
        0 => magic: Be32,
        /// CRC of these 512 bytes.
        4 => crc: Le32,
        /// UUID of the file.
        8 => uuid: RawUuid,
        /// Number of the record, from 0.
        24 => sequence: Be64,
        /// [`RawUndoRecord::DATA`], [`RawUndoRecord::ZEROES`] or [`RawUndoRecord::FINISHED`].
        32 => kind: Be32,
        /// CRC of the old bytes without the padding; 0 if there are none.
        36 => data_crc: Le32,
        /// Where the range lies on the device, in bytes.
        40 => offset: Be64,
        /// Its length in bytes.
        48 => len: Be64,
        /// Zero.
        56 => pad: [u8; 456],
    }
}

impl RawUndoRecord {
    /// `XUND`.
    pub const MAGIC: u32 = 0x5855_4e44;
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = offset_of!(RawUndoRecord, crc);
    /// The range's old bytes follow.
    pub const DATA: u32 = 1;
    /// The range was zero.
    pub const ZEROES: u32 = 2;
    /// All changes were made: the device is in its new state, whole.
    pub const FINISHED: u32 = 3;
    /// The most bytes that a record of data holds.
    pub const MAX_DATA: u64 = 1 << 20;
    /// Records begin at multiples of this.
    pub const UNIT: u64 = 512;
}
