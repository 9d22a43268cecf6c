//! The superblock and the headers of allocation groups.

use crate::db::field::at;
use crate::db::field::formats::{
    AG_BLOCK, AG_INO, AG_NUMBER, CHARACTERS, CRC, DATA_BLOCK, FS_BLOCK, INO, RT_BLOCK, U8, U16, U32, U64, UUID, X8,
    X16, X32, X64,
};
use crate::db::field::{Bits, Format, Object, Row};
use crate::db::types::TypeId;
use crate::ondisk::{OnDisk, RawAgf, RawAgfl, RawAgi, RawSuperblock};

/// The superblock.
pub(super) const SB: Format = Format::structure_sized(SB_ROWS, sector);
/// Free space header of a group.
pub(super) const AGF: Format = Format::structure_sized(AGF_ROWS, sector);
/// Inode header of a group.
pub(super) const AGI: Format = Format::structure_sized(AGI_ROWS, sector);
/// Free list of a group without CRCs.
pub(super) const AGFL_PLAIN: Format = Format::structure_sized(AGFL_PLAIN_ROWS, sector);
/// Free list of a group.
pub(super) const AGFL: Format = Format::structure_sized(AGFL_ROWS, sector);

/// A block that may be a btree's root; none where the filesystem has no such btree.
const ROOT: Format = AG_BLOCK.without_zeroes();

fn sector(object: &Object<'_>, _start: Bits, _index: usize) -> Bits {
    usize::try_from(object.geometry.sectsize).unwrap_or(0) * 8
}

fn with_metadir(object: &Object<'_>, _start: Bits) -> usize {
    usize::from(object.geometry.features.has_metadir())
}

fn with_zones(object: &Object<'_>, _start: Bits) -> usize {
    usize::from(object.geometry.features.has_zoned())
}

