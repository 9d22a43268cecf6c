//! Who can use a filesystem, from its geometry.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::report::{Experimental, LogStateName, ReadableBy, Readers};
use crate::geometry::{self, Geometry};
use crate::readers::verdict::{Oldest, grub_row, kernel_row};
use crate::readers::{Feature, readers};

/// Bytes of a page on the machines that the table of readers is about.
const PAGE: u32 = 4096;

/// The features of a filesystem that decide who can use it. What is in the log counts only if the log is not clean.
pub fn features_that_matter(geometry: &Geometry, log: LogStateName) -> BTreeSet<Feature> {
    use Feature as F;
    let has = &geometry.features;
    let v5 = has.is_v5();
    let realtime = has.has_realtime();
    let groups = realtime && has.has_rtgroups();
    let shares = groups && geometry.realtime.extent_blocks == 1 && !has.has_zoned();
    let large = geometry.blocksize > PAGE;
    let unknown = has.unknown();
    let replays = log != LogStateName::Clean && log != LogStateName::Zeroed;
    let rows = [
        (F::V4, !v5),
        (F::V5, v5),
        (F::Ftype, has.has_ftype()),
        (F::Finobt, has.has_finobt()),
        (F::SparseInodes, has.has_sparseinodes()),
        (F::Rmapbt, has.has_rmapbt()),
        (F::Reflink, has.has_reflink()),
        (F::Inobtcount, has.has_inobtcount()),
        (F::MetaUuid, has.has_metauuid()),
        (F::Bigtime, has.has_bigtime()),
        (F::NeedsRepair, has.has_needsrepair()),
        (F::Nrext64, has.has_nrext64()),
        (F::Exchange, has.has_exchange()),
        (F::Parent, has.has_parent()),
        (F::Metadir, has.has_metadir()),
        (F::LogXattrs, has.has_log_xattrs() && replays),
        (F::AsciiCi, has.has_asciici() && v5),
        (F::AsciiCiV4, has.has_asciici() && !v5),
        (F::LargeBlocks, large && v5),
        (F::LargeBlocksV4, large && !v5),
        (F::Realtime, realtime && !groups),
        (F::Rtgroups, groups),
        (F::RtReflink, has.has_reflink() && shares),
        (F::RtRmapbt, has.has_rmapbt() && groups),
        (F::RtReflinkUnfit, has.has_reflink() && realtime && !shares),
        (F::RtRmapbtUnfit, has.has_rmapbt() && realtime && !groups),
        (F::Zoned, has.has_zoned()),
        (F::ZoneGaps, has.has_zone_gaps()),
        (F::UnknownRoCompat, unknown.ro_compat != 0),
        (F::UnknownIncompat, unknown.incompat != 0 || unknown.versionnum != 0 || unknown.features2 != 0),
        (F::UnknownLogIncompat, unknown.log_incompat != 0 && replays),
    ];
    rows.into_iter().filter(|(_, present)| *present).map(|(feature, _)| feature).collect()
}

/// The answer to `--readable-by`.
pub(super) fn readable_by(geometry: &Geometry, log: LogStateName) -> ReadableBy {
    let features = features_that_matter(geometry, log);
    let answer = readers(&features);
    let conditions = |writes: bool| {
        let rows = features.iter().map(|&feature| kernel_row(feature));
        let relevant = rows.filter(|row| row.read_write.is_some() || !writes);
        let mut conditions: Vec<String> = relevant.filter_map(|row| row.condition).map(str::to_owned).collect();
        conditions.dedup();
        conditions
    };
    let flaws = features.iter().filter_map(|&feature| {
        let (release, what) = grub_row(feature).flawed?;
        Some(format!("{feature} with GRUB {release}: {what}"))
    });
    let patched = features.iter().flat_map(|&feature| {
        let patched = grub_row(feature).patched.iter();
        patched.map(move |(distribution, release)| format!("{feature} also with GRUB {release} of {distribution}"))
    });
    ReadableBy {
        linux_read_write: range(&answer.read_write, conditions(true)),
        linux_read_only: range(&answer.read_only, conditions(false)),
        grub: range(&answer.grub, flaws.chain(patched).collect()),
        experimental: experimental(&features),
    }
}

fn range<R: Display>(oldest: &Oldest<R>, conditions: Vec<String>) -> Readers {
    let names = |features: &[Feature]| features.iter().map(|feature| feature.name()).collect();
    Readers {
        oldest: oldest.release.as_ref().map(R::to_string),
        decided_by: names(&oldest.decided_by),
        newest: oldest.last.as_ref().map(|(release, _)| release.to_string()),
        ended_by: oldest.last.as_ref().map(|(_, features)| names(features)).unwrap_or_default(),
        conditions: if oldest.release.is_some() { conditions } else { Vec::new() },
    }
}

fn experimental(features: &BTreeSet<Feature>) -> Vec<Experimental> {
    let warned = features.iter().filter_map(|&feature| {
        let (from, until) = kernel_row(feature).experimental?;
        Some(Experimental {
            feature: feature.name(),
            from: from.to_string(),
            until: until.map(|until| until.to_string()),
        })
    });
    warned.collect()
}

/// The names of a filesystem's features.
pub(super) fn feature_names(geometry: &Geometry) -> Vec<&'static str> {
    geometry.features.list().map(geometry::Feature::name).collect()
}
