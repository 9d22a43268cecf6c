//! An inode while its file is made. It is written to its place at each commit, as the transactions of mkfs.xfs do, which
//! counts in its change counter. Sources: `xfs_inode_to_disk` and `xfs_iflush_fork` of Linux `fs/xfs/libxfs`, `libxfs_iflush_int` of
//! xfsprogs `libxfs/inode.c`.

use zerocopy::IntoBytes;

use crate::error::{Error, Result};
use crate::geometry::{FsBlock, Ino};
use crate::mkfs::write::attribute::data_room;
use crate::mkfs::write::shape::Shape;
use crate::ondisk::dinode::{flags2, format};
use crate::ondisk::{Extent, OnDisk, RawBmbtKey, RawBmdrRoot, RawDinode, RawDinodeCore, Timestamp, crc};

/// File types in the mode of an inode.
pub(super) mod mode {
    /// Directory.
    pub const DIRECTORY: u16 = 0o040_000;
    /// Regular file.
    pub const REGULAR: u16 = 0o100_000;
    /// The bits that hold the type.
    pub const TYPE: u16 = 0o170_000;
}

/// Data fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// In the inode: a small directory.
    Local(Vec<u8>),
    /// Extents.
    Extents(Vec<Extent>),
    /// More extents, listed in a block.
    Btree {
        /// The extents.
        extents: Vec<Extent>,
        /// The block that lists them, the only one of the btree.
        leaf: FsBlock,
    },
    /// The root of a btree of realtime metadata.
    MetaBtree(Vec<u8>),
}

impl Data {
    /// The extents, if it has any.
    pub fn extents(&self) -> Option<&[Extent]> {
        match self {
            Data::Extents(extents) | Data::Btree { extents, .. } => Some(extents),
            Data::Local(_) | Data::MetaBtree(_) => None,
        }
    }
}

/// Attribute fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Attributes {
    /// None yet; the fork may have its place already.
    Empty,
    /// In the inode.
    Local(Vec<u8>),
}

/// An inode.
#[derive(Clone, Debug)]
pub(super) struct Inode {
    /// Its number.
    pub ino: Ino,
    /// Type and permissions.
    pub mode: u16,
    /// Links.
    pub nlink: u32,
    /// Project.
    pub projid: u32,
    /// Length in bytes.
    pub size: u64,
    /// Blocks.
    pub nblocks: u64,
    /// Hint for the size of extents, in blocks.
    pub extsize: u32,
    /// Hint for the size of extents that are copied on write, in blocks.
    pub cowextsize: u32,
    /// Place of the attribute fork in the literal area, in units of 8 bytes; 0 for none.
    pub forkoff: u8,
    /// Flags.
    pub flags: u16,
    /// Flags of version 3.
    pub flags2: u64,
    /// Generation.
    pub generation: u32,
    /// Changes so far.
    pub changecount: u64,
    /// What metadata it holds.
    pub metatype: u16,
    /// Times of last access, and of creation and all changes.
    pub atime: Timestamp,
    /// Time of creation and of all changes.
    pub time: Timestamp,
    /// Data fork.
    pub data: Data,
    /// Attribute fork.
    pub attributes: Attributes,
}

impl Inode {
    /// A new inode without contents.
    pub fn new(shape: &Shape, ino: Ino, mode: u16, generation: u32) -> Self {
        let layout = &shape.layout;
        let features = &layout.features;
        let mut flags = 0;
        if features.bigtime {
            flags |= flags2::BIGTIME;
        }
        if features.nrext64 {
            flags |= flags2::NREXT64;
        }
        let time = Timestamp { seconds: layout.time.sec, nanoseconds: layout.time.nsec };
        Inode {
            ino,
            mode,
            nlink: if mode & mode::TYPE == mode::DIRECTORY { 2 } else { 1 },
            projid: 0,
            size: 0,
            nblocks: 0,
            extsize: 0,
            cowextsize: 0,
            forkoff: 0,
            flags: 0,
            flags2: flags,
            generation,
            changecount: 1,
            metatype: 0,
            atime: time,
            time,
            data: Data::Extents(Vec::new()),
            attributes: Attributes::Empty,
        }
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.mode & mode::TYPE == mode::DIRECTORY
    }

