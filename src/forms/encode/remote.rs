//! Attribute values and targets of symbolic links in blocks of their own (Linux `fs/xfs/libxfs/xfs_attr_remote.c`,
//! `xfs_symlink_remote.c`).

use super::owner::{BlockOwner, put};
use crate::geometry::Geometry;
use crate::ondisk::OnDisk;
use crate::ondisk::remote::{ATTR3_RMT_MAGIC, RawAttr3RmtHdr, RawDsymlinkHdr, SYMLINK_MAGIC};

/// LSN of a remote value: it is written before the transaction that makes it reachable.
const NO_LSN: u64 = u64::MAX;

/// The blocks of an attribute's value, one after the other; in version 5 each has a header, to be sealed.
pub fn encode_attr_value(geometry: &Geometry, owner: &BlockOwner, value: &[u8]) -> Vec<Vec<u8>> {
    let size = usize::try_from(geometry.blocksize).expect("invariant: 64 KiB at most");
    let space = usize::try_from(geometry.attributes.remote_space).expect("invariant: 64 KiB at most");
    let mut blocks = Vec::new();
    for (index, part) in value.chunks(space).enumerate() {
        let mut block = vec![0; size];
        block[size - space..size - space + part.len()].copy_from_slice(part);
        if owner.crc {
            let head = RawAttr3RmtHdr {
                magic: ATTR3_RMT_MAGIC.into(),
                offset: u32::try_from(index * space).expect("invariant: values have 64 KiB at most").into(),
                bytes: u32::try_from(part.len()).expect("invariant: 64 KiB at most").into(),
                crc: 0.into(),
                uuid: owner.uuid,
                owner: owner.ino.0.into(),
                blkno: 0.into(),
                lsn: NO_LSN.into(),
            };
            put(&mut block, &head).expect("invariant: a block is longer than its header");
        }
        blocks.push(block);
    }
    blocks
}

/// The bytes of a contiguous piece of `blocks` blocks of a symbolic link's target, from byte `from` of the target on, and how many
/// bytes of it they hold. In version 5 the piece has one header, to be sealed.
pub fn encode_symlink_target(
    geometry: &Geometry,
    owner: &BlockOwner,
    target: &[u8],
    from: usize,
    blocks: u32,
) -> (Vec<u8>, usize) {
    let bytes = u64::from(blocks) * u64::from(geometry.blocksize);
    let mut piece = vec![0; usize::try_from(bytes).expect("invariant: targets have 1 KiB at most")];
    let header = if owner.crc { RawDsymlinkHdr::SIZE } else { 0 };
    let rest = target.get(from..).unwrap_or(&[]);
    let part = &rest[..rest.len().min(piece.len() - header)];
    piece[header..header + part.len()].copy_from_slice(part);
    if owner.crc {
        let head = RawDsymlinkHdr {
            magic: SYMLINK_MAGIC.into(),
            offset: u32::try_from(from).expect("invariant: targets have 1 KiB at most").into(),
            bytes: u32::try_from(part.len()).expect("invariant: targets have 1 KiB at most").into(),
            crc: 0.into(),
            uuid: owner.uuid,
            owner: owner.ino.0.into(),
            blkno: 0.into(),
            lsn: 0.into(),
        };
        put(&mut piece, &head).expect("invariant: a block is longer than its header");
    }
    (piece, part.len())
}
