//! `frag`: how many extents files have, and how many they would need.

use std::io::{self, Write};

use rayon::prelude::*;
use serde_json::{Value, json};

use super::group_tree::{Found, GroupTree};
use super::inode_chunk::ChunkBatch;
use super::reader::Reader;
use crate::btree::Layout;
use crate::buffer::{BlockKind, Request};
use crate::db::answer::Answer;
use crate::geometry::{BtreeKind, Daddr, Ino};
use crate::image::Image;
use crate::ondisk::dinode::{flags, format};
use crate::ondisk::{
    Be64, INODES_PER_CHUNK, InodeChunk, OnDisk, RawAgf, RawAgi, RawBmdrRoot, RawDinode, RawDinodeCore, RawExtent,
    RawInobtRecord, RawLongBlock, RawSparseInobtRecord, RawSuperblock,
};
use crate::report::{Observer, Unit};
use zerocopy::FromBytes;

/// Which forks of which files `frag` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragOptions {
    /// Attribute forks (`-a`).
    pub attributes: bool,
    /// Directories (`-d`).
    pub directories: bool,
    /// Regular files (`-f`).
    pub files: bool,
    /// Symbolic links (`-l`).
    pub symlinks: bool,
    /// Quota files (`-q`).
    pub quota: bool,
    /// Realtime bitmap and summary (`-R`).
    pub realtime_control: bool,
    /// Realtime files (`-r`).
    pub realtime: bool,
    /// Each inode is told (`-v`).
    pub verbose: bool,
}

/// Extents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtentCount {
    /// That there are.
    pub actual: u64,
    /// That would do, since neighbours in the file count once.
    pub ideal: u64,
}

impl ExtentCount {
    fn add(&mut self, other: ExtentCount) {
        self.actual += other.actual;
        self.ideal += other.ideal;
    }
}

/// How many extents files have, and how many they would need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragmentation {
    /// Of all together.
    pub total: ExtentCount,
    /// Of each inode, and what could not be read, in order.
    lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    Inode(u64, ExtentCount),
    Note(String),
}

/// Counts the extents of all inodes, on all processors.
pub fn fragmentation(image: &Image, observer: &dyn Observer, options: FragOptions) -> Fragmentation {
    let scan = FragScan { reader: Reader::new(image, observer), options, sb: image.superblock().sb };
    observer.begin("counting extents", scan.sb.icount.get(), Unit::Items("inodes"));
    let groups = (0..super::blockget::present_groups(image)).into_par_iter();
    let parts: Vec<Fragmentation> = groups.flat_map_iter(|agno| scan.group(agno)).collect();
    observer.end();
    let mut all = Fragmentation::default();
    for part in parts {
        all.total.add(part.total);
        all.lines.extend(part.lines);
    }
    all
}

struct FragScan<'a> {
    reader: Reader<'a>,
    options: FragOptions,
    sb: RawSuperblock,
}

enum Part {
    Found(Fragmentation),
    Inodes(ChunkBatch),
}

