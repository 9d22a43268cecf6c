//! xfskit-files as a user runs it, on an image that the Linux kernel has filled with every kind of file, and its manifest.

#![allow(clippy::cast_possible_truncation)] // sizes of test files

#[path = "files/archive.rs"]
mod archive;
#[path = "files/manifest.rs"]
mod manifest;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use manifest::{Line, lines};
use serde_json::Value;

const TOOL: &str = env!("CARGO_BIN_EXE_xfskit-files");

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/files").join(name)
}

/// The image, unpacked once for all tests.
fn image() -> &'static Path {
    static UNPACKED: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = UNPACKED.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tree.img");
        unpack(&testdata("tree.img.zst"), &path);
        (folder, path)
    });
    path
}

/// Unpacks into a sparse file.
fn unpack(packed: &Path, to: &Path) {
    const PIECE: usize = 1 << 16;
    let zeroes = vec![0; PIECE];
    let mut packed = zstd::Decoder::new(File::open(packed).expect("it is there")).expect("sound");
    let file = File::create(to).expect("writable");
    let (mut piece, mut at) = (Vec::new(), 0);
    loop {
        piece.clear();
        let len = packed.by_ref().take(PIECE as u64).read_to_end(&mut piece).expect("sound");
        if piece[..] != zeroes[..len] {
            file.write_all_at(&piece, at).expect("writable");
        }
        at += len as u64;
        if len < PIECE {
            break;
        }
    }
    file.set_len(at).expect("writable");
}

fn expected() -> BTreeMap<Vec<u8>, Line> {
    lines(&fs::read_to_string(testdata("tree.manifest")).expect("it is there"))
}

fn run(arguments: &[&str]) -> Output {
    let output = Command::new(TOOL).args(arguments).stdin(Stdio::null()).output().expect("the tool can be started");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
    output
}

/// Runs a command on the image, which must be done without a word on the standard error.
fn done(command: &[&str], rest: &[&str]) -> Vec<u8> {
    let mut arguments = command.to_vec();
    arguments.push(image().to_str().expect("invariant: temporary folders have plain names"));
    arguments.extend(rest);
    let output = run(&arguments);
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
        (Some(0), ""),
        "{arguments:?}"
    );
    output.stdout
}

fn text(command: &[&str], rest: &[&str]) -> String {
    String::from_utf8(done(command, rest)).expect("UTF-8")
}

