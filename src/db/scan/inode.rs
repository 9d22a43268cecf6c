//! What the scan says of an inode, and of the files that describe the filesystem.

use super::block_type::BlockType;
use super::events::Sink;
use super::fork::ForkCount;
use super::group::{Scan, alternate_hex};
use crate::geometry::Geometry;
use crate::ondisk::dinode::{flags, flags2, format};
use crate::ondisk::{NULLAGINO, OnDisk, RawDinode, RawDinodeCore};
use zerocopy::{FromZeros, IntoBytes};

/// What else is known of an inode after its scan.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traits {
    pub directory: bool,
    pub security: bool,
}

/// An inode under scan.
pub(super) struct InodeScan<'s> {
    pub scan: &'s Scan<'s>,
    pub sink: &'s mut Sink,
    pub ino: u64,
    pub raw: RawDinode,
    pub bytes: &'s [u8],
    /// Everything about the inode is told.
    pub all: bool,
    /// Findings about the inode are told.
    pub shown: bool,
}

/// Kinds of files, as modes tell them.
mod kind {
    pub const FIFO: u16 = 1;
    pub const CHAR: u16 = 2;
    pub const DIRECTORY: u16 = 4;
    pub const BLOCK: u16 = 6;
    pub const REGULAR: u16 = 8;
    pub const SYMLINK: u16 = 10;
    pub const SOCKET: u16 = 12;
    pub const MOUNT: u16 = 14;
}

/// Bits of the mode that make a program run as somebody else.
const SET_ID: u16 = 0o6000;

/// The formats that the data fork of a kind of file can have, as bits.
fn formats_of(kind: u16) -> u32 {
    let bit = |format: u8| 1_u32 << format;
    match kind {
        kind::FIFO | kind::CHAR | kind::BLOCK | kind::SOCKET => bit(format::DEV),
        kind::DIRECTORY => bit(format::LOCAL) | bit(format::EXTENTS) | bit(format::BTREE),
        kind::REGULAR => bit(format::EXTENTS) | bit(format::BTREE),
        kind::SYMLINK => bit(format::LOCAL) | bit(format::EXTENTS),
        kind::MOUNT => bit(format::UUID),
        _ => 0,
    }
}

fn format_name(format: u8) -> &'static str {
    match format {
        format::DEV => "dev",
        format::LOCAL => "local",
        format::EXTENTS => "extents",
        format::BTREE => "btree",
        _ => "uuid",
    }
}

impl<'s> InodeScan<'s> {
    /// The inode `ino`, which stands at the start of `bytes`; `None` when they are too few.
    pub fn new(scan: &'s Scan<'s>, sink: &'s mut Sink, ino: u64, bytes: &'s [u8]) -> Option<Self> {
        let (core, _) = RawDinodeCore::prefix(bytes)?;
        let mut raw = RawDinode::new_zeroed();
        let len = core.literal_offset();
        raw.as_mut_bytes().get_mut(..len)?.copy_from_slice(bytes.get(..len)?);
        let all = scan.options.tells_all(ino);
        let shown = scan.tells() || all || scan.options.lists(fsb_of(scan.reader.geometry(), ino));
        Some(InodeScan { scan, sink, ino, raw, bytes, all, shown })
    }

