//! Checks of inodes that are read together (Linux `xfs_inode_buf_verify`): only what holds for inodes never used too.
//! The rest is checked of each inode when it is read.

use super::checks::Checks;
use super::kind::Request;
use crate::error::{Place, Rule, Verdict};
use crate::geometry::{AgIno, Geometry};
use crate::ondisk::{NULLAGINO, OnDisk, RawDinode, RawDinodeCore, crc};

pub(super) fn verify(geometry: &Geometry, request: &Request, bytes: &[u8]) -> Verdict {
    let mut verdict = Verdict::new();
    let Ok(size) = usize::try_from(geometry.inodes.size) else { return verdict };
    let first = geometry.daddr_fsb(request.daddr()).and_then(|fsb| geometry.fsb_ino(fsb));
    for (index, inode) in (0u64..).zip(bytes.chunks_exact(size)) {
        let place = Place {
            inode: first.map(|first| first.0 + index),
            offset: Some(index * u64::from(geometry.inodes.size)),
            ..request.place(geometry)
        };
        let mut checks = Checks::new(geometry, request, inode, "dinode", place);
        verify_one(&mut checks);
        verdict.append(checks.into_verdict());
    }
    verdict
}

fn verify_one(checks: &mut Checks<'_>) {
    let Some((core, _)) = RawDinodeCore::prefix(checks.bytes) else { return checks.truncated() };
    checks.require(core.magic.get() == RawDinode::MAGIC, "magic", Rule::Magic, || format!("{:#x}", core.magic));
    let version = core.version;
    let good = if checks.geometry.features.has_crc() { version == 3 } else { matches!(version, 1 | 2) };
    checks.require(good, "version", Rule::Version, || format!("{version}"));
    let next = core.next_unlinked.get();
    let group = checks.request.group(checks.geometry);
    let fine = next == NULLAGINO || group.is_none_or(|agno| checks.geometry.is_valid_agino(agno, AgIno(next)));
    checks.require(fine, "next_unlinked", Rule::Range, || format!("{next}"));
}

/// Every inode carries its CRC; LSNs are set by who changes an inode, since not all of a cluster change at once.
pub(super) fn stamp(geometry: &Geometry, bytes: &mut [u8]) {
    let Ok(size) = usize::try_from(geometry.inodes.size) else { return };
    if geometry.features.has_crc() {
        for inode in bytes.chunks_exact_mut(size) {
            crc::stamp(inode, RawDinode::CRC_OFFSET);
        }
    }
}
