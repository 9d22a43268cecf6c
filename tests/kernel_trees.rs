//! Blocks and btrees of filesystems that a kernel has written: every block must pass its checks, and the records of
//! every tree must be those that xfs_db prints.
//!
//! Images are made by mkfs.xfs of the reference, filled through a mount of this machine's kernel. `XFSKIT_IMAGES` names
//! more for the ignored test, separated by blanks: `DATA` or `DATA:REALTIME`, unmounted and with a clean log. With `XFSKIT_KEEP_BLOCKS=FOLDER`
//! the first block of each kind is written there, for `testdata/blocks`.

#![allow(clippy::print_stdout, reason = "a test's report is its output")]
#![allow(dead_code, reason = "the modules are shared with other tests, or use a part of each other")]

#[path = "kernel_trees/dump.rs"]
mod dump;
#[path = "oracle/reference.rs"]
mod reference;
#[path = "kernel_trees/scan.rs"]
mod scan;

use std::path::{Path, PathBuf};
use std::process::Command;

use reference::{Reference, missing, reference, run};

/// Arguments of mkfs.xfs, each for one image.
const FEATURES: [&[&str]; 5] = [
    &["-m", "rmapbt=1,reflink=1", "-n", "parent=1"],
    &["-m", "rmapbt=1,reflink=1", "-b", "size=1024", "-n", "size=4096", "-i", "nrext64=0"],
    &["-m", "rmapbt=0,reflink=0,finobt=0,inobtcount=0", "-i", "size=2048,sparse=0,nrext64=0"],
    &["-m", "crc=1,rmapbt=1", "-b", "size=4096", "-s", "size=4096", "-d", "agcount=3", "-n", "size=65536"],
    &["-m", "rmapbt=1,reflink=1", "-b", "size=2048", "-i", "size=1024", "-d", "agcount=6"],
];

/// How many of them are made without `XFSKIT_FULL=1`.
const SHARE: usize = 2;

/// An image, mounted until it is dropped.
struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        // busy for a moment while another thread starts a process, which holds all files of this one at first
        for _ in 0..50 {
            if Command::new("umount").arg(&self.0).status().is_ok_and(|status| status.success()) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

fn can_mount() -> bool {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let able = rustix::process::geteuid().is_root() && known.lines().any(|line| line.trim() == "xfs");
    if !able {
        missing("mounting through loop devices (root, and a kernel with XFS)");
    }
    able
}

fn make(folder: &Path, arguments: &[&str], reference: &Reference) -> Result<PathBuf, String> {
    let image = folder.join("image");
    let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
    file.set_len(1 << 30).map_err(|error| error.to_string())?;
    let mut command = reference.tool("mkfs.xfs", ["-q", "-f"]);
    let output = command.args(arguments).arg(&image).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(reference::said(&output));
    }
    let point = folder.join("mnt");
    std::fs::create_dir(&point).map_err(|error| error.to_string())?;
    run("mount", [Path::new("-o"), Path::new("loop"), &image, &point])?;
    let mount = Mount(point);
    let fill = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel_trees/fill");
    run("bash", [&fill, &mount.0])?;
    Ok(image)
}

/// Walks an image and compares its trees; what is wrong.
fn judge(data: &Path, realtime: Option<&Path>, reference: &Reference) -> Vec<String> {
    let found = match scan::scan(data, realtime) {
        Ok(found) => found,
        Err(error) => return vec![error.to_string()],
    };
    let mut wrong: Vec<String> = found.failures.iter().map(ToString::to_string).collect();
    let mut records = 0;
    for tree in &found.trees {
        let expected = match dump::records(data, realtime, &tree.commands, reference) {
            Ok(expected) => expected,
            Err(error) => {
                wrong.push(error);
                continue;
            }
        };
        records += expected.len();
        if tree.records != expected {
            let differs = tree.records.iter().zip(&expected).position(|(ours, theirs)| ours != theirs);
            let (ours, theirs) = (tree.records.len(), expected.len());
            wrong.push(format!("{:?}: {ours} and {theirs} records, first difference {differs:?}", tree.commands));
        }
    }
    println!(
        "{}: {} blocks, {} inodes, {} trees, {records} records compared, {} wrong",
        data.display(),
        found.blocks,
        found.inodes,
        found.trees.len(),
        wrong.len()
    );
    wrong
}

#[test]
fn what_kernels_write_is_sound_and_reads_as_xfs_db_prints_it() {
    let Some(reference) = reference() else { return };
    let mut wrong = Vec::new();
    if can_mount() {
        let count = if std::env::var_os("XFSKIT_FULL").is_some() { FEATURES.len() } else { SHARE };
        for arguments in &FEATURES[..count] {
            let folder = tempfile::tempdir().expect("a folder for images");
            match make(folder.path(), arguments, reference) {
                Ok(image) => wrong
                    .extend(judge(&image, None, reference).into_iter().map(|what| format!("{arguments:?}: {what}"))),
                Err(error) => wrong.push(format!("{arguments:?}: {error}")),
            }
        }
    }
    wrong.truncate(40);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "needs images named in the environment"]
fn images_that_were_named_are_sound_and_read_as_xfs_db_prints_them() {
    let Some(reference) = reference() else { return };
    let mut wrong: Vec<String> = Vec::new();
    for name in std::env::var("XFSKIT_IMAGES").expect("XFSKIT_IMAGES names images").split_whitespace() {
        let (data, realtime) = name.split_once(':').map_or((name, None), |(data, rt)| (data, Some(Path::new(rt))));
        wrong.extend(judge(Path::new(data), realtime, reference).into_iter().map(|what| format!("{name}: {what}")));
    }
    wrong.truncate(40);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
