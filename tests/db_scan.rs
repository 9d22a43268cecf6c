//! xfskit-db's scans as a user runs them: on filesystems of kernels that are sound, and on what becomes of them.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A stored filesystem, unpacked.
struct Bench {
    _dir: TempDir,
    image: PathBuf,
}

impl Bench {
    fn new(name: &str) -> Self {
        let dir = TempDir::new().expect("a temporary folder can be made");
        let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/db").join(format!("{name}.img.zst"));
        let image = dir.path().join("image");
        let bytes = fs::read(packed).expect("the image is there");
        unpack(&bytes, &image);
        Bench { _dir: dir, image }
    }

    fn run(&self, threads: &str, commands: &[&str]) -> Output {
        let mut db = Command::new(env!("CARGO_BIN_EXE_xfskit-db"));
        db.env("RAYON_NUM_THREADS", threads).args(commands.iter().flat_map(|command| ["-c", command]));
        db.arg(&self.image).output().expect("the tool can be started")
    }

    fn text(&self, commands: &[&str]) -> String {
        let output = self.run("3", commands);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The results of the commands.
    fn json(&self, commands: &[&str]) -> Vec<Value> {
        let mut db = Command::new(env!("CARGO_BIN_EXE_xfskit-db"));
        db.arg("--json").args(commands.iter().flat_map(|command| ["-c", command]));
        let output = db.arg(&self.image).output().expect("the tool can be started");
        let lines = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
        lines.map(|line| line.expect("valid JSON")["result"].clone()).collect()
    }

    fn overwrite(&self, offset: u64, bytes: &[u8]) {
        let file = OpenOptions::new().write(true).open(&self.image).expect("the image is there");
        file.write_all_at(bytes, offset).expect("the image is writable");
    }
}

fn unpack(bytes: &[u8], to: &Path) {
    use std::io::{Read, Seek, SeekFrom, Write};
    let mut source = zstd::stream::read::Decoder::new(bytes).expect("a frame");
    source.window_log_max(31).expect("a window that is allowed");
    let mut file = fs::File::create(to).expect("a file can be made");
    let (mut piece, mut len) = (vec![0; 1 << 16], 0_u64);
    loop {
        let read = source.read(&mut piece).expect("whole");
        if read == 0 {
            break;
        }
        len += u64::try_from(read).expect("invariant: small");
        if piece[..read].iter().any(|byte| *byte != 0) {
            file.write_all(&piece[..read]).expect("room");
        } else {
            file.seek(SeekFrom::Start(len)).expect("seekable");
        }
    }
    file.set_len(len).expect("a file can be sparse");
}

/// Where a field of the free space header of group `agno` lies.
fn agf_field(bench: &Bench, agno: u64, field: &str) -> u64 {
    use xfskit::ondisk::{OnDisk, RawAgf};
    let sb = &bench.json(&["sb 0", "print blocksize agblocks sectsize"])[1];
    let number = |name: &str| sb[name].as_u64().expect("a number");
    let field = RawAgf::FIELDS.iter().find(|known| known.name == field).expect("a field of the structure");
    let sector = u64::from(RawAgf::SECTOR) * number("sectsize");
    agno * number("agblocks") * number("blocksize") + sector + u64::try_from(field.offset).expect("small")
}

#[test]
fn nothing_is_found_in_sound_filesystems_and_every_block_has_an_owner() {
    for name in ["v4", "v4-quota", "quota"] {
        let bench = Bench::new(name);
        let results = bench.json(&["blockget -n", "agf 0", "blockuse -c 100", "ncheck", "freesp -s"]);
        assert_eq!(results[0]["errors"], 0, "{name}: {}", results[0]);
        assert_eq!(results[0]["messages"].as_array().map(Vec::len), Some(0), "{name}");
        let uses = results[2].as_array().expect("a list");
        assert!(uses.iter().all(|block| block["type"] != "unknown"), "{name}: {uses:?}");
        let names = results[3].as_array().expect("a list");
        assert!(names.iter().any(|inode| inode["path"] == "dirs/n300" && inode["directory"] == true), "{name}");
        let free: u64 =
            results[4]["histogram"].as_array().expect("a list").iter().filter_map(|row| row["blocks"].as_u64()).sum();
        assert_eq!(Some(free), results[4]["blocks"].as_u64(), "{name}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let bench = Bench::new("quota");
    // a block of an inode btree that is not what it should be, so that there is much to be said
    bench.overwrite(agf_field(&bench, 1, "bno_root"), &7_u32.to_be_bytes());
    let commands = ["blockget -n -v", "ncheck", "freesp -d", "frag -v", "fsmap"];
    let one = bench.run("1", &commands);
    assert!(one.stdout.len() > 100_000);
    for _ in 0..3 {
        assert!(bench.run("4", &commands).stdout == one.stdout);
    }
}

#[test]
fn damage_is_found_where_it_is() {
    let bench = Bench::new("v4");
    bench.overwrite(agf_field(&bench, 2, "freeblks"), &5_u32.to_be_bytes());
    bench.overwrite(agf_field(&bench, 3, "magicnum"), b"XXXX");
    let text = bench.text(&["blockget"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("agf_freeblks 5, counted ") && lines[0].ends_with(" in ag 2"), "{text}");
    assert_eq!(lines[1], "bad agf magic # 0x58585858 in ag 3");
    assert_eq!(bench.text(&["blockget -s"]), "");
    assert_eq!(bench.json(&["blockget -s"])[0]["errors"], 2);
}

#[test]
fn what_is_not_known_yet_is_refused() {
    let bench = Bench::new("v4");
    for commands in [
        &["ncheck"][..],
        &["agf 0", "blockuse"],
        &["blockfree"],
        &["blockget", "ncheck"],
        &["blockget", "agf 0", "blockuse -n"],
        &["blockget", "blockget"],
        &["blockget", "agf 0", "blockuse -c 0"],
        &["fsmap"],
        &["freesp -b -e 3"],
        &["freesp -m 1"],
        &["frag -z"],
    ] {
        let output = bench.run("2", commands);
        assert_eq!(output.status.code(), Some(1), "{commands:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{commands:?}");
    }
    assert_eq!(bench.text(&["blockget", "blockfree", "blockget"]), "");
}

#[test]
fn no_damage_stops_a_scan() {
    // bytes of the headers and of the first inodes at a time, each value from a fixed sequence
    let bench = Bench::new("v4");
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let rounds = if std::env::var_os("XFSKIT_FULL").is_some() { 200 } else { 12 };
    let original = fs::read(&bench.image).expect("readable")[..1 << 16].to_vec();
    for _ in 0..rounds {
        for _ in 0..6 {
            let at = 512 + next() % ((1 << 16) - 600);
            let bytes = next().to_be_bytes();
            bench.overwrite(at, &bytes[..usize::try_from(1 + next() % 4).expect("small")]);
        }
        let output = bench.run("2", &["blockget -n", "ncheck", "agf 0", "blockuse -c 9", "freesp -s", "frag"]);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
        bench.overwrite(0, &original);
    }
}
