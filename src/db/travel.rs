//! Going to inodes, to blocks of their forks, and taking what one looks at for another type.

use std::sync::Arc;

use super::crc_state::CrcState;
use super::position::Position;
use super::session::Session;
use super::types::{Body, TypeId, body};
use crate::buffer::Fragment;
use crate::db::field::Object;
use crate::error::{DeviceRole, Error, Result};
use crate::forms::{ForkKind, Inode, map_file_block};
use crate::geometry::{AgBlock, Daddr, FileBlock, Ino, RtBlock};
use crate::ondisk::dinode::metatype;

/// Units of 512 bytes.
const BASIC_BLOCK: u64 = 512;

impl Session {
    /// Units of 512 bytes in `blocks` blocks.
    pub fn basic_blocks(&self, blocks: u32) -> u64 {
        u64::from(blocks).saturating_mul(u64::from(self.geometry().basic_blocks_per_block()))
    }

    /// Goes to an inode.
    ///
    /// # Errors
    /// `Usage` when none can have this number; `Io`.
    pub fn go_to_inode(&mut self, ino: Ino) -> Result<()> {
        let position = self.read_inode(ino)?;
        self.agno = self.geometry().ino_parts(ino).map(|parts| parts.agno);
        let directory = Inode::decode(self.image.cache(), ino, position.bytes())
            .is_ok_and(|inode| inode.file_type() == Some(crate::forms::FileType::Directory));
        let frame = self.frame();
        frame.ino = Some(ino);
        if directory {
            frame.directory = Some(ino);
        }
        self.set_position(position);
        Ok(())
    }

    /// The position of an inode, in the buffer that the inodes around it are read with.
    fn read_inode(&self, ino: Ino) -> Result<Position> {
        let geometry = self.geometry();
        let nowhere = || Error::Usage(format!("no inode can have the number {ino}"));
        let parts = geometry.ino_parts(ino).ok_or_else(nowhere)?;
        let inodes = &geometry.inodes;
        // without alignment it is not known where a cluster begins
        let mask = inodes.cluster_align - 1;
        let (first, blocks) = if inodes.cluster_size > geometry.blocksize && mask > 0 {
            let within = parts.agbno.0 & mask;
            (parts.agbno.0 - within % inodes.cluster_blocks.max(1), inodes.cluster_blocks)
        } else {
            (parts.agbno.0, 1)
        };
        let daddr = geometry.ag_daddr(parts.agno, AgBlock(first)).ok_or_else(nowhere)?;
        let mut position = self.read(TypeId::Inode, DeviceRole::Data, daddr, self.basic_blocks(blocks))?;
        let index = (parts.agbno.0 - first) * inodes.per_block + parts.index;
        position.offset = usize::try_from(u64::from(index) << inodes.log).map_err(|_| nowhere())?;
        position.len = usize::try_from(inodes.size).map_err(|_| nowhere())?;
        position.crc = self.crc_of_inode(position.bytes());
        let verdict = self.image.cache().verifier().verify_inode(ino, position.bytes());
        self.warn_of(&verdict);
        position.verdict = Arc::new(verdict);
        Ok(position)
    }

    /// The inode that was gone to last, decoded.
    ///
    /// # Errors
    /// `Usage` when there was none; `Io`.
    pub fn open_inode(&self) -> Result<Inode> {
        Inode::read(self.image.cache(), self.current_inode()?)
    }

    /// Notes an inode in the ring, as xfs_db does whenever it looks at one on the way.
    pub(super) fn note_inode(&mut self, ino: Ino) -> Result<()> {
        let position = self.read_inode(ino)?;
        self.agno = self.geometry().ino_parts(ino).map(|parts| parts.agno);
        self.ring.add(super::ring::Visited { position, ino: Some(ino) });
        Ok(())
    }

    /// What the blocks of an inode's data fork are taken for; `None` where it has none.
    pub fn data_type(&self, inode: &Inode) -> Option<TypeId> {
        use crate::forms::FileType;
        let geometry = self.geometry();
        let (realtime, quota) = (&geometry.realtime, &geometry.quota);
        match inode.file_type()? {
            FileType::Directory => Some(TypeId::Dir2),
            FileType::Symlink => Some(TypeId::Symlink),
            FileType::Regular if geometry.features.has_rtgroups() => Some(match inode.raw().core.metatype.get() {
                metatype::USRQUOTA | metatype::GRPQUOTA | metatype::PRJQUOTA => TypeId::Dqblk,
                metatype::RTBITMAP => TypeId::Rgbitmap,
                metatype::RTSUMMARY => TypeId::Rgsummary,
                metatype::RTRMAP => TypeId::Rtrmapbt,
                metatype::RTREFCOUNT => TypeId::Rtrefcntbt,
                _ => TypeId::Data,
            }),
            FileType::Regular => Some(match Some(inode.ino) {
                ino if ino == realtime.bitmap_ino => TypeId::Rtbitmap,
                ino if ino == realtime.summary_ino => TypeId::Rtsummary,
                ino if [quota.user, quota.group, quota.project].contains(&ino) => TypeId::Dqblk,
                _ => TypeId::Data,
            }),
            _ => None,
        }
    }

