//! When a block was last changed, as it says itself (Linux `xfs_buf_item_recover.c`, `xlog_recover_get_buf_lsn`).

use super::identity::Identity;
use super::kind::BlockKind;
use crate::geometry::{BtreeKind, Geometry, Lsn};
use crate::ondisk::{OnDisk, RawSuperblock};

/// Kinds of blocks that have an LSN, each magic number once.
const KINDS: [BlockKind; 20] = [
    BlockKind::Agf,
    BlockKind::Agi,
    BlockKind::Agfl,
    BlockKind::Btree(BtreeKind::Bnobt),
    BlockKind::Btree(BtreeKind::Cntbt),
    BlockKind::Btree(BtreeKind::Inobt),
    BlockKind::Btree(BtreeKind::Finobt),
    BlockKind::Btree(BtreeKind::Rmapbt),
    BlockKind::Btree(BtreeKind::Refcountbt),
    BlockKind::Btree(BtreeKind::Bmbt),
    BlockKind::Btree(BtreeKind::Rtrmapbt),
    BlockKind::Btree(BtreeKind::Rtrefcountbt),
    BlockKind::DirBlock,
    BlockKind::DirData,
    BlockKind::DirFree,
    BlockKind::DirLeaf1,
    BlockKind::DirHash,
    BlockKind::AttrHash,
    BlockKind::Symlink,
    BlockKind::RtBitmap,
];

/// The LSN of the last change of a block, whatever it is, as it says itself. `None` where nothing can be told from the
/// block, so that a replay changes it in any case: in version 4; in what has no LSN, as inodes together, dquots and attribute
/// values; in a block without a known magic number, or of another filesystem.
pub fn block_lsn(geometry: &Geometry, bytes: &[u8]) -> Option<Lsn> {
    if !geometry.features.has_crc() {
        return None;
    }
    let lsn = if let Some((sb, _)) =
        RawSuperblock::prefix(bytes).filter(|(sb, _)| sb.magicnum.get() == RawSuperblock::MAGIC)
    {
        let uuid = if geometry.features.has_metauuid() { sb.meta_uuid } else { sb.uuid };
        (uuid == geometry.meta_uuid).then(|| sb.lsn.get())
    } else {
        let kinds = KINDS.into_iter().chain([BlockKind::RtSummary]);
        let mut identities = kinds.filter_map(|kind| Identity::of(kind, geometry));
        let known = identities.find(|identity| {
            bytes.len() >= identity.len && identity.magic.allowed.contains(&identity.magic.read(bytes))
        });
        known.and_then(|identity| identity.v5).and_then(|v5| {
            let uuid = v5.uuid?;
            let ours = bytes.get(uuid..uuid + geometry.meta_uuid.len()) == Some(&geometry.meta_uuid[..]);
            v5.lsn.filter(|_| ours).map(|lsn| lsn.read(bytes))
        })
    };
    lsn.filter(|&lsn| lsn != 0 && lsn != u64::MAX).map(Lsn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::samples::any_superblock;
    use crate::ondisk::RawAgf;
    use proptest::prelude::*;
    use zerocopy::{FromZeros, IntoBytes};

    proptest! {
        #[test]
        fn a_header_tells_its_lsn_and_garbage_tells_none(sb in any_superblock(), lsn in 1..u64::MAX, garbage: [u8; 64]) {
            let geometry = Geometry::assume(&sb);
            let mut agf = RawAgf::new_zeroed();
            (agf.magicnum, agf.lsn, agf.uuid) = (RawAgf::MAGIC.into(), lsn.into(), geometry.meta_uuid);
            let told = geometry.features.has_crc().then_some(Lsn(lsn));
            prop_assert_eq!(block_lsn(&geometry, agf.as_bytes()), told);
            agf.lsn = 0.into();
            prop_assert_eq!(block_lsn(&geometry, agf.as_bytes()), None);
            (agf.lsn, agf.uuid[3]) = (lsn.into(), !agf.uuid[3]);
            prop_assert_eq!(block_lsn(&geometry, agf.as_bytes()), None);
            prop_assert_eq!(block_lsn(&geometry, &garbage), None);
        }
    }
}
