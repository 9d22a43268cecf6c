//! `freesp`: the free space of each group.

use std::io::{self, Write};

use rayon::prelude::*;
use serde_json::{Value, json};

use super::freelist::entries_of;
use super::group_tree::{Found, GroupTree};
use super::histogram::{Buckets, Histogram, six_digits};
use super::reader::Reader;
use crate::buffer::BlockKind;
use crate::db::answer::Answer;
use crate::geometry::{BtreeKind, Daddr};
use crate::image::Image;
use crate::ondisk::{OnDisk, RawAgf, RawAgfl, RawAllocRecord};
use crate::report::{Observer, Unit};

/// What `freesp` is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeSpaceOptions {
    /// The groups (`-a`); all when there are none.
    pub groups: Vec<u32>,
    /// Extents that do not begin at a multiple of this many blocks are left out (`-A`); 0 leaves out none.
    pub alignment: u64,
    /// The btree by size is read, not that by block (`-c`).
    pub by_size: bool,
    /// Each extent is listed (`-d`).
    pub dump: bool,
    /// Totals are told (`-s`).
    pub summary: bool,
    /// The buckets.
    pub buckets: Buckets,
}

/// The free space of a filesystem.
#[derive(Clone, Debug)]
pub struct FreeSpace {
    options: FreeSpaceOptions,
    groups: Vec<GroupFree>,
    histogram: Histogram,
}

#[derive(Clone, Debug)]
struct GroupFree {
    lines: Vec<Line>,
    histogram: Histogram,
}

/// What is told of a group, in order.
#[derive(Clone, Debug)]
enum Line {
    /// A free extent: group, first block, length.
    Extent(u32, u32, u32),
    /// Something that is wrong.
    Note(String),
}

/// Reads the free lists and free space btrees of all groups, on all processors.
pub fn free_space(image: &Image, observer: &dyn Observer, options: &FreeSpaceOptions) -> FreeSpace {
    let geometry = image.geometry();
    let empty = Histogram::new(options.buckets.clone(), u64::from(geometry.agblocks));
    let wanted = |agno: &u32| options.groups.is_empty() || options.groups.contains(agno);
    let groups: Vec<u32> = (0..super::blockget::present_groups(image)).filter(wanted).collect();
    let total = u64::try_from(groups.len()).unwrap_or(0);
    observer.begin("reading free space", total, Unit::Items("groups"));
    let scanned = groups.into_par_iter().map(|agno| {
        let group = GroupFree { lines: Vec::new(), histogram: empty.clone() };
        let mut scan = GroupScan { reader: Reader::new(image, observer), options, agno, group };
        scan.run();
        observer.advance(1);
        scan.group
    });
    let groups: Vec<GroupFree> = scanned.collect();
    observer.end();
    let mut histogram = empty;
    groups.iter().for_each(|group| histogram.append(&group.histogram));
    FreeSpace { options: options.clone(), groups, histogram }
}

struct GroupScan<'a> {
    reader: Reader<'a>,
    options: &'a FreeSpaceOptions,
    agno: u32,
    group: GroupFree,
}

impl GroupScan<'_> {
    fn sector(&self, agno: u32, kind: BlockKind, sector: u32) -> Option<Vec<u8>> {
        let start = self.reader.daddr(agno, 0)?;
        let daddr = Daddr(start.0 + (u64::from(sector) << (self.reader.geometry().sectlog - 9)));
        self.reader.block(kind, daddr)
    }

    fn run(&mut self) {
        let Some(bytes) = self.sector(self.agno, BlockKind::Agf, RawAgf::SECTOR) else { return };
        let Some((agf, _)) = RawAgf::prefix(&bytes) else { return };
        let seqno = agf.seqno.get();
        self.free_list(agf, seqno);
        let (kind, root, levels) = if self.options.by_size {
            (BtreeKind::Cntbt, agf.cnt_root.get(), agf.cnt_level.get())
        } else {
            (BtreeKind::Bnobt, agf.bno_root.get(), agf.bno_level.get())
        };
        let magics = [kind.magic(false), kind.magic(true)];
        let reader = self.reader;
        GroupTree { kind, agno: seqno, root, levels }.walk(&reader, &mut |found| match found {
            Found::Unreadable { agbno } => {
                self.note(format!("can't read btree block {seqno}/{agbno}"));
                false
            }
            Found::Block(block) if !magics.contains(&block.header.magic.get()) => false,
            Found::Block(block) => {
                if block.level == 0 {
                    for free in block.records().filter_map(RawAllocRecord::prefix).map(|(raw, _)| raw.decode()) {
                        self.add(seqno, free.startblock, free.blockcount);
                    }
                }
                true
            }
        });
    }

    fn free_list(&mut self, agf: &RawAgf, seqno: u32) {
        if agf.flcount.get() == 0 {
            return;
        }
        let Some(sector) = self.sector(seqno, BlockKind::Agfl, RawAgfl::SECTOR) else { return };
        let entries = RawAgfl::entries(&sector, self.reader.geometry().features.has_crc());
        let Some(list) = entries_of(agf, entries) else {
            let seqno = seqno.cast_signed();
            return self.note(format!("agf {seqno} freelist blocks bad, skipping freelist scan"));
        };
        list.for_each(|agbno| self.add(seqno, agbno, 1));
    }

    fn note(&mut self, line: String) {
        self.group.lines.push(Line::Note(line));
    }

    fn add(&mut self, agno: u32, agbno: u32, len: u32) {
        let fsb = u64::from(agno) << self.reader.geometry().agblklog | u64::from(agbno);
        if self.options.alignment != 0 && fsb % self.options.alignment != 0 {
            return;
        }
        if self.options.dump {
            self.group.lines.push(Line::Extent(agno, agbno, len));
        }
        self.group.histogram.add(u64::from(len));
    }
}

impl FreeSpace {
    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.groups.iter().flat_map(|group| &group.lines)
    }
}

impl Answer for FreeSpace {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.options.dump {
            writeln!(out, "{:>8} {:>8} {:>8}", "agno", "agbno", "len")?;
        }
        for line in self.lines() {
            match line {
                Line::Extent(agno, agbno, len) => {
                    let [agno, agbno, len] = [agno, agbno, len].map(|number| number.cast_signed());
                    writeln!(out, "{agno:>8} {agbno:>8} {len:>8}")?;
                }
                Line::Note(note) => writeln!(out, "{note}")?,
            }
        }
        self.histogram.write(out)?;
        if self.options.summary {
            let total = self.histogram.total();
            writeln!(out, "total free extents {}", total.extents)?;
            writeln!(out, "total free blocks {}", total.blocks)?;
            writeln!(out, "average free extent size {}", six_digits(self.histogram.average()))?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let total = self.histogram.total();
        let mut value = json!({
            "extents": total.extents,
            "blocks": total.blocks,
            "histogram": self.histogram.json(),
        });
        if self.options.dump {
            let extents = self.lines().filter_map(|line| match line {
                Line::Extent(agno, agbno, len) => Some(json!({ "agno": agno, "agbno": agbno, "len": len })),
                Line::Note(_) => None,
            });
            value["free"] = Value::Array(extents.collect());
        }
        let notes =
            self.lines().filter_map(|line| if let Line::Note(note) = line { Some(note.as_str()) } else { None });
        let notes: Vec<&str> = notes.collect();
        if !notes.is_empty() {
            value["notes"] = json!(notes);
        }
        value
    }
}
