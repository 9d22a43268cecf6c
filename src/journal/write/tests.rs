#![allow(clippy::cast_possible_truncation)] // test logs are small

use std::collections::HashMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use zerocopy::FromZeros;

use super::*;
use crate::device::{Device, Event, FaultDevice, MemoryDevice};
use crate::error::{DeviceRole, Error, Result};
use crate::geometry::{Daddr, Geometry, Ino, Lsn};
use crate::journal::{
    BufferKey, Checkpoint, Checkpoints, Cil, CilOptions, CleanLog, Commit, CrcState, FormatItem, ItemKey, ItemSize,
    LogArea, LogState, LoggedDone, LoggedIntent, Records, Regions, Step, WriterLayout, scan,
};
use crate::ondisk::RawSuperblock;
use crate::ondisk::log_item::LogItemType;
use crate::ondisk::log_record::{BBSIZE, MAX_ICLOGS};

const LAYOUTS: [WriterLayout; 3] = [WriterLayout::USUAL, WriterLayout::BIG_ENDIAN, WriterLayout::I386];

type ItemRegions = Vec<Vec<u8>>;

/// Items whose regions are known beforehand.
#[derive(Default)]
struct Prepared(HashMap<ItemKey, ItemRegions>);

impl FormatItem for Prepared {
    fn format(&self, key: &ItemKey, regions: &mut Regions) -> Result<()> {
        let prepared = self.0.get(key).ok_or_else(|| Error::Internal("not prepared".to_owned()))?;
        prepared.iter().for_each(|region| regions.push(region));
        Ok(())
    }
}

/// A log that fills its device.
struct Log {
    geometry: Geometry,
    device: Arc<FaultDevice<MemoryDevice>>,
}

impl Log {
    /// A log of so many blocks of 4096 bytes that has come to `cycle`.
    fn new(fs_blocks: u32, version: u32, stripe_unit: u32, cycle: u32) -> Self {
        let mut sb = RawSuperblock::new_zeroed();
        sb.versionnum = (4 | if version == 2 { 0x400 } else { 0 }).into();
        (sb.blocksize, sb.blocklog) = (4096.into(), 12);
        (sb.agblocks, sb.agcount, sb.dblocks) = (4096.into(), 1.into(), 4096.into());
        (sb.logblocks, sb.uuid, sb.logsunit) = (fs_blocks.into(), [7; 16], stripe_unit.into());
        let geometry = Geometry::assume(&sb);
        let device = MemoryDevice::new(u64::from(fs_blocks) * 4096);
        for (block, bytes) in CleanLog::new(&geometry, cycle).pieces() {
            device.write_at(u64::from(block) * BBSIZE as u64, &bytes).expect("on the device");
        }
        Log { geometry, device: Arc::new(FaultDevice::new(device).recording()) }
    }

    fn area(&self) -> LogArea<'_> {
        LogArea::new(&*self.device, &self.geometry).expect("the log lies on its device")
    }

    fn writer(&self, record_size: u32, layout: WriterLayout) -> LogWriter {
        let position = LogPosition::after(&scan(&self.area()).expect("a sound log"));
        let options = LogWriterOptions { record_size, layout };
        LogWriter::open(self.device.clone(), Vec::new(), &self.geometry, position, options).expect("a sound log")
    }

    /// The checkpoints between two points; anything that is wrong is an error.
    fn checkpoints(&self, from: Lsn, to: Lsn, layout: WriterLayout, tail: Lsn) -> Vec<Checkpoint> {
        let area = self.area();
        let expected = if layout == WriterLayout::I386 { CrcState::MatchesI386 } else { CrcState::Matches };
        let mut found = Vec::new();
        for step in Checkpoints::new(&area, Records::between(&area, from.block(), to.block())) {
            match step {
                Step::Checkpoint(checkpoint) => found.push(*checkpoint),
                Step::Record(record) => {
                    assert!(record.crc == expected && record.is_whole(), "{:?}", record.header);
                    assert_eq!((record.tail_lsn(), record.header.fmt.get()), (tail, layout.format()));
                }
                other => panic!("{other:?}"),
            }
        }
        found
    }
}

fn buffer(daddr: u64) -> ItemKey {
    ItemKey::Buffer(BufferKey { device: DeviceRole::Data, daddr: Daddr(daddr), len: 4096 })
}

