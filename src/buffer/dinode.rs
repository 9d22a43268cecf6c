//! Checks of an inode (Linux `xfs_dinode_verify` with all that it calls).

use super::checks::Checks;
use super::kind::{BlockKind, Request};
use crate::error::{Place, Rule, Verdict};
use crate::geometry::{Daddr, Geometry, Ino};
use crate::ondisk::dinode::{
    MAX_EXTCNT_ATTR_LARGE, MAX_EXTCNT_ATTR_SMALL, MAX_EXTCNT_DATA_LARGE, MAX_EXTCNT_DATA_SMALL, flags, flags2, format,
    metatype,
};
use crate::ondisk::extent::MAX_BLOCKCOUNT;
use crate::ondisk::{OnDisk, RawDinode, RawExtent, crc};

/// Types of files in `mode`.
mod file_type {
    pub(super) const MASK: u16 = 0o170_000;
    pub(super) const FIFO: u16 = 0o010_000;
    pub(super) const CHARACTER: u16 = 0o020_000;
    pub(super) const DIRECTORY: u16 = 0o040_000;
    pub(super) const BLOCK: u16 = 0o060_000;
    pub(super) const REGULAR: u16 = 0o100_000;
    pub(super) const SYMLINK: u16 = 0o120_000;
    pub(super) const SOCKET: u16 = 0o140_000;
}

/// Flags that every metadata file has.
const METADATA_FILE: u16 = flags::IMMUTABLE | flags::SYNC | flags::NOATIME | flags::NODUMP | flags::NODEFRAG;
/// Flags that every metadata directory has.
const METADATA_DIRECTORY: u16 = METADATA_FILE | flags::NOSYMLINKS;
/// Where the attribute fork of a device inode starts, in units of 8 bytes: behind the device number.
const DEVICE_FORKOFF: u8 = 1;

/// Every check that `bytes`, as long as an inode, fail as inode `ino`.
pub(super) fn verify(geometry: &Geometry, ino: Ino, bytes: &[u8]) -> Verdict {
    let daddr = geometry.ino_fsb(ino).and_then(|fsb| geometry.fsb_daddr(fsb));
    let request = Request::of_len(BlockKind::InodeCluster, daddr.unwrap_or(Daddr(0)), geometry.inodes.size);
    let place = Place {
        inode: Some(ino.0),
        offset: geometry.ino_parts(ino).map(|parts| u64::from(parts.index) << geometry.inodes.log),
        ..request.place(geometry)
    };
    let mut checks = Checks::new(geometry, &request, bytes, "dinode", place);
    match RawDinode::prefix(bytes) {
        Some((raw, _)) => Inode::new(geometry, raw).verify(ino, &mut checks),
        None => checks.truncated(),
    }
    checks.into_verdict()
}

/// An inode with what its checks ask for again and again.
struct Inode<'a> {
    raw: &'a RawDinode,
    geometry: &'a Geometry,
    mode: u16,
    flags: u16,
    flags2: u64,
    size: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fork {
    Data,
    Attr,
}

impl<'a> Inode<'a> {
    fn new(geometry: &'a Geometry, raw: &'a RawDinode) -> Self {
        Inode {
            raw,
            geometry,
            mode: raw.core.mode.get(),
            flags: raw.core.flags.get(),
            flags2: raw.flags2_or_zero(),
            size: raw.core.size.get(),
        }
    }

    fn file_type(&self) -> u16 {
        self.mode & file_type::MASK
    }

    /// Inodes not in use have no mode.
    fn in_use(&self) -> bool {
        self.mode != 0
    }

    fn verify(&self, ino: Ino, checks: &mut Checks<'_>) {
        self.identity(ino, checks);
        self.links_and_size(checks);
        self.counters(checks);
        self.forks(checks);
        self.extent_size(checks);
        if self.raw.core.version >= 3 {
            self.flags_v3(checks);
            if self.flags2 & flags2::METADATA != 0 {
                self.metadata(checks);
            }
        }
    }

