//! Journals of kernels with random changes, half of them with the CRCs of their records made right again: every view goes through
//! them to the end, soon and in little memory. A fixed, seeded share, or 20,000 with `XFSKIT_FULL=1`.

#![allow(clippy::cast_possible_truncation)] // small numbers

mod journals;

use std::io::Write;
use std::time::Duration;

use journals::{JOURNALS, unpacked};
use rustix::time::{ClockId, clock_gettime};
use xfskit::device::{Device, MemoryDevice, OverlayDevice};
use xfskit::error::DeviceRole;
use xfskit::journal::{CrcState, LogArea, Piece, Records};
use xfskit::logprint::{Detail, Journal, Output, Request, View, print};
use xfskit::ondisk::log_record::RawLogRecHeader;

/// No journal may take longer, of the processor's time.
const LIMIT: Duration = Duration::from_secs(30);
/// The memory that all of it may take, in KiB; the journals themselves and the pages of changes are in it.
const MEMORY: u64 = 512 << 10;
const BLOCK: u64 = 512;

/// A generator that gives the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

/// Counts what is written, and keeps nothing.
struct Sink(u64);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What this thread has had of the processor.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("below a second"))
}

fn runs() -> u64 {
    if std::env::var_os("XFSKIT_FULL").is_some() { 20_000 } else { 60 }
}

/// One of the changes that a journal gets: a byte, a word of a header or of an operation, a block over another, zeroes.
fn change(device: &dyn Device, random: &mut Random, from: u64, blocks: u64) {
    let total = device.len() / BLOCK;
    let block = (from + random.below(blocks)) % total;
    let mut at = block * BLOCK + random.below(BLOCK - 8);
    let bytes = match random.below(6) {
        0 => vec![random.next().to_le_bytes()[0]],
        1 => random.next().to_be_bytes()[..4].to_vec(),
        2 => u32::MAX.to_be_bytes().to_vec(),
        3 => {
            at = block * BLOCK;
            let mut other = vec![0; 512];
            device.read_at((from + random.below(blocks)) % total * BLOCK, &mut other).expect("memory can be read");
            other
        }
        4 => vec![0; 8],
        // small numbers, as counts and lengths are
        _ => u32::try_from(random.below(300)).expect("below 300").to_le_bytes().to_vec(),
    };
    device.write_at(at, &bytes).expect("memory can be written");
}

/// Makes the CRCs of all records right that still look like records.
fn reseal(device: &dyn Device) {
    let area = LogArea::of_copy(device).expect("there are blocks");
    let offset = std::mem::offset_of!(RawLogRecHeader, crc) as u64;
    for piece in Records::new(&area, 0, area.blocks()) {
        if let Piece::Record(record) = piece
            && let CrcState::Wrong { computed } = record.crc
        {
            device.write_at(u64::from(record.block) * BLOCK + offset, &computed.to_le_bytes()).expect("memory");
        }
    }
}

#[test]
fn mutated_journals() {
    let folder = tempfile::tempdir().expect("a folder");
    let bases: Vec<(MemoryDevice, u64, u64)> = JOURNALS
        .iter()
        .filter(|journal| journal.arguments == ["-f"])
        .map(|journal| {
            let bytes = std::fs::read(unpacked(journal, folder.path())).expect("it was just written");
            let device = MemoryDevice::new(bytes.len() as u64);
            device.write_at(0, &bytes).expect("memory can be written");
            (device, journal.tail, journal.head - journal.tail)
        })
        .collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut faults, mut written) = (0, 0);
    for run in 0..runs() {
        let (base, tail, blocks) = &bases[random.below(bases.len() as u64) as usize];
        let device = OverlayDevice::new(base);
        for _ in 0..=random.below(8) {
            change(&device, &mut random, *tail, *blocks);
        }
        if run % 2 == 0 {
            reseal(&device);
        }
        let views = [View::Checkpoints, View::Intents, View::Summary, View::Records, View::Headers];
        let request = Request {
            view: views[random.below(views.len() as u64) as usize],
            detail: Detail { bytes: random.below(4) == 0, ..Detail::FIELDS },
            all: random.below(4) == 0,
            start: (random.below(8) == 0).then(|| u32::try_from(random.below(40_000)).expect("a small number")),
            saved_words: random.below(8) == 0,
            ..Request::default()
        };
        let begin = worked();
        let area = LogArea::of_copy(&device).expect("there are blocks");
        let journal = Journal::new(area, None, DeviceRole::Log);
        let mut sink = Sink(0);
        let mut output = Output::new(&mut sink, random.below(2) == 0);
        faults += print(&journal, &request, &mut output).expect("a sink takes everything").faults;
        written += sink.0;
        let time = worked().saturating_sub(begin);
        assert!(time < LIMIT, "run {run}: {time:?} for {request:?}");
    }
    assert!(faults > runs() / 4, "{faults} faults in {} runs: the changes do not hit", runs());
    assert!(written > runs() * 1000, "hardly anything was shown");
    assert!(peak() < MEMORY, "{} KiB of memory", peak());
}

/// The most memory that the process has had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
