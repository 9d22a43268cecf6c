//! `blockget`: what every block is used for, and what does not fit.

use std::sync::Arc;

use rayon::prelude::*;

use super::board::Board;
use super::events::Sink;
use super::group::{Scan, scan_group};
use super::message::{Message, Space};
use super::name_table::NameTable;
use super::options::ScanOptions;
use super::reader::Reader;
use super::replay::{Placed, SpaceMap, bring_together};
use super::report::ScanReport;
use super::usage::BlockUsage;
use crate::error::Error;
use crate::geometry::Geometry;
use crate::image::Image;
use crate::report::{Observer, Unit};

/// Finds out what every block is used for, group by group on all processors, and what does not fit.
///
/// What cannot be read or fails its own checks is told to `observer`; the findings are in the report, in the order of a
/// scan from the first group to the last.
pub fn scan_usage(image: &Image, observer: &dyn Observer, options: &ScanOptions) -> (BlockUsage, ScanReport) {
    let geometry = image.geometry();
    let board = Arc::new(Board::new(geometry, present_groups(image)));
    let told_one_by_one = options.verbose || !options.blocks.is_empty() || !options.inodes.is_empty();
    if !told_one_by_one {
        let mut sinks = scan_groups(image, observer, options, Some(board.clone()));
        if !board.is_torn() {
            let report = report(geometry, options, &mut sinks, &mut []);
            return (BlockUsage { board, names: names_of(image, options, sinks) }, report);
        }
    }
    // what does not fit is found in order; the observer has heard all it has to
    let quiet = Quiet(observer);
    let observer: &dyn Observer = if told_one_by_one { observer } else { &quiet };
    let board = Arc::new(Board::new(geometry, present_groups(image)));
    let mut sinks = scan_groups(image, observer, options, None);
    let mut maps = bring_together(&sinks, geometry, options);
    for sink in &mut sinks {
        (sink.claims, sink.elsewhere) = (Vec::new(), Vec::new());
    }
    let report = report(geometry, options, &mut sinks, &mut maps);
    for map in maps {
        if let Space::Group(agno) = map.space {
            map.cells.into_runs().for_each(|(start, len, cell)| board.put(agno, start, len, cell));
        }
    }
    (BlockUsage { board, names: names_of(image, options, sinks) }, report)
}

/// Scans all groups; claims are noted on the board, or kept when there is none.
fn scan_groups(image: &Image, observer: &dyn Observer, options: &ScanOptions, board: Option<Arc<Board>>) -> Vec<Sink> {
    let sb = image.superblock().sb;
    let scan = Scan { reader: Reader::new(image, observer), options, sb: &sb, board };
    observer.begin("scanning inodes", sb.icount.get(), Unit::Items("inodes"));
    let groups = (0..present_groups(image)).into_par_iter();
    let sinks = groups.flat_map_iter(|agno| scan_group(&scan, agno)).collect();
    observer.end();
    sinks
}

fn names_of(image: &Image, options: &ScanOptions, sinks: Vec<Sink>) -> Option<NameTable> {
    let events = sinks.into_iter().map(|sink| sink.names);
    options.names.then(|| NameTable::new(&image.superblock().sb, image.geometry(), events, options))
}

/// Shows progress, and tells nothing twice.
struct Quiet<'a>(&'a dyn Observer);

impl Observer for Quiet<'_> {
    fn begin(&self, what: &str, total: u64, unit: Unit) {
        self.0.begin(what, total, unit);
    }

    fn advance(&self, units: u64) {
        self.0.advance(units);
    }

    fn end(&self) {
        self.0.end();
    }

    fn warn(&self, _problem: &Error) {}
}

/// Groups that the superblock promises, as far as the device can have them: one that does not exist is told, not all.
pub(super) fn present_groups(image: &Image) -> u32 {
    let geometry = image.geometry();
    let bytes = geometry.blocks_to_bytes(u64::from(geometry.agblocks)).unwrap_or(u64::MAX);
    let present = image.data().len().div_ceil(bytes).saturating_add(1);
    geometry.agcount.min(u32::try_from(present).unwrap_or(u32::MAX))
}

fn report(geometry: &Geometry, options: &ScanOptions, sinks: &mut [Sink], maps: &mut [SpaceMap]) -> ScanReport {
    let mut report = ScanReport { prefix: options.prefix.clone(), ..ScanReport::default() };
    for ino in &options.inodes {
        if ino >> geometry.inodes.agino_log >= u64::from(geometry.agcount) {
            report.messages.push(Message::text(format!("-i {} bad inode number", ino.cast_signed())));
        }
    }
    let mut placed: Vec<Placed> = maps.iter_mut().flat_map(|map| std::mem::take(&mut map.messages)).collect();
    // stable: what one claim gave stays in its order
    placed.sort_by_key(|(sink, seq, _)| (*sink, *seq));
    let mut placed = placed.into_iter().peekable();
    let (mut unknown, mut yelled) = (0, false);
    let groups: Vec<u32> = sinks.iter().map(|sink| sink.agno).collect();
    for (index, sink) in sinks.iter_mut().enumerate() {
        for (seq, message) in std::mem::take(&mut sink.messages) {
            while let Some((_, _, message)) = placed.next_if(|(at, before, _)| *at == index && *before < seq) {
                report.messages.push(message);
            }
            report.messages.push(message);
        }
        while let Some((_, _, message)) = placed.next_if(|(at, _, _)| *at == index) {
            report.messages.push(message);
        }
        unknown += sink.unknown_versions;
        let last = groups.get(index + 1) != Some(&sink.agno);
        if last && unknown > 4 && !yelled && unknown >= sink.agno {
            yelled = true;
            report.messages.push(Message::text("WARNING: this may be a newer XFS filesystem."));
        }
        report.errors += sink.errors;
        report.serious += sink.serious;
    }
    report.errors += maps.iter().map(|map| map.errors).sum::<u64>();
    report
}
