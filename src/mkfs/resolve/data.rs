//! The data section: its size, and the allocation groups that it is cut into.

use super::sectors::Sizes;
use super::stages::{Context, usage};
use super::stripe::Stripes;
use crate::error::Result;
use crate::geometry::usual_imax_pct;
use crate::mkfs::devices::DeviceKind;
use crate::mkfs::suboptions::Key;

/// The smallest allocation group, in bytes.
const SMALLEST_GROUP: u64 = 16 << 20;
/// The size that no allocation group reaches, in bytes.
const GROUP_LIMIT: u64 = 1 << 40;
/// The most groups that there can be.
const MOST_GROUPS: u64 = 0xffff_ffff;
/// Groups below this size are not made for concurrency's sake.
const CONCURRENT_GROUP: u64 = 4 << 30;

/// Space for the data section, and for a realtime section behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataSpace {
    /// Bytes of the device that are the data section's.
    pub bytes: u64,
    /// Blocks of the data section, before groups are chosen.
    pub blocks: u64,
    /// Where a realtime section inside the device begins, and its bytes.
    pub inside: Option<(u64, u64)>,
}

/// The allocation groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups {
    pub blocks: u64,
    pub agblocks: u64,
    pub agcount: u64,
}

/// A size from the options, in blocks; what is no whole block is cut off.
pub(super) fn asked_blocks(context: &mut Context, sizes: &Sizes, key: Key) -> Result<Option<u64>> {
    let Some(bytes) = context.options.size(key, sizes.units())? else { return Ok(None) };
    let option = key.suboption().written();
    if bytes % 512 != 0 {
        return Err(usage(format!("{option}={bytes}: not a multiple of 512; allowed: {}", key.suboption().allowed())));
    }
    let blocks = sizes.blocks_in(bytes);
    if bytes % u64::from(sizes.block.bytes()) != 0 {
        context.note(format!(
            "{option}={bytes}: not a multiple of {}, cut to {}",
            sizes.block,
            blocks << sizes.block.log()
        ));
    }
    Ok(Some(blocks))
}

/// `bytes` less what lies behind the last whole sector, or the last whole KiB, which is as precise as Linux is.
pub(super) fn usable(bytes: u64, sector_log: u8) -> u64 {
    let log = sector_log.max(10);
    bytes >> log << log
}

/// Finds how much space there is, and divides it between the data and a zoned realtime section.
pub(super) fn space(context: &mut Context, sizes: &Sizes, zoned: bool) -> Result<DataSpace> {
    let asked = asked_blocks(context, sizes, Key::DataSize)?;
    let devices = context.devices;
    let bytes = context.bytes(&devices.data, Key::DataFile) >> 9 << 9;
    let start = realtime_start(context, sizes, zoned, bytes, asked)?;
    let (bytes, inside) = match start {
        None => (usable(bytes, sizes.sector.log()), None),
        Some(start) if start >= bytes => {
            return Err(usage(format!(
                "-r zoned=1: the device has {bytes} bytes, and the realtime section would begin at {start}; allowed: a device that is larger, or -r start below its size"
            )));
        }
        Some(start) => {
            let rest = usable(bytes - start, sizes.sector.log());
            (usable(start, sizes.sector.log()), Some((start, rest)))
        }
    };
    if bytes == 0 && devices.data.kind == DeviceKind::Block {
        return Err(usage(format!("{}: the device has no size", devices.data.name)));
    }
    let largest = sizes.blocks_in(bytes);
    let blocks = match asked {
        Some(blocks) if bytes > 0 && blocks > largest => {
            return Err(usage(format!("-d size: {blocks} blocks do not fit; allowed: up to {largest} blocks")));
        }
        Some(blocks) => blocks,
        None => largest,
    };
    let smallest = sizes.blocks_in(SMALLEST_GROUP);
    if blocks < smallest {
        return Err(usage(format!(
            "-d size: {blocks} blocks are too few; allowed: {smallest} or more ({SMALLEST_GROUP} bytes)"
        )));
    }
    Ok(DataSpace { bytes, blocks, inside })
}

