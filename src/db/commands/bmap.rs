//! `bmap`: which blocks hold the contents of the current file (xfsprogs `db/bmap.c`).

use std::io::{self, Write};

use serde_json::{Value, json};

use super::number;
use super::options::Options;
use crate::db::answer::{Answer, Nothing};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::error::{Error, Result};
use crate::forms::{Fork, ForkForm, ForkKind, Inode};
use crate::geometry::Geometry;
use crate::ondisk::Extent;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "bmap",
    alias: None,
    min: 0,
    max: Some(3),
    moves: false,
    usage: "[-a] [-d] [block [len]]",
    brief: "show which blocks hold the current file",
    help: "Shows the extents of the current inode: block of the file, block of the filesystem (with group and block in it), how many, and 1 where they are not written yet.\n  -a  only those of the attribute fork\n  -d  only those of the data fork\nWith a block of the file, only the extent that has it; with a length, those of so many blocks.",
    run: bmap,
}];

/// An extent, cut to what was asked for.
#[derive(Clone, Copy)]
struct Mapping {
    attributes: bool,
    extent: Extent,
    /// Group and block in it, where blocks are counted so.
    group: Option<(u64, u64)>,
}

struct Mappings(Vec<Mapping>);

impl Answer for Mappings {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for Mapping { attributes, extent, group } in &self.0 {
            let fork = if *attributes { "attr" } else { "data" };
            write!(out, "{fork} offset {} startblock {}", extent.startoff, extent.startblock)?;
            if let Some((group, block)) = group {
                write!(out, " ({group}/{block})")?;
            }
            writeln!(out, " count {} flag {}", extent.blockcount, u8::from(extent.unwritten))?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let mapping = |Mapping { attributes, extent, group }: &Mapping| {
            json!({
                "fork": if *attributes { "attr" } else { "data" },
                "offset": extent.startoff,
                "startblock": extent.startblock,
                "group": group.map(|(group, _)| group),
                "group_block": group.map(|(_, block)| block),
                "count": extent.blockcount,
                "unwritten": extent.unwritten,
            })
        };
        self.0.iter().map(mapping).collect()
    }
}

fn bmap(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "ad")?;
    let inode = session.open_inode()?;
    let number =
        |index: usize, what: &str| options.operands.get(index).map(|word| number::parse(word, what)).transpose();
    let (first, len) = (number(0, "block of a file")?, number(1, "number of blocks")?);
    if let Some(word) = options.operands.get(2) {
        return Err(Error::Usage(format!("{word} is one argument too many")));
    }
    let end = match (first, len) {
        (None, _) => u64::MAX,
        (Some(first), len) => first.saturating_add(len.unwrap_or(1)),
    };
    let range = (first.unwrap_or(0), end);
    let (attr, data) = match (options.has('a'), options.has('d')) {
        (false, false) => (inode.raw().attr_extents() > 0, inode.raw().data_extents() > 0),
        asked => asked,
    };
    let mut found = Vec::new();
    for (kind, asked) in [(ForkKind::Data, data), (ForkKind::Attr, attr)] {
        if asked {
            fork_mappings(session, &inode, kind, range, &mut found)?;
        }
    }
    Ok(if found.is_empty() { Box::new(Nothing) } else { Box::new(Mappings(found)) })
}

fn fork_mappings(
    session: &Session,
    inode: &Inode,
    kind: ForkKind,
    (first, end): (u64, u64),
    found: &mut Vec<Mapping>,
) -> Result<()> {
    let Some(fork) = inode.fork(kind)? else { return Ok(()) };
    let Fork { form, .. } = fork;
    if matches!(form, ForkForm::Device(_) | ForkForm::MetaBtree(_)) {
        let what = if kind == ForkKind::Attr { "attribute" } else { "data" };
        return Err(Error::Usage(format!("the {what} fork of inode {} has no extents", inode.ino)));
    }
    for extent in fork.extents(session.image.cache()) {
        let extent = match extent {
            Ok(extent) => extent,
            Err(error) => {
                session.observer.warn(&error);
                continue;
            }
        };
        if extent.startoff >= end {
            break;
        }
        if let Some(extent) = cut(extent, first, end) {
            let attributes = kind == ForkKind::Attr;
            let group = group_of(session.geometry(), extent.startblock, !attributes && inode.is_realtime());
            found.push(Mapping { attributes, extent, group });
        }
    }
    Ok(())
}

/// The part of an extent from file block `first` up to `end`; `None` when there is none.
fn cut(extent: Extent, first: u64, end: u64) -> Option<Extent> {
    let from = extent.startoff.max(first);
    let to = extent.startoff.saturating_add(u64::from(extent.blockcount)).min(end);
    let blockcount = u32::try_from(to.checked_sub(from)?).ok().filter(|count| *count > 0)?;
    let startblock = extent.startblock + (from - extent.startoff);
    Some(Extent { startoff: from, startblock, blockcount, ..extent })
}

/// Group of a block, and block in the group; realtime blocks without groups are simply counted.
fn group_of(geometry: &Geometry, block: u64, realtime: bool) -> Option<(u64, u64)> {
    let bits = if realtime { geometry.realtime.groups?.blklog } else { geometry.agblklog };
    Some((block.checked_shr(bits).unwrap_or(0), block & 1_u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_cut_to_what_is_asked_for() {
        let extent = Extent { startoff: 10, startblock: 100, blockcount: 5, unwritten: false };
        let part = |first, end| cut(extent, first, end).map(|e| (e.startoff, e.startblock, e.blockcount));
        assert_eq!(part(0, u64::MAX), Some((10, 100, 5)));
        assert_eq!(part(12, 13), Some((12, 102, 1)));
        assert_eq!(part(14, 30), Some((14, 104, 1)));
        assert_eq!(part(0, 10), None);
        assert_eq!(part(15, 16), None);
        assert_eq!(part(13, 12), None);
    }
}
