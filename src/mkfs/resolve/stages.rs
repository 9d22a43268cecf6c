//! The order of the stages, and what they have in common.

use uuid::Uuid;

use super::data::DataSpace;
use super::features::{self, Choice, Defaults};
use super::log::LogInputs;
use super::sectors::Sizes;
use super::{data, extents, hints, log, realtime, sectors, stripe, zones};
use crate::error::{Error, Result};
use crate::mkfs::devices::{DeviceFacts, Devices};
use crate::mkfs::layout::{DataLayout, Layout, Timestamp};
use crate::mkfs::options::Options;
use crate::mkfs::suboptions::Key;

/// What the surroundings of the program contribute.
#[derive(Clone, Copy, Debug)]
pub struct Environment {
    /// CPUs of this machine; counts only where `concurrency=1` asks for it.
    pub cpus: u32,
    /// Time of creation.
    pub time: Timestamp,
    /// In the place of random numbers.
    pub seed: Option<u32>,
    /// The UUID where none was given.
    pub uuid: Uuid,
    /// Discard the contents of block devices.
    pub discard: bool,
    /// An old filesystem may be overwritten, and its superblocks are erased.
    pub force: bool,
    /// Nothing will be written.
    pub dry_run: bool,
    /// The test suite fstests is at work, which needs tiny filesystems.
    pub test_suite: bool,
}

/// A layout, and what there is to say about how it came about.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The layout.
    pub layout: Layout,
    /// Warnings and remarks, a line each.
    pub notes: Vec<String>,
}

/// What every stage sees.
pub(super) struct Context<'a> {
    pub options: &'a Options,
    pub devices: &'a Devices,
    pub environment: &'a Environment,
    pub notes: Vec<String>,
}

impl Context<'_> {
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Bytes of a device as they will be when it is open: a file that is to be made or emptied has none yet.
    pub fn bytes(&self, facts: &DeviceFacts, file: Key) -> u64 {
        let emptied = self.options.switch(file) == Some(true) && !self.environment.dry_run;
        if emptied { 0 } else { facts.bytes }
    }

    /// The number of writers that `key` asks for; 0 for no particular number.
    pub fn concurrency(&self, key: Key) -> u64 {
        match self.options.number(key) {
            Some(1) => u64::from(self.environment.cpus),
            Some(number) => u64::try_from(number).unwrap_or(0),
            None => 0,
        }
    }
}

/// An error about options.
pub(super) fn usage(text: impl Into<String>) -> Error {
    Error::Usage(text.into())
}

/// Decides everything.
///
/// # Errors
/// `Usage`, when the options contradict each other, the devices or the format.
pub fn resolve(
    options: &Options,
    devices: &Devices,
    defaults: &Defaults,
    environment: &Environment,
) -> Result<Resolved> {
    let mut context = Context { options, devices, environment, notes: Vec::new() };
    let mut sizes = sectors::resolve(&mut context)?;
    let mut choice = features::resolve(&mut context, &sizes, defaults)?;
    sizes.complete(&context, choice.features.crc)?;
    let extent_blocks = extents::resolve(&context, &sizes, &choice)?;
    let space = data::space(&mut context, &sizes, choice.features.zoned)?;
    let log_space = log::space(&mut context, &sizes, space.blocks)?;
    let mut realtime = realtime::space(&mut context, &sizes, &space, extent_blocks)?;
    let mut stripes = stripe::resolve(&mut context, &sizes, &choice, space.blocks)?;
    let atomic_write = stripe::atomic_write(&context, &sizes)?;
    let groups = data::groups(&mut context, &sizes, &space, &mut stripes, atomic_write)?;
    if choice.features.zoned {
        zones::resolve(&mut context, &sizes, &mut realtime)?;
    } else {
        realtime::groups(&context, &sizes, &choice, groups.blocks, &mut realtime)?;
    }
    stripe::check_atomic_write(&context, &sizes, atomic_write, groups.agblocks, realtime.group_blocks)?;
    let imax_pct = data::imax_pct(&context, &sizes, groups.blocks);
    let inputs = LogInputs { sizes: &sizes, choice: &choice, groups, stripes, realtime: &realtime, atomic_write };
    let log = log::resolve(&context, &inputs, log_space)?;
    hints::check(&choice.root, groups.agblocks, realtime.extent_blocks)?;
    check_supported(&mut context, &sizes, groups, u64::from(log.blocks))?;
    choice.features.attributes |= choice.features.parent;
    let layout = Layout {
        block: sizes.block,
        sector: sizes.sector,
        inode: sizes.inode,
        directory_block: sizes.directory_block,
        features: choice.features,
        data: data_layout(&sizes, &choice, &space, groups, stripes, imax_pct)?,
        log,
        realtime: realtime.layout(&sizes, &context)?,
        root: choice.root,
        quota_flags: choice.quota_flags,
        autofsck: choice.autofsck,
        uuid: options.uuid.unwrap_or(environment.uuid),
        label: options.label,
        time: environment.time,
        seed: environment.seed,
        discard: environment.discard,
        erase_old_superblocks: environment.force,
    };
    Ok(Resolved { layout, notes: context.notes })
}

