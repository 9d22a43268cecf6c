//! The table of readers against the readers: every feature's filesystem mounted, mounted read-only or refused by Linux 5.10,
//! 6.1, 6.12 and 7.3 in a guest, and read or refused by the GRUBs of Debian 11, 12, 13 and sid, as the table says.
//!
//! `tests/oracle/setup --all` and `tests/oracle/setup-grub` install the references. With `XFSKIT_FULL=1` every kernel tries
//! every filesystem; without, the newest tries a fixed share.

#![allow(clippy::print_stdout, reason = "a test's report is its output")]

#[path = "oracle/readers/images.rs"]
mod images;
#[allow(dead_code, reason = "shared with the other oracle tests")]
#[path = "oracle/reference.rs"]
mod reference;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use images::{HELLO, Image, make, recipes};
use reference::{Reference, missing, reference};
use tempfile::TempDir;
use xfskit::device::{Device, FileDevice, OpenFile};
use xfskit::readers::verdict::{grub_reads, grub_row, kernel_row, kernel_takes, kernel_warns};
use xfskit::readers::{Access, Feature, Grub, Linux};

/// What the tested kernels, which are Debian's, have on although it is off by default.
const DEBIAN_CONFIG: [(&str, &str); 1] = [("7.3", "CONFIG_XFS_SUPPORT_V4")];
/// The GRUBs, and the name under which the table has Debian's patches to them.
const GRUBS: [(&str, &str); 4] =
    [("bullseye", "Debian 11"), ("bookworm", "Debian 12"), ("trixie", "Debian 13"), ("sid", "Debian sid")];
/// The share of the filesystems that a short run tries: each kind of answer is among them.
const SHORT: [&str; 8] =
    ["v4-ascii-ci", "v5", "default", "needsrepair", "unknown-ro", "unknown", "log-xattrs", "rtg-reflink"];
/// No mkfs makes these, and no kernel of the table reads them.
const NOT_MADE: [Feature; 1] = [Feature::RtRmapbtUnfit];

fn full() -> bool {
    std::env::var_os("XFSKIT_FULL").is_some()
}

fn folder() -> TempDir {
    let parent = std::env::var_os("XFSKIT_WORK").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::Builder::new().prefix("xfskit-readers.").tempdir_in(parent).expect("the folder for images can be written")
}

fn make_all(folder: &Path, reference: &Reference, chosen: impl Fn(&str) -> bool) -> Vec<Image> {
    let recipes = recipes();
    let chosen = recipes.iter().filter(|recipe| chosen(&recipe.name));
    let make = |recipe| make(recipe, folder, reference).unwrap_or_else(|why| panic!("{recipe:?}: {why}"));
    chosen.map(make).collect()
}

#[test]
fn every_feature_of_the_table_is_tried() {
    let Some(reference) = reference() else { return };
    let folder = folder();
    let images = make_all(folder.path(), reference, |_| true);
    let tried: BTreeSet<Feature> = images.iter().flat_map(|image| image.features.iter().copied()).collect();
    let untried: Vec<Feature> =
        Feature::ALL.into_iter().filter(|feature| !tried.contains(feature) && !NOT_MADE.contains(feature)).collect();
    assert!(untried.is_empty(), "no filesystem has {untried:?}");
}

