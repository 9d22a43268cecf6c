//! Checks of blocks of plain bytes: attribute values (Linux `xfs_attr3_rmt_verify`) and targets of symbolic links
//! (`xfs_symlink_verify`). In version 4 they have no headers, and anything will do.

use super::checks::Checks;
use super::kind::{Owner, Request};
use crate::error::{Place, Rule, Verdict};
use crate::geometry::Geometry;
use crate::geometry::limits::BASIC_BLOCK;
use crate::ondisk::remote::{ATTR_MAX_VALUELEN, ATTR3_RMT_MAGIC, RawAttr3RmtHdr, RawDsymlinkHdr, SYMLINK_MAXLEN};
use crate::ondisk::{OnDisk, crc};

pub(super) fn verify_symlink(checks: &mut Checks<'_>) {
    if !checks.geometry.features.has_crc() {
        return;
    }
    let Some((head, rest)) = RawDsymlinkHdr::prefix(checks.bytes) else { return checks.truncated() };
    let (offset, bytes) = (u64::from(head.offset.get()), u64::from(head.bytes.get()));
    checks.range("offset", offset, 0u32, SYMLINK_MAXLEN);
    let most = u64::from(SYMLINK_MAXLEN - 1).saturating_sub(offset).min(rest.len() as u64);
    checks.range("bytes", bytes, 0u32, most);
}

/// Each block of a value has a header of its own.
pub(super) fn verify_attribute(geometry: &Geometry, request: &Request, bytes: &[u8]) -> Verdict {
    let mut verdict = Verdict::new();
    if !geometry.features.has_crc() {
        return verdict;
    }
    let Ok(blocksize) = usize::try_from(geometry.blocksize) else { return verdict };
    let step = u64::from(geometry.blocksize / BASIC_BLOCK);
    for (block, daddr) in bytes.chunks(blocksize).zip((request.daddr().0..).step_by(usize::try_from(step).unwrap_or(1)))
    {
        let place = Place { daddr: Some(daddr), ..request.place(geometry) };
        let mut checks = Checks::new(geometry, request, block, "attr3_rmt", place);
        verify_value_block(&mut checks, daddr);
        verdict.append(checks.into_verdict());
    }
    verdict
}

fn verify_value_block(checks: &mut Checks<'_>, daddr: u64) {
    let Some((head, rest)) = RawAttr3RmtHdr::prefix(checks.bytes) else { return checks.truncated() };
    checks.require(head.magic.get() == ATTR3_RMT_MAGIC, "magic", Rule::Magic, || format!("{:#x}", head.magic));
    let intact = crc::matches(checks.bytes, RawAttr3RmtHdr::CRC_OFFSET);
    checks.require(intact, "crc", Rule::Crc, || format!("{:#010x}", head.crc));
    checks.require(head.uuid == checks.geometry.meta_uuid, "uuid", Rule::Uuid, String::new);
    match checks.request.owner {
        Owner::Inode(ino) => checks.equal("owner", Rule::Owner, head.owner.get(), ino.0),
        _ => checks.require(head.owner.get() != 0, "owner", Rule::Owner, || "0".to_owned()),
    }
    checks.equal("blkno", Rule::Address, head.blkno.get(), daddr);
    checks.range("bytes", head.bytes.get(), 0u32, rest.len() as u64);
    let end = u64::from(head.offset.get()) + u64::from(head.bytes.get());
    checks.require(end <= u64::from(ATTR_MAX_VALUELEN), "offset", Rule::Range, || format!("ends at byte {end}"));
}

/// The LSN stays what it is: values are not written through the log.
pub(super) fn stamp_attribute(geometry: &Geometry, bytes: &mut [u8]) {
    let Ok(blocksize) = usize::try_from(geometry.blocksize) else { return };
    if geometry.features.has_crc() {
        for block in bytes.chunks_exact_mut(blocksize) {
            crc::stamp(block, RawAttr3RmtHdr::CRC_OFFSET);
        }
    }
}
