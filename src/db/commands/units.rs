//! Units of addresses and their values in bytes: the tables behind `convert` and `rtconvert` (xfsprogs `db/convert.c`).
//!
//! Numbers come from the command line, and overflow as they do in C.

use crate::error::{Error, Result};
use crate::geometry::Geometry;
use crate::geometry::limits::BASIC_BLOCK_LOG;

/// A unit in which an address, or a part of one, is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Unit {
    AgBlock,
    AgIno,
    AgNumber,
    DaddrOffset,
    BlockOffset,
    Byte,
    Daddr,
    FsBlock,
    Ino,
    InoIndex,
    InoOffset,
    RtBlock,
    RtExtent,
    BitmapBlock,
    BitmapWord,
    SummaryBlock,
    SummaryLog,
    SummaryInfo,
    RgBlock,
    RgNumber,
}

use Unit::*;

/// A unit of one of the commands.
pub(super) struct UnitRow {
    pub(super) unit: Unit,
    /// Its names; the first one is shown.
    pub(super) names: &'static [&'static str],
    /// The units that may be given beside it.
    pub(super) beside: &'static [Unit],
}

/// Units of the data device.
pub(super) const DATA: &[UnitRow] = &[
    UnitRow {
        unit: AgBlock,
        names: &["agblock", "agbno"],
        beside: &[AgNumber, DaddrOffset, BlockOffset, InoIndex, InoOffset],
    },
    UnitRow { unit: AgIno, names: &["agino", "aginode"], beside: &[AgNumber, InoOffset] },
    UnitRow {
        unit: AgNumber,
        names: &["agnumber", "agno"],
        beside: &[AgBlock, AgIno, DaddrOffset, BlockOffset, InoIndex, InoOffset],
    },
    UnitRow { unit: DaddrOffset, names: &["bboff", "daddroff"], beside: &[AgBlock, AgNumber, Daddr, FsBlock] },
    UnitRow { unit: BlockOffset, names: &["blkoff", "fsboff", "agboff"], beside: &[AgBlock, AgNumber, FsBlock] },
    UnitRow { unit: Byte, names: &["byte", "fsbyte"], beside: &[] },
    UnitRow { unit: Daddr, names: &["daddr", "bb"], beside: &[DaddrOffset] },
    UnitRow { unit: FsBlock, names: &["fsblock", "fsb", "fsbno"], beside: &[DaddrOffset, BlockOffset, InoIndex] },
    UnitRow { unit: Ino, names: &["ino", "inode"], beside: &[InoOffset] },
    UnitRow { unit: InoIndex, names: &["inoidx", "offset"], beside: &[AgBlock, AgNumber, FsBlock, InoOffset] },
    UnitRow {
        unit: InoOffset,
        names: &["inooff", "inodeoff"],
        beside: &[AgBlock, AgIno, AgNumber, FsBlock, Ino, InoIndex],
    },
];

/// Units of the realtime section. A summary block needs its log, then its word, before it.
pub(super) const REALTIME: &[UnitRow] = &[
    UnitRow { unit: DaddrOffset, names: &["bboff", "daddroff"], beside: &[Daddr, RtBlock, SummaryLog] },
    UnitRow { unit: BlockOffset, names: &["blkoff", "rtboff", "rgboff"], beside: &[RtBlock, SummaryLog] },
    UnitRow { unit: Byte, names: &["byte", "fsbyte"], beside: &[SummaryLog] },
    UnitRow { unit: Daddr, names: &["daddr", "bb"], beside: &[DaddrOffset, SummaryLog] },
    UnitRow { unit: RtBlock, names: &["rtblock", "rtb", "rtbno"], beside: &[DaddrOffset, BlockOffset, SummaryLog] },
    UnitRow { unit: RtExtent, names: &["rtx", "rtextent"], beside: &[DaddrOffset, BlockOffset, SummaryLog] },
    UnitRow { unit: BitmapBlock, names: &["rbmblock", "rbmb"], beside: &[BitmapWord, SummaryLog] },
    UnitRow { unit: BitmapWord, names: &["rbmword", "rbmw"], beside: &[BitmapBlock, SummaryLog] },
    UnitRow { unit: SummaryBlock, names: &["rsumblock", "rsmb"], beside: &[] },
    UnitRow { unit: SummaryLog, names: &["rsumlog", "rsml"], beside: &[SummaryInfo, SummaryBlock] },
    UnitRow { unit: SummaryInfo, names: &["rsuminfo", "rsmi"], beside: &[SummaryBlock] },
    UnitRow { unit: RgBlock, names: &["rgblock", "rgbno"], beside: &[RgNumber, DaddrOffset, BlockOffset, SummaryLog] },
    UnitRow {
        unit: RgNumber,
        names: &["rgnumber", "rgno"],
        beside: &[RgBlock, DaddrOffset, BlockOffset, SummaryLog, BitmapBlock, BitmapWord],
    },
];

