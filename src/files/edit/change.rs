//! What can be done to the files of an image.

use std::fmt;
use std::path::PathBuf;

use super::mode::ModeChange;
use crate::error::Error;
use crate::ondisk::timestamp::Timestamp;
use crate::report::name::escape;

/// Which times a file gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeChange {
    /// The time; `None` is now.
    pub time: Option<Timestamp>,
    /// Whether the time of last access is set.
    pub access: bool,
    /// Whether the time of last change is set.
    pub modification: bool,
}

/// One change. Paths are in the image, save the sources of [`Change::Put`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Files of this machine copied in: into a directory, or to a new name.
    Put {
        /// The files.
        sources: Vec<PathBuf>,
        /// Where they go.
        target: Vec<u8>,
        /// Directories with all that they hold, too.
        recursive: bool,
    },
    /// Directories made.
    Mkdir {
        /// The directories.
        paths: Vec<Vec<u8>>,
        /// Those above them are made, too, and it is no error if they are there.
        parents: bool,
        /// Their access bits.
        permissions: u16,
    },
    /// Files removed.
    Remove {
        /// The files.
        paths: Vec<Vec<u8>>,
        /// Directories with all that they hold, too.
        recursive: bool,
        /// It is no error if they are not there.
        force: bool,
    },
    /// Files moved: into a directory, or to a new name.
    Move {
        /// The files.
        sources: Vec<Vec<u8>>,
        /// Where they go.
        target: Vec<u8>,
    },
    /// A link added.
    Link {
        /// The file; of a symbolic link, its target.
        source: Vec<u8>,
        /// The new name, or a directory.
        target: Vec<u8>,
        /// A symbolic link.
        symbolic: bool,
    },
    /// Access modes changed.
    Chmod {
        /// How.
        mode: ModeChange,
        /// The files.
        paths: Vec<Vec<u8>>,
        /// With all that directories hold.
        recursive: bool,
    },
    /// Owners changed.
    Chown {
        /// The user.
        uid: Option<u32>,
        /// The group.
        gid: Option<u32>,
        /// The files.
        paths: Vec<Vec<u8>>,
        /// With all that directories hold.
        recursive: bool,
    },
    /// Times set; files that are not there are made.
    Touch {
        /// Which.
        times: TimeChange,
        /// The files.
        paths: Vec<Vec<u8>>,
        /// Files that are not there stay so.
        no_create: bool,
    },
    /// An extended attribute set, or removed.
    SetAttribute {
        /// Its name, with the namespace.
        name: Vec<u8>,
        /// Its value; `None` removes it.
        value: Option<Vec<u8>>,
        /// The files.
        paths: Vec<Vec<u8>>,
    },
    /// Files cut, or extended by a hole.
    Truncate {
        /// Their size in bytes.
        size: u64,
        /// The files, which are made if they are not there.
        paths: Vec<Vec<u8>>,
    },
    /// A hole made.
    Punch {
        /// Where, in bytes.
        offset: u64,
        /// Bytes.
        len: u64,
        /// The file.
        path: Vec<u8>,
    },
    /// A file that shares the blocks of another.
    Reflink {
        /// The file that has them.
        source: Vec<u8>,
        /// The one that gets them; it is made if it is not there.
        target: Vec<u8>,
    },
    /// The label of the filesystem.
    Label(Vec<u8>),
}

/// Why a change could not be made.
#[derive(Debug)]
pub struct Failure {
    /// The file that it is about, as it is shown.
    pub path: String,
    /// The reason.
    pub error: Error,
}

impl Failure {
    /// A failure at a path in the image.
    pub(super) fn at(path: &[u8]) -> impl FnOnce(Error) -> Failure {
        let path = escape(path);
        move |error| Failure { path, error }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.error)
    }
}

impl std::error::Error for Failure {}
