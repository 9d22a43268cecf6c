//! The inode (Linux `xfs_format.h`, `struct xfs_dinode`): a core of 100 bytes in all versions, 76 more in version 3; the
//! literal area with the forks follows.

use std::mem::offset_of;

use super::{Be16, Be32, Be64, Le32, OnDisk, RawUuid, Timestamp};

ondisk! {
    /// What inodes of every version have.
    pub struct RawDinodeCore("dinode_core"): 100 {
        /// [`RawDinode::MAGIC`].
        0 => magic: Be16,
        /// Type and access bits, as of `stat`.
        2 => mode: Be16,
        /// 1, 2 or 3; 3 with version 5 superblocks alone.
        4 => version: u8,
        /// Format of the data fork ([`mod@format`]).
        5 => format: u8,
        /// Metadata file type ([`metatype`]) where [`flags2::METADATA`] is set; link count in version 1, else zero.
        6 => metatype: Be16,
        /// Owner.
        8 => uid: Be32,
        /// Group.
        12 => gid: Be32,
        /// Link count; not used in version 1.
        16 => nlink: Be32,
        /// Lower half of the project number; in metadata inodes, the lower half of the realtime group's number.
        20 => projid_lo: Be16,
        /// Upper half of the same.
        22 => projid_hi: Be16,
        /// Extents of the data fork, with [`flags2::NREXT64`]; else zero, save that the lowest 16 bits are the flush
        /// counter up to version 2.
        24 => big_nextents: Be64,
        /// Time of last access; see [`Timestamp`].
        32 => atime: Be64,
        /// Time of the last change of the contents.
        40 => mtime: Be64,
        /// Time of the last change of the inode.
        48 => ctime: Be64,
        /// Size in bytes.
        56 => size: Be64,
        /// Blocks of both forks, with those of their btrees.
        64 => nblocks: Be64,
        /// Hint or unit of allocation in blocks.
        72 => extsize: Be32,
        /// Extents of the data fork; with [`flags2::NREXT64`], of the attribute fork.
        76 => nextents: Be32,
        /// Extents of the attribute fork; with [`flags2::NREXT64`], zero.
        80 => anextents: Be16,
        /// Where the attribute fork starts in the literal area, in units of 8 bytes; 0 when there is none.
        82 => forkoff: u8,
        /// Format of the attribute fork ([`mod@format`]).
        83 => aformat: i8,
        /// Not used: zero.
        84 => dmevmask: Be32,
        /// Not used: zero.
        88 => dmstate: Be16,
        /// [`flags`].
        90 => flags: Be16,
        /// Generation: changes whenever the inode is used anew.
        92 => generation: Be32,
        /// Next inode in the list of unlinked ones, within the group; all ones at the end and outside the list.
        96 => next_unlinked: Be32,
    }
}

ondisk! {
    /// An inode of version 3. Of versions 1 and 2, `core` alone is meant, and the literal area begins behind it.
    pub struct RawDinode("dinode"): 176 {
        /// What all versions have.
        0 => core: RawDinodeCore,
        /// CRC of the whole inode, forks included.
        100 => crc: Le32,
        /// Number of changes.
        104 => changecount: Be64,
        /// Point of the log at which the inode was last written.
        112 => lsn: Be64,
        /// [`flags2`].
        120 => flags2: Be64,
        /// Unit of allocation for copy on write, in blocks; in the reverse mapping inode of a zone, blocks in use.
        128 => cowextsize: Be32,
        /// Zeroes.
        132 => pad2: [u8; 12],
        /// Time of creation.
        144 => crtime: Be64,
        /// Own inode number.
        152 => ino: Be64,
        /// UUID of the metadata.
        160 => uuid: RawUuid,
    }
}

/// Values of `format` and `aformat`.
pub mod format {
    /// Device number.
    pub const DEV: u8 = 0;
    /// The contents themselves.
    pub const LOCAL: u8 = 1;
    /// A list of extents.
    pub const EXTENTS: u8 = 2;
    /// The root of an extent btree.
    pub const BTREE: u8 = 3;
    /// Never used.
    pub const UUID: u8 = 4;
    /// The root of a metadata btree.
    pub const META_BTREE: u8 = 5;
}

