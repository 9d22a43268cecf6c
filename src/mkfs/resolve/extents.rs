//! The size of a realtime extent.

use super::features::Choice;
use super::sectors::Sizes;
use super::stages::{Context, usage};
use crate::error::Result;
use crate::mkfs::suboptions::Key;

const SMALLEST: u32 = 4096;
const LARGEST: u64 = 1 << 30;

/// Blocks of a realtime extent; never 0.
pub(super) fn resolve(context: &Context, sizes: &Sizes, choice: &Choice) -> Result<u32> {
    let features = &choice.features;
    let block = sizes.block.bytes();
    // a zoned section ignores what a file of defaults says
    let asked = if features.zoned { None } else { context.options.size(Key::RealtimeExtsize, sizes.units())? };
    let blocks = match asked {
        Some(bytes) if bytes % u64::from(block) != 0 => {
            return Err(usage(format!(
                "-r extsize={bytes}: not a multiple of the block; allowed: multiples of {block} from {SMALLEST} to {LARGEST}"
            )));
        }
        Some(bytes) => sizes.blocks_in(bytes),
        None if features.reflink && context.devices.realtime.is_some() => 1,
        None if features.zoned => 1,
        None => stripe_width(context, sizes).unwrap_or(u64::from((SMALLEST / block).max(1))),
    };
    if features.reflink && context.options.text(Key::RealtimeSize).is_some() && blocks > 1 {
        return Err(usage("-r extsize: with -m reflink=1 a realtime extent is one block"));
    }
    u32::try_from(blocks).map_err(|_| usage(format!("-r extsize: {blocks} blocks are too many")))
}

/// The stripe width of the realtime device, where it makes a sound extent.
fn stripe_width(context: &Context, sizes: &Sizes) -> Option<u64> {
    let options = context.options;
    let realtime = context.devices.realtime.as_ref()?;
    let is_file = realtime.kind == crate::mkfs::devices::DeviceKind::File;
    if options.switch(Key::RealtimeNoalign) == Some(true) || is_file {
        return None;
    }
    let data_is_file = context.devices.data.kind != crate::mkfs::devices::DeviceKind::Block;
    if options.text(Key::RealtimeSize).is_none() && data_is_file {
        return None;
    }
    let bytes = u64::from(realtime.stripe().1) << 9;
    let sound = bytes % u64::from(sizes.block.bytes()) == 0 && bytes > u64::from(SMALLEST) && bytes <= LARGEST;
    sound.then(|| sizes.blocks_in(bytes))
}
