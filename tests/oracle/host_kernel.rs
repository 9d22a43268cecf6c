//! This machine's kernel mounts what the matrix makes, writes to it, and finds it again after a second mount.

use crate::format::{Side, format};
use crate::matrix::repair;
use crate::place::{Files, Places, attach, detach};
use crate::reference::{Reference, missing, reference, run, unmount};
use crate::sets::{Set, accepted, chosen};
use crate::tally::{Outcome, each};
use rustix::fs::XattrFlags;
use std::fs;
use std::io::{Error, Result};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// One in so many sets belongs to the share that is always run.
const SHARE: u64 = 12;

/// Whether this machine can mount XFS through loop devices at all; says so if it cannot.
pub fn can_mount() -> bool {
    let filesystems = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let able = rustix::process::geteuid().is_root()
        && Path::new("/dev/loop-control").exists()
        && filesystems.lines().any(|line| line.trim() == "xfs");
    if !able {
        missing("mounting through loop devices (root, and a kernel with XFS)");
    }
    able
}

/// Whether a kernel without v4, realtime, quota and ASCII-only case folding, which distributions and cloud images leave
/// out, can mount what the set makes. The guests mount the rest.
pub fn is_for_host(set: &Set) -> bool {
    let quota = ["uquota", "gquota", "pquota", "uqnoenforce", "gqnoenforce", "pqnoenforce"];
    let unfit = ["crc=0", "version=ci", "zoned=1", "zoned"];
    let conf = set.conf.as_ref().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    !set.is_dry()
        && !set.writes_out
        && !set.is_for_guest()
        && set.file('r').is_none()
        && !unfit.iter().chain(&quota).any(|word| set.has(word))
        && !conf.contains("crc=0")
        && !conf.contains("quota")
}

/// A mounted filesystem, and its loop devices.
struct Mount {
    point: PathBuf,
    loops: Vec<String>,
}

impl Mount {
    fn new(set: &Set, files: &Files) -> std::result::Result<Self, String> {
        let point = files.folder().join("mnt");
        fs::create_dir_all(&point).map_err(|error| error.to_string())?;
        let mut mount = Self { point, loops: Vec::new() };
        // Every image of the matrix has the same UUID.
        let mut options = "nouuid".to_owned();
        for spec in &set.files {
            let device = attach(&files.image(spec.role), spec.loop_sector.unwrap_or(512))?;
            if spec.role == 'l' {
                options.push_str(&format!(",logdev={device}"));
            }
            mount.loops.push(device);
        }
        let data = set.files.iter().position(|spec| spec.role == 'd').map(|index| mount.loops[index].clone());
        let point = mount.point.display().to_string();
        run("mount", ["-t", "xfs", "-o", &options, &data.unwrap_or_default(), &point])?;
        Ok(mount)
    }

    fn unmount(mut self) -> std::result::Result<(), String> {
        unmount(&self.point)?;
        while let Some(device) = self.loops.pop() {
            detach(&device)?;
        }
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Reached with devices left only after an error; what cannot be undone shows in the folder's removal.
        if !self.loops.is_empty() {
            let _ = unmount(&self.point);
            for device in self.loops.drain(..) {
                let _ = detach(&device);
            }
        }
    }
}

/// Mounts, writes, unmounts, mounts, reads, changes and unmounts.
pub fn use_it(set: &Set, files: &Files) -> std::result::Result<(), String> {
    let small = set.file('d').is_none_or(|file| file.size < 100 << 20);
    let mount = Mount::new(set, files)?;
    write_tree(&mount.point, small).map_err(|error| format!("first mount: {error}"))?;
    mount.unmount()?;
    let mount = Mount::new(set, files)?;
    check_tree(&mount.point, small).map_err(|error| format!("second mount: {error}"))?;
    mount.unmount()
}

/// The content of file `index`: no two are alike, and the lengths pass over the ends of blocks.
fn content(index: usize) -> Vec<u8> {
    (0..index * 997 % 20_000).map(|at| (at * 31 + index * 7).to_le_bytes()[0]).collect()
}

fn file_count(small: bool) -> usize {
    if small { 40 } else { 300 }
}

/// Files in a directory that outgrows its inode, a large file, an extended attribute, a hard and two symbolic links.
fn write_tree(root: &Path, small: bool) -> Result<()> {
    let folder = root.join("folder");
    fs::create_dir(&folder)?;
    for index in 0..file_count(small) {
        fs::write(folder.join(format!("file-number-{index}")), content(index))?;
    }
    fs::write(root.join("large"), vec![0x3c; if small { 200_000 } else { 8 << 20 }])?;
    fs::hard_link(folder.join("file-number-1"), root.join("hard"))?;
    symlink("folder/file-number-2", root.join("short"))?;
    symlink("x/".repeat(300), root.join("long"))?;
    rustix::fs::setxattr(&folder, "user.colour", &[0x61; 700], XattrFlags::CREATE)?;
    fs::remove_file(folder.join("file-number-3"))
}

fn check_tree(root: &Path, small: bool) -> Result<()> {
    let same = |holds: bool, what: &str| if holds { Ok(()) } else { Err(Error::other(format!("{what} has changed"))) };
    let folder = root.join("folder");
    for index in (0..file_count(small)).filter(|index| *index != 3) {
        let name = format!("file-number-{index}");
        same(fs::read(folder.join(&name))? == content(index), &name)?;
    }
    same(fs::read_dir(&folder)?.count() == file_count(small) - 1, "the directory")?;
    same(fs::read(root.join("large"))?.iter().all(|byte| *byte == 0x3c), "the large file")?;
    same(fs::read(root.join("hard"))? == content(1), "the hard link")?;
    same(fs::read(root.join("short"))? == content(2), "the symbolic link")?;
    same(fs::read_link(root.join("long"))?.as_os_str().len() == 600, "the long symbolic link")?;
    let mut value = [0; 1000];
    same(rustix::fs::getxattr(&folder, "user.colour", &mut value)? == 700, "the attribute")?;
    fs::remove_dir_all(&folder)
}

fn check(set: &Set, places: &Places, reference: &Reference) -> Outcome {
    let run = || -> std::result::Result<(), String> {
        let folder = places.folder(set, reference)?;
        let ours = format(set, Side::Ours, &folder.path().join("ours"), reference)?;
        ours.success().map_err(|said| format!("refused: {said}"))?;
        if set.is_refused_by_linux() {
            return match Mount::new(set, &ours.files) {
                Ok(_) => Err("mounted, and should be refused".to_owned()),
                Err(_) => Ok(()),
            };
        }
        use_it(set, &ours.files)?;
        repair(set, &ours.files, reference).map_err(|said| format!("after use: {said}"))
    };
    Outcome::from(run())
}

#[test]
fn this_machines_kernel_uses_every_image() {
    let Some(reference) = reference() else { return };
    if !can_mount() {
        return;
    }
    let places = Places::new();
    let sets: Vec<Set> = chosen(accepted(), SHARE).into_iter().filter(is_for_host).collect();
    each("host kernel", &sets, |set| check(set, &places, reference));
}
