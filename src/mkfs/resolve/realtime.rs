//! The realtime section, and the groups that it is cut into.

use super::data::{DataSpace, asked_blocks, spread, usable};
use super::features::Choice;
use super::sectors::Sizes;
use super::stages::{Context, usage};
use crate::error::Result;
use crate::mkfs::layout::{RealtimeGroups, RealtimeLayout, RealtimePlace};
use crate::mkfs::suboptions::Key;

/// The largest group, in blocks.
const LARGEST_GROUP: u64 = (1 << 31) - 1;
/// The most groups that there can be.
const MOST_GROUPS: u64 = 0xffff_ffff;
/// Groups below this size are not made for concurrency's sake, in bytes.
const CONCURRENT_GROUP: u64 = 4 << 30;
/// Bytes of the header of a bitmap block where there are groups.
const BITMAP_HEADER: u64 = 48;

/// The realtime section as far as it has been decided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Realtime {
    pub place: RealtimePlace,
    /// Bytes of the device, or of the part of it.
    pub device_bytes: u64,
    pub extent_blocks: u32,
    pub blocks: u64,
    pub bitmap_blocks: u64,
    pub group_blocks: u64,
    pub group_count: u64,
    /// Space that is kept back, in bytes.
    pub reserved: u64,
}

impl Realtime {
    fn extents(&self) -> u64 {
        self.blocks / u64::from(self.extent_blocks)
    }

    /// The part of the layout.
    pub fn layout(&self, sizes: &Sizes, context: &Context) -> Result<RealtimeLayout> {
        let narrow = |option: &str, value: u64| {
            u32::try_from(value)
                .map_err(|_| usage(format!("{option}: {value} is too much; allowed: up to {}", u32::MAX)))
        };
        let grouped = self.group_blocks > 0 || self.group_count > 0;
        let groups = grouped.then(|| -> Result<RealtimeGroups> {
            Ok(RealtimeGroups {
                count: narrow("-r rgcount", self.group_count)?,
                extents: narrow("-r rgsize", self.group_blocks / u64::from(self.extent_blocks))?,
            })
        });
        let reserved_blocks = sizes.blocks_in(self.reserved);
        if reserved_blocks > self.blocks {
            let option = Key::RealtimeReserved.suboption().written();
            return Err(usage(format!("{option}: {reserved_blocks} blocks; allowed: up to {} blocks", self.blocks)));
        }
        debug_assert!(context.options.realtime_name.is_some() || self.place != RealtimePlace::Device);
        Ok(RealtimeLayout {
            place: self.place,
            extent_blocks: self.extent_blocks,
            blocks: self.blocks,
            extents: self.extents(),
            bitmap_blocks: narrow("-r size", self.bitmap_blocks)?,
            groups: groups.transpose()?,
            reserved_blocks,
        })
    }
}

/// Finds how much space there is.
pub(super) fn space(context: &mut Context, sizes: &Sizes, data: &DataSpace, extent_blocks: u32) -> Result<Realtime> {
    let asked = asked_blocks(context, sizes, Key::RealtimeSize)?;
    let (place, device_bytes) = match (data.inside, &context.devices.realtime) {
        (Some((start, bytes)), _) => (RealtimePlace::Internal { start: sizes.blocks_in(start) }, bytes),
        (None, Some(device)) => {
            let bytes = context.bytes(device, Key::RealtimeFile);
            (RealtimePlace::Device, usable(bytes, sizes.sector.log()))
        }
        (None, None) => (RealtimePlace::None, 0),
    };
    let reserved = context.options.number(Key::RealtimeReserved).and_then(|bytes| u64::try_from(bytes).ok());
    let mut realtime = Realtime {
        place,
        device_bytes,
        extent_blocks,
        blocks: 0,
        bitmap_blocks: 0,
        group_blocks: 0,
        group_count: 0,
        reserved: reserved.unwrap_or(0),
    };
    if place == RealtimePlace::None {
        return match asked {
            Some(_) => Err(usage("-r size needs a realtime device: -r rtdev")),
            None => Ok(realtime),
        };
    }
    let largest = sizes.blocks_in(device_bytes);
    let zones = context.devices.realtime_zones();
    let all = zones.map_or(largest, |zones| sizes.blocks_in(zones.count.saturating_mul(zones.capacity)));
    realtime.blocks = asked.unwrap_or(all);
    if asked.is_some_and(|asked| asked > largest) || realtime.extents() == 0 {
        return Err(usage(format!(
            "-r size, -r extsize: {} blocks; allowed on this device: at least an extent of {extent_blocks}, up to {largest} blocks",
            realtime.blocks
        )));
    }
    let bits = 8 * u64::from(sizes.block.bytes());
    // kept in 32 bits, as mkfs.xfs does
    realtime.bitmap_blocks = realtime.extents().div_ceil(bits) & u64::from(u32::MAX);
    Ok(realtime)
}

