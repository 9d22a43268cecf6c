//! benches/whiteouts [FILES] [SIZE...]: what whiteouts save in the journal, and what logged attributes cost.
//!
//! Sixteen streams create files in a folder each, by turns, and give each file one extended attribute, whose change is logged
//! as an intent or not. Each run begins with a new filesystem in a file in memory (`/dev/shm`, or `XFSKIT_WORK`). Checkpoints are
//! as large as Linux makes them, so the log is large enough not to matter. The table shows bytes of journal for each create,
//! with all headers, and what of them each type of item takes.

#![allow(clippy::print_stdout, reason = "its output is the table")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xfskit::device::{FileDevice, OpenFile};
use xfskit::error::{Error, Result};
use xfskit::geometry::Ino;
use xfskit::image::ImageDevices;
use xfskit::journal::{CilOptions, LogStatistics, WhiteoutCounters};
use xfskit::ondisk::attr_short::AttrNamespace;
use xfskit::ondisk::log_item::LogItemType;
use xfskit::transaction::StoreOptions;
use xfskit::volume::attributes::AttributeName;
use xfskit::volume::operation::{NewFile, Volume};

/// Streams that create files.
const STREAMS: usize = 16;
/// Files that are created in a run, unless the command line says otherwise.
const FILES: usize = 20_000;
/// Sizes of the values.
const SIZES: [usize; 4] = [16, 256, 4096, 65_536];
/// Size of the log: an eighth of it is the largest checkpoint that Linux makes.
const LOG: &str = "256m";
/// That eighth, in bytes.
const CHECKPOINT: u64 = 32 << 20;
/// Type and access bits of folders and files.
const FOLDER: u16 = 0o040_755;
const FILE: u16 = 0o100_644;

/// How attributes are set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Without intents.
    Unlogged,
    /// With intents, and whiteouts.
    Whiteouts,
    /// With intents, all of which are written.
    Everything,
}

impl Mode {
    const ALL: [Mode; 3] = [Mode::Unlogged, Mode::Whiteouts, Mode::Everything];

    fn name(self) -> &'static str {
        match self {
            Mode::Unlogged => "not logged",
            Mode::Whiteouts => "whiteouts",
            Mode::Everything => "no whiteouts",
        }
    }
}

/// What a run gave.
struct Outcome {
    mode: Mode,
    time: Duration,
    journal: LogStatistics,
    whiteouts: WhiteoutCounters,
}

fn main() -> std::result::Result<(), String> {
    // the harness of cargo adds arguments of its own
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<usize>().ok());
    let files = numbers.next().unwrap_or(FILES);
    let sizes: Vec<usize> = numbers.collect();
    let sizes = if sizes.is_empty() { SIZES.to_vec() } else { sizes };
    println!("{files} files in {STREAMS} streams, log of {LOG}; bytes of journal for each create, by type of item\n");
    println!(
        "| value | attribute | creates/s | against not logged | journal | {} | headers |",
        TYPES.map(|(name, _)| name).join(" | ")
    );
    println!("|---|---|---|---|---|{}---|", "---|".repeat(TYPES.len()));
    for size in sizes {
        let mut outcomes = Vec::new();
        for mode in Mode::ALL {
            outcomes.push(run(mode, size, files).map_err(|error| error.to_string())?);
        }
        for outcome in &outcomes {
            println!("{}", row(size, files, outcome, &outcomes[0]));
        }
        let [_, with, without] = &outcomes[..] else { return Err("a run is missing".to_owned()) };
        println!(
            "\n{size} bytes: with whiteouts {:.2} of the rate and 1/{:.1} of the journal of a run without; {} intents left out\n",
            without.time.as_secs_f64() / with.time.as_secs_f64(),
            without.journal.bytes as f64 / with.journal.bytes as f64,
            with.whiteouts.marked,
        );
    }
    Ok(())
}