/// Bits of `flags`.
pub mod flags {
    /// Contents lie in the realtime section.
    pub const REALTIME: u16 = 1 << 0;
    /// Space was allocated in advance.
    pub const PREALLOC: u16 = 1 << 1;
    /// Realtime bitmap inode: `atime` holds the next sequence number.
    pub const NEWRTBM: u16 = 1 << 2;
    /// Nothing may be changed.
    pub const IMMUTABLE: u16 = 1 << 3;
    /// Contents may only grow.
    pub const APPEND: u16 = 1 << 4;
    /// Writes are synchronous.
    pub const SYNC: u16 = 1 << 5;
    /// `atime` is not brought up to date.
    pub const NOATIME: u16 = 1 << 6;
    /// Not to be dumped.
    pub const NODUMP: u16 = 1 << 7;
    /// New files get [`REALTIME`].
    pub const RTINHERIT: u16 = 1 << 8;
    /// New files get the directory's project number.
    pub const PROJINHERIT: u16 = 1 << 9;
    /// No symlinks in this directory.
    pub const NOSYMLINKS: u16 = 1 << 10;
    /// `extsize` is in force.
    pub const EXTSIZE: u16 = 1 << 11;
    /// New files get `extsize`.
    pub const EXTSZINHERIT: u16 = 1 << 12;
    /// Not to be defragmented.
    pub const NODEFRAG: u16 = 1 << 13;
    /// Allocated by streams.
    pub const FILESTREAM: u16 = 1 << 14;
    /// All of them.
    pub const KNOWN: u16 = 0x7fff;
}

/// Bits of `flags2`.
pub mod flags2 {
    /// Mapped directly (DAX).
    pub const DAX: u64 = 1 << 0;
    /// Blocks may be shared.
    pub const REFLINK: u64 = 1 << 1;
    /// `cowextsize` is in force.
    pub const COWEXTSIZE: u64 = 1 << 2;
    /// Timestamps have the bigtime form.
    pub const BIGTIME: u64 = 1 << 3;
    /// Large extent counters.
    pub const NREXT64: u64 = 1 << 4;
    /// Metadata file.
    pub const METADATA: u64 = 1 << 5;
    /// All of them.
    pub const KNOWN: u64 = 0x3f;
}

/// Values of `metatype`.
pub mod metatype {
    /// Not a metadata file.
    pub const UNKNOWN: u16 = 0;
    /// Directory.
    pub const DIR: u16 = 1;
    /// User quota.
    pub const USRQUOTA: u16 = 2;
    /// Group quota.
    pub const GRPQUOTA: u16 = 3;
    /// Project quota.
    pub const PRJQUOTA: u16 = 4;
    /// Realtime bitmap.
    pub const RTBITMAP: u16 = 5;
    /// Realtime summary.
    pub const RTSUMMARY: u16 = 6;
    /// Realtime reverse mapping btree.
    pub const RTRMAP: u16 = 7;
    /// Realtime reference count btree.
    pub const RTREFCOUNT: u16 = 8;
    /// One more than the largest.
    pub const COUNT: u16 = 9;
}

/// The number of a device, as the data fork of its inode has it in 32 bits: 14 for the major, 18 for the minor number
/// (Linux `include/linux/kdev_t.h`, `sysv_encode_dev`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeviceNumber {
    /// Which driver.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

impl DeviceNumber {
    /// Decodes the number.
    pub fn decode(raw: u32) -> Self {
        DeviceNumber { major: raw >> 18 & 0x3fff, minor: raw & 0x3_ffff }
    }

    /// Encodes it; `None` when a part does not fit.
    pub fn encode(self) -> Option<u32> {
        (self.major <= 0x3fff && self.minor <= 0x3_ffff).then_some(self.major << 18 | self.minor)
    }
}

/// Most extents of a data fork without large counters.
pub const MAX_EXTCNT_DATA_SMALL: u64 = (1 << 31) - 1;
/// Most extents of an attribute fork without large counters.
pub const MAX_EXTCNT_ATTR_SMALL: u64 = (1 << 15) - 1;
/// Most extents of a data fork with large counters.
pub const MAX_EXTCNT_DATA_LARGE: u64 = (1 << 48) - 1;
/// Most extents of an attribute fork with large counters.
pub const MAX_EXTCNT_ATTR_LARGE: u64 = (1 << 32) - 1;

impl RawDinodeCore {
    /// The flush counter of versions 1 and 2.
    pub fn flushiter(&self) -> u16 {
        let bytes = self.big_nextents.to_bytes();
        u16::from_be_bytes([bytes[6], bytes[7]])
    }

    /// Sets the flush counter of versions 1 and 2, and the bytes before it to zero.
    pub fn set_flushiter(&mut self, value: u16) {
        self.big_nextents = Be64::new(u64::from(value));
    }

    /// The project number.
    pub fn projid(&self) -> u32 {
        u32::from(self.projid_hi.get()) << 16 | u32::from(self.projid_lo.get())
    }

    /// Sets the project number.
    pub fn set_projid(&mut self, projid: u32) {
        self.projid_lo = Be16::new((projid & 0xffff) as u16);
        self.projid_hi = Be16::new((projid >> 16) as u16);
    }