/// Where a zoned section inside the data device begins, in bytes.
fn realtime_start(
    context: &Context,
    sizes: &Sizes,
    zoned: bool,
    bytes: u64,
    asked: Option<u64>,
) -> Result<Option<u64>> {
    if !zoned {
        return Ok(None);
    }
    if let Some(start) = context.devices.realtime_zones().and_then(|zones| zones.start) {
        return Ok(Some(start));
    }
    if let Some(start) = context.options.size(Key::RealtimeStart, sizes.units())?.filter(|start| *start >= 512) {
        return Ok(Some(start >> 9 << 9));
    }
    if context.devices.realtime.is_some() {
        return Ok(None);
    }
    if let Some(blocks) = asked {
        return Ok(Some(blocks << sizes.block.log()));
    }
    // a hundredth of the device for metadata, but at least what a filesystem needs, to the next power of two
    let target = (bytes >> 9).div_ceil(100).max((300 << 20) >> 9);
    Ok(target.checked_next_power_of_two().map(|sectors| sectors << 9))
}

/// Cuts the data section into allocation groups.
pub(super) fn groups(
    context: &mut Context,
    sizes: &Sizes,
    space: &DataSpace,
    stripes: &mut Stripes,
    atomic_write: u64,
) -> Result<Groups> {
    let mut groups = initial(context, sizes, space.blocks, stripes.unit)?;
    align(context, sizes, stripes, atomic_write, &mut groups);
    // a last group that is too small is left out
    let smallest = sizes.blocks_in(SMALLEST_GROUP);
    let last = groups.blocks % groups.agblocks;
    if last != 0 && last < smallest && groups.agcount > 1 {
        groups.agcount -= 1;
        groups.blocks = groups.agcount.saturating_mul(groups.agblocks);
    }
    check(sizes, space, &groups)?;
    Ok(groups)
}

fn initial(context: &Context, sizes: &Sizes, blocks: u64, unit: u32) -> Result<Groups> {
    let options = context.options;
    let writers = context.concurrency(Key::DataConcurrency);
    let of_size = |agblocks: u64| Groups { blocks, agblocks, agcount: blocks.div_ceil(agblocks) };
    if writers > 0 {
        return Ok(of_size(concurrent_group(sizes, blocks, unit, writers)));
    }
    let bytes = options.size(Key::DataAgsize, sizes.units())?;
    if let Some(bytes) = bytes {
        if bytes % u64::from(sizes.block.bytes()) != 0 {
            return Err(usage(format!(
                "-d agsize={bytes}: not a multiple of the block; allowed: multiples of {} from 16m to 1t",
                sizes.block
            )));
        }
        return Ok(of_size(sizes.blocks_in(bytes)));
    }
    if let Some(count) = options.number(Key::DataAgcount).and_then(|count| u64::try_from(count).ok()) {
        return Ok(Groups { blocks, agblocks: blocks.div_ceil(count), agcount: count });
    }
    Ok(of_size(default_group(sizes, blocks, unit)))
}

/// The largest group, in blocks.
fn largest_group(sizes: &Sizes) -> u64 {
    sizes.blocks_in(GROUP_LIMIT - 1)
}

/// The group for a section of `blocks`: few groups on one disk, more on a stripe of disks.
fn default_group(sizes: &Sizes, blocks: u64, unit: u32) -> u64 {
    let mebibytes = |count: u64| sizes.blocks_in(count << 20);
    let largest = largest_group(sizes);
    let on_one_disk = unit == 0;
    if blocks >= mebibytes(32 << 20) || on_one_disk && blocks >= mebibytes(4 << 20) {
        return largest;
    }
    let shift = if on_one_disk && blocks >= mebibytes(128) {
        2
    } else {
        let smaller = [blocks <= mebibytes(512 << 10), blocks <= mebibytes(8 << 10)]
            .into_iter()
            .chain([128, 64, 32].map(|size| blocks < mebibytes(size)));
        5 - smaller.filter(|smaller| *smaller).count()
    };
    let group = blocks >> shift;
    let uneven = blocks & ((1 << shift) - 1) != 0;
    if uneven && group < largest { group + 1 } else { group }
}

/// The group for `writers` at a time: one for each, as long as the groups do not become too small.
fn concurrent_group(sizes: &Sizes, blocks: u64, unit: u32, writers: u64) -> u64 {
    let default = default_group(sizes, blocks, unit);
    let default_count = blocks.div_ceil(default);
    if writers < default_count {
        return default;
    }
    spread(blocks, blocks, writers, default, default_count, sizes.blocks_in(CONCURRENT_GROUP), largest_group(sizes))
}

