//! The independent numbers of a superblock, brought into the ranges that the rest of the geometry computes with.
//!
//! For a superblock that passed its checks nothing changes. For one that did not, each number is the most plausible of
//! the fields that state it, and so bounded that no arithmetic on it overflows.

use super::limits::*;
use super::superblock_check::log2_ceil;
use crate::ondisk::RawSuperblock;

/// The numbers that others are derived from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) blocklog: u32,
    pub(super) sectlog: u32,
    pub(super) inodelog: u32,
    pub(super) dirblklog: u32,
    pub(super) logsectlog: u32,
    pub(super) agblocks: u32,
    pub(super) agblklog: u32,
    pub(super) agcount: u32,
    pub(super) rextsize: u32,
    pub(super) rgextents: u32,
}

impl Bounds {
    pub(super) fn of(sb: &RawSuperblock) -> Self {
        let blocklog = log_of(sb.blocksize.get(), sb.blocklog, MIN_BLOCKLOG..=MAX_BLOCKLOG).unwrap_or(12);
        let inodelog = log_of(u32::from(sb.inodesize.get()), sb.inodelog, MIN_INODELOG..=MAX_INODELOG)
            .unwrap_or(if sb.is_v5() { 9 } else { 8 });
        let most_agblocks = u32::try_from(MAX_AG_BYTES >> blocklog).unwrap_or(u32::MAX);
        let agblocks = sb.agblocks.get().clamp(1, most_agblocks);
        let most_rextsize = u32::try_from(MAX_RTEXT_BYTES >> blocklog).unwrap_or(u32::MAX);
        let rextsize = sb.rextsize.get().clamp(1, most_rextsize);
        let sector = MIN_SECTLOG..=MAX_SECTLOG;
        Bounds {
            blocklog,
            sectlog: log_of(u32::from(sb.sectsize.get()), sb.sectlog, sector.clone()).unwrap_or(MIN_SECTLOG),
            inodelog: inodelog.min(blocklog),
            dirblklog: u32::from(sb.dirblklog).min(MAX_BLOCKLOG - blocklog),
            logsectlog: log_of(u32::from(sb.logsectsize.get()), sb.logsectlog, sector).unwrap_or(MIN_SECTLOG),
            agblocks,
            agblklog: log2_ceil(u64::from(agblocks)),
            agcount: sb.agcount.get().max(1),
            rextsize,
            rgextents: sb.rgextents.get().clamp(1, (MAX_RGBLOCKS / rextsize).max(1)),
        }
    }
}

/// The log2 of a size that is stated twice: as the size itself, or where that is nonsense, as its log2.
fn log_of(size: u32, log: u8, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
    size.is_power_of_two()
        .then(|| size.ilog2())
        .filter(|log| range.contains(log))
        .or_else(|| Some(u32::from(log)).filter(|log| range.contains(log)))
}
