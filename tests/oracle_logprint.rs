//! xfskit-logprint against xfs_logprint 7.2: the items of each type and the intents that are pending, in journals of many
//! kernels and of this machine's.

#![allow(clippy::print_stdout, reason = "a test's report is its output")]

#[allow(dead_code, reason = "shared with the other oracle tests")]
#[path = "oracle/reference.rs"]
mod reference;

mod journals;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use journals::{JOURNALS, unpacked};
use reference::{Reference, missing, reference, run, said, unmount};
use serde_json::Value;
use tempfile::TempDir;

/// Head, tail and state; counts of items by type; counts of pending intents by type.
type Contents = (Vec<u64>, BTreeMap<String, u64>, BTreeMap<String, u64>);

/// What both tools call a type.
fn common_name(name: &str) -> &str {
    match name {
        "INO" => "INODE",
        "ICR" => "ICREATE",
        "DQ" => "DQUOT",
        "QOFF" => "QUOTAOFF",
        same => same,
    }
}

/// What xfs_logprint shows. An item is a line with its type and the lengths of its regions, and one with its id if it has one.
fn theirs(reference: &Reference, arguments: &[&str], file: &Path) -> Contents {
    let output = reference.tool("xfs_logprint", ["-t"]).args(arguments).arg(file).output();
    let output = output.expect("the reference can be started");
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (mut ends, mut items, mut pending) = (Vec::new(), BTreeMap::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["log", "tail:", tail, "head:", head, ..] = words[..] {
            ends = [tail, head].iter().map(|word| word.parse().expect("a block")).collect();
        }
        let Some((name, rest)) = line.trim().split_once(':') else { continue };
        if rest.starts_with(" cnt:") {
            *items.entry(common_name(name.trim()).to_owned()).or_insert(0) += 1;
        } else if let Some(id) = rest.split("id:").nth(1).filter(|_| rest.contains("#regs:")) {
            let id = id.split_whitespace().next().unwrap_or_default().to_owned();
            let plain = name.trim_end_matches("_RT");
            if plain.ends_with('I') {
                pending.push((name.to_owned(), id));
            } else if let Some(stem) = plain.strip_suffix('D') {
                let intent = name.replacen(plain, &format!("{stem}I"), 1);
                if let Some(at) = pending.iter().position(|found| *found == (intent.clone(), id.clone())) {
                    pending.remove(at);
                }
            }
        }
    }
    let mut counts = BTreeMap::new();
    pending.into_iter().for_each(|(name, _)| *counts.entry(name).or_insert(0) += 1);
    (ends, items, counts)
}

fn json(arguments: &[&str], file: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_xfskit-logprint")).arg("--json").args(arguments).arg(file).output();
    let output = output.expect("the tool can be started");
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).expect("sound JSON")
}

fn ours(arguments: &[&str], file: &Path) -> Contents {
    let name = |value: &Value| value["type"].as_str().unwrap_or("?").to_owned();
    let mut items = BTreeMap::new();
    let checkpoints = json(&[&["-t"], arguments].concat(), file);
    for entry in checkpoints["entries"].as_array().expect("a list").iter().filter(|entry| entry["kind"] == "checkpoint")
    {
        entry["items"].as_array().expect("a list").iter().for_each(|item| *items.entry(name(item)).or_insert(0) += 1);
    }
    let ends = ["tail", "head"].iter().filter_map(|end| checkpoints["log"][*end].as_u64()).collect();
    let intents = json(&[&["--intents"], arguments].concat(), file);
    let mut pending = BTreeMap::new();
    for intent in intents["entries"].as_array().expect("a list").iter().filter(|entry| entry["state"] == "pending") {
        *pending.entry(name(intent)).or_insert(0) += 1;
    }
    (ends, items, pending)
}

fn folder() -> TempDir {
    let parent = std::env::var_os("XFSKIT_WORK").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::Builder::new().prefix("xfskit-logprint.").tempdir_in(parent).expect("the folder can be written")
}

