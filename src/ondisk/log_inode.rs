//! Log items of inodes (Linux `fs/xfs/libxfs/xfs_log_format.h`, `fs/xfs/xfs_inode_item_recover.c`).
//!
//! The first region says which parts follow; 32-bit machines leave out a word of padding in it. The second region is
//! the inode core in the writer's byte order; then come the forks.

use crate::error::{Check, Rule};
use crate::ondisk::dinode::flags2;
use crate::ondisk::{Be64, OnDisk, RawDinode, RawDinodeCore, RawUuid};
use zerocopy::IntoBytes;
use zerocopy::byteorder::{BigEndian, ByteOrder, U16, U32, U64};

/// Which parts of an inode an item has.
pub mod field {
    /// The core.
    pub const CORE: u32 = 0x001;
    /// Data fork: contents.
    pub const DDATA: u32 = 0x002;
    /// Data fork: extents.
    pub const DEXT: u32 = 0x004;
    /// Data fork: btree root.
    pub const DBROOT: u32 = 0x008;
    /// Device number.
    pub const DEV: u32 = 0x010;
    /// Never used.
    pub const UUID: u32 = 0x020;
    /// Attribute fork: contents.
    pub const ADATA: u32 = 0x040;
    /// Attribute fork: extents.
    pub const AEXT: u32 = 0x080;
    /// Attribute fork: btree root.
    pub const ABROOT: u32 = 0x100;
    /// The blocks of the data fork's btree get a new owner.
    pub const DOWNER: u32 = 0x200;
    /// The blocks of the attribute fork's btree get a new owner.
    pub const AOWNER: u32 = 0x400;
}

ondisk! {
    /// First region, as 64-bit machines write it (`xfs_inode_log_format`).
    pub struct RawInodeLogFormat64<O>("inode_log_format"): 56 {
        /// The type of inode items.
        0 => type_: U16<O>,
        /// Regions: 2 to 4.
        2 => size: U16<O>,
        /// Parts, see [`field`].
        4 => fields: U32<O>,
        /// Bytes of the attribute fork's region.
        8 => asize: U16<O>,
        /// Bytes of the data fork's region.
        10 => dsize: U16<O>,
        /// Alignment.
        12 => pad: U32<O>,
        /// Inode number.
        16 => ino: U64<O>,
        /// Device number in the first four bytes, for device inodes.
        24 => rdev: [u8; 16],
        /// Disk address of the inode's buffer, in 512-byte units.
        40 => blkno: U64<O>,
        /// Length of the buffer, in 512-byte units.
        48 => len: U32<O>,
        /// Where the inode stands in the buffer, in bytes.
        52 => boffset: U32<O>,
    }
}

ondisk! {
    /// First region, as 32-bit machines write it (`xfs_inode_log_format_32`).
    pub struct RawInodeLogFormat32<O>("inode_log_format_32"): 52 {
        /// The type of inode items.
        0 => type_: U16<O>,
        /// Regions: 2 to 4.
        2 => size: U16<O>,
        /// Parts, see [`field`].
        4 => fields: U32<O>,
        /// Bytes of the attribute fork's region.
        8 => asize: U16<O>,
        /// Bytes of the data fork's region.
        10 => dsize: U16<O>,
        /// Inode number.
        12 => ino: U64<O>,
        /// Device number in the first four bytes, for device inodes.
        20 => rdev: [u8; 16],
        /// Disk address of the inode's buffer, in 512-byte units.
        36 => blkno: U64<O>,
        /// Length of the buffer, in 512-byte units.
        44 => len: U32<O>,
        /// Where the inode stands in the buffer, in bytes.
        48 => boffset: U32<O>,
    }
}

/// Width of the machine that wrote an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 32 bits, without alignment of 64-bit fields.
    Bits32,
    /// 64 bits.
    Bits64,
}

/// First region of an inode item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InodeLogFormat {
    /// Regions: 2 to 4.
    pub size: u16,
    /// Parts, see [`field`].
    pub fields: u32,
    /// Bytes of the attribute fork's region.
    pub asize: u16,
    /// Bytes of the data fork's region.
    pub dsize: u16,
    /// Inode number.
    pub ino: u64,
    /// Device number, for device inodes.
    pub rdev: u32,
    /// Disk address of the inode's buffer, in 512-byte units.
    pub blkno: u64,
    /// Length of the buffer, in 512-byte units.
    pub len: u32,
    /// Where the inode stands in the buffer, in bytes.
    pub boffset: u32,
}

/// Number of inode items; their layouts need it before the table of types is of use.
const INODE: u16 = super::log_item::LogItemType::Inode as u16;

