//! The checks of an inode's core (Linux `fs/xfs/libxfs/xfs_inode_buf.c`, `xfs_dinode_verify`). Where Linux stops at
//! the first that fails, all are made here.

use super::inode::FileType;
use crate::error::{Check, Place, Rule, Verdict};
use crate::geometry::{Geometry, Ino};
use crate::ondisk::dinode::{flags, flags2, format, metatype};
use crate::ondisk::extent::MAX_BLOCKCOUNT;
use crate::ondisk::{OnDisk, RawDinode, RawExtent, crc};

/// Flags that metadata directories have.
const METADIR_FLAGS: u16 = METAFILE_FLAGS | flags::NOSYMLINKS;
/// Flags that other metadata files have.
const METAFILE_FLAGS: u16 = flags::IMMUTABLE | flags::SYNC | flags::NOATIME | flags::NODUMP | flags::NODEFRAG;
/// Permission bits of a mode.
const PERMISSIONS: u16 = 0o777;
/// Bytes of a device number's fork.
const DEVICE_FORK: usize = 8;

/// The verdict on inode `ino`, whose core is `raw` and whose bytes are `bytes`.
pub(super) fn check_inode(geometry: &Geometry, ino: Ino, raw: &RawDinode, bytes: &[u8], place: &Place) -> Verdict {
    let mut checks = Checks { geometry, raw, place, verdict: Verdict::new() };
    if raw.core.magic.get() != RawDinode::MAGIC {
        checks.fail("magic", Rule::Magic, format!("{:#06x}", raw.core.magic.get()));
        return checks.verdict;
    }
    checks.identity(ino, bytes);
    checks.mode_and_size();
    checks.counts();
    checks.forks();
    let realtime = raw.core.flags.get() & flags::REALTIME != 0;
    checks.require(!realtime || geometry.realtime.blocks > 0 || checks.is_free(), "flags", Rule::Flags);
    checks.extent_size_hint();
    if raw.core.version >= 3 {
        checks.version_3();
    }
    checks.verdict
}

struct Checks<'a> {
    geometry: &'a Geometry,
    raw: &'a RawDinode,
    place: &'a Place,
    verdict: Verdict,
}

