//! Dumps against xfs_metadump and xfs_mdrestore 7.2, and against xfs_repair: what is in a dump, what is not, and that it
//! is a filesystem again when it is restored. The images are filled by this machine's kernel.

#![allow(clippy::print_stdout, reason = "a test's report is its output")]

#[allow(dead_code, reason = "shared with the other oracle tests")]
#[path = "oracle/reference.rs"]
mod reference;
#[path = "oracle_metadump/stored.rs"]
mod stored;

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use reference::{Reference, missing, reference, run, said, unmount};
use rustix::fs::{XattrFlags, lsetxattr};
use tempfile::TempDir;

/// Names, values and targets that must not be found in a dump.
const PLANTED: usize = 1000;

/// Filesystems in which directories, attributes and links take every form.
const KINDS: [&str; 3] = ["", "-n parent=1 -i nrext64=1", "-b size=1024 -n parent=1"];

/// Whether everything is run, not a share.
fn full() -> bool {
    std::env::var_os("XFSKIT_FULL").is_some()
}

fn folder() -> TempDir {
    let parent = std::env::var_os("XFSKIT_WORK").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::Builder::new()
        .prefix("xfskit-metadump.")
        .tempdir_in(parent)
        .expect("the folder for images can be written")
}

fn can_mount() -> bool {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let able = rustix::process::geteuid().is_root() && known.lines().any(|line| line.trim() == "xfs");
    if !able {
        missing("mounting through loop devices (root, and a kernel with XFS)");
    }
    able
}

/// Words that occur nowhere else: sixteen letters and more, the same each time.
struct Words(u64);

impl Words {
    fn next(&mut self) -> String {
        let mut word = String::new();
        for _ in 0..2 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            word += &format!("{:08x}", self.0 >> 32);
        }
        word
    }
}

/// Fills the filesystem mounted at `root`; gives what must not be found.
fn fill(root: &Path) -> std::io::Result<Vec<String>> {
    let mut words = Words(42);
    let mut planted: Vec<String> = (0..PLANTED).map(|_| words.next()).collect();
    let mut next = planted.clone().into_iter();
    let mut word = || next.next().expect("invariant: enough words");
    // directories in the inode, of one block, with one leaf, with nodes; names of each length
    for (name, count) in [("sf", 2), ("blk", 30), ("leaf", 150), ("node", 250)] {
        let folder = root.join(name);
        fs::create_dir(&folder)?;
        for number in 0..count {
            File::create(folder.join(word()))?;
            File::create(folder.join(format!("{number:x}")))?;
            File::create(folder.join(format!("f{number:04}")))?;
        }
    }
    for number in 0..3000 {
        File::create(root.join("node").join(format!("{number:04}")))?;
        if number % 5 == 0 {
            fs::remove_file(root.join("node").join(format!("{number:04}")))?;
        }
    }
    let links = root.join("links");
    fs::create_dir(&links)?;
    for _ in 0..60 {
        symlink(word(), links.join(word()))?;
        symlink(format!("/{}/{}/../x", word(), [word().as_str(); 40].join("/")), links.join(word()))?;
    }
    let attributes = root.join("attributes");
    fs::create_dir(&attributes)?;
    for (file, count) in [("a", 2), ("many", 60)] {
        let path = attributes.join(file);
        File::create(&path)?;
        for number in 0..count {
            let set = |name: String, value: &[u8]| lsetxattr(&path, name, value, XattrFlags::empty());
            set(format!("user.{}", word()), word().as_bytes())?;
            set(format!("user.{number:x}"), b"short")?;
            set(format!("trusted.{}", word()), word().repeat(if number % 9 == 3 { 300 } else { 3 }).as_bytes())?;
        }
    }
    // many names of one file: parent pointers in more than one block
    let shared = root.join("shared");
    fs::create_dir(&shared)?;
    File::create(shared.join("file"))?;
    for number in 0..400 {
        fs::hard_link(shared.join("file"), shared.join(format!("{number:03x}")))?;
        fs::hard_link(shared.join("file"), shared.join(format!("long-name-{number}")))?;
    }
    planted.truncate(PLANTED - next.count());
    assert!(planted.len() > PLANTED * 9 / 10, "{} words are planted", planted.len());
    Ok(planted)
}

