//! Which checks a block passes through when it is looked at as one of a type.

use super::super::crc_state::CrcState;
use super::{Family, TypeId};
use crate::buffer::BlockKind;
use crate::error::{Rule, Verdict};
use crate::geometry::{BtreeKind, Geometry};
use crate::ondisk::OnDisk;
use crate::ondisk::attr_leaf::{ATTR_LEAF_MAGIC, ATTR3_LEAF_MAGIC};
use crate::ondisk::da_block::{DA_NODE_MAGIC, DA3_NODE_MAGIC, RawDaBlkinfo};
use crate::ondisk::dir_data::{DIR2_BLOCK_MAGIC, DIR2_DATA_MAGIC, DIR3_BLOCK_MAGIC, DIR3_DATA_MAGIC, RawDir2DataHdr};
use crate::ondisk::dir_leaf::{
    DIR2_FREE_MAGIC, DIR2_LEAF1_MAGIC, DIR2_LEAFN_MAGIC, DIR3_FREE_MAGIC, DIR3_LEAF1_MAGIC, DIR3_LEAFN_MAGIC,
};
use crate::ondisk::remote::{ATTR3_RMT_MAGIC, RawAttr3RmtHdr};

/// The kind of block whose checks apply. Directory and attribute blocks come in several forms, which the magic number
/// tells apart; `None` where it tells nothing, and for what has no checks.
pub fn checked_kind(ty: TypeId, bytes: &[u8], geometry: &Geometry) -> Option<BlockKind> {
    Some(match ty {
        TypeId::Agf => BlockKind::Agf,
        TypeId::Agfl => BlockKind::Agfl,
        TypeId::Agi => BlockKind::Agi,
        TypeId::Sb => BlockKind::Superblock,
        TypeId::Rtsb => BlockKind::RtSuperblock,
        TypeId::Bmapbta | TypeId::Bmapbtd => BlockKind::Btree(BtreeKind::Bmbt),
        TypeId::Bnobt => BlockKind::Btree(BtreeKind::Bnobt),
        TypeId::Cntbt => BlockKind::Btree(BtreeKind::Cntbt),
        TypeId::Rmapbt => BlockKind::Btree(BtreeKind::Rmapbt),
        TypeId::Rtrmapbt => BlockKind::Btree(BtreeKind::Rtrmapbt),
        TypeId::Refcntbt => BlockKind::Btree(BtreeKind::Refcountbt),
        TypeId::Rtrefcntbt => BlockKind::Btree(BtreeKind::Rtrefcountbt),
        TypeId::Inobt => BlockKind::Btree(BtreeKind::Inobt),
        TypeId::Finobt => BlockKind::Btree(BtreeKind::Finobt),
        TypeId::Dqblk => BlockKind::Dquots,
        TypeId::Symlink if geometry.features.has_crc() => BlockKind::Symlink,
        TypeId::Rgbitmap => BlockKind::RtBitmap,
        TypeId::Rgsummary => BlockKind::RtSummary,
        TypeId::Dir2 => directory_kind(bytes)?,
        TypeId::Attr => attribute_kind(bytes)?,
        _ => return None,
    })
}

/// What is known about the CRC of a block with this verdict.
pub fn crc_state(family: Family, kind: Option<BlockKind>, verdict: &Verdict) -> CrcState {
    let fails = |rule: Rule| verdict.failures().iter().any(|failure| failure.check.rule == rule);
    match kind {
        Some(_) if !family.has_crc() => CrcState::Unchecked,
        None => CrcState::Unchecked,
        Some(_) if fails(Rule::Crc) => CrcState::Bad,
        Some(_) => CrcState::Correct,
    }
}

fn directory_kind(bytes: &[u8]) -> Option<BlockKind> {
    match RawDir2DataHdr::prefix(bytes)?.0.magic.get() {
        DIR2_BLOCK_MAGIC | DIR3_BLOCK_MAGIC => return Some(BlockKind::DirBlock),
        DIR2_DATA_MAGIC | DIR3_DATA_MAGIC => return Some(BlockKind::DirData),
        DIR2_FREE_MAGIC | DIR3_FREE_MAGIC => return Some(BlockKind::DirFree),
        _ => {}
    }
    match RawDaBlkinfo::prefix(bytes)?.0.magic.get() {
        DIR2_LEAF1_MAGIC | DIR3_LEAF1_MAGIC => Some(BlockKind::DirLeaf1),
        DIR2_LEAFN_MAGIC | DIR3_LEAFN_MAGIC | DA_NODE_MAGIC | DA3_NODE_MAGIC => Some(BlockKind::DirHash),
        _ => None,
    }
}

fn attribute_kind(bytes: &[u8]) -> Option<BlockKind> {
    if RawAttr3RmtHdr::prefix(bytes).is_some_and(|(header, _)| header.magic.get() == ATTR3_RMT_MAGIC) {
        return Some(BlockKind::AttrRemote);
    }
    match RawDaBlkinfo::prefix(bytes)?.0.magic.get() {
        ATTR_LEAF_MAGIC | ATTR3_LEAF_MAGIC | DA_NODE_MAGIC | DA3_NODE_MAGIC => Some(BlockKind::AttrHash),
        _ => None,
    }
}
