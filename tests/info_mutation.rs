//! xfskit-info's engine on damaged superblocks and images: no panic, no run above a second, and the exit codes that its man
//! page documents. Seeded; a fixed share, or 20,000 of each kind with `XFSKIT_FULL=1`.

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;
use xfskit::device::{ByteRange, Device, FileDevice, MemoryDevice, OpenFile, PartDevice};
use xfskit::error::Error;
use xfskit::geometry::Geometry;
use xfskit::info::{Subject, geometry_text, inspect};
use xfskit::ondisk::{OnDisk, RawSuperblock, crc};

/// Runs of each kind, in full and in short.
const RUNS: (u32, u32) = (20_000, 1_500);
/// One run of so many also goes through the binary.
const BINARY_SHARE: u32 = 250;
/// The longest that a run may take.
const LIMIT: Duration = Duration::from_secs(1);

/// Filesystems to damage: name, arguments, whether the log is in a file of its own.
const BASES: [(&str, &[&str]); 7] = [
    ("default", &[]),
    ("v4", &["-m", "crc=0"]),
    ("small", &["-b", "size=1k", "-m", "reflink=0,rmapbt=0"]),
    ("large", &["-b", "size=64k", "-s", "size=4k"]),
    ("external", &["-l", "logdev=log,size=64m"]),
    ("groups", &["-m", "metadir=1", "-r", "rtdev=rt"]),
    ("v1-log", &["-m", "crc=0", "-l", "version=1,lazy-count=0"]),
];

/// splitmix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let index = self.below(list.len() as u64);
        &list[usize::try_from(index).expect("invariant: an index of a list")]
    }

    /// A number as damage and malice make them: borders, powers of two and their neighbours, noise.
    fn number(&mut self) -> u64 {
        match self.below(6) {
            0 => *self.pick(&[0, 1, u64::MAX, u64::from(u32::MAX), 0x7fff_ffff, 0x8000_0000]),
            1 | 2 => (1_u64 << self.below(64)).wrapping_add(self.below(3)).wrapping_sub(1),
            3 => self.below(300),
            _ => self.next() >> self.below(64),
        }
    }
}

/// A filesystem as the devices that hold it, in memory.
struct Base {
    name: &'static str,
    data: MemoryDevice,
    log: Option<MemoryDevice>,
    sb: RawSuperblock,
}

/// Copies what a file holds into memory; holes take none.
fn load(path: &Path) -> MemoryDevice {
    let file = FileDevice::open(path, OpenFile::READ).expect("the image is readable");
    let memory = MemoryDevice::new(file.len());
    copy(&file, &memory);
    memory
}

fn copy(from: &dyn Device, to: &dyn Device) {
    for range in from.allocated_ranges() {
        let ByteRange { start, len } = range.expect("a device knows what it holds");
        let mut piece = vec![0; usize::try_from(len.min(1 << 20)).expect("a MiB")];
        for at in (start..start + len).step_by(1 << 20) {
            let part = usize::try_from((start + len - at).min(1 << 20)).expect("a MiB");
            from.read_at(at, &mut piece[..part]).expect("readable");
            if piece[..part].iter().any(|&byte| byte != 0) {
                to.write_at(at, &piece[..part]).expect("writable");
            }
        }
    }
}

fn bases(folder: &Path) -> Vec<Base> {
    let make = |&(name, arguments): &(&'static str, &[&str])| {
        for (file, size) in [(name, 320 << 20), ("log", 64 << 20), ("rt", 64 << 20)] {
            fs::remove_file(folder.join(file)).ok();
            File::create(folder.join(file)).and_then(|file| file.set_len(size)).expect("a file can be made");
        }
        let mut mkfs = Command::new(env!("CARGO_BIN_EXE_xfskit-mkfs"));
        let output = mkfs.args(["-q", "-f", "--unsupported"]).args(arguments).arg(name).current_dir(folder).output();
        let output = output.expect("the tool can be started");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let data = load(&folder.join(name));
        let log = (name == "external").then(|| load(&folder.join("log")));
        let sb = superblock(&data);
        Base { name, data, log, sb }
    };
    BASES.iter().map(make).collect()
}

