//! Owner, attributes, access bits and times of a file that was made.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{
    AtFlags, FileType as NodeType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, chmod, chownat, fchmod,
    fchown, fsetxattr, fstat, futimens, lsetxattr, openat, utimensat,
};
use rustix::io::Errno;

use super::kept::{NotKept, Property};
use crate::forms::FileType;
use crate::ondisk::Timestamp;
use crate::tree::Stat;
use crate::tree::{ACCESS_XATTR, DEFAULT_XATTR, Xattrs};

/// Set-user-ID and set-group-ID.
const SET_ID: u16 = 0o6000;

/// A file that was made: opened, or known by its name in an open folder, where opening it would do something.
#[derive(Clone, Copy)]
pub(super) enum Made<'f> {
    /// A file or folder.
    Open(BorrowedFd<'f>),
    /// A symbolic link, a device or a pipe.
    Named(BorrowedFd<'f>, &'f [u8]),
}

/// Gives `made` what the image says of it; `path` is its path for the list of what could not be kept.
///
/// The order matters: a change of the owner takes set-user-ID bits and capabilities away, a change of attributes needs write
/// access that the access bits may deny later, and each of them moves the times.
pub(super) fn apply(made: Made<'_>, stat: &Stat, xattrs: &Xattrs, path: &[u8], not_kept: &mut NotKept) {
    let owned = made.own(stat.uid, stat.gid);
    if let Err(error) = &owned {
        not_kept.note(Property::Owner, path, error);
    }
    for xattr in &xattrs.list {
        if let Err(error) = made.set_xattr(&xattr.name, &xattr.value) {
            not_kept.note(Property::Xattr, &[path, b" ", &xattr.name].concat(), &error);
        }
    }
    for (name, acl) in [(ACCESS_XATTR, &xattrs.access), (DEFAULT_XATTR, &xattrs.default)] {
        if let Some(acl) = acl
            && let Err(error) = made.set_xattr(name.as_bytes(), &acl.to_xattr())
        {
            not_kept.note(Property::Acl, path, &error);
        }
    }
    // with another owner, these bits would give that one's rights away
    let bits = if owned.is_ok() { stat.permissions } else { stat.permissions & !SET_ID };
    if stat.file_type != FileType::Symlink
        && let Err(error) = made.set_mode(bits)
    {
        not_kept.note(Property::Mode, path, &error);
    }
    if let Err(error) = made.set_times(stat.atime, stat.mtime) {
        not_kept.note(Property::Times, path, &error);
    }
}

impl Made<'_> {
    /// Gives the file to an owner and a group; to the group alone, where the user may do no more.
    fn own(self, uid: u32, gid: u32) -> io::Result<()> {
        if uid == u32::MAX || gid == u32::MAX {
            return Err(Errno::INVAL.into());
        }
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        let give = |uid, gid| match self {
            Made::Open(file) => fchown(file, uid, gid),
            Made::Named(folder, name) => chownat(folder, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW),
        };
        match give(Some(uid), Some(gid)) {
            Err(error @ Errno::PERM) => {
                // whether this works or not, the owner is not kept
                let _ = give(None, Some(gid));
                Err(error.into())
            }
            other => Ok(other?),
        }
    }

    fn set_xattr(self, name: &[u8], value: &[u8]) -> io::Result<()> {
        match self {
            Made::Open(file) => fsetxattr(file, name, value, XattrFlags::empty())?,
            Made::Named(folder, file) => {
                lsetxattr(way_to(folder, file).as_slice(), name, value, XattrFlags::empty())?;
            }
        }
        Ok(())
    }

    fn set_mode(self, bits: u16) -> io::Result<()> {
        let mode = Mode::from_raw_mode(u32::from(bits));
        match self {
            Made::Open(file) => fchmod(file, mode)?,
            Made::Named(folder, file) => chmod_by_name(folder, file, mode)?,
        }
        Ok(())
    }

    fn set_times(self, atime: Timestamp, mtime: Timestamp) -> io::Result<()> {
        let times = Timestamps { last_access: timespec(atime), last_modification: timespec(mtime) };
        match self {
            Made::Open(file) => futimens(file, &times)?,
            Made::Named(folder, name) => utimensat(folder, name, &times, AtFlags::SYMLINK_NOFOLLOW)?,
        }
        Ok(())
    }
}

/// The path of `name` in an open folder. Its last component is the name, so that calls that follow no link do not follow
/// one here either.
fn way_to(folder: BorrowedFd<'_>, name: &[u8]) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}/", folder.as_raw_fd()).into_bytes();
    path.extend_from_slice(name);
    path
}

/// Changes the mode of what is no symbolic link: it is opened as a mere place, and reached through that. Linux before 6.6 has
/// no call that changes a mode by name and does not follow links.
fn chmod_by_name(folder: BorrowedFd<'_>, name: &[u8], mode: Mode) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty())?;
    if NodeType::from_raw_mode(fstat(&file)?.st_mode) == NodeType::Symlink {
        return Err(Errno::LOOP);
    }
    chmod(format!("/proc/self/fd/{}", file.as_raw_fd()).as_str(), mode)
}

/// Nanoseconds of a damaged inode may be values that mean something else to the system.
fn timespec(time: Timestamp) -> Timespec {
    let nanoseconds = if time.nanoseconds < 1_000_000_000 { time.nanoseconds } else { 0 };
    Timespec { tv_sec: time.seconds, tv_nsec: nanoseconds.into() }
}
