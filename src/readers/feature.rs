//! The properties of a filesystem that decide who can read it.

use std::fmt;

/// A property of a filesystem that some kernel or GRUB cannot handle, or that is a feature of its own in the superblock.
///
/// Combinations that have their own history stand here as features too: reflink on a realtime volume is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// Format 4: no checksums.
    V4,
    /// Format 5: checksums, self-describing metadata.
    V5,
    /// File types in directory entries.
    Ftype,
    /// Btree of free inodes.
    Finobt,
    /// Inode chunks with holes.
    SparseInodes,
    /// Reverse mapping btree.
    Rmapbt,
    /// Shared extents.
    Reflink,
    /// Block counts of the inode btrees in the AGI.
    Inobtcount,
    /// A UUID for users apart from the one in the metadata.
    MetaUuid,
    /// Timestamps up to the year 2486.
    Bigtime,
    /// Marked as damaged until `xfs_repair` has run.
    NeedsRepair,
    /// 64-bit extent counters.
    Nrext64,
    /// Exchange of file contents, logged.
    Exchange,
    /// Parent pointers.
    Parent,
    /// Directory tree of metadata files.
    Metadir,
    /// Logged extended attributes in use when the log was last written.
    LogXattrs,
    /// Case-insensitive names, ASCII only, format 5.
    AsciiCi,
    /// Case-insensitive names, ASCII only, format 4.
    AsciiCiV4,
    /// Blocks larger than a 4096-byte page, format 5.
    LargeBlocks,
    /// Blocks larger than a 4096-byte page, format 4.
    LargeBlocksV4,
    /// A realtime volume without groups.
    Realtime,
    /// A realtime volume in groups.
    Rtgroups,
    /// Shared extents on a realtime volume in groups with extents of one block.
    RtReflink,
    /// Reverse mapping of a realtime volume in groups.
    RtRmapbt,
    /// Reflink beside a realtime volume that cannot share extents: without groups, with extents longer than a block, or zoned.
    RtReflinkUnfit,
    /// The reverse mapping btree beside a realtime volume that has no groups.
    RtRmapbtUnfit,
    /// The zoned allocator for the realtime volume.
    Zoned,
    /// Zones with a capacity smaller than their size.
    ZoneGaps,
    /// A `features_ro_compat` bit that no kernel of the table knows.
    UnknownRoCompat,
    /// A `features_incompat` bit, or a bit of format 4, that no kernel of the table knows.
    UnknownIncompat,
    /// A `features_log_incompat` bit that no kernel of the table knows.
    UnknownLogIncompat,
}

use Feature as F;

impl Feature {
    /// Every feature, in the order of the tables.
    pub const ALL: [Feature; 31] = [
        F::V4,
        F::V5,
        F::Ftype,
        F::Finobt,
        F::SparseInodes,
        F::Rmapbt,
        F::Reflink,
        F::Inobtcount,
        F::MetaUuid,
        F::Bigtime,
        F::NeedsRepair,
        F::Nrext64,
        F::Exchange,
        F::Parent,
        F::Metadir,
        F::LogXattrs,
        F::AsciiCi,
        F::AsciiCiV4,
        F::LargeBlocks,
        F::LargeBlocksV4,
        F::Realtime,
        F::Rtgroups,
        F::RtReflink,
        F::RtRmapbt,
        F::RtReflinkUnfit,
        F::RtRmapbtUnfit,
        F::Zoned,
        F::ZoneGaps,
        F::UnknownRoCompat,
        F::UnknownIncompat,
        F::UnknownLogIncompat,
    ];

    /// The name in messages and in JSON; where mkfs.xfs has a suboption for the feature, the suboption's name.
    pub fn name(self) -> &'static str {
        match self {
            F::V4 => "v4",
            F::V5 => "crc",
            F::Ftype => "ftype",
            F::Finobt => "finobt",
            F::SparseInodes => "sparse",
            F::Rmapbt => "rmapbt",
            F::Reflink => "reflink",
            F::Inobtcount => "inobtcount",
            F::MetaUuid => "metauuid",
            F::Bigtime => "bigtime",
            F::NeedsRepair => "needsrepair",
            F::Nrext64 => "nrext64",
            F::Exchange => "exchange",
            F::Parent => "parent",
            F::Metadir => "metadir",
            F::LogXattrs => "log-xattrs",
            F::AsciiCi => "ascii-ci",
            F::AsciiCiV4 => "ascii-ci on v4",
            F::LargeBlocks => "blocks larger than 4096 bytes",
            F::LargeBlocksV4 => "v4 blocks larger than 4096 bytes",
            F::Realtime => "realtime volume",
            F::Rtgroups => "realtime groups",
            F::RtReflink => "realtime reflink",
            F::RtRmapbt => "realtime rmapbt",
            F::RtReflinkUnfit => "reflink beside a realtime volume that cannot share extents",
            F::RtRmapbtUnfit => "rmapbt beside a realtime volume without groups",
            F::Zoned => "zoned",
            F::ZoneGaps => "zone gaps",
            F::UnknownRoCompat => "unknown ro_compat feature",
            F::UnknownIncompat => "unknown incompat feature",
            F::UnknownLogIncompat => "unknown log_incompat feature",
        }
    }

    /// The release of xfsprogs since which mkfs.xfs turns it on without being asked, as `(major, minor)`; `None` if it does not.
    ///
    /// From `doc/CHANGES` and `mkfs/lts_*.conf` of xfsprogs.
    pub fn default_since(self) -> Option<(u16, u16)> {
        match self {
            F::V5 | F::Finobt => Some((3, 2)),
            F::Ftype => Some((4, 2)),
            F::SparseInodes => Some((4, 16)),
            F::Reflink => Some((5, 1)),
            F::Bigtime | F::Inobtcount => Some((5, 15)),
            F::Rmapbt | F::Nrext64 => Some((6, 5)),
            F::Exchange | F::Parent => Some((6, 18)),
            _ => None,
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_is_listed_once_and_named_differently() {
        let mut names: Vec<_> = Feature::ALL.iter().map(|feature| feature.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Feature::ALL.len());
        assert!(Feature::ALL.is_sorted());
    }
}
