//! Checks of the realtime superblock (Linux `xfs_rtsb_verify_all`); bitmap and summary blocks (`xfs_rtbuf_verify`) have
//! nothing beyond what identifies them.

use super::checks::Checks;
use crate::error::Rule;
use crate::ondisk::{OnDisk, RawRtSuperblock};

pub(super) fn verify_superblock(checks: &mut Checks<'_>) {
    let Some((sb, rest)) = RawRtSuperblock::prefix(checks.bytes) else { return checks.truncated() };
    checks.require(sb.uuid == checks.geometry.uuid, "uuid", Rule::Uuid, || "not the one that users see".to_owned());
    checks.require(sb.fname == checks.geometry.label, "fname", Rule::Mismatch, || "not the label".to_owned());
    checks.require(sb.pad.get() == 0, "pad", Rule::Padding, || format!("{}", sb.pad));
    let zero = rest.iter().all(|byte| *byte == 0);
    checks.require(zero, "rest", Rule::Padding, || "the rest of the block is not zero".to_owned());
}

/// Blocks without a header can be anything; those of groups belong to the groups alone.
pub(super) fn verify_bitmap(checks: &mut Checks<'_>) {
    let whole = checks.bytes.len() as u64 >= u64::from(checks.geometry.blocksize);
    if !whole {
        checks.truncated();
    }
}
