//! The superblock's checks of its realtime section: groups, zones and sizes (Linux `libxfs/xfs_sb.c`,
//! `xfs_validate_sb_rtgroups`, `xfs_validate_sb_zoned`, `xfs_validate_rt_geometry`).

use super::limits::{MAX_RGBLOCKS, MAX_RTEXT_BYTES, MIN_RGEXTENTS, MIN_RTEXT_BYTES};
use super::superblock_check::{SuperblockChecks, log2_ceil};
use crate::error::Rule;
use crate::ondisk::feature_bits::incompat;
use crate::ondisk::{OnDisk, RawRtBlockHeader, RawSuperblock};

/// Checks the realtime groups, which every filesystem with a metadata directory has, if only potentially.
pub(super) fn groups(checks: &mut SuperblockChecks<'_>) {
    let sb = checks.sb;
    let (rextsize, rgextents) = (sb.rextsize.get(), sb.rgextents.get());
    checks.require(sb.pad == [0; 7], "pad", Rule::Padding, || format!("{:02x?}", sb.pad));
    let max = MAX_RGBLOCKS.checked_div(rextsize).unwrap_or(0);
    checks.require((MIN_RGEXTENTS..=max).contains(&rgextents), "rgextents", Rule::Range, || {
        format!("{rgextents}, not in {MIN_RGEXTENTS} to {max}")
    });
    if rgextents > 0 {
        checks.equal("rgcount", u64::from(sb.rgcount.get()), sb.rextents.get().div_ceil(u64::from(rgextents)));
    }
    let exchange = sb.features_incompat.get() & incompat::EXCHRANGE != 0;
    checks.require(exchange, "features_incompat", Rule::Mismatch, || "metadir without exchange".to_owned());
    let rgblocks = u64::from(rgextents) * u64::from(rextsize);
    checks.equal("rgblklog", u64::from(sb.rgblklog), u64::from(log2_ceil(rgblocks)));
}

/// Checks what zones add.
pub(super) fn zones(checks: &mut SuperblockChecks<'_>) {
    let sb = checks.sb;
    let (start, reserved) = (sb.rtstart.get(), sb.rtreserved.get());
    checks.zero("frextents", sb.frextents.get());
    checks.require(start == 0 || start >= sb.dblocks.get(), "rtstart", Rule::Range, || {
        format!("{start} lies within the {} data blocks", sb.dblocks)
    });
    checks.require(reserved == 0 || reserved < sb.rblocks.get(), "rtreserved", Rule::Range, || {
        format!("{reserved} of {} blocks", sb.rblocks)
    });
    let rgextents = u64::from(sb.rgextents.get());
    let whole = sb.rblocks.get() == 0 || (rgextents != 0 && sb.rextents.get() % rgextents == 0);
    checks.require(whole, "rgextents", Rule::Mismatch, || {
        format!("{} extents are no whole zones of {rgextents}", sb.rextents)
    });
    checks.equal("rextsize", u64::from(sb.rextsize.get()), 1);
}

/// Checks extent size and counts of the section, or that they are zero without one.
pub(super) fn section(checks: &mut SuperblockChecks<'_>) {
    let sb = checks.sb;
    let rextsize = u64::from(sb.rextsize.get());
    let extent_bytes = rextsize * u64::from(sb.blocksize.get());
    checks.require((MIN_RTEXT_BYTES..=MAX_RTEXT_BYTES).contains(&extent_bytes), "rextsize", Rule::Range, || {
        format!("{extent_bytes} bytes, not in {MIN_RTEXT_BYTES} to {MAX_RTEXT_BYTES}")
    });
    let (rblocks, rextents) = (sb.rblocks.get(), sb.rextents.get());
    if rblocks == 0 {
        checks.zero("rextents", rextents);
        checks.zero("rbmblocks", u64::from(sb.rbmblocks.get()));
        checks.zero("rextslog", u64::from(sb.rextslog));
        if !is_zoned(sb) {
            checks.zero("frextents", sb.frextents.get());
        }
        return;
    }
    checks.require(rextents > 0, "rextents", Rule::Range, || "0".to_owned());
    if let Some(whole) = rblocks.checked_div(rextsize) {
        checks.equal("rextents", rextents, whole);
    }
    checks.equal("rextslog", u64::from(sb.rextslog), u64::from(rextents.checked_ilog2().unwrap_or(0)));
    if let Some(expected) = bitmap_blocks(sb) {
        checks.equal("rbmblocks", u64::from(sb.rbmblocks.get()), expected);
    }
}

fn is_zoned(sb: &RawSuperblock) -> bool {
    sb.is_v5() && sb.features_incompat.get() & incompat::ZONED != 0
}

/// Blocks of one realtime bitmap file; `None` when the block size is nonsense.
fn bitmap_blocks(sb: &RawSuperblock) -> Option<u64> {
    if is_zoned(sb) {
        return Some(0);
    }
    let blocksize = u64::from(sb.blocksize.get());
    let (bits, payload) = if sb.is_v5() && sb.features_incompat.get() & incompat::METADIR != 0 {
        (u64::from(sb.rgextents.get()), blocksize.checked_sub(RawRtBlockHeader::SIZE as u64)?)
    } else {
        (sb.rextents.get(), blocksize)
    };
    (payload > 0).then(|| bits.div_ceil(payload * 8))
}
