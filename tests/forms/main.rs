//! The walkers against the Linux kernel: whole images, made by mkfs.xfs, filled through a mount, and then listed
//! without the kernel. Each object must be listed as the kernel lists it: `tests/oracle/tree_manifest`.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // sizes of test files
#![allow(clippy::print_stderr)] // a missing reference is said aloud

mod manifest;
mod populate;
mod source;
mod space;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use manifest::{Listing, list};
use source::Image;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(name)
}

fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// What the tests need of the machine; says what is missing.
fn missing_reference() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("root, to mount images".to_owned());
    }
    if let Err(error) = run(Command::new(script("progs")).args(["mkfs.xfs", "-V"])) {
        return Some(format!("mkfs.xfs of the reference ({error})"));
    }
    let filesystems = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let known = filesystems.lines().any(|line| line.trim() == "xfs");
    (!known && run(Command::new("modprobe").arg("xfs")).is_err()).then(|| "a kernel with XFS".to_owned())
}

/// A mounted image, unmounted in the end.
struct Mount(PathBuf);

impl Mount {
    fn new(image: &Path, at: PathBuf) -> Result<Self, String> {
        std::fs::create_dir(&at).map_err(|error| error.to_string())?;
        run(Command::new("mount").args(["-t", "xfs", "-o", "loop,nouuid"]).arg(image).arg(&at))?;
        Ok(Mount(at))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // busy for a moment while another thread starts a process, which holds all files of this one at first
        for _ in 0..50 {
            match run(Command::new("umount").arg(&self.0)) {
                Err(error) if error.contains("busy") => std::thread::sleep(std::time::Duration::from_millis(100)),
                Err(error) => return eprintln!("{error}"),
                Ok(_) => return,
            }
        }
    }
}

/// Makes an image with `args`, fills it (the largest directory with `most` entries), lists it with and without the kernel, and compares.
fn compare(blocksize: u64, most: usize, args: &[&str]) -> Option<Listing> {
    if let Some(missing) = missing_reference() {
        eprintln!("REFERENCE MISSING: {missing}");
        assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "no reference, and CI demands one");
        return None;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let image = folder.path().join("image");
    std::fs::File::create(&image).and_then(|file| file.set_len(4 << 30)).expect("a sparse file");
    run(Command::new(script("progs")).args(["mkfs.xfs", "-q", "-f"]).args(args).arg(&image)).expect("mkfs.xfs");
    let mount = Mount::new(&image, folder.path().join("mount")).expect("the kernel mounts the image");
    populate::populate(&mount.0, blocksize, most).expect("the tree can be made");
    drop(mount);
    let mount = Mount::new(&image, folder.path().join("again")).expect("the kernel mounts the image");
    let output = run(Command::new(script("tree_manifest")).arg(&mount.0)).expect("the kernel's view");
    drop(mount);
    let listing = list(&Image::open(&image, None));
    same_tree(&listing, &String::from_utf8(output.stdout).expect("manifests are UTF-8"));
    Some(listing)
}

/// What the kernel shows under two names: POSIX ACLs, which are stored as attributes of another name.
fn without_acls(line: &str) -> String {
    let mut columns: Vec<_> = line.split('\t').collect();
    let attributes = columns.pop().unwrap_or_default();
    let kept: Vec<_> = attributes.split(',').filter(|name| !name.starts_with("system.")).collect();
    let kept = if kept.is_empty() { "-".to_owned() } else { kept.join(",") };
    columns.push(&kept);
    columns.join("\t")
}

fn same_tree(listing: &Listing, kernel: &str) {
    assert!(listing.damage.is_empty(), "damage: {:#?}", &listing.damage[..listing.damage.len().min(20)]);
    let mut expected: Vec<_> = kernel.lines().map(without_acls).collect();
    expected.sort();
    for (ours, theirs) in listing.lines.iter().zip(&expected) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(listing.lines.len(), expected.len());
}