impl Unit {
    /// What of `value` the unit takes: most are narrower than 64 bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)] // as in C
    pub(super) fn narrow(self, value: u64) -> u64 {
        match self {
            AgBlock | AgIno | AgNumber | BitmapWord | RgBlock | RgNumber => u64::from(value as u32),
            DaddrOffset | BlockOffset | InoIndex | InoOffset | SummaryLog | SummaryInfo => {
                i64::from(value as i32) as u64
            }
            _ => value,
        }
    }
}

/// The numbers that conversions need.
pub(super) struct Units<'a> {
    pub(super) geometry: &'a Geometry,
    /// Blocks of the realtime bitmap, as the superblock has them.
    pub(super) bitmap_blocks: u32,
    /// Level of the realtime summary that was given.
    pub(super) summary_log: Option<u64>,
    /// Word of the realtime summary that was given.
    pub(super) summary_info: Option<u64>,
}

impl Units<'_> {
    fn blocks(&self, blocks: u64) -> u64 {
        blocks.wrapping_shl(self.geometry.blocklog)
    }

    fn groups(&self, agno: u64) -> u64 {
        self.blocks(agno.wrapping_mul(u64::from(self.geometry.agblocks)))
    }

    fn inodes(&self, count: u64) -> u64 {
        count.wrapping_shl(self.geometry.inodes.log)
    }

    fn extents(&self, extents: u64) -> u64 {
        self.blocks(extents.wrapping_mul(u64::from(self.geometry.realtime.extent_blocks)))
    }

    /// Realtime extents of a block of the bitmap.
    fn per_bitmap_block(&self) -> u64 {
        u64::from(self.geometry.realtime.words_per_block.max(1)) * 32
    }

    fn words_per_block(&self) -> u64 {
        u64::from(self.geometry.realtime.words_per_block.max(1))
    }

    /// The part of an address that `value` of `unit` is, in bytes.
    ///
    /// # Errors
    /// `Usage` for a summary block without its log and word.
    pub(super) fn bytes(&self, unit: Unit, value: u64) -> Result<u64> {
        let geometry = self.geometry;
        let realtime = &geometry.realtime;
        Ok(match unit {
            AgBlock | RgBlock => self.blocks(value),
            AgIno | InoIndex => self.inodes(value),
            AgNumber => self.groups(value),
            DaddrOffset | BlockOffset | Byte | InoOffset => value,
            Daddr => value.wrapping_shl(BASIC_BLOCK_LOG),
            FsBlock => {
                let (agno, agbno) = split(value, geometry.agblklog);
                self.groups(agno).wrapping_add(self.blocks(agbno))
            }
            Ino => {
                let (agno, agino) = split(value, geometry.inodes.agino_log);
                self.groups(agno).wrapping_add(self.inodes(agino))
            }
            RtBlock => self.blocks(realtime.start.wrapping_add(self.linear(value))),
            RtExtent => self.extents(value),
            BitmapBlock => self.extents(value.wrapping_mul(self.per_bitmap_block())),
            BitmapWord => self.extents(value.wrapping_mul(32)),
            SummaryBlock => {
                let (log, info) = (self.log()?, self.summary_info);
                let info = info.ok_or_else(|| Error::Usage("rsumblock needs rsuminfo before it".to_owned()))?;
                let offset = value.wrapping_mul(self.words_per_block()).wrapping_add(info);
                let level = log.wrapping_mul(u64::from(self.bitmap_blocks));
                let block = if level == 0 { offset } else { offset % level };
                self.bytes(BitmapBlock, block)?
            }
            SummaryLog | SummaryInfo => 0,
            RgNumber => {
                let blocks = realtime.groups.map_or(0, |groups| groups.blocks);
                self.blocks(value.wrapping_mul(u64::from(blocks)))
            }
        })
    }

    fn log(&self) -> Result<u64> {
        self.summary_log.ok_or_else(|| Error::Usage("this needs rsumlog before it".to_owned()))
    }

    /// A realtime block counted from the start of its device: groups may be numbered with gaps between them.
    fn linear(&self, rtb: u64) -> u64 {
        match self.geometry.realtime.groups {
            Some(groups) if !groups.gaps => {
                let (rgno, rgbno) = split(rtb, groups.blklog);
                rgno.wrapping_mul(u64::from(groups.blocks)).wrapping_add(rgbno)
            }
            _ => rtb,
        }
    }

    /// The same back.
    fn rtb(&self, block: u64) -> u64 {
        match self.geometry.realtime.groups {
            Some(groups) if !groups.gaps => {
                let blocks = u64::from(groups.blocks.max(1));
                (block / blocks).wrapping_shl(groups.blklog).wrapping_add(block % blocks)
            }
            _ => block,
        }
    }

    /// What byte `byte` of the device is in `unit`.
    ///
    /// # Errors
    /// `Usage` for a unit in which there is no answer.
    pub(super) fn in_unit(&self, unit: Unit, byte: u64) -> Result<u64> {
        let geometry = self.geometry;
        let block = byte >> geometry.blocklog;
        let agblocks = u64::from(geometry.agblocks.max(1));
        let (agno, agbno) = (block / agblocks, block % agblocks);
        let agino = (byte >> geometry.inodes.log) % (agblocks << geometry.inodes.per_block_log);
        Ok(match unit {
            AgBlock => agbno,
            AgIno => agino,
            AgNumber => agno,
            DaddrOffset => byte % (1 << BASIC_BLOCK_LOG),
            BlockOffset => byte % u64::from(geometry.blocksize),
            Byte => byte,
            Daddr => byte >> BASIC_BLOCK_LOG,
            FsBlock => agno.wrapping_shl(geometry.agblklog) | agbno,
            Ino => agno.wrapping_shl(geometry.inodes.agino_log) | agino,
            InoIndex => (byte >> geometry.inodes.log) % u64::from(geometry.inodes.per_block),
            InoOffset => byte % u64::from(geometry.inodes.size),
            _ => return self.in_realtime_unit(unit, block),
        })
    }

    fn in_realtime_unit(&self, unit: Unit, block: u64) -> Result<u64> {
        let realtime = &self.geometry.realtime;
        let per_extent = u64::from(realtime.extent_blocks.max(1));
        let extent = block / per_extent;
        let within = match realtime.groups {
            Some(groups) => extent % u64::from(groups.extents.max(1)),
            None => extent,
        };
        let rtb = self.rtb(block.wrapping_sub(realtime.start));
        Ok(match unit {
            RtBlock => rtb,
            RtExtent => extent,
            BitmapBlock => within / self.per_bitmap_block(),
            BitmapWord => within / 32 % self.words_per_block(),
            SummaryBlock => self.summary_offset(rtb)? / self.words_per_block(),
            SummaryInfo => self.summary_offset(rtb)? % self.words_per_block(),
            RgBlock => realtime.groups.map_or(0, |groups| block % u64::from(groups.blocks.max(1))),
            RgNumber => match realtime.groups {
                Some(groups) if groups.gaps => block >> groups.blklog,
                Some(groups) => block / u64::from(groups.blocks.max(1)),
                None => 0,
            },
            _ => return Err(Error::Usage("nothing can be converted to this unit".to_owned())),
        })
    }

    /// The word of the summary that counts what begins at realtime block `rtb`.
    #[allow(clippy::cast_possible_truncation)] // as in C
    fn summary_offset(&self, rtb: u64) -> Result<u64> {
        let realtime = &self.geometry.realtime;
        let rgbno = realtime.groups.map_or(rtb, |groups| split(rtb, groups.blklog).1);
        let bitmap_block = rgbno / u64::from(realtime.extent_blocks.max(1)) / self.per_bitmap_block();
        let offset = self.log()?.wrapping_mul(u64::from(self.bitmap_blocks)).wrapping_add(bitmap_block);
        Ok(u64::from(offset as u32))
    }
}

