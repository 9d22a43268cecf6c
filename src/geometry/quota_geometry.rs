//! The quota files and the state of quota (Linux `libxfs/xfs_sb.c`, `xfs_sb_quota_from_disk`).

use super::Ino;
use super::features::Features;
use crate::ondisk::feature_bits::qflags::*;
use crate::ondisk::{NULLFSINO, RawDquotBlock, RawSuperblock};

/// The quota files and the state of quota. With a metadata directory the files are found there, not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaGeometry {
    /// Inode of the user quota file.
    pub user: Option<Ino>,
    /// Inode of the group quota file.
    pub group: Option<Ino>,
    /// Inode of the project quota file.
    pub project: Option<Ino>,
    /// `qflags` in the form of version 5: group and project have bits of their own.
    pub flags: u16,
    /// Records of a block.
    pub dquots_per_block: u32,
}

impl QuotaGeometry {
    pub(super) fn of(sb: &RawSuperblock, features: &Features, blocksize: u32) -> Self {
        let file = |ino: u64| (ino != 0 && ino != NULLFSINO && !features.has_metadir()).then_some(Ino(ino));
        let mut quota = QuotaGeometry {
            user: file(sb.uquotino.get()),
            group: file(sb.gquotino.get()),
            project: if features.is_v5() { file(sb.pquotino.get()) } else { None },
            flags: sb.qflags.get(),
            dquots_per_block: RawDquotBlock::per_block(blocksize),
        };
        if !features.is_v5() {
            quota.split_shared_bits();
        }
        quota
    }

    /// Version 4 has one file and one set of bits for group and project; the accounting bit says whose they are.
    fn split_shared_bits(&mut self) {
        let project = self.flags & PQUOTA_ACCT != 0;
        if self.flags & OQUOTA_ENFD != 0 {
            self.flags |= if project { PQUOTA_ENFD } else { GQUOTA_ENFD };
        }
        if self.flags & OQUOTA_CHKD != 0 {
            self.flags |= if project { PQUOTA_CHKD } else { GQUOTA_CHKD };
        }
        self.flags &= !(OQUOTA_ENFD | OQUOTA_CHKD);
        if project && self.group.is_some() {
            self.project = self.group.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::{Be16, Be64};
    use zerocopy::FromZeros;

    #[test]
    fn version_4_shares_one_file() {
        let mut sb = RawSuperblock::new_zeroed();
        sb.versionnum = Be16::new(4);
        sb.gquotino = Be64::new(131);
        sb.qflags = Be16::new(PQUOTA_ACCT | OQUOTA_ENFD | OQUOTA_CHKD);
        let quota = QuotaGeometry::of(&sb, &Features::from_superblock(&sb), 4096);
        assert_eq!((quota.user, quota.group, quota.project), (None, None, Some(Ino(131))));
        assert_eq!(quota.flags, PQUOTA_ACCT | PQUOTA_ENFD | PQUOTA_CHKD);
        sb.qflags = Be16::new(GQUOTA_ACCT | OQUOTA_ENFD);
        let quota = QuotaGeometry::of(&sb, &Features::from_superblock(&sb), 4096);
        assert_eq!((quota.group, quota.project), (Some(Ino(131)), None));
        assert_eq!(quota.flags, GQUOTA_ACCT | GQUOTA_ENFD);
    }

    #[test]
    fn version_5_has_three() {
        let mut sb = RawSuperblock::new_zeroed();
        sb.versionnum = Be16::new(5);
        sb.uquotino = Be64::new(NULLFSINO);
        sb.gquotino = Be64::new(131);
        sb.pquotino = Be64::new(132);
        let quota = QuotaGeometry::of(&sb, &Features::from_superblock(&sb), 4096);
        assert_eq!((quota.user, quota.group, quota.project), (None, Some(Ino(131)), Some(Ino(132))));
    }
}
