//! The log: how large, where, and aligned to what.

use super::data::{Groups, asked_blocks, usable};
use super::features::Choice;
use super::realtime::Realtime;
use super::sectors::Sizes;
use super::stages::{Context, alignments, usage};
use super::stripe::Stripes;
use crate::error::Result;
use crate::geometry::log_minimum::{atomic_write_log_blocks, largest_reservation, minimum_log_blocks};
use crate::geometry::reservation::ReservationInputs;
use crate::geometry::{AgBlock, AgNumber};
use crate::mkfs::layout::{LogLayout, LogPlace};
use crate::mkfs::suboptions::Key;

/// The fewest blocks of any log.
const FEWEST_BLOCKS: u64 = 512;
/// The smallest log of a filesystem of 1 GiB or more whose size was not asked for, in bytes.
const SMALLEST_BYTES: u64 = 10 << 20;
/// The log that a filesystem gets even when less would do, in bytes.
const REALISTIC_BYTES: u64 = 64 << 20;
/// The most blocks of a log.
const MOST_BLOCKS: u64 = 1 << 20;
/// The largest log, in bytes: 2 GiB less 10 MiB.
const LARGEST_BYTES: u64 = (1 << 31) - (10 << 20);
/// Below this size, in bytes, a filesystem gets the smallest log that works.
const TINY: u64 = 300 << 20;
/// Blocks that the free space btrees must be able to refill the free list with.
const FREELIST_RESERVE: u64 = 4;

/// Space for the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogSpace {
    /// Blocks that were asked for, or that an external device has.
    asked: Option<u64>,
    /// Blocks of an external device.
    device: Option<u64>,
}

/// What the log depends on.
pub(super) struct LogInputs<'a> {
    pub sizes: &'a Sizes,
    pub choice: &'a Choice,
    pub groups: Groups,
    pub stripes: Stripes,
    pub realtime: &'a Realtime,
    pub atomic_write: u64,
}

/// Finds how much space was asked for or is there.
pub(super) fn space(context: &mut Context, sizes: &Sizes, data_blocks: u64) -> Result<LogSpace> {
    let asked = asked_blocks(context, sizes, Key::LogSize)?;
    let external = context.devices.log.as_ref().filter(|_| !context.options.log_internal);
    let Some(external) = external else {
        return match asked {
            Some(blocks) if blocks >= data_blocks => Err(usage(format!(
                "-l size: {blocks} blocks; allowed in the data section: fewer than {data_blocks} blocks"
            ))),
            _ => Ok(LogSpace { asked, device: None }),
        };
    };
    let bytes = usable(context.bytes(external, Key::LogFile) >> 9 << 9, sizes.log_sector.log());
    let device = sizes.blocks_in(bytes);
    if device == 0 || asked.is_some_and(|asked| asked > device) {
        return Err(usage(format!("-l size: allowed on {}: up to {device} blocks", external.name)));
    }
    Ok(LogSpace { asked: asked.filter(|asked| *asked > 0).or(Some(device)), device: Some(device) })
}

/// Sizes and places the log.
pub(super) fn resolve(context: &Context, inputs: &LogInputs, space: LogSpace) -> Result<LogLayout> {
    let limits = Limits::new(context, inputs)?;
    let (place, blocks) = match space.device {
        Some(device) => (LogPlace::External, external(context, inputs, space, device, limits.smallest)?),
        None => internal(context, inputs, space, &limits)?,
    };
    Ok(LogLayout {
        place,
        blocks: u32::try_from(blocks).map_err(|_| usage("-l size: too many blocks"))?,
        version: inputs.choice.log_version,
        sector: inputs.sizes.log_sector,
        stripe_unit: inputs.stripes.log_unit,
    })
}

/// What transactions ask of the log.
struct Limits {
    /// The smallest log, in blocks.
    smallest: u64,
    /// Bytes of the largest transaction with all its steps.
    transaction: u64,
}

impl Limits {
    fn new(context: &Context, inputs: &LogInputs) -> Result<Self> {
        let needs = reservation_inputs(inputs);
        let mut smallest = minimum_log_blocks(&needs);
        if inputs.atomic_write > 0 {
            let blocks = u32::try_from(inputs.atomic_write).ok();
            let untorn = blocks.and_then(|blocks| atomic_write_log_blocks(&needs, blocks));
            let untorn =
                untorn.ok_or_else(|| usage("-i max_atomic_write: no log is large enough for it; allowed: less"))?;
            smallest = smallest.max(untorn);
        }
        smallest = smallest.max(FEWEST_BLOCKS);
        let sizes = inputs.sizes;
        let large = inputs.groups.blocks >= sizes.blocks_in(1 << 30);
        if context.options.text(Key::LogSize).is_none() && large {
            smallest = smallest.max(sizes.blocks_in(SMALLEST_BYTES));
        }
        let largest = largest_reservation(&needs);
        Ok(Limits { smallest, transaction: u64::from(largest.logres) * u64::from(largest.logcount) })
    }
}

