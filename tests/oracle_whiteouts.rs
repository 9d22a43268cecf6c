//! Journals of the engine with whiteouts and without: what is left out, and that a kernel makes the same of both.

#![allow(clippy::print_stdout, reason = "a test's report is its output")]

#[allow(dead_code, reason = "shared with the other oracle tests")]
#[path = "oracle/reference.rs"]
mod reference;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reference::{Reference, missing, mkfs, reference, run, said, unmount};
use tempfile::TempDir;
use xfskit::buffer::SearchEffort;
use xfskit::device::{Device, FileDevice, OpenFile};
use xfskit::geometry::Ino;
use xfskit::image::{Image, ImageDevices};
use xfskit::journal::{Checkpoint, Checkpoints, CilOptions, LogArea, Records, Step};
use xfskit::ondisk::attr_short::AttrNamespace;
use xfskit::ondisk::log_item::LogItemType;
use xfskit::ondisk::timestamp::Timestamp;
use xfskit::ondisk::{OnDisk, RawSuperblock};
use xfskit::transaction::StoreOptions;
use xfskit::volume::attributes::AttributeName;
use xfskit::volume::operation::{NewFile, Volume};

/// A folder in memory where there is one.
fn folder() -> TempDir {
    let memory = PathBuf::from("/dev/shm");
    let usual = || if memory.is_dir() { memory.clone() } else { std::env::temp_dir() };
    let parent = std::env::var_os("XFSKIT_WORK").map_or_else(usual, PathBuf::from);
    tempfile::Builder::new().prefix("xfskit-whiteouts.").tempdir_in(parent).expect("the folder can be written")
}

/// A new filesystem of features that this machine's kernel is sure to know.
fn made(path: &Path) {
    std::fs::File::create(path).and_then(|file| file.set_len(640 << 20)).expect("a sparse file");
    let features = ["-m", "rmapbt=1,reflink=1,autofsck=0", "-i", "exchange=0", "-n", "parent=0"];
    let mut mkfs = mkfs(features);
    let output = mkfs.args(["-q", "-f", "--unsupported", "-l", "size=32m"]).arg(path).output().expect("mkfs starts");
    assert!(output.status.success(), "{}", said(&output));
}

fn opened(path: &Path, whiteouts: bool, push_at: u64) -> Volume {
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(path, OpenFile::WRITE).expect("the file can be opened"));
    let options = StoreOptions {
        cil: Some(CilOptions { whiteouts, push_at }),
        now: Some(Timestamp { seconds: 1_700_000_000, nanoseconds: 0 }),
        ..StoreOptions::default()
    };
    Volume::open(ImageDevices::of_data(device), options).expect("a sound filesystem")
}

const FILE: NewFile = NewFile { mode: 0o100_644, uid: 0, gid: 0, rdev: 0, attributes: true };
const FOLDER: NewFile = NewFile { mode: 0o040_755, uid: 0, gid: 0, rdev: 0, attributes: false };

fn name(name: &[u8]) -> AttributeName<'_> {
    AttributeName { namespace: AttrNamespace::User, name }
}

fn value(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 % 251).to_le_bytes()[0]).collect()
}

/// Linux 7.3 sets what fits beside the inode at once. A value that needs a leaf takes the fork to that form first, which is
/// one step of the intent; one that needs blocks of its own takes another for these.
#[test]
fn intents_of_one_set() {
    let folder = folder();
    for (len, intents) in [(16, 0), (256, 2), (4096, 3), (65_536, 3)] {
        let image = folder.path().join("image");
        made(&image);
        let mut volume = opened(&image, false, 32 << 20);
        volume.log_attributes().expect("version 5");
        let ino = volume.create(volume.root(), b"file", &FILE).expect("there is room");
        volume.sync().expect("the log is in order");
        let before = *volume.store().log_statistics();
        volume.set_attribute(ino, &name(b"name"), &value(len)).expect("there is room");
        volume.sync().expect("the log is in order");
        let totals = volume.store().log_statistics().since(&before).totals;
        let found = (totals.of(LogItemType::Attri).items, totals.of(LogItemType::Attrd).items);
        assert_eq!(found, (intents, intents), "{len} bytes");
    }
}

/// Creates, sets attributes of all forms, replaces and removes some, and removes files; nothing is written to its place.
fn work(volume: &mut Volume, rounds: usize) {
    volume.log_attributes().expect("version 5");
    let root = volume.root();
    let dir = volume.create(root, b"folder", &FOLDER).expect("there is room");
    let mut files: Vec<Ino> = Vec::new();
    for round in 0..rounds {
        let file = format!("file{round}");
        let ino = volume.create(dir, file.as_bytes(), &FILE).expect("there is room");
        files.push(ino);
        for (number, len) in [10, 300, 5000, 40_000].into_iter().enumerate().take(1 + round % 4) {
            let attribute = format!("attribute{number}");
            volume.set_attribute(ino, &name(attribute.as_bytes()), &value(len + round)).expect("there is room");
        }
        volume.write(ino, 0, &value(10_000 * (round % 3))).expect("there is room");
        if round % 3 == 2 {
            let other = files[round / 2];
            volume.set_attribute(other, &name(b"attribute0"), &value(2000)).expect("there is room");
            volume.remove_attribute(ino, &name(b"attribute0")).expect("it is there");
        }
        if round % 5 == 4 {
            volume.unlink(dir, format!("file{}", round - 1).as_bytes()).expect("it is there");
        }
    }
}

