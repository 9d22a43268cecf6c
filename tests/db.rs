//! xfskit-db as a user runs it, and on damaged images.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use xfskit::buffer::SearchEffort;
use xfskit::db::{Session, interpret, line};
use xfskit::device::{Device, FileDevice, OpenFile, OverlayDevice};
use xfskit::image::{Image, ImageDevices};
use xfskit::report::Silent;

/// A folder with an image, and the tool at work on it.
struct Bench {
    dir: TempDir,
}

impl Bench {
    fn new(arguments: &[&str]) -> Self {
        let bench = Bench { dir: TempDir::new().expect("a temporary folder can be made") };
        let file = File::create(bench.path("image")).expect("a file can be made");
        file.set_len(320 << 20).expect("a file can be sparse");
        let mut mkfs = Command::new(env!("CARGO_BIN_EXE_xfskit-mkfs"));
        let status = mkfs.args(["-q", "-f"]).args(arguments).arg(bench.path("image")).status();
        assert!(status.is_ok_and(|status| status.success()), "no image could be made");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn overwrite(&self, offset: u64, bytes: &[u8]) {
        let file = File::options().write(true).open(self.path("image"));
        file.and_then(|file| file.write_all_at(bytes, offset)).expect("the image can be written");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xfskit-db"));
        command.args(arguments).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the tool can be started")
    }

    /// The output of a run that must do all its work.
    fn said(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// The output of commands that are typed.
    fn typed(&self, text: &str) -> Output {
        let mut command = self.command(&["image"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the tool can be started");
        let mut input = child.stdin.take().expect("invariant: it is piped");
        input.write_all(text.as_bytes()).expect("the tool reads its input");
        drop(input);
        child.wait_with_output().expect("the tool ends")
    }
}

fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

#[test]
fn commands_come_by_lines_by_words_and_by_the_input() {
    let bench = Bench::new(&["-L", "look"]);
    let fname = "fname = \"look\\000\\000\\000\\000\\000\\000\\000\\000\"\n";
    assert_eq!(bench.said(&["-r", "-c", "sb 0", "-c", "print fname", "image"]), fname);
    assert_eq!(bench.said(&["image", "print", "sb", "0", "fname"]), fname);
    assert_eq!(bench.said(&["image", "sb"]), "");
    let typed = bench.typed("sb\nprint \\\nfname\nquit\nprint\n");
    assert_eq!((String::from_utf8_lossy(&typed.stdout).as_ref(), typed.status.code()), (fname, Some(0)));
    let agf = bench.said(&["image", "print", "agf", "3"]);
    assert!(agf.starts_with("magicnum = 0x58414746\nversionnum = 1\nseqno = 3\n"), "{agf}");
}

#[test]
fn a_failing_command_is_complained_of_and_the_next_goes_on() {
    let bench = Bench::new(&[]);
    for (command, complaint) in [
        ("nonsense", "no command nonsense"),
        ("print", "no current position"),
        ("agf 99", "no group 99"),
        ("inode 0xffffffffffff", "no inode can have"),
        ("echo2 x", "no command"),
        ("source missing-file", "cannot read missing-file"),
        ("dblock 0", "no current inode"),
        ("pop", "no position to go back to"),
        ("type nothing", "no type nothing"),
        ("sb 0 1", "sb takes"),
        ("push echo", "does not move"),
    ] {
        let output = bench.run(&["-c", command, "-c", "echo on", "-p", "looker", "image"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "on \n", "{command}");
        assert!(stderr.starts_with("looker: ") && stderr.contains(complaint), "{command}: {stderr}");
    }
    for field in ["nothing", "fname.x", "uuid[1]", "fname[", "magicnum.", "Magic"] {
        let output = bench.run(&["-c", "sb", "-c", &format!("print {field}"), "image"]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{field}");
    }
}

#[test]
fn json_has_an_object_for_each_command() {
    let bench = Bench::new(&["-L", "look"]);
    let lines = ["-c", "agfl 1", "-c", "print", "-c", "nonsense", "-c", "sb", "-c", "print fname rootino crc"];
    let output = bench.run(&[&["--json"][..], &lines, &["image"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let objects = json(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(objects.len(), 5);
    assert!(objects.iter().all(|object| object["format"] == 1 && object["command"].is_array()));
    assert_eq!(objects[0]["result"], Value::Null);
    let list = &objects[1]["result"];
    assert_eq!((list["magicnum"].as_u64(), list["seqno"].as_u64()), (Some(0x5841_464c), Some(1)));
    assert!(list["bno"].as_array().is_some_and(|bno| bno.len() > 100 && bno[0] == Value::Null || bno[0].is_u64()));
    assert!(objects[2]["error"].as_str().is_some_and(|error| error.contains("nonsense")));
    let sb = &objects[4]["result"];
    assert_eq!((sb["fname"].as_str(), sb["crc"]["state"].as_str()), (Some("look"), Some("correct")));
    let root = sb["rootino"].as_u64().expect("a number");

    let inode = json(&bench.said(&["--json", "image", "print", "inode", &root.to_string()]));
    let fields = &inode[1]["result"];
    assert_eq!(fields["core"]["format"]["name"], "local");
    assert!(fields["core"]["atime"]["sec"].is_i64() && fields["u3"]["sfdir3"].is_object(), "{fields}");
    assert_eq!(fields["v3"]["inumber"].as_u64(), Some(root));
}

#[test]
fn scripts_are_run_and_the_log_keeps_what_is_said() {
    let bench = Bench::new(&[]);
    fs::write(bench.path("inner"), "echo inner\n").expect("writable");
    fs::write(bench.path("outer"), "echo one\nsource inner\necho \\\n two\n").expect("writable");
    let said = bench.said(&[
        "-c",
        "log start kept",
        "-c",
        "source outer",
        "-c",
        "log",
        "-c",
        "log stop",
        "-c",
        "log",
        "image",
    ]);
    assert_eq!(said, "one \ninner \ntwo \nlogging to kept\nno log file\n");
    assert_eq!(fs::read_to_string(bench.path("kept")).expect("readable"), "one \ninner \ntwo \nlogging to kept\n");
    fs::write(bench.path("endless"), "source endless\n").expect("writable");
    assert_eq!(bench.run(&["-c", "source endless", "image"]).status.code(), Some(1));
    assert_eq!(bench.run(&["-c", "log start /nowhere/x", "image"]).status.code(), Some(1));
}

#[test]
fn the_crc_of_a_damaged_block_is_bad_and_the_damage_is_said() {
    let bench = Bench::new(&[]);
    // the name of the structure in a counter of free blocks
    bench.overwrite(512 + 52, b"AGF?");
    let output = bench.run(&["-c", "agf 0", "-c", "crc", "-c", "agf 1", "-c", "crc", "image"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("(bad)") && said.contains("(correct)"), "{said}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("agf.crc"));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_filesystem_without_a_primary_superblock_is_seen_through_a_copy_or_by_force() {
    let bench = Bench::new(&[]);
    bench.overwrite(0, &[0; 4]);
    let output = bench.run(&["-c", "agf 1", "-c", "print magicnum", "image"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "magicnum = 0x58414746\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("primary superblock is damaged"));
    assert_eq!(bench.said(&["-F", "-c", "sb", "-c", "print magicnum", "image"]), "magicnum = 0\n");
}

/// splitmix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }
}

/// Unpacks an image of `testdata/db`.
fn unpack(name: &str, folder: &Path) -> PathBuf {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/db/{name}.img.zst"));
    let path = folder.join(name);
    let mut source = zstd::stream::read::Decoder::new(File::open(packed).expect("readable")).expect("zstd");
    source.window_log_max(27).expect("a window that zstd knows");
    let file = File::create(&path).expect("writable");
    let (mut piece, mut offset) = (vec![0; 1 << 16], 0);
    loop {
        let len = source.read(&mut piece).expect("unpacked");
        if len == 0 {
            break;
        }
        if piece[..len].iter().any(|byte| *byte != 0) {
            file.write_all_at(&piece[..len], offset).expect("writable");
        }
        offset += u64::try_from(len).expect("small");
    }
    file.set_len(offset).expect("writable");
    path
}

const WALK: &str = "sb 0; print; agf 0; print; a bnoroot; print; type; agi 0; print; a root; print; a recs[1].startino; print; \
     agi 0; a free_root; print; sb 0; a rootino; print; dblock 0; print; ablock 0; print; a; stack; ring; \
     agf 0; a cntroot; print; agfl 0; print; fsblock 12; type inode; print; type dir3; print; type dir2; print; type attr3; print; \
     type bmapbtd; print; type rmapbt; print; type symlink; print; type inobt; print; type dqblk; print; crc; dquot 0; print";

/// Inodes, directories and trees of damaged images are printed without a panic, in bounded time.
#[test]
fn damaged_images_are_shown() {
    let full = std::env::var_os("XFSKIT_FULL").is_some();
    let runs = if full { 600 } else { 30 };
    let folder = TempDir::new().expect("a temporary folder can be made");
    for name in ["v4", "quota", "groups"] {
        let path = unpack(name, folder.path());
        let mut random = Random(7);
        for run in 0..runs {
            let file = FileDevice::open(&path, OpenFile::READ).expect("readable");
            let damaged = OverlayDevice::new(file);
            for _ in 0..40 {
                // headers and the first blocks of a group, where roots and the first inodes are
                let offset = random.below(2) * random.below(16 << 20) + random.below(256 << 10);
                let value = [0, 1, 0xff, 0x80, 0x7f][usize::try_from(random.below(5)).expect("small")];
                damaged.write_at(offset, &[value; 2]).expect("memory");
            }
            let devices = ImageDevices::of_data(Arc::new(damaged));
            let Ok(image) = Image::open(devices, SearchEffort::Guesses) else { continue };
            let mut session = Session::new(image, Arc::new(Silent));
            let start = Instant::now();
            for command in WALK.split("; ") {
                let words = line::words(command);
                let outcome = catch_unwind(AssertUnwindSafe(|| {
                    if let Ok(Some(answer)) = interpret(&mut session, &words) {
                        let mut text = Vec::new();
                        answer.write_text(&mut text).expect("memory");
                        let _ = answer.json();
                    }
                }));
                assert!(outcome.is_ok(), "{name}, run {run}: {command} panics");
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{name}, run {run}: {:?}", start.elapsed());
        }
    }
}
