//! Damaged images through the engines of all tools that read: nothing panics, nothing hangs, nothing takes more than 512 MiB,
//! and the tools' own exit codes are those that their man pages name.
//!
//! One half of the images has numbers changed that readers go by, and checksums that are right again; the other half has any
//! bytes changed, or words of the journal. Seeded: image N is always the same. A fixed share, or 50,000 with `XFSKIT_FULL=1`;
//! `XFSKIT_RUNS=FIRST..END` picks some.

#![allow(clippy::cast_possible_truncation)] // small numbers
#![allow(clippy::print_stdout, reason = "a test's report is its output")]

mod bases;
mod db;
mod mutation;
mod random;
mod reported;
mod structures;
mod tools;
mod watch;

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bases::{Base, bases};
use mutation::{Manner, Mutant, mutate};
use random::Random;
use xfskit::device::{Device, FileDevice, OpenFile};

/// Images, in full and in short.
const RUNS: (u64, u64) = (50_000, 300);
/// The longest that one image may take, on a machine that does other things, too.
const LIMIT: Duration = Duration::from_secs(120);
/// One run of so many goes through a binary, too.
const BINARY_SHARE: u64 = 100;
/// Failures that are shown.
const SHOWN: usize = 40;

/// What a run was, and how it ended.
struct Outcome {
    run: u64,
    what: String,
    time: Duration,
    failure: Option<String>,
}

fn runs() -> Range<u64> {
    if let Some((first, end)) = std::env::var("XFSKIT_RUNS").ok().as_ref().and_then(|text| text.split_once("..")) {
        return first.parse().expect("a number")..end.parse().expect("a number");
    }
    0..if std::env::var_os("XFSKIT_FULL").is_some() { RUNS.0 } else { RUNS.1 }
}

#[test]
fn mutated_images() {
    let folder = tempfile::tempdir().expect("a folder");
    let bases = bases(folder.path());
    for base in &bases {
        assert!(base.sites.len() > 20, "{}: {} structures", base.name, base.sites.len());
        assert!(base.inodes.len() > 2, "{}: {} inodes", base.name, base.inodes.len());
    }
    let runs = runs();
    let watch = watch::Watch::default();
    let (next, done) = (AtomicU64::new(runs.start), AtomicBool::new(false));
    let outcomes = Mutex::new(Vec::new());
    let before = watch::memory().0;
    watch::forget_peak();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let run = next.fetch_add(1, Ordering::Relaxed);
                        if run >= runs.end {
                            return;
                        }
                        let outcome = one(&bases, run, &watch, folder.path());
                        outcomes.lock().expect("nothing panics with it").push(outcome);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                watch.look(LIMIT, before + 2 * watch::MOST_MEMORY);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        for worker in workers {
            worker.join().expect("panics are caught");
        }
        done.store(true, Ordering::Relaxed);
    });
    let taken = watch::memory().1.saturating_sub(before);
    report(&mut outcomes.into_inner().expect("nothing panics with it"), taken);
    let told = watch::problems();
    assert!(told > (runs.end - runs.start) / 2, "{told} problems: what is done to images does no harm");
    assert!(taken < watch::MOST_MEMORY, "{} MiB were taken", taken >> 20);
}

fn report(outcomes: &mut [Outcome], taken: usize) {
    outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.time));
    println!("{} images, at most {} MiB; the slowest:", outcomes.len(), taken >> 20);
    for outcome in outcomes.iter().take(8) {
        println!("  run {}, {:?}: {}", outcome.run, outcome.time, outcome.what);
    }
    let mut tools: BTreeMap<&str, (u64, Duration)> = BTreeMap::new();
    for outcome in &*outcomes {
        let words = outcome.what.split(", ").nth(2).unwrap_or_default();
        let sum = tools.entry(words.split(' ').next().unwrap_or_default()).or_default();
        *sum = (sum.0 + 1, sum.1 + outcome.time);
    }
    println!("{tools:?}");
    outcomes.sort_by_key(|outcome| outcome.run);
    let failed: Vec<_> = outcomes.iter().filter(|outcome| outcome.failure.is_some()).collect();
    for outcome in failed.iter().take(SHOWN) {
        println!("run {}: {}: {}", outcome.run, outcome.what, outcome.failure.as_deref().unwrap_or_default());
    }
    assert!(failed.is_empty(), "{} of {} runs failed", failed.len(), outcomes.len());
}