/// Regions of an item: the first says how many there are, as every item does.
fn item(layout: WriterLayout, kind: LogItemType, bodies: &[Vec<u8>]) -> ItemRegions {
    let number = |number: u16| match layout.order {
        crate::journal::Order::Little => number.to_le_bytes(),
        crate::journal::Order::Big => number.to_be_bytes(),
    };
    let mut regions = bodies.to_vec();
    let head = [number(kind.number()), number(regions.len() as u16)].concat();
    regions[0].splice(0..0, head);
    regions
}

fn padded(regions: &ItemRegions) -> ItemRegions {
    let pad = |region: &Vec<u8>| {
        let mut region = region.clone();
        region.resize(region.len().next_multiple_of(4), 0);
        region
    };
    regions.iter().map(pad).collect()
}

fn regions_of(checkpoint: &Checkpoint) -> Vec<ItemRegions> {
    checkpoint.items().map(|item| item.all_regions().map(<[u8]>::to_vec).collect()).collect()
}

/// Bodies of one to four regions, of which a few are long.
fn any_bodies() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let len = prop_oneof![8 => 1..200usize, 3 => 200..5000usize, 1 => 5000..90_000usize];
    let region =
        (len, any::<u8>()).prop_map(|(len, seed)| (0..len).map(|at| seed.wrapping_add(at as u8) | 1).collect());
    vec(region, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// What is written is read again, and by a scan of the log too: in all versions, layouts, sizes of records and stripe
    /// units, however often the log goes round.
    #[test]
    fn checkpoints_come_back(
        version in 1..=2u32, layout in 0..3usize, size in 0..5u32, unit in 0..4usize, cycle in 1..9u32,
        checkpoints in vec(vec(any_bodies(), 1..12), 1..16),
    ) {
        let (size, unit) = if version == 1 {
            (16_384 << (size % 2), 0)
        } else {
            (16_384 << size, [0, 4096, 16_384, 12_288][unit])
        };
        let layout = LAYOUTS[layout];
        // CleanLog leaves logs of version 1 in their first cycle alone
        let cycle = if version == 1 { 1 } else { cycle };
        let log = Log::new(600, version, unit, cycle);
        let mut writer = log.writer(size, layout);
        let mut previous = None;
        for bodies in &checkpoints {
            let (mut prepared, mut commit, mut expected) = (Prepared::default(), Commit::default(), Vec::new());
            for (bodies, daddr) in bodies.iter().zip(0..) {
                let regions = item(layout, LogItemType::Buf, bodies);
                commit.relogged.push((buffer(daddr), ItemSize::of(&regions)));
                expected.push(padded(&regions));
                prepared.0.insert(buffer(daddr), regions);
            }
            let mut cil = Cil::new(CilOptions::of(&log.geometry));
            cil.commit(commit).expect("sound");
            let taken = cil.take().expect("not empty");
            let (start, tail) = (writer.head(), previous.unwrap_or(writer.head()));
            let free = writer.free_bytes(tail);
            if free < taken.bytes() + writer.checkpoint_overhead(taken.bytes()) {
                prop_assert!(writer.write_checkpoint(&taken, &prepared, tail).is_err());
                previous = None;
                continue;
            }
            let written = writer.write_checkpoint(&taken, &prepared, tail).expect("there is room");
            prop_assert!(written.bytes <= taken.bytes() + writer.checkpoint_overhead(taken.bytes()));
            prop_assert_eq!(writer.free_bytes(tail), free - written.bytes);
            if unit != 0 {
                prop_assert_eq!(u64::from(writer.head().block()) * BBSIZE as u64 % u64::from(unit), 0);
            }
            let found = log.checkpoints(start, writer.head(), layout, tail);
            prop_assert_eq!(found.len(), 1);
            prop_assert!(found[0].is_complete() && !found[0].damaged && found[0].order == layout.order);
            prop_assert_eq!((found[0].lsn, found[0].commit_lsn), (written.start, Some(written.commit)));
            prop_assert_eq!((start, found[0].records), (written.start, written.records));
            prop_assert_eq!(regions_of(&found[0]), expected);
            let state = scan(&log.area()).expect("a sound log");
            prop_assert_eq!((state.state, state.torn), (LogState::Dirty, None));
            prop_assert_eq!((state.head, state.tail), (writer.head().block(), tail.block()));
            prop_assert_eq!(LogPosition::after(&state).lsn(), writer.head());
            previous = Some(written.start);
        }
        let (statistics, tail) = (*writer.statistics(), writer.head());
        prop_assert!(statistics.totals.sum().bytes < statistics.bytes || statistics.checkpoints == 0);
        prop_assert!(statistics.records >= statistics.checkpoints);
        prop_assert_eq!(statistics.since(&statistics), LogStatistics::default());
        prop_assert_eq!(statistics.since(&LogStatistics::default()), statistics);
        writer.write_unmount(tail).expect("there is room");
        let state = scan(&log.area()).expect("a sound log");
        prop_assert_eq!((state.state, state.head), (LogState::Clean, writer.head().block()));
        prop_assert_eq!(LogPosition::after(&state).lsn(), writer.head());
    }

    /// Each record names the one before it, has its own cycle, and is filled with zeroes.
    #[test]
    fn records_are_chained(bodies in vec(any_bodies(), 1..20), unit in 0..2usize) {
        let unit = [0, 32_768][unit];
        let log = Log::new(1024, 2, unit, 3);
        let mut writer = log.writer(32_768, WriterLayout::USUAL);
        let start = writer.head();
        let mut previous = scan(&log.area()).expect("a sound log").last_record.block();
        for bodies in &bodies {
            let regions = item(WriterLayout::USUAL, LogItemType::Buf, bodies);
            let prepared = Prepared([(buffer(1), regions.clone())].into());
            let mut cil = Cil::new(CilOptions::of(&log.geometry));
            cil.commit(Commit { relogged: vec![(buffer(1), ItemSize::of(&regions))], ..Commit::default() }).expect("sound");
            let taken = cil.take().expect("not empty");
            if writer.free_bytes(start) < taken.bytes() + writer.checkpoint_overhead(taken.bytes()) {
                break;
            }
            writer.write_checkpoint(&taken, &prepared, start).expect("there is room");
        }
        let area = log.area();
        for piece in Records::between(&area, start.block(), writer.head().block()) {
            let crate::journal::Piece::Record(record) = piece else { panic!("{piece:?}") };
            prop_assert_eq!(record.header.prev_block.get(), previous);
            prop_assert_eq!(record.header.cycle.get(), record.lsn().cycle());
            prop_assert_eq!((record.header.size.get(), record.header.version.get()), (32_768, 2));
            let used: usize = record.ops().map(|op| op.expect("sound").contents.len() + 12).sum();
            prop_assert!(record.payload()[used..].iter().all(|byte| *byte == 0));
            previous = record.block;
        }
    }
}

