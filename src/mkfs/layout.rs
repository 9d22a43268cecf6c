//! The fully decided layout of a filesystem that is to be made.
//!
//! [`Layout`] is all that the writer knows: every choice has been made, every limit has been checked. Nothing in it depends on
//! options or defaults any more, so that the same layout always makes the same bytes.

use std::fmt;

use uuid::Uuid;

use crate::geometry::{AgBlock, AgNumber};

/// A size that is a power of two, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PowerSize {
    log: u8,
}

impl PowerSize {
    /// The size of `1 << log` bytes; `log` is at most 31.
    pub const fn from_log(log: u8) -> Self {
        assert!(log < 32, "a size of 4 GiB or more");
        PowerSize { log }
    }

    /// The size of `bytes`; `None` if that is not a power of two.
    pub fn from_bytes(bytes: u32) -> Option<Self> {
        let log = u8::try_from(bytes.trailing_zeros()).ok()?;
        bytes.is_power_of_two().then_some(PowerSize { log })
    }

    /// Bytes.
    pub const fn bytes(self) -> u32 {
        1 << self.log
    }

    /// Logarithm to base 2 of the bytes.
    pub const fn log(self) -> u8 {
        self.log
    }
}

impl fmt::Display for PowerSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

/// Everything that determines the bytes of a new filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Filesystem block.
    pub block: PowerSize,
    /// Sector of the data and realtime devices; an internal log has the same.
    pub sector: PowerSize,
    /// Inode.
    pub inode: PowerSize,
    /// Directory block; at least one filesystem block.
    pub directory_block: PowerSize,
    /// What is switched on.
    pub features: Features,
    /// Allocation groups and stripes.
    pub data: DataLayout,
    /// The journal.
    pub log: LogLayout,
    /// The realtime section; also says what the superblock holds of it when there is none.
    pub realtime: RealtimeLayout,
    /// Flags and hints of the root directory that its contents inherit.
    pub root: RootDefaults,
    /// Quota to be switched on without mount options (needs metadir), as `sb_qflags` has it; see [`quota`].
    pub quota_flags: u16,
    /// What the property `autofsck` of the root directory says; `None` if it is not set.
    pub autofsck: Option<Autofsck>,
    /// The filesystem's UUID.
    pub uuid: Uuid,
    /// The label, filled up with zeroes.
    pub label: [u8; 12],
    /// Time of creation of all inodes.
    pub time: Timestamp,
    /// Every "random" number of the filesystem (the generation numbers of inodes); `None` takes random ones. mkfs.xfs uses
    /// 0x53454544 (`SEED`) for all of them when `DETERMINISTIC_SEED` is set, whatever to.
    pub seed: Option<u32>,
    /// Discard the devices' contents first, where they are block devices.
    pub discard: bool,
    /// Zero the secondary superblocks of an XFS that stands on the data device already. mkfs.xfs does so under `-f`.
    pub erase_old_superblocks: bool,
}

/// Features of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Version 5 of the superblock, with checksums; without it the format is version 4.
    pub crc: bool,
    /// Btree of free inodes.
    pub finobt: bool,
    /// Sparse inode chunks.
    pub sparse_inodes: bool,
    /// Reverse mappings.
    pub rmapbt: bool,
    /// Shared blocks.
    pub reflink: bool,
    /// Counters of the blocks of the inode btrees in the AGI.
    pub inobtcount: bool,
    /// Timestamps to the year 2486.
    pub bigtime: bool,
    /// 64-bit counts of data extents.
    pub nrext64: bool,
    /// Metadata directory, and with it realtime groups.
    pub metadir: bool,
    /// Exchange of file ranges.
    pub exchange: bool,
    /// Parent pointers.
    pub parent: bool,
    /// File types in directory entries.
    pub ftype: bool,
    /// Version 2 of the attribute fork's placement; always set with `crc`.
    pub attr2: bool,
    /// The superblock says from the start that attributes are in use (v4 with `-i attr=1`; parent pointers).
    pub attributes: bool,
    /// Lazy superblock counters; always set with `crc`.
    pub lazy_counters: bool,
    /// 32-bit project identifiers; always set with `crc`.
    pub projid32: bool,
    /// Inode chunks are aligned; always set with `crc`.
    pub inode_alignment: bool,
    /// Names are compared without regard to the case of ASCII letters.
    pub ascii_ci: bool,
    /// The realtime section is zoned.
    pub zoned: bool,
    /// The zones' capacity is smaller than their size (devices with real zones).
    pub zone_gaps: bool,
}

