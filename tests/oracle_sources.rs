//! Folders and archives in a new image, as the kernel shows them: equal to the source in every column of
//! `tests/oracle/tree_manifest` but inode number, ctime and flags.

#![allow(clippy::print_stdout, reason = "a test's report is its output")]

#[path = "populate/awkward.rs"]
mod awkward;
#[allow(dead_code, reason = "shared with the other oracle tests")]
#[path = "oracle/reference.rs"]
mod reference;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use reference::{Reference, missing, mkfs, reference, run, said, unmount};
use tempfile::TempDir;

/// The columns that are compared besides the path: mode, owner, links, size, mtime, rdev, contents, attributes.
const COLUMNS: [usize; 8] = [2, 3, 4, 5, 6, 8, 11, 12];
/// Attributes that the kernel shows of a list, and of the filesystem.
const OF_XFS: [&str; 2] = ["trusted.SGI_ACL_", "trusted.xfs:"];

fn able() -> Option<&'static Reference> {
    let filesystems = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let mounts = filesystems.lines().any(|line| line.trim() == "xfs") && Path::new("/dev/loop-control").exists();
    if !rustix::process::geteuid().is_root() || !mounts {
        missing("mounting through loop devices (root, and a kernel with XFS)");
        return None;
    }
    reference()
}

fn manifest(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/tree_manifest");
    let text = run("python3", [script.as_os_str(), folder.as_os_str()]).unwrap_or_else(|why| panic!("{why}"));
    let line = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let mut kept: Vec<String> = COLUMNS.iter().map(|column| columns[*column].to_owned()).collect();
        let attributes = kept.pop().unwrap_or_default();
        let own = |one: &&str| *one != "-" && !OF_XFS.iter().any(|prefix| one.starts_with(prefix));
        kept.push(attributes.split(',').filter(own).collect::<Vec<_>>().join(","));
        (columns[0].to_owned(), kept)
    };
    text.lines().map(line).collect()
}

/// What the kernel shows of an image, which xfs_repair finds nothing in.
fn shown(image: &Path, reference: &Reference) -> BTreeMap<String, Vec<String>> {
    let mut repair = reference.tool("xfs_repair", ["-n", "-f", "-o", "force_geometry"]);
    let output = repair.arg(image).output().expect("it can be started");
    assert!(output.status.success(), "xfs_repair: {}\n{}", said(&output), String::from_utf8_lossy(&output.stderr));
    let at = image.with_extension("mounted");
    fs::create_dir_all(&at).expect("writable");
    let (device, folder) = (image.display().to_string(), at.display().to_string());
    run("mount", ["-t", "xfs", "-o", "loop,ro,nouuid", &device, &folder]).unwrap_or_else(|why| panic!("{why}"));
    let manifest = std::panic::catch_unwind(|| manifest(&at));
    unmount(&at).unwrap_or_else(|why| println!("{why}"));
    manifest.unwrap_or_else(|why| std::panic::resume_unwind(why))
}

fn make(folder: &Path, name: &str, arguments: &[&str]) -> PathBuf {
    let image = folder.join(format!("{name}.img"));
    let output = mkfs(["-q", "-f"]).args(arguments).arg(&image).output().expect("it can be started");
    assert!(output.status.success(), "{name}: {}", said(&output));
    image
}

fn differences(source: &BTreeMap<String, Vec<String>>, found: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let paths: std::collections::BTreeSet<_> = source.keys().chain(found.keys()).collect();
    let differ = paths.into_iter().filter(|path| source.get(*path) != found.get(*path));
    differ.map(|path| format!("{path}: {:?} became {:?}", source.get(path), found.get(path))).collect()
}

/// A source on XFS with small blocks, which has room for every attribute and for small holes.
fn source(folder: &Path) -> PathBuf {
    let image = make(folder, "source", &["--size", "400m", "-b", "size=1k"]);
    let at = folder.join("source");
    fs::create_dir_all(&at).expect("writable");
    let (device, mounted) = (image.display().to_string(), at.display().to_string());
    run("mount", ["-t", "xfs", "-o", "loop,nouuid", &device, &mounted]).unwrap_or_else(|why| panic!("{why}"));
    at
}