/// What is above `bits` bits of `value`, in 32 bits, and what is in them.
#[allow(clippy::cast_possible_truncation)] // as in C
fn split(value: u64, bits: u32) -> (u64, u64) {
    let low = 1_u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1);
    (u64::from(value.checked_shr(bits).unwrap_or(0) as u32), value & low)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::geometry::samples::{damaged_superblock, superblock};

    fn units(geometry: &Geometry) -> Units<'_> {
        Units { geometry, bitmap_blocks: 3, summary_log: Some(2), summary_info: Some(1) }
    }

    proptest! {
        #[test]
        fn what_is_given_comes_back(name in prop_oneof![Just("default"), Just("realtime"), Just("groups")], at in 0_u64..900) {
            let geometry = Geometry::assume(&superblock(name));
            let units = units(&geometry);
            for unit in [Byte, Daddr, FsBlock, Ino, AgBlock, AgIno, RtBlock, RtExtent, BitmapWord] {
                let bytes = units.bytes(unit, at).expect("a unit with bytes");
                prop_assert_eq!(units.in_unit(unit, bytes).expect("a unit to convert to"), at, "{:?}", unit);
            }
        }

        #[test]
        fn no_number_makes_it_panic(sb in damaged_superblock(), value: u64) {
            let geometry = Geometry::assume(&sb);
            let units = units(&geometry);
            for row in DATA.iter().chain(REALTIME) {
                if let Ok(bytes) = units.bytes(row.unit, row.unit.narrow(value)) {
                    for wanted in DATA.iter().chain(REALTIME) {
                        let _ = units.in_unit(wanted.unit, bytes);
                    }
                }
            }
        }
    }
}