    pub fn geometry(&self) -> &'s Geometry {
        self.scan.reader.geometry()
    }

    /// The number as it is printed.
    pub fn number(&self) -> i64 {
        self.ino.cast_signed()
    }

    /// The filesystem block in which it lies.
    pub fn fsb(&self) -> u64 {
        fsb_of(self.geometry(), self.ino)
    }

    fn error(&mut self, line: impl FnOnce() -> String) {
        self.sink.error(self.shown, line);
    }

    /// Magic number and version; whether there is more to look at.
    fn check_identity(&mut self, always: bool) -> bool {
        let core = &self.raw.core;
        let (magic, version, number) = (core.magic.get(), core.version, self.number());
        let known = if self.geometry().features.has_crc() { version == 3 } else { matches!(version, 1 | 2) };
        let shown = self.shown || always;
        if magic != RawDinode::MAGIC {
            let magic = alternate_hex(u32::from(magic));
            self.sink.error(shown, || format!("bad magic number {magic} for inode {number}"));
            return false;
        }
        if !known {
            let version = alternate_hex(u32::from(version));
            self.sink.error(shown, || format!("bad version number {version} for inode {number}"));
        }
        known
    }

    /// Checks an inode that is not in use.
    pub fn check_free(mut self) {
        if !self.check_identity(true) {
            return;
        }
        let (blocks, links) = (self.raw.core.nblocks.get(), self.raw.links());
        let (mode, number) = (self.raw.core.mode.get(), self.number());
        if blocks != 0 {
            self.error(|| format!("bad nblocks {} for free inode {number}", blocks.cast_signed()));
        }
        if links != 0 {
            self.error(|| format!("bad nlink {} for free inode {number}", links.cast_signed()));
        }
        if mode != 0 {
            self.error(|| format!("bad mode {} for free inode {number}", octal(mode)));
        }
    }

    /// Checks an inode that is in use, and all that belongs to it.
    pub fn check(mut self) -> Traits {
        self.scan.reader.check_inode(self.ino, self.bytes);
        if !self.check_identity(false) || !self.check_core() {
            return Traits::default();
        }
        if self.all || self.scan.options.lists(self.fsb()) {
            self.tell();
        }
        let block_type = self.block_type();
        let mode = self.raw.core.mode.get();
        let traits = Traits {
            directory: block_type == BlockType::Dir,
            security: match mode >> 12 {
                kind::REGULAR => mode & SET_ID != 0,
                kind::DIRECTORY | kind::SYMLINK => false,
                _ => true,
            },
        };
        if has_map(block_type) && !traits.directory {
            // no directory names the files that describe the filesystem
            self.add_link(self.ino);
        }
        if self.all {
            let is = if traits.directory { "is" } else { "not" };
            let line = format!("inode {} nlink {} {is} dir", self.number(), self.raw.links());
            self.sink.say(line);
        }
        self.check_forks(block_type);
        traits
    }

    /// The fields of the core; whether the forks can be looked at.
    fn check_core(&mut self) -> bool {
        let core = self.raw.core;
        let number = self.number();
        let unlinked = core.next_unlinked.get();
        if unlinked != NULLAGINO {
            let unlinked = alternate_hex(unlinked);
            self.error(|| format!("bad next unlinked {unlinked} for inode {number}"));
        }
        let mode = core.mode.get();
        // the bit is looked for as a machine word has it
        if formats_of(mode >> 12) & 1_u32.wrapping_shl(u32::from(core.format)) == 0 {
            let kind = octal(mode & 0xf000);
            self.error(|| format!("bad format {} for inode {number} type {kind}", core.format));
            return false;
        }
        if core.forkoff != 0 && core.fork_offset() > self.literal().len() {
            self.error(|| format!("bad fork offset {} for inode {number}", core.forkoff));
            return false;
        }
        if !(0..=3).contains(&core.aformat) {
            self.error(|| format!("bad attribute format {} for inode {number}", core.aformat));
            return false;
        }
        true
    }

    fn tell(&mut self) {
        let core = &self.raw.core;
        let flag = |bit: u16, name: &'static str| if core.flags.get() & bit != 0 { name } else { "" };
        let flags = [
            flag(flags::REALTIME, " rt"),
            flag(flags::PREALLOC, " pre"),
            flag(flags::IMMUTABLE, " imm"),
            flag(flags::APPEND, " app"),
            flag(flags::SYNC, " syn"),
            flag(flags::NOATIME, " noa"),
            flag(flags::NODUMP, " nod"),
        ];
        let line = format!(
            "inode {} mode {} fmt {} afmt {} nex {} anex {} nblk {} sz {}{}",
            self.number(),
            octal(core.mode.get()),
            format_name(core.format),
            format_name(core.aformat.cast_unsigned()),
            low_int(self.raw.data_extents()),
            self.raw.attr_extents().cast_signed(),
            core.nblocks.get().cast_signed(),
            core.size.get().cast_signed(),
            flags.concat()
        );
        self.sink.say(line);
    }

    /// What the blocks of its data fork are used for.
    fn block_type(&self) -> BlockType {
        let sb = self.scan.sb;
        match self.raw.core.mode.get() >> 12 {
            kind::DIRECTORY => BlockType::Dir,
            kind::SYMLINK => BlockType::Symlink,
            kind::REGULAR if self.raw.core.flags.get() & flags::REALTIME != 0 => BlockType::RtData,
            kind::REGULAR if self.ino == sb.rbmino.get() => BlockType::RtBitmap,
            kind::REGULAR if self.ino == sb.rsumino.get() => BlockType::RtSum,
            kind::REGULAR if self.is_quota_file() => BlockType::Quota,
            kind::REGULAR => BlockType::Data,
            _ => BlockType::Unknown,
        }
    }

    fn is_quota_file(&self) -> bool {
        let sb = self.scan.sb;
        [sb.uquotino, sb.gquotino, sb.pquotino].iter().any(|file| file.get() == self.ino)
    }

    pub fn is_reflink(&self) -> bool {
        self.geometry().features.has_crc() && self.raw.flags2.get() & flags2::REFLINK != 0
    }

    /// The bytes behind the core.
    pub fn literal(&self) -> &'s [u8] {
        self.bytes.get(self.raw.core.literal_offset()..).unwrap_or(&[])
    }

    fn check_forks(&mut self, block_type: BlockType) {
        let map = has_map(block_type);
        let data = self.data_fork(block_type, map);
        let attr = if self.raw.core.forkoff == 0 { ForkCount::default() } else { self.attr_fork() };
        self.compare(&data, &attr);
        match (block_type, data.map) {
            (BlockType::Dir, map) => self.directory(map),
            (BlockType::RtBitmap, Some(map)) => self.rt_bitmap(&map),
            (BlockType::RtSum, Some(map)) => self.rt_summary(&map),
            (BlockType::Quota, Some(map)) => self.quota(&map),
            _ => {}
        }
    }

    fn compare(&mut self, data: &ForkCount, attr: &ForkCount) {
        let number = self.number();
        let (stored, counted) = (self.raw.core.nblocks.get(), data.blocks.wrapping_add(attr.blocks));
        if stored != counted {
            let (stored, counted) = (stored.cast_signed(), counted.cast_signed());
            self.error(|| format!("bad nblocks {stored} for inode {number}, counted {counted}"));
        }
        if self.raw.data_extents() != data.extents {
            let (stored, counted) = (low_int(self.raw.data_extents()), low_int(data.extents));
            self.error(|| format!("bad nextents {stored} for inode {number}, counted {counted}"));
        }
        if u64::from(self.raw.attr_extents()) != attr.extents {
            let (stored, counted) = (self.raw.attr_extents().cast_signed(), low_int(attr.extents));
            self.error(|| format!("bad anextents {stored} for inode {number}, counted {counted}"));
        }
    }

    /// Counts a link of inode `ino`, where that is told.
    pub fn add_link(&mut self, ino: u64) {
        if self.scan.options.tells_all(ino) {
            self.sink.push(super::message::Message::AddLink(ino));
        }
    }

    /// Whether an inode of this number could be found by it.
    pub fn is_addressable(&self, ino: u64) -> bool {
        let agno = ino >> self.geometry().inodes.agino_log;
        agno < u64::from(self.geometry().agcount)
    }
}

/// Whether a scan looks into the contents of such files.
fn has_map(block_type: BlockType) -> bool {
    matches!(block_type, BlockType::Dir | BlockType::RtBitmap | BlockType::RtSum | BlockType::Quota)
}

fn fsb_of(geometry: &Geometry, ino: u64) -> u64 {
    ino >> geometry.inodes.per_block_log
}

/// A number as `%d` prints one that is longer.
pub(super) fn low_int(number: u64) -> i32 {
    let low = number & u64::from(u32::MAX);
    u32::try_from(low).map_or(0, u32::cast_signed)
}

/// A number in octal with a leading 0.
fn octal(number: u16) -> String {
    if number == 0 { "0".to_owned() } else { format!("0{number:o}") }
}
