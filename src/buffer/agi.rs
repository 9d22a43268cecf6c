//! Checks of the inode header of a group (Linux `xfs_agi_verify`).

use super::agf::verify_length;
use super::checks::Checks;
use crate::error::Rule;
use crate::geometry::{AgIno, BtreeKind};
use crate::ondisk::{NULLAGINO, OnDisk, RawAgi};

pub(super) fn verify(checks: &mut Checks<'_>) {
    let Some((agi, _)) = RawAgi::prefix(checks.bytes) else { return checks.truncated() };
    let geometry = checks.geometry;
    checks.equal("versionnum", Rule::Version, agi.versionnum.get(), RawAgi::VERSION);
    verify_length(checks, agi.length.get());
    let levels = geometry.btree(BtreeKind::Inobt).max_levels;
    checks.range("level", agi.level.get(), 1u32, levels);
    if geometry.features.has_finobt() {
        checks.range("free_level", agi.free_level.get(), 1u32, levels);
    }
    let Some(agno) = checks.request.group(geometry) else { return };
    for (bucket, head) in agi.unlinked.iter().enumerate() {
        let head = head.get();
        let fine = head == NULLAGINO || geometry.is_valid_agino(agno, AgIno(head));
        checks.require(fine, "unlinked", Rule::Range, || format!("bucket {bucket} starts with inode {head}"));
    }
}