#[test]
fn the_kernel_shows_what_was_in_the_source() {
    let Some(reference) = able() else { return };
    let folder = TempDir::new().expect("a temporary folder");
    let mounted = source(folder.path());
    let tree = mounted.join("tree");
    fs::create_dir(&tree).expect("writable");
    let many = if std::env::var_os("XFSKIT_FULL").is_some() { 100_000 } else { 3000 };
    awkward::make(&tree, many);
    let checked = std::panic::catch_unwind(|| check(&tree, folder.path(), reference));
    unmount(&mounted).unwrap_or_else(|why| println!("{why}"));
    checked.unwrap_or_else(|why| std::panic::resume_unwind(why));
}

fn check(tree: &Path, folder: &Path, reference: &Reference) {
    let expected = manifest(tree);
    assert!(expected.len() > 3000 && expected["sparse/b"][3] == (1_u64 << 33).to_string());
    let path = tree.display().to_string();
    let mut wrong = Vec::new();
    for (name, options) in [
        ("default", &["--size", "600m"][..]),
        ("1k", &["--size", "600m", "-b", "size=1k"]),
        ("without-parents", &["--size", "600m", "-n", "parent=0,size=16k", "-d", "agcount=9", "-m", "rmapbt=0"]),
        ("smallest", &["--minimize"]),
    ] {
        let image = make(folder, name, &[options, &["-p", &path]].concat());
        let found = shown(&image, reference);
        wrong.extend(differences(&expected, &found).into_iter().map(|why| format!("{name}: {why}")));
        fs::remove_file(&image).expect("it is there");
    }
    for (name, program, arguments) in [
        ("gnu", "tar", &["--format=gnu", "--sparse"][..]),
        (
            "sparse-0.0",
            "tar",
            &["--format=pax", "--sparse", "--sparse-version=0.0", "--acls", "--xattrs", "--xattrs-include=*"],
        ),
        (
            "sparse-0.1",
            "tar",
            &["--format=pax", "--sparse", "--sparse-version=0.1", "--acls", "--xattrs", "--xattrs-include=*"],
        ),
        ("sparse-1.0", "tar", &["--format=pax", "--sparse", "--acls", "--xattrs", "--xattrs-include=*"]),
        ("libarchive", "bsdtar", &["--format=pax", "--acls", "--xattrs", "--numeric-owner"]),
    ] {
        let archive = folder.join(format!("{name}.tar"));
        let mut command = Command::new(program);
        command.args(arguments).arg("-cf").arg(&archive).args(["-C", &path, "."]).env("LC_ALL", "C.UTF-8");
        if command.output().is_err() {
            missing(program);
            continue;
        }
        let image = make(folder, name, &["--size", "600m", "--tar", &archive.display().to_string()]);
        let found = shown(&image, reference);
        let expected = archived(&expected, arguments.contains(&"--acls"), arguments[0] == "--format=gnu");
        wrong.extend(differences(&expected, &found).into_iter().map(|why| format!("{name}: {why}")));
        fs::remove_file(&image).expect("it is there");
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

/// The source as an archive can have it: without sockets, and without what the format has no place for.
fn archived(
    source: &BTreeMap<String, Vec<String>>,
    with_attributes: bool,
    whole_seconds: bool,
) -> BTreeMap<String, Vec<String>> {
    let mut lines = source.clone();
    lines.remove("socket");
    for columns in lines.values_mut() {
        if !with_attributes {
            columns[7].clear();
        }
        if whole_seconds {
            let time: i128 = columns[4].parse().expect("a number");
            columns[4] = (time.div_euclid(1_000_000_000) * 1_000_000_000).to_string();
        }
    }
    lines
}