impl InodeLogFormat {
    /// Decodes the first region of an inode item; its length tells the width of the writer.
    ///
    /// # Errors
    /// The check that it fails: type, or a length that no writer produces.
    pub fn decode<O: ByteOrder>(region: &[u8]) -> Result<(Self, Width), Check> {
        let failed = |field, rule| Check::new("inode_log_format", field, rule);
        let ((type_, item), width) = if region.len() == RawInodeLogFormat64::<O>::SIZE {
            (from64::<O>(region).ok_or(failed("size", Rule::Truncated))?, Width::Bits64)
        } else if region.len() == RawInodeLogFormat32::<O>::SIZE {
            (from32::<O>(region).ok_or(failed("size", Rule::Truncated))?, Width::Bits32)
        } else {
            return Err(failed("size", Rule::Truncated));
        };
        if type_ != INODE {
            return Err(failed("type", Rule::Magic));
        }
        Ok((item, width))
    }

    /// The bytes of the first region.
    pub fn encode<O: ByteOrder>(&self, width: Width) -> Vec<u8> {
        let mut rdev = [0; 16];
        rdev[..size_of::<U32<O>>()].copy_from_slice(U32::<O>::new(self.rdev).as_bytes());
        let (type_, size, fields) = (U16::<O>::new(INODE), U16::new(self.size), U32::new(self.fields));
        let (asize, dsize, ino) = (U16::<O>::new(self.asize), U16::new(self.dsize), U64::new(self.ino));
        let (blkno, len, boffset) = (U64::<O>::new(self.blkno), U32::new(self.len), U32::new(self.boffset));
        match width {
            Width::Bits64 => {
                let pad = U32::ZERO;
                RawInodeLogFormat64 { type_, size, fields, asize, dsize, pad, ino, rdev, blkno, len, boffset }
                    .as_bytes()
                    .to_vec()
            }
            Width::Bits32 => RawInodeLogFormat32 { type_, size, fields, asize, dsize, ino, rdev, blkno, len, boffset }
                .as_bytes()
                .to_vec(),
        }
    }
}

fn from64<O: ByteOrder>(region: &[u8]) -> Option<(u16, InodeLogFormat)> {
    let (raw, _) = RawInodeLogFormat64::<O>::prefix(region)?;
    let item = InodeLogFormat {
        size: raw.size.get(),
        fields: raw.fields.get(),
        asize: raw.asize.get(),
        dsize: raw.dsize.get(),
        ino: raw.ino.get(),
        rdev: rdev::<O>(&raw.rdev),
        blkno: raw.blkno.get(),
        len: raw.len.get(),
        boffset: raw.boffset.get(),
    };
    Some((raw.type_.get(), item))
}

fn from32<O: ByteOrder>(region: &[u8]) -> Option<(u16, InodeLogFormat)> {
    let (raw, _) = RawInodeLogFormat32::<O>::prefix(region)?;
    let item = InodeLogFormat {
        size: raw.size.get(),
        fields: raw.fields.get(),
        asize: raw.asize.get(),
        dsize: raw.dsize.get(),
        ino: raw.ino.get(),
        rdev: rdev::<O>(&raw.rdev),
        blkno: raw.blkno.get(),
        len: raw.len.get(),
        boffset: raw.boffset.get(),
    };
    Some((raw.type_.get(), item))
}

fn rdev<O: ByteOrder>(bytes: &[u8; 16]) -> u32 {
    bytes.first_chunk().map_or(0, |word| U32::<O>::from_bytes(*word).get())
}