    /// Goes to a block of a fork of the current inode, taken for `ty`; of a directory, to all blocks of a directory
    /// block.
    ///
    /// # Errors
    /// `Usage` when nothing is mapped there, or there is no such fork; else those of reading.
    pub fn go_to_file_block(&mut self, kind: ForkKind, at: FileBlock, ty: TypeId) -> Result<()> {
        let inode = self.open_inode()?;
        self.note_inode(inode.ino)?;
        let blocks = if ty == TypeId::Dir2 { self.geometry().directory.fsbcount } else { 1 };
        let fork = inode.fork(kind)?.ok_or_else(|| Error::Usage(format!("inode {} has no attributes", inode.ino)))?;
        let pieces = map_file_block(self.image.cache(), &fork, at, blocks)?;
        let pieces = pieces.ok_or_else(|| Error::Usage(format!("file block {at} is a hole")))?;
        let realtime = kind == ForkKind::Data && inode.is_realtime();
        let outside = || Error::Usage(format!("file block {at} lies outside of the filesystem"));
        let geometry = self.geometry();
        let fragments: Option<Vec<Fragment>> = (pieces.iter())
            .map(|piece| {
                let daddr = if realtime {
                    geometry.rtb_daddr(RtBlock(piece.start.0))?
                } else {
                    geometry.fsb_daddr(piece.start)?
                };
                Some(Fragment { daddr, len: piece.count.checked_mul(geometry.blocksize)? })
            })
            .collect();
        let device = if realtime { DeviceRole::Realtime } else { DeviceRole::Data };
        let mut position = self.read_fragments(ty, device, fragments.ok_or_else(outside)?)?;
        if position.fragments.len() == 1 {
            position.fragments.clear();
        }
        self.set_position(position);
        Ok(())
    }

    /// Takes what one looks at for another type; the length becomes what that type has, if it has any.
    ///
    /// # Errors
    /// `Usage` when one looks nowhere; else those of reading.
    pub fn set_type(&mut self, ty: TypeId) -> Result<()> {
        let position = self.require_position()?;
        let (device, daddr, offset) = (position.device, position.daddr, position.offset);
        if ty == TypeId::Inode {
            return self.go_to_inode(self.inode_at(position)?);
        }
        let Some(Body::Fields(format)) = body(ty, self.family()) else {
            let (crc, verdict) = (CrcState::Unchecked, Arc::default());
            let same = Position { ty, crc, verdict, ..position.clone() };
            self.show(same);
            return Ok(());
        };
        let object = Object { bytes: position.bytes(), geometry: self.geometry(), crc: position.crc };
        let bytes = format.size(&object, 0, 0).div_ceil(8);
        let basic_blocks = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(BASIC_BLOCK);
        // at the place of an inode or a record the object lies behind others, and may end behind what is said to be looked at
        let mut position = self.read(ty, device, daddr, basic_blocks(offset.saturating_add(bytes)))?;
        (position.offset, position.basic_blocks) = (offset, basic_blocks(bytes));
        position.len = basic_blocks(bytes).saturating_mul(BASIC_BLOCK).try_into().unwrap_or(usize::MAX);
        self.show(position);
        Ok(())
    }

    /// The number of the inode that lies where one looks.
    fn inode_at(&self, position: &Position) -> Result<Ino> {
        let geometry = self.geometry();
        let nowhere = || Error::Usage("there can be no inode here".to_owned());
        let first = geometry.daddr_fsb(position.daddr).and_then(|fsb| geometry.fsb_ino(fsb)).ok_or_else(nowhere)?;
        let index = u64::try_from(position.offset).map_err(|_| nowhere())? >> geometry.inodes.log;
        Ok(Ino(first.0 + index))
    }

    /// Goes to a block of the realtime device.
    ///
    /// # Errors
    /// `Usage` when there is no such device; `Io`.
    pub fn go_realtime(&mut self, ty: TypeId, daddr: Daddr, basic_blocks: u64) -> Result<()> {
        let position = self.read(ty, DeviceRole::Realtime, daddr, basic_blocks)?;
        self.set_position(position);
        Ok(())
    }
}