#[test]
fn journals_of_many_kernels() {
    let Some(reference) = reference() else { return };
    let folder = folder();
    // xfs_logprint refuses big-endian writers
    for journal in JOURNALS.iter().filter(|journal| !journal.name.starts_with("s390x")) {
        let file = unpacked(journal, folder.path());
        assert_eq!(ours(journal.arguments, &file), theirs(reference, journal.arguments, &file), "{}", journal.name);
    }
}

/// A filesystem that this machine's kernel has mounted; unmounted when it goes.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        // what stays mounted is seen: its folder cannot be removed
        let _ = unmount(&self.0);
    }
}

/// Makes, links, shares and removes files, more in each round.
fn work(point: &Path, round: usize) -> Result<(), String> {
    let wrong = |error: std::io::Error| error.to_string();
    let root = point.join(format!("round{round}"));
    std::fs::create_dir_all(&root).map_err(wrong)?;
    for file in 0..(60 + 20 * round) {
        let path = root.join(format!("file{file}"));
        std::fs::write(&path, vec![7; 5000 + 4096 * (file % 7)]).map_err(wrong)?;
        let clone = root.join(format!("clone{file}"));
        run("cp", ["--reflink=auto".as_ref(), path.as_os_str(), clone.as_os_str()])?;
        if file % 3 == 0 {
            std::fs::remove_file(&path).map_err(wrong)?;
        }
        if file % 20 == 0 {
            run("sync", ["-f".as_ref(), point.as_os_str()])?;
        }
    }
    Ok(())
}

#[test]
fn journals_of_this_machines_kernel() {
    let Some(reference) = reference() else { return };
    let folder = folder();
    let (data, log, point) = (folder.path().join("data"), folder.path().join("log"), folder.path().join("point"));
    std::fs::create_dir_all(&point).expect("the folder can be written");
    let old = "rmapbt=1,reflink=1,bigtime=0,inobtcount=0";
    for external in [false, true] {
        for (path, size) in [(&data, 600_u64 << 20), (&log, 20 << 20)] {
            std::fs::File::create(path).and_then(|file| file.set_len(size)).expect("a sparse file");
        }
        let mut mkfs =
            reference.tool("mkfs.xfs", ["-q", "-f", "-m", old, "-i", "nrext64=0,exchange=0", "-n", "parent=0"]);
        let log_options = if external { format!("logdev={},size=16m", log.display()) } else { "size=3200b".to_owned() };
        let made = mkfs.args(["--unsupported", "-l", &log_options]).arg(&data).output().expect("it can be started");
        assert!(made.status.success(), "{}", said(&made));
        let looped = if external {
            run("losetup", ["--find".as_ref(), "--show".as_ref(), log.as_os_str()])
        } else {
            Ok(String::new())
        };
        let device = match looped {
            Ok(device) => device.trim().to_owned(),
            Err(why) => return missing(&format!("a loop device for the log: {why}")),
        };
        for round in 0..4 {
            let options = if external { format!("loop,logdev={device}") } else { "loop".to_owned() };
            let arguments =
                ["-t", "xfs", "-o", &options, data.to_str().expect("a name"), point.to_str().expect("a name")];
            let mounted = match run("mount", arguments) {
                Ok(_) => Mounted(point.clone()),
                Err(why) => return missing(&format!("mounting by a loop device: {why}")),
            };
            work(&mounted.0, round).expect("the filesystem is in order");
            let mut shutdown = reference.tool("xfs_io", ["-x", "-c", "shutdown -f"]);
            let done = shutdown.arg(&mounted.0).output().expect("the reference can be started");
            assert!(done.status.success(), "{}", said(&done));
            drop(mounted);
            let arguments = ["-l", log.to_str().expect("a name")];
            let arguments: &[&str] = if external { &arguments } else { &[] };
            let found = ours(arguments, &data);
            assert!(found.1.values().sum::<u64>() > 10, "round {round}: {found:?}");
            assert_eq!(found, theirs(reference, arguments, &data), "round {round}, external: {external}");
        }
        if external {
            run("losetup", ["--detach", &device]).expect("it is not in use any more");
        }
    }
}
