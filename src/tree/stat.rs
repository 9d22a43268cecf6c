//! What an inode says of a file.

use super::reader::Reader;
use crate::error::Result;
use crate::forms::{FileType, ForkForm, ForkKind, Inode, read_symlink};
use crate::geometry::Ino;
use crate::ondisk::Timestamp;
use crate::ondisk::dinode::{DeviceNumber, flags, flags2};

/// What an inode says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Inode number.
    pub ino: Ino,
    /// Kind of file.
    pub file_type: FileType,
    /// Access bits with set-user-ID, set-group-ID and sticky: the lowest 12 bits of the mode.
    pub permissions: u16,
    /// Number of links.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Project number.
    pub project: u32,
    /// Size in bytes.
    pub size: u64,
    /// Bytes of all blocks that belong to it.
    pub allocated: u64,
    /// Last access.
    pub atime: Timestamp,
    /// Last change of the contents.
    pub mtime: Timestamp,
    /// Last change of the inode.
    pub ctime: Timestamp,
    /// Creation, where the filesystem keeps it.
    pub crtime: Option<Timestamp>,
    /// The number of a device.
    pub device: Option<DeviceNumber>,
    /// Flags of the inode.
    pub flags: Xflags,
    /// Generation.
    pub generation: u32,
    /// Extents of the data fork.
    pub extents: u64,
    /// Extents of the attribute fork.
    pub attribute_extents: u32,
}

/// Flags of an inode that have a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Xflags {
    /// Bits of `flags`.
    pub flags: u16,
    /// Bits of `flags2`.
    pub flags2: u64,
}

impl Xflags {
    /// The names of those that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let first = NAMES.iter().filter(move |(bit, _)| self.flags & bit != 0).map(|(_, name)| *name);
        first.chain(NAMES2.iter().filter(move |(bit, _)| self.flags2 & bit != 0).map(|(_, name)| *name))
    }
}

const NAMES: &[(u16, &str)] = &[
    (flags::REALTIME, "realtime"),
    (flags::PREALLOC, "prealloc"),
    (flags::IMMUTABLE, "immutable"),
    (flags::APPEND, "append"),
    (flags::SYNC, "sync"),
    (flags::NOATIME, "noatime"),
    (flags::NODUMP, "nodump"),
    (flags::RTINHERIT, "rtinherit"),
    (flags::PROJINHERIT, "projinherit"),
    (flags::NOSYMLINKS, "nosymlinks"),
    (flags::EXTSIZE, "extsize"),
    (flags::EXTSZINHERIT, "extszinherit"),
    (flags::NODEFRAG, "nodefrag"),
    (flags::FILESTREAM, "filestream"),
];
const NAMES2: &[(u64, &str)] =
    &[(flags2::DAX, "dax"), (flags2::REFLINK, "reflink"), (flags2::COWEXTSIZE, "cowextsize")];

impl Stat {
    /// What `inode` says; `None` when its mode names no kind of file.
    pub fn of(reader: &Reader<'_>, inode: &Inode) -> Option<Self> {
        let raw = inode.raw();
        let core = &raw.core;
        let device = match inode.fork(ForkKind::Data) {
            Ok(Some(fork)) => match fork.form {
                ForkForm::Device(number) => Some(DeviceNumber::decode(number)),
                _ => None,
            },
            _ => None,
        };
        let file_type = inode.file_type()?;
        let is_device = matches!(file_type, FileType::BlockDevice | FileType::CharDevice);
        Some(Stat {
            ino: inode.ino,
            file_type,
            permissions: core.mode.get() & 0o7777,
            nlink: raw.links(),
            uid: core.uid.get(),
            gid: core.gid.get(),
            project: core.projid(),
            size: inode.size(),
            allocated: reader.geometry().blocks_to_bytes(core.nblocks.get()).unwrap_or(u64::MAX),
            atime: raw.timestamp(core.atime),
            mtime: raw.timestamp(core.mtime),
            ctime: raw.timestamp(core.ctime),
            crtime: (core.version >= 3).then(|| raw.timestamp(raw.crtime)),
            device: if is_device { device } else { None },
            flags: Xflags { flags: core.flags.get(), flags2: raw.flags2_or_zero() },
            generation: core.generation.get(),
            extents: raw.data_extents(),
            attribute_extents: raw.attr_extents(),
        })
    }

    /// Type and access bits as Linux has them in `st_mode`.
    pub fn mode(&self) -> u32 {
        let kind = match self.file_type {
            FileType::Fifo => 1,
            FileType::CharDevice => 2,
            FileType::Directory => 4,
            FileType::BlockDevice => 6,
            FileType::Regular => 8,
            FileType::Symlink => 10,
            FileType::Socket => 12,
        };
        kind << 12 | u32::from(self.permissions)
    }
}

impl Reader<'_> {
    /// The target of a symbolic link.
    ///
    /// # Errors
    /// Those of [`read_symlink`].
    pub fn target(&self, inode: &Inode) -> Result<Vec<u8>> {
        read_symlink(self.source(), inode)
    }
}
