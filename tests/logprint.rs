//! xfskit-logprint on journals of kernels, as a user runs it. What the items of each type and the pending intents must be is
//! what `xfs_logprint -t` 7.2 shows of the same journals.

mod journals;

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::Path;
use std::process::{Command, Output};

use journals::{JOURNALS, Journal, unpacked};
use serde_json::Value;
use xfskit::buffer::{SearchEffort, find_superblock};
use xfskit::device::{Device, FileDevice, OpenFile};
use xfskit::geometry::{Ino, Lsn};
use xfskit::ondisk::{RawAgf, RawDinode};

fn run(arguments: &[&str], file: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xfskit-logprint"));
    command.args(arguments).arg(file).output().expect("the tool can be started")
}

/// Runs the tool and parses its JSON; an object with a name twice is an error.
fn json(arguments: &[&str], file: &Path) -> Value {
    let output = run(&[&["--json"], arguments].concat(), file);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let journals::Strict(value) = serde_json::from_slice(&output.stdout).expect("sound JSON");
    assert_eq!(value["format"], 1);
    value
}

fn entries<'a>(value: &'a Value, kind: &str) -> Vec<&'a Value> {
    value["entries"].as_array().expect("a list").iter().filter(|entry| entry["kind"] == kind).collect()
}

fn tally<'a>(values: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value["type"].as_str().unwrap_or("?").to_owned()).or_insert(0) += 1;
    }
    counts
}

fn items(value: &Value) -> Vec<&Value> {
    entries(value, "checkpoint").into_iter().flat_map(|entry| entry["items"].as_array().expect("a list")).collect()
}

fn expected(words: &str) -> BTreeMap<String, u64> {
    let pairs: Vec<&str> = words.split_whitespace().collect();
    pairs.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].parse().expect("a number"))).collect()
}

/// Calls `test` with each journal.
fn each(test: impl Fn(&Journal, &Path)) {
    let folder = tempfile::tempdir().expect("a folder");
    for journal in JOURNALS {
        test(journal, &unpacked(journal, folder.path()));
    }
}

#[test]
fn items_and_pending_intents_are_those_of_xfs_logprint() {
    each(|journal, file| {
        let checkpoints = json(&[journal.arguments, &["-t"]].concat(), file);
        let log = &checkpoints["log"];
        assert_eq!((log["tail"].as_u64(), log["head"].as_u64()), (Some(journal.tail), Some(journal.head)));
        assert_eq!(log["byte_order"], if journal.name.starts_with("s390x") { "big" } else { "little" });
        assert_eq!(entries(&checkpoints, "checkpoint").len(), journal.checkpoints, "{}", journal.name);
        let items = items(&checkpoints);
        assert_eq!(tally(items.iter().copied()), expected(journal.items), "{}", journal.name);
        assert!(items.iter().all(|item| item.get("problem").is_none()), "{}", journal.name);
        let intents = json(&[journal.arguments, &["--intents"]].concat(), file);
        let pending = entries(&intents, "intent").into_iter().filter(|intent| intent["state"] == "pending");
        assert_eq!(tally(pending), expected(journal.pending), "{}", journal.name);
    });
}

#[test]
fn the_views_agree() {
    each(|journal, file| {
        let with = |more: &[&str]| json(&[journal.arguments, more].concat(), file);
        let counted = tally(items(&with(&["-t"])));
        // the sums are those of the items
        let summary = with(&["--summary"]);
        let types = entries(&summary, "items")[0]["types"].as_array().expect("a list").clone();
        let sums: BTreeMap<String, u64> = types
            .iter()
            .map(|row| (row["type"].as_str().expect("a name").to_owned(), row["items"].as_u64().expect("a count")))
            .collect();
        assert_eq!(sums, counted, "{}", journal.name);
        // intents are pending, or finished by one checkpoint; kernels since 5.19 write no pairs within one
        let intents = with(&["--intents"]);
        let sum = entries(&intents, "intents")[0].clone();
        let count = |state: &str| entries(&intents, "intent").iter().filter(|intent| intent["state"] == state).count();
        assert_eq!(sum["pending"], count("pending"));
        assert_eq!(sum["finished_later"], count("finished"));
        assert_eq!(sum["finished_in_the_same_checkpoint"], count("same-checkpoint"));
        assert_eq!(count("same-checkpoint") > 0, journal.name.starts_with("k510"), "{}", journal.name);
        let saved = &entries(&summary, "whiteouts")[0]["bytes_saved"];
        assert_eq!(saved.as_u64().expect("a count") > 0, journal.name.starts_with("k510"), "{}", journal.name);
        let all: u64 = counted.iter().filter(|(name, _)| name.contains('I') && is_intent(name)).map(|(_, n)| n).sum();
        let shown = count("pending") + count("finished") + count("same-checkpoint");
        assert_eq!(shown as u64, all, "{}", journal.name);
        // records have the same items, and more that are older
        let records = with(&["-ib"]);
        let mut in_records = Vec::new();
        for record in entries(&records, "record").into_iter().filter(|record| record["part"] == "active") {
            for op in record["operations"].as_array().expect("a list") {
                in_records
                    .extend(op["contents"].as_array().into_iter().flatten().filter(|entry| entry["kind"] == "item"));
            }
        }
        let in_records = tally(in_records);
        assert!(counted.iter().all(|(name, count)| in_records.get(name) >= Some(count)), "{}", journal.name);
    });
}