fn reservation_inputs(inputs: &LogInputs) -> ReservationInputs {
    let LogInputs { sizes, choice, groups, stripes, realtime, .. } = *inputs;
    let features = &choice.features;
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let agblocks = narrow(groups.agblocks);
    let logsunit = match (choice.log_version, stripes.log_unit) {
        (1, _) => 0,
        (_, 0) => 1,
        (_, unit) => unit << sizes.block.log(),
    };
    ReservationInputs {
        blocklog: sizes.block.log(),
        sectsize: sizes.sector.bytes(),
        inodesize: sizes.inode.bytes(),
        dirblklog: sizes.directory_block.log() - sizes.block.log(),
        agblocks,
        agblklog: agblklog(groups),
        dblocks: groups.blocks,
        inoalignmt: alignments(sizes, choice).0,
        crc: features.crc,
        finobt: features.finobt,
        rmapbt: features.rmapbt,
        reflink: features.reflink,
        nrext64: features.nrext64,
        parent: features.parent,
        metadir: features.metadir,
        zoned: features.zoned,
        rblocks: realtime.blocks,
        rextsize: realtime.extent_blocks,
        rgextents: narrow(realtime.group_blocks / u64::from(realtime.extent_blocks)),
        rsumblocks: 0,
        logv2: choice.log_version == 2,
        logsunit,
    }
}

/// Logarithm of the blocks of a group, rounded up: where the group number begins in a block number.
fn agblklog(groups: Groups) -> u8 {
    let log = groups.agblocks.checked_next_power_of_two().map_or(63, u64::ilog2);
    u8::try_from(log).unwrap_or(63)
}

/// An external log takes the whole device, or what was asked for.
fn external(context: &Context, inputs: &LogInputs, space: LogSpace, device: u64, smallest: u64) -> Result<u64> {
    let blocks = space.asked.unwrap_or(device);
    if blocks < smallest {
        return Err(usage(format!("-l size: {blocks} blocks; allowed: {smallest} or more")));
    }
    let blocks = align_size(context, inputs, blocks, inputs.stripes.log_unit, device.min(MOST_BLOCKS))?;
    check_size(inputs.sizes, blocks, smallest)?;
    Ok(blocks)
}

/// An internal log lies in one group, in the middle of the filesystem, behind the group's headers.
fn internal(context: &Context, inputs: &LogInputs, space: LogSpace, limits: &Limits) -> Result<(LogPlace, u64)> {
    let (sizes, groups) = (inputs.sizes, inputs.groups);
    let smallest = limits.smallest;
    let mut largest = largest_in_group(inputs);
    if largest < smallest {
        return Err(usage(format!(
            "-d size, -d agcount, -d agsize: a group can hold a log of {largest} blocks; allowed: room for {smallest} or more"
        )));
    }
    let asked = space.asked.filter(|asked| *asked > 0);
    let mut blocks = match asked {
        None => {
            let blocks = default_size(context, inputs, limits, largest);
            check_size(sizes, blocks, smallest)?;
            blocks
        }
        Some(asked) => asked,
    };
    let headers = header_blocks(inputs);
    let too_large = |largest: u64| {
        usage(format!(
            "-l size: {blocks} blocks; allowed in a group of {} blocks: {smallest} to {largest}",
            groups.agblocks
        ))
    };
    if blocks > largest || blocks > groups.agblocks - headers {
        return Err(too_large(largest.min(groups.agblocks - headers)));
    }
    let agno = match context.options.number(Key::LogAgnum).filter(|_| context.options.given(Key::LogAgnum)) {
        Some(number) => u64::try_from(number)
            .ok()
            .filter(|agno| *agno < groups.agcount)
            .ok_or_else(|| usage(format!("-l agnum={number}: allowed: 0 to {}", groups.agcount - 1)))?,
        None => groups.agcount / 2,
    };
    if agno == 0 {
        largest = largest.saturating_sub(room_for_root(inputs));
        if context.options.given(Key::LogSize) && blocks > largest {
            return Err(too_large(largest));
        }
        blocks = blocks.min(largest);
    }
    let unit = if inputs.stripes.log_unit > 0 { inputs.stripes.log_unit } else { inputs.stripes.unit };
    let place = Place { inputs, context, agno, unit: u64::from(unit), largest };
    let (agblock, blocks) = if unit > 0 { place.aligned(headers, blocks)? } else { (headers, blocks) };
    check_size(sizes, blocks, smallest)?;
    let narrow = |value| u32::try_from(value).map_err(|_| usage("-l agnum: too large"));
    Ok((LogPlace::Internal { agno: AgNumber(narrow(agno)?), agblock: AgBlock(narrow(agblock)?) }, blocks))
}