/// An image of a kind, filled and clean.
fn image(reference: &Reference, folder: &Path, arguments: &str) -> Vec<String> {
    let path = folder.join("image");
    File::create(&path).and_then(|file| file.set_len(400 << 20)).expect("a sparse file");
    let made = reference.tool("mkfs.xfs", ["-q", "-f"]).args(arguments.split_whitespace()).arg(&path).output();
    let made = made.expect("the reference can be started");
    assert!(made.status.success(), "{arguments}: {}", said(&made));
    let mount = folder.join("mount");
    mount_at(&path, &mount, "loop,nouuid");
    let planted = fill(&mount);
    unmount(&mount).expect("it can be unmounted");
    planted.expect("the filesystem can be filled")
}

fn mount_at(image: &Path, point: &Path, options: &str) {
    fs::create_dir_all(point).expect("the folder can be written");
    let (image, point) = (image.display().to_string(), point.display().to_string());
    run("mount", ["-t", "xfs", "-o", options, &image, &point]).expect("the kernel mounts it");
}

/// The names of each inode.
fn names(root: &Path, found: &mut BTreeMap<u64, Vec<Vec<u8>>>) {
    for entry in fs::read_dir(root).expect("a readable folder").flatten() {
        let metadata = fs::symlink_metadata(entry.path()).expect("a readable entry");
        found.entry(metadata.ino()).or_default().push(entry.file_name().as_bytes().to_vec());
        if metadata.is_dir() {
            names(&entry.path(), found);
        }
    }
}

fn names_of(image: &Path, point: &Path) -> BTreeMap<u64, Vec<Vec<u8>>> {
    mount_at(image, point, "loop,nouuid,ro,norecovery");
    let mut found = BTreeMap::new();
    names(point, &mut found);
    unmount(point).expect("it can be unmounted");
    found
}

fn ours(tool: &str, arguments: &[&str], folder: &Path) {
    let binary = match tool {
        "metadump" => env!("CARGO_BIN_EXE_xfskit-metadump"),
        _ => env!("CARGO_BIN_EXE_xfskit-mdrestore"),
    };
    let output = Command::new(binary).args(arguments).current_dir(folder).output().expect("the tool can be started");
    assert!(output.status.success() && output.stderr.is_empty(), "{tool} {arguments:?}: {}", said(&output));
}

/// What the script xfs_metadump runs: xfs_db.
fn theirs(reference: &Reference, tool: &str, arguments: &[&str], folder: &Path) {
    let mut command = match tool {
        "metadump" => {
            let [options @ .., source, target] = arguments else { panic!("a source and a target") };
            let dump = format!("metadump {} {target}", options.join(" "));
            reference.tool("xfs_db", ["-i", "-p", "xfs_metadump", "-c", &dump, source])
        }
        _ => reference.tool("xfs_mdrestore", arguments),
    };
    let output = command.current_dir(folder).output().expect("the reference can be started");
    assert!(output.status.success(), "{tool} {arguments:?}: {}", said(&output));
}

/// Whether xfs_repair finds nothing to do, and what it says if it does.
fn repair(reference: &Reference, image: &Path) -> Result<(), String> {
    let output = reference.tool("xfs_repair", ["-n"]).arg(image).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(said(&output)) }
}

fn same(first: &Path, second: &Path) -> bool {
    let compared = Command::new("cmp").arg("-s").args([first, second]).status();
    compared.is_ok_and(|status| status.success())
}

/// Where `words`, all of one length, are in `haystack`.
fn places<'h>(haystack: &'h [u8], words: &[String]) -> impl Iterator<Item = usize> + use<'h> {
    let length = words.first().map_or(1, String::len);
    let known: HashSet<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let windows = haystack.windows(length).enumerate();
    let found = windows.filter(move |(_, window)| window[0].is_ascii_hexdigit() && known.contains(*window));
    found.map(|(at, _)| at)
}

/// The first of `words` that is in `haystack`.
fn find<'h>(haystack: &'h [u8], words: &[String]) -> Option<&'h [u8]> {
    places(haystack, words).next().map(|at| &haystack[at..at + words[0].len()])
}