impl FragScan<'_> {
    fn header<T: OnDisk + Copy>(&self, agno: u32, kind: BlockKind, sector: u32) -> Option<T> {
        let start = self.reader.daddr(agno, 0)?;
        let daddr = Daddr(start.0 + (u64::from(sector) << (self.reader.geometry().sectlog - 9)));
        T::prefix(&self.reader.block(kind, daddr)?).map(|(raw, _)| *raw)
    }

    fn group(&self, agno: u32) -> Vec<Fragmentation> {
        let note = |line: String| Fragmentation { lines: vec![Line::Note(line)], ..Fragmentation::default() };
        let Some(agf) = self.header::<RawAgf>(agno, BlockKind::Agf, RawAgf::SECTOR) else {
            return vec![note(format!("can't read agf block for ag {agno}"))];
        };
        let Some(agi) = self.header::<RawAgi>(agno, BlockKind::Agi, RawAgi::SECTOR) else {
            return vec![note(format!("can't read agi block for ag {agno}"))];
        };
        let seqno = agf.seqno.get();
        let sparse = self.reader.geometry().features.has_sparseinodes();
        let mut parts = Vec::new();
        let (kind, root, levels) = (BtreeKind::Inobt, agi.root.get(), agi.level.get());
        GroupTree { kind, agno: seqno, root, levels }.walk(&self.reader, &mut |found| match found {
            Found::Unreadable { agbno } => {
                parts.push(Part::Found(note(format!("can't read btree block {seqno}/{agbno}"))));
                false
            }
            Found::Block(block) => {
                if block.level == 0 {
                    let chunk = |record| -> Option<InodeChunk> {
                        if sparse {
                            RawSparseInobtRecord::prefix(record).map(|(raw, _)| raw.decode())
                        } else {
                            RawInobtRecord::prefix(record).map(|(raw, _)| raw.decode())
                        }
                    };
                    let chunks: Vec<InodeChunk> = block.records().filter_map(chunk).collect();
                    parts.extend(chunks.chunks(ChunkBatch::MOST).map(|chunks| {
                        Part::Inodes(ChunkBatch { agno: seqno, by: block.agbno, chunks: chunks.to_vec() })
                    }));
                }
                true
            }
        });
        let found = parts.into_par_iter().map(|part| match part {
            Part::Found(found) => found,
            Part::Inodes(batch) => {
                let found = self.batch(&batch);
                self.reader.observer().advance(batch.inodes());
                found
            }
        });
        found.collect()
    }

    fn batch(&self, batch: &ChunkBatch) -> Fragmentation {
        let geometry = self.reader.geometry();
        let size = usize::try_from(geometry.inodes.size).unwrap_or(256);
        let (mut found, mut bytes) = (Fragmentation::default(), Vec::new());
        for chunk in &batch.chunks {
            let first = u64::from(batch.agno) << geometry.inodes.agino_log | u64::from(chunk.startino);
            batch.read(&self.reader, chunk, &mut bytes, &mut |buffer, bytes| {
                let Some(bytes) = bytes else {
                    let line = format!("can't read inode block {}/{}", batch.agno, buffer.agbno);
                    return found.lines.push(Line::Note(line));
                };
                let inodes =
                    (buffer.first..INODES_PER_CHUNK.min(buffer.first + buffer.inodes)).zip(bytes.chunks_exact(size));
                for (index, bytes) in inodes.filter(|(index, _)| chunk.free >> index & 1 == 0) {
                    let scan = InodeFrag { scan: self, ino: first.wrapping_add(u64::from(index)), found: &mut found };
                    scan.count(bytes);
                }
            });
        }
        found
    }

    /// Whether the data fork of a file is counted.
    fn counts_data(&self, core: &RawDinodeCore, ino: u64) -> bool {
        let (options, sb) = (&self.options, &self.sb);
        match core.mode.get() >> 12 {
            4 => options.directories,
            8 if !options.realtime && core.flags.get() & flags::REALTIME != 0 => false,
            8 if !options.realtime_control && [sb.rbmino.get(), sb.rsumino.get()].contains(&ino) => false,
            8 if !options.quota && [sb.uquotino, sb.gquotino, sb.pquotino].iter().any(|file| file.get() == ino) => {
                false
            }
            8 => options.files,
            10 => options.symlinks,
            _ => false,
        }
    }
}

struct InodeFrag<'a, 's> {
    scan: &'a FragScan<'s>,
    ino: u64,
    found: &'a mut Fragmentation,
}

/// Counts extents as they come.
#[derive(Default)]
struct Counter {
    count: ExtentCount,
    end: u64,
    /// Blocks of the btree that were read.
    blocks: u64,
}

impl Counter {
    fn records(&mut self, records: &[RawExtent]) {
        for extent in records.iter().map(RawExtent::decode) {
            let follows = self.count.actual > 0 && extent.startoff == self.end;
            self.count.actual += 1;
            self.count.ideal += u64::from(!follows);
            self.end = extent.startoff + u64::from(extent.blockcount);
        }
    }
}

impl InodeFrag<'_, '_> {
    fn count(mut self, bytes: &[u8]) {
        let Some((core, _)) = RawDinodeCore::prefix(bytes) else { return };
        let data = self.scan.counts_data(core, self.ino);
        let attributes = self.scan.options.attributes && core.forkoff != 0;
        if !data && !attributes {
            return;
        }
        let literal = bytes.get(core.literal_offset()..).unwrap_or(&[]);
        let (data_extents, attr_extents) = match RawDinode::prefix(bytes) {
            Some((raw, _)) => (raw.data_extents(), u64::from(raw.attr_extents())),
            None => (u64::from(core.nextents.get()), u64::from(core.anextents.get())),
        };
        let at = core.fork_offset().min(literal.len());
        let mut count = ExtentCount::default();
        if data {
            let fork = if core.forkoff == 0 { literal } else { &literal[..at] };
            count.add(self.fork(fork, core.format, data_extents));
        }
        if attributes {
            count.add(self.fork(&literal[at..], core.aformat.cast_unsigned(), attr_extents));
        }
        self.found.total.add(count);
        if self.scan.options.verbose {
            self.found.lines.push(Line::Inode(self.ino, count));
        }
    }

    fn fork(&mut self, bytes: &[u8], form: u8, extents: u64) -> ExtentCount {
        let mut counter = Counter::default();
        match form {
            _ if extents == 0 => {}
            format::EXTENTS => {
                let room = bytes.len() / RawExtent::SIZE;
                let count = usize::try_from(extents).unwrap_or(usize::MAX).min(room);
                counter.records(RawExtent::prefix_slice(bytes, count).map_or(&[], |(records, _)| records));
            }
            format::BTREE => self.root(bytes, &mut counter),
            _ => {}
        }
        counter.count
    }