/// The size that a log gets when none was asked for.
fn default_size(context: &Context, inputs: &LogInputs, limits: &Limits, largest: u64) -> u64 {
    let sizes = inputs.sizes;
    let data = inputs.groups.blocks;
    let mut blocks = data / 2048;
    let writers = context.concurrency(Key::LogConcurrency);
    if writers > 0 && data >= sizes.blocks_in(1 << 30) {
        // room for so many of the largest transactions, and half as much again for what goes on beside them
        let bytes = limits.transaction.saturating_mul(writers).saturating_mul(3) / 2;
        blocks = blocks.max(sizes.blocks_in(bytes.min(LARGEST_BYTES)));
    }
    blocks = blocks.max(sizes.blocks_in(REALISTIC_BYTES));
    if data < sizes.blocks_in(TINY) || context.options.smallest_log {
        blocks = limits.smallest;
    }
    blocks.max(limits.smallest).min(largest).min(MOST_BLOCKS).min(sizes.blocks_in(LARGEST_BYTES))
}

/// Blocks of a group before which nothing can lie: its headers and the roots of its btrees.
fn header_blocks(inputs: &LogInputs) -> u64 {
    free_list_block(inputs.sizes) + 4 + optional_roots(inputs)
}

/// The block of the group in which the free list lies, in the fourth sector.
fn free_list_block(sizes: &Sizes) -> u64 {
    sizes.blocks_in(3 << sizes.sector.log())
}

fn optional_roots(inputs: &LogInputs) -> u64 {
    let features = inputs.choice.features;
    [features.finobt, features.rmapbt, features.reflink].into_iter().map(u64::from).sum()
}

/// The largest log in a group; one block stays free.
fn largest_in_group(inputs: &LogInputs) -> u64 {
    let headers = (4u64 << inputs.sizes.sector.log()).div_ceil(u64::from(inputs.sizes.block.bytes()));
    let taken = headers + FREELIST_RESERVE + 3 + optional_roots(inputs);
    inputs.groups.agblocks.saturating_sub(taken + 1)
}

/// What a log in the first group leaves for the root directory, in blocks: inode chunks, aligned to a stripe.
fn room_for_root(inputs: &LogInputs) -> u64 {
    let chunk = inputs.sizes.blocks_in(64 * u64::from(inputs.sizes.inode.bytes()));
    (chunk * 4).max(2 * u64::from(inputs.stripes.unit))
}

/// Rounds the size to whole stripe units; one that was asked for must be so.
fn align_size(context: &Context, inputs: &LogInputs, blocks: u64, unit: u32, largest: u64) -> Result<u64> {
    let unit = u64::from(unit);
    if unit == 0 || blocks % unit == 0 {
        return Ok(blocks);
    }
    if context.options.given(Key::LogSize) {
        return Err(usage(format!(
            "-l size: {blocks} blocks are not whole stripe units; allowed: multiples of {unit} blocks"
        )));
    }
    let up = blocks.next_multiple_of(unit);
    let fits = up <= MOST_BLOCKS && up << inputs.sizes.block.log() <= LARGEST_BYTES && up <= largest;
    Ok(if fits { up } else { blocks / unit * unit })
}

fn check_size(sizes: &Sizes, blocks: u64, smallest: u64) -> Result<()> {
    let largest = MOST_BLOCKS.min(sizes.blocks_in(LARGEST_BYTES));
    if !(smallest..=largest).contains(&blocks) {
        return Err(usage(format!("-l size: {blocks} blocks; allowed: {smallest} to {largest} blocks")));
    }
    Ok(())
}

/// A log in a group, to be aligned to a stripe unit.
struct Place<'a> {
    inputs: &'a LogInputs<'a>,
    context: &'a Context<'a>,
    agno: u64,
    unit: u64,
    largest: u64,
}

impl Place<'_> {
    /// First block in the group and size, in whole units. Where a unit begins is counted in encoded block numbers, as
    /// mkfs.xfs does: for units that are no power of two, it differs from group to group.
    fn aligned(&self, agblock: u64, blocks: u64) -> Result<(u64, u64)> {
        let base = self.agno << agblklog(self.inputs.groups);
        let start = (base + agblock).next_multiple_of(self.unit) - base;
        if !self.holds(start) {
            return Err(usage(format!(
                "-d su, -l su: a log that begins at a stripe unit of {} blocks does not fit into a group of {} blocks",
                self.unit, self.inputs.groups.agblocks
            )));
        }
        let unit = u32::try_from(self.unit).unwrap_or(u32::MAX);
        let mut blocks = align_size(self.context, self.inputs, blocks, unit, self.largest)?;
        if !self.holds_all(start, blocks) && blocks > self.unit {
            blocks -= self.unit;
        }
        if !self.holds_all(start, blocks) {
            return Err(usage(format!(
                "-l size: {blocks} blocks from a stripe unit on do not fit into a group; allowed: up to {} blocks",
                self.end().saturating_sub(start)
            )));
        }
        Ok((start, blocks))
    }

    /// Blocks of the group.
    fn end(&self) -> u64 {
        let groups = self.inputs.groups;
        groups.agblocks.min(groups.blocks.saturating_sub(self.agno * groups.agblocks))
    }

    fn holds(&self, agblock: u64) -> bool {
        agblock < self.end() && agblock > free_list_block(self.inputs.sizes)
    }

    fn holds_all(&self, agblock: u64, blocks: u64) -> bool {
        blocks > 0 && self.holds(agblock) && self.holds(agblock + blocks - 1)
    }
}
