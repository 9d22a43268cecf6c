//! The zones of a zoned realtime section; each is a realtime group.

use super::realtime::{Realtime, asked_group, check};
use super::sectors::Sizes;
use super::stages::{Context, usage};
use crate::error::Result;
use crate::mkfs::suboptions::Key;

/// Zones that are kept back for garbage collection.
const RESERVED_ZONES: u64 = 4;
/// The fewest zones that a section can have.
const FEWEST_ZONES: u64 = RESERVED_ZONES + 1;
/// Bytes of a zone, as disks have it that are written in zones.
const ZONE: u64 = 256 << 20;

/// Cuts the section into zones.
///
/// Where a size was asked for, zones are added that garbage collection needs, so that as much can be written as was
/// asked for. What the last zone has too much is kept back.
pub(super) fn resolve(context: &mut Context, sizes: &Sizes, realtime: &mut Realtime) -> Result<()> {
    if realtime.blocks == 0 {
        return Err(usage("-r zoned=1 needs a realtime section that is not empty"));
    }
    let sized = context.options.text(Key::RealtimeSize).is_some();
    let hardware = context.devices.realtime_zones();
    let (zone, mut count) = match hardware {
        Some(zones) => hardware_zones(context, sizes, realtime.blocks, zones.capacity)?,
        None => asked_group(context, sizes, realtime.blocks)?.unwrap_or_else(|| {
            let zone = sizes.blocks_in(ZONE);
            (zone, realtime.blocks.div_ceil(zone))
        }),
    };
    if sized {
        count += RESERVED_ZONES;
    }
    if zone == 0 {
        return Err(usage("-r rgcount: more zones than blocks"));
    }
    let most = hardware.map_or(sizes.blocks_in(realtime.device_bytes) / zone, |zones| zones.count);
    if count > most {
        if sized {
            context.note(format!(
                "-r size: only {most} of the {count} zones that garbage collection needs too; less can be written than was asked for"
            ));
        }
        count = most;
    }
    let blocks = count * zone;
    // mkfs.xfs takes the difference without a sign, so that a section whose end was cut off has some kept back as well
    let slack = blocks.wrapping_sub(realtime.blocks) % zone;
    realtime.blocks = blocks;
    realtime.group_blocks = zone;
    realtime.group_count = count;
    realtime.reserved = realtime.reserved.saturating_add(slack << sizes.block.log());
    realtime.bitmap_blocks = 0;
    if count < FEWEST_ZONES {
        return Err(usage(format!("-r rgcount: {count} zones; allowed: {FEWEST_ZONES} or more")));
    }
    check(realtime)
}

/// Size and count of the zones that the hardware has; fewer may be asked for.
fn hardware_zones(context: &Context, sizes: &Sizes, blocks: u64, capacity: u64) -> Result<(u64, u64)> {
    if context.options.text(Key::RealtimeRgsize).is_some() {
        return Err(usage("-r rgsize is not possible on a device with zones of its own"));
    }
    if capacity == 0 || capacity % u64::from(sizes.block.bytes()) != 0 {
        return Err(usage(format!("-b size: zones of {capacity} bytes are not whole blocks of {} bytes", sizes.block)));
    }
    let zone = sizes.blocks_in(capacity);
    let count = blocks.div_ceil(zone);
    let asked = context.options.number(Key::RealtimeRgcount).and_then(|count| u64::try_from(count).ok());
    match asked {
        Some(asked) if asked > count => {
            Err(usage(format!("-r rgcount={asked}: allowed on this device: up to {count}")))
        }
        Some(asked) => Ok((zone, asked)),
        None => Ok((zone, count)),
    }
}
