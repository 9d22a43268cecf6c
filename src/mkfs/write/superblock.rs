//! The superblock of a new filesystem. Sources: `sb_set_features`, `start_superblock_setup`, `finish_superblock_setup` of
//! xfsprogs `mkfs/xfs_mkfs.c`, `xfs_sb_to_disk` of Linux `fs/xfs/libxfs/xfs_sb.c`.

use zerocopy::{FromZeros, IntoBytes};

use crate::geometry::Ino;
use crate::mkfs::layout::{LogPlace, RealtimePlace};
use crate::mkfs::write::shape::Shape;
use crate::ondisk::feature_bits::{features2, incompat, ro_compat, versionnum};
use crate::ondisk::{NULLFSINO, OnDisk, RawSuperblock, RawSuperblock as Raw, crc};

/// Versions of the superblock.
const VERSION_4: u16 = 4;
const VERSION_5: u16 = 5;
/// Sector size from which on the superblock names the sector of the log.
const BASIC_SECTOR: u32 = 512;

/// What is not known before the first inodes are made, and the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Root directory.
    pub rootino: Ino,
    /// Bitmap of the realtime section without groups.
    pub rbmino: Ino,
    /// Summary of the realtime section without groups.
    pub rsumino: Ino,
    /// Root of the metadata directory.
    pub metadirino: Ino,
    /// Inodes.
    pub icount: u64,
    /// Free inodes.
    pub ifree: u64,
    /// Free blocks.
    pub fdblocks: u64,
    /// Free realtime extents.
    pub frextents: u64,
    /// Attributes have come into use since.
    pub attributes: bool,
}

impl Progress {
    /// Nothing is made yet but the headers of the groups.
    pub fn begin(shape: &Shape) -> Self {
        let layout = &shape.layout;
        let log = match layout.log.place {
            LogPlace::Internal { .. } => u64::from(layout.log.blocks),
            LogPlace::External => 0,
        };
        let headers = u64::from(layout.data.agcount) * u64::from(shape.prealloc);
        Progress {
            rootino: Ino(NULLFSINO),
            rbmino: Ino(NULLFSINO),
            rsumino: Ino(NULLFSINO),
            metadirino: Ino(NULLFSINO),
            icount: 0,
            ifree: 0,
            fdblocks: layout.data.blocks.saturating_sub(headers + log),
            frextents: 0,
            attributes: false,
        }
    }
}

/// The superblock, in the state `progress`.
pub(super) fn superblock(shape: &Shape, progress: &Progress, inprogress: bool) -> Raw {
    let layout = &shape.layout;
    let mut sb = Raw::new_zeroed();
    sb.magicnum.set(Raw::MAGIC);
    sb.blocksize.set(shape.block);
    sb.dblocks.set(layout.data.blocks);
    sb.rblocks.set(layout.realtime.blocks);
    sb.rextents.set(layout.realtime.extents);
    sb.uuid = *layout.uuid.as_bytes();
    sb.logstart.set(shape.internal_log().map_or(0, |(agno, start)| shape.fsblock(agno.0, start.0).0));
    sb.rootino.set(progress.rootino.0);
    sb.rbmino.set(progress.rbmino.0);
    sb.rsumino.set(progress.rsumino.0);
    sb.rextsize.set(layout.realtime.extent_blocks);
    sb.agblocks.set(layout.data.agblocks);
    sb.agcount.set(layout.data.agcount);
    sb.rbmblocks.set(layout.realtime.bitmap_blocks);
    sb.logblocks.set(layout.log.blocks);
    sb.sectsize.set(small(layout.sector.bytes()));
    sb.inodesize.set(small(layout.inode.bytes()));
    sb.inopblock.set(1 << shape.inopblog);
    sb.fname = layout.label;
    sb.blocklog = layout.block.log();
    sb.sectlog = layout.sector.log();
    sb.inodelog = layout.inode.log();
    sb.inopblog = shape.inopblog;
    sb.agblklog = shape.agblklog;
    sb.rextslog = highbit(layout.realtime.extents);
    sb.inprogress = u8::from(inprogress);
    sb.imax_pct = layout.data.imax_pct;
    sb.icount.set(progress.icount);
    sb.ifree.set(progress.ifree);
    sb.fdblocks.set(progress.fdblocks);
    sb.frextents.set(progress.frextents);
    sb.qflags.set(layout.quota_flags);
    sb.inoalignmt.set(layout.data.inode_alignment);
    sb.unit.set(layout.data.stripe_unit);
    sb.width.set(layout.data.stripe_width);
    sb.dirblklog = layout.directory_block.log() - layout.block.log();
    set_log(shape, &mut sb);
    set_versions(shape, progress, &mut sb);
    if layout.features.crc {
        set_v5(shape, progress, &mut sb);
    }
    sb
}

