//! Stripe geometry of the data section and of the log, and the largest untorn write.

use super::features::Choice;
use super::sectors::Sizes;
use super::stages::{Context, usage};
use crate::error::Result;
use crate::mkfs::devices::DeviceFacts;
use crate::mkfs::suboptions::Key;

/// The largest buffer of the log, in bytes, and with it the largest stripe unit.
const LARGEST_LOG_UNIT: i32 = 256 * 1024;
/// What a log gets whose stripe unit would be too large, in bytes.
const FALLBACK_LOG_UNIT: i32 = 32 * 1024;

/// Stripe geometry in blocks; 0 where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stripes {
    pub unit: u32,
    pub width: u32,
    pub log_unit: u32,
}

/// Stripe unit and width in units of 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Basic {
    unit: i32,
    width: i32,
}

/// Takes the stripe geometry from the options, else from the device.
pub(super) fn resolve(context: &mut Context, sizes: &Sizes, choice: &Choice, blocks: u64) -> Result<Stripes> {
    let asked = asked(context, sizes)?;
    let options = context.options;
    let chosen = options.given(Key::DataSunit) || options.given(Key::DataSu);
    let noalign = options.switch(Key::DataNoalign) == Some(true) || chosen && asked == Basic::default();
    let found = if noalign {
        Basic::default()
    } else if asked.unit == 0 {
        reported(context, sizes, blocks)
    } else {
        compare_with_device(context, asked);
        asked
    };
    let whole = |basic: i32| (i64::from(basic) << 9) % i64::from(sizes.block.bytes()) == 0;
    if !whole(found.unit) || !whole(found.width) {
        return Err(usage(format!(
            "-d su, -d sunit: a stripe of {} and {} units of 512 bytes is not whole blocks; allowed: multiples of {} bytes",
            found.unit, found.width, sizes.block
        )));
    }
    // what overflowed on the way is refused here
    check("-d sunit, -d swidth", i64::from(found.unit) << 9, i64::from(found.width) << 9, 0)?;
    let in_blocks = |basic: i32| u32::try_from(sizes.blocks_in_basic(basic)).unwrap_or(0);
    let mut stripes = Stripes { unit: in_blocks(found.unit), width: in_blocks(found.width), log_unit: 0 };
    stripes.log_unit = log_unit(context, sizes, choice, stripes.unit)?;
    Ok(stripes)
}

/// The low half of a number, with its sign: mkfs.xfs keeps these values in ints.
#[allow(clippy::cast_possible_truncation)] // cutting off the upper half is what is asked for
fn int(value: i64) -> i32 {
    value as i32
}

/// The geometry that the options ask for.
fn asked(context: &Context, sizes: &Sizes) -> Result<Basic> {
    let options = context.options;
    let given = |key| options.given(key);
    let number = |key| if given(key) { options.number(key).map_or(0, int) } else { 0 };
    if given(Key::DataSunit) != given(Key::DataSwidth) {
        return Err(usage("-d sunit and -d swidth must be given together"));
    }
    let su = if given(Key::DataSu) {
        options.size(Key::DataSu, sizes.units())?.and_then(|bytes| i64::try_from(bytes).ok()).map_or(0, int)
    } else {
        0
    };
    let sw = number(Key::DataSw);
    if su != 0 || sw != 0 {
        if given(Key::DataSu) != given(Key::DataSw) {
            return Err(usage("-d su and -d sw must be given together"));
        }
        let width = i64::from(su) * i64::from(sw);
        check("-d su, -d sw", i64::from(su), width, sizes.sector.bytes())?;
        return Ok(Basic { unit: su >> 9, width: int(width >> 9) });
    }
    let basic = Basic { unit: number(Key::DataSunit), width: number(Key::DataSwidth) };
    let (unit, width) = (basic.unit.wrapping_shl(9), basic.width.wrapping_shl(9));
    check("-d sunit, -d swidth", i64::from(unit), i64::from(width), sizes.sector.bytes())?;
    Ok(basic)
}

/// The rules for a stripe unit and width, in bytes.
fn check(options: &str, unit: i64, width: i64, sector: u32) -> Result<()> {
    let rule = if width > i64::from(i32::MAX) {
        "the width is too large; allowed: up to 2147483647 bytes".to_string()
    } else if unit > width {
        format!("the unit is larger than the width; allowed: a unit of up to {width} bytes")
    } else if sector != 0 && unit % i64::from(sector) != 0 {
        format!("the unit is not whole sectors; allowed: multiples of {sector} bytes")
    } else if (unit == 0) != (width == 0) {
        "only one of unit and width is 0; allowed: both or none".to_string()
    } else if unit != 0 && width % unit != 0 {
        format!("the width is not a multiple of the unit; allowed: multiples of {unit} bytes")
    } else if unit < 0 || width < 0 {
        "too large; allowed: up to 2147483647 bytes".to_string()
    } else {
        return Ok(());
    };
    Err(usage(format!("{options}: stripe unit {unit}, width {width} bytes: {rule}")))
}