fn superblock(data: &dyn Device) -> RawSuperblock {
    let mut sector = [0; 512];
    data.read_at(0, &mut sector).expect("readable");
    *RawSuperblock::prefix(&sector).expect("a sector holds a superblock").0
}

/// Fields that sizes, places and counts are computed from.
const AIMED: [&str; 34] = [
    "blocksize",
    "dblocks",
    "rblocks",
    "rextents",
    "logstart",
    "rextsize",
    "agblocks",
    "agcount",
    "rbmblocks",
    "logblocks",
    "versionnum",
    "sectsize",
    "inodesize",
    "inopblock",
    "blocklog",
    "sectlog",
    "inodelog",
    "inopblog",
    "agblklog",
    "rextslog",
    "inoalignmt",
    "unit",
    "width",
    "dirblklog",
    "logsectlog",
    "logsectsize",
    "logsunit",
    "features2",
    "features_incompat",
    "rgcount",
    "rgextents",
    "rgblklog",
    "rtstart",
    "rtreserved",
];

/// The primary sector with some fields set to something else; `stamped` with the CRC that goes with it.
fn mutated_sector(base: &Base, random: &mut Random, stamped: bool) -> Vec<u8> {
    let size = usize::from(base.sb.sectsize.get());
    let mut sector = vec![0; size];
    base.data.read_at(0, &mut sector).expect("readable");
    for _ in 0..=random.below(4) {
        let aimed = random.below(8) != 0;
        let name = *random.pick(&AIMED);
        let field = if aimed { RawSuperblock::FIELDS.iter().find(|field| field.name == name) } else { None };
        let field = field.unwrap_or_else(|| random.pick(RawSuperblock::FIELDS));
        let value = random.number().to_be_bytes();
        let bytes = &mut sector[field.offset..field.offset + field.size];
        let len = bytes.len().min(8);
        bytes[..len].copy_from_slice(&value[8 - len..]);
    }
    if stamped && base.sb.is_v5() {
        crc::stamp(&mut sector, RawSuperblock::CRC_OFFSET);
    }
    sector
}

/// Describes it, all of it and in every form, within the limit.
fn describe(what: &str, data: &dyn Device, log: Option<&dyn Device>) {
    let subject =
        Subject { name: "image".to_owned(), data, log, log_name: None, realtime_name: None, mounted_on: None };
    // time on a processor, so that other work of the machine does not count
    let clock = || clock_gettime(ClockId::ThreadCPUTime);
    let before = clock();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        inspect(&subject).map(|report| {
            let json = serde_json::to_string(&report).expect("a report is plain data");
            assert!(geometry_text(&report).lines().count() == 13 && json.starts_with('{'));
        })
    }));
    let after = clock();
    let seconds = u64::try_from(after.tv_sec - before.tv_sec).unwrap_or(0);
    assert!(seconds < LIMIT.as_secs() + 1 && (seconds == 0 || after.tv_nsec < before.tv_nsec), "{what}: too slow");
    match outcome {
        Ok(Ok(()) | Err(Error::Corrupt(_) | Error::Io { .. })) => {}
        Ok(Err(error)) => panic!("{what}: an error of another kind: {error}"),
        Err(_) => panic!("{what}: panicked"),
    }
}

/// The same through the binary: a code that is documented, in time.
fn describe_with_binary(what: &str, data: &dyn Device, folder: &Path) {
    let path = folder.join("mutated");
    File::create(&path).and_then(|file| file.set_len(data.len())).expect("a file can be made");
    copy(data, &FileDevice::open(&path, OpenFile::WRITE).expect("writable"));
    for option in ["--json", "--verbose"] {
        // another try where the machine was busy with something else
        let in_time = (0..4).any(|_| {
            let start = Instant::now();
            let output = Command::new(env!("CARGO_BIN_EXE_xfskit-info")).arg(option).arg(&path).output();
            let output = output.expect("the tool can be started");
            let code = output.status.code();
            assert!(matches!(code, Some(0 | 1)), "{what}: {code:?}, {}", String::from_utf8_lossy(&output.stderr));
            start.elapsed() < LIMIT
        });
        assert!(in_time, "{what}: too slow");
    }
}

