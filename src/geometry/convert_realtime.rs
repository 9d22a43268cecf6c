//! Conversions between kinds of address of the realtime section (Linux `libxfs/xfs_rtgroup.h`, `xfs_rtbitmap.h`).

use super::limits::BASIC_BLOCK_LOG;
use super::{Daddr, Geometry, RgBlock, RgNumber, RtBlock, RtExtent};

impl Geometry {
    /// The realtime block of block `rgbno` of group `rgno`. Without groups, the section is group 0, as far as its blocks
    /// have 32 bits.
    pub fn rtb(&self, rgno: RgNumber, rgbno: RgBlock) -> Option<RtBlock> {
        let blocks = self.realtime.group_blocks(rgno)?;
        let shift = self.realtime.groups.map_or(0, |groups| groups.blklog);
        let start = if rgno.0 == 0 { 0 } else { u64::from(rgno.0) << shift };
        (u64::from(rgbno.0) < blocks).then_some(RtBlock(start | u64::from(rgbno.0)))
    }

    /// Group of a realtime block, and block in the group, where the section has groups.
    pub fn rtb_parts(&self, rtb: RtBlock) -> Option<(RgNumber, RgBlock)> {
        let groups = self.realtime.groups?;
        let rgno = RgNumber(u32::try_from(rtb.0 >> groups.blklog).ok()?);
        let rgbno = rtb.0 & ((1 << groups.blklog) - 1);
        let rgbno = RgBlock(u32::try_from(rgbno).ok()?);
        (u64::from(rgbno.0) < self.realtime.group_blocks(rgno)?).then_some((rgno, rgbno))
    }

    /// Disk address of a realtime block, on the device that holds the section (the data device for zones that start
    /// there).
    pub fn rtb_daddr(&self, rtb: RtBlock) -> Option<Daddr> {
        let block = match self.realtime.groups {
            None => (rtb.0 < self.realtime.blocks).then_some(rtb.0)?,
            Some(groups) => {
                let (rgno, rgbno) = self.rtb_parts(rtb)?;
                if groups.gaps { rtb.0 } else { u64::from(rgno.0) * u64::from(groups.blocks) + u64::from(rgbno.0) }
            }
        };
        self.blocks_to_basic_blocks(self.realtime.start.checked_add(block)?).map(Daddr)
    }

    /// Realtime block in which a disk address of the section's device lies.
    pub fn daddr_rtb(&self, daddr: Daddr) -> Option<RtBlock> {
        let block = (daddr.0 >> (self.blocklog - BASIC_BLOCK_LOG)).checked_sub(self.realtime.start)?;
        let Some(groups) = self.realtime.groups else {
            return (block < self.realtime.blocks).then_some(RtBlock(block));
        };
        let (rgno, rgbno) = if groups.gaps {
            (block >> groups.blklog, block & ((1 << groups.blklog) - 1))
        } else {
            (block / u64::from(groups.blocks), block % u64::from(groups.blocks))
        };
        self.rtb(RgNumber(u32::try_from(rgno).ok()?), RgBlock(u32::try_from(rgbno).ok()?))
    }

    /// Extent of a realtime block, counted in its group, and block in the extent.
    pub fn rtb_extent(&self, rtb: RtBlock) -> Option<(RtExtent, u32)> {
        let size = u64::from(self.realtime.extent_blocks);
        let block = match self.realtime.groups {
            None => (rtb.0 < self.realtime.blocks).then_some(rtb.0)?,
            Some(_) => u64::from(self.rtb_parts(rtb)?.1.0),
        };
        Some((RtExtent(block / size), u32::try_from(block % size).ok()?))
    }

    /// First realtime block of an extent, counted in group `rgno` (0 without groups).
    pub fn rtx_rtb(&self, rgno: RgNumber, rtx: RtExtent) -> Option<RtBlock> {
        (rtx.0 < self.realtime.group_extents(rgno)?).then_some(())?;
        let block = rtx.0.checked_mul(u64::from(self.realtime.extent_blocks))?;
        match self.realtime.groups {
            None => Some(RtBlock(block)),
            Some(_) => self.rtb(rgno, RgBlock(u32::try_from(block).ok()?)),
        }
    }

