//! Checks of the free list of a group (Linux `xfs_agfl_verify`). In version 4 nothing is known of unused slots.

use super::checks::Checks;
use crate::error::Rule;
use crate::ondisk::{NULLAGBLOCK, RawAgfl};

pub(super) fn verify(checks: &mut Checks<'_>) {
    let geometry = checks.geometry;
    if !geometry.features.has_crc() {
        return;
    }
    for (slot, block) in RawAgfl::entries(checks.bytes, true).iter().enumerate() {
        let block = block.get();
        let fine = block == NULLAGBLOCK || block < geometry.agblocks;
        checks.require(fine, "bno", Rule::Range, || format!("slot {slot} holds block {block}"));
    }
}
