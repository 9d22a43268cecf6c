//! What Linux 4.19 to 7.3 does with each feature: the table.
//!
//! A v5 filesystem is refused when `features_incompat` has a bit that the kernel does not know, and can only be mounted
//! read-only when `features_ro_compat` has one (`xfs_validate_sb_read` in `fs/xfs/libxfs/xfs_sb.c`). Which bits a release knows
//! is `XFS_SB_FEAT_*_ALL` in its `fs/xfs/libxfs/xfs_format.h`; further refusals are in `xfs_fs_fill_super` of `fs/xfs/xfs_super.c`.

use super::feature::Feature as F;
use super::release::Linux;

/// What the kernels do with one feature.
#[derive(Clone, Copy, Debug)]
pub struct KernelRow {
    /// The feature.
    pub feature: F,
    /// The first release that mounts it for writing; the oldest of the table may stand for an older one. `None`: no release does.
    pub read_write: Option<Linux>,
    /// The first release that mounts it read-only; never later than `read_write`.
    pub read_only: Option<Linux>,
    /// The first release that refuses it unless built with this configuration symbol, which is off by default.
    pub default_off: Option<(Linux, &'static str)>,
    /// The releases that warn of it as experimental: from the first, up to but without the second (`None`: to this day).
    pub experimental: Option<(Linux, Option<Linux>)>,
    /// What else a mount takes, for every release.
    pub condition: Option<&'static str>,
    /// Where the facts are from.
    pub source: &'static str,
}

const V4_19: Linux = Linux::new(4, 19);
const V5_10: Linux = Linux::new(5, 10);
const V5_15: Linux = Linux::new(5, 15);
const V5_19: Linux = Linux::new(5, 19);
const V6_5: Linux = Linux::new(6, 5);
const V6_10: Linux = Linux::new(6, 10);
const V6_12: Linux = Linux::new(6, 12);
const V6_13: Linux = Linux::new(6, 13);
const V6_14: Linux = Linux::new(6, 14);
const V6_15: Linux = Linux::new(6, 15);
const V6_16: Linux = Linux::new(6, 16);
const V6_18: Linux = Linux::new(6, 18);
const V7_0: Linux = Linux::new(7, 0);
const V7_2: Linux = Linux::new(7, 2);

/// A feature that a release began to mount, fully, and that later ones still do.
const fn since(feature: F, release: Linux, source: &'static str) -> KernelRow {
    KernelRow {
        feature,
        read_write: Some(release),
        read_only: Some(release),
        default_off: None,
        experimental: None,
        condition: None,
        source,
    }
}

/// A feature that no release mounts.
const fn never(feature: F, source: &'static str) -> KernelRow {
    KernelRow { read_write: None, read_only: None, ..since(feature, V4_19, source) }
}

impl KernelRow {
    const fn warned(self, from: Linux, to: Option<Linux>) -> Self {
        KernelRow { experimental: Some((from, to)), ..self }
    }

    const fn until(self, release: Linux, config: &'static str) -> Self {
        KernelRow { default_off: Some((release, config)), ..self }
    }

