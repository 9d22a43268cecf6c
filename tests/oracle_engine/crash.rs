//! A volume cut off at any write or flush, with writes since the last flush reordered and lost: Linux replays it to the state
//! after some prefix of the operations, not before the last sync.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use xfskit::device::{Device, Event, FaultDevice, FileDevice, OpenFile};
use xfskit::image::ImageDevices;
use xfskit::journal::CilOptions;
use xfskit::transaction::StoreOptions;
use xfskit::volume::operation::Volume;

use crate::image::Image;
use crate::model::kernel::{Listing, of_folder, of_tree};
use crate::model::steps::Steps;
use crate::random::Random;
use crate::reference::{Reference, reference};

/// Operations of a run.
const OPERATIONS: usize = 160;

/// Images that are cut of each run.
fn cuts() -> u64 {
    if std::env::var_os("XFSKIT_FULL").is_some() { 500 } else { 12 }
}

/// What was written, and what the volume held after each operation.
struct Run {
    events: Vec<Event>,
    /// After each operation: how many events there had been, and the tree.
    states: Vec<(usize, Listing)>,
    /// Operations that were done when a sync returned, and how many events there had been then.
    synced: Vec<(usize, usize)>,
}

fn record(image: &Image, seed: u64) -> Run {
    let geometry = image.geometry();
    let device = FileDevice::open(image.path(), OpenFile::WRITE).expect("an image");
    let device = Arc::new(FaultDevice::new(device).recording());
    let devices = ImageDevices::of_data(device.clone() as Arc<dyn Device>);
    // small checkpoints, and little memory: much is written back in between
    let cil = CilOptions { push_at: 60_000, ..CilOptions::of(&geometry) };
    let options = StoreOptions { cache: 200_000, cil: Some(cil), ..StoreOptions::default() };
    let mut volume = Volume::open(devices, options).expect("a clean filesystem");
    let mut steps = Steps::whole(seed, 60_000);
    let mut run = Run { events: Vec::new(), states: Vec::new(), synced: vec![(0, 0)] };
    let mut random = Random::new(seed);
    steps.begin(&mut volume).expect("a root");
    run.states.push((0, of_tree(&steps.tree)));
    for at in 1..=OPERATIONS {
        steps.step(&mut volume).unwrap_or_else(|error| panic!("operation {at}: {error}"));
        run.events.extend(device.take_events());
        run.states.push((run.events.len(), of_tree(&steps.tree)));
        if random.once_in(12) {
            volume.sync().expect("written");
            run.events.extend(device.take_events());
            run.synced.push((at, run.events.len()));
        }
    }
    run
}

/// The image as it is when all is lost behind event `cut`, and of the writes since the last flush before it some.
fn cut(before: &Path, run: &Run, cut: usize, random: &mut Random, path: &Path) {
    let copied = Command::new("cp").arg("--sparse=always").args([before, path]).status().expect("cp runs");
    assert!(copied.success());
    let device = FileDevice::open(path, OpenFile::WRITE).expect("an image");
    let flushed = run.events[..cut].iter().rposition(|event| matches!(event, Event::Flush)).map_or(0, |at| at + 1);
    for event in &run.events[..flushed] {
        event.replay(&device).expect("written");
    }
    let mut late: Vec<&Event> = run.events[flushed..cut].iter().filter(|_| !random.once_in(3)).collect();
    for at in (1..late.len()).rev() {
        late.swap(at, random.index(at + 1));
    }
    for event in late {
        event.replay(&device).expect("written");
    }
}

fn judge(reference: &Reference, image: &Image, run: &Run, cut: usize, name: &str) {
    let text = image.logprint(reference);
    assert!(!text.contains("rror"), "{name}, cut at {cut}: {text}");
    let Some(seen) = image.mounted(of_folder) else { return };
    let least = run.synced.iter().rev().find(|(_, events)| *events <= cut).map_or(0, |(done, _)| *done);
    // the operation that was under way may be there, too
    let most = run.states.iter().position(|(events, _)| *events > cut).unwrap_or(run.states.len() - 1);
    let found = (least..=most).find(|state| run.states[*state].1 == seen);
    assert!(found.is_some(), "{name}, cut at {cut} of {}: no state from {least} to {most}", run.events.len());
    image.assert_repaired(reference);
}

fn crash(name: &str, megabytes: u64, arguments: &[&str], seed: u64) {
    let Some(reference) = reference() else { return };
    let image = Image::new(megabytes, arguments);
    let before = image.beside("before");
    fs::copy(image.path(), &before).expect("room");
    let run = record(&image, seed);
    let mut random = Random::new(seed);
    for _ in 0..cuts() {
        let at = random.index(run.events.len() + 1);
        cut(&before, &run, at, &mut random, image.path());
        judge(reference, &image, &run, at, name);
    }
}

#[test]
fn blocks_of_4k() {
    crash("4k", 100, &["-m", "rmapbt=1,reflink=1", "-n", "parent=1", "-l", "size=10m"], 11);
}

#[test]
fn blocks_of_1k() {
    crash("1k", 100, &["-b", "size=1k", "-l", "size=10m"], 12);
}

#[test]
fn without_features() {
    crash("plain", 100, &["-m", "finobt=0,rmapbt=0,reflink=0", "-i", "sparse=0", "-l", "size=10m"], 13);
}