/// Makes an image and has something done with it, in a thread of its own: its name tells where a stack ran over.
fn one(bases: &[Base], run: u64, watch: &watch::Watch, folder: &Path) -> Outcome {
    let what = Mutex::new(String::new());
    let failure = std::thread::scope(|scope| {
        let work = || {
            let worked = catch_unwind(AssertUnwindSafe(|| {
                let mut random = Random::new(run);
                let base = random.pick(bases);
                let manner = match random.below(8) {
                    0..4 => Manner::Aimed,
                    4 => Manner::Journal,
                    _ => Manner::Blind,
                };
                let told = format!("{}, {manner:?}", base.name);
                what.lock().expect("no panic with it").clone_from(&told);
                watch.begin(run, told.clone());
                let mutant = mutate(base, manner, &mut random);
                let asked = ask(base, &mutant, manner, &mut random);
                *what.lock().expect("no panic with it") = format!("{told}, {asked}");
                if run % BINARY_SHARE == 0 {
                    with_binary(base, &mutant, &folder.join(format!("run{run}")), &mut random);
                }
            }));
            worked.err().map(|panic| words_of(&*panic))
        };
        let thread = std::thread::Builder::new().name(format!("run {run}"));
        thread.spawn_scoped(scope, work).expect("threads can be started").join().expect("panics are caught")
    });
    let time = watch.end(run);
    Outcome { run, what: what.into_inner().unwrap_or_default(), time, failure }
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

/// One of the tools.
fn ask(base: &Base, mutant: &Mutant, manner: Manner, random: &mut Random) -> String {
    if manner == Manner::Journal && !random.one_in(4) {
        return tools::logprint(mutant, random);
    }
    match random.below(20) {
        0..8 => db::ask(base, mutant, random),
        8..14 => tools::files(base, mutant, random),
        14..18 => tools::metadump(base, mutant, random),
        18 => tools::logprint(mutant, random),
        _ => tools::info(base, mutant),
    }
}

/// The same through a binary: it ends by itself, with a code that its man page names, and says nothing of panics.
fn with_binary(base: &Base, mutant: &Mutant, folder: &Path, random: &mut Random) {
    std::fs::create_dir(folder).expect("the folder can be written");
    let mut devices = Vec::new();
    let others = [("log", 'l', &mutant.devices.log), ("rt", 'r', &mutant.devices.realtime)];
    let named = others.into_iter().filter_map(|(name, letter, device)| Some((name, letter, device.as_ref()?)));
    for (name, letter, device) in named {
        store(&**device, &folder.join(name));
        devices.push((letter, name));
    }
    store(&*mutant.devices.data, &folder.join("image"));
    let image = ["image".to_owned()];
    let (tool, binary, words, codes): (&str, &str, &[&str], &[i32]) = match random.below(6) {
        0 => (
            "db",
            env!("CARGO_BIN_EXE_xfskit-db"),
            &["-c", "blockget -n", "-c", "ncheck", "-c", "frag", "-c", "freesp -s"],
            &[0, 1],
        ),
        1 => ("files", env!("CARGO_BIN_EXE_xfskit-files"), &["ls", "-l", "-R"], &[0, 1, 3]),
        2 => ("files", env!("CARGO_BIN_EXE_xfskit-files"), &["tree", "--json"], &[0, 1, 3]),
        3 => ("logprint", env!("CARGO_BIN_EXE_xfskit-logprint"), &["-t", "-i", "-b", "--json"], &[0, 1]),
        4 => ("metadump", env!("CARGO_BIN_EXE_xfskit-metadump"), &["-w"], &[0, 1]),
        _ => ("info", env!("CARGO_BIN_EXE_xfskit-info"), &["--verbose"], &[0, 1]),
    };
    let mut command = Command::new("timeout");
    command.arg("60").arg(binary).args(words);
    for (letter, name) in devices {
        let letter =
            if tool == "db" { letter.to_ascii_uppercase().to_string().replace('L', "l") } else { letter.to_string() };
        match (tool, letter.as_str()) {
            ("info", "l") => command.args(["--log-device", name]),
            ("info", _) => command.args(["--realtime-device", name]),
            ("files", "l") => command.args(["--log-device", name]),
            ("files", _) => command.args(["--realtime-device", name]),
            _ => command.args([format!("-{letter}"), name.to_owned()]),
        };
    }
    command.args(&image).current_dir(folder).stdin(Stdio::null());
    let dump = folder.join("dump");
    if tool == "metadump" {
        command.stdout(File::create(&dump).expect("writable"));
    }
    let output = command.output().expect("the tool can be started");
    let text = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(!text.contains("panicked"), "{tool} on {}: {text}", base.name);
    assert!(code.is_some_and(|code| codes.contains(&code)), "{tool} on {}: {code:?}: {text}", base.name);
    std::fs::remove_dir_all(folder).expect("the folder can be removed");
}

/// Writes what a device holds to a file, with holes where nothing is.
fn store(device: &dyn Device, path: &Path) {
    File::create(path).and_then(|file| file.set_len(device.len())).expect("a file can be made");
    let file = FileDevice::open(path, OpenFile::WRITE).expect("writable");
    for range in device.allocated_ranges() {
        let range = range.expect("memory knows what it holds");
        let mut piece = vec![0; 1 << 16];
        for at in (range.start..range.end()).step_by(piece.len()) {
            let len = piece.len().min((range.end() - at) as usize);
            device.read_at(at, &mut piece[..len]).expect("readable");
            file.write_at(at, &piece[..len]).expect("writable");
        }
    }
}
