//! Populated images judged from outside: `xfs_repair -n` of xfsprogs 7.2 finds nothing, this machine's kernel shows what the
//! source folder has and works on in them, and a guest with Linux 7.3 scrubs them.

#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // sizes and patterns of test files
#![allow(clippy::print_stdout, reason = "a test's report is its output")]

#[path = "forms/populate.rs"]
mod fill;
#[path = "oracle/host_kernel_mount.rs"]
mod host_kernel_mount;
#[allow(dead_code, reason = "shared with the other tests of populate")]
#[path = "populate/image.rs"]
mod image;
#[allow(dead_code, reason = "shared with the other tests of populate")]
#[path = "populate/maker.rs"]
mod maker;
#[allow(dead_code, reason = "shared with the other oracle tests")]
#[path = "oracle/reference.rs"]
mod reference;
#[path = "populate/wishes.rs"]
mod wishes;

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use host_kernel_mount::{Mount, can_mount};
use image::Wish;
use reference::{Reference, missing, reference, run, said};
use tempfile::TempDir;
use wishes::wishes;
use xfskit::btree::Step;
use xfskit::buffer::SearchEffort;
use xfskit::device::{Device, FileDevice, OpenFile};
use xfskit::error::Result;
use xfskit::forms::{Inode, for_each_inode_chunk};
use xfskit::image::{Image, ImageDevices};
use xfskit::populate::{Builder, Content, Exclude, Prototype, Sources};
use xfskit::report::Silent;

/// Columns of `tree_manifest` that need not be equal: inode number, time of the last change of the inode, flags.
const LEFT_OUT: [usize; 3] = [1, 7, 9];
/// The column of the mapped ranges.
const MAP: usize = 10;
/// Files of the source with space that is reserved and not written, some of it by the kernel while they grew: it reads as
/// holes.
const WITH_RESERVED: [&str; 4] = ["files/preallocated", "files/some", "files/btree", "files/deep"];
/// Kinds of filesystems, by name, that this machine's kernel mounts.
const FOR_THE_KERNEL: [&str; 12] = [
    "default",
    "1k",
    "no-rmap",
    "no-parent",
    "no-sparse",
    "no-finobt",
    "no-bigtime",
    "dir-64k",
    "1k-dir-4k",
    "stripe",
    "many-groups",
    "sector-4k",
];
/// Kinds that a guest scrubs.
const FOR_A_GUEST: [&str; 4] = ["default", "metadir-quota", "1k", "64k"];
/// The one of them whose superblock asks for quota.
const QUOTA: usize = 1;
/// Bytes of the blocks of the source's filesystem: the smallest that its kernel knows, so that its holes are small.
const SOURCE_BLOCK: u64 = 1024;

fn full() -> bool {
    std::env::var_os("XFSKIT_FULL").is_some()
}

fn folder() -> TempDir {
    let parent = std::env::var_os("XFSKIT_WORK").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::Builder::new()
        .prefix("xfskit-populate.")
        .tempdir_in(parent)
        .expect("the folder for images can be written")
}

fn repair(reference: &Reference, path: &Path) -> std::result::Result<(), String> {
    let mut command = reference.tool("xfs_repair", ["-n", "-f", "-o", "force_geometry"]);
    let output = command.arg(path).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{}\n{text}", said(&output))) }
}

#[test]
fn xfs_repair_finds_nothing() {
    let Some(reference) = reference() else { return };
    let folder = folder();
    let scale = if full() { 1000 } else { 30 };
    let mut wrong = Vec::new();
    for mut wish in wishes().into_iter().step_by(if full() { 1 } else { 2 }) {
        wish.size *= if full() { 4 } else { 1 };
        let (path, device) = wish.file(folder.path());
        let built = wish.build(&device, |builder| maker::everything(builder, scale));
        let result = built.map_err(|error| error.to_string()).and_then(|_| repair(reference, &path));
        if let Err(why) = result {
            println!("{}: {why}", wish.name);
            wrong.push(wish.name);
        }
        fs::remove_file(&path).expect("it is there");
    }
    assert_eq!(wrong, Vec::<&str>::new());
}

/// The lines of a manifest by path.
type Manifest = BTreeMap<String, Vec<String>>;