    fn identity(&self, ino: Ino, checks: &mut Checks<'_>) {
        let core = &self.raw.core;
        let crc = self.geometry.features.has_crc();
        checks.require(core.magic.get() == RawDinode::MAGIC, "magic", Rule::Magic, || format!("{:#x}", core.magic));
        if crc {
            let intact = crc::matches(checks.bytes, RawDinode::CRC_OFFSET);
            checks.require(intact, "crc", Rule::Crc, || format!("{:#010x}", self.raw.crc));
            checks.require(self.raw.uuid == self.geometry.meta_uuid, "uuid", Rule::Uuid, String::new);
            checks.equal("ino", Rule::Address, self.raw.ino.get(), ino.0);
        }
        let good = if crc { core.version == 3 } else { matches!(core.version, 1 | 2) };
        checks.require(good, "version", Rule::Version, || format!("{}", core.version));
    }

    fn links_and_size(&self, checks: &mut Checks<'_>) {
        let core = &self.raw.core;
        // in version 1 the field holds the link count
        if core.version >= 2 && self.flags2 & flags2::METADATA == 0 {
            let kind = core.metatype.get();
            checks.require(kind == 0, "metatype", Rule::Padding, || format!("{kind}"));
        }
        checks.require(self.size >> 63 == 0, "size", Rule::Range, || format!("{:#x}", self.size));
        let known = matches!(
            self.file_type(),
            file_type::FIFO
                | file_type::CHARACTER
                | file_type::DIRECTORY
                | file_type::BLOCK
                | file_type::REGULAR
                | file_type::SYMLINK
                | file_type::SOCKET
        );
        checks.require(!self.in_use() || known, "mode", Rule::Range, || format!("{:#o}", self.mode));
        let never_empty = matches!(self.file_type(), file_type::SYMLINK | file_type::DIRECTORY);
        let empty = never_empty && self.size == 0 && self.raw.links() != 0;
        checks.require(!empty, "size", Rule::Mismatch, || "0, and the inode has links".to_owned());
    }

    fn counters(&self, checks: &mut Checks<'_>) {
        let core = &self.raw.core;
        if self.raw.has_large_counters() {
            let allowed = self.geometry.features.has_nrext64();
            checks.require(allowed, "flags2", Rule::Flags, || "large counters without the feature".to_owned());
            checks.require(core.anextents.get() == 0, "anextents", Rule::Padding, || format!("{}", core.anextents));
        } else if core.version >= 3 {
            let pad = core.big_nextents.get();
            checks.require(pad == 0, "big_nextents", Rule::Padding, || format!("{pad}"));
        }
        let (data, attr) = (self.raw.data_extents(), u64::from(self.raw.attr_extents()));
        let blocks = core.nblocks.get();
        if self.in_use() {
            let enough = data.saturating_add(attr) <= blocks;
            checks.require(enough, "nblocks", Rule::Mismatch, || format!("{blocks}, with {data} and {attr} extents"));
            let has_rt = self.flags & flags::REALTIME == 0 || self.geometry.features.has_realtime();
            checks.require(has_rt, "flags", Rule::Mismatch, || "realtime, and there is no such section".to_owned());
        }
        if self.file_type() == file_type::DIRECTORY {
            checks.range("nextents", data, 0u32, self.geometry.directory.end.0);
        }
        if core.version >= 3 && core.format != format::META_BTREE && data == 0 && attr == 0 {
            checks.require(blocks == 0, "nblocks", Rule::Mismatch, || format!("{blocks}, and there are no extents"));
        }
    }

    fn forks(&self, checks: &mut Checks<'_>) {
        let core = &self.raw.core;
        self.forkoff(checks);
        match self.file_type() {
            file_type::FIFO | file_type::CHARACTER | file_type::BLOCK | file_type::SOCKET => {
                let format = core.format;
                checks.require(format == format::DEV, "format", Rule::Mismatch, || format!("{format} of a device"));
            }
            file_type::REGULAR | file_type::SYMLINK | file_type::DIRECTORY => self.fork(Fork::Data, checks),
            _ => {}
        }
        if core.forkoff != 0 {
            self.fork(Fork::Attr, checks);
            return;
        }
        // inodes never used have zeroes
        let aformat = core.aformat;
        let fine = matches!(u8::try_from(aformat), Ok(0 | format::EXTENTS));
        checks.require(fine, "aformat", Rule::Mismatch, || format!("{aformat}, and there is no attribute fork"));
        let extents = self.raw.attr_extents();
        checks.require(extents == 0, "anextents", Rule::Mismatch, || {
            format!("{extents}, and there is no attribute fork")
        });
    }

