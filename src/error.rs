//! Errors of the library, and the places on disk that they name.

use std::fmt;
use std::io;

/// Result of everything in the library that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation of the library failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused a read, a write or another call.
    #[error("{place}: {error}")]
    Io {
        /// What was being read or written.
        place: Place,
        /// The system's own error. It is part of the message, and therefore not the error's source: whoever prints both
        /// would say it twice.
        error: io::Error,
    },
    /// A structure on disk fails a check.
    #[error("{0}")]
    Corrupt(Box<Corruption>),
    /// The filesystem is sound, but uses something that this program does not handle.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The caller asked for something impossible or contradictory.
    #[error("{0}")]
    Usage(String),
    /// What is to be put into an image cannot be read, or cannot be in one.
    #[error("{path}: {problem}")]
    Source {
        /// The file, folder, or member of an archive, fit to be shown.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The filesystem has no room for what was asked.
    #[error("no space left: {0}")]
    NoSpace(String),
    /// A file or directory is not such that this can be done to it.
    #[error("{0}")]
    File(FileError),
    /// An invariant of the program does not hold; this is a defect of xfskit.
    #[error("internal error: {0}")]
    Internal(String),
}

/// Why something cannot be done to a file or directory, in the words of the POSIX errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// `EEXIST`
    #[error("file exists")]
    Exists,
    /// `ENOENT`
    #[error("no such file or directory")]
    NotFound,
    /// `ENOTDIR`
    #[error("not a directory")]
    NotADirectory,
    /// `EISDIR`
    #[error("is a directory")]
    IsADirectory,
    /// `ENOTEMPTY`
    #[error("directory not empty")]
    NotEmpty,
    /// `ENAMETOOLONG`
    #[error("file name too long")]
    NameTooLong,
    /// `EMLINK`
    #[error("too many links")]
    TooManyLinks,
    /// `EINVAL`
    #[error("invalid argument")]
    Invalid,
    /// `EPERM`
    #[error("operation not permitted")]
    NotPermitted,
    /// `EFBIG`
    #[error("file too large")]
    TooLarge,
    /// `ENODATA`
    #[error("no such attribute")]
    NoAttribute,
    /// `EXDEV`
    #[error("not in the same project")]
    OtherProject,
}

impl Error {
    /// An I/O error at `place`.
    pub fn io(place: Place, error: io::Error) -> Self {
        Error::Io { place, error }
    }

    /// What is wrong with a source of files.
    pub fn source(path: impl Into<String>, problem: impl fmt::Display) -> Self {
        Error::Source { path: path.into(), problem: problem.to_string() }
    }

    /// One failed check as an error.
    pub fn corrupt(check: Check, place: Place) -> Self {
        Error::Corrupt(Box::new(Corruption { check, place, detail: String::new() }))
    }
}

/// A check that failed, with the place and what was found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// Which check failed.
    pub check: Check,
    /// Where.
    pub place: Place,
    /// What was found and what was expected; may be empty.
    pub detail: String,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.check)?;
        if !self.detail.is_empty() {
            write!(f, " ({})", self.detail)?;
        }
        Ok(())
    }
}

/// Every check that a structure failed, in the order of verification; none when it is sound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    failures: Vec<Corruption>,
}

impl Verdict {
    /// The verdict of a structure of which nothing bad is known yet.
    pub fn new() -> Self {
        Verdict::default()
    }

    /// Notes that `check` failed at `place`; `detail` says what was found.
    pub fn fail(&mut self, check: Check, place: Place, detail: impl Into<String>) {
        self.failures.push(Corruption { check, place, detail: detail.into() });
    }

    /// Adds what another verdict found.
    pub fn append(&mut self, other: Verdict) {
        self.failures.extend(other.failures);
    }

    /// Whether no check failed.
    pub fn is_sound(&self) -> bool {
        self.failures.is_empty()
    }

    /// Whether `check` is among those that failed.
    pub fn has_failed(&self, check: Check) -> bool {
        self.failures.iter().any(|failure| failure.check == check)
    }

    /// The checks that failed.
    pub fn failures(&self) -> &[Corruption] {
        &self.failures
    }