/// The geometry that the device reports, if it makes sense, and the filesystem is large enough to profit.
fn reported(context: &mut Context, sizes: &Sizes, blocks: u64) -> Basic {
    let (unit, width) = context.devices.data.stripe();
    if unit == 0 && width == 0 {
        return Basic::default();
    }
    let (unit_bytes, width_bytes) = (i64::from(unit) << 9, i64::from(width) << 9);
    if check("", unit_bytes, width_bytes, 0).is_err() {
        context.note(format!(
            "the device reports an invalid stripe unit ({unit_bytes}) and width ({width_bytes}), which are ignored"
        ));
        return Basic::default();
    }
    if blocks < sizes.blocks_in(1 << 30) {
        context.note(format!(
            "small data section: the stripe unit ({unit_bytes}) and width ({width_bytes}) of the device are ignored"
        ));
        return Basic::default();
    }
    let block = i64::from(sizes.block.bytes());
    if unit_bytes % block != 0 || width_bytes % block != 0 {
        return Basic::default();
    }
    Basic { unit: int(i64::from(unit)), width: int(i64::from(width)) }
}

fn compare_with_device(context: &mut Context, asked: Basic) {
    let (unit, width) = context.devices.data.stripe();
    for (name, asked, device) in [("unit", asked.unit, unit), ("width", asked.width, width)] {
        if device != 0 && i64::from(device) != i64::from(asked) {
            context.note(format!("-d su, sw, sunit, swidth: the stripe {name} {asked} is not that of the device, {device} (units of 512 bytes)"));
        }
    }
}

/// The stripe unit of the log, in blocks: as asked, else that of the device it lies on.
fn log_unit(context: &mut Context, sizes: &Sizes, choice: &Choice, data_unit: u32) -> Result<u32> {
    let options = context.options;
    let block = int(i64::from(sizes.block.bytes()));
    let broken = |bytes: i32| {
        usage(format!(
            "-l su, -l sunit: {bytes} bytes are not whole blocks; allowed: multiples of {block} up to {LARGEST_LOG_UNIT} bytes"
        ))
    };
    let asked = if options.given(Key::LogSunit) {
        options.number(Key::LogSunit).map_or(0, int)
    } else if options.given(Key::LogSu) {
        let bytes = options.size(Key::LogSu, sizes.units())?.and_then(|bytes| i64::try_from(bytes).ok()).map_or(0, int);
        if bytes % block != 0 {
            return Err(broken(bytes));
        }
        bytes >> 9
    } else {
        0
    };
    if (asked << 9) % block != 0 {
        return Err(broken(asked << 9));
    }
    let external = context.devices.log.as_ref().filter(|_| !options.log_internal).map(|log| log.stripe().0);
    let large_sector = i32::from(sizes.log_sector.bytes() > 512);
    let unit = match (asked, choice.log_version, external) {
        (asked, ..) if asked != 0 => sizes.blocks_in_basic(asked),
        (_, 1, _) => 0,
        (.., None) if data_unit != 0 => int(i64::from(data_unit)),
        (.., Some(unit)) if unit != 0 => sizes.blocks_in_basic(int(i64::from(unit))),
        _ => large_sector,
    };
    let too_large = choice.log_version == 2 && unit.saturating_mul(block) > LARGEST_LOG_UNIT;
    let unit = if too_large {
        if asked != 0 {
            context.note(format!("-l su, -l sunit: {} bytes are too many; using 32 KiB", unit.saturating_mul(block)));
        }
        FALLBACK_LOG_UNIT / block
    } else {
        unit
    };
    Ok(u32::try_from(unit).unwrap_or(0))
}

/// The largest untorn write that was asked for, in blocks; 0 for none.
pub(super) fn atomic_write(context: &Context, sizes: &Sizes) -> Result<u64> {
    let Some(bytes) = context.options.size(Key::InodeMaxAtomicWrite, sizes.units())? else { return Ok(0) };
    if !bytes.is_power_of_two() || bytes % u64::from(sizes.block.bytes()) != 0 {
        return Err(usage(format!("-i max_atomic_write={bytes}: allowed: powers of two from {} to 1g", sizes.block)));
    }
    Ok(sizes.blocks_in(bytes))
}

/// A group must be able to hold the largest untorn write, in whole units where the device writes without tearing.
pub(super) fn check_atomic_write(
    context: &Context,
    sizes: &Sizes,
    blocks: u64,
    agblocks: u64,
    group_blocks: u64,
) -> Result<()> {
    let devices = context.devices;
    let limit = |facts: Option<&DeviceFacts>, group: u64| {
        let in_hardware = facts.is_some_and(|facts| facts.untorn_write(sizes.block).0 > 0);
        if in_hardware && group > 0 { 1 << group.trailing_zeros() } else { group }
    };
    let largest = limit(Some(&devices.data), agblocks).max(limit(devices.realtime.as_ref(), group_blocks));
    if blocks > largest {
        return Err(usage(format!(
            "-i max_atomic_write: larger than a group; allowed: up to {} bytes",
            largest << sizes.block.log()
        )));
    }
    Ok(())
}
