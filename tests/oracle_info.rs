//! xfskit-info against xfs_info 7.2 for its text, and against xfs_logprint 7.2 for the state of the log.

#![allow(clippy::print_stdout, reason = "a test's report is its output")]

#[allow(dead_code, reason = "shared with the other oracle tests")]
#[path = "oracle/reference.rs"]
mod reference;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use reference::{Reference, missing, reference, run, said, unmount};
use serde_json::Value;
use tempfile::TempDir;

fn folder() -> TempDir {
    let parent = std::env::var_os("XFSKIT_WORK").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::Builder::new().prefix("xfskit-info.").tempdir_in(parent).expect("the folder for images can be written")
}

fn sparse(path: &Path, size: u64) {
    File::create(path).and_then(|file| file.set_len(size)).expect("a file can be sparse");
}

/// What xfs_info runs for an image: its script leads to xfs_db.
fn xfs_info(reference: &Reference, folder: &Path, name: &str) -> Output {
    let mut command = reference.tool("xfs_db", ["-p", "xfs_info", "-c", "info", name]);
    command.current_dir(folder).output().expect("the reference can be started")
}

fn xfskit_info(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xfskit-info"));
    command.args(arguments).current_dir(folder).output().expect("the tool can be started")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn make(reference: &Reference, folder: &Path, arguments: &str) -> Result<(), String> {
    let terabytes = arguments.split("-d size=").nth(1).and_then(|size| size.split('t').next()?.parse::<u64>().ok());
    sparse(&folder.join("data"), terabytes.map_or(2 << 30, |count| count << 40));
    sparse(&folder.join("log"), 200 << 20);
    sparse(&folder.join("rt"), 2 << 30);
    let words = arguments.replace("LOG", "log").replace("RT", "rt");
    let words = words.split_whitespace().chain(["data"]);
    let mut mkfs = reference.tool("mkfs.xfs", ["-q", "-f"]);
    let made = mkfs.args(words).current_dir(folder).output().map_err(|error| error.to_string())?;
    if made.status.success() { Ok(()) } else { Err(said(&made)) }
}

#[test]
fn the_text_is_xfs_infos_to_the_byte() {
    let Some(reference) = reference() else { return };
    let folder = folder();
    let (mut compared, mut wrong) = (0, Vec::new());
    for arguments in include_str!("oracle/info/images.txt").lines().filter(|line| !line.starts_with('#')) {
        if let Err(why) = make(reference, folder.path(), arguments) {
            wrong.push(format!("mkfs.xfs {arguments}: {why}"));
            continue;
        }
        let (theirs, ours) = (xfs_info(reference, folder.path(), "data"), xfskit_info(folder.path(), &["data"]));
        if text(&theirs) != text(&ours) || theirs.status.code() != ours.status.code() {
            wrong.push(format!("{arguments}:\n{}{}", text(&theirs), said(&ours)));
        }
        compared += 1;
    }
    println!("{compared} filesystems compared");
    assert!(compared >= 60 && wrong.is_empty(), "{compared} compared; {}", wrong.join("\n"));
}

/// A filesystem that this machine's kernel has mounted; unmounted when it goes.
struct Mounted {
    point: PathBuf,
}

impl Mounted {
    fn new(folder: &Path, image: &str) -> Result<Self, String> {
        let point = folder.join("point");
        std::fs::create_dir_all(&point).map_err(|error| error.to_string())?;
        let image = folder.join(image);
        run(
            "mount",
            ["-t".as_ref(), "xfs".as_ref(), "-o".as_ref(), "loop".as_ref(), image.as_os_str(), point.as_os_str()],
        )?;
        Ok(Mounted { point })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // what stays mounted is seen: its folder cannot be removed
        let _ = unmount(&self.point);
    }
}

/// An old filesystem, so that this machine's kernel mounts it whatever its release.
const MOUNTABLE: &str = "-m rmapbt=0,bigtime=0,inobtcount=0 -i nrext64=0,exchange=0 -n parent=0";

#[test]
fn a_mounted_filesystem_by_any_of_its_names() {
    let Some(reference) = reference() else { return };
    let folder = folder();
    make(reference, folder.path(), MOUNTABLE).expect("mkfs.xfs makes it");
    let mounted = match Mounted::new(folder.path(), "data") {
        Ok(mounted) => mounted,
        Err(why) => return missing(&format!("mounting by a loop device: {why}")),
    };
    let mut theirs = reference.tool("xfs_spaceman", ["-p", "xfs_info", "-c", "info"]);
    let theirs = theirs.arg(&mounted.point).output().expect("the reference can be started");
    assert!(theirs.status.success(), "{}", said(&theirs));
    let device = text(&theirs).split(['=', ' ']).find(|word| word.starts_with("/dev/")).map(str::to_owned);
    for name in ["point", "data", device.as_deref().unwrap_or("point")] {
        let ours = xfskit_info(folder.path(), &[name]);
        assert_eq!(text(&ours), text(&theirs), "{name}");
    }
}

#[test]
fn the_log_ends_where_xfs_logprint_says() {
    let Some(reference) = reference() else { return };
    let folder = folder();
    for arguments in [MOUNTABLE, "-m crc=0", "-m crc=0 -l version=1", "-l su=64k", "-l logdev=LOG"] {
        make(reference, folder.path(), arguments).expect("mkfs.xfs makes it");
        assert_logs_agree(reference, folder.path(), arguments);
    }
    make(reference, folder.path(), &format!("{MOUNTABLE} -l size=2500b --unsupported")).expect("mkfs.xfs makes it");
    // ever more in the log, clean and dirty by turns, until it has gone round
    for round in 0..12 {
        let mounted = match Mounted::new(folder.path(), "data") {
            Ok(mounted) => mounted,
            Err(why) => return missing(&format!("mounting by a loop device: {why}")),
        };
        for file in 0..(40 + 37 * round) {
            std::fs::write(mounted.point.join(format!("{round}.{file}")), [7; 3000]).expect("room is left");
            if file % 16 == 0 {
                run("sync", ["-f".as_ref(), mounted.point.as_os_str()]).expect("the filesystem is in order");
            }
        }
        let dirty = round % 3 != 2;
        if dirty {
            let mut shutdown = reference.tool("xfs_io", ["-x", "-c", "shutdown -f"]);
            let done = shutdown.arg(&mounted.point).output().expect("the reference can be started");
            assert!(done.status.success(), "{}", said(&done));
        }
        drop(mounted);
        let state = assert_logs_agree(reference, folder.path(), &format!("round {round}"));
        assert_eq!(state, if dirty { "dirty" } else { "clean" }, "round {round}");
    }
}

/// Compares head, tail and state; the state.
fn assert_logs_agree(reference: &Reference, folder: &Path, what: &str) -> String {
    let external = what.contains("LOG");
    let device: &[&str] = if external { &["-l", "log"] } else { &[] };
    let mut logprint = reference.tool("xfs_logprint", ["-t"]);
    let theirs = logprint.args(device).arg("data").current_dir(folder).output().expect("the reference can be started");
    let printed = text(&theirs);
    let line = printed.lines().find(|line| line.contains("log tail:")).unwrap_or_else(|| panic!("{}", said(&theirs)));
    let device: &[&str] = if external { &["--log-device", "log"] } else { &[] };
    let ours = xfskit_info(folder, &[&["--json"], device, &["data"]].concat());
    let report: Value = serde_json::from_slice(&ours.stdout).expect("valid JSON");
    let field = |name: &str| report.pointer(&format!("/log/{name}")).cloned().unwrap_or_default();
    let state = field("state").as_str().unwrap_or_default().to_owned();
    let words = format!("log tail: {} head: {} state: <{}>", field("tail"), field("head"), state.to_uppercase());
    assert_eq!(line.trim(), words, "{what}");
    state
}