    /// The first failure as an error.
    ///
    /// # Errors
    /// `Corrupt`, when a check failed.
    pub fn into_result(self) -> Result<()> {
        match self.failures.into_iter().next() {
            Some(first) => Err(Error::Corrupt(Box::new(first))),
            None => Ok(()),
        }
    }
}

/// Identity of a check: one value for each thing that is verified, so that tests and scripts can name it.
///
/// Written as `agf.freeblks: out of range`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Check {
    /// The structure, as the field tables name it: `sb`, `agf`, `dinode`, ...
    pub structure: &'static str,
    /// The field of the specification, without its prefix.
    pub field: &'static str,
    /// The rule that it breaks.
    pub rule: Rule,
}

impl Check {
    /// The check of `rule` on `structure.field`.
    pub const fn new(structure: &'static str, field: &'static str, rule: Rule) -> Self {
        Check { structure, field, rule }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}: {}", self.structure, self.field, self.rule)
    }
}

/// The rules of verification, in the order in which they are applied to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// The magic number is not the structure's.
    Magic,
    /// The stored CRC is not that of the contents.
    Crc,
    /// The block carries the UUID of another filesystem.
    Uuid,
    /// The block belongs to another inode or group.
    Owner,
    /// The block says that it lies elsewhere.
    Address,
    /// The block was written by a later point of the log than the log has reached.
    Lsn,
    /// The version is unknown, or not the one that the features ask for.
    Version,
    /// The value is outside the range that the geometry allows.
    Range,
    /// Records or keys are not in ascending order.
    Order,
    /// Two fields contradict each other.
    Mismatch,
    /// A count is larger than what its block can hold.
    Count,
    /// Bits are set that have no meaning here.
    Flags,
    /// Bytes that must be zero are not.
    Padding,
    /// The structure is longer than the bytes that hold it.
    Truncated,
    /// A walk came back to a block it had visited.
    Cycle,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::Magic => "wrong magic number",
            Rule::Crc => "CRC does not match",
            Rule::Uuid => "UUID of another filesystem",
            Rule::Owner => "wrong owner",
            Rule::Address => "wrong own address",
            Rule::Lsn => "LSN ahead of the log",
            Rule::Version => "wrong version",
            Rule::Range => "out of range",
            Rule::Order => "not in order",
            Rule::Mismatch => "contradicts another field",
            Rule::Count => "more than the block can hold",
            Rule::Flags => "unknown flags",
            Rule::Padding => "padding is not zero",
            Rule::Truncated => "cut short",
            Rule::Cycle => "visited twice",
        })
    }
}

/// Which of a filesystem's devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceRole {
    /// The data device.
    #[default]
    Data,
    /// An external log device.
    Log,
    /// The realtime device.
    Realtime,
}

/// A place on disk, as precise as the reporter knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The device.
    pub device: DeviceRole,
    /// Allocation group or realtime group.
    pub agno: Option<u32>,
    /// Disk address in units of 512 bytes.
    pub daddr: Option<u64>,
    /// Inode number.
    pub inode: Option<u64>,
    /// Offset in bytes, within the block when `daddr` is known, else on the device.
    pub offset: Option<u64>,
}

impl Place {
    /// A place on the data device known by its byte offset alone.
    pub fn at_offset(offset: u64) -> Self {
        Place { offset: Some(offset), ..Place::default() }
    }

    /// A place on the data device known by its disk address (512-byte units).
    pub fn at_daddr(daddr: u64) -> Self {
        Place { daddr: Some(daddr), ..Place::default() }
    }

    /// The same place on another device.
    pub fn on(mut self, device: DeviceRole) -> Self {
        self.device = device;
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.device {
            DeviceRole::Data => "data device",
            DeviceRole::Log => "log device",
            DeviceRole::Realtime => "realtime device",
        })?;
        if let Some(agno) = self.agno {
            write!(f, ", group {agno}")?;
        }
        if let Some(daddr) = self.daddr {
            write!(f, ", daddr {daddr}")?;
        }
        if let Some(inode) = self.inode {
            write!(f, ", inode {inode}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", offset {offset}")?;
        }
        Ok(())
    }
}