    const fn given(self, condition: &'static str) -> Self {
        KernelRow { condition: Some(condition), ..self }
    }
}

/// The table, one row for each feature, in the order of [`Feature::ALL`](F::ALL).
pub const KERNELS: [KernelRow; F::ALL.len()] = [
    since(
        F::V4,
        V4_19,
        "b96cb835e37c \"xfs: deprecate the V4 format\" (5.10) made it a configuration; f69260511c69 \"xfs: disable deprecated \
         features by default in Kconfig\" (6.18) turned that off; removal announced for September 2030 (fs/xfs/Kconfig, 7.3)",
    )
    .until(V6_18, "CONFIG_XFS_SUPPORT_V4"),
    since(F::V5, V4_19, "fs/xfs/libxfs/xfs_sb.c; since 3.10, no longer experimental since 3.15"),
    since(F::Ftype, V4_19, "XFS_SB_FEAT_INCOMPAT_FTYPE; since 3.13 on v5, also in v4's features2"),
    since(F::Finobt, V4_19, "XFS_SB_FEAT_RO_COMPAT_FINOBT; since 3.16"),
    since(F::SparseInodes, V4_19, "XFS_SB_FEAT_INCOMPAT_SPINODES; since 4.2"),
    since(F::Rmapbt, V4_19, "XFS_SB_FEAT_RO_COMPAT_RMAPBT; since 4.8, no longer experimental in 4.19"),
    since(F::Reflink, V4_19, "XFS_SB_FEAT_RO_COMPAT_REFLINK; since 4.9, no longer experimental in 4.19"),
    KernelRow {
        read_only: Some(V4_19),
        ..since(
            F::Inobtcount,
            V5_10,
            "\"xfs: enable new inode btree counters feature\" (5.10), a ro_compat bit; \"xfs: drop experimental warnings for \
             bigtime and inobtcount\" (5.15)",
        )
    }
    .warned(V5_10, Some(V5_15)),
    since(F::MetaUuid, V4_19, "XFS_SB_FEAT_INCOMPAT_META_UUID; since 4.3"),
    since(
        F::Bigtime,
        V5_10,
        "29887a227131 \"xfs: enable big timestamps\" (5.10), an incompat bit; \"xfs: drop experimental warnings for bigtime and \
         inobtcount\" (5.15)",
    )
    .warned(V5_10, Some(V5_15)),
    KernelRow {
        read_write: None,
        ..since(
            F::NeedsRepair,
            V6_12,
            "96f65bad7c31 \"xfs: enable the needsrepair feature\" (5.11) refuses every mount; \"xfs: do not check NEEDSREPAIR if \
             ro,norecovery mount\" (6.14, and stable releases of 6.12 and 6.13) allows one that replays no log",
        )
    }
    .given("mounted with -o ro,norecovery, 6.12 and 6.13 with their stable updates"),
    since(
        F::Nrext64,
        V5_19,
        "973ac0eb3a7d \"xfs: Add XFS_SB_FEAT_INCOMPAT_NREXT64 to the list of supported flags\" (5.19); 61d7e8274cd8 \"xfs: drop \
         EXPERIMENTAL tag for large extent counts\" (6.5)",
    )
    .warned(V5_19, Some(V6_5)),
    since(
        F::Exchange,
        V6_10,
        "0730e8d8ba1a \"xfs: enable logged file mapping exchange feature\" (6.10); ca43b74ac304 \"xfs: remove some EXPERIMENTAL \
         warnings\" (6.16)",
    )
    .warned(V6_10, Some(V6_16)),
    since(
        F::Parent,
        V6_10,
        "67ac7091e35b \"xfs: enable parent pointers\" (6.10); ca43b74ac304 \"xfs: remove some EXPERIMENTAL warnings\" (6.16)",
    )
    .warned(V6_10, Some(V6_16)),
    since(
        F::Metadir,
        V6_13,
        "\"xfs: enable metadata directory feature\" (6.13); 4d6d335ea955 \"xfs: promote metadata directories and large block \
         support\" (7.0)",
    )
    .warned(V6_13, Some(V7_0)),
    since(
        F::LogXattrs,
        V5_19,
        "XFS_SB_FEAT_INCOMPAT_LOG_XATTRS (5.19); older kernels refuse to recover such a log (xlog_recover); still in \
         xfs_experimental_feat of 7.3",
    )
    .warned(V5_19, None),
    since(
        F::AsciiCi,
        V4_19,
        "7ba83850ca26 \"xfs: deprecate the ascii-ci feature\" (6.4) made it a configuration; f69260511c69 \"xfs: disable \
         deprecated features by default in Kconfig\" (6.18) turned that off; removal announced for September 2030",
    )
    .until(V6_18, "CONFIG_XFS_SUPPORT_ASCII_CI"),
    since(F::AsciiCiV4, V4_19, "as for v4 and for ascii-ci").until(V6_18, "CONFIG_XFS_SUPPORT_V4 and CONFIG_XFS_SUPPORT_ASCII_CI"),
    since(
        F::LargeBlocks,
        V6_12,
        "\"xfs: enable block size larger than page size support\" (6.12); 4d6d335ea955 \"xfs: promote metadata directories and \
         large block support\" (7.0); machines with larger pages mount blocks up to their page size on every release",
    )
    .warned(V6_12, Some(V7_0)),
    never(F::LargeBlocksV4, "xfs_fs_fill_super: v4 blocks are at most a page on every release"),
    since(F::Realtime, V4_19, "fs/xfs/xfs_rtalloc.c").given("built with CONFIG_XFS_RT"),
    since(F::Rtgroups, V6_13, "comes with the metadir bit (6.13): xfs_validate_sb_rtgroups in fs/xfs/libxfs/xfs_sb.c")
        .warned(V6_13, Some(V7_0))
        .given("built with CONFIG_XFS_RT"),
    since(
        F::RtReflink,
        V6_14,
        "\"xfs: enable realtime reflink\" (6.14); before it xfs_fs_fill_super refuses reflink beside a realtime volume",
    )
    .given("built with CONFIG_XFS_RT"),
    since(
        F::RtRmapbt,
        V6_14,
        "c2358439af37 \"xfs: enable realtime rmap btree\" (6.14); before it xfs_fs_fill_super refuses rmapbt beside a realtime \
         volume",
    )
    .given("built with CONFIG_XFS_RT"),
    never(F::RtReflinkUnfit, "xfs_fs_fill_super, and since 6.14 xfs_reflink_supports_rextsize in fs/xfs/xfs_reflink.c"),
    never(F::RtRmapbtUnfit, "xfs_fs_fill_super"),
    since(
        F::Zoned,
        V6_15,
        "be458049ffe3 \"xfs: enable the zoned RT device feature\" (6.15); no longer in xfs_experimental_feat since 7.2",
    )
    .warned(V6_15, Some(V7_2))
    .given("built with CONFIG_XFS_RT"),
    since(F::ZoneGaps, V6_15, "97c69ba1c08d \"xfs: support zone gaps\" (6.15)").given("built with CONFIG_XFS_RT"),
    KernelRow { read_only: Some(V4_19), ..never(F::UnknownRoCompat, "xfs_validate_sb_read: XFS_SB_FEAT_RO_COMPAT_UNKNOWN") },
    never(F::UnknownIncompat, "xfs_validate_sb_read: XFS_SB_FEAT_INCOMPAT_UNKNOWN; xfs_sb_good_version for v4"),
    never(F::UnknownLogIncompat, "xlog_recover: XFS_SB_FEAT_INCOMPAT_LOG_UNKNOWN"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_follows_the_list_of_features() {
        for (row, feature) in KERNELS.iter().zip(F::ALL) {
            assert_eq!(row.feature, feature);
            assert!(!row.source.is_empty());
        }
    }

    #[test]
    fn releases_of_a_row_are_in_order() {
        for row in &KERNELS {
            if let Some(write) = row.read_write {
                assert!(row.read_only.is_some_and(|read| read <= write), "{}", row.feature);
                assert!(row.default_off.is_none_or(|(off, _)| off > write), "{}", row.feature);
                assert!(
                    row.experimental.is_none_or(|(from, to)| from == write && to.is_none_or(|to| to > from)),
                    "{}",
                    row.feature
                );
            }
        }
    }
}
