//! The folder in which the walk is. However deep it goes, one folder is open: the way back is checked.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, RawDir, Stat, fstat, openat};

/// What tells a file of this machine from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// The device that it is on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
}

impl FileIdentity {
    /// From what the system says about a file.
    pub(super) fn of(stat: &Stat) -> Self {
        FileIdentity { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// A folder, and the way to it.
pub(super) struct Place {
    here: OwnedFd,
    above: Vec<FileIdentity>,
}

/// Bytes for the entries that one system call yields.
const ENTRIES: usize = 64 << 10;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

impl Place {
    /// Starts in the folder at `path`, which may be a symbolic link.
    pub(super) fn new(path: &std::path::Path) -> io::Result<Self> {
        let here = rustix::fs::open(path, FOLDER, Mode::empty())?;
        Ok(Place { here, above: Vec::new() })
    }

    /// The folder.
    pub(super) fn here(&self) -> BorrowedFd<'_> {
        self.here.as_fd()
    }

    /// Enters the folder `name`.
    pub(super) fn enter(&mut self, name: &[u8]) -> io::Result<()> {
        let below = open_quietly(self.here(), name, FOLDER | OFlags::NOFOLLOW)?;
        self.above.push(FileIdentity::of(&fstat(&self.here)?));
        self.here = below;
        Ok(())
    }

    /// Goes back to the folder above. If this one was moved meanwhile, it is not known any more where that would lead.
    pub(super) fn leave(&mut self) -> io::Result<()> {
        let Some(expected) = self.above.pop() else { return Ok(()) };
        let parent = openat(&self.here, c"..", FOLDER, Mode::empty())?;
        if FileIdentity::of(&fstat(&parent)?) != expected {
            return Err(io::Error::other("the folder was moved while it was read"));
        }
        self.here = parent;
        Ok(())
    }

    /// The names in the folder, in the order of their bytes.
    pub(super) fn names(&self) -> io::Result<Vec<Box<[u8]>>> {
        let mut buf = Vec::with_capacity(ENTRIES);
        let mut names = Vec::new();
        let mut entries = RawDir::new(&self.here, buf.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name.into_boxed_slice());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Opens a file without a trace in its time of access, if the system lets us.
pub(super) fn open_quietly(folder: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    match openat(folder, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(rustix::io::Errno::PERM) => Ok(openat(folder, name, flags, Mode::empty())?),
        other => Ok(other?),
    }
}
