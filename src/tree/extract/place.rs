//! The folder in which files are made. Every step is one name that is opened without following a symbolic link, so that
//! nothing in the image, and nobody else who works in the same folder, leads the way out of it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, fstat, linkat, mkdirat, openat};

/// The identity of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

/// A folder, and the way to it from the one that everything is put into.
pub(super) struct Place {
    root: OwnedFd,
    here: OwnedFd,
    /// The folders above, the root first.
    above: Vec<Identity>,
}

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

impl Place {
    /// Starts in `root`.
    pub(super) fn new(root: File) -> io::Result<Self> {
        let root = OwnedFd::from(root);
        let here = root.try_clone()?;
        Ok(Place { root, here, above: Vec::new() })
    }

    /// The folder.
    pub(super) fn here(&self) -> BorrowedFd<'_> {
        self.here.as_fd()
    }

    /// Enters the folder `name`, which is made if it is not there.
    pub(super) fn enter(&mut self, name: &[u8]) -> io::Result<()> {
        check(name)?;
        match mkdirat(&self.here, name, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let below = open_folder(self.here(), name)?;
        let identity = identity_of(self.here())?;
        self.above.push(identity);
        self.here = below;
        Ok(())
    }

    /// Goes back to the folder above; the one that is left comes out. If that has been moved meanwhile, it is no longer
    /// known where it would lead.
    pub(super) fn leave(&mut self) -> io::Result<OwnedFd> {
        let expected = self.above.pop().ok_or_else(|| io::Error::other("there is no folder above"))?;
        let parent = if self.above.is_empty() { self.root.try_clone()? } else { open_folder(self.here(), b"..")? };
        if identity_of(parent.as_fd())? != expected {
            return Err(io::Error::other("the folder was moved while files were put into it"));
        }
        Ok(std::mem::replace(&mut self.here, parent))
    }

    /// Gives the file at `path`, names below the root with slashes between, the name `name` here, too.
    pub(super) fn link(&self, path: &[u8], name: &[u8]) -> io::Result<()> {
        check(name)?;
        let mut names = path.split(|&byte| byte == b'/');
        let last = names.next_back().unwrap_or_default();
        check(last)?;
        let mut folder = self.root.try_clone()?;
        for name in names {
            check(name)?;
            folder = open_folder(folder.as_fd(), name)?;
        }
        Ok(linkat(&folder, last, &self.here, name, AtFlags::empty())?)
    }
}

/// Only a single name stays in its folder.
pub(super) fn check(name: &[u8]) -> io::Result<()> {
    if name.is_empty() || matches!(name, b"." | b"..") || name.iter().any(|byte| matches!(byte, 0 | b'/')) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name would lead out of the folder"));
    }
    Ok(())
}

fn open_folder(at: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    Ok(openat(at, name, FOLDER, Mode::empty())?)
}

fn identity_of(folder: BorrowedFd<'_>) -> io::Result<Identity> {
    let stat = fstat(folder)?;
    Ok(Identity { device: stat.st_dev, inode: stat.st_ino })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn place(folder: &Path) -> Place {
        Place::new(File::open(folder).expect("a folder")).expect("a place")
    }

    #[test]
    fn names_that_lead_out_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut place = place(folder.path());
        for name in [&b""[..], b".", b"..", b"a/b", b"/etc", b"a\0"] {
            assert!(place.enter(name).is_err(), "{name:?}");
            assert!(place.link(b"file", name).is_err() && place.link(name, b"file").is_err(), "{name:?}");
        }
        assert!(place.leave().is_err());
    }

    #[test]
    fn symbolic_links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let outside = tempfile::tempdir().expect("a folder");
        std::fs::write(outside.path().join("file"), "outside").expect("writable");
        symlink(outside.path(), folder.path().join("way")).expect("a link");
        let mut place = place(folder.path());
        assert!(place.enter(b"way").is_err());
        assert!(place.link(b"way/file", b"stolen").is_err());
        place.enter(b"a").expect("a new folder");
        place.enter(b"b").expect("a new folder");
        assert!(place.leave().is_ok() && place.leave().is_ok() && place.leave().is_err());
        assert!(folder.path().join("a/b").is_dir());
    }

    #[test]
    fn a_folder_that_is_moved_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut place = place(folder.path());
        place.enter(b"a").expect("a new folder");
        place.enter(b"b").expect("a new folder");
        std::fs::create_dir(folder.path().join("c")).expect("a folder");
        std::fs::rename(folder.path().join("a/b"), folder.path().join("c/b")).expect("movable");
        assert!(place.leave().is_err());
    }
}