const SB_ROWS: &[Row] = &[
    Row::new("magicnum", at!(RawSuperblock, magicnum), X32),
    Row::new("blocksize", at!(RawSuperblock, blocksize), U32),
    Row::new("dblocks", at!(RawSuperblock, dblocks), DATA_BLOCK),
    Row::new("rblocks", at!(RawSuperblock, rblocks), DATA_BLOCK),
    Row::new("rextents", at!(RawSuperblock, rextents), RT_BLOCK),
    Row::new("uuid", at!(RawSuperblock, uuid), UUID),
    Row::new("logstart", at!(RawSuperblock, logstart), FS_BLOCK).leads_to(TypeId::Log),
    Row::new("rootino", at!(RawSuperblock, rootino), INO).leads_to(TypeId::Inode),
    Row::new("rbmino", at!(RawSuperblock, rbmino), INO).leads_to(TypeId::Inode),
    Row::new("rsumino", at!(RawSuperblock, rsumino), INO).leads_to(TypeId::Inode),
    Row::new("rextsize", at!(RawSuperblock, rextsize), AG_BLOCK),
    Row::new("agblocks", at!(RawSuperblock, agblocks), AG_BLOCK),
    Row::new("agcount", at!(RawSuperblock, agcount), AG_NUMBER),
    Row::new("rbmblocks", at!(RawSuperblock, rbmblocks), U32),
    Row::new("logblocks", at!(RawSuperblock, logblocks), U32),
    Row::new("versionnum", at!(RawSuperblock, versionnum), X16),
    Row::new("sectsize", at!(RawSuperblock, sectsize), U16),
    Row::new("inodesize", at!(RawSuperblock, inodesize), U16),
    Row::new("inopblock", at!(RawSuperblock, inopblock), U16),
    Row::new("fname", at!(RawSuperblock, fname), CHARACTERS).times(12),
    Row::new("blocklog", at!(RawSuperblock, blocklog), U8),
    Row::new("sectlog", at!(RawSuperblock, sectlog), U8),
    Row::new("inodelog", at!(RawSuperblock, inodelog), U8),
    Row::new("inopblog", at!(RawSuperblock, inopblog), U8),
    Row::new("agblklog", at!(RawSuperblock, agblklog), U8),
    Row::new("rextslog", at!(RawSuperblock, rextslog), U8),
    Row::new("inprogress", at!(RawSuperblock, inprogress), U8),
    Row::new("imax_pct", at!(RawSuperblock, imax_pct), U8),
    Row::new("icount", at!(RawSuperblock, icount), U64),
    Row::new("ifree", at!(RawSuperblock, ifree), U64),
    Row::new("fdblocks", at!(RawSuperblock, fdblocks), U64),
    Row::new("frextents", at!(RawSuperblock, frextents), U64),
    Row::new("uquotino", at!(RawSuperblock, uquotino), INO).leads_to(TypeId::Inode),
    Row::new("gquotino", at!(RawSuperblock, gquotino), INO).leads_to(TypeId::Inode),
    Row::new("qflags", at!(RawSuperblock, qflags), X16),
    Row::new("flags", at!(RawSuperblock, flags), X8),
    Row::new("shared_vn", at!(RawSuperblock, shared_vn), U8),
    Row::new("inoalignmt", at!(RawSuperblock, inoalignmt), U32),
    Row::new("unit", at!(RawSuperblock, unit), U32),
    Row::new("width", at!(RawSuperblock, width), U32),
    Row::new("dirblklog", at!(RawSuperblock, dirblklog), U8),
    Row::new("logsectlog", at!(RawSuperblock, logsectlog), U8),
    Row::new("logsectsize", at!(RawSuperblock, logsectsize), U16),
    Row::new("logsunit", at!(RawSuperblock, logsunit), U32),
    Row::new("features2", at!(RawSuperblock, features2), X32),
    Row::new("bad_features2", at!(RawSuperblock, bad_features2), X32),
    Row::new("features_compat", at!(RawSuperblock, features_compat), X32),
    Row::new("features_ro_compat", at!(RawSuperblock, features_ro_compat), X32),
    Row::new("features_incompat", at!(RawSuperblock, features_incompat), X32),
    Row::new("features_log_incompat", at!(RawSuperblock, features_log_incompat), X32),
    Row::new("crc", at!(RawSuperblock, crc), CRC),
    Row::new("spino_align", at!(RawSuperblock, spino_align), U32),
    Row::new("pquotino", at!(RawSuperblock, pquotino), INO).leads_to(TypeId::Inode),
    Row::new("lsn", at!(RawSuperblock, lsn), X64),
    Row::new("meta_uuid", at!(RawSuperblock, meta_uuid), UUID),
    Row::new("metadirino", at!(RawSuperblock, metadirino), INO).counted(with_metadir).leads_to(TypeId::Inode),
    Row::new("rgcount", at!(RawSuperblock, rgcount), AG_NUMBER).counted(with_metadir),
    Row::new("rgextents", at!(RawSuperblock, rgextents), AG_NUMBER).counted(with_metadir),
    Row::new("rgblklog", at!(RawSuperblock, rgblklog), U8).counted(with_metadir),
    Row::new("pad", at!(RawSuperblock, pad), X8).counted(with_metadir),
    Row::new("rtstart", at!(RawSuperblock, rtstart), FS_BLOCK).counted(with_zones),
    Row::new("rtreserved", at!(RawSuperblock, rtreserved), FS_BLOCK).counted(with_zones),
];

