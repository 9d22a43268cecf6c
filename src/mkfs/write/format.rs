//! The order in which a filesystem gets onto its devices: what was there is wiped, so that nothing recognisable is left at
//! the start; then everything is written but the primary superblock, which makes the filesystem, last. Sources:
//! `prepare_devices`, `zero_old_xfs_structures` and `main` of xfsprogs `mkfs/xfs_mkfs.c`.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::mkfs::layout::{Layout, RealtimePlace};
use crate::mkfs::write::group::Group;
use crate::mkfs::write::journal::clear_log;
use crate::mkfs::write::maker::Maker;
use crate::mkfs::write::shape::Shape;
use crate::mkfs::write::superblock::{self, Progress};
use crate::ondisk::{OnDisk, RawRtSuperblock, RawSuperblock, crc};

/// Bytes that are wiped at the start and at the end of the data device.
const WIPED: u64 = 128 * 1024;
/// Bytes of the smallest and of the largest block, as logarithms.
const BLOCK_LOGS: std::ops::RangeInclusive<u8> = 9..=16;
/// Blocks of the smallest allocation group.
const SMALLEST_GROUP: u64 = 64;

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Inode of the root directory.
    pub rootino: u64,
    /// Inodes made.
    pub icount: u64,
    /// Free inodes among them.
    pub ifree: u64,
    /// Free blocks.
    pub fdblocks: u64,
    /// Free realtime extents.
    pub frextents: u64,
}

/// A filesystem that is all there but for its primary superblock, without which nobody takes it for one.
#[derive(Debug)]
pub struct Unfinished {
    shape: Shape,
    progress: Progress,
}

impl Unfinished {
    /// The primary superblock that is still to be written.
    pub fn superblock(&self) -> RawSuperblock {
        superblock::superblock(&self.shape, &self.progress, false)
    }

    /// Writes it.
    ///
    /// # Errors
    /// `Io`.
    pub fn finish(&self, data: &dyn Device) -> Result<Report> {
        data.write_at(0, &superblock::sector(&self.shape, &self.superblock()))?;
        data.flush()?;
        let progress = &self.progress;
        Ok(Report {
            rootino: progress.rootino.0,
            icount: progress.icount,
            ifree: progress.ifree,
            fdblocks: progress.fdblocks,
            frextents: progress.frextents,
        })
    }
}

/// Makes the filesystem that `layout` describes on `data`, with its log on `log` if that is external, and its realtime section on
/// `rt` if that has a device. The devices have the sizes that `layout` was resolved for; block devices whose contents
/// are to be discarded have been discarded before. `group_written` is called for each allocation group, `agcount` times.
///
/// # Errors
/// `Io`; `Usage` when a device is missing or the space does not suffice. What stands on the devices after an
/// error is no filesystem.
pub fn format(
    layout: &Layout,
    data: &dyn Device,
    log: Option<&dyn Device>,
    rt: Option<&dyn Device>,
    group_written: &mut dyn FnMut(),
) -> Result<Report> {
    prepare(layout, data, log, rt, group_written)?.finish(data)
}

/// The same but for the last step: the filesystem can be filled before its primary superblock is written.
///
/// # Errors
/// As for [`format()`].
pub fn prepare(
    layout: &Layout,
    data: &dyn Device,
    log: Option<&dyn Device>,
    rt: Option<&dyn Device>,
    group_written: &mut dyn FnMut(),
) -> Result<Unfinished> {
    let shape = Shape::new(layout);
    wipe(&shape, data)?;
    match shape.internal_log() {
        Some((agno, start)) => clear_log(&shape, data, shape.offset(agno.0, start.0))?,
        None => clear_log(&shape, log.ok_or_else(|| missing("log"))?, 0)?,
    }

    if layout.realtime.place == RealtimePlace::Device && layout.realtime.blocks > 0 {
        prepare_realtime(&shape, rt.ok_or_else(|| missing("realtime"))?)?;
    }

    let mut maker = Maker::new(&shape, data);
    let mut root = maker.make_root()?;
    match layout.realtime.groups.filter(|_| layout.features.metadir) {
        Some(groups) => maker.make_metadata_directory(groups)?,
        None => maker.make_realtime_inodes()?,
    }
    if let Some(value) = layout.autofsck {
        maker.set_autofsck(&mut root, value)?;
    }

    let progress = maker.progress;
    for agno in (0..layout.data.agcount).rev() {
        let mut group = maker.take_group(agno)?;
        write_group(&shape, data, &mut group, &progress)?;
        group_written();
    }
    maker.blocks.write()?;
    for device in [log, rt].into_iter().flatten() {
        device.flush()?;
    }
    data.flush()?;
    Ok(Unfinished { shape, progress })
}

/// Clears the last block of a realtime device, which shows that it can be written, and writes its superblock if it has one.
fn prepare_realtime(shape: &Shape, rt: &dyn Device) -> Result<()> {
    if shape.layout.features.zoned {
        return Ok(());
    }
    let block = u64::from(shape.block);
    rt.write_zeroes((shape.layout.realtime.blocks - 1) * block, block)?;
    if shape.layout.features.metadir {
        rt.write_at(0, &realtime_superblock(shape))?;
    }
    Ok(())
}

