//! Where each kind of block keeps what identifies it.

use std::mem::offset_of;

use super::kind::BlockKind;
use crate::geometry::{BtreeKind, Geometry, Lsn};
use crate::ondisk::attr_leaf::{ATTR_LEAF_MAGIC, ATTR3_LEAF_MAGIC};
use crate::ondisk::da_block::{DA_NODE_MAGIC, DA3_NODE_MAGIC, RawDa3Blkinfo, RawDaBlkinfo};
use crate::ondisk::dir_data::{
    DIR2_BLOCK_MAGIC, DIR2_DATA_MAGIC, DIR3_BLOCK_MAGIC, DIR3_DATA_MAGIC, RawDir2DataHdr, RawDir3BlkHdr,
};
use crate::ondisk::dir_leaf::{
    DIR2_FREE_MAGIC, DIR2_LEAF1_MAGIC, DIR2_LEAFN_MAGIC, DIR3_FREE_MAGIC, DIR3_LEAF1_MAGIC, DIR3_LEAFN_MAGIC,
};
use crate::ondisk::remote::{RawDsymlinkHdr, SYMLINK_MAGIC};
use crate::ondisk::{
    OnDisk, RawAgf, RawAgfl, RawAgi, RawLongBlock, RawLongBlockV5, RawRtBlockHeader, RawRtSuperblock, RawShortBlock,
    RawShortBlockV5, RawSuperblock, crc,
};

/// A big-endian number in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) name: &'static str,
    offset: usize,
    len: usize,
}

impl Number {
    /// Its value; 0 when the bytes end before it.
    pub(super) fn read(&self, bytes: &[u8]) -> u64 {
        let field = bytes.get(self.offset..self.offset + self.len).unwrap_or(&[]);
        field.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }
}

/// The number of a field of `$raw`.
macro_rules! number {
    ($raw:ty, $field:ident) => {
        number!($raw, $field, stringify!($field))
    };
    ($raw:ty, $($field:ident).+, $name:expr) => {{
        const fn size_of_field<T>(_: fn(&$raw) -> &T) -> usize {
            size_of::<T>()
        }
        Number { name: $name, offset: offset_of!($raw, $($field).+), len: size_of_field(|raw: &$raw| &raw.$($field).+) }
    }};
}

/// The magic numbers that a kind of block may have.
#[derive(Clone, Debug)]
pub(super) struct Magic {
    pub(super) name: &'static str,
    field: Number,
    pub(super) allowed: Vec<u64>,
}

impl Magic {
    fn new(field: Number, allowed: impl IntoIterator<Item = u32>) -> Self {
        Magic { name: field.name, field, allowed: allowed.into_iter().map(u64::from).collect() }
    }

    fn short(field: Number, allowed: impl IntoIterator<Item = u16>) -> Self {
        Magic { name: field.name, field, allowed: allowed.into_iter().map(u64::from).collect() }
    }

    pub(super) fn read(&self, bytes: &[u8]) -> u64 {
        self.field.read(bytes)
    }
}

/// What version 5 adds.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdentityV5 {
    pub(super) crc: usize,
    pub(super) uuid: Option<usize>,
    pub(super) blkno: Option<Number>,
    pub(super) lsn: Option<Number>,
}

/// Where a kind of block keeps what identifies it.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) magic: Magic,
    /// Bytes that the block must have for this to be read.
    pub(super) len: usize,
    pub(super) owner: Option<Number>,
    pub(super) v5: Option<IdentityV5>,
}

/// The fields of version 5 that `$raw` has; some have no address of their own.
macro_rules! identity_v5 {
    ($raw:ty, blkno: $blkno:expr) => {
        IdentityV5 {
            crc: <$raw>::CRC_OFFSET,
            uuid: Some(offset_of!($raw, uuid)),
            blkno: $blkno,
            lsn: Some(number!($raw, lsn)),
        }
    };
    ($raw:ty) => {
        identity_v5!($raw, blkno: Some(number!($raw, blkno)))
    };
}

/// A header of an allocation group: its number is in it in both versions.
macro_rules! ag_header {
    ($raw:ty, $crc:expr) => {
        Identity {
            magic: Magic::new(number!($raw, magicnum), [<$raw>::MAGIC]),
            len: <$raw>::SIZE,
            owner: Some(number!($raw, seqno)),
            v5: $crc.then_some(identity_v5!($raw, blkno: None)),
        }
    };
}

