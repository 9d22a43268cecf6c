//! xfskit-mkfs as a user runs it.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const UUID: &str = "uuid=1b4e28ba-2fa1-11d2-883f-0016d3cca427";

/// A folder for images, and the tool at work in it.
struct Bench {
    dir: TempDir,
}

impl Bench {
    fn new() -> Self {
        Bench { dir: TempDir::new().expect("a temporary folder can be made") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn sparse(&self, name: &str, size: &str) -> PathBuf {
        let path = self.path(name);
        File::create(&path).and_then(|file| file.set_len(bytes(size))).expect("a sparse file can be made");
        path
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xfskit-mkfs"));
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env("SOURCE_DATE_EPOCH", "1700000000")
            .env("DETERMINISTIC_SEED", "1")
            .env_remove("TEST_DIR");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the tool can be started")
    }

    /// Runs the tool, which must succeed, and gives what it prints.
    fn made(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("the tool prints UTF-8")
    }

    /// Runs the tool, which must fail with exit code 1 and say nothing but why.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        String::from_utf8(output.stderr).expect("the tool prints UTF-8")
    }
}

fn bytes(size: &str) -> u64 {
    let (number, shift) = match size.as_bytes().last() {
        Some(b'm') => (&size[..size.len() - 1], 20),
        Some(b'g') => (&size[..size.len() - 1], 30),
        Some(b't') => (&size[..size.len() - 1], 40),
        _ => (size, 0),
    };
    number.parse::<u64>().expect("a number") << shift
}

fn is_xfs(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"XFSB"
}

#[test]
fn geometry_is_printed_as_mkfs_xfs_prints_it() {
    let bench = Bench::new();
    let cases = include_str!("../testdata/mkfs/geometry.txt");
    let mut checked = 0;
    for case in cases.split("\n\n").skip(1) {
        let (head, expected) = case.split_once('\n').expect("a head and the geometry");
        let mut parts = head.split('|').map(str::trim);
        let mut part = || parts.next().expect("three parts");
        let (data_size, realtime_size, arguments) = (part(), part(), part());
        let data = bench.path("data");
        let realtime = if realtime_size == "-" { bench.path("rt") } else { bench.sparse("rt", realtime_size) };
        let (data, realtime) = (data.display().to_string(), realtime.display().to_string());
        let arguments: Vec<String> = arguments.split_whitespace().map(|word| word.replace("{r}", &realtime)).collect();
        let mut command = vec!["-N", "--size", data_size];
        command.extend(arguments.iter().map(String::as_str));
        command.push(&data);
        let printed = bench.made(&command);
        let expected = expected.replace("{d}", &format!("{data:<22}")).replace("{r}", &format!("{realtime:<22}"));
        assert_eq!(printed.trim_end(), expected.trim_end(), "{head}");
        assert!(!Path::new(&data).exists(), "-N makes no file");
        checked += 1;
    }
    assert!(checked > 40);
}

#[test]
fn an_image_is_made_where_a_size_is_given() {
    let bench = Bench::new();
    assert!(bench.refused(&["new.img"]).contains("--size"));
    bench.made(&["--size", "300m", "a.img"]);
    assert_eq!(fs::metadata(bench.path("a.img")).expect("made").len(), 300 << 20);
    bench.made(&["-d", "size=300m", "b.img"]);
    bench.made(&["-d", "file,name=c.img,size=300m"]);
    for name in ["a.img", "b.img", "c.img"] {
        assert!(is_xfs(&bench.path(name)), "{name}");
    }
}

#[test]
fn the_same_arguments_make_the_same_bytes() {
    let bench = Bench::new();
    bench.made(&["-q", "--unsupported", "-m", UUID, "--size", "64m", "a.img"]);
    bench.made(&["-q", "--unsupported", "-m", UUID, "--size", "64m", "b.img"]);
    assert!(fs::read(bench.path("a.img")).expect("made") == fs::read(bench.path("b.img")).expect("made"));
}

#[test]
fn what_is_known_is_not_overwritten_without_force() {
    let bench = Bench::new();
    bench.made(&["-q", "--unsupported", "--size", "64m", "a.img"]);
    let before = fs::read(bench.path("a.img")).expect("made");
    assert!(bench.refused(&["a.img"]).contains("holds a filesystem or volume (xfs); -f overwrites it"));
    assert!(bench.refused(&["-N", "a.img"]).contains("-f overwrites it"));
    assert!(fs::read(bench.path("a.img")).expect("still there") == before);
    bench.made(&["-q", "--unsupported", "-f", "-L", "again", "a.img"]);
    let luks = bench.sparse("luks.img", "300m");
    fs::write(&luks, [b"LUKS\xba\xbe".as_slice(), &[0; 4096]].concat()).expect("writable");
    File::options().write(true).open(&luks).and_then(|file| file.set_len(300 << 20)).expect("writable");
    assert!(bench.refused(&["luks.img"]).contains("crypto_LUKS"));
    assert!(fs::read(&luks).expect("readable").starts_with(b"LUKS"));
}

#[test]
fn success_is_quiet_where_that_is_wished() {
    let bench = Bench::new();
    let output = bench.run(&["-q", "--unsupported", "-m", "crc=0", "--size", "64m", "a.img"]);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    // what is asked for is not what -q means
    let output = bench.run(&["-q", "-f", "--json", "--unsupported", "-m", "crc=0", "a.img"]);
    assert!(output.status.success() && output.stderr.is_empty());
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["dry_run"], false);
    let output = bench.run(&["-f", "--allow-small", "-m", "crc=0", "a.img"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("V4 filesystems are deprecated"));
}

#[test]
fn errors_name_the_option_and_what_is_allowed() {
    let bench = Bench::new();
    bench.sparse("a.img", "1g");
    let cases: &[(&[&str], &str)] = &[
        (&["-b", "size=3k"], "-b size=3k: not a power of two; allowed: powers of two from 512 to 64k"),
        (
            &["-d", "agcount=1000"],
            "-d agcount: allocation groups of 263 blocks; allowed: 4096 to 262144 blocks, so 1 to 64",
        ),
        (&["-d", "size=2g"], "-d size: 524288 blocks do not fit; allowed: up to 262144 blocks"),
        (&["-l", "size=2g"], "-l size=2g: too large; allowed: 2m to 2038m"),
        (&["-l", "agnum=4"], "-l agnum=4: allowed: 0 to 3"),
        (&["-m", "crc=0,rmapbt=1"], "-m rmapbt needs -m crc=1"),
        (&["-r", "size=1g"], "-r size needs a realtime device: -r rtdev"),
        (&["-d", "su=64k"], "-d su and -d sw must be given together"),
        (&["-p", "x"], "x: No such file or directory"),
        (&["-L", "thirteenchars"], "-L thirteenchars: 13 bytes; allowed: up to 12 bytes"),
        (&["-X"], "-X"),
        (&["--target", "kernel=abc"], "--target kernel=abc: 'abc' is not a kernel release"),
        (&["--target", "kernel=9.9"], "--target kernel=9.9: Linux 9.9 is outside the table"),
        (&["--offset", "2g"], "--offset 2147483648 lies behind the end; allowed: 0 to 1073741824"),
        (&["-c", "options=/dev/zero"], "-c options=/dev/zero: longer than 1048576 bytes"),
    ];
    for (arguments, expected) in cases {
        let command: Vec<&str> = arguments.iter().copied().chain(["a.img"]).collect();
        let error = bench.refused(&command);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    assert!(bench.refused(&[]).contains("no device or file"));
    assert!(!is_xfs(&bench.path("a.img")));
}

#[test]
fn one_file_is_not_two_sections() {
    let bench = Bench::new();
    bench.sparse("a.img", "1g");
    fs::hard_link(bench.path("a.img"), bench.path("b.img")).expect("invariant: the folder is writable");
    for arguments in [["-l", "logdev=a.img"], ["-l", "logdev=b.img"], ["-r", "rtdev=b.img"]] {
        for action in ["-f", "-N"] {
            let error = bench.refused(&[action, arguments[0], arguments[1], "a.img"]);
            assert!(error.contains("section (a.img) already"), "{arguments:?}: {error}");
        }
    }
    assert!(!is_xfs(&bench.path("a.img")));
}

#[test]
fn a_full_standard_output_is_not_taken_for_a_full_device() {
    let bench = Bench::new();
    bench.sparse("a.img", "1g");
    let full = File::create("/dev/full").expect("invariant: there is such a device");
    let output = bench.command(&["a.img"]).stdout(full).output().expect("invariant: the tool is built");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("standard output: No space left"), "{error}");
    assert!(!is_xfs(&bench.path("a.img")));
}

#[test]
fn a_time_that_is_none_is_not_passed_over_in_silence() {
    let bench = Bench::new();
    let run = |time: &str| {
        let arguments = ["-N", "--size", "1g", "a.img"];
        let output = bench.command(&arguments).env("SOURCE_DATE_EPOCH", time).output();
        let output = output.expect("invariant: the tool is built");
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(run("yesterday").contains("SOURCE_DATE_EPOCH=yesterday"));
    assert_eq!(run("1700000000"), "");
}

#[test]
fn small_images_need_to_be_allowed() {
    let bench = Bench::new();
    assert!(bench.refused(&["--size", "64m", "a.img"]).contains("300 MiB"));
    bench.made(&["-q", "--unsupported", "--size", "64m", "a.img"]);
    assert!(is_xfs(&bench.path("a.img")));
}

#[test]
fn a_target_leaves_out_what_it_cannot_read() {
    let bench = Bench::new();
    let old = bench.made(&["-N", "--target", "kernel=5.4", "--size", "1g", "a.img"]);
    for feature in ["bigtime=0", "inobtcount=0", "nrext64=0", "exchange=0", "parent=0", "reflink=1"] {
        assert!(old.contains(feature), "{feature} in {old}");
    }
    let new = bench.made(&["-N", "--target", "kernel=7.3", "--size", "1g", "a.img"]);
    assert_eq!(new, bench.made(&["-N", "--size", "1g", "a.img"]));
    let conflict = bench.refused(&["-N", "--target", "kernel=5.4", "-m", "bigtime=1", "--size", "1g", "a.img"]);
    assert!(conflict.contains("-m bigtime=1 conflicts with --target kernel=5.4"), "{conflict}");
    assert!(conflict.contains("Linux 5.10 and later can"), "{conflict}");
}

#[test]
fn a_dry_run_tells_what_it_would_do_as_json() {
    let bench = Bench::new();
    let text = bench.made(&["--dry-run", "--json", "-m", UUID, "-L", "name", "--size", "1g", "a.img"]);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["format"], 1);
    assert_eq!(json["dry_run"], true);
    assert_eq!(json["label"], "name");
    assert_eq!(json["uuid"], "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
    assert_eq!(json["data"]["groups"], 4);
    assert_eq!(json["log"]["group"], 2);
    assert_eq!(json["features"]["rmapbt"], true);
    let writes = json["would_write"].as_array().expect("a list");
    assert_eq!(writes.last().expect("an entry")["what"], "superblock");
    assert!(!bench.path("a.img").exists());
}

#[test]
fn a_configuration_file_asks_for_the_same_again() {
    let bench = Bench::new();
    let arguments = ["-m", "rmapbt=0,uquota", "-i", "size=1024,maxpct=10", "-n", "size=8k", "-d", "extszinherit=4"];
    let mut make = arguments.to_vec();
    make.extend(["-c", "makecfg=made.conf", "--size", "1g", "a.img"]);
    assert_eq!(bench.made(&make), "");
    assert!(!bench.path("a.img").exists());
    let mut plain = arguments.to_vec();
    plain.extend(["-N", "--size", "1g", "a.img"]);
    let expected = bench.made(&plain);
    assert_eq!(bench.made(&["-N", "-c", "options=made.conf", "--size", "1g", "a.img"]), expected);
    assert_eq!(bench.made(&["-N", "-c", "defaults=made.conf", "--size", "1g", "a.img"]), expected);
    let again = bench.refused(&["-N", "-c", "options=made.conf", "-m", "rmapbt=0", "--size", "1g", "a.img"]);
    assert!(again.contains("made.conf, line") && again.contains("-m rmapbt is given more than once"), "{again}");
    let over = bench.made(&["-N", "-c", "defaults=made.conf", "-m", "rmapbt=1", "--size", "1g", "a.img"]);
    assert!(over.contains("rmapbt=1"));
}

#[test]
fn a_filesystem_can_begin_inside_a_file() {
    let bench = Bench::new();
    let disk = bench.sparse("disk.img", "33m");
    bench.made(&["-q", "--unsupported", "-m", UUID, "--offset", "1m", "disk.img"]);
    let plain = bench.sparse("plain.img", "32m");
    bench.made(&["-q", "--unsupported", "-m", UUID, "plain.img"]);
    let (disk, plain) = (fs::read(disk).expect("readable"), fs::read(plain).expect("readable"));
    assert!(disk[..1 << 20] == vec![0; 1 << 20][..]);
    assert!(disk[1 << 20..] == plain[..]);
}

#[test]
fn what_lies_around_the_filesystem_is_not_lost_without_force() {
    let bench = Bench::new();
    // an MBR with one Linux partition from sector 2048 on, and an extended one behind it
    let disk = bench.sparse("disk", "1g");
    let mut record = [0; 512];
    for (entry, (kind, start, sectors)) in
        [(0x83u8, 2048u32, 0x10_0000u32), (0x05, 0x11_0000, 0x1000)].into_iter().enumerate()
    {
        let at = 446 + 16 * entry;
        record[at + 4] = kind;
        record[at + 8..at + 12].copy_from_slice(&start.to_le_bytes());
        record[at + 12..at + 16].copy_from_slice(&sectors.to_le_bytes());
    }
    record[510..].copy_from_slice(&[0x55, 0xaa]);
    let mut file = File::options().write(true).open(&disk).expect("the disk is there");
    std::io::Write::write_all(&mut file, &record).expect("the disk can be written");

    assert!(bench.refused(&["--offset", "1m", "disk"]).contains("partition table"));
    assert!(bench.refused(&["--offset", "1000", "disk"]).contains("no multiple of 512"));
    assert!(bench.refused(&["-f", "--partition", "2", "disk"]).contains("there is no partition 2"));
    bench.made(&["-q", "--partition", "1", "disk"]);
    assert_eq!(fs::read(&disk).expect("readable")[..512], record);

    let long = bench.sparse("long", "2g");
    assert!(bench.refused(&["--size", "1g", "long"]).contains("-f cuts it"));
    assert_eq!(fs::metadata(&long).expect("the file is there").len(), 2 << 30);
    bench.made(&["-q", "-f", "--size", "1g", "long"]);
    assert_eq!(fs::metadata(&long).expect("the file is there").len(), 1 << 30);
}

#[test]
fn a_file_that_could_not_be_formatted_is_not_left_behind() {
    let bench = Bench::new();
    let output = bench.run(&["-q", "--size", "8e", "new"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!bench.path("new").exists());
}
