//! The realtime section: legacy, in groups, in zones (Linux `libxfs/xfs_sb.c`, `xfs_rtbitmap.c`, `xfs_rtgroup.c`).

use super::bounds::Bounds;
use super::features::Features;
use super::superblock_check::log2_ceil;
use super::{Ino, RgNumber};
use crate::ondisk::{OnDisk, RawRtBlockHeader, RawSuperblock};

/// The realtime section. Blocks are filesystem blocks, extents realtime extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealtimeGeometry {
    /// Blocks of the section; 0 when there is none.
    pub blocks: u64,
    /// Whole extents of the section.
    pub extents: u64,
    /// Blocks of an extent.
    pub extent_blocks: u32,
    /// Groups, where the section is divided.
    pub groups: Option<RealtimeGroups>,
    /// First block of the section on the data device; 0 when it has a device of its own.
    pub start: u64,
    /// Blocks held back for garbage collection (zoned).
    pub reserved: u64,
    /// Blocks of one bitmap file: the only one, or each group's; 0 with zones.
    pub bitmap_blocks: u64,
    /// Blocks of one summary file.
    pub summary_blocks: u64,
    /// Levels of the summary: one for each log2 of a length.
    pub summary_levels: u32,
    /// Bytes before the words of a bitmap or summary block.
    pub header_size: u32,
    /// Words of a bitmap or summary block.
    pub words_per_block: u32,
    /// Inode of the bitmap, without groups.
    pub bitmap_ino: Option<Ino>,
    /// Inode of the summary, without groups.
    pub summary_ino: Option<Ino>,
}

/// How the section is divided into groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealtimeGroups {
    /// Number of groups.
    pub count: u32,
    /// Extents of a group; the last one may have fewer.
    pub extents: u32,
    /// Blocks of the same.
    pub blocks: u32,
    /// Bits of a realtime block number that lie within its group.
    pub blklog: u32,
    /// The device has room for 2^blklog blocks in each group, of which those beyond [`RealtimeGroups::blocks`] cannot
    /// be used.
    pub gaps: bool,
}

impl RealtimeGeometry {
    #[allow(clippy::cast_possible_truncation)] // sizes of structures
    pub(super) fn of(sb: &RawSuperblock, bounds: &Bounds, features: &Features) -> Self {
        let grouped = features.has_rtgroups();
        let header_size = if grouped { RawRtBlockHeader::SIZE as u32 } else { 0 };
        let words_per_block = ((1 << bounds.blocklog) - header_size) / 4;
        let rgblocks = bounds.rgextents.saturating_mul(bounds.rextsize);
        let groups = grouped.then(|| RealtimeGroups {
            count: sb.rgcount.get(),
            extents: bounds.rgextents,
            blocks: rgblocks,
            blklog: log2_ceil(u64::from(rgblocks)),
            gaps: features.has_zone_gaps(),
        });
        let extents = sb.rextents.get();
        let bits = if grouped { u64::from(bounds.rgextents) } else { extents };
        let (bitmap_blocks, summary_blocks, summary_levels) = bitmap_and_summary(bits, words_per_block, features);
        let file = |ino: u64| (!grouped).then_some(Ino(ino));
        RealtimeGeometry {
            blocks: sb.rblocks.get(),
            extents,
            extent_blocks: bounds.rextsize,
            groups,
            start: if features.has_zoned() { sb.rtstart.get() } else { 0 },
            reserved: if features.has_zoned() { sb.rtreserved.get() } else { 0 },
            bitmap_blocks,
            summary_blocks,
            summary_levels,
            header_size,
            words_per_block,
            bitmap_ino: file(sb.rbmino.get()),
            summary_ino: file(sb.rsumino.get()),
        }
    }

    /// Extents of group `rgno`; of the whole section as group 0 when it is not divided. `None` for other numbers.
    pub fn group_extents(&self, rgno: RgNumber) -> Option<u64> {
        let Some(groups) = self.groups else { return (rgno.0 == 0).then_some(self.extents) };
        let before = u64::from(rgno.0) * u64::from(groups.extents);
        (rgno.0 < groups.count).then(|| self.extents.saturating_sub(before).min(u64::from(groups.extents)))
    }

    /// Blocks of group `rgno` that lie in whole extents.
    pub fn group_blocks(&self, rgno: RgNumber) -> Option<u64> {
        self.group_extents(rgno)?.checked_mul(u64::from(self.extent_blocks))
    }
}

fn bitmap_and_summary(bits: u64, words_per_block: u32, features: &Features) -> (u64, u64, u32) {
    if features.has_zoned() {
        return (0, 0, 0);
    }
    let words_per_block = u64::from(words_per_block);
    let bitmap_blocks = bits.div_ceil(words_per_block * 32);
    let levels = bits.checked_ilog2().unwrap_or(0) + 1;
    let summary_words = bitmap_blocks.saturating_mul(u64::from(levels));
    (bitmap_blocks, summary_words.div_ceil(words_per_block), levels)
}