/// The checkpoints in the journal of an image.
fn checkpoints(path: &Path) -> Vec<Checkpoint> {
    let device = Arc::new(FileDevice::open(path, OpenFile::READ).expect("the file can be opened"));
    let image = Image::open(ImageDevices::of_data(device), SearchEffort::Guesses).expect("a filesystem");
    let scan = image.journal().expect("a sound log");
    let area = LogArea::new(image.data(), image.geometry()).expect("a sound log");
    let steps = Checkpoints::new(&area, Records::between(&area, scan.tail, scan.head));
    let found = steps.filter_map(|step| match step {
        Step::Checkpoint(checkpoint) => Some(*checkpoint),
        Step::Record(_) => None,
        other => panic!("{other:?}"),
    });
    found.collect()
}

/// Intents that are answered in their own checkpoint.
fn pairs(checkpoint: &Checkpoint) -> HashSet<(LogItemType, u64)> {
    let items: HashSet<_> = checkpoint.items().filter_map(|item| item.kind().zip(item.intent_id())).collect();
    let answered = |(kind, id): &(LogItemType, u64)| kind.done().is_some_and(|done| items.contains(&(done, *id)));
    items.iter().filter(|item| answered(item)).copied().collect()
}

#[test]
fn whiteouts_leave_out_pairs_of_one_checkpoint() {
    let folder = folder();
    // small checkpoints, so that chains of transactions go over their ends
    let journal = |whiteouts| {
        let image = folder.path().join("image");
        made(&image);
        let mut volume = opened(&image, whiteouts, 20_000);
        work(&mut volume, 40);
        volume.sync().expect("the log is in order");
        let counters = volume.store().cil().counters();
        drop(volume);
        (checkpoints(&image), counters)
    };
    let (with, counters) = journal(true);
    assert!(with.len() > 10 && counters.marked > 100 && counters.skipped == counters.marked, "{counters:?}");
    assert!(with.iter().all(|checkpoint| pairs(checkpoint).is_empty()));
    // some are answered later, and their answers are written
    let answered = |checkpoint: &Checkpoint| {
        checkpoint.items().filter(|item| item.kind().and_then(LogItemType::intent).is_some()).count()
    };
    assert!(with.iter().map(answered).sum::<usize>() > 0);
    let (without, counters) = journal(false);
    assert_eq!(counters.marked, 0);
    assert!(without.iter().map(|checkpoint| pairs(checkpoint).len()).sum::<usize>() > 100);
}

/// Mounts and unmounts.
fn mounted(image: &Path, point: &Path) -> Result<(), String> {
    let arguments =
        ["-t".as_ref(), "xfs".as_ref(), "-o".as_ref(), "loop".as_ref(), image.as_os_str(), point.as_os_str()];
    run("mount", arguments)?;
    unmount(point)
}

/// The filesystem without its journal and what each mount changes: point of the log and checksum of the superblock.
fn without_journal(image: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(image).expect("the image can be read");
    let device = Arc::new(FileDevice::open(image, OpenFile::READ).expect("the file can be opened"));
    let image = Image::open(ImageDevices::of_data(device), SearchEffort::Guesses).expect("a filesystem");
    let area = LogArea::new(image.data(), image.geometry()).expect("a sound log");
    let log = usize::try_from(area.start().0).expect("a small image") * 512;
    bytes[log..log + area.blocks() as usize * 512].fill(0);
    let (superblock, _) = RawSuperblock::prefix_mut(&mut bytes).expect("a sector");
    (superblock.lsn, superblock.crc) = (0.into(), 0.into());
    bytes
}

/// The same work in one checkpoint, so that it has the same place in the log with whiteouts and without.
#[test]
fn a_kernel_makes_the_same_of_both() {
    let Some(reference) = reference() else { return };
    let folder = folder();
    let point = folder.path().join("point");
    std::fs::create_dir(&point).expect("the folder can be written");
    let mut replayed: Vec<Vec<u8>> = Vec::new();
    // both have the same UUIDs
    let new = folder.path().join("new");
    made(&new);
    let clean = folder.path().join("clean");
    std::fs::copy(&new, &clean).expect("there is room");
    if let Err(why) = mounted(&clean, &point) {
        return missing(&format!("mounting by a loop device: {why}"));
    }
    std::fs::remove_file(&clean).expect("it is not in use");
    for whiteouts in [true, false] {
        let image = folder.path().join("image");
        run("cp", ["--sparse=always".as_ref(), new.as_os_str(), image.as_os_str()]).expect("there is room");
        let mut volume = opened(&image, whiteouts, u64::MAX);
        work(&mut volume, 60);
        volume.sync().expect("the log is in order");
        drop(volume);
        let pairs: usize = checkpoints(&image).iter().map(|checkpoint| pairs(checkpoint).len()).sum();
        assert_eq!(pairs > 0, !whiteouts);
        mounted(&image, &point).expect("the journal can be replayed");
        judge(reference, &image);
        replayed.push(without_journal(&image));
    }
    let different = replayed[0].chunks(512).zip(replayed[1].chunks(512)).position(|(a, b)| a != b);
    assert_eq!(different, None, "the first sector that differs");
}

fn judge(reference: &Reference, image: &Path) {
    let output = reference.tool("xfs_repair", ["-n"]).arg(image).output().expect("the reference can be started");
    assert!(output.status.success(), "{}", said(&output));
}