/// What a device saw of a checkpoint of several records: each write, and the flushes between them.
#[test]
fn the_commit_is_written_last() {
    for (len, records) in [(1000, 1), (20_000, 1), (40_000, 2), (300_000, 10), (700_000, 22)] {
        let log = Log::new(1024, 2, 0, 3);
        let mut writer = log.writer(32_768, WriterLayout::USUAL);
        let regions = item(WriterLayout::USUAL, LogItemType::Buf, &[vec![1; len]]);
        let mut cil = Cil::new(CilOptions::of(&log.geometry));
        let commit = Commit { relogged: vec![(buffer(1), ItemSize::of(&regions))], ..Commit::default() };
        cil.commit(commit).expect("sound");
        let taken = cil.take().expect("not empty");
        let (start, tail) = (writer.head(), writer.head());
        log.device.take_events();
        let written = writer.write_checkpoint(&taken, &Prepared([(buffer(1), regions)].into()), tail).expect("room");
        assert_eq!(written.records, records);
        let events = log.device.take_events();
        assert_eq!((events.first(), events.last()), (Some(&Event::Flush), Some(&Event::Flush)));
        let mut at = u64::from(start.block()) * BBSIZE as u64;
        for pair in events[1..].chunks(2) {
            let [Event::Write { offset, bytes }, Event::Flush] = pair else { panic!("not a write and a flush") };
            assert_eq!(*offset, at);
            assert!(bytes.len() <= MAX_ICLOGS as usize * 32_768);
            at += bytes.len() as u64;
        }
        let Some(Event::Write { offset, .. }) = events.iter().rev().nth(1) else { panic!("no write") };
        assert_eq!(*offset, u64::from(written.commit.block()) * BBSIZE as u64);
    }
}

