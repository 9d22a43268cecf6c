//! Checks of the free space header of a group (Linux `xfs_agf_verify`).

use super::checks::Checks;
use crate::error::Rule;
use crate::geometry::BtreeKind;
use crate::geometry::limits::MIN_AG_BLOCKS;
use crate::ondisk::{OnDisk, RawAgf};

pub(super) fn verify(checks: &mut Checks<'_>) {
    let Some((agf, _)) = RawAgf::prefix(checks.bytes) else { return checks.truncated() };
    let geometry = checks.geometry;
    let length = agf.length.get();
    checks.equal("versionnum", Rule::Version, agf.versionnum.get(), RawAgf::VERSION);
    verify_length(checks, length);
    let slots = geometry.agfl_capacity;
    let last = slots.saturating_sub(1);
    checks.range("flfirst", agf.flfirst.get(), 0u32, last);
    checks.range("fllast", agf.fllast.get(), 0u32, last);
    checks.range("flcount", agf.flcount.get(), 0u32, slots);
    checks.range("freeblks", agf.freeblks.get(), 0u32, length);
    let (longest, free) = (agf.longest.get(), agf.freeblks.get());
    checks.require(longest <= free, "longest", Rule::Mismatch, || format!("{longest}, free are {free}"));
    let levels = |kind| geometry.btree(kind).max_levels;
    checks.range("bno_level", agf.bno_level.get(), 1u32, levels(BtreeKind::Bnobt));
    checks.range("cnt_level", agf.cnt_level.get(), 1u32, levels(BtreeKind::Cntbt));
    if geometry.features.has_lazysbcount() {
        checks.range("btreeblks", agf.btreeblks.get(), 0u32, length);
    }
    if geometry.features.has_rmapbt() {
        checks.range("rmap_blocks", agf.rmap_blocks.get(), 0u32, length);
        checks.range("rmap_level", agf.rmap_level.get(), 1u32, levels(BtreeKind::Rmapbt));
    }
    if geometry.features.has_reflink() {
        checks.range("refcount_blocks", agf.refcount_blocks.get(), 0u32, length);
        checks.range("refcount_level", agf.refcount_level.get(), 1u32, levels(BtreeKind::Refcountbt));
    }
}

/// Only the last group may be shorter than the others.
pub(super) fn verify_length(checks: &mut Checks<'_>, length: u32) {
    let geometry = checks.geometry;
    let is_last = checks.request.group(geometry).is_none_or(|agno| agno.0 == geometry.agcount - 1);
    let least = if is_last { MIN_AG_BLOCKS.min(geometry.agblocks) } else { geometry.agblocks };
    checks.range("length", length, least, geometry.agblocks);
}