/// Cuts the section into groups, where the metadata directory is there to hold what they need.
pub(super) fn groups(
    context: &Context,
    sizes: &Sizes,
    choice: &Choice,
    data_blocks: u64,
    realtime: &mut Realtime,
) -> Result<()> {
    if !choice.features.metadir {
        return Ok(());
    }
    let extent = u64::from(realtime.extent_blocks);
    let blocks = realtime.blocks;
    let writers = context.concurrency(Key::RealtimeConcurrency);
    (realtime.group_blocks, realtime.group_count) = if let Some(asked) = asked_group(context, sizes, blocks)? {
        asked
    } else if blocks == 0 {
        let terabyte = sizes.blocks_in(1 << 40);
        (terabyte - terabyte % extent, 0)
    } else if blocks < 2 * extent {
        // too small even for one group
        (blocks, 0)
    } else {
        let default = default_group(sizes, blocks, extent)?;
        let group = if writers == 0 { default } else { concurrent_group(sizes, blocks, data_blocks, default, writers) };
        (group, blocks.div_ceil(group))
    };
    check(realtime)?;
    if realtime.extents() > 0 {
        let bits = 8 * (u64::from(sizes.block.bytes()) - BITMAP_HEADER);
        realtime.bitmap_blocks = (realtime.group_blocks / extent).div_ceil(bits);
    }
    Ok(())
}

/// Size and count of the groups, where one of them was asked for.
pub(super) fn asked_group(context: &Context, sizes: &Sizes, blocks: u64) -> Result<Option<(u64, u64)>> {
    if let Some(bytes) = context.options.size(Key::RealtimeRgsize, sizes.units())? {
        if bytes == 0 || bytes % u64::from(sizes.block.bytes()) != 0 {
            return Err(usage(format!(
                "-r rgsize={bytes}: not whole blocks; allowed: multiples of {} up to {} blocks",
                sizes.block, LARGEST_GROUP
            )));
        }
        let group = sizes.blocks_in(bytes);
        return Ok(Some((group, blocks.div_ceil(group))));
    }
    let count = context.options.number(Key::RealtimeRgcount).and_then(|count| u64::try_from(count).ok());
    Ok(count.map(|count| (blocks.div_ceil(count), count)))
}

/// The rules for groups.
pub(super) fn check(realtime: &Realtime) -> Result<()> {
    let extent = u64::from(realtime.extent_blocks);
    let group = realtime.group_blocks;
    if group > LARGEST_GROUP || group % extent != 0 || group <= extent {
        return Err(usage(format!(
            "-r rgsize, -r rgcount: groups of {group} blocks; allowed: multiples of {extent} blocks (-r extsize) from {} to {LARGEST_GROUP}",
            2 * extent
        )));
    }
    if realtime.group_count > MOST_GROUPS {
        return Err(usage(format!("-r rgcount: {} groups; allowed: up to {MOST_GROUPS}", realtime.group_count)));
    }
    Ok(())
}

/// The size of a group: a quarter of a small section, the largest there is in a large one, before extents count.
fn plain_group(sizes: &Sizes, blocks: u64) -> u64 {
    if blocks >= sizes.blocks_in(4 << 40) {
        return LARGEST_GROUP;
    }
    let shift = if blocks >= sizes.blocks_in(128 << 20) { 2 } else { 0 };
    let group = blocks >> shift;
    let uneven = blocks & ((1 << shift) - 1) != 0;
    if uneven && group < LARGEST_GROUP { group + 1 } else { group }
}

/// The size of a group, chosen so that the last one is not too small.
fn default_group(sizes: &Sizes, blocks: u64, extent: u64) -> Result<u64> {
    let plain = plain_group(sizes, blocks);
    // the largest that is still fine, and the smallest
    let (last, first) = (LARGEST_GROUP - extent, 2 * extent);
    let fits = |group: &u64| blocks % group >= first;
    let up = |from: u64, step: u64| (from..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    let down = move |from: u64, step: u64| {
        std::iter::successors(Some(from), move |group| group.checked_sub(step)).take_while(move |group| *group > first)
    };
    let (start, found) = if extent.is_power_of_two() {
        // a power of two below the plain size, though not the plain size itself
        let start = LARGEST_GROUP.min(1 << (plain.max(2) - 1).ilog2());
        let larger = std::iter::successors(Some(start), |group| Some(group << 2)).take_while(|group| *group <= last);
        let smaller = std::iter::successors(Some(start), |group| Some(group >> 2)).take_while(|group| *group > first);
        (start, larger.chain(smaller).find(fits))
    } else {
        (LARGEST_GROUP.min(plain - plain % extent), None)
    };
    found.or_else(|| up(start, extent).find(fits)).or_else(|| down(start, extent).find(fits)).ok_or_else(|| {
        usage(format!(
            "-r extsize: no group size between {first} and {last} blocks fits a section of {blocks} blocks with extents of {extent}"
        ))
    })
}

/// The size of a group for `writers` at a time. That the data section has a say in it is so in mkfs.xfs.
fn concurrent_group(sizes: &Sizes, blocks: u64, data_blocks: u64, default: u64, writers: u64) -> u64 {
    let default_count = blocks.div_ceil(default);
    if writers < default_count {
        return default;
    }
    spread(blocks, data_blocks, writers, default, default_count, sizes.blocks_in(CONCURRENT_GROUP), LARGEST_GROUP)
}
