//! The bytes of an inode (Linux `fs/xfs/libxfs/xfs_inode_buf.c`, `xfs_inode_fork.c`).

use zerocopy::{FromZeros, IntoBytes};

use crate::error::{Error, Result};
use crate::geometry::{Geometry, Ino};
use crate::ondisk::dinode::{flags2, format};
use crate::ondisk::timestamp::BIGTIME_MAX;
use crate::ondisk::{Extent, OnDisk, RawDinode, RawDinodeCore, Timestamp, crc};

/// The end of a list of unlinked inodes, and what stands in an inode that is in none.
const NULL_AGINO: u32 = u32::MAX;
/// Version of inodes without and with CRC.
const VERSION_2: u8 = 2;
const VERSION_3: u8 = 3;

/// What a fork holds in the inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fork {
    /// The number of a device; nothing for pipes and sockets, which is 0.
    Device(u32),
    /// The contents.
    Local(Vec<u8>),
    /// A list of extents.
    Extents(Vec<Extent>),
    /// The root of a btree, and how many extents it lists.
    Btree {
        /// The root.
        root: Vec<u8>,
        /// Extents.
        extents: u64,
    },
}

impl Fork {
    fn format(&self) -> u8 {
        match self {
            Fork::Device(_) => format::DEV,
            Fork::Local(_) => format::LOCAL,
            Fork::Extents(_) => format::EXTENTS,
            Fork::Btree { .. } => format::BTREE,
        }
    }

    fn extents(&self) -> u64 {
        match self {
            Fork::Device(_) | Fork::Local(_) => 0,
            Fork::Extents(list) => list.len() as u64,
            Fork::Btree { extents, .. } => *extents,
        }
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        match self {
            Fork::Device(number) => Ok(number.to_be_bytes().to_vec()),
            Fork::Local(bytes) | Fork::Btree { root: bytes, .. } => Ok(bytes.clone()),
            Fork::Extents(list) => {
                let mut bytes = Vec::new();
                for extent in list {
                    bytes.extend_from_slice(extent.encode().ok_or_else(misfit)?.as_bytes());
                }
                Ok(bytes)
            }
        }
    }
}

/// An inode.
#[derive(Clone, Debug)]
pub(super) struct InodeImage {
    /// Type and permissions.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Project.
    pub projid: u32,
    /// Links.
    pub nlink: u32,
    /// Size in bytes.
    pub size: u64,
    /// Blocks of both forks and their btrees.
    pub nblocks: u64,
    /// Hints for the size of extents, in blocks: for all, and for copies on write.
    pub extsize: [u32; 2],
    /// Flags.
    pub flags: u16,
    /// Flags of version 3, without those that every inode of the filesystem has.
    pub flags2: u64,
    /// Generation.
    pub generation: u32,
    /// Times of last access, of the last change of the contents, of the last change of all.
    pub times: [Timestamp; 3],
    /// Time of creation.
    pub created: Timestamp,
    /// Number of changes.
    pub changecount: u64,
    /// Data fork.
    pub data: Fork,
    /// Where the attribute fork begins, in units of 8 bytes, and what it holds.
    pub attributes: Option<(u8, Fork)>,
}

/// Flags of version 3 that every inode of the filesystem has.
fn common_flags2(geometry: &Geometry) -> u64 {
    let bigtime = if geometry.features.has_bigtime() { flags2::BIGTIME } else { 0 };
    let nrext64 = if geometry.features.has_nrext64() { flags2::NREXT64 } else { 0 };
    bigtime | nrext64
}

/// The point in time that the filesystem can hold that is closest to `time`.
fn clamp(geometry: &Geometry, time: Timestamp) -> Timestamp {
    let (least, most) = if geometry.features.has_bigtime() {
        (-crate::ondisk::timestamp::BIGTIME_EPOCH_OFFSET, BIGTIME_MAX)
    } else {
        (i64::from(i32::MIN), i64::from(i32::MAX))
    };
    match time.seconds {
        seconds if seconds <= least => Timestamp { seconds: least, nanoseconds: 0 },
        seconds if seconds >= most => Timestamp { seconds: most, nanoseconds: 0 },
        _ => time,
    }
}

