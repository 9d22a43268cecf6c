//! Checks of superblocks and their copies.

use super::checks::Checks;
use crate::geometry::{AgNumber, SuperblockContext, check_superblock};
use crate::ondisk::{OnDisk, RawSuperblock};

pub(super) fn verify(checks: &mut Checks<'_>) {
    let Some((sb, _)) = RawSuperblock::prefix(checks.bytes) else { return checks.truncated() };
    let agno = checks.request.group(checks.geometry).unwrap_or(AgNumber(0));
    let verdict = check_superblock(sb, SuperblockContext { agno, external_log: None });
    for failure in verdict.failures() {
        checks.note(failure.check, failure.detail.clone());
    }
}
