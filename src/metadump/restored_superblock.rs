//! The primary superblock of a filesystem that was restored.

use std::mem::offset_of;

use zerocopy::IntoBytes;

use crate::geometry::Features;
use crate::ondisk::feature_bits::{incompat, qflags};
use crate::ondisk::{NULLFSINO, OnDisk, RawSuperblock, crc};

/// The superblock in `sector` when everything is in place: no longer being made, and in the form in which Linux and
/// xfsprogs write superblocks (`xfs_sb_to_disk`), whatever wrote it before.
pub(super) fn finished(mut sector: Vec<u8>) -> Vec<u8> {
    let mut has_crc = false;
    if let Some((sb, rest)) = RawSuperblock::prefix_mut(&mut sector) {
        let features = Features::from_superblock(sb);
        has_crc = features.has_crc();
        sb.inprogress = 0;
        sb.bad_features2 = sb.features2;
        if features.is_v5() {
            normalize_v5(sb)
        } else {
            normalize_v4(sb)
        }
        rest.fill(0);
    }
    if has_crc {
        crc::stamp(&mut sector, RawSuperblock::CRC_OFFSET);
    }
    sector
}

/// No quota file has the number 0.
fn null(ino: u64) -> u64 {
    if ino == 0 { NULLFSINO } else { ino }
}

fn normalize_v5(sb: &mut RawSuperblock) {
    let has = |bit: u32| sb.features_incompat.get() & bit != 0;
    let (metadir, meta_uuid, zoned) = (has(incompat::METADIR), has(incompat::META_UUID), has(incompat::ZONED));
    if metadir {
        (sb.uquotino, sb.gquotino, sb.pquotino) = (0.into(), 0.into(), 0.into());
        (sb.rbmino, sb.rsumino) = (0.into(), 0.into());
        sb.pad = [0; 7];
    } else {
        sb.uquotino = null(sb.uquotino.get()).into();
        sb.gquotino = null(sb.gquotino.get()).into();
        sb.pquotino = null(sb.pquotino.get()).into();
        sb.as_mut_bytes()[offset_of!(RawSuperblock, metadirino)..offset_of!(RawSuperblock, rtstart)].fill(0);
    }
    if !meta_uuid {
        sb.meta_uuid = [0; 16];
    }
    if !zoned {
        (sb.rtstart, sb.rtreserved) = (0.into(), 0.into());
    }
}

fn normalize_v4(sb: &mut RawSuperblock) {
    let counted = sb.qflags.get() & (qflags::GQUOTA_ACCT | qflags::PQUOTA_ACCT) != 0;
    let gquotino = null(sb.gquotino.get());
    if counted || gquotino == NULLFSINO {
        sb.gquotino = gquotino.into();
    } else {
        // files of a quota that is off are not kept
        sb.gquotino = 0.into();
    }
    sb.uquotino = null(sb.uquotino.get()).into();
    sb.as_mut_bytes()[offset_of!(RawSuperblock, features_compat)..].fill(0);
}
