//! The core of a new inode (`xfs_inode_init`, `xfs_inode_inherit_flags`).

use zerocopy::{FromZeros, IntoBytes};

use super::allocate::allocate;
use super::times::set_all;
use crate::error::{Error, Result};
use crate::forms::FileType;
use crate::geometry::{Geometry, Ino};
use crate::ondisk::dinode::{flags, flags2, format};
use crate::ondisk::extent::MAX_BLOCKCOUNT;
use crate::ondisk::feature_bits::{features2, versionnum};
use crate::ondisk::log_inode::field;
use crate::ondisk::{NULLAGINO, RawDinode, RawDinodeCore};
use crate::transaction::Transaction;

/// Access bit of a directory that gives its group to what is made in it.
const SETGID: u16 = 0o2000;

/// What a new inode is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewInode {
    /// Type and access bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group; a directory with the setgid bit gives its own instead.
    pub gid: u32,
    /// Device number, for devices.
    pub rdev: u32,
    /// Whether it gets an attribute fork at once: when attributes follow. With parent pointers it does in any case.
    pub attributes: bool,
    /// Whether no directory will name it: its link count is 0.
    pub unnamed: bool,
}

/// Where the attribute fork of a device begins, in units of 8 bytes: behind the number of the device.
const BEHIND_DEVICE: u8 = 1;

/// Allocates an inode below `parent` and gives it its core: flags, project and group come from the directory as Linux
/// lets them. The link count is 1, of a directory 2, of an unnamed one 0.
///
/// # Errors
/// As [`super::allocate()`].
pub fn create(tx: &mut Transaction<'_>, parent: Ino, new: &NewInode) -> Result<Ino> {
    let kind = FileType::from_mode(new.mode);
    let kind = kind.ok_or_else(|| Error::Usage(format!("mode {:o} names no type of file", new.mode)))?;
    let ino = allocate(tx, parent, new.mode)?;
    let directory = *tx.inode(parent)?.raw();
    let geometry = tx.store().geometry().clone();
    let attributes = new.attributes || geometry.features.has_parent() && !new.unnamed;
    let now = tx.store().now();
    let device = matches!(kind, FileType::CharDevice | FileType::BlockDevice | FileType::Fifo | FileType::Socket);
    let fields = field::CORE | if device { field::DEV } else { 0 };
    super::change(tx, ino, fields, |raw, literal| {
        let generation = new_generation(raw, ino, &geometry, now.seconds, now.nanoseconds);
        *raw = initial_core(new, kind, &directory, &geometry);
        raw.core.generation.set(generation);
        if raw.core.version >= 3 {
            raw.ino.set(ino.0);
        }
        set_all(raw, now)?;
        literal.fill(0);
        if device {
            raw.core.format = format::DEV;
            let place = literal.get_mut(..size_of::<u32>());
            let place = place.ok_or_else(|| Error::Internal("an inode has no literal area".to_owned()))?;
            place.copy_from_slice(&new.rdev.to_be_bytes());
        }
        if attributes {
            let usual = u8::try_from(geometry.inodes.attr_fork_offset >> 3).unwrap_or(0);
            raw.core.forkoff = if device { BEHIND_DEVICE } else { usual };
        }
        Ok(())
    })?;
    if attributes {
        note_attributes(tx)?;
    }
    Ok(ino)
}

/// The superblock says that there are attributes, once there are any.
pub(in crate::volume) fn note_attributes(tx: &mut Transaction<'_>) -> Result<()> {
    if tx.store().superblock().versionnum.get() & versionnum::ATTR != 0 {
        return Ok(());
    }
    tx.log_superblock(|superblock| {
        superblock.versionnum.set(superblock.versionnum.get() | versionnum::ATTR | versionnum::MOREBITS);
        let second = superblock.features2.get() | features2::ATTR2;
        superblock.features2.set(second);
        superblock.bad_features2.set(second);
    })
}

/// `flags2` of an inode that is new, or free.
pub(super) fn fresh_flags2(geometry: &Geometry) -> u64 {
    let bigtime = if geometry.features.has_bigtime() { flags2::BIGTIME } else { 0 };
    let counters = if geometry.features.has_nrext64() { flags2::NREXT64 } else { 0 };
    bigtime | counters
}

