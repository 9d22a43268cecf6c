//! What is known about a filesystem, as plain data. Its JSON form is the one of `xfskit-info --json`; the man page documents
//! it, and [`Report::FORMAT`] counts its changes.

use serde::Serialize;

/// A described filesystem.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`Report::FORMAT`].
    pub format: u32,
    /// The device, file or mount point, as it is to be named.
    pub name: String,
    /// Where it is mounted, if it is.
    pub mounted_on: Option<String>,
    /// Where the description comes from.
    pub superblock: SuperblockSource,
    /// Label, without the padding; bytes that are no UTF-8 are replaced.
    pub label: String,
    /// UUID that users see.
    pub uuid: String,
    /// UUID that metadata carry.
    pub meta_uuid: String,
    /// Version of the superblock: 4 or 5.
    pub version: u16,
    /// Features in use, by name.
    pub features: Vec<&'static str>,
    /// Feature bits that Linux 7.3 does not know.
    pub unknown_features: UnknownFeatures,
    /// Sizes of the metadata.
    pub metadata: MetadataShape,
    /// The data device.
    pub data: DataShape,
    /// Directories.
    pub naming: NamingShape,
    /// The log.
    pub log: LogShape,
    /// The realtime section.
    pub realtime: RealtimeShape,
    /// Counters of the superblock; while the log is dirty or the filesystem mounted they are not up to date.
    pub counters: Counters,
    /// Quota state.
    pub quota: Quotas,
    /// The other superblocks.
    pub secondary_superblocks: Secondaries,
    /// Who can use it.
    pub readable_by: ReadableBy,
}

impl Report {
    /// Version of the JSON form. Fields may be added without a new version; it changes when one is removed or means something else.
    pub const FORMAT: u32 = 1;
}

/// Which superblock the description comes from.
#[derive(Clone, Debug, Serialize)]
pub struct SuperblockSource {
    /// Group that it heads: 0 is the primary.
    pub group: u32,
    /// Its offset in bytes.
    pub offset: u64,
    /// Superblocks found to agree about the shape of the filesystem, this one included; 1 for the primary one.
    pub agreeing: u32,
    /// What is wrong with the primary superblock; empty when it is sound.
    pub damage: Vec<String>,
}

/// Bits without a meaning up to Linux 7.3, as numbers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct UnknownFeatures {
    /// Of `versionnum`.
    pub versionnum: u16,
    /// Of `features2`.
    pub features2: u32,
    /// Of `features_compat`.
    pub compat: u32,
    /// Of `features_ro_compat`.
    pub ro_compat: u32,
    /// Of `features_incompat`.
    pub incompat: u32,
    /// Of `features_log_incompat`.
    pub log_incompat: u32,
}

/// Sizes of the metadata.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MetadataShape {
    /// Bytes of an inode.
    pub inode_size: u32,
    /// Allocation groups.
    pub groups: u32,
    /// Blocks of a group; the last one may have fewer.
    pub group_blocks: u32,
    /// Bytes of a sector.
    pub sector_size: u32,
}

/// The data device.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DataShape {
    /// Bytes of a block.
    pub block_size: u32,
    /// Blocks.
    pub blocks: u64,
    /// Bytes that the filesystem needs of its device.
    pub bytes: u64,
    /// Bytes that the device has.
    pub device_bytes: u64,
    /// Whether the device is too short for the filesystem.
    pub cut_short: bool,
    /// Largest percentage that inodes may take; 0 is no limit.
    pub inode_percent: u8,
    /// Stripe unit in blocks; 0 when there is none.
    pub stripe_unit: u32,
    /// Stripe width in blocks; 0 when there is none.
    pub stripe_width: u32,
}

/// Directories.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct NamingShape {
    /// Version of the directory format.
    pub version: u32,
    /// Bytes of a directory block.
    pub block_size: u32,
    /// Whether names are compared without regard to ASCII case.
    pub ascii_ci: bool,
}