/// The block of the realtime superblock.
fn realtime_superblock(shape: &Shape) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(shape.block).expect("invariant: 64 KiB at most")];
    let (sb, _) = RawRtSuperblock::prefix_mut(&mut bytes).expect("invariant: smaller than a block");
    sb.magicnum.set(RawRtSuperblock::MAGIC);
    sb.fname = shape.layout.label;
    sb.uuid = *shape.layout.uuid.as_bytes();
    sb.meta_uuid = *shape.layout.uuid.as_bytes();
    crc::stamp(&mut bytes, RawRtSuperblock::CRC_OFFSET);
    bytes
}

/// Writes the headers and trees of a group, but for the primary superblock.
fn write_group(shape: &Shape, data: &dyn Device, group: &mut Group, progress: &Progress) -> Result<()> {
    let start = shape.offset(group.agno, 0);
    let mut headers = group.header_sectors(shape);
    let sector = headers.len() / 4;
    let mut runs = group.tree_blocks(shape).into_iter();
    let (first, roots) = runs.next().ok_or_else(|| Error::Internal("a group has no trees".to_string()))?;
    let gap = usize::try_from(shape.offset(group.agno, first) - start).map_err(|_| missing("small"))? - headers.len();
    let mut from = 0;
    if group.agno == 0 {
        from = sector;
    } else {
        let secondary = superblock::superblock(shape, &secondary_progress(shape, group.agno, progress), true);
        headers[..sector].copy_from_slice(&superblock::sector(shape, &secondary));
    }
    // the rest of the headers' last block is wiped in the first group; in the others, what is there stays
    if gap == 0 || group.agno == 0 {
        headers.resize(headers.len() + gap, 0);
        headers.extend_from_slice(&roots);
        data.write_at(start + from as u64, &headers[from..])?;
    } else {
        data.write_at(start, &headers)?;
        data.write_at(shape.offset(group.agno, first), &roots)?;
    }
    for (at, blocks) in runs {
        data.write_at(shape.offset(group.agno, at), &blocks)?;
    }
    Ok(())
}

/// What a secondary superblock says: the state before the first inode; the last one and the one in the middle know the roots.
fn secondary_progress(shape: &Shape, agno: u32, progress: &Progress) -> Progress {
    let mut secondary = Progress::begin(shape);
    let last = shape.layout.data.agcount - 1;
    if agno == last || (last > 1 && agno == last / 2) {
        secondary.rootino = progress.rootino;
        secondary.metadirino = progress.metadirino;
    }
    secondary
}

/// Clears what could be taken for a filesystem. The start goes first, so that nothing passes for the old filesystem while it
/// is being destroyed.
fn wipe(shape: &Shape, data: &dyn Device) -> Result<()> {
    let layout = &shape.layout;
    let mut sector = vec![0; usize::try_from(layout.sector.bytes()).map_err(|_| missing("small"))?];
    if data.len() >= sector.len() as u64 {
        data.read_at(0, &mut sector)?;
    }
    let wiped = WIPED.min(layout.data.device_bytes);
    data.write_zeroes(0, wiped)?;
    if sector.iter().any(|&byte| byte != 0) {
        data.flush()?;
    }
    if layout.erase_old_superblocks
        && let Some(old) = OldGroups::find(&sector)
    {
        sector.fill(0);
        old.erase(data, &sector)?;
    }
    data.write_zeroes(layout.data.device_bytes - wiped, wiped)
}

/// The allocation groups of an XFS that stands on the device.
struct OldGroups {
    count: u64,
    blocks: u64,
    blocklog: u8,
}

impl OldGroups {
    /// The groups that the superblock in `sector` tells of, if it is one and makes sense.
    fn find(sector: &[u8]) -> Option<Self> {
        let (old, _) = RawSuperblock::prefix(sector)?;
        let (count, blocks) = (u64::from(old.agcount.get()), u64::from(old.agblocks.get()));
        let (blocklog, dblocks) = (old.blocklog, old.dblocks.get());
        let roundup = old.blocksize.get().checked_next_power_of_two()?.trailing_zeros();
        let sound = old.magicnum.get() == RawSuperblock::MAGIC
            && old.blocksize.get() != 0
            && BLOCK_LOGS.contains(&blocklog)
            && roundup == u32::from(blocklog)
            && dblocks <= count * blocks
            && dblocks >= count.wrapping_sub(1).wrapping_mul(blocks).wrapping_add(SMALLEST_GROUP);
        sound.then_some(OldGroups { count, blocks, blocklog })
    }

    /// Overwrites their superblocks with `zeroes`, so that no repair finds them later.
    fn erase(&self, data: &dyn Device, zeroes: &[u8]) -> Result<()> {
        for agno in 1..self.count {
            let Some(offset) = (agno * self.blocks).checked_shl(u32::from(self.blocklog)) else { break };
            if offset.saturating_add(zeroes.len() as u64) > data.len() {
                break;
            }
            data.write_at(offset, zeroes)?;
        }
        Ok(())
    }
}

fn missing(what: &str) -> Error {
    Error::Usage(format!("the layout needs a {what} device, and none is given"))
}
