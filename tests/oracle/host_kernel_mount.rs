//! Images that this machine's kernel mounts.

use std::fs;
use std::path::{Path, PathBuf};

use crate::reference::{missing, run, unmount};

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

/// A mounted image, unmounted in the end.
pub struct Mount(PathBuf);

impl Mount {
    /// Mounts `image` at `at`.
    pub fn new(image: &Path, at: PathBuf, options: &str) -> Self {
        fs::create_dir_all(&at).expect("writable");
        let arguments = ["-t", "xfs", "-o", options, &image.display().to_string(), &at.display().to_string()];
        run("mount", arguments).unwrap_or_else(|why| panic!("{why}"));
        Mount(at)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(why) = unmount(&self.0) {
            println!("{why}");
        }
    }
}
