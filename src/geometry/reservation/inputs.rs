//! The numbers and features that reservations depend on.

use crate::geometry::Geometry;
use crate::geometry::btree_levels::{BtreeLevels, LevelInputs};

/// The numbers and features that reservations depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservationInputs {
    /// Logarithm of the block size in bytes.
    pub blocklog: u8,
    /// Sector size of the data device in bytes.
    pub sectsize: u32,
    /// Inode size in bytes.
    pub inodesize: u32,
    /// Logarithm of the directory block size in filesystem blocks.
    pub dirblklog: u8,
    /// Blocks of an allocation group.
    pub agblocks: u32,
    /// Logarithm of `agblocks`, rounded up.
    pub agblklog: u8,
    /// Blocks of the data device.
    pub dblocks: u64,
    /// Alignment of inode chunks in blocks (`sb.inoalignmt`).
    pub inoalignmt: u32,
    /// Version 5 (`crc=1`).
    pub crc: bool,
    /// There is a btree of free inodes.
    pub finobt: bool,
    /// There is a reverse mapping btree.
    pub rmapbt: bool,
    /// There is a reference count btree.
    pub reflink: bool,
    /// Large extent counts.
    pub nrext64: bool,
    /// Parent pointers.
    pub parent: bool,
    /// Metadata directory, and with it realtime groups.
    pub metadir: bool,
    /// The realtime device is zoned.
    pub zoned: bool,
    /// Blocks of the realtime device; 0 without.
    pub rblocks: u64,
    /// Blocks of a realtime extent.
    pub rextsize: u32,
    /// Extents of a realtime group; 0 without groups.
    pub rgextents: u32,
    /// Blocks of the realtime summary. The kernel counts them; xfsprogs computes its reservations with 0.
    pub rsumblocks: u64,
    /// Version 2 of the log.
    pub logv2: bool,
    /// Stripe unit of the log in bytes; 0 or 1 without.
    pub logsunit: u32,
}

impl ReservationInputs {
    /// Those of a filesystem. The realtime summary is left out, as in xfsprogs.
    pub fn of(geometry: &Geometry) -> Self {
        let features = &geometry.features;
        let log = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
        ReservationInputs {
            blocklog: log(geometry.blocklog),
            sectsize: geometry.sectsize,
            inodesize: geometry.inodes.size,
            dirblklog: log(geometry.directory.blklog - geometry.blocklog),
            agblocks: geometry.agblocks,
            agblklog: log(geometry.agblklog),
            dblocks: geometry.dblocks,
            inoalignmt: geometry.inodes.chunk_align,
            crc: features.has_crc(),
            finobt: features.has_finobt(),
            rmapbt: features.has_rmapbt(),
            reflink: features.has_reflink(),
            nrext64: features.has_nrext64(),
            parent: features.has_parent(),
            metadir: features.has_metadir(),
            zoned: features.has_zoned(),
            rblocks: geometry.realtime.blocks,
            rextsize: geometry.realtime.extent_blocks,
            rgextents: geometry.realtime.groups.map_or(0, |groups| groups.extents),
            rsumblocks: 0,
            logv2: features.has_logv2(),
            logsunit: geometry.log.stripe_unit,
        }
    }

    /// Block size in bytes.
    pub fn blocksize(&self) -> u32 {
        1u32.checked_shl(u32::from(self.blocklog)).unwrap_or(0)
    }

    /// There is a realtime section.
    pub(super) fn realtime(&self) -> bool {
        self.rblocks > 0
    }

    /// The most levels that each btree can have.
    pub fn levels(&self) -> BtreeLevels {
        let inopblog = u32::from(self.blocklog).saturating_sub(self.inodesize.max(1).ilog2());
        BtreeLevels::new(&LevelInputs {
            blocksize: self.blocksize(),
            agblocks: self.agblocks,
            agino_log: inopblog + u32::from(self.agblklog),
            dblocks: self.dblocks,
            crc: self.crc,
            rmapbt: self.rmapbt,
            reflink: self.reflink,
            nrext64: self.nrext64,
            rtgroups: self.metadir && self.realtime(),
            rgblocks: u64::from(self.rgextents) * u64::from(self.rextsize),
            rgextents: u64::from(self.rgextents),
        })
    }
}
