//! `blockget`: what every block is used for, and what does not fit.

use rayon::prelude::*;

use super::events::Sink;
use super::group::{Scan, scan_group};
use super::message::{Message, Space};
use super::name_table::NameTable;
use super::options::ScanOptions;
use super::reader::Reader;
use super::replay::{Placed, SpaceMap, bring_together};
use super::report::ScanReport;
use super::usage::BlockUsage;
use crate::geometry::Geometry;
use crate::image::Image;
use crate::report::{Observer, Unit};

/// Finds out what every block is used for, group by group on all processors, and what does not fit.
///
/// What cannot be read or fails its own checks is told to `observer`; the findings are in the report, in the order of a
/// scan from the first group to the last.
pub fn scan_usage(image: &Image, observer: &dyn Observer, options: &ScanOptions) -> (BlockUsage, ScanReport) {
    let sb = image.superblock().sb;
    let scan = Scan { reader: Reader::new(image, observer), options, sb: &sb };
    observer.begin("scanning inodes", sb.icount.get(), Unit::Items("inodes"));
    let groups = present_groups(image);
    let mut sinks: Vec<Sink> = (0..groups).into_par_iter().flat_map_iter(|agno| scan_group(&scan, agno)).collect();
    observer.end();
    let geometry = image.geometry();
    let mut maps = bring_together(&sinks, geometry, options);
    for sink in &mut sinks {
        (sink.claims, sink.elsewhere) = (Vec::new(), Vec::new());
    }
    let report = report(geometry, options, &mut sinks, &mut maps);
    let names = options.names.then(|| NameTable::new(&sb, geometry, sinks.into_iter().map(|sink| sink.names), options));
    (BlockUsage::new(maps, names), report)
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

impl BlockUsage {
    fn new(maps: Vec<SpaceMap>, names: Option<NameTable>) -> Self {
        let mut usage = BlockUsage::default();
        usage.names = names;
        for map in maps {
            let runs = map.cells.into_runs();
            match map.space {
                Space::Group(agno) => usage.add_group(agno, runs),
                Space::Realtime => {}
            }
        }
        usage
    }
}