/// The generation of an inode that is used anew: it differs from those before, and is the same when all is done again at the
/// same time.
fn new_generation(old: &RawDinode, ino: Ino, geometry: &Geometry, seconds: i64, nanoseconds: u32) -> u32 {
    if old.core.version < 3 {
        return old.core.generation.get();
    }
    let words = [seconds.cast_unsigned(), u64::from(nanoseconds), ino.0, u64::from(old.core.generation.get())];
    mix(geometry, &words)
}

/// A number that looks random, from the filesystem's identity and some words (splitmix64).
pub(super) fn mix(geometry: &Geometry, words: &[u64]) -> u32 {
    let uuid = geometry.meta_uuid.as_bytes().iter().fold(0_u64, |sum, byte| sum.rotate_left(8) ^ u64::from(*byte));
    let mixed = words.iter().fold(uuid, |state, word| {
        let mut state = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^ state >> 31
    });
    u32::try_from(mixed >> 32).unwrap_or(0)
}

/// The core without inode number, generation and timestamps.
fn initial_core(new: &NewInode, kind: FileType, directory: &RawDinode, geometry: &Geometry) -> RawDinode {
    let mut raw = RawDinode::new_zeroed();
    let core = &mut raw.core;
    core.magic.set(RawDinode::MAGIC);
    core.version = if geometry.features.has_crc() { 3 } else { 2 };
    core.format = format::EXTENTS;
    core.aformat = i8::from_ne_bytes([format::EXTENTS]);
    core.uid.set(new.uid);
    core.nlink.set(match (new.unnamed, kind) {
        (true, _) => 0,
        (false, FileType::Directory) => 2,
        (false, _) => 1,
    });
    let gives_group = directory.core.mode.get() & SETGID != 0;
    core.gid.set(if gives_group { directory.core.gid.get() } else { new.gid });
    let setgid = if gives_group && kind == FileType::Directory { SETGID } else { 0 };
    core.mode.set(new.mode | setgid);
    if directory.core.flags.get() & flags::PROJINHERIT != 0 {
        core.set_projid(directory.core.projid());
    }
    core.next_unlinked.set(NULLAGINO);
    if core.version >= 3 {
        raw.changecount.set(1);
        raw.flags2.set(fresh_flags2(geometry));
        raw.uuid = geometry.meta_uuid;
    }
    inherit_flags(&mut raw, kind, directory, geometry);
    raw
}

/// Flags that files and directories get from the directory they are made in.
fn inherit_flags(raw: &mut RawDinode, kind: FileType, directory: &RawDinode, geometry: &Geometry) {
    let given = directory.core.flags.get();
    let has = |flag: u16| given & flag != 0;
    let kept = flags::NOATIME | flags::NODUMP | flags::SYNC | flags::NOSYMLINKS | flags::NODEFRAG | flags::FILESTREAM;
    let core: &mut RawDinodeCore = &mut raw.core;
    let mut set = given & kept;
    match kind {
        FileType::Directory => set |= given & (flags::RTINHERIT | flags::EXTSZINHERIT | flags::PROJINHERIT),
        FileType::Regular => {
            if has(flags::RTINHERIT) && geometry.realtime.blocks > 0 {
                set |= flags::REALTIME;
            }
            if has(flags::EXTSZINHERIT) {
                set |= flags::EXTSIZE;
            }
        }
        _ => return,
    }
    if has(flags::EXTSZINHERIT) {
        let hint = directory.core.extsize.get();
        let fits = hint > 0 && hint <= MAX_BLOCKCOUNT && (set & flags::REALTIME != 0 || hint <= geometry.agblocks / 2);
        core.extsize.set(if fits { hint } else { 0 });
        if !fits {
            set &= !(flags::EXTSIZE | flags::EXTSZINHERIT);
        }
    }
    core.flags.set(set);
    let given = directory.flags2_or_zero();
    if core.version < 3 {
        return;
    }
    let mut set = given & (flags2::DAX | flags2::METADATA);
    if given & flags2::COWEXTSIZE != 0 {
        let hint = directory.cowextsize.get();
        if geometry.features.has_reflink() && hint > 0 && hint <= MAX_BLOCKCOUNT && hint <= geometry.agblocks / 2 {
            raw.cowextsize.set(hint);
            set |= flags2::COWEXTSIZE;
        }
    }
    raw.flags2.set(raw.flags2.get() | set);
}
