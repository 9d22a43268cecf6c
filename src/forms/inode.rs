//! Inodes: where they lie, and their bytes taken apart into core and forks
//! (Linux `fs/xfs/libxfs/xfs_inode_buf.c`, `xfs_inode_fork.c`).

use super::fork::{Fork, ForkKind};
use super::source::{BlockSource, Piece, corrupt, read_pieces};
use crate::btree::Layout;
use crate::buffer::BlockKind;
use crate::error::{Check, Place, Result, Rule, Verdict};
use crate::geometry::{BtreeKind, Ino};
use crate::ondisk::dinode::flags;
use crate::ondisk::{OnDisk, RawDinode, RawDinodeCore};
use zerocopy::{FromZeros, IntoBytes};

/// Kind of a file, from its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileType {
    /// Named pipe.
    Fifo,
    /// Character device.
    CharDevice,
    /// Directory.
    Directory,
    /// Block device.
    BlockDevice,
    /// Regular file.
    Regular,
    /// Symbolic link.
    Symlink,
    /// Socket.
    Socket,
}

impl FileType {
    /// The type that `mode` names; `None` when it names none, as in free inodes.
    pub fn from_mode(mode: u16) -> Option<Self> {
        Some(match mode >> 12 {
            1 => FileType::Fifo,
            2 => FileType::CharDevice,
            4 => FileType::Directory,
            6 => FileType::BlockDevice,
            8 => FileType::Regular,
            10 => FileType::Symlink,
            12 => FileType::Socket,
            _ => return None,
        })
    }

    /// The bits of a mode that name the type.
    pub fn mode_bits(self) -> u16 {
        let number: u16 = match self {
            FileType::Fifo => 1,
            FileType::CharDevice => 2,
            FileType::Directory => 4,
            FileType::BlockDevice => 6,
            FileType::Regular => 8,
            FileType::Symlink => 10,
            FileType::Socket => 12,
        };
        number << 12
    }

    /// The type that a directory entry's value stands for; `None` when it is none of a file.
    pub fn from_dir_ftype(value: u8) -> Option<Self> {
        use FileType::{BlockDevice, CharDevice, Directory, Fifo, Regular, Socket, Symlink};
        [Fifo, CharDevice, Directory, BlockDevice, Regular, Symlink, Socket]
            .into_iter()
            .find(|kind| kind.dir_ftype() == value)
    }

    /// The value that directory entries have for it.
    pub fn dir_ftype(self) -> u8 {
        use crate::ondisk::dir_data::ftype;
        match self {
            FileType::Fifo => ftype::FIFO,
            FileType::CharDevice => ftype::CHRDEV,
            FileType::Directory => ftype::DIR,
            FileType::BlockDevice => ftype::BLKDEV,
            FileType::Regular => ftype::REG_FILE,
            FileType::Symlink => ftype::SYMLINK,
            FileType::Socket => ftype::SOCK,
        }
    }
}

/// An inode: its bytes, and the checks that it failed.
#[derive(Clone, Debug)]
pub struct Inode {
    /// Its number.
    pub ino: Ino,
    /// Where it lies.
    pub place: Place,
    /// The checks that it failed. Walkers of its forks work with a damaged inode as far as they can.
    pub verdict: Verdict,
    raw: RawDinode,
    bytes: Vec<u8>,
    bmbt: Layout,
}

impl Inode {
    /// Reads inode `ino`.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when the number lies outside the filesystem.
    pub fn read(source: &dyn BlockSource, ino: Ino) -> Result<Self> {
        let geometry = source.geometry();
        let place = Place { inode: Some(ino.0), ..Place::default() };
        let nowhere = || corrupt(Check::new("dinode", "ino", Rule::Range), &place, "no such place");
        let start = geometry.ino_fsb(ino).ok_or_else(nowhere)?;
        let parts = geometry.ino_parts(ino).ok_or_else(nowhere)?;
        let block = read_pieces(source, BlockKind::InodeCluster, ino, &[Piece { start, count: 1 }])?;
        let at = parts.index << geometry.inodes.log;
        let bytes = usize::try_from(at).ok().and_then(|at| block.bytes().get(at..)).ok_or_else(nowhere)?;
        Self::decode(source, ino, bytes)
    }

    /// Decodes inode `ino`, which stands at the start of `bytes`.
    ///
    /// # Errors
    /// `Corrupt` when `bytes` are fewer than an inode has.
    pub fn decode(source: &dyn BlockSource, ino: Ino, bytes: &[u8]) -> Result<Self> {
        let geometry = source.geometry();
        let parts = geometry.ino_parts(ino);
        let place = Place {
            agno: parts.map(|parts| parts.agno.0),
            daddr: geometry.ino_fsb(ino).and_then(|fsb| geometry.fsb_daddr(fsb)).map(|daddr| daddr.0),
            inode: Some(ino.0),
            offset: parts.map(|parts| u64::from(parts.index) << geometry.inodes.log),
            ..Place::default()
        };
        let truncated = || corrupt(Check::new("dinode", "magic", Rule::Truncated), &place, "");
        let size = usize::try_from(geometry.inodes.size).ok();
        let bytes = size.and_then(|size| bytes.get(..size)).ok_or_else(truncated)?;
        let raw = core_of(bytes).ok_or_else(truncated)?;
        let verdict = source.verify_inode(ino, bytes);
        let bmbt = Layout::of_block(geometry, BtreeKind::Bmbt);
        Ok(Inode { ino, place, verdict, raw, bytes: bytes.to_vec(), bmbt })
    }

    /// The core. In versions 1 and 2, all that only version 3 has is zero.
    pub fn raw(&self) -> &RawDinode {
        &self.raw
    }

    /// All its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where things lie in the blocks of its extent btrees.
    pub(super) fn bmbt_layout(&self) -> &Layout {
        &self.bmbt
    }

    /// Kind of file; `None` for a free inode, or a mode that names none.
    pub fn file_type(&self) -> Option<FileType> {
        FileType::from_mode(self.raw.core.mode.get())
    }

    /// Size in bytes, as it stands there.
    pub fn size(&self) -> u64 {
        self.raw.core.size.get()
    }

    /// Whether the contents lie in the realtime section.
    pub fn is_realtime(&self) -> bool {
        self.raw.core.flags.get() & flags::REALTIME != 0
    }

    /// A fork; `None` when there is no attribute fork.
    ///
    /// # Errors
    /// `Corrupt` when its format is unknown, or it does not fit the inode.
    pub fn fork(&self, kind: ForkKind) -> Result<Option<Fork<'_>>> {
        Fork::of(self, kind)
    }
}

/// The core at the start of an inode; what its version does not have is zero.
fn core_of(bytes: &[u8]) -> Option<RawDinode> {
    let (core, _) = RawDinodeCore::prefix(bytes)?;
    let mut raw = RawDinode::new_zeroed();
    let len = core.literal_offset();
    raw.as_mut_bytes().get_mut(..len)?.copy_from_slice(bytes.get(..len)?);
    Some(raw)
}