#[test]
fn linux_mounts_what_the_table_says() {
    let Some(reference) = reference() else { return };
    let kernels: &[&str] = if full() { &["5.10", "6.1", "6.12", "7.3"] } else { &["7.3"] };
    let folder = folder();
    let images = make_all(folder.path(), reference, |name| full() || SHORT.contains(&name));
    let disk = folder.path().join("disk");
    let mut wrong = Vec::new();
    for kernel in kernels {
        if !reference.has_kernel(kernel) {
            missing(&format!("a guest with Linux {kernel} (run tests/oracle/setup --all as root)"));
            continue;
        }
        let table = pack(&images, &disk);
        let answers = ask_guest(reference, kernel, &table, folder.path(), &disk);
        let release: Linux = kernel.parse().expect("a release of the table");
        for image in &images {
            let expected = expected_of(release, kernel, image);
            let answer = answers.get(&image.name).cloned().unwrap_or_else(|| "no answer".to_owned());
            println!("Linux {kernel}: {}: {answer}", image.name);
            if answer != expected {
                wrong.push(format!("Linux {kernel}, {}: {answer}, expected {expected}", image.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the table says that `kernel` does with an image, in the words of the guest.
fn expected_of(release: Linux, kernel: &str, image: &Image) -> String {
    let takes = |feature: Feature| {
        let off = kernel_row(feature).default_off;
        let built_in = off.is_some_and(|(_, config)| DEBIAN_CONFIG.contains(&(kernel, config)));
        if built_in { Access::ReadWrite } else { kernel_takes(release, feature) }
    };
    let access = image.features.iter().map(|&feature| takes(feature)).min().unwrap_or(Access::ReadWrite);
    let repair = image.features.contains(&Feature::NeedsRepair);
    let warned = image.features.iter().any(|&feature| kernel_warns(release, feature));
    // logged attributes are warned of when they are used, not when such a log is replayed
    let warned = warned && !image.features.contains(&Feature::LogXattrs);
    let word = match access {
        Access::ReadWrite => "rw",
        Access::ReadOnly if repair => "norecovery",
        Access::ReadOnly => "ro",
        Access::Refused if image.log_bits.is_some() => "norecovery",
        Access::Refused => "refused",
    };
    if warned && access > Access::Refused { format!("{word} experimental") } else { word.to_owned() }
}

/// Puts all images on one disk; the table of where they lie.
fn pack(images: &[Image], disk: &Path) -> String {
    fs::remove_file(disk)
        .or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
        .expect("the old disk goes");
    File::create(disk).expect("the disk can be made");
    let mut end = 0;
    let mut table = String::new();
    let mut add = |path: &Path| {
        let from = FileDevice::open(path, OpenFile::READ).expect("an image was made");
        let start = end;
        end += from.len();
        File::options().write(true).open(disk).and_then(|file| file.set_len(end)).expect("the disk can grow");
        let to = FileDevice::open(disk, OpenFile::WRITE).expect("the disk was made");
        for range in (&from as &dyn Device).allocated_ranges() {
            copy(&from, range.expect("a file knows its holes"), &to, start);
        }
        (start, from.len())
    };
    for image in images {
        let (start, size) = add(&image.data);
        let (rt_start, rt_size) = image.realtime.as_deref().map_or((0, 0), &mut add);
        let bits = image.log_bits.map_or("-".to_owned(), |bits| bits.to_string());
        writeln!(table, "{} {start} {size} {rt_start} {rt_size} {bits}", image.name)
            .expect("a string can be written to");
    }
    table
}

fn copy(from: &FileDevice, range: xfskit::device::ByteRange, to: &FileDevice, start: u64) {
    let mut piece = vec![0; 1 << 20];
    let mut at = range.start;
    while at < range.end() {
        let len = usize::try_from(range.end() - at).unwrap_or(piece.len()).min(piece.len());
        from.read_at(at, &mut piece[..len]).expect("the image is readable");
        if piece[..len].iter().any(|&byte| byte != 0) {
            to.write_at(start + at, &piece[..len]).expect("the disk is writable");
        }
        at += len as u64;
    }
}

fn ask_guest(reference: &Reference, kernel: &str, table: &str, folder: &Path, disk: &Path) -> BTreeMap<String, String> {
    let script = folder.join("script");
    let text = format!("{}{table}TABLE\n", include_str!("oracle/readers/guest.sh"));
    fs::write(&script, text).expect("the script can be written");
    let output = reference.guest().args(["-k", kernel, "-t", "1200"]).arg(&script).arg(disk).output();
    let output = output.expect("the guest can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "the guest with Linux {kernel} failed:\n{text}");
    let answers = text.lines().filter_map(|line| line.split_once(' '));
    answers.map(|(name, answer)| (name.to_owned(), answer.to_owned())).collect()
}

#[test]
fn grub_reads_what_the_table_says() {
    let Some(reference) = reference() else { return };
    let folder = folder();
    let images = make_all(folder.path(), reference, |_| true);
    let mut wrong = Vec::new();
    for (suite, debian) in GRUBS {
        let Some(mut version) = fstest(reference, suite) else {
            missing(&format!("grub-fstest of {suite} (run tests/oracle/setup-grub as root)"));
            continue;
        };
        let version = version.arg("--version").output().expect("grub-fstest can be started").stdout;
        let version = String::from_utf8_lossy(&version).trim().rsplit(' ').next().unwrap_or_default().to_owned();
        let release: Grub = version.parse().expect("a release of the table");
        for image in &images {
            let reads = |feature: Feature| {
                grub_reads(release, feature) || grub_row(feature).patched.contains(&(debian, release))
            };
            let expected = image.features.iter().all(|&feature| reads(feature));
            let found = grub_shows(reference, suite, image);
            if found != Ok(expected) {
                wrong.push(format!("GRUB {version}, {}: {found:?}, expected {expected}", image.name));
            }
        }
        println!("GRUB {version}: {} filesystems", images.len());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// grub-fstest of a suite, run with the newest libraries.
fn fstest(reference: &Reference, suite: &str) -> Option<Command> {
    let program = reference.path().join("grub").join(suite).join("grub-fstest");
    program.exists().then(|| reference.program(&program))
}

/// Whether a GRUB reads the filesystem: shows the file in it, or where there is none, says that it is not there.
fn grub_shows(reference: &Reference, suite: &str, image: &Image) -> Result<bool, String> {
    let mut command = fstest(reference, suite).ok_or("no grub-fstest")?;
    let output = command.arg(&image.data).args(["cat", "/boot/hello"]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    let (shown, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match (shown == HELLO, said.contains("unknown filesystem"), said.contains("not found")) {
        (true, false, _) if image.filled => Ok(true),
        (false, true, _) => Ok(false),
        (false, false, true) if !image.filled => Ok(true),
        _ => Err(format!("shows {shown:?}, says {said:?}")),
    }
}