    fn root(&mut self, bytes: &[u8], counter: &mut Counter) {
        let Some((root, rest)) = RawBmdrRoot::prefix(bytes) else { return };
        let count = usize::from(root.numrecs.get()).min(rest.len() / RawExtent::SIZE);
        let Some(below) = u32::from(root.level.get()).checked_sub(1) else {
            return counter.records(RawExtent::prefix_slice(rest, count).map_or(&[], |(records, _)| records));
        };
        let layout = Layout::of_block(self.scan.reader.geometry(), BtreeKind::Bmbt).in_inode(bytes.len());
        for index in 0..count {
            let pointer = bytes.get(layout.pointer(index)).and_then(|field| Be64::read_from_bytes(field).ok());
            if let Some(fsb) = pointer {
                self.block(fsb.get(), below, counter);
            }
        }
    }

    fn block(&mut self, fsb: u64, level: u32, counter: &mut Counter) {
        let geometry = self.scan.reader.geometry();
        counter.blocks += 1;
        // no sound tree is deeper, or has more blocks than the device
        if counter.blocks > geometry.dblocks || level > geometry.btree(BtreeKind::Bmbt).max_levels {
            return;
        }
        let request = self.scan.reader.fsb_daddr(fsb).map(|daddr| {
            let request = Request::new(geometry, BlockKind::Btree(BtreeKind::Bmbt), daddr);
            request.of_inode(Ino(self.ino)).at_level(level)
        });
        let Some(bytes) = request.and_then(|request| self.scan.reader.request(&request)) else {
            let (agno, agbno) = (fsb >> geometry.agblklog, fsb & ((1 << geometry.agblklog) - 1));
            return self.found.lines.push(Line::Note(format!("can't read btree block {agno}/{agbno}")));
        };
        let layout = Layout::of_block(geometry, BtreeKind::Bmbt);
        let count = RawLongBlock::prefix(&bytes).map_or(0, |(header, _)| header.numrecs.get());
        if usize::from(count) > layout.most(level) {
            return self.found.lines.push(Line::Note(format!("invalid numrecs ({count}) in bmapbtd block")));
        }
        if level == 0 {
            let records = bytes.get(layout.record(0).start..);
            let records = records.and_then(|bytes| RawExtent::prefix_slice(bytes, usize::from(count)));
            return counter.records(records.map_or(&[], |(records, _)| records));
        }
        for index in 0..usize::from(count) {
            let pointer = bytes.get(layout.pointer(index)).and_then(|field| Be64::read_from_bytes(field).ok());
            if let Some(fsb) = pointer {
                self.block(fsb.get(), level - 1, counter);
            }
        }
    }
}

impl Fragmentation {
    /// The share of extents that are too many, in percent.
    #[allow(clippy::cast_precision_loss)] // shown with two decimals
    pub fn factor(&self) -> f64 {
        let ExtentCount { actual, ideal } = self.total;
        if actual == 0 { 0.0 } else { (actual - ideal) as f64 * 100.0 / actual as f64 }
    }

    /// Extents of a file on the average; `None` when there are no files.
    #[allow(clippy::cast_precision_loss)] // shown with two decimals
    pub fn average(&self) -> Option<f64> {
        let ExtentCount { actual, ideal } = self.total;
        (ideal > 0).then(|| actual as f64 / ideal as f64)
    }
}

impl Answer for Fragmentation {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for line in &self.lines {
            match line {
                Line::Inode(ino, count) => {
                    let ino = ino.cast_signed();
                    writeln!(out, "inode {ino} actual {} ideal {}", count.actual, count.ideal)?;
                }
                Line::Note(note) => writeln!(out, "{note}")?,
            }
        }
        let ExtentCount { actual, ideal } = self.total;
        let factor = self.factor();
        writeln!(out, "actual {actual}, ideal {ideal}, fragmentation factor {factor:.2}%")?;
        writeln!(out, "Note, this number is largely meaningless.")?;
        let average = self.average().map_or("-nan".to_owned(), |average| format!("{average:.2}"));
        writeln!(out, "Files on this filesystem average {average} extents per file")
    }

    fn json(&self) -> Value {
        let ExtentCount { actual, ideal } = self.total;
        let mut value = json!({
            "actual": actual,
            "ideal": ideal,
            "factor_percent": self.factor(),
            "extents_per_file": self.average(),
        });
        let inode = |line: &Line| match line {
            Line::Inode(ino, count) => Some(json!({ "ino": ino, "actual": count.actual, "ideal": count.ideal })),
            Line::Note(_) => None,
        };
        let inodes: Vec<Value> = self.lines.iter().filter_map(inode).collect();
        if !inodes.is_empty() {
            value["inodes"] = Value::Array(inodes);
        }
        value
    }
}
