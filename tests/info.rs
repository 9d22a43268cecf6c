//! xfskit-info as a user runs it.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const UUID: &str = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";

/// A folder for images, and the tools at work in it.
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

    /// Makes a filesystem; what xfskit-mkfs printed.
    fn make(&self, name: &str, arguments: &[&str]) -> String {
        let file = File::create(self.path(name)).expect("a file can be made");
        file.set_len(320 << 20).expect("a file can be sparse");
        let mut mkfs = Command::new(env!("CARGO_BIN_EXE_xfskit-mkfs"));
        let uuid = format!("uuid={UUID}");
        let output = mkfs.args(["-f", "-m", &uuid]).args(arguments).arg(name).current_dir(self.dir.path()).output();
        let output = output.expect("the tool can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        text(&output)
    }

    fn info(&self, arguments: &[&str]) -> Output {
        let mut info = Command::new(env!("CARGO_BIN_EXE_xfskit-info"));
        info.args(arguments).current_dir(self.dir.path()).output().expect("the tool can be started")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.info(&[&["--json"], arguments].concat());
        serde_json::from_slice(&output.stdout).expect("valid JSON")
    }

    fn overwrite(&self, name: &str, offset: u64, bytes: &[u8]) {
        let file = OpenOptions::new().write(true).open(self.path(name)).expect("the image is there");
        file.write_all_at(bytes, offset).expect("the image is writable");
    }
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("the output is text")
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_text_is_the_one_that_mkfs_prints() {
    let bench = Bench::new();
    for arguments in [&[][..], &["-m", "crc=0"], &["-b", "size=1k", "-n", "size=8k"], &["-s", "size=4k"]] {
        let printed = bench.make("image", arguments);
        let output = bench.info(&["image"]);
        assert_eq!((text(&output), output.status.code()), (printed, Some(0)), "{arguments:?}");
        assert_eq!(complaint(&output), "");
    }
}

#[test]
fn json_says_all_of_it() {
    let bench = Bench::new();
    bench.make("image", &["-L", "root"]);
    let report = bench.json(&["image"]);
    for (pointer, expected) in [
        ("/format", Value::from(1)),
        ("/label", "root".into()),
        ("/uuid", UUID.into()),
        ("/meta_uuid", UUID.into()),
        ("/version", 5.into()),
        ("/superblock/group", 0.into()),
        ("/superblock/damage", Value::Array(Vec::new())),
        ("/data/blocks", 81920.into()),
        ("/data/cut_short", false.into()),
        ("/log/state", "clean".into()),
        ("/log/internal", true.into()),
        ("/log/head", 2.into()),
        ("/secondary_superblocks/agree", true.into()),
        ("/secondary_superblocks/compared", 3.into()),
        ("/quota/user/accounting", false.into()),
        ("/readable_by/linux_read_write/oldest", "6.10".into()),
        ("/readable_by/linux_read_only/oldest", "6.10".into()),
        ("/readable_by/grub/oldest", "2.14".into()),
    ] {
        assert_eq!(report.pointer(pointer), Some(&expected), "{pointer}");
    }
    let decided = report.pointer("/readable_by/linux_read_write/decided_by").cloned();
    assert_eq!(decided, Some(serde_json::json!(["exchange", "parent"])));
    let features = report.pointer("/features").and_then(Value::as_array).expect("a list");
    assert!(features.contains(&"bigtime".into()) && !features.contains(&"metadir".into()));
}

#[test]
fn readers_follow_the_features() {
    let bench = Bench::new();
    bench.make("old", &["--target", "kernel=5.4,grub=2.02"]);
    let output = bench.info(&["--readable-by", "old"]);
    let words = |output: &str| output.split_whitespace().collect::<Vec<_>>().join(" ");
    let table = words(&text(&output));
    assert!(
        table.contains("Linux, read-write 4.19 and later Linux, read-only 4.19 and later GRUB 2.02 and later"),
        "{table}"
    );
    bench.make("v4", &["-m", "crc=0"]);
    let output = text(&bench.info(&["--readable-by", "v4"]));
    assert!(words(&output).contains("Linux, read-write 4.19 to 6.17 v4 (the end)"), "{output}");
    let verbose = text(&bench.info(&["--verbose", "v4"]));
    assert!(verbose.contains(&output) && verbose.contains(UUID) && verbose.starts_with("meta-data=v4"), "{verbose}");
}

#[test]
fn an_external_log_is_looked_at_when_it_is_given() {
    let bench = Bench::new();
    File::create(bench.path("log")).and_then(|file| file.set_len(64 << 20)).expect("a file can be made");
    bench.make("image", &["-l", "logdev=log,size=64m"]);
    assert!(text(&bench.info(&["image"])).contains("\nlog      =external "));
    assert_eq!(bench.json(&["image"]).pointer("/log/state"), Some(&"external".into()));
    let report = bench.json(&["--log-device", "log", "image"]);
    assert_eq!(report.pointer("/log/state"), Some(&"clean".into()));
    assert!(text(&bench.info(&["--log-device", "log", "image"])).contains("\nlog      =log "));
    bench.overwrite("log", 0, &[0x5a; 1024]);
    let report = bench.json(&["--log-device", "log", "image"]);
    assert_eq!(report.pointer("/log/state"), Some(&"damaged".into()));
    assert!(report.pointer("/log/problem").is_some_and(Value::is_string));
}

#[test]
fn a_damaged_primary_is_replaced_by_a_copy() {
    let bench = Bench::new();
    let printed = bench.make("image", &[]);
    bench.overwrite("image", 0, &[0; 4096]);
    let output = bench.info(&["image"]);
    assert_eq!((text(&output), output.status.code()), (printed, Some(1)));
    assert!(complaint(&output).contains("the primary superblock is damaged"), "{}", complaint(&output));
    let report = bench.json(&["image"]);
    assert_ne!(report.pointer("/superblock/group"), Some(&0.into()));
    assert!(report.pointer("/superblock/damage/0").is_some_and(Value::is_string));
}

#[test]
fn copies_that_disagree_are_named() {
    let bench = Bench::new();
    bench.make("image", &[]);
    bench.overwrite("image", (2 * 80) << 20, &[0; 512]);
    let copies = bench.json(&["image"]).pointer("/secondary_superblocks").cloned().expect("a part of the report");
    assert_eq!(copies.pointer("/agree"), Some(&false.into()));
    assert_eq!(copies.pointer("/disagreeing/0/group"), Some(&2.into()));
    let output = bench.info(&["--verbose", "image"]);
    assert!(text(&output).contains("group 2: ") && output.status.code() == Some(0), "{}", text(&output));
}

#[test]
fn what_is_cut_short_is_described_all_the_same() {
    let bench = Bench::new();
    let printed = bench.make("image", &[]);
    OpenOptions::new()
        .write(true)
        .open(bench.path("image"))
        .and_then(|file| file.set_len(4096))
        .expect("it can be cut");
    let output = bench.info(&["image"]);
    assert_eq!((text(&output), output.status.code()), (printed, Some(0)));
    assert!(complaint(&output).contains("is cut short"), "{}", complaint(&output));
    assert_eq!(bench.json(&["image"]).pointer("/data/cut_short"), Some(&true.into()));
}

#[test]
fn a_part_of_a_disk() {
    let bench = Bench::new();
    let printed = bench.make("image", &[]);
    let image = fs::read(bench.path("image")).expect("the image is there");
    let start = 1 << 20;
    let disk = File::create(bench.path("disk")).expect("a file can be made");
    disk.write_all_at(&image, start).expect("a file can be written");
    let output = bench.info(&["--offset", "1m", "disk"]);
    assert_eq!(text(&output), printed.replace("image ", "disk  "));
    let output = bench.info(&["disk"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output), "");
}

#[test]
fn what_is_no_filesystem_is_an_error() {
    let bench = Bench::new();
    File::create(bench.path("empty")).expect("a file can be made");
    File::create(bench.path("zeroes")).and_then(|file| file.set_len(1 << 30)).expect("a file can be made");
    for name in ["empty", "zeroes", ".", "missing", "/dev/null"] {
        let output = bench.info(&[name]);
        assert_eq!((output.status.code(), text(&output).as_str()), (Some(1), ""), "{name}");
        assert!(complaint(&output).starts_with("xfskit-info: "), "{name}: {}", complaint(&output));
    }
}

#[test]
fn wrong_usage_has_its_own_code() {
    let bench = Bench::new();
    bench.make("image", &[]);
    for arguments in [
        &[][..],
        &["image", "image"],
        &["--json", "--verbose", "image"],
        &["--offset", "x", "image"],
        &["--offset", "0", "--partition", "1", "image"],
        &["--no-such-option", "image"],
        &["-t"],
    ] {
        assert_eq!(bench.info(arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(bench.info(&["--help"]).status.code(), Some(0));
    let version = bench.info(&["-V"]);
    let expected = format!("xfskit-info version {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((version.status.code(), text(&version)), (Some(0), expected));
}

#[test]
fn a_table_of_mounts_that_is_given_counts() {
    let bench = Bench::new();
    let printed = bench.make("image", &[]);
    fs::create_dir(bench.path("point")).expect("a folder can be made");
    let (image, point) = (bench.path("image"), bench.path("point"));
    let table = format!("{} {} xfs rw,rtdev=/dev/none 0 0\n", image.display(), point.display());
    fs::write(bench.path("table"), table).expect("a file can be made");
    let output = bench.info(&["-t", "table", "point"]);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let name = format!("{:<22} ", image.display().to_string());
    assert_eq!(text(&output), printed.replace(&format!("{:<22} ", "image"), &name));
    let report = bench.json(&["-t", "table", "point"]);
    assert_eq!(report.pointer("/log/state"), Some(&"in-use".into()));
    assert_eq!(bench.info(&["-t", "missing", "point"]).status.code(), Some(1));
    let missing = bench.info(&["-t", "missing", "point"]);
    assert!(complaint(&missing).contains("cannot read missing: No such file"), "{}", complaint(&missing));
    let endless = bench.info(&["-t", "/dev/zero", "point"]);
    assert!(complaint(&endless).contains("longer than 16777216 bytes"), "{}", complaint(&endless));
}

#[test]
fn devices_that_the_filesystem_does_not_have_are_told() {
    let bench = Bench::new();
    let printed = bench.make("image", &[]);
    bench.make("other", &[]);
    let output = bench.info(&["--log-device", "other", "--realtime-device", "other", "image"]);
    assert_eq!((output.status.code(), text(&output)), (Some(0), printed));
    let said = complaint(&output);
    assert!(said.contains("--log-device names is not its log") && said.contains("no realtime section"), "{said}");
}

#[test]
fn options_may_be_repeated() {
    let bench = Bench::new();
    bench.make("image", &[]);
    let output = bench.info(&["-t", "missing", "-t", "/proc/mounts", "--json", "--json", "image"]);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
}

/// The names of all fields of a JSON value.
fn names(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            found.push(name.clone());
            names(value, found);
        }),
        Value::Array(values) => values.iter().for_each(|value| names(value, found)),
        _ => {}
    }
}

#[test]
fn the_man_page_names_every_field() {
    let bench = Bench::new();
    bench.make("image", &[]);
    bench.overwrite("image", 160 << 20, &[0; 512]);
    let mut fields = Vec::new();
    names(&bench.json(&["image"]), &mut fields);
    let page = include_str!("../man/xfskit-info.roff");
    for field in fields {
        assert!(page.contains(&format!("\\fB{field}\\fR")) || page.contains(&format!(".B {field}\n")), "{field}");
    }
}
