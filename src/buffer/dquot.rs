//! Checks of quota blocks (Linux `xfs_dquot_buf_verify`): each slot is a structure of its own.

use std::mem::offset_of;

use super::checks::Checks;
use super::kind::Request;
use crate::error::{Place, Rule, Verdict};
use crate::geometry::{Geometry, Lsn};
use crate::ondisk::dquot::dqtype;
use crate::ondisk::{OnDisk, RawDiskDquot, RawDquotBlock, crc};

pub(super) fn verify(geometry: &Geometry, request: &Request, bytes: &[u8]) -> Verdict {
    let mut verdict = Verdict::new();
    let mut first = None;
    for (index, slot) in (0u32..).zip(slots(geometry, bytes)) {
        let offset = u64::from(index) * RawDquotBlock::SIZE as u64;
        let place = Place { offset: Some(offset), ..request.place(geometry) };
        let mut checks = Checks::new(geometry, request, slot, "dquot", place);
        let Some((raw, _)) = RawDquotBlock::prefix(slot) else { break };
        let id = raw.diskdq.id.get();
        // the first slot says which ids the block holds
        let expected = *first.get_or_insert(id);
        verify_slot(&mut checks, raw, expected.wrapping_add(index));
        verdict.append(checks.into_verdict());
    }
    verdict
}

fn slots<'a>(geometry: &Geometry, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let count = usize::try_from(geometry.quota.dquots_per_block).unwrap_or(0);
    bytes.chunks_exact(RawDquotBlock::SIZE).take(count)
}

fn verify_slot(checks: &mut Checks<'_>, raw: &RawDquotBlock, expected: u32) {
    let dquot = &raw.diskdq;
    checks.require(dquot.magic.get() == RawDiskDquot::MAGIC, "magic", Rule::Magic, || format!("{:#x}", dquot.magic));
    if checks.geometry.features.has_crc() {
        let intact = crc::matches(checks.bytes, RawDquotBlock::CRC_OFFSET);
        checks.require(intact, "crc", Rule::Crc, || format!("{:#010x}", raw.crc));
        checks.require(raw.uuid == checks.geometry.meta_uuid, "uuid", Rule::Uuid, String::new);
    }
    checks.equal("version", Rule::Version, dquot.version, RawDiskDquot::VERSION);
    verify_type(checks, dquot);
    checks.equal("id", Rule::Mismatch, dquot.id.get(), expected);
    if dquot.id.get() != 0 {
        verify_timers(checks, dquot);
    }
}

fn verify_type(checks: &mut Checks<'_>, dquot: &RawDiskDquot) {
    let kind = dquot.dqtype;
    let known = kind & !(dqtype::REC_MASK | dqtype::BIGTIME) == 0;
    checks.require(known, "type", Rule::Flags, || format!("{kind:#x}"));
    let one = (kind & dqtype::REC_MASK).count_ones() == 1;
    checks.require(one, "type", Rule::Range, || format!("{kind:#x}"));
    if kind & dqtype::BIGTIME != 0 {
        // the defaults of id 0 are lengths of time, which have one form
        let fine = checks.geometry.features.has_bigtime() && dquot.id.get() != 0;
        checks.require(fine, "type", Rule::Mismatch, || "bigtime".to_owned());
    }
}

/// Who is over a soft limit has a timer.
fn verify_timers(checks: &mut Checks<'_>, dquot: &RawDiskDquot) {
    let resources = [
        ("btimer", dquot.bcount, dquot.blk_softlimit, dquot.btimer),
        ("itimer", dquot.icount, dquot.ino_softlimit, dquot.itimer),
        ("rtbtimer", dquot.rtbcount, dquot.rtb_softlimit, dquot.rtbtimer),
    ];
    for (field, used, limit, timer) in resources {
        let over = limit.get() != 0 && used.get() > limit.get();
        checks.require(!over || timer.get() != 0, field, Rule::Mismatch, || {
            format!("0, while {used} are used of {limit}")
        });
    }
}

/// Every slot carries LSN and CRC.
pub(super) fn stamp(geometry: &Geometry, bytes: &mut [u8], lsn: Option<Lsn>) {
    if !geometry.features.has_crc() {
        return;
    }
    let count = usize::try_from(geometry.quota.dquots_per_block).unwrap_or(0);
    for slot in bytes.chunks_exact_mut(RawDquotBlock::SIZE).take(count) {
        if let Some(lsn) = lsn {
            slot[offset_of!(RawDquotBlock, lsn)..][..8].copy_from_slice(&lsn.0.to_be_bytes());
        }
        crc::stamp(slot, RawDquotBlock::CRC_OFFSET);
    }
}