fn data_layout(
    sizes: &Sizes,
    choice: &Choice,
    space: &DataSpace,
    groups: data::Groups,
    stripes: stripe::Stripes,
    imax_pct: u8,
) -> Result<DataLayout> {
    let (inode_alignment, sparse_alignment) = alignments(sizes, choice);
    let too_large = |_| usage("-d size: more groups or larger ones than the format can hold");
    Ok(DataLayout {
        device_bytes: space.bytes.max(groups.blocks << sizes.block.log()),
        blocks: groups.blocks,
        agblocks: u32::try_from(groups.agblocks).map_err(too_large)?,
        agcount: u32::try_from(groups.agcount).map_err(too_large)?,
        stripe_unit: stripes.unit,
        stripe_width: stripes.width,
        inode_alignment,
        sparse_alignment,
        imax_pct,
    })
}

/// Alignment of inode chunks and of sparse ones, in blocks. An inode cluster takes 8 KiB for inodes of 256 bytes, and
/// in version 5 grows with them.
pub(super) fn alignments(sizes: &Sizes, choice: &Choice) -> (u32, u32) {
    if !choice.features.inode_alignment {
        return (0, 0);
    }
    let scale = if choice.features.crc { sizes.inode.bytes() / 256 } else { 1 };
    let cluster = (8192 * scale) >> sizes.block.log();
    if choice.features.sparse_inodes {
        ((64 * sizes.inode.bytes()) >> sizes.block.log(), cluster)
    } else {
        (cluster, 0)
    }
}

/// mkfs.xfs makes no filesystem that is too small to work well, unless it is told to.
fn check_supported(context: &mut Context, sizes: &Sizes, groups: data::Groups, log_blocks: u64) -> Result<()> {
    if context.options.unsupported {
        context.note("Filesystems formatted with --unsupported are not supported!!");
        return Ok(());
    }
    if context.environment.test_suite {
        return Ok(());
    }
    let mebibytes = |count: u64| count << (20 - u32::from(sizes.block.log()));
    if groups.blocks < mebibytes(300) {
        return Err(usage(format!(
            "-d size: {} blocks are too small; allowed: 300 MiB ({} blocks) or more, or anything from 16 MiB with --unsupported",
            groups.blocks,
            mebibytes(300)
        )));
    }
    if log_blocks < mebibytes(64) {
        let chosen_groups = context.options.given(Key::DataAgcount) || context.options.given(Key::DataAgsize);
        let cause = if context.options.log_internal && !context.options.given(Key::LogSize) && chosen_groups {
            "-l size: the allocation groups (-d agcount, -d agsize) are too small for the log"
        } else {
            "-l size: the log is too small"
        };
        return Err(usage(format!(
            "{cause} ({log_blocks} blocks); allowed: 64 MiB ({} blocks) or more, or less with --unsupported",
            mebibytes(64)
        )));
    }
    if groups.agcount < 2 {
        return Err(usage(
            "-d agcount: one allocation group has no second superblock; allowed: 2 or more, or 1 with --unsupported",
        ));
    }
    Ok(())
}