#[test]
fn other_devices_are_flushed_first() {
    let log = Log::new(1024, 2, 0, 1);
    let data = Arc::new(FaultDevice::new(MemoryDevice::new(4096)).recording());
    let position = LogPosition::after(&scan(&log.area()).expect("a sound log"));
    let options = LogWriterOptions::of(&log.geometry.log);
    let mut writer =
        LogWriter::open(log.device.clone(), vec![data.clone()], &log.geometry, position, options).expect("a sound log");
    assert!(writer.needs_cover(writer.head()));
    writer.write_unmount(writer.head()).expect("room");
    assert_eq!(data.take_events(), [Event::Flush]);
}

/// An item that is not what it announced leaves a checkpoint that never happened.
#[test]
fn a_wrong_size_is_found_before_the_commit() {
    let log = Log::new(1024, 2, 0, 1);
    let mut writer = log.writer(32_768, WriterLayout::USUAL);
    let regions = item(WriterLayout::USUAL, LogItemType::Buf, &[vec![1; 100]]);
    let mut cil = Cil::new(CilOptions::of(&log.geometry));
    let size = ItemSize { regions: 1, bytes: 100 };
    cil.commit(Commit { relogged: vec![(buffer(1), size)], ..Commit::default() }).expect("sound");
    let taken = cil.take().expect("not empty");
    let head = writer.head();
    assert!(matches!(
        writer.write_checkpoint(&taken, &Prepared([(buffer(1), regions)].into()), head),
        Err(Error::Internal(_))
    ));
    assert_eq!(writer.head(), head);
    assert_eq!(scan(&log.area()).expect("a sound log").state, LogState::Clean);
}

#[test]
fn the_log_is_never_filled_to_the_tail() {
    let log = Log::new(512, 2, 0, 1);
    let mut writer = log.writer(16_384, WriterLayout::USUAL);
    let tail = writer.head();
    let regions = item(WriterLayout::USUAL, LogItemType::Buf, &[vec![3; 30_000]]);
    let prepared = Prepared([(buffer(1), regions.clone())].into());
    let (mut written, mut checkpoints) = (0, 0);
    loop {
        let mut cil = Cil::new(CilOptions::of(&log.geometry));
        let commit = Commit { relogged: vec![(buffer(1), ItemSize::of(&regions))], ..Commit::default() };
        cil.commit(commit).expect("sound");
        let free = writer.free_bytes(tail);
        match writer.write_checkpoint(&cil.take().expect("not empty"), &prepared, tail) {
            Ok(checkpoint) => {
                written += checkpoint.bytes;
                checkpoints += 1;
            }
            Err(error) => {
                assert!(matches!(error, Error::Internal(_)));
                assert!(free < 70_000);
                break;
            }
        }
    }
    assert_eq!(writer.free_bytes(tail), writer.size() - written - BBSIZE as u64);
    assert_eq!(log.checkpoints(tail, writer.head(), WriterLayout::USUAL, tail).len(), checkpoints);
    assert_eq!(scan(&log.area()).expect("a sound log").tail, tail.block());
    // everything is in place now
    let tail = writer.head();
    assert_eq!(writer.free_bytes(tail), writer.size() - BBSIZE as u64);
}

#[test]
fn what_a_log_does_not_take_is_refused() {
    let open = |version, unit, record_size| {
        let log = Log::new(600, version, unit, 1);
        let position = LogPosition { cycle: 1, block: 2, previous: 0 };
        let options = LogWriterOptions { record_size, layout: WriterLayout::USUAL };
        LogWriter::open(log.device.clone(), Vec::new(), &log.geometry, position, options).is_ok()
    };
    assert!(open(1, 0, 32_768) && open(2, 0, 16_384) && open(2, 65_536, 65_536) && open(2, 0, 262_144));
    assert!(!open(1, 0, 65_536) && !open(2, 0, 8192) && !open(2, 65_536, 32_768) && !open(2, 0, 20_000));
    assert!(!open(2, 0, 524_288));
}

