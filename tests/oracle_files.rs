//! xfskit-files judged by the kernel: what is extracted and what is archived, onto a fresh XFS, must look like the image as the
//! kernel mounts it, column by column of `tests/oracle/tree_manifest`.
//!
//! This machine's kernel mounts the images, replays their journals, and gives its view. What it cannot mount (version 4,
//! quota, realtime sections) a guest shows; all of them with `XFSKIT_FULL=1`, else a fixed share.

#![allow(clippy::print_stdout, reason = "a test's report is its output")]

#[allow(dead_code, reason = "shared with the other oracle tests")]
#[path = "oracle/reference.rs"]
mod reference;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use reference::{Reference, missing, reference, run, said, unmount};
use serde_json::Value;
use tempfile::TempDir;

const TOOL: &str = env!("CARGO_BIN_EXE_xfskit-files");

/// Columns that a copy cannot have or need not: inode number, time of the last change of the inode, flags; and the map, which
/// is compared by itself.
const LEFT_OUT: [usize; 4] = [1, 7, 9, MAP];
const MAP: usize = 10;

/// Images for this machine's kernel, below `testdata`; the first two are always taken.
const HERE: [&str; 4] = ["files/tree.img", "crash/k73-default.1.img", "crash/k61-rr.1.img", "crash/i386-61.1.img"];

/// Images for a guest, below `testdata/db`, with its kernel, the bytes of their blocks, and whether they have a realtime device.
const GUESTS: [(&str, &str, u32, bool); 5] = [
    ("groups", "7.3", 4096, true),
    ("realtime", "7.3", 4096, true),
    ("quota", "7.3", 2048, false),
    ("v4", "6.12", 512, false),
    ("v4-quota", "6.12", 4096, false),
];

/// The smallest blocks that version 5 has: holes of smaller ones are not kept, so that the map is not compared.
const SMALLEST: u32 = 1024;

fn of_project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn full() -> bool {
    std::env::var_os("XFSKIT_FULL").is_some()
}

/// The references, if this machine can also mount images.
fn able() -> Option<&'static Reference> {
    let filesystems = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let mounts = filesystems.lines().any(|line| line.trim() == "xfs") && Path::new("/dev/loop-control").exists();
    if !rustix::process::geteuid().is_root() || !mounts {
        missing("mounting through loop devices (root, and a kernel with XFS)");
        return None;
    }
    reference()
}

fn unpack(packed: &Path, to: &Path) {
    let mut packed = zstd::Decoder::new(File::open(packed).expect("it is there")).expect("sound");
    packed.window_log_max(27).expect("a window that zstd takes");
    let mut file = File::create(to).expect("writable");
    std::io::copy(&mut packed, &mut file).expect("sound");
}

/// A mounted image, unmounted in the end.
struct Mount(PathBuf);

impl Mount {
    fn new(image: &Path, at: PathBuf, options: &str) -> Self {
        fs::create_dir_all(&at).expect("writable");
        let arguments = ["-t", "xfs", "-o", options, &image.display().to_string(), &at.display().to_string()];
        run("mount", arguments).unwrap_or_else(|why| panic!("{why}"));
        Mount(at)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(why) = unmount(&self.0) {
            println!("{why}");
        }
    }
}

/// The lines of a manifest by path.
type Manifest = BTreeMap<String, Vec<String>>;

fn manifest_of(text: &str) -> Manifest {
    let columns = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
    text.lines()
        .map(columns)
        .filter(|columns| columns.len() == 13)
        .map(|columns| (columns[0].clone(), columns))
        .collect()
}

fn kernels_view(folder: &Path) -> Manifest {
    let output = Command::new(of_project("tests/oracle/tree_manifest")).arg(folder).output().expect("python3");
    assert!(output.status.success(), "{}", said(&output));
    manifest_of(&String::from_utf8(output.stdout).expect("manifests are UTF-8"))
}

/// An image to copy from: its arguments for the tool, and what the kernel shows of it.
struct Source {
    arguments: Vec<String>,
    view: Manifest,
}