ondisk! {
    /// Second region: the inode core (`xfs_log_dinode`). v1 and v2 inodes end before `next_unlinked`.
    ///
    /// `crc` and `lsn` are those of some earlier write and mean nothing.
    pub struct RawLogDinode<O>("log_dinode"): 176 {
        /// Magic number of inodes.
        0 => magic: U16<O>,
        /// Type and permissions.
        2 => mode: U16<O>,
        /// Version of the inode.
        4 => version: u8,
        /// Form of the data fork.
        5 => format: u8,
        /// Type of a metadata inode; in v1 inodes the number of links.
        6 => metatype: U16<O>,
        /// User.
        8 => uid: U32<O>,
        /// Group.
        12 => gid: U32<O>,
        /// Number of links.
        16 => nlink: U32<O>,
        /// Project, lower half.
        20 => projid_lo: U16<O>,
        /// Project, upper half.
        22 => projid_hi: U16<O>,
        /// With nrext64 the number of data extents; in v1 and v2 inodes the last two bytes count the flushes.
        24 => big_nextents: [u8; 8],
        /// Last access.
        32 => atime: [u8; 8],
        /// Last change of the contents.
        40 => mtime: [u8; 8],
        /// Last change of the inode.
        48 => ctime: [u8; 8],
        /// Size in bytes.
        56 => size: U64<O>,
        /// Blocks of contents and btrees.
        64 => nblocks: U64<O>,
        /// Extent size hint in blocks.
        72 => extsize: U32<O>,
        /// Data extents; with nrext64, attribute extents.
        76 => nextents: U32<O>,
        /// Attribute extents; with nrext64, zero.
        80 => anextents: U16<O>,
        /// Start of the attribute fork, in units of 8 bytes.
        82 => forkoff: u8,
        /// Form of the attribute fork.
        83 => aformat: u8,
        /// Unused.
        84 => dmevmask: U32<O>,
        /// Unused.
        88 => dmstate: U16<O>,
        /// Flags.
        90 => flags: U16<O>,
        /// Generation.
        92 => generation: U32<O>,
        /// Next inode of the unlinked list; not replayed.
        96 => next_unlinked: U32<O>,
        /// Not valid.
        100 => crc: U32<O>,
        /// Changes to the inode.
        104 => changecount: U64<O>,
        /// Not valid.
        112 => lsn: U64<O>,
        /// More flags.
        120 => flags2: U64<O>,
        /// Extent size hint of the CoW fork in blocks; in the rmap inode of a zoned group, used blocks.
        128 => cowextsize: U32<O>,
        /// Zero.
        132 => pad2: [u8; 12],
        /// Creation.
        144 => crtime: [u8; 8],
        /// Inode number.
        152 => ino: U64<O>,
        /// UUID of the filesystem.
        160 => uuid: RawUuid,
    }
}

/// Bytes of the core of a v1 or v2 inode.
pub const LOG_DINODE_V2_SIZE: usize = std::mem::offset_of!(RawLogDinode<BigEndian>, next_unlinked);

/// A timestamp of the log, as its bytes mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogTimestamp {
    /// Seconds and nanoseconds since 1970.
    Legacy {
        /// Seconds.
        sec: i32,
        /// Nanoseconds.
        nsec: i32,
    },
    /// Nanoseconds since 1901 (bigtime).
    Big(u64),
}

impl LogTimestamp {
    /// Decodes the bytes of a timestamp field. A bigtime stamp is one integer, a legacy stamp two: the same bytes
    /// mean different things in each byte order, so the inode's bigtime flag must be known.
    pub fn decode<O: ByteOrder>(bytes: [u8; 8], bigtime: bool) -> Self {
        if bigtime {
            return LogTimestamp::Big(U64::<O>::from_bytes(bytes).get());
        }
        let [a, b, c, d, e, f, g, h] = bytes;
        let half = |word| i32::from_be_bytes(U32::<O>::from_bytes(word).get().to_be_bytes());
        LogTimestamp::Legacy { sec: half([a, b, c, d]), nsec: half([e, f, g, h]) }
    }

    /// The bytes of the field.
    pub fn encode<O: ByteOrder>(self) -> [u8; 8] {
        match self {
            LogTimestamp::Big(stamp) => U64::<O>::new(stamp).to_bytes(),
            LogTimestamp::Legacy { sec, nsec } => {
                let [a, b, c, d] = U32::<O>::new(u32::from_be_bytes(sec.to_be_bytes())).to_bytes();
                let [e, f, g, h] = U32::<O>::new(u32::from_be_bytes(nsec.to_be_bytes())).to_bytes();
                [a, b, c, d, e, f, g, h]
            }
        }
    }
}

impl<O: ByteOrder> RawLogDinode<O> {
    /// Decodes the second region, whose length must be that of a v3 core, or that of an older one; what an older
    /// one lacks is zero.
    ///
    /// # Errors
    /// When the region has another length, or is shorter than the version it names needs.
    pub fn decode(region: &[u8]) -> Result<Self, Check> {
        let truncated = Check::new("log_dinode", "version", Rule::Truncated);
        let mut core = zerocopy::FromZeros::new_zeroed();
        let bytes: &mut [u8] = RawLogDinode::<O>::as_mut_bytes(&mut core);
        if region.len() != bytes.len() && region.len() != LOG_DINODE_V2_SIZE {
            return Err(truncated);
        }
        bytes[..region.len()].copy_from_slice(region);
        if core.version >= 3 && region.len() < Self::SIZE { Err(truncated) } else { Ok(core) }
    }