fn kernels_view(folder: &Path) -> Manifest {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/tree_manifest");
    let output = Command::new(script).arg(folder).output().expect("python3");
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("manifests are UTF-8");
    let columns = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
    text.lines().map(columns).filter(|columns| columns.len() == 13).map(|line| (line[0].clone(), line)).collect()
}

/// A folder on an XFS of its own that has all that a folder can have.
fn source(reference: &Reference, folder: &Path) -> Mount {
    let image = folder.join("source.img");
    File::create(&image).and_then(|file| file.set_len(2 << 30)).expect("a sparse file");
    let size = format!("size={SOURCE_BLOCK}");
    let arguments = ["-q", "-b", &size, "-m", "rmapbt=0,autofsck=0", "-i", "exchange=0", "-n", "parent=0"];
    let made = reference.tool("mkfs.xfs", arguments).arg(&image).output().expect("mkfs.xfs");
    assert!(made.status.success(), "{}", said(&made));
    let mount = Mount::new(&image, folder.join("source"), "loop");
    let top = mount.path();
    fill::populate(top, SOURCE_BLOCK, if full() { 100_000 } else { 3000 }).expect("the source can be filled");
    let shared = top.join("set-group");
    fs::create_dir(&shared).expect("writable");
    chown(&shared, Some(1234), Some(4321)).expect("root");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o2775)).expect("root");
    File::create(shared.join("n".repeat(255))).expect("writable");
    for (name, count, step) in [("small-holes", 40, 2), ("uneven-holes", 400, 3)] {
        let file = File::create(top.join("files").join(name)).expect("writable");
        file.set_len(count * step * SOURCE_BLOCK).expect("there is room");
        for at in 0..count {
            file.write_all_at(&[7; 100], at * step * SOURCE_BLOCK + at % 3).expect("there is room");
        }
    }
    for list in ["u:77:rw,g::r,m::rwx", "d:u:78:rwx,d:g:79:r"] {
        if let Err(why) = run("setfacl", ["-m".as_ref(), list.as_ref(), shared.as_os_str()]) {
            missing(&format!("setfacl: {why}"));
        }
    }
    mount
}

fn from_folder(builder: &mut Builder<'_>, path: &Path) -> Result<Content> {
    let sources = Sources {
        prototype: Some(Prototype { path: path.to_owned(), atime: false, slashes_are_spaces: false }),
        archives: Vec::new(),
        exclude: Exclude::new(&[])?,
        owner: None,
        map: None,
        forbidden: HashSet::new(),
        size: &|_| None,
    };
    sources.read(builder, &Silent)
}

/// The same filesystem without an attribute of the root's own.
fn plain(mut wish: Wish) -> Wish {
    wish.lists.push(('m', "autofsck=0".to_owned()));
    wish.size = wish.size.max(400 << 20);
    wish
}

#[test]
fn the_kernel_shows_the_folder() {
    let Some(reference) = reference() else { return };
    if !can_mount() {
        return;
    }
    let folder = folder();
    let source = source(reference, folder.path());
    let expected = kernels_view(source.path());
    assert!(expected.len() > 1000);
    let share = if full() { FOR_THE_KERNEL.len() } else { 2 };
    for name in FOR_THE_KERNEL.into_iter().take(share) {
        let wish = plain(wishes().into_iter().find(|wish| wish.name == name).expect("a kind by this name"));
        let (path, device) = wish.file(folder.path());
        wish.build(&device, |builder| from_folder(builder, source.path())).unwrap_or_else(|error| panic!("{error}"));
        repair(reference, &path).unwrap_or_else(|why| panic!("{name}: {why}"));
        let block = u64::from(wish.layout().expect("sound").block.bytes());
        let mount = Mount::new(&path, folder.path().join("mounted"), "loop");
        let found = kernels_view(mount.path());
        compare(name, &expected, &found, block <= SOURCE_BLOCK);
        use_it(mount.path());
        drop(mount);
        repair(reference, &path).unwrap_or_else(|why| panic!("{name}, after use: {why}"));
        fs::remove_file(&path).expect("it is there");
        println!("{name}: {} files", found.len());
    }
}

fn compare(name: &str, expected: &Manifest, found: &Manifest, with_map: bool) {
    for (path, line) in expected {
        let copied = found.get(path).unwrap_or_else(|| panic!("{name}: {path} is missing"));
        for column in (0..13).filter(|column| !LEFT_OUT.contains(column)) {
            if column == MAP && (!with_map || WITH_RESERVED.contains(&path.as_str())) {
                continue;
            }
            assert_eq!(copied[column], line[column], "{name}: {path}, column {}", column + 1);
        }
    }
    assert_eq!(found.len(), expected.len(), "{name}");
}