fn is_intent(name: &str) -> bool {
    ["EFI", "RUI", "CUI", "BUI", "ATTRI", "XMI", "EFI_RT", "RUI_RT", "CUI_RT"].contains(&name)
}

#[test]
fn text_has_the_items_too() {
    each(|journal, file| {
        let output = run(&[journal.arguments, &["-tbiqov"]].concat(), file);
        assert_eq!(output.status.code(), Some(0), "{}", journal.name);
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.lines().all(|line| line.chars().count() < 300), "{}", journal.name);
        // what was never committed comes last
        let text = text.split("never committed:").next().unwrap_or_default();
        for (name, count) in expected(journal.items) {
            let lines = text
                .lines()
                .filter(|line| line.strip_prefix("  ").is_some_and(|line| line.starts_with(&format!("{name}  "))));
            assert_eq!(lines.count() as u64, count, "{}: {name}", journal.name);
        }
    });
}

#[test]
fn a_copy_of_the_log_shows_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = &JOURNALS[0];
    let image = unpacked(journal, folder.path());
    let copy = folder.path().join("copy");
    let make = || run(&["-C", copy.to_str().expect("a name")], &image);
    assert_eq!(make().status.code(), Some(0));
    assert_eq!(make().status.code(), Some(1), "a file that is there is not overwritten");
    let (from_image, from_copy) = (json(&["-d"], &image), json(&["-d", "-f"], &copy));
    assert_eq!(from_image["entries"], from_copy["entries"]);
    assert_eq!(from_copy["log"]["place"], "copy");
    assert_eq!(tally(items(&json(&["-t", "-f"], &copy))), expected(journal.items));
}

#[test]
fn the_beginning_can_be_chosen() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = &JOURNALS[0];
    let image = unpacked(journal, folder.path());
    let blocks = |arguments: &[&str]| -> Vec<u64> {
        let found = json(&[arguments, &["-n"]].concat(), &image);
        entries(&found, "record").iter().map(|record| record["block"].as_u64().expect("a block")).collect()
    };
    let all = blocks(&[]);
    let start = all[all.len() / 2];
    assert_eq!(blocks(&["-s", &start.to_string()]), &all[all.len() / 2..]);
    let later = json(&["-t", "-s", &start.to_string()], &image);
    assert!(items(&later).len() < items(&json(&["-t"], &image)).len());
    let bytes = json(&["-D", "-s", &start.to_string()], &image);
    assert_eq!(entries(&bytes, "block")[0]["block"], start);
    assert!(entries(&bytes, "block")[0]["bytes"].as_str().is_some_and(|bytes| bytes.starts_with("feedbabe")));
}

