//! Checks of btree blocks (Linux `xfs_*bt_verify`). What the records say is the affair of who walks the tree.

use super::checks::Checks;
use crate::error::Rule;
use crate::geometry::{AgBlock, BtreeKind, FsBlock};
use crate::ondisk::{NULLAGBLOCK, NULLFSBLOCK, OnDisk, RawLongBlock, RawShortBlock};

pub(super) fn verify(kind: BtreeKind, checks: &mut Checks<'_>) {
    if kind.is_long() {
        let Some((head, _)) = RawLongBlock::prefix(checks.bytes) else { return checks.truncated() };
        verify_counts(kind, checks, head.level.get(), head.numrecs.get());
        for (field, sibling) in [("leftsib", head.leftsib.get()), ("rightsib", head.rightsib.get())] {
            verify_long_sibling(checks, field, sibling);
        }
    } else {
        let Some((head, _)) = RawShortBlock::prefix(checks.bytes) else { return checks.truncated() };
        verify_counts(kind, checks, head.level.get(), head.numrecs.get());
        for (field, sibling) in [("leftsib", head.leftsib.get()), ("rightsib", head.rightsib.get())] {
            verify_short_sibling(checks, field, sibling);
        }
    }
}

fn verify_counts(kind: BtreeKind, checks: &mut Checks<'_>, level: u16, numrecs: u16) {
    let sizes = checks.geometry.btree(kind);
    let level = u32::from(level);
    // trees with the root in an inode have one level there; a block does not know of which fork it is
    let highest = match kind {
        BtreeKind::Bmbt => sizes.max_levels.max(checks.geometry.btrees.attr_bmbt_max_levels),
        _ => sizes.max_levels.saturating_sub(1),
    };
    checks.range("level", level, 0u32, highest);
    if let Some(expected) = checks.request.level {
        checks.equal("level", Rule::Mismatch, level, expected);
    }
    let (found, most) = (u32::from(numrecs), sizes.max_records(level));
    checks.require(found <= most, "numrecs", Rule::Count, || format!("{found}, room is for {most}"));
}

fn verify_short_sibling(checks: &mut Checks<'_>, field: &'static str, sibling: u32) {
    let geometry = checks.geometry;
    if sibling == NULLAGBLOCK {
        return;
    }
    let Some((agno, own)) = geometry.daddr_parts(checks.request.daddr()) else { return };
    let fine = sibling != own.0 && geometry.is_usable_agbno(agno, AgBlock(sibling));
    checks.require(fine, field, Rule::Range, || format!("block {sibling}"));
}

fn verify_long_sibling(checks: &mut Checks<'_>, field: &'static str, sibling: u64) {
    let geometry = checks.geometry;
    if sibling == NULLFSBLOCK {
        return;
    }
    let own = geometry.daddr_fsb(checks.request.daddr());
    let fine = own != Some(FsBlock(sibling)) && geometry.is_usable_fsb(FsBlock(sibling));
    checks.require(fine, field, Rule::Range, || format!("block {sibling}"));
}
