//! What GRUB 2.02 to 2.14 does with each feature: the table.
//!
//! GRUB reads the data device, knows nothing of the log and the realtime volume, and ignores `features_ro_compat`. On v5 it
//! refuses an unknown bit in `features_incompat`, on v4 an unknown one in `versionnum` or `features2` (`grub_xfs_sb_valid` in
//! `grub-core/fs/xfs.c`). The releases are those of the upstream project; distributions carry fixes back.

use super::feature::Feature as F;
use super::release::Grub;

/// What the GRUBs do with one feature.
#[derive(Clone, Copy, Debug)]
pub struct GrubRow {
    /// The feature.
    pub feature: F,
    /// The first release that reads it; 2.02 may stand for an older one. `None`: no release does.
    pub since: Option<Grub>,
    /// A release that fails on it as it came from upstream, and why.
    pub broken: Option<(Grub, &'static str)>,
    /// A defect in reading it: the release, and what fails.
    pub flawed: Option<(Grub, &'static str)>,
    /// Distributions whose GRUB of that release reads it although upstream's does not.
    pub patched: &'static [(&'static str, Grub)],
    /// Where the facts are from.
    pub source: &'static str,
}

const V2_02: Grub = Grub::new(2);
const V2_04: Grub = Grub::new(4);
const V2_06: Grub = Grub::new(6);
const V2_12: Grub = Grub::new(12);
const V2_14: Grub = Grub::new(14);

/// A feature that GRUB does not look at.
const IGNORED: &str = "not looked at by grub-core/fs/xfs.c";

const fn since(feature: F, release: Grub, source: &'static str) -> GrubRow {
    GrubRow { feature, since: Some(release), broken: None, flawed: None, patched: &[], source }
}

const fn never(feature: F, source: &'static str) -> GrubRow {
    GrubRow { feature, since: None, broken: None, flawed: None, patched: &[], source }
}

/// The table, one row for each feature, in the order of [`Feature::ALL`](F::ALL).
pub const GRUBS: [GrubRow; F::ALL.len()] = [
    GrubRow {
        broken: Some((V2_06, "reads v4 inodes 16 bytes short unless a4b495520e4d is applied")),
        patched: &[("Debian 11", V2_06), ("Debian 12", V2_06)],
        ..since(
            F::V4,
            V2_02,
            "grub_xfs_sb_valid; a4b495520e4d \"fs/xfs: Fix unreadable filesystem with v4 superblock\" (2.12)",
        )
    },
    since(F::V5, V2_02, "b6e80c7778b7 \"xfs: V5 filesystem format support\" (2.02)"),
    since(F::Ftype, V2_02, "b6e80c7778b7 \"xfs: V5 filesystem format support\" (2.02)"),
    since(F::Finobt, V2_02, "ro_compat"),
    since(F::SparseInodes, V2_04, "cda0a857dd7a \"xfs: Accept filesystem with sparse inodes\" (2.04)"),
    since(F::Rmapbt, V2_02, "ro_compat"),
    since(F::Reflink, V2_02, "ro_compat"),
    since(F::Inobtcount, V2_02, "ro_compat"),
    since(F::MetaUuid, V2_02, "58590cb2ef48 \"xfs: accept filesystem with meta_uuid\" (2.02)"),
    since(F::Bigtime, V2_06, "8b1e5d1936ff \"fs/xfs: Add bigtime incompat feature support\" (2.06)"),
    since(F::NeedsRepair, V2_06, "777276063e2e \"fs/xfs: Add needsrepair incompat feature support\" (2.06)"),
    GrubRow {
        flawed: Some((V2_12, "directories of several extents are misread unless 4abac0ad5a79 is applied")),
        patched: &[("Debian 12", V2_06)],
        ..since(
            F::Nrext64,
            V2_12,
            "aa7c1322671e \"fs/xfs: Add large extent counters incompat feature support\" (2.12); 4abac0ad5a79 \"fs/xfs: Fix large \
             extent counters incompat feature support\" (2.14)",
        )
    },
    since(F::Exchange, V2_14, "1ed2628b560c \"fs/xfs: Add new superblock features added in Linux 6.12/6.13\" (2.14)"),
    since(F::Parent, V2_14, "1ed2628b560c \"fs/xfs: Add new superblock features added in Linux 6.12/6.13\" (2.14)"),
    since(F::Metadir, V2_14, "1ed2628b560c \"fs/xfs: Add new superblock features added in Linux 6.12/6.13\" (2.14)"),
    since(F::LogXattrs, V2_02, IGNORED),
    since(F::AsciiCi, V2_02, "not looked at on v5; names match in the case in which they are stored"),
    never(F::AsciiCiV4, "not in XFS_SB_VERSION_BITS_SUPPORTED"),
    since(F::LargeBlocks, V2_02, "grub_xfs_sb_valid bounds the directory block size alone"),
    since(F::LargeBlocksV4, V2_02, "grub_xfs_sb_valid bounds the directory block size alone"),
    since(F::Realtime, V2_02, "not looked at; files on the realtime volume cannot be read"),
    since(F::Rtgroups, V2_14, "comes with the metadir bit; files on the realtime volume cannot be read"),
    since(F::RtReflink, V2_02, "ro_compat"),
    since(F::RtRmapbt, V2_02, "ro_compat"),
    since(F::RtReflinkUnfit, V2_02, "ro_compat"),
    since(F::RtRmapbtUnfit, V2_02, "ro_compat"),
    never(F::Zoned, "not in XFS_SB_FEAT_INCOMPAT_SUPPORTED of 2.14"),
    never(F::ZoneGaps, "not in XFS_SB_FEAT_INCOMPAT_SUPPORTED of 2.14"),
    since(F::UnknownRoCompat, V2_02, "ro_compat"),
    never(F::UnknownIncompat, "grub_xfs_sb_valid"),
    since(F::UnknownLogIncompat, V2_02, IGNORED),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_follows_the_list_of_features() {
        for (row, feature) in GRUBS.iter().zip(F::ALL) {
            assert_eq!(row.feature, feature);
            assert!(!row.source.is_empty());
        }
    }
}