    fn forkoff(&self, checks: &mut Checks<'_>) {
        let forkoff = self.raw.core.forkoff;
        if forkoff == 0 {
            return;
        }
        let fine = match self.raw.core.format {
            format::DEV => forkoff == DEVICE_FORKOFF,
            format::META_BTREE if !self.geometry.features.has_metadir() || !self.geometry.features.has_parent() => {
                false
            }
            format::LOCAL | format::EXTENTS | format::BTREE | format::META_BTREE => {
                u32::from(forkoff) < self.geometry.inodes.literal_size >> 3
            }
            _ => return checks.fail("format", Rule::Range, format!("{}", self.raw.core.format)),
        };
        checks.require(fine, "forkoff", Rule::Range, || format!("{forkoff}"));
    }

    /// Bytes of a fork.
    fn fork_size(&self, fork: Fork) -> u64 {
        let literal = u64::from(self.geometry.inodes.literal_size);
        let offset = self.raw.core.fork_offset() as u64;
        match fork {
            Fork::Data if offset == 0 => literal,
            Fork::Data => offset,
            Fork::Attr => literal.saturating_sub(offset),
        }
    }

    fn fork(&self, fork: Fork, checks: &mut Checks<'_>) {
        let core = &self.raw.core;
        let size = self.fork_size(fork);
        let (field, counter, format, extents, most) = match fork {
            Fork::Data => {
                let most = if self.raw.has_large_counters() { MAX_EXTCNT_DATA_LARGE } else { MAX_EXTCNT_DATA_SMALL };
                ("format", "nextents", core.format, self.raw.data_extents(), most)
            }
            Fork::Attr => {
                let most = if self.raw.has_large_counters() { MAX_EXTCNT_ATTR_LARGE } else { MAX_EXTCNT_ATTR_SMALL };
                let format = u8::try_from(core.aformat).unwrap_or(u8::MAX);
                ("aformat", "anextents", format, u64::from(self.raw.attr_extents()), most)
            }
        };
        if fork == Fork::Data {
            self.local_size(size, checks);
        }
        match format {
            format::LOCAL => {
                let regular = fork == Fork::Data && self.file_type() == file_type::REGULAR;
                checks.require(!regular, field, Rule::Mismatch, || "local contents of a regular file".to_owned());
                checks.require(extents == 0, counter, Rule::Mismatch, || format!("{extents} in a local fork"));
            }
            format::EXTENTS => {
                let room = size / RawExtent::SIZE as u64;
                checks.require(extents <= room, counter, Rule::Count, || format!("{extents}, room is for {room}"));
            }
            format::BTREE => checks.range(counter, extents, 0u32, most),
            format::META_BTREE => self.metadata_btree(field, checks),
            _ => checks.fail(field, Rule::Range, format!("{format}")),
        }
    }

    /// What fits into the inode is kept there, and nothing else is.
    fn local_size(&self, fork_size: u64, checks: &mut Checks<'_>) {
        let format = self.raw.core.format;
        let fits = self.size <= fork_size;
        let fine = match self.file_type() {
            file_type::DIRECTORY if self.size != 0 && fits => format == format::LOCAL,
            // a target moves out when attributes need the space, and stays there
            file_type::SYMLINK if fits => matches!(format, format::LOCAL | format::EXTENTS),
            _ => fits || format != format::LOCAL,
        };
        checks.require(fine, "size", Rule::Mismatch, || {
            format!("{} in a fork of {fork_size} bytes and format {format}", self.size)
        });
    }

    fn metadata_btree(&self, field: &'static str, checks: &mut Checks<'_>) {
        let features = &self.geometry.features;
        let metadata = features.has_metadir() && self.flags2 & flags2::METADATA != 0;
        let fine = metadata
            && match self.raw.core.metatype.get() {
                metatype::RTRMAP => features.has_rmapbt(),
                metatype::RTREFCOUNT => features.has_reflink(),
                _ => false,
            };
        checks.require(fine, field, Rule::Mismatch, || "the root of a metadata btree".to_owned());
    }

    fn extent_size(&self, checks: &mut Checks<'_>) {
        let (hint, inherit) = (self.flags & flags::EXTSIZE != 0, self.flags & flags::EXTSZINHERIT != 0);
        let kind = self.file_type();
        let right_kind = (!hint || kind == file_type::REGULAR) && (!inherit || kind == file_type::DIRECTORY);
        checks
            .require(right_kind, "flags", Rule::Mismatch, || format!("extent size of a file of mode {:#o}", self.mode));
        self.hint("extsize", self.raw.core.extsize.get(), hint || inherit, checks);
    }