    /// Writes the inode to its place, `bytes`, where a free inode or an older state of it stands. What earlier contents
    /// leave behind the present ones stays.
    pub fn flush(&mut self, shape: &Shape, bytes: &mut [u8]) -> Result<()> {
        let v3 = shape.layout.features.crc;
        self.changecount += 1;
        let (core, _) = RawDinodeCore::prefix_mut(bytes).ok_or_else(short)?;
        self.encode_core(shape, core)?;
        let literal = core.literal_offset();
        if v3 {
            let (dinode, _) = RawDinode::prefix_mut(bytes).ok_or_else(short)?;
            dinode.changecount.set(self.changecount);
            dinode.crtime = self.time.encode(shape.layout.features.bigtime).ok_or_else(unfit)?;
            dinode.flags2.set(self.flags2);
            dinode.cowextsize.set(self.cowextsize);
            dinode.ino.set(self.ino.0);
            dinode.uuid = *shape.layout.uuid.as_bytes();
        }
        let area = bytes.get_mut(literal..).ok_or_else(short)?;
        match &self.data {
            Data::Local(local) | Data::MetaBtree(local) => put(area, 0, local)?,
            Data::Extents(extents) => {
                for (index, extent) in extents.iter().enumerate() {
                    let raw = extent.encode().ok_or_else(unfit)?;
                    put(area, index * raw.as_bytes().len(), raw.as_bytes())?;
                }
            }
            Data::Btree { extents, leaf } => {
                let first = extents.first().ok_or_else(unfit)?;
                let root = RawBmdrRoot { level: 1.into(), numrecs: 1.into() };
                let key = RawBmbtKey { startoff: first.startoff.into() };
                put(area, 0, root.as_bytes())?;
                put(area, RawBmdrRoot::SIZE, key.as_bytes())?;
                // the pointers follow all keys that the fork has room for
                let entries =
                    (data_room(shape, self.forkoff) - RawBmdrRoot::SIZE) / (RawBmbtKey::SIZE + size_of::<u64>());
                put(area, RawBmdrRoot::SIZE + entries * RawBmbtKey::SIZE, &leaf.0.to_be_bytes())?;
            }
        }
        if let Attributes::Local(local) = &self.attributes {
            put(area, usize::from(self.forkoff) << 3, local)?;
        }
        if v3 {
            crc::stamp(bytes, RawDinode::CRC_OFFSET);
        }
        Ok(())
    }

    fn encode_core(&self, shape: &Shape, core: &mut RawDinodeCore) -> Result<()> {
        let bigtime = shape.layout.features.bigtime;
        core.magic.set(RawDinode::MAGIC);
        core.mode.set(self.mode);
        core.version = if shape.layout.features.crc { 3 } else { 2 };
        core.format = match self.data {
            Data::Local(_) => format::LOCAL,
            Data::Extents(_) => format::EXTENTS,
            Data::Btree { .. } => format::BTREE,
            Data::MetaBtree(_) => format::META_BTREE,
        };
        core.metatype.set(self.metatype);
        core.nlink.set(self.nlink);
        core.set_projid(self.projid);
        core.atime = self.atime.encode(bigtime).ok_or_else(unfit)?;
        core.mtime = self.time.encode(bigtime).ok_or_else(unfit)?;
        core.ctime = core.mtime;
        core.size.set(self.size);
        core.nblocks.set(self.nblocks);
        core.extsize.set(self.extsize);
        let extents = self.data.extents().map_or(0, <[Extent]>::len);
        let extents = u32::try_from(extents).map_err(|_| unfit())?;
        if self.flags2 & flags2::NREXT64 != 0 {
            core.big_nextents.set(u64::from(extents));
            core.nextents.set(0);
        } else {
            core.big_nextents.set(0);
            core.nextents.set(extents);
        }
        core.anextents.set(0);
        core.forkoff = self.forkoff;
        let attributes = match self.attributes {
            Attributes::Empty => format::EXTENTS,
            Attributes::Local(_) => format::LOCAL,
        };
        core.aformat = i8::from_be_bytes([attributes]);
        core.flags.set(self.flags);
        core.generation.set(self.generation);
        Ok(())
    }
}

fn put(area: &mut [u8], at: usize, bytes: &[u8]) -> Result<()> {
    area.get_mut(at..at + bytes.len()).ok_or_else(short)?.copy_from_slice(bytes);
    Ok(())
}

fn short() -> Error {
    Error::Internal("making a filesystem: the inode's contents do not fit".to_string())
}

fn unfit() -> Error {
    Error::Internal("making a filesystem: a value of the inode does not fit its field".to_string())
}