/// Writes the inode into `bytes`, which are as long as an inode.
pub(super) fn encode(geometry: &Geometry, ino: Ino, inode: &InodeImage, bytes: &mut [u8]) -> Result<()> {
    bytes.fill(0);
    let time = |time: Timestamp| clamp(geometry, time).encode(geometry.features.has_bigtime()).ok_or_else(misfit);
    let mut raw = RawDinode::new_zeroed();
    let core = &mut raw.core;
    core.magic.set(RawDinode::MAGIC);
    core.mode.set(inode.mode);
    core.version = if geometry.features.has_crc() { VERSION_3 } else { VERSION_2 };
    core.format = inode.data.format();
    core.uid.set(inode.uid);
    core.gid.set(inode.gid);
    core.nlink.set(inode.nlink);
    core.set_projid(inode.projid);
    core.atime = time(inode.times[0])?;
    core.mtime = time(inode.times[1])?;
    core.ctime = time(inode.times[2])?;
    core.size.set(inode.size);
    core.nblocks.set(inode.nblocks);
    core.extsize.set(inode.extsize[0]);
    let attributes = inode.attributes.as_ref();
    core.forkoff = attributes.map_or(0, |(offset, _)| *offset);
    core.aformat = i8::from_be_bytes([attributes.map_or(format::EXTENTS, |(_, fork)| fork.format())]);
    core.flags.set(inode.flags);
    core.generation.set(inode.generation);
    core.next_unlinked.set(NULL_AGINO);
    if geometry.features.has_crc() {
        raw.changecount.set(inode.changecount);
        raw.flags2.set(inode.flags2 | common_flags2(geometry));
        raw.cowextsize.set(inode.extsize[1]);
        raw.crtime = time(inode.created)?;
        raw.ino.set(ino.0);
        raw.uuid = geometry.meta_uuid;
    }
    let attr_extents = attributes.map_or(0, |(_, fork)| fork.extents());
    let attr_extents = u32::try_from(attr_extents).map_err(|_| misfit())?;
    raw.set_extents(inode.data.extents(), attr_extents)
        .ok_or_else(|| Error::Usage("a file has more extents than an inode can count".into()))?;
    let head = usize::try_from(geometry.inodes.core_size).map_err(|_| misfit())?;
    bytes.get_mut(..head).ok_or_else(misfit)?.copy_from_slice(&raw.as_bytes()[..head]);
    let area = bytes.get_mut(head..).ok_or_else(misfit)?;
    let split = attributes.map_or(area.len(), |(offset, _)| usize::from(*offset) << 3);
    let (data, attr) = area.split_at_mut_checked(split).ok_or_else(misfit)?;
    put(data, &inode.data)?;
    if let Some((_, fork)) = attributes {
        put(attr, fork)?;
    }
    if geometry.features.has_crc() {
        crc::stamp(bytes, RawDinode::CRC_OFFSET);
    }
    Ok(())
}

/// Writes an inode that is not in use.
pub(super) fn encode_free(geometry: &Geometry, ino: Ino, generation: u32, bytes: &mut [u8]) {
    bytes.fill(0);
    let v3 = geometry.features.has_crc();
    if let Some((core, _)) = RawDinodeCore::prefix_mut(bytes) {
        core.magic.set(RawDinode::MAGIC);
        core.version = if v3 { VERSION_3 } else { VERSION_2 };
        core.generation.set(generation);
        core.next_unlinked.set(NULL_AGINO);
    }
    if !v3 {
        return;
    }
    if let Some((raw, _)) = RawDinode::prefix_mut(bytes) {
        raw.ino.set(ino.0);
        raw.uuid = geometry.meta_uuid;
    }
    crc::stamp(bytes, RawDinode::CRC_OFFSET);
}

fn put(area: &mut [u8], fork: &Fork) -> Result<()> {
    let bytes = fork.bytes()?;
    area.get_mut(..bytes.len()).ok_or_else(misfit)?.copy_from_slice(&bytes);
    Ok(())
}

fn misfit() -> Error {
    Error::Internal("what was counted for an inode does not fit into it".into())
}