impl Identity {
    /// The identity of a kind of block; `None` for blocks that have none, and for those made up of several structures
    /// with an identity each.
    pub(super) fn of(kind: BlockKind, geometry: &Geometry) -> Option<Identity> {
        let crc = geometry.features.has_crc();
        let v5 = |identity: IdentityV5| crc.then_some(identity);
        Some(match kind {
            BlockKind::Superblock => Identity {
                magic: Magic::new(number!(RawSuperblock, magicnum), [RawSuperblock::MAGIC]),
                len: RawSuperblock::SIZE,
                owner: None,
                v5: v5(IdentityV5 {
                    crc: RawSuperblock::CRC_OFFSET,
                    uuid: None,
                    blkno: None,
                    lsn: Some(number!(RawSuperblock, lsn)),
                }),
            },
            BlockKind::Agf => ag_header!(RawAgf, crc),
            BlockKind::Agi => ag_header!(RawAgi, crc),
            BlockKind::Agfl if crc => ag_header!(RawAgfl, crc),
            BlockKind::Btree(tree) => btree(tree, crc),
            BlockKind::DirBlock => dir_data([DIR2_BLOCK_MAGIC, DIR3_BLOCK_MAGIC], crc),
            BlockKind::DirData => dir_data([DIR2_DATA_MAGIC, DIR3_DATA_MAGIC], crc),
            BlockKind::DirFree => dir_data([DIR2_FREE_MAGIC, DIR3_FREE_MAGIC], crc),
            BlockKind::DirLeaf1 => hash_block(&[[DIR2_LEAF1_MAGIC, DIR3_LEAF1_MAGIC]], crc),
            BlockKind::DirHash => {
                hash_block(&[[DIR2_LEAFN_MAGIC, DIR3_LEAFN_MAGIC], [DA_NODE_MAGIC, DA3_NODE_MAGIC]], crc)
            }
            BlockKind::AttrHash => {
                hash_block(&[[ATTR_LEAF_MAGIC, ATTR3_LEAF_MAGIC], [DA_NODE_MAGIC, DA3_NODE_MAGIC]], crc)
            }
            BlockKind::Symlink if crc => Identity {
                magic: Magic::new(number!(RawDsymlinkHdr, magic), [SYMLINK_MAGIC]),
                len: RawDsymlinkHdr::SIZE,
                owner: Some(number!(RawDsymlinkHdr, owner)),
                v5: v5(identity_v5!(RawDsymlinkHdr)),
            },
            BlockKind::RtSuperblock => Identity {
                magic: Magic::new(number!(RawRtSuperblock, magicnum), [RawRtSuperblock::MAGIC]),
                len: RawRtSuperblock::SIZE,
                owner: None,
                v5: v5(IdentityV5 {
                    crc: RawRtSuperblock::CRC_OFFSET,
                    uuid: Some(offset_of!(RawRtSuperblock, meta_uuid)),
                    blkno: None,
                    lsn: None,
                }),
            },
            BlockKind::RtBitmap if geometry.features.has_rtgroups() => rt_block(RawRtBlockHeader::BITMAP_MAGIC),
            BlockKind::RtSummary if geometry.features.has_rtgroups() => rt_block(RawRtBlockHeader::SUMMARY_MAGIC),
            BlockKind::Agfl
            | BlockKind::Symlink
            | BlockKind::RtBitmap
            | BlockKind::RtSummary
            | BlockKind::InodeCluster
            | BlockKind::Dquots
            | BlockKind::AttrRemote => return None,
        })
    }

    /// Stores the LSN, if there is one, and the CRC.
    pub(super) fn stamp(&self, bytes: &mut [u8], lsn: Option<Lsn>) {
        let Some(v5) = self.v5.filter(|_| bytes.len() >= self.len) else { return };
        if let (Some(field), Some(lsn)) = (v5.lsn, lsn) {
            bytes[field.offset..field.offset + field.len].copy_from_slice(&lsn.0.to_be_bytes());
        }
        crc::stamp(bytes, v5.crc);
    }
}

fn btree(tree: BtreeKind, crc: bool) -> Identity {
    let (magic, len) = match (tree.is_long(), crc) {
        (false, false) => (number!(RawShortBlock, magic), RawShortBlock::SIZE),
        (false, true) => (number!(RawShortBlock, magic), RawShortBlockV5::SIZE),
        (true, false) => (number!(RawLongBlock, magic), RawLongBlock::SIZE),
        (true, true) => (number!(RawLongBlock, magic), RawLongBlockV5::SIZE),
    };
    let v5 = if tree.is_long() { identity_v5!(RawLongBlockV5) } else { identity_v5!(RawShortBlockV5) };
    let owner = if tree.is_long() { number!(RawLongBlockV5, owner) } else { number!(RawShortBlockV5, owner) };
    Identity { magic: Magic::new(magic, [tree.magic(crc)]), len, owner: crc.then_some(owner), v5: crc.then_some(v5) }
}

/// Blocks that start with the header of directory data: magic numbers of version 4 and 5.
fn dir_data(magic: [u32; 2], crc: bool) -> Identity {
    let magic = Magic::new(number!(RawDir3BlkHdr, magic), [magic[usize::from(crc)]]);
    let len = if crc { RawDir3BlkHdr::SIZE } else { RawDir2DataHdr::SIZE };
    let owner = crc.then_some(number!(RawDir3BlkHdr, owner));
    Identity { magic, len, owner, v5: crc.then_some(identity_v5!(RawDir3BlkHdr)) }
}

/// Blocks of hash btrees: pairs of magic numbers of version 4 and 5.
fn hash_block(magic: &[[u16; 2]], crc: bool) -> Identity {
    let field = number!(RawDaBlkinfo, magic);
    let magic = Magic::short(field, magic.iter().map(|pair| pair[usize::from(crc)]));
    let len = if crc { RawDa3Blkinfo::SIZE } else { RawDaBlkinfo::SIZE };
    let owner = crc.then_some(number!(RawDa3Blkinfo, owner));
    Identity { magic, len, owner, v5: crc.then_some(identity_v5!(RawDa3Blkinfo)) }
}

fn rt_block(magic: u32) -> Identity {
    Identity {
        magic: Magic::new(number!(RawRtBlockHeader, magic), [magic]),
        len: RawRtBlockHeader::SIZE,
        owner: Some(number!(RawRtBlockHeader, owner)),
        v5: Some(identity_v5!(RawRtBlockHeader)),
    }
}