fn json(command: &[&str], rest: &[&str]) -> Value {
    let value: Value = serde_json::from_slice(&done(command, rest)).expect("JSON");
    assert_eq!(value["format"], 1);
    assert_eq!(value["command"], command[0]);
    value
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn what_is_listed_is_what_the_kernel_shows() {
    let expected = expected();
    let value = json(&["find", "--json"], &["/"]);
    let files = value["files"].as_array().expect("a list");
    assert_eq!(files.len(), expected.len());
    for file in files {
        let path = archive::unescape(file["path"].as_str().expect("a path"));
        let path = path.strip_prefix(b"/").filter(|path| !path.is_empty()).unwrap_or(b".");
        let line = expected.get(path).unwrap_or_else(|| panic!("{file} is not in the manifest"));
        let number = |name: &str| file[name].as_u64().expect("a number");
        let nanoseconds = |time: &Value| {
            i128::from(time["seconds"].as_i64().expect("a number")) * 1_000_000_000
                + i128::from(time["nanoseconds"].as_i64().expect("a number"))
        };
        assert_eq!(file["mode"], line.mode, "{file}");
        assert_eq!((number("uid"), number("gid"), number("links")), (line.uid, line.gid, line.nlink), "{file}");
        assert_eq!((number("inode"), nanoseconds(&file["mtime"])), (line.ino, line.mtime), "{file}");
        assert_eq!(nanoseconds(&file["ctime"]), line.ctime, "{file}");
        if line.mode.starts_with("100") {
            assert_eq!(number("size"), line.size, "{file}");
        }
        if let Some(target) = file["target"].as_str() {
            assert_eq!(archive::unescape(target), line.target(), "{file}");
        }
        if let Some(major) = file["device"]["major"].as_u64() {
            let minor = file["device"]["minor"].as_u64().expect("a number");
            let number =
                rustix::fs::makedev(u32::try_from(major).expect("small"), u32::try_from(minor).expect("small"));
            assert_eq!(number, line.rdev, "{file}");
        }
    }
}

#[test]
fn an_archive_has_all_but_the_socket() {
    let output = Command::new(TOOL).arg("tar").arg(image()).output().expect("the tool can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(4), 1), "{said}");
    assert!(said.contains("1 sockets"), "{said}");
    let mut expected = expected();
    expected.remove(&b"special/socket"[..]);
    let found = archive::read(&output.stdout);
    for (path, line) in &expected {
        let member = found.get(path).unwrap_or_else(|| panic!("{} is missing", path.escape_ascii()));
        archive::same(path, member, line);
    }
    assert_eq!(found.len(), expected.len());
    // written to a file it is the same
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.tar");
    let file = path.to_str().expect("invariant: temporary folders have plain names");
    let output = Command::new(TOOL).args(["tar", "--json", "-o", file]).arg(image()).output().expect("it starts");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (summary["members"].as_u64(), summary["sockets_not_kept"].as_u64()),
        (Some(found.len() as u64), Some(1))
    );
    assert_eq!(summary["bytes"].as_u64(), fs::metadata(&path).ok().map(|metadata| metadata.len()));
}

#[test]
fn a_part_of_the_tree_is_archived_under_its_path() {
    let found = archive::read(&done(&["tar"], &["/links", "contents/513"]));
    let paths: Vec<_> = found.keys().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    assert!(paths.iter().all(|path| path.starts_with("links") || path == "contents/513"), "{paths:?}");
    assert!(paths.contains(&"links/name-0".to_owned()) && paths.contains(&"contents/513".to_owned()), "{paths:?}");
}

#[test]
fn contents_with_holes() {
    let holes = done(&["cat"], &["/contents/hole-first"]);
    assert_eq!((holes.len(), &holes[65_536..]), (65_546, &b"0000000\n00"[..]));
    assert!(holes[..65_536].iter().all(|&byte| byte == 0));
    let unwritten = done(&["cat"], &["contents/unwritten"]);
    assert_eq!(unwritten.len(), 50 * 4096);
    assert_eq!(unwritten.chunks(4096).filter(|piece| piece.starts_with(b"written")).count(), 4);
    // through symbolic links, to another folder and from the root
    assert_eq!(done(&["cat"], &["/links/to-link"]), b"one file");
    for (path, why) in [("/links/loop", "too many"), ("/nothing", "has no entry nothing"), ("/contents", "no regular")]
    {
        let output = run(&["cat", image().to_str().expect("plain"), path]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(why), "{path}: {said}");
    }
}

#[test]
fn names_are_taken_as_they_are_shown() {
    let names = text(&["ls"], &["/names"]);
    assert!(names.lines().any(|name| name == "latin-\\xe4\\xff"), "{names}");
    for name in names.lines().filter(|name| !name.starts_with("directory") && *name != "link") {
        let path = format!("/names/{name}");
        assert_eq!(done(&["cat"], &[&path]), archive::unescape(name), "{name}");
    }
    let output = run(&["ls", image().to_str().expect("plain"), "/names/back\\slash"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn lists_and_trees() {
    assert_eq!(text(&["ls", "-d"], &["/"]), "/\n");
    let long = text(&["ls", "-l"], &["/special"]);
    assert!(long.contains("crw-r--r--") && long.contains("259, 70000") && long.contains("srwxr-xr-x"), "{long}");
    assert!(
        text(&["ls", "-l"], &["/modes"]).contains("drwxrwxrwt")
            && text(&["ls", "-l"], &["/modes"]).contains("-rwsr-xr-x")
    );
    assert!(text(&["ls", "-l"], &["/links/to-first"]).ends_with("/links/to-first -> first\n"));
    let all = text(&["ls", "-R"], &["/"]);
    assert!(all.contains("\n/attributes/default:\n") && all.contains("\nbottom\n"));
    let tree = text(&["tree", "-L", "1"], &["/links"]);
    assert!(
        tree.starts_with("/links\n├── first\n") && tree.contains("└── to-link -> /contents/../links/to-first\n"),
        "{tree}"
    );
    let root: u64 = expected()[&b"."[..]].ino;
    assert_eq!(text(&["ls"], &[&format!("<{root}>/links/first")]), format!("<{root}>/links/first\n"));
    let stat = text(&["stat"], &["/owners/4294967294"]);
    assert!(stat.contains("6755 -rwsr-sr-x") && stat.contains("4294967294:3000000000"), "{stat}");
}

#[test]
fn conditions_of_find() {
    let count = |conditions: &[&str]| text(&[&["find"], conditions].concat(), &["/"]).lines().count();
    assert_eq!(count(&["--type", "s"]), 1);
    assert_eq!(count(&["--type", "b,c"]), 3);
    assert_eq!(count(&["--size", "+1t"]), 1);
    assert_eq!(count(&["--size", "513", "--type", "f"]), 1);
    assert_eq!(count(&["--owner", "1000:100"]), 1);
    assert_eq!(count(&["--owner", ":5678"]), 1);
    assert_eq!(count(&["--name", "entry-00[0-4]?", "--type", "l"]), 33);
    assert_eq!(count(&["--name", "latin-*", "--name", "l[!a]*", "--type", "f"]), 5);
    let expected = expected();
    let newer = expected.values().filter(|line| line.mtime > 2_500_000_000 * 1_000_000_000).count();
    assert_eq!(count(&["--newer", "@2500000000"]), newer);
    let older = expected.values().filter(|line| line.mtime < 0).count();
    assert_eq!(count(&["--older", "1970-01-01"]), older);
    for wrong in [["--size", "x"], ["--type", "x"], ["--owner", ":"], ["--newer", "yesterday"], ["--name", "[a"]] {
        let output = run(&["find", wrong[0], wrong[1], image().to_str().expect("plain")]);
        assert_eq!(output.status.code(), Some(1), "{wrong:?}");
    }
}

#[test]
fn space_that_files_take() {
    assert_eq!(text(&["du", "-s", "-b"], &["/links/first", "/links/name-1"]), "8\t/links/first\n");
    let value = json(&["du", "--json"], &["/contents"]);
    let folder = &value["files"][0];
    let count = expected().keys().filter(|path| path.starts_with(b"contents")).count();
    assert_eq!(folder["files"].as_u64(), Some(count as u64));
    let files: u64 =
        expected().iter().filter(|(path, _)| path.starts_with(b"contents/")).map(|(_, line)| line.size).sum();
    assert_eq!(folder["apparent"].as_u64(), Some(files));
}

#[test]
fn attributes_and_lists() {
    let file = json(&["xattr", "--json"], &["/attributes/file"]);
    let list = file["files"][0]["attributes"].as_array().expect("a list").clone();
    assert_eq!(list.len(), 8);
    assert!(list.iter().any(|one| one["name"] == "user.a=b%c" && one["value"] == "equals"));
    assert_eq!(done(&["xattr", "--raw", "-n", "user.size-65536"], &["/attributes/large"]).len(), 65_536);
    let acl = text(&["xattr"], &["/attributes/acl"]);
    let expected = "system.posix_acl_access=user::rwx,user:1000:r-x,group::r--,group:100:rw-,mask::rwx,other::---\n";
    assert!(acl.ends_with(expected), "{acl}");
    assert_eq!(text(&["xattr"], &["/attributes/many"]).lines().count(), 201);
    let output = run(&["xattr", "-n", "user.none", image().to_str().expect("plain"), "/attributes/file"]);
    assert_eq!(output.status.code(), Some(1));
}

/// Each block that a map names is found again, by both ways, as the block of this file that it is.
#[test]
fn owners_of_blocks() {
    for (path, option) in [("/contents/holes", None), ("/contents/shared", None), ("/attributes/large", Some("-a"))] {
        let command: Vec<&str> = ["map", "--json"].into_iter().chain(option).collect();
        let value = json(&command, &[path]);
        let mapping = value["extents"].as_array().and_then(|list| list.iter().find(|one| !one["block"].is_null()));
        let mapping = mapping.unwrap_or_else(|| panic!("{value}"));
        let block = mapping["block"].to_string();
        let in_group = format!("{}/{}", mapping["group"], mapping["group_block"]);
        for command in [&["owner", "--json"][..], &["owner", "--json", "--walk"]] {
            for name in [&block, &in_group] {
                let value = json(command, &[name]);
                let owners = value["owners"].as_array().expect("a list");
                let owner = owners.iter().find(|owner| owner["paths"][0] == path).unwrap_or_else(|| panic!("{value}"));
                assert_eq!(owner["offset"], mapping["offset"], "{value}");
                assert_eq!(owner["fork"], if option.is_some() { "attributes" } else { "data" });
                assert_eq!(owners.len(), if path == "/contents/shared" { 2 } else { 1 }, "{value}");
            }
        }
    }
    assert_eq!(text(&["owner"], &["0/0"]), "0/0: headers of the group\n");
    assert_eq!(text(&["owner"], &["byte:4096"]), "byte:4096: btree bnobt\n");
    let output = run(&["owner", image().to_str().expect("plain"), "99999999"]);
    assert_eq!(output.status.code(), Some(1));
}

/// What any user may keep is kept, and what not is said.
#[test]
fn files_in_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("new");
    let output = Command::new(TOOL).args(["get", "-r", "--json"]).arg(image()).arg("/").arg(&target).output();
    let output = output.expect("the tool can be started");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let lost = summary["not_kept"].as_array().expect("a list");
    let is_lost = |path: &[u8], property: &str| {
        lost.iter().any(|lost| lost["property"] == property && lost["count"].as_u64() > Some(100))
            || lost.iter().filter(|lost| lost["property"] == property).any(|lost| {
                let paths = lost["paths"].as_array().expect("a list");
                paths.iter().any(|one| {
                    archive::unescape(one.as_str().expect("text")).split(|&b| b == b' ').next() == Some(path)
                })
            })
    };
    assert_eq!(output.status.code(), Some(if lost.is_empty() { 0 } else { 4 }), "{output:?}");
    if is_root() {
        assert!(
            lost.iter()
                .all(|lost| ["attribute", "access control list", "file"]
                    .contains(&lost["property"].as_str().expect("text"))),
            "{summary}"
        );
    }
    for (path, line) in &expected() {
        let here = target.join(std::ffi::OsStr::from_bytes(path));
        if is_lost(path, "file") {
            continue;
        }
        let Ok(metadata) = fs::symlink_metadata(&here) else {
            assert!(!is_root(), "{}", here.display());
            continue;
        };
        if !is_lost(path, "owner") {
            assert_eq!(
                (u64::from(metadata.uid()), u64::from(metadata.gid())),
                (line.uid, line.gid),
                "{}",
                here.display()
            );
            assert_eq!(format!("{:o}", metadata.mode()), line.mode, "{}", here.display());
        }
        let mtime = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        // not every filesystem has times before 1902 and after 2446
        assert!(mtime == line.mtime || line.mtime > 2_500_000_000 * 1_000_000_000, "{}: {mtime}", here.display());
        if metadata.is_file() && metadata.len() < 1 << 30 && File::open(&here).is_ok() {
            assert_eq!(metadata.len(), line.size);
            assert_eq!(manifest::content(&fs::read(&here).expect("readable")), line.content, "{}", here.display());
        }
    }
    let links = fs::symlink_metadata(target.join("links/first")).expect("it is there");
    assert_eq!(links.nlink(), 7);
    // modes without access would keep the folder from being removed
    for name in ["dir-0000", "dir-0500"] {
        fs::set_permissions(target.join("modes").join(name), fs::Permissions::from_mode(0o700)).expect("ours");
    }
}

#[test]
fn what_is_there_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("links")).expect("writable");
    fs::write(path("links/first"), "mine").expect("writable");
    // a link where a folder is to be made leads nowhere
    symlink(outside.path(), path("contents")).expect("a link");
    fs::create_dir(path("special")).expect("writable");
    symlink(outside.path().join("new"), path("special/fifo")).expect("a link");
    let output = Command::new(TOOL).args(["get", "-r"]).arg(image()).arg("/").arg(folder.path()).output();
    let output = output.expect("the tool can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("links/first") && said.contains("contents") && said.contains("special/fifo"), "{said}");
    assert_eq!(fs::read(path("links/first")).expect("readable"), b"mine");
    assert_eq!(fs::read_dir(outside.path()).expect("readable").count(), 0, "something was put outside of the folder");
    for name in ["dir-0000", "dir-0500"] {
        fs::set_permissions(path("modes").join(name), fs::Permissions::from_mode(0o700)).expect("ours");
    }
}

#[test]
fn folders_are_taken_only_when_that_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("new");
    let get = |arguments: &[&str]| {
        let mut command = Command::new(TOOL);
        command.arg("get").args(&arguments[..1]).arg(image()).args(&arguments[1..]).arg(&target);
        command.output().expect("the tool can be started")
    };
    let output = get(&["--offset=0", "/links"]);
    assert!(output.status.code() == Some(1) && !target.exists());
    let output = get(&["--offset=0", "/links/first", "/contents/1"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(fs::read(target.join("first")).expect("readable"), b"one file");
    let output = get(&["-r", "/empty"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(target.join("empty").is_dir());
}

/// Images of version 4, with quota, and with a realtime section: every file is archived, its contents whole.
#[test]
fn other_kinds_of_filesystems() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = [("v4", false), ("groups", true), ("v4-quota", false), ("quota", false), ("realtime", true)];
    let share = if std::env::var_os("XFSKIT_FULL").is_some() { all.len() } else { 2 };
    for (name, realtime) in all.into_iter().take(share) {
        let packed = |suffix: &str| {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/db").join(format!("{name}.{suffix}.zst"))
        };
        let (data, rt) = (folder.path().join("data"), folder.path().join("rt"));
        unpack(&packed("img"), &data);
        let mut command = Command::new(TOOL);
        if realtime {
            unpack(&packed("rt"), &rt);
            command.arg("-r").arg(&rt);
        }
        let output = command.arg("tar").arg(&data).output().expect("the tool can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        let whole = matches!(output.status.code(), Some(0 | 4)) && said.lines().all(|line| line.contains("sockets"));
        assert!(whole, "{name}: {said}");
        let found = archive::read(&output.stdout);
        assert!(found.len() > 10, "{name}: {}", found.len());
        let root: Vec<_> =
            found.keys().filter(|path| path.starts_with(b"metadir") || path.starts_with(b"rtgroups")).collect();
        assert!(root.is_empty(), "{name}: {root:?}");
        if realtime {
            // without the device, the contents of its files are missing, and that is said
            let output = Command::new(TOOL).arg("tar").arg(&data).output().expect("the tool can be started");
            assert_eq!(output.status.code(), Some(3), "{name}");
            assert!(String::from_utf8_lossy(&output.stderr).contains("realtime device is not given"), "{name}");
        }
    }
}

/// A folder that names itself and a file as its entries, inodes of noise: the walk ends, says what is wrong, and shows the
/// rest.
#[test]
fn damaged_images() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("damaged.img");
    fs::copy(image(), &copy).expect("writable");
    let expected = expected();
    let value = json(&["map", "--json"], &["/wide"]);
    let block = value["extents"][0]["block"].as_u64().expect("a block");
    let file = fs::OpenOptions::new().read(true).write(true).open(&copy).expect("writable");
    // the first group begins at block 0, in which blocks are numbered through
    let mut bytes = vec![0; 4096];
    file.read_exact_at(&mut bytes, block * 4096).expect("readable");
    bytes[200..300].fill(0xff);
    if value["extents"][0]["group"] == 0 {
        file.write_all_at(&bytes, block * 4096).expect("writable");
    } else {
        let group = value["extents"][0]["group"].as_u64().expect("a group");
        let in_group = value["extents"][0]["group_block"].as_u64().expect("a block");
        let blocks = 300 * 256 / 4;
        file.write_all_at(&bytes, (group * blocks + in_group) * 4096).expect("writable");
    }
    let output = Command::new(TOOL).arg("find").arg(&copy).output().expect("the tool can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("CRC does not match") && said.contains("inode"), "{said}");
    let shown = String::from_utf8_lossy(&output.stdout).lines().count();
    assert!(shown > expected.len() / 2 && shown <= expected.len(), "{shown}");
    let output = Command::new(TOOL).args(["tar"]).arg(&copy).output().expect("the tool can be started");
    assert_eq!(output.status.code(), Some(3));
    assert!(archive::read(&output.stdout).len() > 50);
}