    /// Bytes before the literal area.
    pub fn literal_offset(&self) -> usize {
        if self.version >= 3 { RawDinode::SIZE } else { Self::SIZE }
    }

    /// Where the attribute fork starts in the literal area, in bytes; 0 when there is none.
    pub fn fork_offset(&self) -> usize {
        usize::from(self.forkoff) << 3
    }
}

impl RawDinode {
    /// `IN`.
    pub const MAGIC: u16 = 0x494e;
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = offset_of!(RawDinode, crc);

    /// `flags2`, which only version 3 has; 0 in the others.
    pub fn flags2_or_zero(&self) -> u64 {
        if self.core.version >= 3 { self.flags2.get() } else { 0 }
    }

    /// Whether the extent counters are large.
    pub fn has_large_counters(&self) -> bool {
        self.flags2_or_zero() & flags2::NREXT64 != 0
    }

    /// Whether timestamps have the bigtime form.
    pub fn has_bigtime(&self) -> bool {
        self.flags2_or_zero() & flags2::BIGTIME != 0
    }

    /// Whether it is a metadata file.
    pub fn is_metadata(&self) -> bool {
        self.flags2_or_zero() & flags2::METADATA != 0
    }

    /// Link count, wherever the version keeps it.
    pub fn links(&self) -> u32 {
        if self.core.version == 1 { u32::from(self.core.metatype.get()) } else { self.core.nlink.get() }
    }

    /// Extents of the data fork.
    pub fn data_extents(&self) -> u64 {
        if self.has_large_counters() { self.core.big_nextents.get() } else { u64::from(self.core.nextents.get()) }
    }

    /// Extents of the attribute fork.
    pub fn attr_extents(&self) -> u32 {
        if self.has_large_counters() { self.core.nextents.get() } else { u32::from(self.core.anextents.get()) }
    }

    /// Sets both extent counters in the form that `flags2` asks for; `None`, and nothing is changed, when one does not
    /// fit.
    #[must_use]
    pub fn set_extents(&mut self, data: u64, attr: u32) -> Option<()> {
        if self.has_large_counters() {
            self.core.big_nextents = Be64::new(data);
            self.core.nextents = Be32::new(attr);
            self.core.anextents = Be16::new(0);
        } else {
            let (data, attr) = (u32::try_from(data).ok()?, u16::try_from(attr).ok()?);
            self.core.nextents = Be32::new(data);
            self.core.anextents = Be16::new(attr);
        }
        Some(())
    }

    /// One of the inode's timestamps in native form.
    pub fn timestamp(&self, raw: Be64) -> Timestamp {
        Timestamp::decode(raw, self.has_bigtime())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::FromZeros;

    proptest! {
        #[test]
        fn extent_counters_round_trip(large: bool, data: u64, attr: u32) {
            let mut dinode = RawDinode::new_zeroed();
            dinode.core.version = 3;
            dinode.flags2 = Be64::new(if large { flags2::NREXT64 } else { 0 });
            match dinode.set_extents(data, attr) {
                Some(()) => prop_assert_eq!((dinode.data_extents(), dinode.attr_extents()), (data, attr)),
                None => prop_assert!(!large && (data > u64::from(u32::MAX) || attr > u32::from(u16::MAX))),
            }
        }

        #[test]
        fn device_numbers_round_trip(raw: u32, major: u32, minor: u32) {
            prop_assert_eq!(DeviceNumber::decode(raw).encode(), Some(raw));
            let number = DeviceNumber { major, minor };
            prop_assert!(number.encode().is_none_or(|raw| DeviceNumber::decode(raw) == number));
        }

        #[test]
        fn project_number_and_flush_counter_round_trip(projid: u32, flushiter: u16) {
            let mut core = RawDinodeCore::new_zeroed();
            core.set_projid(projid);
            core.set_flushiter(flushiter);
            prop_assert_eq!((core.projid(), core.flushiter()), (projid, flushiter));
        }
    }

    #[test]
    fn bytes_behind_an_old_inode_are_no_flags() {
        let mut dinode = RawDinode::new_zeroed();
        dinode.flags2 = Be64::new(u64::MAX);
        dinode.core.version = 2;
        assert!(!dinode.has_bigtime() && !dinode.has_large_counters() && !dinode.is_metadata());
        assert_eq!(dinode.core.literal_offset(), 100);
        dinode.core.version = 3;
        assert!(dinode.has_bigtime());
        assert_eq!(dinode.core.literal_offset(), 176);
    }

    #[test]
    fn version_1_keeps_its_links_elsewhere() {
        let mut dinode = RawDinode::new_zeroed();
        dinode.core.version = 1;
        dinode.core.metatype = Be16::new(7);
        assert_eq!(dinode.links(), 7);
    }
}