impl Checks<'_> {
    fn fail(&mut self, field: &'static str, rule: Rule, detail: String) {
        self.verdict.fail(Check::new("dinode", field, rule), self.place.clone(), detail);
    }

    fn require(&mut self, holds: bool, field: &'static str, rule: Rule) {
        if !holds {
            self.fail(field, rule, String::new());
        }
    }

    fn is_free(&self) -> bool {
        self.raw.core.mode.get() == 0
    }

    fn file_type(&self) -> Option<FileType> {
        FileType::from_mode(self.raw.core.mode.get())
    }

    fn identity(&mut self, ino: Ino, bytes: &[u8]) {
        let (raw, version) = (self.raw, self.raw.core.version);
        let fits = if self.geometry.features.has_crc() { version == 3 } else { version == 1 || version == 2 };
        if !fits {
            self.fail("version", Rule::Version, version.to_string());
        }
        if version >= 3 {
            self.require(crc::matches(bytes, RawDinode::CRC_OFFSET), "crc", Rule::Crc);
            self.require(raw.uuid == self.geometry.meta_uuid, "uuid", Rule::Uuid);
            if raw.ino.get() != ino.0 {
                self.fail("ino", Rule::Address, raw.ino.get().to_string());
            }
        }
        let metatype_in_use = version == 1 || raw.is_metadata();
        self.require(metatype_in_use || raw.core.metatype.get() == 0, "metatype", Rule::Padding);
    }

    fn mode_and_size(&mut self) {
        let (core, kind) = (&self.raw.core, self.file_type());
        let size = core.size.get();
        self.require(size >> 63 == 0, "size", Rule::Range);
        self.require(self.is_free() || kind.is_some(), "mode", Rule::Range);
        let needs_size = matches!(kind, Some(FileType::Directory | FileType::Symlink));
        self.require(!needs_size || size != 0 || self.raw.links() == 0, "size", Rule::Mismatch);
        let counter_free = if self.raw.has_large_counters() {
            core.anextents.get() == 0
        } else {
            core.version < 3 || core.big_nextents.get() == 0
        };
        self.require(counter_free, "nrext64_pad", Rule::Padding);
        let large = self.raw.has_large_counters();
        self.require(!large || self.geometry.features.has_nrext64(), "flags2", Rule::Flags);
    }

    fn counts(&mut self) {
        let extents = self.raw.data_extents().saturating_add(u64::from(self.raw.attr_extents()));
        let nblocks = self.raw.core.nblocks.get();
        if !self.is_free() && extents > nblocks {
            self.fail("nblocks", Rule::Mismatch, format!("{nblocks} blocks, {extents} extents"));
        }
        let meta_btree = self.raw.core.format == format::META_BTREE;
        let none = self.raw.core.version >= 3 && extents == 0 && !meta_btree;
        self.require(!none || nblocks == 0, "nblocks", Rule::Mismatch);
    }

    fn forks(&mut self) {
        let core = &self.raw.core;
        let literal = usize::try_from(self.geometry.inodes.literal_size).unwrap_or(0);
        let start = core.fork_offset();
        let start_fits = match core.format {
            _ if start == 0 => true,
            format::DEV => start == DEVICE_FORK,
            format::META_BTREE if !self.geometry.features.has_parent() => false,
            format::LOCAL | format::EXTENTS | format::BTREE | format::META_BTREE => start < literal,
            _ => false,
        };
        if !start_fits {
            self.fail("forkoff", Rule::Range, core.forkoff.to_string());
        }
        let data_len = if start == 0 { literal } else { start.min(literal) };
        self.data_fork(data_len);
        let aformat = core.aformat.to_be_bytes()[0];
        let extents = u64::from(self.raw.attr_extents());
        if start == 0 {
            self.require(matches!(aformat, 0 | format::EXTENTS), "aformat", Rule::Range);
            self.require(extents == 0, "anextents", Rule::Mismatch);
        } else {
            let most = self.geometry.inodes.max_attr_extents;
            self.require(aformat != format::META_BTREE, "aformat", Rule::Range);
            self.fork(["aformat", "anextents"], aformat, extents, literal.saturating_sub(start), most);
        }
    }

    fn data_fork(&mut self, len: usize) {
        let (core, kind) = (&self.raw.core, self.file_type());
        let small = usize::try_from(core.size.get()).is_ok_and(|size| size <= len);
        match kind {
            None => return,
            Some(FileType::Fifo | FileType::CharDevice | FileType::BlockDevice | FileType::Socket) => {
                self.require(core.format == format::DEV, "format", Rule::Mismatch);
                return;
            }
            Some(FileType::Directory) => {
                let local = core.size.get() == 0 || !small || core.format == format::LOCAL;
                self.require(local, "format", Rule::Mismatch);
            }
            Some(FileType::Symlink) => {
                let fits = !small || matches!(core.format, format::LOCAL | format::EXTENTS);
                self.require(fits, "format", Rule::Mismatch);
            }
            Some(FileType::Regular) => self.require(core.format != format::LOCAL, "format", Rule::Mismatch),
        }
        self.require(small || core.format != format::LOCAL, "size", Rule::Mismatch);
        let most = self.geometry.inodes.max_data_extents;
        self.fork(["format", "nextents"], core.format, self.raw.data_extents(), len, most);
    }

    fn fork(&mut self, [format_field, count_field]: [&'static str; 2], form: u8, count: u64, len: usize, most: u64) {
        let listed = u64::try_from(len / RawExtent::SIZE).unwrap_or(u64::MAX);
        let fits = match form {
            format::LOCAL => count == 0,
            format::EXTENTS => count <= listed,
            format::BTREE => count <= most,
            format::META_BTREE => {
                let features = &self.geometry.features;
                let known = match self.raw.core.metatype.get() {
                    metatype::RTRMAP => features.has_rmapbt(),
                    metatype::RTREFCOUNT => features.has_reflink(),
                    _ => false,
                };
                let metadata = features.has_metadir() && self.raw.is_metadata();
                return self.require(metadata && known, format_field, Rule::Mismatch);
            }
            _ => return self.fail(format_field, Rule::Range, form.to_string()),
        };
        if !fits {
            self.fail(count_field, Rule::Count, count.to_string());
        }
    }

    fn extent_size_hint(&mut self) {
        let core = &self.raw.core;
        let (hint, inherit) = (core.flags.get() & flags::EXTSIZE != 0, core.flags.get() & flags::EXTSZINHERIT != 0);
        let kind = self.file_type();
        self.require(!hint || kind == Some(FileType::Regular), "flags", Rule::Flags);
        self.require(!inherit || kind == Some(FileType::Directory), "flags", Rule::Flags);
        self.hint("extsize", core.extsize.get(), hint || inherit);
    }

    fn hint(&mut self, field: &'static str, blocks: u32, in_force: bool) {
        let realtime = self.raw.core.flags.get() & flags::REALTIME != 0;
        let unit = if realtime { self.geometry.realtime.extent_blocks.max(1) } else { 1 };
        let set_as_said = if in_force { blocks != 0 } else { blocks == 0 || self.is_free() };
        let most = if realtime { MAX_BLOCKCOUNT } else { MAX_BLOCKCOUNT.min(self.geometry.agblocks / 2) };
        if !set_as_said || blocks % unit != 0 || blocks > most {
            self.fail(field, Rule::Range, blocks.to_string());
        }
    }

    fn version_3(&mut self) {
        let features = &self.geometry.features;
        let (bits, kind) = (self.raw.flags2.get(), self.file_type());
        let has = |bit| bits & bit != 0;
        let realtime = self.raw.core.flags.get() & flags::REALTIME != 0;
        let shared = has(flags2::REFLINK);
        let sound = [
            features.has_reflink() || !has(flags2::REFLINK | flags2::COWEXTSIZE),
            !shared || kind == Some(FileType::Regular),
            !shared || !realtime || features.has_rtreflink(),
            features.has_bigtime() || !has(flags2::BIGTIME),
            !has(flags2::COWEXTSIZE) || matches!(kind, Some(FileType::Regular | FileType::Directory)),
        ];
        self.require(sound.into_iter().all(|holds| holds), "flags2", Rule::Flags);
        if features.has_zoned() && self.raw.core.metatype.get() == metatype::RTRMAP {
            let most = self.geometry.realtime.groups.map_or(0, |groups| groups.extents);
            self.require(self.raw.cowextsize.get() <= most, "used_blocks", Rule::Range);
        } else {
            self.hint("cowextsize", self.raw.cowextsize.get(), has(flags2::COWEXTSIZE));
        }
        if self.raw.is_metadata() {
            self.metadata_file();
        }
    }

    fn metadata_file(&mut self) {
        let core = &self.raw.core;
        let mode = core.mode.get();
        let mandatory = match self.file_type() {
            Some(FileType::Directory) => METADIR_FLAGS,
            Some(FileType::Regular) => METAFILE_FLAGS,
            _ => return self.fail("mode", Rule::Mismatch, format!("{mode:#o}")),
        };
        self.require(self.geometry.features.has_metadir(), "flags2", Rule::Flags);
        self.require(core.metatype.get() < metatype::COUNT, "metatype", Rule::Range);
        self.require(mode & PERMISSIONS == 0, "mode", Rule::Range);
        self.require(core.dmevmask.get() == 0 && core.dmstate.get() == 0, "dmevmask", Rule::Padding);
        self.require(core.uid.get() == 0 && core.gid.get() == 0, "uid", Rule::Range);
        self.require(core.flags.get() & mandatory == mandatory, "flags", Rule::Flags);
        self.require(self.raw.flags2.get() & flags2::DAX == 0, "flags2", Rule::Flags);
    }
}