#[test]
fn nothing_planted_is_in_a_dump_and_the_restored_filesystem_is_sound() {
    let Some(reference) = reference() else { return };
    if !can_mount() {
        return;
    }
    for kind in KINDS {
        let folder = folder();
        let path = folder.path();
        let planted = image(reference, path, kind);
        let before = names_of(&path.join("image"), &path.join("mount"));
        let plain = fs::read(path.join("image")).expect("readable");
        assert!(find(&plain, &planted).is_some(), "the search finds nothing at all");
        for options in [&["-v", "1"][..], &["-v", "2"], &["-a", "-v", "2"], &["-o", "-v", "1"]] {
            let what = format!("{kind:?} {options:?}");
            ours("metadump", &[options, &["image", "dump"]].concat(), path);
            ours("mdrestore", &["dump", "restored"], path);
            let clean = repair(reference, &path.join("restored"));
            assert!(clean.is_ok(), "{what}: {clean:?}");
            if options.len() == 2 {
                let dump = fs::read(path.join("dump")).expect("readable");
                assert_eq!(find(&dump, &planted), None, "{what}");
                let after = names_of(&path.join("restored"), &path.join("mount"));
                compare_names(&before, &after, &what);
            }
        }
    }
}

/// Every inode has as many names as before, of the same lengths, and none of its old ones.
fn compare_names(before: &BTreeMap<u64, Vec<Vec<u8>>>, after: &BTreeMap<u64, Vec<Vec<u8>>>, what: &str) {
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{what}");
    for (ino, old) in before {
        let new = &after[ino];
        let lengths = |names: &[Vec<u8>]| {
            let mut lengths: Vec<_> = names.iter().map(Vec::len).collect();
            lengths.sort_unstable();
            lengths
        };
        assert_eq!(lengths(old), lengths(new), "{what}: inode {ino}");
        if let [old] = &old[..] {
            assert_ne!(new[0], *old, "{what}: inode {ino}");
        }
    }
}

#[test]
fn the_blocks_are_those_of_xfs_metadump_and_each_restores_the_other() {
    let Some(reference) = reference() else { return };
    if !can_mount() {
        return;
    }
    for kind in KINDS {
        let folder = folder();
        let path = folder.path();
        image(reference, path, kind);
        for version in ["1", "2"] {
            let arguments = |dump: &'static str| ["-a", "-o", "-v", version, "image", dump];
            ours("metadump", &arguments("ours"), path);
            theirs(reference, "metadump", &arguments("theirs"), path);
            theirs(reference, "mdrestore", &["theirs", "expected"], path);
            ours("mdrestore", &["ours", "a"], path);
            ours("mdrestore", &["theirs", "b"], path);
            theirs(reference, "mdrestore", &["ours", "c"], path);
            for restored in ["a", "b", "c"] {
                assert!(same(&path.join("expected"), &path.join(restored)), "{kind:?}, version {version}: {restored}");
            }
        }
    }
}

/// What is left of names in blocks with -a is where nothing is in use: without -a, there are zeroes in its place.
#[test]
fn stale_bytes_alone_give_names_away() {
    let Some(reference) = reference() else { return };
    if !can_mount() {
        return;
    }
    for kind in KINDS.into_iter().take(if full() { KINDS.len() } else { 1 }) {
        let folder = folder();
        let path = folder.path();
        let planted = image(reference, path, kind);
        for version in ["1", "2"] {
            for (options, to) in [(&["-a"][..], "with"), (&[], "without")] {
                ours("metadump", &[options, &["--seed", "7", "-v", version, "image", "dump"]].concat(), path);
                ours("mdrestore", &["dump", to], path);
            }
            let [with, without] = ["with", "without"].map(|name| fs::read(path.join(name)).expect("readable"));
            let found: Vec<usize> = places(&with, &planted).collect();
            assert!(!found.is_empty(), "{kind:?}: nothing is stale");
            for at in found {
                let name = String::from_utf8_lossy(&with[at..at + 16]);
                assert_eq!(without[at..at + 16], [0; 16], "{kind:?}, version {version}: {name} at byte {at}");
            }
        }
    }
}