/// The columns of the table; intents and done items of all types but attributes' are one.
const TYPES: [(&str, &[LogItemType]); 6] = {
    use LogItemType::{Attrd, Attri, Bud, Buf, Bui, Cud, Cui, Efd, Efi, Icreate, Inode, Rud, Rui};
    [
        ("BUF", &[Buf]),
        ("INODE", &[Inode]),
        ("ICREATE", &[Icreate]),
        ("ATTRI", &[Attri]),
        ("ATTRD", &[Attrd]),
        ("other intents", &[Efi, Efd, Rui, Rud, Cui, Cud, Bui, Bud]),
    ]
};

fn row(size: usize, files: usize, outcome: &Outcome, unlogged: &Outcome) -> String {
    let each = |bytes: u64| bytes as f64 / files as f64;
    let rate = |outcome: &Outcome| files as f64 / outcome.time.as_secs_f64();
    let journal = &outcome.journal;
    let mut row = format!(
        "| {size} | {} | {:.0} | {:.2} | {:.0} |",
        outcome.mode.name(),
        rate(outcome),
        rate(outcome) / rate(unlogged),
        each(journal.bytes),
    );
    for (_, kinds) in TYPES {
        let bytes = kinds.iter().map(|kind| journal.totals.of(*kind).bytes).sum();
        write!(row, " {:.0} |", each(bytes)).expect("invariant: a string can be written to");
    }
    write!(row, " {:.0} |", each(journal.bytes - journal.totals.sum().bytes))
        .expect("invariant: a string can be written to");
    row
}

fn run(mode: Mode, size: usize, files: usize) -> Result<Outcome> {
    let folder = std::env::var_os("XFSKIT_WORK").map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let folder = tempfile::Builder::new().prefix("xfskit-whiteouts.").tempdir_in(folder);
    let folder = folder.map_err(|error| Error::Usage(format!("no folder for the image: {error}")))?;
    let image = folder.path().join("image");
    format(&image, size, files)?;
    let device = Arc::new(FileDevice::open(&image, OpenFile::WRITE)?);
    let whiteouts = mode != Mode::Everything;
    let options = StoreOptions { cil: Some(CilOptions { whiteouts, push_at: CHECKPOINT }), ..StoreOptions::default() };
    let mut volume = Volume::open(ImageDevices::of_data(device), options)?;
    if mode != Mode::Unlogged {
        volume.log_attributes()?;
    }
    let root = volume.root();
    let folder = NewFile { mode: FOLDER, ..NewFile::default() };
    let folders: Result<Vec<Ino>> =
        (0..STREAMS).map(|stream| volume.create(root, format!("stream{stream}").as_bytes(), &folder)).collect();
    let folders = folders?;
    volume.sync()?;
    let before = *volume.store().log_statistics();
    let value: Vec<u8> = (0..size).map(|at| at.to_le_bytes()[0]).collect();
    let name = AttributeName { namespace: AttrNamespace::User, name: b"value" };
    let new = NewFile { mode: FILE, attributes: true, ..NewFile::default() };
    let begun = Instant::now();
    for file in 0..files {
        let ino = volume.create(folders[file % STREAMS], format!("file{file:08}").as_bytes(), &new)?;
        volume.set_attribute(ino, &name, &value)?;
    }
    volume.sync()?;
    let time = begun.elapsed();
    let journal = volume.store().log_statistics().since(&before);
    let whiteouts = volume.store().cil().counters();
    volume.close()?;
    Ok(Outcome { mode, time, journal, whiteouts })
}

/// Makes an image with room for the files.
fn format(image: &Path, size: usize, files: usize) -> Result<()> {
    let data = (files as u64) * (size as u64 + 8192) * 5 / 4 + (2 << 30);
    let mut mkfs = Command::new(env!("CARGO_BIN_EXE_xfskit-mkfs"));
    mkfs.args(["-q", "--size", &data.to_string(), "-l", &format!("size={LOG}")]).arg(image);
    let output = mkfs.output().map_err(|error| Error::Usage(format!("mkfs: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(Error::Usage(format!("mkfs: {said}"))) }
}
