//! `fsmap`: who owns the space, by the reverse mapping btrees.

use std::io::{self, Write};

use rayon::prelude::*;
use serde_json::{Value, json};

use crate::btree::{ForkContents, SortKey, Tree, overlapping};
use crate::db::answer::Answer;
use crate::error::{Error, Result};
use crate::forms::{ForkForm, ForkKind, RtGroupFile, rtgroup_file};
use crate::geometry::{AgBlock, AgNumber, BtreeKind, Geometry, RgNumber};
use crate::image::Image;
use crate::ondisk::{OnDisk, RawRmapRecord, Rmap};
use crate::report::{Observer, Unit};

/// Who owns the space of a filesystem.
#[derive(Clone, Debug, Default)]
pub struct SpaceOwners {
    groups: Vec<(u32, Vec<RawRmapRecord>)>,
}

/// The greatest value that each part of a key can have.
const ABOVE_ALL: u64 = u64::MAX;

/// A range of blocks in groups: the first block and the last, each with its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GroupRange {
    first: (u32, u32),
    last: (u32, u32),
}

impl GroupRange {
    /// The keys of group `number` between which its records lie.
    fn keys(&self, number: u32) -> (SortKey, SortKey) {
        let low = if number == self.first.0 { self.first.1 } else { 0 };
        let high = if number == self.last.0 { self.last.1 } else { u32::MAX };
        (SortKey([u64::from(low), 0, 0]), SortKey([u64::from(high), ABOVE_ALL, ABOVE_ALL]))
    }

    fn check(&self) -> Result<()> {
        let backwards = self.first.0 == self.last.0 && self.first.1 > self.last.1;
        if backwards { Err(Error::Usage("the last block lies before the first".to_owned())) } else { Ok(()) }
    }
}

fn parts(number: u64, log: u32) -> (u32, u32) {
    let group = u32::try_from(number >> log).unwrap_or(u32::MAX);
    let block = u32::try_from(number & ((1 << log) - 1)).unwrap_or(u32::MAX);
    (group, block)
}

/// The last block of `blocks` blocks that lie in groups of the data device.
fn last_block(geometry: &Geometry, blocks: u64) -> u64 {
    let (last, group) = (blocks.saturating_sub(1), u64::from(geometry.agblocks));
    ((last / group) << geometry.agblklog) | (last % group)
}

/// The number, or the last block when that lies behind it.
fn bounded(geometry: &Geometry, end: Option<u64>, blocks: u64) -> u64 {
    let last = last_block(geometry, blocks);
    let linear = |fsb: u64| {
        let (agno, agbno) = (fsb >> geometry.agblklog, fsb & ((1 << geometry.agblklog) - 1));
        agno.saturating_mul(u64::from(geometry.agblocks)).saturating_add(agbno)
    };
    end.filter(|end| linear(*end) < blocks).unwrap_or(last)
}

/// The records of the reverse mapping btrees from filesystem block `start` to `end`, which is the end of the device when
/// it is not given.
///
/// # Errors
/// `Usage` for a range that is none; `Io`; `Corrupt` with the first check that a header fails. A group whose btree is
/// damaged is told to `observer`, and what was found before stays.
pub fn space_owners(image: &Image, observer: &dyn Observer, start: u64, end: Option<u64>) -> Result<SpaceOwners> {
    let geometry = image.geometry();
    let end = bounded(geometry, end, geometry.dblocks);
    let range = GroupRange { first: parts(start, geometry.agblklog), last: parts(end, geometry.agblklog) };
    range.check()?;
    let last = range.last.0.min(geometry.agcount.saturating_sub(1));
    observer.begin("reading reverse mappings", u64::from(last).saturating_add(1), Unit::Items("groups"));
    let groups = (range.first.0..last.saturating_add(1)).into_par_iter().map(|agno| {
        let agf = image.cache().agf(AgNumber(agno))?;
        let root = AgBlock(agf.rmap_root.get());
        let tree = Tree::of_group(BtreeKind::Rmapbt, AgNumber(agno), root, agf.rmap_level.get());
        let records = records(image, observer, tree, range.keys(agno));
        observer.advance(1);
        Ok((agno, records))
    });
    let groups: Result<Vec<_>> = groups.collect();
    observer.end();
    Ok(SpaceOwners { groups: groups? })
}

/// The same for the realtime section. As with xfs_db, the numbers are taken apart as if its groups were those of the data
/// device where the end of the section is concerned.
///
/// # Errors
/// As of [`space_owners`].
pub fn realtime_owners(image: &Image, observer: &dyn Observer, start: u64, end: Option<u64>) -> Result<SpaceOwners> {
    let geometry = image.geometry();
    let blocks = geometry.realtime.blocks;
    let Some(groups) = geometry.realtime.groups.filter(|_| blocks > 0) else { return Ok(SpaceOwners::default()) };
    let end = bounded(geometry, end, blocks);
    let range = GroupRange { first: parts(start, groups.blklog), last: parts(end, groups.blklog) };
    range.check()?;
    let mut owners = SpaceOwners::default();
    let last = range.last.0.min(groups.count.saturating_sub(1));
    for rgno in range.first.0..last.saturating_add(1) {
        let inode = rtgroup_file(image.cache(), RgNumber(rgno), RtGroupFile::Rmap)?;
        let inode = inode.ok_or_else(|| Error::Usage(format!("realtime group {rgno} has no reverse mappings")))?;
        let fork = inode.fork(ForkKind::Data)?;
        let Some(ForkForm::MetaBtree(bytes)) = fork.map(|fork| fork.form) else {
            return Err(Error::Usage(format!("the reverse mappings of realtime group {rgno} are no btree")));
        };
        let tree = Tree::of_fork(BtreeKind::Rtrmapbt, inode.ino, ForkContents::Data, bytes);
        owners.groups.push((rgno, records(image, observer, tree, range.keys(rgno))));
    }
    Ok(owners)
}

fn records(image: &Image, observer: &dyn Observer, tree: Tree<'_>, keys: (SortKey, SortKey)) -> Vec<RawRmapRecord> {
    let mut found = Vec::new();
    let walked = overlapping(&(image.cache(), tree), keys.0, keys.1, &mut |record| {
        found.extend(RawRmapRecord::prefix(record).map(|(raw, _)| *raw));
        Ok(())
    });
    if let Err(error) = walked {
        observer.warn(&error);
    }
    found
}

impl SpaceOwners {
    fn rows(&self) -> impl Iterator<Item = (u32, Rmap)> {
        self.groups.iter().flat_map(|(group, records)| records.iter().filter_map(|raw| Some((*group, raw.decode()?))))
    }
}

impl Answer for SpaceOwners {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, (group, rmap)) in self.rows().enumerate() {
            let flags = [rmap.bmbt_block, rmap.attr_fork, rmap.unwritten].map(u8::from);
            writeln!(
                out,
                "{number}: {group}/{} len {} owner {} offset {} bmbt {} attrfork {} extflag {}",
                rmap.startblock,
                rmap.blockcount,
                rmap.owner.cast_signed(),
                rmap.offset,
                flags[0],
                flags[1],
                flags[2]
            )?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let rows = self.rows().map(|(group, rmap)| {
            json!({
                "group": group,
                "startblock": rmap.startblock,
                "blockcount": rmap.blockcount,
                "owner": rmap.owner.cast_signed(),
                "offset": rmap.offset,
                "bmbt": rmap.bmbt_block,
                "attrfork": rmap.attr_fork,
                "unwritten": rmap.unwritten,
            })
        });
        Value::Array(rows.collect())
    }
}
