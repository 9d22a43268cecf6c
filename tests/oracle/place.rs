//! Where the files of a run lie: beside each other in a folder of their own, on a filesystem that can hold them.

use crate::reference::{Reference, run, unmount};
use crate::sets::{Content, FileSpec, Set};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// ext4 ends just below 16 TiB: what is larger lies on an XFS that is mounted for the purpose.
const LARGE: u64 = 15 << 40;
/// The size of that XFS; its file is sparse.
const HOST_SIZE: u64 = 256 << 30;

/// The folders below which runs are made, and the XFS for large files; all of it goes when this is dropped.
pub struct Places {
    work: TempDir,
    memory: Option<TempDir>,
    large: OnceLock<Result<(), String>>,
}

impl Places {
    /// New folders.
    pub fn new() -> Self {
        let parent = std::env::var_os("XFSKIT_WORK").map_or_else(std::env::temp_dir, PathBuf::from);
        let work = tempfile::Builder::new().prefix("xfskit-oracle.").tempdir_in(&parent);
        // Files full of bytes are made faster in memory.
        let memory = tempfile::Builder::new().prefix("xfskit-oracle.").tempdir_in("/dev/shm").ok();
        let roomy = |folder: &TempDir| {
            let space = rustix::fs::statvfs(folder.path()).map_or(0, |space| space.f_bavail * space.f_frsize);
            space > 8 << 30
        };
        let memory = memory.filter(roomy);
        Self { work: work.expect("the folder for images can be written"), memory, large: OnceLock::new() }
    }

    /// A folder in memory if there is room, else below the work folder.
    fn filled(&self) -> &Path {
        self.memory.as_ref().unwrap_or(&self.work).path()
    }

    /// The mount point of the XFS for large files.
    fn large(&self, reference: &Reference) -> Result<PathBuf, String> {
        let mount = self.work.path().join("large");
        let made = self.large.get_or_init(|| {
            fs::create_dir_all(&mount).map_err(|error| error.to_string())?;
            let image = self.work.path().join("large.img");
            File::create(&image).and_then(|file| file.set_len(HOST_SIZE)).map_err(|error| error.to_string())?;
            let made = reference.tool("mkfs.xfs", ["-q"]).arg(&image).output().map_err(|error| error.to_string())?;
            if !made.status.success() {
                return Err(crate::reference::said(&made));
            }
            run("mount", ["-o".as_ref(), "loop".as_ref(), image.as_os_str(), mount.as_os_str()]).map(|_| ())
        });
        made.clone().map(|()| mount)
    }

    /// A new, empty folder for the files of `set`, on a filesystem that can hold them.
    pub fn folder(&self, set: &Set, reference: &Reference) -> Result<TempDir, String> {
        let parent = if set.files.iter().any(|file| file.size >= LARGE) {
            self.large(reference)?
        } else if set.files.iter().any(|file| file.content == Content::Filled) {
            self.filled().to_owned()
        } else {
            self.work.path().to_owned()
        };
        tempfile::Builder::new().prefix("set.").tempdir_in(parent).map_err(|error| format!("a folder: {error}"))
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        if self.large.get().is_some() {
            // A mount that stays is seen: the folder below it cannot be removed.
            let _ = unmount(self.work.path().join("large"));
        }
    }
}

/// The files of one run, and the loop devices in front of them.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    loops: BTreeMap<char, String>,
}

impl Files {
    /// Makes the files of `set` in `folder`, which must be empty.
    pub fn make(set: &Set, folder: &Path, reference: &Reference) -> Result<Self, String> {
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        let mut files = Self { folder: folder.to_owned(), loops: BTreeMap::new() };
        for spec in &set.files {
            let path = files.image(spec.role);
            match spec.content {
                Content::Absent => continue,
                Content::Filled => fill(&path, spec.size).map_err(|error| format!("{}: {error}", path.display()))?,
                Content::Sparse | Content::OldXfs => {
                    let made = File::create(&path).and_then(|file| file.set_len(spec.size));
                    made.map_err(|error| format!("{}: {error}", path.display()))?;
                }
            }
            if spec.content == Content::OldXfs {
                make_old(spec, &path, reference)?;
            }
            if let Some(sector) = spec.loop_sector {
                let device = attach(&path, sector)?;
                files.loops.insert(spec.role, device);
            }
        }
        Ok(files)
    }

    /// The folder of the files, in which tools run.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of `role`.
    pub fn image(&self, role: char) -> PathBuf {
        self.folder.join(role.to_string())
    }

    /// How a tool that runs in the folder names the file: by a relative path, which is the same in every folder, or by
    /// its loop device.
    pub fn name(&self, role: char) -> String {
        self.loops.get(&role).cloned().unwrap_or_else(|| role.to_string())
    }

    /// `text` with the names of loop devices, which differ from run to run, replaced by the files' names.
    pub fn plain(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (role, device) in &self.loops {
            // The geometry pads the data device's name to 22 characters.
            text = text.replace(&format!("{device:<22}"), &format!("{role:<22}")).replace(device, &role.to_string());
        }
        text
    }

    /// Takes the loop devices away, so that the files hold all that was written.
    pub fn detach(&mut self) -> Result<(), String> {
        while let Some((_, device)) = self.loops.pop_first() {
            detach(&device)?;
        }
        Ok(())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Only reached with devices left where a run has failed already.
        let _ = self.detach();
    }
}

/// A loop device of `sector` byte sectors in front of a file.
pub fn attach(path: &Path, sector: u32) -> Result<String, String> {
    let sector = sector.to_string();
    run("losetup", ["--find".as_ref(), "--show".as_ref(), "--sector-size".as_ref(), sector.as_ref(), path.as_os_str()])
}

/// Takes a loop device away, once it is no longer in use.
pub fn detach(device: &str) -> Result<(), String> {
    run("blockdev", ["--flushbufs", device])?;
    run("losetup", ["--detach", device]).map(|_| ())
}

/// Writes 0xAA over the whole length of a new file.
fn fill(path: &Path, size: u64) -> std::io::Result<()> {
    let file = File::create(path)?;
    let piece = vec![0xaa; 4 << 20];
    let mut pos = 0;
    while pos < size {
        let length = usize::try_from(size - pos).unwrap_or(piece.len()).min(piece.len());
        file.write_all_at(&piece[..length], pos)?;
        pos += length as u64;
    }
    Ok(())
}

/// An XFS of another geometry: smaller blocks, and groups where the new one has none.
fn make_old(spec: &FileSpec, path: &Path, reference: &Reference) -> Result<(), String> {
    let agcount = format!("agcount={}", (spec.size >> 25).clamp(1, 8));
    let uuid = "uuid=01d01d01-0000-4000-8000-000000000001";
    let mut old =
        reference.tool("mkfs.xfs", ["-q", "-f", "--unsupported", "-b", "size=1k", "-m", uuid, "-d", &agcount]);
    let output = old.arg(path).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(format!("the old XFS: {}", crate::reference::said(&output))) }
}