fn runs() -> u32 {
    if std::env::var_os("XFSKIT_FULL").is_some() { RUNS.0 } else { RUNS.1 }
}

#[test]
fn mutated_superblocks() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let bases = bases(folder.path());
    for run in 0..runs() {
        let mut random = Random(u64::from(run));
        let base = random.pick(&bases);
        let what = format!("superblock {run} ({})", base.name);
        let sector = mutated_sector(base, &mut random, run % 2 == 0);
        let mut kept = vec![0; sector.len()];
        base.data.read_at(0, &mut kept).expect("readable");
        base.data.write_at(0, &sector).expect("writable");
        describe(&what, &base.data, base.log.as_ref().map(|log| log as &dyn Device));
        if run % BINARY_SHARE == 0 {
            describe_with_binary(&what, &base.data, folder.path());
        }
        base.data.write_at(0, &kept).expect("writable");
    }
}

#[test]
fn mutated_and_truncated_images() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let bases = bases(folder.path());
    for run in 0..runs() {
        let mut random = Random(u64::from(run) | 1 << 40);
        let base = random.pick(&bases);
        let what = format!("image {run} ({})", base.name);
        let undo: Vec<(bool, u64, Vec<u8>)> = (0..=random.below(6)).map(|_| damage(base, &mut random)).collect();
        let len = if random.below(3) == 0 { random.below(base.data.len()) } else { base.data.len() };
        let data = PartDevice::new(&base.data, ByteRange { start: 0, len }).expect("a part of the device");
        describe(&what, &data, base.log.as_ref().map(|log| log as &dyn Device));
        if run % BINARY_SHARE == 0 {
            describe_with_binary(&what, &data, folder.path());
        }
        for (on_log, offset, bytes) in undo.into_iter().rev() {
            device(base, on_log).write_at(offset, &bytes).expect("writable");
        }
    }
}

fn device(base: &Base, on_log: bool) -> &dyn Device {
    base.log.as_ref().filter(|_| on_log).map_or(&base.data as &dyn Device, |log| log as &dyn Device)
}

/// Damages one place: a superblock, the log's records, or anywhere. What was there before.
fn damage(base: &Base, random: &mut Random) -> (bool, u64, Vec<u8>) {
    let geometry = Geometry::assume(&base.sb);
    let group = u64::from(geometry.agblocks) << geometry.blocklog;
    let on_log = base.log.is_some() && random.below(2) == 0;
    let log_start = geometry.log_daddr().map_or(0, |daddr| daddr.0 * 512);
    let log_bytes = geometry.log_basic_blocks() * 512;
    let start = if base.log.is_some() { 0 } else { log_start };
    let offset = match random.below(4) {
        0 if !on_log => group * random.below(u64::from(geometry.agcount)),
        1 => start + 512 * random.below(8),
        2 => start + 512 * random.below(log_bytes / 512),
        _ => random.below(device(base, on_log).len()),
    };
    let offset = (offset + random.below(400)).min(device(base, on_log).len() - 8);
    let mut before = vec![0; usize::try_from(1 + random.below(64)).expect("small")];
    let room = usize::try_from(device(base, on_log).len() - offset).unwrap_or(usize::MAX);
    before.truncate(room);
    device(base, on_log).read_at(offset, &mut before).expect("readable");
    let header_word = random.below(3) == 0;
    let bytes: Vec<u8> = (0..before.len())
        .map(|index| match (header_word, random.below(4)) {
            // a record's magic number where none was
            (true, _) if index < 4 => 0xfeed_babe_u32.to_be_bytes()[index],
            (_, 0) => 0xff,
            (_, 1) => 0,
            _ => u8::try_from(random.below(256)).expect("a byte"),
        })
        .collect();
    device(base, on_log).write_at(offset, &bytes).expect("writable");
    (on_log, offset, before)
}
