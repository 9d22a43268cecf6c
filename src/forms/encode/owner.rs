//! What a block of a file's own metadata says of itself in version 5: whose it is, and where.

use crate::geometry::{Daddr, Geometry, Ino};
use crate::ondisk::da_block::{RawDa3Blkinfo, RawDaBlkinfo};
use crate::ondisk::dir_data::RawDir3BlkHdr;
use crate::ondisk::remote::{RawAttr3RmtHdr, RawDsymlinkHdr};
use crate::ondisk::{OnDisk, RawUuid, crc};

/// Which header a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// That of directory data and of the index of free space.
    DirData,
    /// That of leaves and nodes.
    DaBlock,
    /// That of a remote attribute value.
    AttrRemote,
    /// That of a symbolic link's target.
    Symlink,
}

/// The inode that owns blocks, in its filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockOwner {
    /// Version 5: blocks have an identity and a CRC.
    pub crc: bool,
    /// UUID of the metadata.
    pub uuid: RawUuid,
    /// The inode.
    pub ino: Ino,
}

impl BlockOwner {
    /// Inode `ino` of a filesystem.
    pub fn new(geometry: &Geometry, ino: Ino) -> Self {
        BlockOwner { crc: geometry.features.has_crc(), uuid: geometry.meta_uuid, ino }
    }

    /// Stores in a block that is otherwise complete where it lies, and its CRC. Nothing in version 4.
    pub fn seal(&self, header: Header, block: &mut [u8], daddr: Daddr) {
        if !self.crc {
            return;
        }
        let offset = match header {
            Header::DirData => {
                let Some((head, _)) = RawDir3BlkHdr::prefix_mut(block) else { return };
                head.blkno.set(daddr.0);
                RawDir3BlkHdr::CRC_OFFSET
            }
            Header::DaBlock => {
                let Some((head, _)) = RawDa3Blkinfo::prefix_mut(block) else { return };
                head.blkno.set(daddr.0);
                RawDa3Blkinfo::CRC_OFFSET
            }
            Header::AttrRemote => {
                let Some((head, _)) = RawAttr3RmtHdr::prefix_mut(block) else { return };
                head.blkno.set(daddr.0);
                RawAttr3RmtHdr::CRC_OFFSET
            }
            Header::Symlink => {
                let Some((head, _)) = RawDsymlinkHdr::prefix_mut(block) else { return };
                head.blkno.set(daddr.0);
                RawDsymlinkHdr::CRC_OFFSET
            }
        };
        crc::stamp(block, offset);
    }

    /// The start of directory data and of the index of free space, with the magic number of version 5.
    pub(super) fn dir_header(&self, magic: u32) -> RawDir3BlkHdr {
        RawDir3BlkHdr {
            magic: magic.into(),
            crc: 0.into(),
            blkno: 0.into(),
            lsn: 0.into(),
            uuid: self.uuid,
            owner: self.ino.0.into(),
        }
    }

    /// The start of a leaf or node, with its siblings and the magic number of version 5.
    pub(super) fn da_header(&self, magic: u16, siblings: Siblings) -> RawDa3Blkinfo {
        RawDa3Blkinfo {
            hdr: siblings.header(magic),
            crc: 0.into(),
            blkno: 0.into(),
            lsn: 0.into(),
            uuid: self.uuid,
            owner: self.ino.0.into(),
        }
    }
}

/// The neighbours of a block at its level; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Siblings {
    /// Filesystem block of the file of the next one.
    pub forw: u32,
    /// Filesystem block of the file of the one before.
    pub back: u32,
}

impl Siblings {
    /// The links, with a magic number.
    pub(super) fn header(self, magic: u16) -> RawDaBlkinfo {
        RawDaBlkinfo { forw: self.forw.into(), back: self.back.into(), magic: magic.into(), pad: 0.into() }
    }
}

/// Puts a structure at the start of a block.
pub(super) fn put<T: OnDisk>(block: &mut [u8], value: &T) -> Option<()> {
    block.get_mut(..T::SIZE)?.copy_from_slice(value.as_bytes());
    Some(())
}