const AGF_ROWS: &[Row] = &[
    Row::new("magicnum", at!(RawAgf, magicnum), X32),
    Row::new("versionnum", at!(RawAgf, versionnum), U32),
    Row::new("seqno", at!(RawAgf, seqno), AG_NUMBER),
    Row::new("length", at!(RawAgf, length), AG_BLOCK),
    Row::new("bnoroot", at!(RawAgf, bno_root), AG_BLOCK).leads_to(TypeId::Bnobt),
    Row::new("cntroot", at!(RawAgf, cnt_root), AG_BLOCK).leads_to(TypeId::Cntbt),
    Row::new("rmaproot", at!(RawAgf, rmap_root), ROOT).leads_to(TypeId::Rmapbt),
    Row::new("refcntroot", at!(RawAgf, refcount_root), ROOT).leads_to(TypeId::Refcntbt),
    Row::new("bnolevel", at!(RawAgf, bno_level), U32),
    Row::new("cntlevel", at!(RawAgf, cnt_level), U32),
    Row::new("rmaplevel", at!(RawAgf, rmap_level), U32),
    Row::new("refcntlevel", at!(RawAgf, refcount_level), U32),
    Row::new("rmapblocks", at!(RawAgf, rmap_blocks), U32),
    Row::new("refcntblocks", at!(RawAgf, refcount_blocks), U32),
    Row::new("flfirst", at!(RawAgf, flfirst), U32),
    Row::new("fllast", at!(RawAgf, fllast), U32),
    Row::new("flcount", at!(RawAgf, flcount), U32),
    Row::new("freeblks", at!(RawAgf, freeblks), U32),
    Row::new("longest", at!(RawAgf, longest), U32),
    Row::new("btreeblks", at!(RawAgf, btreeblks), U32),
    Row::new("uuid", at!(RawAgf, uuid), UUID),
    Row::new("lsn", at!(RawAgf, lsn), X64),
    Row::new("crc", at!(RawAgf, crc), CRC),
];

const AGI_ROWS: &[Row] = &[
    Row::new("magicnum", at!(RawAgi, magicnum), X32),
    Row::new("versionnum", at!(RawAgi, versionnum), U32),
    Row::new("seqno", at!(RawAgi, seqno), AG_NUMBER),
    Row::new("length", at!(RawAgi, length), AG_BLOCK),
    Row::new("count", at!(RawAgi, count), AG_INO),
    Row::new("root", at!(RawAgi, root), AG_BLOCK).leads_to(TypeId::Inobt),
    Row::new("level", at!(RawAgi, level), U32),
    Row::new("freecount", at!(RawAgi, freecount), AG_INO),
    Row::new("newino", at!(RawAgi, newino), AG_INO).leads_to(TypeId::Inode),
    Row::new("dirino", at!(RawAgi, dirino), AG_INO).leads_to(TypeId::Inode),
    Row::new("unlinked", at!(RawAgi, unlinked), AG_INO.without_nulls()).times(RawAgi::UNLINKED_BUCKETS).array(),
    Row::new("uuid", at!(RawAgi, uuid), UUID),
    Row::new("crc", at!(RawAgi, crc), CRC),
    Row::new("pad32", at!(RawAgi, pad32), X32).hidden(),
    Row::new("lsn", at!(RawAgi, lsn), X64),
    Row::new("free_root", at!(RawAgi, free_root), AG_BLOCK).leads_to(TypeId::Finobt),
    Row::new("free_level", at!(RawAgi, free_level), U32),
    Row::new("ino_blocks", at!(RawAgi, iblocks), U32),
    Row::new("fino_blocks", at!(RawAgi, fblocks), U32),
];

const AGFL_PLAIN_ROWS: &[Row] = &[list(0)];

const AGFL_ROWS: &[Row] = &[
    Row::new("magicnum", at!(RawAgfl, magicnum), X32),
    Row::new("seqno", at!(RawAgfl, seqno), AG_NUMBER),
    Row::new("uuid", at!(RawAgfl, uuid), UUID),
    Row::new("lsn", at!(RawAgfl, lsn), X64),
    Row::new("crc", at!(RawAgfl, crc), CRC),
    list(RawAgfl::SIZE * 8),
];

/// The entries of the free list.
const fn list(place: Bits) -> Row {
    let count = |object: &Object<'_>, _: Bits| usize::try_from(object.geometry.agfl_capacity).unwrap_or(0);
    Row::new("bno", place, ROOT).counted(count).array().leads_to(TypeId::Data)
}