fn has_all_forms(listing: &Listing) {
    let dirs: Vec<_> = listing.dir_forms.keys().map(String::as_str).collect();
    assert_eq!(dirs, ["Block", "Leaf", "Node", "Short"], "{:?}", listing.dir_forms);
    let attrs: Vec<_> = listing.attr_forms.keys().map(String::as_str).collect();
    assert_eq!(attrs, ["Leaf", "Node", "Short"], "{:?}", listing.attr_forms);
    for form in ["local", "extents", "btree", "device"] {
        assert!(listing.fork_forms.contains_key(form), "{form}: {:?}", listing.fork_forms);
    }
}

#[test]
fn a_tree_of_4k_blocks_is_listed_as_the_kernel_lists_it() {
    if let Some(listing) = compare(4096, 20_000, &["-b", "size=4096"]) {
        has_all_forms(&listing);
    }
}

#[test]
fn a_tree_of_1k_blocks_is_listed_as_the_kernel_lists_it() {
    if let Some(listing) = compare(1024, 3_000, &["-b", "size=1024"]) {
        has_all_forms(&listing);
        assert!(listing.fork_forms.contains_key("deep btree"), "{:?}", listing.fork_forms);
    }
}

#[test]
fn directory_blocks_of_many_blocks_and_parent_pointers() {
    let args = ["-b", "size=1024", "-n", "size=16384,parent=1", "-i", "nrext64=0,size=512"];
    if let Some(listing) = compare(1024, 3_000, &args) {
        has_all_forms(&listing);
        assert_eq!(listing.parents, listing.entries, "parent pointers and entries differ");
    }
}

#[test]
fn a_tree_of_64k_blocks_is_listed_as_the_kernel_lists_it() {
    if let Some(listing) = compare(65536, 10_000, &["-b", "size=65536"]) {
        assert!(listing.dir_forms.len() >= 3, "{:?}", listing.dir_forms);
    }
}

#[test]
fn bitmaps_and_summaries_of_new_realtime_sections() {
    if let Err(error) = run(Command::new(script("progs")).args(["mkfs.xfs", "-V"])) {
        eprintln!("REFERENCE MISSING: mkfs.xfs of the reference ({error})");
        assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "no reference, and CI demands one");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (image, realtime) = (folder.path().join("image"), folder.path().join("realtime"));
    let sparse = |path: &Path, size| std::fs::File::create(path).and_then(|file| file.set_len(size)).expect("a file");
    let option = format!("rtdev={}", realtime.display());
    for (args, size) in [
        (&["-m", "metadir=0"][..], 900 << 20),
        (&["-b", "size=1024", "-m", "metadir=0"], (3 << 30) + 12_288),
        (&["-m", "metadir=1"], 5 << 30),
        (&["-b", "size=1024", "-m", "metadir=1", "-r", "rgsize=1g,extsize=16k"], 7 << 30),
    ] {
        sparse(&image, 1 << 30);
        sparse(&realtime, size);
        run(Command::new(script("progs")).args(["mkfs.xfs", "-q", "-f"]).args(args).args(["-r", &option]).arg(&image))
            .expect("mkfs.xfs");
        let image = Image::open(&image, Some(&realtime));
        assert!(image.superblock.frextents.get() > 0);
        space::realtime_agrees(&image, image.superblock.frextents.get());
    }
}

/// An image elsewhere and its manifest: XFSKIT_TREE_IMAGE, XFSKIT_TREE_REALTIME (if any), XFSKIT_TREE.
#[test]
#[ignore = "needs an image named in the environment"]
fn a_given_image_is_listed_as_its_manifest_says() {
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let image = path("XFSKIT_TREE_IMAGE").expect("XFSKIT_TREE_IMAGE names an image");
    let tree = path("XFSKIT_TREE").expect("XFSKIT_TREE names its manifest");
    let image = Image::open(&image, path("XFSKIT_TREE_REALTIME").as_deref());
    let listing = list(&image);
    same_tree(&listing, &std::fs::read_to_string(tree).expect("a readable manifest"));
    if image.geometry().realtime.blocks > 0 {
        space::realtime_agrees(&image, image.superblock.frextents.get());
    }
    if image.geometry().features.has_quota() {
        eprintln!("{} dquots agree", space::quotas_agree(&image, &listing.inodes));
    }
    eprintln!("{:?} {:?} {:?}", listing.dir_forms, listing.attr_forms, listing.fork_forms);
}