/// The sector that holds `sb`.
pub(super) fn sector(shape: &Shape, sb: &Raw) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(shape.layout.sector.bytes()).expect("invariant: 32 KiB at most")];
    bytes[..Raw::SIZE].copy_from_slice(sb.as_bytes());
    if shape.layout.features.crc {
        crc::stamp(&mut bytes, RawSuperblock::CRC_OFFSET);
    }
    bytes
}

fn set_log(shape: &Shape, sb: &mut Raw) {
    let log = &shape.layout.log;
    if shape.layout.sector.bytes() > BASIC_SECTOR || log.sector.bytes() > BASIC_SECTOR {
        sb.logsectlog = log.sector.log();
        sb.logsectsize.set(small(log.sector.bytes()));
    }
    if log.version == 2 {
        // never 0 in a log of version 2
        sb.logsunit.set((log.stripe_unit * shape.block).max(1));
    }
}

fn set_versions(shape: &Shape, progress: &Progress, sb: &mut Raw) {
    let layout = &shape.layout;
    let features = &layout.features;
    let mut second = 0;
    for (on, bit) in [
        (features.lazy_counters, features2::LAZYSBCOUNT),
        (features.projid32, features2::PROJID32),
        (features.crc, features2::CRC),
        (features.attr2, features2::ATTR2),
        (features.ftype && !features.crc, features2::FTYPE),
    ] {
        second |= if on { bit } else { 0 };
    }
    let mut version = versionnum::NLINK | versionnum::EXTFLG | versionnum::DIRV2;
    version |= if features.crc { VERSION_5 } else { VERSION_4 };
    for (on, bit) in [
        (features.inode_alignment, versionnum::ALIGN),
        (layout.data.stripe_unit != 0, versionnum::DALIGN),
        (layout.log.version == 2, versionnum::LOGV2),
        (features.attributes || progress.attributes, versionnum::ATTR),
        (features.ascii_ci, versionnum::BORG),
        (sb.logsectsize.get() != 0, versionnum::SECTOR),
        (layout.quota_flags != 0, versionnum::QUOTA),
        (second != 0, versionnum::MOREBITS),
    ] {
        version |= if on { bit } else { 0 };
    }
    sb.versionnum.set(version);
    sb.features2.set(second);
    sb.bad_features2.set(second);
}

fn set_v5(shape: &Shape, progress: &Progress, sb: &mut Raw) {
    let layout = &shape.layout;
    let features = &layout.features;
    let mut read_only = 0;
    for (on, bit) in [
        (features.finobt, ro_compat::FINOBT),
        (features.rmapbt, ro_compat::RMAPBT),
        (features.reflink, ro_compat::REFLINK),
        (features.inobtcount, ro_compat::INOBTCNT),
    ] {
        read_only |= if on { bit } else { 0 };
    }
    let mut breaking = 0;
    for (on, bit) in [
        (features.ftype, incompat::FTYPE),
        (features.sparse_inodes, incompat::SPINODES),
        (features.bigtime, incompat::BIGTIME),
        (features.nrext64, incompat::NREXT64),
        (features.exchange, incompat::EXCHRANGE),
        (features.parent, incompat::PARENT),
        (features.metadir, incompat::METADIR),
        (features.zoned, incompat::ZONED),
        (features.zone_gaps, incompat::ZONE_GAPS),
    ] {
        breaking |= if on { bit } else { 0 };
    }
    sb.features_ro_compat.set(read_only);
    sb.features_incompat.set(breaking);
    sb.spino_align.set(layout.data.sparse_alignment);
    if features.metadir {
        sb.metadirino.set(progress.metadirino.0);
        sb.rbmino.set(0);
        sb.rsumino.set(0);
        if let Some(groups) = layout.realtime.groups {
            let blocks = u64::from(groups.extents) * u64::from(layout.realtime.extent_blocks);
            sb.rgcount.set(groups.count);
            sb.rgextents.set(groups.extents);
            sb.rgblklog = if blocks > 1 { highbit(blocks - 1) + 1 } else { 0 };
        }
    }
    if features.zoned {
        if let RealtimePlace::Internal { start } = layout.realtime.place {
            sb.rtstart.set(start);
        }
        sb.rtreserved.set(layout.realtime.reserved_blocks);
    }
}

/// Number of the highest bit of `value`; 0 for 0.
pub(super) fn highbit(value: u64) -> u8 {
    u8::try_from(value.checked_ilog2().unwrap_or(0)).expect("invariant: 63 at most")
}

fn small(value: u32) -> u16 {
    u16::try_from(value).expect("invariant: sectors and inodes are 32 KiB at most")
}
