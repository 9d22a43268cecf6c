//! The realtime superblock, and blocks of the bitmaps and summaries of realtime groups.

use super::btree_block::block_bits;
use crate::db::field::at;
use crate::db::field::formats::{CHARACTERS, CRC, FS_BLOCK, INO, U32, UUID, X32, X64};
use crate::db::field::{Bits, Format, Object, Row};
use crate::db::types::TypeId;
use crate::ondisk::rt::{RawRtBlockHeader, RtWordForm};
use crate::ondisk::{OnDisk, RawRtSuperblock};

/// The realtime superblock.
pub static RTSB: Format = Format::structure_sized(
    &[
        Row::new("magicnum", at!(RawRtSuperblock, magicnum), X32),
        Row::new("crc", at!(RawRtSuperblock, crc), CRC),
        Row::new("pad", at!(RawRtSuperblock, pad), X32),
        Row::new("fname", at!(RawRtSuperblock, fname), CHARACTERS).times(size_of::<[u8; 12]>()),
        Row::new("uuid", at!(RawRtSuperblock, uuid), UUID),
        Row::new("meta_uuid", at!(RawRtSuperblock, meta_uuid), UUID),
    ],
    block_bits,
);

/// Words of a block. Also looked at as such a block, one of a filesystem without groups has no header to leave room for.
fn words(object: &Object<'_>, _: Bits) -> usize {
    let form = if object.geometry.features.has_rtgroups() { RtWordForm::Groups } else { RtWordForm::LegacyLittle };
    form.words_per_block(block_bits(object, 0, 0) / 8)
}

const fn block(word: &'static str, format: Format) -> [Row; 7] {
    [
        Row::new("magicnum", at!(RawRtBlockHeader, magic), X32),
        Row::new("crc", at!(RawRtBlockHeader, crc), CRC),
        Row::new("owner", at!(RawRtBlockHeader, owner), INO),
        Row::new("bno", at!(RawRtBlockHeader, blkno), FS_BLOCK).leads_to(TypeId::Bmapbtd),
        Row::new("lsn", at!(RawRtBlockHeader, lsn), X64),
        Row::new("uuid", at!(RawRtBlockHeader, uuid), UUID),
        Row::new(word, RawRtBlockHeader::SIZE * 8, format).counted(words).array(),
    ]
}

/// A block of a group's bitmap.
pub static RGBITMAP: Format = Format::structure_sized(&block("rtwords", X32), block_bits);
/// A block of a group's summary.
pub static RGSUMMARY: Format = Format::structure_sized(&block("suminfo", U32), block_bits);
