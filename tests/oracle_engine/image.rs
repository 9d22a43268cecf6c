//! Images to work on, and their judges.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;
use xfskit::device::{Device, FileDevice, OpenFile};
use xfskit::geometry::Geometry;
use xfskit::image::ImageDevices;
use xfskit::ondisk::{OnDisk, RawSuperblock};
use xfskit::transaction::{Store, StoreOptions};

use crate::reference::{Reference, mkfs_path};

/// An image in a folder of its own.
pub struct Image {
    folder: TempDir,
    path: PathBuf,
}

impl Image {
    /// A new filesystem of so many MiB, made with further arguments of mkfs.
    pub fn new(megabytes: u64, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("image");
        let size = format!("{megabytes}m");
        let mut command = Command::new(mkfs_path());
        command.args(["--unsupported", "-q", "--size", &size]).args(arguments).arg(&path);
        let output = command.output().expect("mkfs runs");
        assert!(output.status.success(), "mkfs {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Image { folder, path }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path beside it.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Its devices, writable.
    pub fn devices(&self) -> ImageDevices {
        let device = FileDevice::open(&self.path, OpenFile::WRITE).expect("an image");
        ImageDevices::of_data(Arc::new(device) as Arc<dyn Device>)
    }

    /// Its geometry, from the superblock.
    pub fn geometry(&self) -> Geometry {
        let mut bytes = [0; RawSuperblock::SIZE];
        let device = FileDevice::open(&self.path, OpenFile::READ).expect("an image");
        device.read_at(0, &mut bytes).expect("a superblock");
        Geometry::from_superblock(RawSuperblock::prefix(&bytes).expect("a superblock").0).expect("a sound superblock")
    }

    /// Opens it for change.
    pub fn store(&self) -> Store {
        self.store_with(StoreOptions::default())
    }

    /// Opens it for change, in some way.
    pub fn store_with(&self, options: StoreOptions) -> Store {
        Store::open(self.devices(), options).expect("a clean filesystem")
    }

    /// Fails with its text unless xfs_repair -n finds nothing.
    pub fn assert_repaired(&self, reference: &Reference) {
        let output = reference.tool("xfs_repair", ["-n", "-f"]).arg(&self.path).output().expect("xfs_repair runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {text}", self.path.display());
    }

    /// The state of the journal, as xfs_logprint -t finds it.
    pub fn logprint(&self, reference: &Reference) -> String {
        let output = reference.tool("xfs_logprint", ["-t"]).arg(&self.path).output().expect("xfs_logprint runs");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    /// Mounts it by this machine's kernel, which replays the journal, and calls `look` with the folder. `None` when this
    /// machine cannot, which is said aloud.
    pub fn mounted<T>(&self, look: impl FnOnce(&Path) -> T) -> Option<T> {
        let folder = self.beside("mounted");
        std::fs::create_dir_all(&folder).expect("a folder");
        let mounted =
            Command::new("mount").args(["-t", "xfs", "-o", "loop,nouuid"]).arg(&self.path).arg(&folder).output();
        let mounted = mounted.expect("mount runs");
        if !mounted.status.success() {
            crate::reference::missing(&format!("a mount: {}", String::from_utf8_lossy(&mounted.stderr)));
            return None;
        }
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| look(&folder)));
        let status = Command::new("umount").arg(&folder).status().expect("umount runs");
        assert!(status.success(), "umount {}", folder.display());
        Some(seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}