    /// A hint of `blocks` blocks that is in force when `set`.
    fn hint(&self, field: &'static str, blocks: u32, set: bool, checks: &mut Checks<'_>) {
        checks.require(!set || blocks != 0, field, Rule::Mismatch, || "0, and the hint is in force".to_owned());
        // inodes not in use lose their flags and keep the number
        let stray = self.in_use() && !set && blocks != 0;
        checks.require(!stray, field, Rule::Mismatch, || format!("{blocks}, and no hint is in force"));
        let realtime = self.flags & flags::REALTIME != 0;
        let unit = if realtime { self.geometry.realtime.extent_blocks } else { 1 };
        let whole = blocks % unit.max(1) == 0;
        let most = if realtime { MAX_BLOCKCOUNT } else { MAX_BLOCKCOUNT.min(self.geometry.agblocks / 2) };
        checks.require(whole && blocks <= most, field, Rule::Range, || format!("{blocks} blocks"));
    }

    fn flags_v3(&self, checks: &mut Checks<'_>) {
        let features = &self.geometry.features;
        let (reflink, cow) = (self.flags2 & flags2::REFLINK != 0, self.flags2 & flags2::COWEXTSIZE != 0);
        let kind = self.file_type();
        let bigtime = self.raw.has_bigtime() && !features.has_bigtime();
        checks.require(!bigtime, "flags2", Rule::Flags, || "bigtime without the feature".to_owned());
        let shared = (reflink || cow) && !features.has_reflink();
        checks.require(!shared, "flags2", Rule::Flags, || "shared blocks without the feature".to_owned());
        let fine = !reflink || kind == file_type::REGULAR;
        checks.require(fine, "flags2", Rule::Mismatch, || format!("shared blocks of mode {:#o}", self.mode));
        let realtime = reflink && self.flags & flags::REALTIME != 0 && !features.has_rtreflink();
        checks.require(!realtime, "flags2", Rule::Mismatch, || "shared blocks of a realtime file".to_owned());
        let blocks = self.raw.cowextsize.get();
        if features.has_zoned() && self.raw.core.metatype.get() == metatype::RTRMAP {
            let most = self.geometry.realtime.groups.map_or(0, |groups| groups.extents);
            checks.range("cowextsize", blocks, 0u32, most);
            return;
        }
        let right_kind = !cow || matches!(kind, file_type::DIRECTORY | file_type::REGULAR);
        checks.require(right_kind, "flags2", Rule::Mismatch, || format!("copy-on-write hint of mode {:#o}", self.mode));
        self.hint("cowextsize", blocks, cow, checks);
    }

    /// Linux `xfs_dinode_verify_metadir`.
    fn metadata(&self, checks: &mut Checks<'_>) {
        let core = &self.raw.core;
        let allowed = self.geometry.features.has_metadir();
        checks.require(allowed, "flags2", Rule::Flags, || "metadata without the feature".to_owned());
        checks.range("metatype", core.metatype.get(), 0u32, metatype::COUNT - 1);
        let kind = self.file_type();
        let right_kind = matches!(kind, file_type::DIRECTORY | file_type::REGULAR);
        checks.require(right_kind && self.mode & 0o777 == 0, "mode", Rule::Mismatch, || {
            format!("{:#o} of a metadata file", self.mode)
        });
        let unused = core.dmevmask.get() == 0 && core.dmstate.get() == 0;
        checks.require(unused, "dmevmask", Rule::Padding, || format!("{} and {}", core.dmevmask, core.dmstate));
        let owned = core.uid.get() != 0 || core.gid.get() != 0;
        checks.require(!owned, "uid", Rule::Mismatch, || format!("{}, group {}", core.uid, core.gid));
        let needed = if kind == file_type::DIRECTORY { METADATA_DIRECTORY } else { METADATA_FILE };
        let missing = needed & !self.flags;
        checks.require(missing == 0, "flags", Rule::Flags, || format!("{missing:#x} are not set on a metadata file"));
        let dax = self.flags2 & flags2::DAX != 0;
        checks.require(!dax, "flags2", Rule::Mismatch, || "a metadata file that is mapped directly".to_owned());
    }
}