/// Intents of all checkpoints and their answers, in the order of the log.
fn intents_of(checkpoint: &Checkpoint) -> Vec<(LogItemType, u64)> {
    let items = checkpoint.items().filter_map(|item| item.kind().zip(item.intent_id()));
    items.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With whiteouts no checkpoint has an intent with its answer; without them, leaving those out gives the same items.
    #[test]
    fn whiteouts_leave_out_pairs_alone(steps in vec((0..9usize, any::<bool>(), any::<bool>()), 1..120)) {
        let kinds: Vec<LogItemType> = LogItemType::ALL.into_iter().filter(|kind| kind.done().is_some()).collect();
        let mut written: Vec<Vec<Checkpoint>> = Vec::new();
        for whiteouts in [true, false] {
            let log = Log::new(2048, 2, 0, 1);
            let mut writer = log.writer(32_768, WriterLayout::USUAL);
            let start = writer.head();
            let mut cil = Cil::new(CilOptions { whiteouts, ..CilOptions::of(&log.geometry) });
            let (mut pending, mut ids, mut inodes) = (Vec::new(), 100_u64, Prepared::default());
            let push = |cil: &mut Cil, inodes: &Prepared, writer: &mut LogWriter| {
                let used = cil.used();
                let Some(taken) = cil.take() else { return };
                assert_eq!(used, taken.bytes());
                writer.write_checkpoint(&taken, inodes, start).expect("room");
            };
            for (kind, answer, end) in &steps {
                let mut commit = Commit::default();
                // each step changes one of a few inodes, and logs an intent or answers the oldest
                let key = ItemKey::Inode(Ino(ids % 5));
                let regions = item(WriterLayout::USUAL, LogItemType::Inode, &[vec![ids as u8; ids as usize % 90]]);
                commit.relogged.push((key, ItemSize::of(&regions)));
                inodes.0.insert(key, regions);
                if *answer && !pending.is_empty() {
                    let (kind, id): (LogItemType, u64) = pending.remove(0);
                    let done = kind.done().expect("an intent");
                    commit.dones.push(LoggedDone { intent_id: id, kind: done, regions: vec![done_bytes(done, id)] });
                }
                let kind = kinds[*kind];
                ids += 1;
                prop_assert!(!cil.contains_intent(kind, ids));
                commit.intents.push(LoggedIntent { id: ids, kind, regions: vec![done_bytes(kind, ids)] });
                pending.push((kind, ids));
                cil.commit(commit).expect("sound");
                prop_assert!(cil.contains_intent(kind, ids));
                if *end {
                    push(&mut cil, &inodes, &mut writer);
                }
            }
            push(&mut cil, &inodes, &mut writer);
            prop_assert!(cil.is_empty() && cil.take().is_none());
            let counters = cil.counters();
            prop_assert_eq!(counters.marked, counters.skipped);
            prop_assert!(whiteouts || counters.marked == 0);
            written.push(log.checkpoints(start, writer.head(), WriterLayout::USUAL, start));
        }
        let [with, without] = &written[..] else { panic!("two runs") };
        prop_assert_eq!(with.len(), without.len());
        for (with, without) in with.iter().zip(without) {
            let intents = intents_of(with);
            let pairs = |list: &[(LogItemType, u64)]| -> Vec<(LogItemType, u64)> {
                let answered = list.iter().filter(|(kind, id)| kind.done().is_some_and(|done| list.contains(&(done, *id))));
                answered.copied().collect()
            };
            prop_assert!(pairs(&intents).is_empty());
            let left_out = pairs(&intents_of(without));
            let kept: Vec<ItemRegions> = without.items()
                .filter(|item| item.kind().zip(item.intent_id()).is_none_or(|(kind, id)| {
                    !left_out.contains(&(kind.intent().unwrap_or(kind), id))
                }))
                .map(|item| item.all_regions().map(<[u8]>::to_vec).collect())
                .collect();
            prop_assert_eq!(&regions_of(with), &kept);
            prop_assert!(with.is_complete() && without.is_complete());
        }
    }
}

/// An item of this type that refers to `id`, as intents and their answers do.
fn done_bytes(kind: LogItemType, id: u64) -> Vec<u8> {
    crate::ondisk::log_intent::RawDoneItem::<crate::ondisk::LittleEndian>::encode(kind, id)
}
