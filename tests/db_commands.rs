//! xfskit-db's commands about names, attributes, extents and the whole filesystem as a user runs them, on the image of
//! xfskit-files' tests, which the Linux kernel has filled with every kind of file.

#[allow(dead_code, reason = "shared with the tests of xfskit-files")]
#[path = "files/manifest.rs"]
mod manifest;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use manifest::{Line, lines};
use serde_json::Value;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/files").join(name)
}

/// The image, unpacked once for all tests, its zeroes left out.
fn image() -> &'static Path {
    static UNPACKED: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = UNPACKED.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tree.img");
        let file = File::create(&path).expect("writable");
        let packed = File::open(testdata("tree.img.zst")).expect("it is there");
        let mut packed = zstd::Decoder::new(packed).expect("sound");
        let (mut piece, mut at) = (Vec::new(), 0);
        while packed.by_ref().take(1 << 16).read_to_end(&mut piece).expect("sound") > 0 {
            if piece.iter().any(|&byte| byte != 0) {
                file.write_all_at(&piece, at).expect("writable");
            }
            at += piece.len() as u64;
            piece.clear();
        }
        file.set_len(at).expect("writable");
        (folder, path)
    });
    path
}

fn expected() -> BTreeMap<Vec<u8>, Line> {
    lines(&fs::read_to_string(testdata("tree.manifest")).expect("it is there"))
}

fn run(options: &[&str], commands: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xfskit-db"));
    command.args(options).args(commands.iter().flat_map(|line| ["-c", line])).arg(image()).stdin(Stdio::null());
    let output = command.output().expect("the tool can be started");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
    output
}

/// The results of commands as data, all of which must succeed.
fn results(commands: &[&str]) -> Vec<Value> {
    let output = run(&["--json"], commands);
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{output:?}");
    let objects = String::from_utf8(output.stdout).expect("UTF-8");
    objects.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["result"].take()).collect()
}

#[test]
fn paths_lead_to_the_inodes_that_the_kernel_shows() {
    let expected = expected();
    let inode = |path: &str| expected[path.as_bytes()].ino;
    let found = results(&["ls -i /links /links/first", "path /links", "ls -i", "ls -i first"]);
    assert_eq!(found[0][0]["ino"], inode("links"));
    assert_eq!(found[0][1]["ino"], inode("links/first"));
    assert_eq!(found[2]["ino"], inode("links"));
    assert_eq!(found[3][0]["ino"], inode("links/first"));
    let listed = results(&["ls /links"]);
    let names: Vec<&str> = (listed[0][0]["list"].as_array().expect("a list").iter())
        .map(|entry| entry["name"].as_str().expect("a name"))
        .collect();
    let children = expected.keys().filter(|path| path.starts_with(b"links/")).count();
    assert_eq!(names.len(), children + 2);
    assert!(names.contains(&".") && names.contains(&"first"));
}

#[test]
fn attributes_have_the_values_that_the_kernel_shows() {
    let expected = expected();
    let (path, line) = expected
        .iter()
        .filter(|(path, line)| {
            path.is_ascii() && !path.contains(&b' ') && line.xattrs.keys().all(|name| name.is_ascii())
        })
        .max_by_key(|(_, line)| line.xattrs.keys().filter(|name| name.starts_with("user.")).count())
        .expect("a file with attributes");
    let path = String::from_utf8_lossy(path);
    let listed = results(&[&format!("path /{path}"), "attr_list -v"]);
    let listed = listed[1].as_array().expect("a list");
    let of_user = line.xattrs.keys().filter(|name| name.starts_with("user.")).count();
    assert!(of_user > 0);
    assert_eq!(listed.len(), of_user, "{path}");
    for one in listed {
        let name = format!("user.{}", one["name"].as_str().expect("a name"));
        assert!(line.xattrs.contains_key(&name), "{path} {name}");
    }
}

#[test]
fn what_does_not_work_is_an_error_and_the_rest_goes_on() {
    for (command, said) in [
        ("label other", "cannot be changed"),
        ("uuid generate", "cannot be changed"),
        ("version extflg", "cannot be changed"),
        ("convert agno 1 byte 7 daddr", "does not go with"),
        ("convert agno 1 agno", "is what is asked for"),
        ("convert agno x daddr", "x is no number"),
        ("rtconvert rsumblock 1 rtx", "rsum"),
        ("btheight -n 0 all", "how many records"),
        ("btheight -n 5 1:2:3:tall", "header"),
        ("ls /no/such/path", "has no entry"),
        ("path links", "no current position"),
        ("attr_get name", "no current position"),
        ("bmap", "no current inode"),
        ("btdump", "no current position"),
        ("timelimit --ugly", "no option --ugly"),
        ("dump_iunlinked -b 64", "no list"),
        ("untorn_write_max", "-l or -b"),
        ("hashcoll -n", "needs a value"),
    ] {
        let output = run(&[], &[command, "echo on"]);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b"on \n"[..]), "{command}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{command}: {output:?}");
    }
}

#[test]
fn names_that_collide_have_one_hash() {
    let made = run(&[], &["hashcoll -n 50 a-name-of-some-length"]).stdout;
    let names: Vec<&[u8]> = made.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    assert_eq!(names.len(), 50);
    let hash = |name: &[u8]| name.iter().fold(0_u32, |hash, byte| hash.rotate_left(7) ^ u32::from(*byte));
    assert!(names.iter().all(|name| hash(name) == hash(b"a-name-of-some-length")));
    let folder = tempfile::tempdir().expect("a folder");
    let command = format!("hashcoll -n 5 -p {} another-name", folder.path().display());
    assert_eq!(run(&[], &[&command]).status.code(), Some(0));
    let entries: Vec<_> = fs::read_dir(folder.path()).expect("readable").map(|entry| entry.expect("sound")).collect();
    assert!(
        entries.len() > 1 && entries.iter().all(|entry| hash(entry.file_name().as_bytes()) == hash(b"another-name"))
    );
}

#[test]
fn rdump_copies_files_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("new");
    let output = run(&["--json"], &[&format!("rdump {}", target.display())]);
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(summary["result"]["files"].as_u64().is_some_and(|files| files > 100), "{output:?}");
    let mut compared = 0;
    for (path, line) in &expected() {
        let here = target.join(std::ffi::OsStr::from_bytes(path));
        let Ok(metadata) = fs::symlink_metadata(&here) else { continue };
        if rustix::process::geteuid().is_root() {
            assert_eq!(format!("{:o}", metadata.mode()), line.mode, "{}", here.display());
        }
        if metadata.is_file() && metadata.len() < 1 << 26 && File::open(&here).is_ok() {
            assert_eq!(manifest::content(&fs::read(&here).expect("readable")), line.content, "{}", here.display());
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
    // a single folder gives what is in it, several paths are put beside each other
    let (inner, beside) = (folder.path().join("inner"), folder.path().join("beside"));
    let commands =
        [format!("rdump /links {}", inner.display()), format!("rdump /links /links/first {}", beside.display())];
    let output = run(&[], &[&commands[0], &commands[1]]);
    assert!(
        inner.join("first").exists() && beside.join("links/first").exists() && beside.join("first").exists(),
        "{output:?}"
    );
    // modes without access would keep the folder from being removed
    for name in ["dir-0000", "dir-0500"] {
        let _ = fs::set_permissions(target.join("modes").join(name), fs::Permissions::from_mode(0o700));
    }
}