/// The size of groups of `blocks` for `writers`, given the size and the count that there would be without them.
///
/// Groups that would be larger than `largest` are made smaller with `for_more` divided by a multiple of `writers`.
pub(super) fn spread(
    blocks: u64,
    for_more: u64,
    writers: u64,
    default: u64,
    default_count: u64,
    smallest: u64,
    largest: u64,
) -> u64 {
    let mut count = writers;
    let mut group = blocks / count;
    if group < smallest {
        // the count goes down until the groups are large enough, or are no more than there would be anyway
        count = (blocks / smallest.max(1)).min(writers - 1);
        return if count <= default_count { default } else { blocks / count };
    }
    while group > largest && group > default {
        count += writers;
        group = for_more / count;
    }
    group
}

/// Rounds the groups to whole stripe units, and sees to it that they do not all begin on the same disk.
fn align(context: &mut Context, sizes: &Sizes, stripes: &Stripes, atomic_write: u64, groups: &mut Groups) {
    let (_, untorn) = context.devices.data.untorn_write(sizes.block);
    let mut unit = u64::from(stripes.unit).max(sizes.blocks_in(untorn));
    if atomic_write < groups.agblocks {
        unit = unit.max(atomic_write);
    }
    if unit == 0 {
        return;
    }
    let chosen_count = context.options.given(Key::DataAgcount);
    let chosen_size = context.options.given(Key::DataAgsize);
    if groups.agblocks % unit != 0 {
        let up = groups.agblocks.next_multiple_of(unit);
        groups.agblocks = if up > largest_group(sizes) { groups.agblocks / unit * unit } else { up };
        if !chosen_count {
            groups.agcount = groups.blocks.div_ceil(groups.agblocks);
        }
        if chosen_size {
            context.note(format!("-d agsize rounded to {} blocks, multiples of {unit}", groups.agblocks));
        }
    }
    let width = u64::from(stripes.width);
    if width == 0 || width == u64::from(stripes.unit) || groups.agblocks % width != 0 || groups.agcount <= 1 {
        return;
    }
    if chosen_count || chosen_size {
        context.note(format!(
            "Warning: AG size is a multiple of stripe width.  This can cause performance problems by aligning all AGs on the same disk.  To avoid this, run mkfs with an AG size that is one stripe unit smaller or larger, for example {}.",
            groups.agblocks - unit
        ));
        return;
    }
    let smaller = groups.agblocks - unit;
    groups.agblocks = if smaller >= sizes.blocks_in(SMALLEST_GROUP) {
        smaller
    } else if groups.blocks < groups.agblocks {
        groups.agblocks
    } else {
        groups.agblocks + unit
    };
    groups.agcount = groups.blocks.div_ceil(groups.agblocks);
}

fn check(sizes: &Sizes, space: &DataSpace, groups: &Groups) -> Result<()> {
    let (smallest, largest) = (sizes.blocks_in(SMALLEST_GROUP), largest_group(sizes));
    let largest_here = largest.min(space.blocks);
    if !(smallest..=largest_here).contains(&groups.agblocks) {
        return Err(usage(format!(
            "-d agsize, -d agcount: allocation groups of {} blocks; allowed: {smallest} to {largest_here} blocks, so {} to {} groups",
            groups.agblocks,
            space.blocks.div_ceil(largest),
            (space.blocks / smallest).max(1)
        )));
    }
    if groups.agcount > MOST_GROUPS {
        return Err(usage(format!("-d agcount: {} groups; allowed: up to {MOST_GROUPS}", groups.agcount)));
    }
    let before_last = groups.agcount.saturating_sub(1).saturating_mul(groups.agblocks);
    let last = groups.blocks.saturating_sub(before_last);
    if groups.blocks > space.blocks || last < smallest || last > groups.agblocks {
        return Err(usage(format!(
            "-d agcount={}: groups of {} blocks, which the stripe unit asks for, leave no room for as many; allowed: up to {}",
            groups.agcount,
            groups.agblocks,
            space.blocks / groups.agblocks.max(1)
        )));
    }
    Ok(())
}

/// The most space that inodes may take: less of a large filesystem.
pub(super) fn imax_pct(context: &Context, sizes: &Sizes, blocks: u64) -> u8 {
    if let Some(percent) = context.options.number(Key::InodeMaxpct).and_then(|percent| u8::try_from(percent).ok()) {
        return percent;
    }
    usual_imax_pct(blocks, sizes.block.bytes())
}