    /// The core for the log of an inode that is to stand on disk like this. `crc` and `lsn` are taken over, and mean nothing.
    pub fn from_disk(disk: &RawDinode) -> Self {
        let (core, bigtime) = (&disk.core, disk.has_bigtime());
        let time = |stamp: Be64| {
            if bigtime {
                LogTimestamp::Big(stamp.get()).encode::<O>()
            } else {
                LogTimestamp::decode::<BigEndian>(stamp.to_bytes(), false).encode::<O>()
            }
        };
        let big_nextents = match core.version {
            3.. => U64::<O>::new(core.big_nextents.get()).to_bytes(),
            _ => {
                let [a, b] = U16::<O>::new(core.flushiter()).to_bytes();
                [0, 0, 0, 0, 0, 0, a, b]
            }
        };
        RawLogDinode {
            magic: core.magic.get().into(),
            mode: core.mode.get().into(),
            version: core.version,
            format: core.format,
            metatype: core.metatype.get().into(),
            uid: core.uid.get().into(),
            gid: core.gid.get().into(),
            nlink: core.nlink.get().into(),
            projid_lo: core.projid_lo.get().into(),
            projid_hi: core.projid_hi.get().into(),
            big_nextents,
            atime: time(core.atime),
            mtime: time(core.mtime),
            ctime: time(core.ctime),
            size: core.size.get().into(),
            nblocks: core.nblocks.get().into(),
            extsize: core.extsize.get().into(),
            nextents: core.nextents.get().into(),
            anextents: core.anextents.get().into(),
            forkoff: core.forkoff,
            aformat: core.aformat.to_ne_bytes()[0],
            dmevmask: core.dmevmask.get().into(),
            dmstate: core.dmstate.get().into(),
            flags: core.flags.get().into(),
            generation: core.generation.get().into(),
            next_unlinked: core.next_unlinked.get().into(),
            crc: disk.crc.get().into(),
            changecount: disk.changecount.get().into(),
            lsn: disk.lsn.get().into(),
            flags2: disk.flags2.get().into(),
            cowextsize: disk.cowextsize.get().into(),
            pad2: disk.pad2,
            crtime: time(disk.crtime),
            ino: disk.ino.get().into(),
            uuid: disk.uuid,
        }
    }

    /// Number of data and of attribute extents.
    pub fn extents(&self, nrext64: bool) -> (u64, u32) {
        if nrext64 {
            (U64::<O>::from_bytes(self.big_nextents).get(), self.nextents.get())
        } else {
            (u64::from(self.nextents.get()), u32::from(self.anextents.get()))
        }
    }

    /// The flush counter of v1 and v2 inodes.
    pub fn flushiter(&self) -> u16 {
        let [.., a, b] = self.big_nextents;
        U16::<O>::from_bytes([a, b]).get()
    }

