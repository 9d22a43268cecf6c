//! What a replay would write, and what it would leave alone because the disk has it already
//! (Linux `xfs_buf_item_recover.c`, `xfs_inode_item_recover.c`, `xfs_dquot_item_recover.c`).

use std::collections::{HashMap, HashSet};

use crate::buffer::block_lsn;
use crate::device::Device;
use crate::geometry::limits::BASIC_BLOCK;
use crate::geometry::{Geometry, Ino, Lsn};
use crate::journal::{BufferItem, DquotItem, InodeItem};
use crate::ondisk::log_buffer::BufType;
use crate::ondisk::{OnDisk, RawDinode, RawDquotBlock};

/// Where a buffer is: disk address and length in units of 512 bytes.
pub(super) type BufferKey = (u64, u32);

/// A buffer of which parts are replayed.
#[derive(Clone, Copy, Debug)]
pub(super) struct TouchedBuffer {
    /// What it holds.
    pub(super) kind: Option<BufType>,
    /// The checkpoint that changed it last.
    lsn: Lsn,
}

/// An inode that is replayed: the checkpoint that changed it last, and its flush counter in versions 1 and 2.
#[derive(Clone, Copy, Debug)]
pub(super) struct TouchedInode {
    lsn: Lsn,
    flushiter: u16,
}

/// A dquot that is replayed: the checkpoint that changed it last, and the byte of the disk at which it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct TouchedDquot {
    lsn: Lsn,
    offset: u64,
}

/// What a replay would write.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched {
    pub(super) buffers: HashMap<BufferKey, TouchedBuffer>,
    /// Inodes by number, by the buffer that they are in.
    pub(super) inodes: HashMap<BufferKey, HashMap<u64, TouchedInode>>,
    /// Dquots, by kind and id.
    pub(super) dquots: HashMap<(u8, u32), TouchedDquot>,
    /// Buffers of which the changes are void because they are freed.
    pub(super) cancelled: HashSet<BufferKey>,
    /// Inodes that are made.
    pub(super) new_inodes: u64,
}

/// How much a replay would leave alone: what stands on the disk is as new as all that is logged of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftAlone {
    pub(super) buffers: usize,
    pub(super) inodes: usize,
    pub(super) dquots: usize,
}

impl Touched {
    /// A checkpoint changes a buffer.
    pub(super) fn buffer(&mut self, buffer: &BufferItem<'_>, lsn: Lsn) {
        let key = (buffer.format.blkno, u32::from(buffer.format.len));
        self.cancelled.remove(&key);
        self.buffers.insert(key, TouchedBuffer { kind: buffer.format.kind, lsn });
    }

    /// A checkpoint changes an inode.
    pub(super) fn inode(&mut self, inode: &InodeItem<'_>, lsn: Lsn) {
        let key = (inode.format.blkno, inode.format.len);
        let touched = TouchedInode { lsn, flushiter: inode.core.core.flushiter() };
        self.inodes.entry(key).or_default().insert(inode.format.ino, touched);
    }

    /// A checkpoint changes a dquot.
    pub(super) fn dquot(&mut self, dquot: &DquotItem<'_>, lsn: Lsn) {
        let start = dquot.format.blkno.saturating_mul(u64::from(BASIC_BLOCK));
        let offset = start.saturating_add(u64::from(dquot.format.boffset));
        self.dquots.insert((dquot.dquot.dqtype, dquot.format.id), TouchedDquot { lsn, offset });
    }

    /// The buffer is freed: what was logged of it, or of inodes in it, is not replayed.
    pub(super) fn cancel(&mut self, key: BufferKey) {
        self.buffers.remove(&key);
        self.inodes.remove(&key);
        self.cancelled.insert(key);
    }

    /// How many inodes there are.
    pub(super) fn inode_count(&self) -> usize {
        self.inodes.values().map(HashMap::len).sum()
    }

    /// Takes out what a replay would leave alone, as the data device tells; what cannot be read would be written.
    pub(super) fn take_what_is_in_place(&mut self, geometry: &Geometry, data: &dyn Device) -> LeftAlone {
        let disk = Disk { geometry, data };
        let (inodes, buffers, dquots) = (self.inode_count(), self.buffers.len(), self.dquots.len());
        self.buffers.retain(|key, buffer| !disk.has_buffer(*key, buffer));
        for inodes in self.inodes.values_mut() {
            inodes.retain(|ino, inode| !disk.has_inode(*ino, inode));
        }
        self.inodes.retain(|_, inodes| !inodes.is_empty());
        self.dquots.retain(|_, dquot| !disk.has_dquot(dquot));
        LeftAlone {
            buffers: buffers - self.buffers.len(),
            inodes: inodes - self.inode_count(),
            dquots: dquots - self.dquots.len(),
        }
    }
}

/// The disk, on which changes may be in place.
struct Disk<'a> {
    geometry: &'a Geometry,
    data: &'a dyn Device,
}

impl Disk<'_> {
    fn has_buffer(&self, (daddr, _): BufferKey, buffer: &TouchedBuffer) -> bool {
        use BufType::{AttrRmt, Dino, Gdquot, Pdquot, Udquot};
        // these have no LSN for all of the block
        if matches!(buffer.kind, Some(AttrRmt | Dino | Gdquot | Pdquot | Udquot)) {
            return false;
        }
        let mut head = [0; BASIC_BLOCK as usize];
        let offset = daddr.checked_mul(u64::from(BASIC_BLOCK));
        let read = offset.is_some_and(|offset| self.data.read_at(offset, &mut head).is_ok());
        read && block_lsn(self.geometry, &head).is_some_and(|lsn| lsn >= buffer.lsn)
    }

    fn has_inode(&self, ino: u64, logged: &TouchedInode) -> bool {
        let mut bytes = [0; RawDinode::SIZE];
        let offset = self.geometry.ino_offset(Ino(ino));
        if offset.is_none_or(|offset| self.data.read_at(offset, &mut bytes).is_err()) {
            return false;
        }
        let Some((inode, _)) = RawDinode::prefix(&bytes) else { return false };
        if inode.core.magic.get() != RawDinode::MAGIC {
            return false;
        }
        if inode.core.version >= 3 {
            return written(inode.lsn.get()).is_some_and(|lsn| lsn > logged.lsn);
        }
        // a counter that goes round
        let (disk, logged) = (inode.core.flushiter(), logged.flushiter);
        let went_round = disk == u16::MAX && logged < u16::MAX >> 1;
        logged < disk && !went_round
    }

    fn has_dquot(&self, logged: &TouchedDquot) -> bool {
        let mut bytes = [0; RawDquotBlock::SIZE];
        if !self.geometry.features.has_crc() || self.data.read_at(logged.offset, &mut bytes).is_err() {
            return false;
        }
        let slot = RawDquotBlock::prefix(&bytes).map(|(slot, _)| slot.lsn.get());
        slot.and_then(written).is_some_and(|lsn| lsn >= logged.lsn)
    }
}

/// An LSN, unless it says that there is none.
fn written(lsn: u64) -> Option<Lsn> {
    (lsn != 0 && lsn != u64::MAX).then_some(Lsn(lsn))
}