/// The data section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataLayout {
    /// Bytes of the device that are the data section's to use, a multiple of 1024 and of the sector: what lies behind `blocks` is
    /// not used, but the last 128 KiB are cleared. A file that is shorter than `blocks` is made as long as them, and
    /// this is then their length.
    pub device_bytes: u64,
    /// Blocks of the filesystem.
    pub blocks: u64,
    /// Blocks of an allocation group; the last may be smaller.
    pub agblocks: u32,
    /// Number of allocation groups.
    pub agcount: u32,
    /// Stripe unit, in blocks; 0 for none.
    pub stripe_unit: u32,
    /// Stripe width, in blocks; 0 for none.
    pub stripe_width: u32,
    /// Alignment of inode chunks, in blocks (`sb_inoalignmt`).
    pub inode_alignment: u32,
    /// Alignment of sparse inode chunks, in blocks (`sb_spino_align`); 0 without sparse inodes.
    pub sparse_alignment: u32,
    /// Most of the space that inodes may take, in percent; 0 for no limit.
    pub imax_pct: u8,
}

impl DataLayout {
    /// Blocks of group `agno`.
    pub fn blocks_of(&self, agno: AgNumber) -> u32 {
        if agno.0 + 1 < self.agcount {
            return self.agblocks;
        }
        let before = u64::from(self.agcount - 1) * u64::from(self.agblocks);
        u32::try_from(self.blocks - before).unwrap_or(self.agblocks)
    }
}

/// The journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLayout {
    /// Where it lies.
    pub place: LogPlace,
    /// Its length, in filesystem blocks.
    pub blocks: u32,
    /// Version 1 or 2.
    pub version: u8,
    /// Sector of the log.
    pub sector: PowerSize,
    /// Stripe unit, in filesystem blocks; 0 for none.
    pub stripe_unit: u32,
}

/// Where the journal lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPlace {
    /// In the data section.
    Internal {
        /// Allocation group.
        agno: AgNumber,
        /// First block in it.
        agblock: AgBlock,
    },
    /// At the start of a device of its own.
    External,
}

/// The realtime section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealtimeLayout {
    /// Where it lies.
    pub place: RealtimePlace,
    /// Blocks of a realtime extent; never 0.
    pub extent_blocks: u32,
    /// Blocks of the section (`sb_rblocks`).
    pub blocks: u64,
    /// Extents of the section (`sb_rextents`).
    pub extents: u64,
    /// Blocks of the bitmap, of one group where there are groups (`sb_rbmblocks`).
    pub bitmap_blocks: u32,
    /// Realtime groups; present with `metadir`, even without a realtime section.
    pub groups: Option<RealtimeGroups>,
    /// Blocks of a zoned section that are kept back (`sb_rtreserved`).
    pub reserved_blocks: u64,
}

/// Where the realtime section lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealtimePlace {
    /// There is none.
    None,
    /// On a device of its own.
    Device,
    /// Behind the data section, from this block of the data device on (`sb_rtstart`); zoned only.
    Internal {
        /// First block, counted from the start of the data device.
        start: u64,
    },
}

/// Realtime groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealtimeGroups {
    /// Number of groups (`sb_rgcount`); 0 without a realtime section.
    pub count: u32,
    /// Realtime extents of a group (`sb_rgextents`); the last may be smaller.
    pub extents: u32,
}

/// What the root directory hands down to files and directories made in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootDefaults {
    /// New files are realtime files.
    pub rt_inherit: bool,
    /// Project identifier that is handed down.
    pub project: Option<u32>,
    /// Hint for the size of extents, in blocks; 0 for none.
    pub extent_size: u32,
    /// Hint for the size of extents of shared files, in blocks; 0 for none.
    pub cow_extent_size: u32,
    /// New files use direct access to the device's memory.
    pub dax: bool,
}

/// Flags of `sb_qflags`. Source: `XFS_*QUOTA_*` of `xfs_log_format.h`.
pub mod quota {
    /// User quota is counted.
    pub const USER_COUNTED: u16 = 0x0001;
    /// User quota is enforced.
    pub const USER_ENFORCED: u16 = 0x0002;
    /// Project quota is counted.
    pub const PROJECT_COUNTED: u16 = 0x0008;
    /// Group quota is counted.
    pub const GROUP_COUNTED: u16 = 0x0040;
    /// Group quota is enforced.
    pub const GROUP_ENFORCED: u16 = 0x0080;
    /// Project quota is enforced.
    pub const PROJECT_ENFORCED: u16 = 0x0200;
}

/// What online checking does with this filesystem: the value of the property `autofsck`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Autofsck {
    /// It leaves the filesystem alone.
    None,
    /// It checks.
    Check,
    /// It checks and optimizes.
    Optimize,
    /// It checks and repairs.
    Repair,
}

impl Autofsck {
    /// The word that is stored.
    pub fn word(self) -> &'static str {
        match self {
            Autofsck::None => "none",
            Autofsck::Check => "check",
            Autofsck::Optimize => "optimize",
            Autofsck::Repair => "repair",
        }
    }
}

/// A point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub sec: i64,
    /// Nanoseconds after that.
    pub nsec: u32,
}