    /// The core as it stands on disk. `crc` and `lsn` are taken over, and mean nothing.
    pub fn to_disk(&self) -> RawDinode {
        let flags2 = if self.version >= 3 { self.flags2.get() } else { 0 };
        let time = |bytes| match LogTimestamp::decode::<O>(bytes, flags2 & flags2::BIGTIME != 0) {
            LogTimestamp::Big(stamp) => stamp.into(),
            stamp @ LogTimestamp::Legacy { .. } => stamp.encode::<BigEndian>().into(),
        };
        let big_nextents = match self.version {
            3.. => U64::<O>::from_bytes(self.big_nextents).get(),
            _ => u64::from(self.flushiter()),
        };
        RawDinode {
            core: RawDinodeCore {
                magic: self.magic.get().into(),
                mode: self.mode.get().into(),
                version: self.version,
                format: self.format,
                metatype: self.metatype.get().into(),
                uid: self.uid.get().into(),
                gid: self.gid.get().into(),
                nlink: self.nlink.get().into(),
                projid_lo: self.projid_lo.get().into(),
                projid_hi: self.projid_hi.get().into(),
                big_nextents: big_nextents.into(),
                atime: time(self.atime),
                mtime: time(self.mtime),
                ctime: time(self.ctime),
                size: self.size.get().into(),
                nblocks: self.nblocks.get().into(),
                extsize: self.extsize.get().into(),
                nextents: self.nextents.get().into(),
                anextents: self.anextents.get().into(),
                forkoff: self.forkoff,
                aformat: i8::from_ne_bytes([self.aformat]),
                dmevmask: self.dmevmask.get().into(),
                dmstate: self.dmstate.get().into(),
                flags: self.flags.get().into(),
                generation: self.generation.get().into(),
                next_unlinked: self.next_unlinked.get().into(),
            },
            crc: self.crc.get().into(),
            changecount: self.changecount.get().into(),
            lsn: self.lsn.get().into(),
            flags2: self.flags2.get().into(),
            cowextsize: self.cowextsize.get().into(),
            pad2: self.pad2,
            crtime: time(self.crtime),
            ino: self.ino.get().into(),
            uuid: self.uuid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::{FieldKind, LittleEndian};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decode_inverts_encode(
            (size, asize, dsize) in any::<(u16, u16, u16)>(),
            (fields, rdev, len, boffset) in any::<(u32, u32, u32, u32)>(),
            (ino, blkno) in any::<(u64, u64)>(),
        ) {
            let item = InodeLogFormat { size, fields, asize, dsize, ino, rdev, blkno, len, boffset };
            for width in [Width::Bits32, Width::Bits64] {
                let bytes = item.encode::<LittleEndian>(width);
                prop_assert_eq!(InodeLogFormat::decode::<LittleEndian>(&bytes), Ok((item, width)));
                prop_assert!(InodeLogFormat::decode::<BigEndian>(&bytes).is_err());
                let bytes = item.encode::<BigEndian>(width);
                prop_assert_eq!(InodeLogFormat::decode::<BigEndian>(&bytes), Ok((item, width)));
            }
        }

        #[test]
        fn timestamps_come_back(bytes: [u8; 8], bigtime: bool) {
            prop_assert_eq!(LogTimestamp::decode::<LittleEndian>(bytes, bigtime).encode::<LittleEndian>(), bytes);
            prop_assert_eq!(LogTimestamp::decode::<BigEndian>(bytes, bigtime).encode::<BigEndian>(), bytes);
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = InodeLogFormat::decode::<LittleEndian>(&bytes);
            let _ = RawLogDinode::<BigEndian>::decode(&bytes);
        }
    }

    #[test]
    fn the_core_on_disk_is_that_of_the_writer() {
        use zerocopy::{FromZeros, IntoBytes};
        for (version, large) in [(2, false), (3, false), (3, true)] {
            let mut disk = RawDinode::new_zeroed();
            // every byte of it differs
            disk.as_mut_bytes().iter_mut().zip(1..).for_each(|(byte, value)| *byte = value);
            (disk.core.version, disk.flags2) = (version, if large { 0x18 } else { 0 }.into());
            if version < 3 {
                disk.core.big_nextents = 0x1234.into();
            }
            // in big-endian order the log has the same bytes
            let region = if version < 3 { &disk.as_bytes()[..LOG_DINODE_V2_SIZE] } else { disk.as_bytes() };
            let core = RawLogDinode::<BigEndian>::decode(region).expect("a core");
            let back = core.to_disk();
            assert_eq!(&back.as_bytes()[..100 - 4], &region[..96], "version {version}");
            let mut little = region.to_vec();
            for field in RawLogDinode::<LittleEndian>::FIELDS.iter().filter(|field| field.offset < region.len()) {
                let bytes = &mut little[field.offset..field.offset + field.size];
                match (field.kind, field.name) {
                    (FieldKind::Int(_), _) => bytes.reverse(),
                    (_, "atime" | "mtime" | "ctime" | "crtime") if !large => {
                        bytes.chunks_mut(4).for_each(<[u8]>::reverse);
                    }
                    (_, "atime" | "mtime" | "ctime" | "crtime") => bytes.reverse(),
                    (_, "big_nextents") if version == 3 => bytes.reverse(),
                    (_, "big_nextents") => bytes[6..].reverse(),
                    _ => {}
                }
            }
            let core = RawLogDinode::<LittleEndian>::decode(&little).expect("a core");
            let back = core.to_disk();
            assert_eq!(&back.as_bytes()[..96], &region[..96], "version {version}");
            if version == 3 {
                assert_eq!(back.as_bytes()[104..], disk.as_bytes()[104..], "version {version}");
            }
        }
    }

    #[test]
    fn cores_of_both_lengths() {
        let mut region = [0u8; 176];
        region[4] = 3;
        region[24] = 9;
        region[31] = 1;
        region[76] = 7;
        region[80] = 5;
        let core = RawLogDinode::<LittleEndian>::decode(&region).expect("a v3 core");
        assert_eq!(core.extents(true), (9 | 1 << 56, 7));
        assert_eq!(core.extents(false), (7, 5));
        assert_eq!(core.flushiter(), 0x100);
        assert!(RawLogDinode::<LittleEndian>::decode(&region[..96]).is_err(), "a v3 core cannot be short");
        region[4] = 2;
        assert_eq!(RawLogDinode::<LittleEndian>::decode(&region[..96]).expect("a v2 core").extents(false), (7, 5));
        assert!(RawLogDinode::<LittleEndian>::decode(&region[..100]).is_err());
    }
}