impl Source {
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(TOOL);
        let (image, devices) = self.arguments.split_last().expect("invariant: an image");
        command.args(devices).args(name.split(' ')).arg(image).stdin(Stdio::null());
        command
    }

    /// Whether blocks of the file are allocated and not written: they become holes.
    fn has_unwritten(&self, path: &str) -> bool {
        let mut command = self.command("map --json");
        let output = command.arg(path).output().expect("the tool can be started");
        let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        value["extents"].as_array().expect("a list").iter().any(|extent| extent["unwritten"] == true)
    }

    /// Copies onto a fresh XFS of blocks of `blocksize` bytes by `copy`, and compares.
    fn judge(&self, reference: &Reference, folder: &Path, blocksize: u32, copy: &str, left_out: &[&str]) {
        let fresh = folder.join("fresh");
        File::create(&fresh).and_then(|file| file.set_len(6 << 40)).expect("a sparse file");
        let size = format!("size={}", blocksize.max(SMALLEST));
        // with parent pointers, mkfs.xfs would give the root an attribute
        let made = reference
            .tool("mkfs.xfs", ["-q", "-f", "-K", "-n", "parent=0", "-b", &size])
            .arg(&fresh)
            .output()
            .expect("mkfs.xfs");
        assert!(made.status.success(), "{}", said(&made));
        let mount = Mount::new(&fresh, folder.join("target"), "loop");
        if copy == "get" {
            let output = self.command("get -r").arg("/").arg(&mount.0).output().expect("the tool can be started");
            assert_eq!((output.status.code(), said_of(&output.stderr).as_str()), (Some(0), ""));
        } else {
            let archive = folder.join("archive");
            let mut command = self.command("tar");
            let output = command.arg("-o").arg(&archive).output().expect("the tool can be started");
            assert_eq!(output.status.code(), Some(if left_out.is_empty() { 0 } else { 4 }), "{}", said(&output));
            let target = mount.0.display().to_string();
            let archive = archive.display().to_string();
            let options =
                ["--warning=no-timestamp", "--xattrs", "--xattrs-include=*", "--acls", "-S", "-xpf", &archive];
            run("tar", ["-C", &target].into_iter().chain(options)).unwrap_or_else(|why| panic!("{why}"));
        }
        let found = kernels_view(&mount.0);
        let expected: Vec<_> = self.view.iter().filter(|(path, _)| !left_out.contains(&path.as_str())).collect();
        for (path, line) in &expected {
            let copied = found.get(*path).unwrap_or_else(|| panic!("{copy}: {path} is missing"));
            for column in (0..13).filter(|column| !LEFT_OUT.contains(column)) {
                assert_eq!(copied[column], line[column], "{copy}: {path}, column {}", column + 1);
            }
            // GNU tar writes without saying how long a file gets, and the kernel gives such files space in advance
            if copy == "get" && blocksize >= SMALLEST && copied[MAP] != line[MAP] {
                assert!(self.has_unwritten(path), "{path}: the map differs");
            }
        }
        assert_eq!(found.len(), expected.len());
    }
}

fn said_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn folder() -> TempDir {
    let parent = std::env::var_os("XFSKIT_WORK").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::Builder::new().prefix("xfskit-files.").tempdir_in(parent).expect("the folder for images can be written")
}

#[test]
fn copies_of_images_that_this_kernel_mounts() {
    let Some(reference) = able() else { return };
    let share = if full() { HERE.len() } else { 2 };
    for name in HERE.into_iter().take(share) {
        let folder = folder();
        let image = folder.path().join("image");
        unpack(&of_project(&format!("testdata/{name}.zst")), &image);
        // the first mount replays the journal
        drop(Mount::new(&image, folder.path().join("source"), "loop,nouuid"));
        let mount = Mount::new(&image, folder.path().join("source"), "loop,nouuid,ro,norecovery");
        let view = kernels_view(&mount.0);
        drop(mount);
        assert!(view.len() > 100, "{name}");
        let source = Source { arguments: vec![image.display().to_string()], view };
        source.judge(reference, folder.path(), 4096, "get", &[]);
        let sockets: &[&str] = if name == "files/tree.img" { &["special/socket"] } else { &[] };
        source.judge(reference, folder.path(), 4096, "tar", sockets);
        println!("{name}: {} files copied by get and tar", source.view.len());
    }
}

/// What the guest shows of an image.
fn guests_view(reference: &Reference, folder: &Path, kernel: &str, devices: &[&Path]) -> Manifest {
    let script = folder.join("script");
    let options = if devices.len() > 1 { "-o ro,norecovery,rtdev=/dev/vdb" } else { "-o ro,norecovery" };
    let text = format!("mount {options} /dev/vda /mnt/d && python3 /host/tree_manifest /mnt/d && umount /mnt/d\n");
    fs::write(&script, text).expect("writable");
    let mut command = reference.guest();
    command.args(["-k", kernel, "-f"]).arg(of_project("tests/oracle/tree_manifest")).arg(&script).args(devices);
    let output = command.output().expect("the guest can be started");
    assert!(output.status.success(), "{}", said(&output));
    manifest_of(&String::from_utf8(output.stdout).expect("manifests are UTF-8"))
}

#[test]
fn copies_of_images_that_a_guest_mounts() {
    let Some(reference) = able() else { return };
    let share = if full() { GUESTS.len() } else { 1 };
    for (name, kernel, blocksize, realtime) in GUESTS.into_iter().take(share) {
        if !reference.has_kernel(kernel) {
            missing(&format!("a guest with Linux {kernel} (tests/oracle/setup --all)"));
            continue;
        }
        let folder = folder();
        let (image, rt) = (folder.path().join("image"), folder.path().join("rt"));
        unpack(&of_project(&format!("testdata/db/{name}.img.zst")), &image);
        let mut arguments = Vec::new();
        let mut devices = vec![image.as_path()];
        if realtime {
            unpack(&of_project(&format!("testdata/db/{name}.rt.zst")), &rt);
            arguments.extend(["-r".to_owned(), rt.display().to_string()]);
            devices.push(&rt);
        }
        let view = guests_view(reference, folder.path(), kernel, &devices);
        assert!(view.len() > 10, "{name}");
        arguments.push(image.display().to_string());
        let source = Source { arguments, view };
        source.judge(reference, folder.path(), blocksize, "get", &[]);
        println!("{name}: {} files copied by get", source.view.len());
    }
}