/// The log.
#[derive(Clone, Debug, Serialize)]
pub struct LogShape {
    /// Whether it lies on the data device.
    pub internal: bool,
    /// The device that holds it, where it is external and known.
    pub device: Option<String>,
    /// First block, of an internal log.
    pub start: Option<u64>,
    /// Size in blocks.
    pub blocks: u32,
    /// Version: 1 or 2.
    pub version: u32,
    /// Bytes of a sector.
    pub sector_size: u32,
    /// Stripe unit in bytes; 0 when there is none.
    pub stripe_unit: u32,
    /// What it holds.
    pub state: LogStateName,
    /// Why the state is not known, where it is not.
    pub problem: Option<String>,
    /// Block of 512 bytes behind the last record.
    pub head: Option<u32>,
    /// Block of 512 bytes where replay starts; the head in a clean log.
    pub tail: Option<u32>,
    /// Cycle of the last record.
    pub cycle: Option<u32>,
    /// Block of 512 bytes of a torn record at the end, from which on the log is void.
    pub torn_at: Option<u32>,
}

/// What a log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogStateName {
    /// Nothing to replay.
    Clean,
    /// Changes to be replayed.
    Dirty,
    /// Nothing was ever written.
    Zeroed,
    /// It lies on a device that was not given.
    External,
    /// The filesystem is mounted, so that the log changes.
    InUse,
    /// Neither head nor tail could be found.
    Damaged,
}

/// The realtime section.
#[derive(Clone, Debug, Serialize)]
pub struct RealtimeShape {
    /// Whether it lies on the data device; always false when it has no blocks.
    pub internal: bool,
    /// The device that holds it, where it is known.
    pub device: Option<String>,
    /// Bytes of an extent.
    pub extent_size: u64,
    /// Blocks.
    pub blocks: u64,
    /// Extents.
    pub extents: u64,
    /// Groups; 0 when it is not divided.
    pub groups: u32,
    /// Extents of a group.
    pub group_extents: u32,
    /// Whether groups are zones.
    pub zoned: bool,
    /// First block on the data device; 0 when it has a device of its own.
    pub start: u64,
    /// Blocks held back for garbage collection.
    pub reserved: u64,
}

/// Counters of the superblock.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Counters {
    /// Inodes allocated.
    pub inodes: u64,
    /// Inodes allocated and not in use.
    pub free_inodes: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Free realtime extents.
    pub free_realtime_extents: u64,
}

/// Quota state.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quotas {
    /// Users.
    pub user: Quota,
    /// Groups.
    pub group: Quota,
    /// Projects.
    pub project: Quota,
}

/// Quota state of one kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quota {
    /// Use is counted.
    pub accounting: bool,
    /// Limits are enforced.
    pub enforced: bool,
    /// The counts were right when it was last looked.
    pub checked: bool,
    /// Inode of the file, where the superblock names it.
    pub inode: Option<u64>,
}

/// The superblocks of the groups but the first.
#[derive(Clone, Debug, Serialize)]
pub struct Secondaries {
    /// How many there are.
    pub count: u32,
    /// How many were compared.
    pub compared: u32,
    /// Whether all that were compared agree with the primary.
    pub agree: bool,
    /// Those that do not, the first ones.
    pub disagreeing: Vec<Disagreement>,
}

/// A superblock that does not agree with the primary.
#[derive(Clone, Debug, Serialize)]
pub struct Disagreement {
    /// Its group.
    pub group: u32,
    /// Fields that differ, of those that must not.
    pub fields: Vec<&'static str>,
    /// What is wrong with it by itself.
    pub damage: Vec<String>,
}

/// Who can use it.
#[derive(Clone, Debug, Serialize)]
pub struct ReadableBy {
    /// Linux, for writing.
    pub linux_read_write: Readers,
    /// Linux, read-only.
    pub linux_read_only: Readers,
    /// GRUB.
    pub grub: Readers,
    /// Features that some of these kernels warn of as experimental.
    pub experimental: Vec<Experimental>,
}

/// A range of releases, and what decides it.
#[derive(Clone, Debug, Serialize)]
pub struct Readers {
    /// The oldest release that can; `null` if none can. The oldest one that is known of may stand for older ones.
    pub oldest: Option<String>,
    /// The features that decide it.
    pub decided_by: Vec<&'static str>,
    /// The newest release that can, where later ones cannot.
    pub newest: Option<String>,
    /// The features that decide that.
    pub ended_by: Vec<&'static str>,
    /// What else it takes.
    pub conditions: Vec<String>,
}

/// A feature that kernels warn of.
#[derive(Clone, Debug, Serialize)]
pub struct Experimental {
    /// The feature.
    pub feature: &'static str,
    /// The first release that warns.
    pub from: String,
    /// The first release that no longer does; `null` if the newest one still does.
    pub until: Option<String>,
}
