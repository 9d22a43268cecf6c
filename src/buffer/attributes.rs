//! Checks of attribute leaves and nodes (Linux `xfs_attr3_leaf_verify`, `xfs_da3_node_verify`).

use super::checks::Checks;
use super::directory::{note_all, verify_node};
use crate::error::Rule;
use crate::ondisk::attr_leaf::{AttrLeaf, AttrLeafValue};
use crate::ondisk::attr_short::ATTR_INCOMPLETE;
use crate::ondisk::remote::ATTR_MAX_VALUELEN;

pub(super) fn verify_hash(checks: &mut Checks<'_>) {
    match AttrLeaf::decode(checks.bytes, checks.geometry.features.has_crc()) {
        Err(check) if check.rule == Rule::Magic => verify_node(checks),
        Err(check) => note_all(checks, [check]),
        Ok(leaf) => verify_leaf(checks, &leaf),
    }
}

fn verify_leaf(checks: &mut Checks<'_>, leaf: &AttrLeaf<'_>) {
    note_all(checks, leaf.verify());
    for entry in leaf.entries {
        let Ok(name) = leaf.name(entry) else { continue };
        let AttrLeafValue::Remote { valueblk, valuelen } = name.value else { continue };
        // a value that is being written has no blocks yet
        let placed = valueblk != 0 || entry.flags & ATTR_INCOMPLETE != 0;
        checks.require(placed, "name_remote.valueblk", Rule::Range, || "0".to_owned());
        checks.range("name_remote.valuelen", valuelen, 0u32, ATTR_MAX_VALUELEN);
    }
    let ranges = leaf.freemap.map(|map| (u32::from(map.base.get()), u32::from(map.size.get())));
    let overlap = |a: (u32, u32), b: (u32, u32)| a.1 > 0 && b.1 > 0 && a.0 < b.0 + b.1 && b.0 < a.0 + a.1;
    let pairs = [(0, 1), (0, 2), (1, 2)];
    let apart = !pairs.iter().any(|&(a, b)| overlap(ranges[a], ranges[b]));
    checks.require(apart, "freemap", Rule::Mismatch, || "ranges overlap".to_owned());
}
