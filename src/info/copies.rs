//! The superblocks of the other groups, against the primary.
//!
//! Which fields must agree is what the kernel's scrub demands (Linux `fs/xfs/scrub/agheader.c`, `xchk_superblock`): those that
//! mkfs and growing set. Counters and what changes in the primary alone (inode numbers of root, realtime and quota files,
//! label, UUID, stripe geometry, bits that a feature sets on first use) need not.

use super::report::{Disagreement, Secondaries};
use crate::buffer::read_superblock;
use crate::device::Device;
use crate::geometry::{AgNumber, Daddr, Geometry};
use crate::ondisk::feature_bits::{features2, incompat, versionnum};
use crate::ondisk::{OnDisk, RawSuperblock};
use zerocopy::IntoBytes;

/// Superblocks that are compared at most: enough for 4 PiB in groups of 1 TiB, and soon read.
const MOST_COMPARED: u32 = 4096;
/// Disagreements that are listed at most.
const MOST_LISTED: usize = 64;

/// Fields that need not agree.
const MAY_DIFFER: [&str; 23] = [
    "uuid",
    "rootino",
    "rbmino",
    "rsumino",
    "fname",
    "inprogress",
    "imax_pct",
    "icount",
    "ifree",
    "fdblocks",
    "frextents",
    "uquotino",
    "gquotino",
    "qflags",
    "unit",
    "width",
    "bad_features2",
    "features_log_incompat",
    "crc",
    "pquotino",
    "lsn",
    "meta_uuid",
    "metadirino",
];

/// Compares the superblocks of all groups but the one at `source` with `sb`.
pub(super) fn compare(device: &dyn Device, sb: &RawSuperblock, geometry: &Geometry, source: AgNumber) -> Secondaries {
    let count = geometry.agcount.saturating_sub(1);
    let others = geometry.ag_numbers().filter(|agno| agno.0 != 0 && *agno != source);
    let mut compared = 0;
    let mut disagreeing = Vec::new();
    let mut agree = true;
    for agno in others.take(MOST_COMPARED as usize) {
        compared += 1;
        let Some(found) = compare_one(device, sb, geometry, agno) else { continue };
        agree = false;
        if disagreeing.len() < MOST_LISTED {
            disagreeing.push(found);
        }
    }
    Secondaries { count, compared, agree, disagreeing }
}

/// What is wrong with the superblock of `agno`; `None` if nothing is.
fn compare_one(device: &dyn Device, sb: &RawSuperblock, geometry: &Geometry, agno: AgNumber) -> Option<Disagreement> {
    let offset = geometry.ag_header_daddr(agno, 0).and_then(|daddr: Daddr| geometry.daddr_offset(daddr));
    let read = offset.map(|offset| read_superblock(device, offset, agno));
    let copy = match read {
        Some(Ok(read)) => read,
        Some(Err(error)) => return Some(unreadable(agno, error.to_string())),
        None => return Some(unreadable(agno, "lies outside the filesystem".to_owned())),
    };
    let fields = differing_fields(sb, &copy.sb);
    let damage: Vec<String> = copy.verdict.failures().iter().map(ToString::to_string).collect();
    let sound = fields.is_empty() && copy.is_plausible();
    (!sound).then_some(Disagreement { group: agno.0, fields, damage })
}

fn unreadable(agno: AgNumber, damage: String) -> Disagreement {
    Disagreement { group: agno.0, fields: Vec::new(), damage: vec![damage] }
}

/// Fields of two superblocks that must be equal and are not.
fn differing_fields(primary: &RawSuperblock, copy: &RawSuperblock) -> Vec<&'static str> {
    let (ours, theirs) = (comparable(primary), comparable(copy));
    let (ours, theirs) = (ours.as_bytes(), theirs.as_bytes());
    let end = if primary.is_v5() { RawSuperblock::SIZE } else { RawSuperblock::SIZE_V4 };
    let fields = RawSuperblock::FIELDS.iter().filter(|field| field.offset < end);
    let differ = fields.filter(|field| {
        let range = field.offset..field.offset + field.size;
        !MAY_DIFFER.contains(&field.name) && ours.get(range.clone()) != theirs.get(range)
    });
    differ.map(|field| field.name).collect()
}

/// A superblock without the bits that change in the primary alone.
fn comparable(sb: &RawSuperblock) -> RawSuperblock {
    let mut sb = *sb;
    sb.versionnum.set(sb.versionnum.get() & !(versionnum::ATTR | versionnum::NLINK | versionnum::QUOTA));
    sb.features2.set(sb.features2.get() & !features2::ATTR2);
    sb.features_incompat.set(sb.features_incompat.get() & !incompat::NEEDSREPAIR);
    sb
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn every_exempt_field_exists() {
        for name in MAY_DIFFER {
            assert!(RawSuperblock::FIELDS.iter().any(|field| field.name == name), "{name}");
        }
    }

    #[test]
    fn geometry_must_agree_and_counters_need_not() {
        let mut primary = RawSuperblock::new_zeroed();
        primary.versionnum.set(5);
        let mut copy = primary;
        copy.icount.set(64);
        copy.versionnum.set(5 | versionnum::ATTR);
        assert!(differing_fields(&primary, &copy).is_empty());
        copy.agcount.set(3);
        copy.rtstart.set(1);
        assert_eq!(differing_fields(&primary, &copy), ["agcount", "rtstart"]);
        primary.versionnum.set(4);
        copy.versionnum.set(4);
        assert_eq!(differing_fields(&primary, &copy), ["agcount"]);
    }
}