/// Changes what was built, everywhere.
fn use_it(top: &Path) {
    for entry in fs::read_dir(top.join("dirs")).expect("a folder") {
        let folder = entry.expect("an entry").path();
        if !folder.is_dir() {
            continue;
        }
        for number in 0..50 {
            fs::write(folder.join(format!("new-{number}")), vec![7; 5000]).expect("there is room");
        }
        for old in fs::read_dir(&folder).expect("a folder").step_by(3) {
            fs::remove_file(old.expect("an entry").path()).expect("a file");
        }
    }
    for name in ["attrs", "links", "special"] {
        fs::remove_dir_all(top.join(name)).expect("a folder");
    }
    fs::write(top.join("files/some"), b"short").expect("a file");
    fs::remove_file(top.join("files/deep")).expect("a file");
}

/// Blocks of 1 KiB by user, group and project, as Linux has counted them: three lists of lines that begin with a number and
/// what it uses.
fn counted(report: &str) -> Vec<(u32, u64)> {
    let line = |line: &str| {
        let mut words = line.strip_prefix('#')?.split_whitespace();
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    report.lines().filter_map(line).collect()
}

/// The same from the inodes of an image whose files belong to no project.
fn used(path: &Path) -> Vec<(u32, u64)> {
    let device = FileDevice::open(path, OpenFile::READ).expect("it can be read");
    let image = Image::open(ImageDevices::of_data(Arc::new(device)), SearchEffort::Guesses).expect("an image");
    let (mut users, mut groups, mut all) = (BTreeMap::new(), BTreeMap::new(), 0);
    for agno in image.geometry().ag_numbers() {
        for_each_inode_chunk(image.cache(), agno, &mut |chunk| {
            for inode in chunk.expect("a sound chunk").inodes().filter(|inode| !inode.is_free) {
                let inode = Inode::decode(image.cache(), inode.ino, inode.bytes).expect("an inode");
                if inode.raw().is_metadata() {
                    continue;
                }
                let core = &inode.raw().core;
                let used = core.nblocks.get() * u64::from(image.geometry().blocksize) / 1024;
                *users.entry(core.uid.get()).or_insert(0) += used;
                *groups.entry(core.gid.get()).or_insert(0) += used;
                all += used;
            }
            Ok(Step::Continue)
        })
        .expect("a sound btree");
    }
    users.into_iter().chain(groups).chain([(0, all)]).collect()
}

#[test]
fn linux_7_3_scrubs_what_was_built() {
    let Some(reference) = reference() else { return };
    if !reference.has_kernel("7.3") {
        missing("Linux 7.3 for the guest (run tests/oracle/setup as root)");
        return;
    }
    let folder = folder();
    let script = folder.path().join("script");
    let text = "for device in /dev/vd?; do mount -t xfs $device /mnt/d && xfs_scrub -n /mnt/d && echo GOOD $device; \
                for kind in u g p; do xfs_quota -xc \"report -$kind -n -N\" /mnt/d; done; umount /mnt/d; done\n";
    fs::write(&script, text).expect("writable");
    let share = if full() { FOR_A_GUEST.len() } else { 2 };
    let mut images = Vec::new();
    for name in FOR_A_GUEST.into_iter().take(share) {
        let wish = wishes().into_iter().find(|wish| wish.name == name).expect("a kind by this name");
        let (path, device) = wish.file(folder.path());
        let device: Arc<dyn Device> = device;
        wish.build(&device, |builder| maker::everything(builder, 30)).unwrap_or_else(|error| panic!("{name}: {error}"));
        images.push(path);
    }
    let mut guest = reference.guest();
    guest.args(["-k", "7.3", "-t", "600"]).arg(&script).args(&images);
    let output = guest.output().expect("the guest can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{text}");
    assert_eq!(text.matches("GOOD").count(), images.len(), "{}", said(&output));
    let with_quota = text.split("GOOD ").nth(1 + QUOTA).expect("an image with quota");
    assert_eq!(counted(with_quota), used(&images[QUOTA]));
    for path in &images {
        repair(reference, path).unwrap_or_else(|why| panic!("after use: {why}"));
    }
}