#[test]
fn damage_is_shown_and_the_rest_goes_on() {
    use std::os::unix::fs::FileExt;
    let folder = tempfile::tempdir().expect("a folder");
    let journal = JOURNALS.iter().find(|journal| journal.name == "k510-wrap.log").expect("it is in the list");
    let log = unpacked(journal, folder.path());
    let file = std::fs::OpenOptions::new().write(true).open(&log).expect("it can be written");
    // the second record of those that a replay needs
    let records = json(&["-f", "-n"], &log);
    let active: Vec<&Value> =
        entries(&records, "record").into_iter().filter(|record| record["part"] == "active").collect();
    let second = active[1]["block"].as_u64().expect("a block");
    file.write_all_at(&[0x77; 512], second * 512).expect("it can be written");
    let going_on = run(&["-f", "-t"], &log);
    assert_eq!(going_on.status.code(), Some(1));
    let text = String::from_utf8_lossy(&going_on.stdout).into_owned();
    assert!(text.contains(&format!("gap at {second}: no record")), "{text:.2000}");
    let stopping = run(&["-f", "-t", "-e"], &log);
    assert_eq!(stopping.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&stopping.stderr).contains("the rest is not shown"));
    let checkpoints = |text: &str| text.lines().filter(|line| line.starts_with("checkpoint ")).count();
    assert!(checkpoints(&String::from_utf8_lossy(&stopping.stdout)) < checkpoints(&text));
    // the records behind it are all there
    let records = run(&["-f", "-n"], &log);
    let text = String::from_utf8_lossy(&records.stdout).into_owned();
    assert_eq!(
        text.lines().filter(|line| line.starts_with("record at") && line.contains("part active")).count(),
        active.len() - 1
    );
}

#[test]
fn logs_of_mkfs_and_external_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let name = |path: &Path| path.to_str().expect("a name").to_owned();
    for (path, size) in [(&data, 400_u64 << 20), (&log, 100 << 20)] {
        std::fs::File::create(path).and_then(|file| file.set_len(size)).expect("a sparse file");
    }
    for (version, stripe) in [("1", ""), ("2", ""), ("2", ",sunit=512")] {
        let options = format!("logdev={},version={version},size=64m{stripe}", name(&log));
        let features =
            if version == "1" { "crc=0,finobt=0,rmapbt=0,reflink=0,bigtime=0,inobtcount=0" } else { "crc=1" };
        let made = Command::new(env!("CARGO_BIN_EXE_xfskit-mkfs"))
            .args(["-q", "-f", "-m", features, "-l", &options, &name(&data)])
            .output()
            .expect("the tool can be started");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let found = json(&["-l", &name(&log)], &data);
        assert_eq!((&found["log"]["place"], &found["log"]["state"]), (&"external".into(), &"clean".into()));
        let records = entries(&found, "record");
        assert_eq!(records.len(), 1, "version {version}{stripe}");
        assert_eq!(records[0]["operations"][0]["is"], "unmount");
        assert_eq!(records[0]["version"].to_string(), version);
    }
    let without = run(&["-t"], &data);
    assert_eq!(without.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&without.stderr).contains("the external log device is not given"));
}

/// A replay leaves alone what has an LSN on disk that is as new as all that is logged of it.
#[test]
fn what_is_newer_on_disk_is_not_touched() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = JOURNALS.iter().find(|journal| journal.name == "k73-default.1.img").expect("it is in the list");
    let file = unpacked(journal, folder.path());
    let touched = || {
        let summary = json(&["--summary"], &file);
        let replay = entries(&summary, "replay")[0].clone();
        let rows = replay["of_these"].as_array().expect("a list");
        let left = rows.iter().find(|row| row["kind"] == "in_place").expect("the disk is known");
        let count = |value: &Value| value.as_u64().expect("a count");
        ["buffers", "inodes"].map(|what| (count(&replay[what]), count(&left[what])))
    };
    let before = touched();
    assert_eq!(before.map(|(_, left)| left), [0, 0]);
    let checkpoints = json(&["-t", "-i"], &file);
    let logged = items(&checkpoints);
    let inode = logged.iter().find(|item| item["type"] == "INODE").expect("an inode");
    let device = FileDevice::open(&file, OpenFile::WRITE).expect("writable");
    let geometry = find_superblock(&device, SearchEffort::Guesses).expect("a filesystem").geometry;
    let sector = u64::from(geometry.sectsize);
    let inode = geometry.ino_offset(Ino(inode["ino"].as_u64().expect("a number"))).expect("it is on the disk");
    // the checksums are wrong then: a replay looks at the LSN before
    for at in [sector + offset_of!(RawAgf, lsn) as u64, inode + offset_of!(RawDinode, lsn) as u64] {
        device.write_at(at, &Lsn::new(1000, 7).0.to_be_bytes()).expect("writable");
    }
    assert_eq!(touched(), before.map(|(touched, _)| (touched - 1, 1)));
    // older than the first of all changes
    for at in [sector + offset_of!(RawAgf, lsn) as u64, inode + offset_of!(RawDinode, lsn) as u64] {
        device.write_at(at, &Lsn::new(1, 1).0.to_be_bytes()).expect("writable");
    }
    assert_eq!(touched(), before);
}