    /// Whether files can lie in a realtime block: it exists, and is not in the extent of the realtime superblock.
    pub fn is_usable_rtb(&self, rtb: RtBlock) -> bool {
        match self.realtime.groups {
            None => rtb.0 < self.realtime.blocks,
            Some(_) => self.rtb_parts(rtb).is_some_and(|(rgno, rgbno)| {
                !(self.features.has_rtsb() && rgno.0 == 0 && rgbno.0 < self.realtime.extent_blocks)
            }),
        }
    }

    /// Whether files can lie in the `len` realtime blocks from `rtb`: they exist and are of one group.
    pub fn is_usable_rt_extent(&self, rtb: RtBlock, len: u64) -> bool {
        let Some(last) = len.checked_sub(1).and_then(|more| rtb.0.checked_add(more)).map(RtBlock) else { return false };
        let one_group = self.realtime.groups.is_none_or(|groups| rtb.0 >> groups.blklog == last.0 >> groups.blklog);
        one_group && self.is_usable_rtb(rtb) && self.is_usable_rtb(last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples::{damaged_superblock, superblock};
    use super::*;

    fn any_geometry() -> impl Strategy<Value = Geometry> {
        let samples = proptest::sample::select(vec!["realtime", "groups", "zoned-internal"]).prop_map(superblock);
        let gaps = Just("zoned-internal").prop_map(|name| {
            let mut sb = superblock(name);
            sb.rgextents = 30000.into();
            sb.features_incompat = (sb.features_incompat.get() | 1 << 10).into();
            sb
        });
        prop_oneof![samples, gaps, damaged_superblock()].prop_map(|sb| Geometry::assume(&sb))
    }

    proptest! {
        #[test]
        fn blocks_round_trip(geometry in any_geometry(), rgno in prop_oneof![0_u32..14, any::<u32>()], rgbno: u32) {
            let limit = geometry.realtime.groups.map_or(u32::MAX, |groups| groups.blocks);
            let (rgno, rgbno) = (RgNumber(rgno), RgBlock(rgbno % limit));
            let Some(rtb) = geometry.rtb(rgno, rgbno) else {
                prop_assert!(geometry.realtime.group_blocks(rgno).is_none_or(|blocks| u64::from(rgbno.0) >= blocks));
                return Ok(());
            };
            if geometry.realtime.groups.is_some() {
                prop_assert_eq!(geometry.rtb_parts(rtb), Some((rgno, rgbno)));
            }
            if let Some(daddr) = geometry.rtb_daddr(rtb) {
                prop_assert_eq!(geometry.daddr_rtb(daddr), Some(rtb));
            }
            if let Some((rtx, within)) = geometry.rtb_extent(rtb) {
                let start = geometry.rtx_rtb(rgno, rtx).expect("invariant: the extent exists");
                prop_assert_eq!(start.0 + u64::from(within), rtb.0);
            }
        }

        #[test]
        fn no_address_makes_conversions_panic(geometry in any_geometry(), number: u64, len: u64, rgno: u32) {
            let _ = geometry.rtb_parts(RtBlock(number));
            let _ = geometry.rtb_daddr(RtBlock(number));
            let _ = geometry.daddr_rtb(Daddr(number));
            let _ = geometry.rtb_extent(RtBlock(number));
            let _ = geometry.rtx_rtb(RgNumber(rgno), RtExtent(number));
            let _ = geometry.is_usable_rt_extent(RtBlock(number), len);
        }
    }

    #[test]
    fn files_do_not_lie_in_the_realtime_superblock() {
        let geometry = Geometry::assume(&superblock("groups"));
        assert!(!geometry.is_usable_rtb(RtBlock(2)));
        assert!(geometry.is_usable_rtb(RtBlock(3)));
        assert!(geometry.is_usable_rtb(RtBlock(1 << 18)));
        assert!(!geometry.is_usable_rt_extent(RtBlock(215_039), 2));
        let zones = Geometry::assume(&superblock("zoned-internal"));
        assert!(zones.is_usable_rtb(RtBlock(0)));
        assert_eq!(zones.rtb_daddr(RtBlock(0)), Some(Daddr(131_072 * 8)));
    }

    #[test]
    fn the_last_group_is_shorter() {
        let geometry = Geometry::assume(&superblock("groups"));
        assert_eq!(geometry.realtime.group_extents(RgNumber(3)), Some(71680));
        assert_eq!(geometry.realtime.group_extents(RgNumber(4)), Some(349_525 - 4 * 71680));
        assert_eq!(geometry.realtime.group_extents(RgNumber(5)), None);
    }
}
