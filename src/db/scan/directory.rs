//! What the scan says of a directory.

use std::collections::BTreeMap;

use super::dir_hashes::DirHashes;
use super::file_map::{FileMap, Run};
use super::inode::{InodeScan, low_int};
use super::names::ParentEvent;
use crate::buffer::{BlockKind, Fragment, Request};
use crate::geometry::{DirectoryGeometry, Ino};
use crate::ondisk::da_block::{DA3_NODE_MAGIC, RawDaBlkinfo};
use crate::ondisk::dinode::format;
use crate::ondisk::dir_data::{DIR3_BLOCK_MAGIC, DIR3_DATA_MAGIC, entry_len};
use crate::ondisk::dir_leaf::{DIR2_LEAF1_MAGIC, DIR3_FREE_MAGIC, DIR3_LEAF1_MAGIC, DIR3_LEAFN_MAGIC};
use crate::ondisk::dir_short::{RawDirSfCounts, RawDirSfEntry, RawDirSfHdr4, RawDirSfHdr8, WIDE_INUMBER_MASK};
use crate::ondisk::name_hash::NameHash;
use crate::ondisk::{Be32, NULLFSINO, OnDisk};
use zerocopy::FromBytes;

/// A directory under scan.
pub(super) struct DirScan<'a, 's> {
    pub inode: &'a mut InodeScan<'s>,
    pub hashes: DirHashes,
    pub hash: NameHash,
    /// Longest free range of each data block that the free index has not named yet.
    pub free: BTreeMap<u32, u16>,
    /// Data blocks up to the last one seen.
    pub data_blocks: u32,
    /// Findings about the current block are told.
    pub shown: bool,
    /// Everything about the current block is told.
    pub all: bool,
    dots: u32,
    dotdots: u32,
    order: u32,
}

impl<'s> InodeScan<'s> {
    /// Scans the directory that the inode is; `map` tells where its blocks lie, if it has any.
    pub fn directory(&mut self, map: Option<FileMap>) {
        let (number, root) = (self.number(), self.scan.sb.rootino.get());
        let shown = self.scan.tells();
        let hash = if self.geometry().features.has_asciici() { NameHash::AsciiCi } else { NameHash::Bytes };
        let mut dir = DirScan {
            hashes: DirHashes::default(),
            hash,
            free: BTreeMap::new(),
            data_blocks: 0,
            shown,
            all: self.all,
            dots: 0,
            dotdots: 0,
            order: 0,
            inode: self,
        };
        let Some(parent) = dir.scan(map) else { return };
        let (dots, dotdots, order) = (dir.dots, dir.dotdots, dir.order);
        if dots == 0 {
            self.sink.error(self.shown, || format!("no . entry for directory {number}"));
        }
        if dotdots == 0 {
            self.sink.error(self.shown, || format!("no .. entry for directory {number}"));
        } else if parent == self.ino && self.ino != root {
            self.sink.error(self.shown, || format!(". and .. same for non-root directory {number}"));
        } else if self.ino == root && self.ino != parent {
            let parent = parent.cast_signed();
            self.sink.error(self.shown, || format!("root directory {number} has .. {parent}"));
        } else if parent != NULLFSINO && self.ino != parent {
            if self.all || self.scan.options.inodes.contains(&parent) {
                self.sink.say(format!("inode {number} parent {}", parent.cast_signed()));
            }
            self.note_parent(parent, order, true);
        }
    }

    fn note_parent(&mut self, parent: u64, order: u32, holds: bool) {
        if self.scan.options.names {
            self.sink.names.parents.push(ParentEvent { directory: self.ino, parent, order, holds });
        }
    }
}

impl<'s> DirScan<'_, 's> {
    pub fn number(&self) -> i64 {
        self.inode.number()
    }

    pub fn geometry(&self) -> &'s DirectoryGeometry {
        &self.inode.geometry().directory
    }

    /// A finding about the current block.
    pub fn error(&mut self, line: impl FnOnce() -> String) {
        self.inode.sink.error(self.shown, line);
    }

    pub fn say(&mut self, line: impl Into<Vec<u8>>) {
        self.inode.sink.say(line);
    }

    /// The parent that the directory names; `None` when it cannot be looked into.
    fn scan(&mut self, map: Option<FileMap>) -> Option<u64> {
        let (size, core) = (self.inode.raw.core.size.get(), self.inode.raw.core);
        let room = if core.forkoff == 0 { self.inode.literal().len() } else { core.fork_offset() };
        let end = map.as_ref().and_then(FileMap::end);
        let blocks = matches!(core.format, format::EXTENTS | format::BTREE);
        let unit = u64::from(self.geometry().fsbcount);
        match (map, end) {
            _ if core.format == format::LOCAL && size <= u64::try_from(room).unwrap_or(0) => Some(self.short(size)),
            (Some(map), Some(end)) if blocks && end == unit => Some(self.single_block(&map)),
            (Some(map), Some(end)) if blocks && end >= self.geometry().leaf_start.0 + unit => Some(self.blocks(&map)),
            _ => {
                let (size, form, number) = (size.cast_signed(), core.format, self.number());
                let line = format!("bad size ({size}) or format ({form}) for directory inode {number}");
                self.inode.sink.errors += 1;
                self.say(line);
                None
            }
        }
    }

    /// Counts what an entry says of its inode. `false` if there can be no such inode.
    pub fn link(&mut self, ino: u64) -> bool {
        let addressable = self.inode.is_addressable(ino);
        if addressable {
            self.inode.add_link(ino);
        }
        addressable
    }

    /// Notes the name of an inode.
    pub fn name(&mut self, ino: u64, name: &[u8]) {
        self.order += 1;
        if self.inode.scan.options.names {
            self.inode.sink.names.entry(self.inode.ino, ino, self.order, name);
        }
    }

    /// Notes an entry for the directory itself.
    pub fn dot(&mut self) {
        self.dots += 1;
    }

    /// Notes an entry for the parent.
    pub fn dotdot(&mut self, parent: u64) {
        self.dotdots += 1;
        self.order += 1;
        if self.inode.is_addressable(parent) {
            self.inode.note_parent(parent, self.order, false);
        }
    }

    fn short(&mut self, size: u64) -> u64 {
        let (number, ino) = (self.number(), self.inode.ino);
        let bytes = self.inode.literal();
        self.inode.add_link(ino);
        if self.all {
            self.say(format!("dir {number} entry . {number}"));
        }
        self.dot();
        let Some((counts, _)) = RawDirSfCounts::prefix(bytes) else { return NULLFSINO };
        let wide = counts.i8count != 0;
        let (header, parent) = if wide {
            (RawDirSfHdr8::SIZE, RawDirSfHdr8::prefix(bytes).map(|(header, _)| header.parent.get() & WIDE_INUMBER_MASK))
        } else {
            (RawDirSfHdr4::SIZE, RawDirSfHdr4::prefix(bytes).map(|(header, _)| u64::from(header.parent.get())))
        };
        let mut short =
            Short { bytes, at: header, size, wide, offset: self.geometry().data_first_offset, wide_numbers: 0 };
        let complete = (0..counts.count).all(|_| self.short_entry(&mut short));
        let end = u64::try_from(short.at).unwrap_or(u64::MAX);
        if complete && end != size {
            let size = size.cast_signed();
            self.error(|| format!("dir {number} size is {size}, should be {end}"));
        }
        let leaf = (u32::from(counts.count) + 2) * 8 + 8;
        if short.offset + leaf > self.geometry().blksize {
            self.error(|| format!("dir {number} offsets too high"));
        }
        let parent = parent.unwrap_or(NULLFSINO);
        let mut wide_numbers = short.wide_numbers;
        wide_numbers += u32::from(parent > u64::from(u32::MAX));
        let addressable = self.link(parent);
        let shown = parent.cast_signed();
        if !addressable {
            self.error(|| format!("dir {number} entry .. bad inode number {shown}"));
        }
        if self.all {
            self.say(format!("dir {number} entry .. {shown}"));
        }
        if wide_numbers != u32::from(counts.i8count) {
            let found = counts.i8count;
            self.error(|| format!("dir {number} i8count mismatch is {found} should be {wide_numbers}"));
        }
        self.dotdot(parent);
        if addressable { parent } else { NULLFSINO }
    }

    /// The next entry of the short form; `false` at one that does not fit.
    fn short_entry(&mut self, short: &mut Short<'_>) -> bool {
        let (number, tells) = (self.number(), self.inode.scan.tells());
        let ftype = usize::from(self.inode.geometry().features.has_ftype());
        let Some(entry) = short.take(ftype) else {
            let at = short.at;
            self.inode.sink.error(tells, || format!("dir {number} bad size in entry at {at}"));
            return false;
        };
        short.wide_numbers += u32::from(entry.ino > u64::from(u32::MAX));
        let (name, ino) = (padded(entry.name, entry.name.len()), entry.ino.cast_signed());
        if self.link(entry.ino) {
            self.name(entry.ino, entry.name);
        } else {
            self.inode.sink.errors += 1;
            if tells {
                self.say(
                    [
                        &b"dir "[..],
                        number.to_string().as_bytes(),
                        b" entry ",
                        &name,
                        b" bad inode number ",
                        ino.to_string().as_bytes(),
                    ]
                    .concat(),
                );
            }
        }
        if self.all {
            let tail = format!(" offset {} {ino}", entry.offset);
            self.say([format!("dir {number} entry ").as_bytes(), &name, tail.as_bytes()].concat());
        }
        if u32::from(entry.offset) < short.offset {
            self.inode.sink.errors += 1;
            if tells {
                let tail = format!(" bad offset {}", entry.offset);
                self.say([format!("dir {number} entry ").as_bytes(), &name, tail.as_bytes()].concat());
            }
        }
        short.offset = u32::from(entry.offset) + entry.len;
        true
    }

    /// Reads a directory block; `None` when it cannot be.
    fn read(&mut self, kind: BlockKind, runs: &[Run]) -> Option<Vec<u8>> {
        let (reader, geometry) = (self.inode.scan.reader, self.inode.geometry());
        let whole = geometry.directory.blksize;
        let mut fragments = Vec::new();
        for run in runs {
            let len = u64::from(geometry.blocksize) * run.len;
            let len = if runs.len() == 1 { whole } else { u32::try_from(len).ok()? };
            fragments.push(Fragment { daddr: reader.fsb_daddr(run.fsb)?, len });
        }
        let mut bytes = reader.raw(&fragments)?;
        if geometry.features.has_crc() && !has_known_magic(&bytes) {
            self.say("Unknown directory buffer type!");
        }
        let kind = match RawDaBlkinfo::prefix(&bytes).map(|(info, _)| info.magic.get()) {
            Some(DIR2_LEAF1_MAGIC | DIR3_LEAF1_MAGIC) if kind == BlockKind::DirHash => BlockKind::DirLeaf1,
            _ => kind,
        };
        let request = Request::of_fragments(kind, fragments).of_inode(Ino(self.inode.ino));
        reader.warn(&reader.image().cache().verifier().verify(&request, &bytes));
        bytes.resize(usize::try_from(whole).ok()?, 0);
        Some(bytes)
    }

    /// Whether one of the blocks is listed.
    fn lists(&self, runs: &[Run]) -> bool {
        runs.iter().any(|run| self.inode.scan.options.lists_any(run.fsb, run.len))
    }

    /// A directory of one block.
    fn single_block(&mut self, map: &FileMap) -> u64 {
        let number = self.number();
        let runs = map.runs(0, u64::from(self.geometry().fsbcount));
        self.shown = self.inode.scan.tells() || self.inode.all;
        if runs.is_empty() {
            self.error(|| format!("block 0 for directory inode {number} is missing"));
            return 0;
        }
        self.all = self.inode.all || self.lists(&runs);
        self.shown |= self.all;
        let Some(bytes) = self.read(BlockKind::DirBlock, &runs) else {
            self.error(|| format!("can't read block 0 for directory inode {number}"));
            return 0;
        };
        let parent = self.data_block(&bytes, 0, false);
        self.check_missing();
        parent.unwrap_or(0)
    }

    /// A directory with data blocks, an index, and perhaps a free index.
    fn blocks(&mut self, map: &FileMap) -> u64 {
        let (number, geometry) = (self.number(), self.geometry());
        let unit = u64::from(geometry.fsbcount);
        let mut parent = 0;
        let mut budget = self.inode.geometry().dblocks;
        let mut place = map.first();
        while let Some(now) = place {
            budget = budget.saturating_sub(unit);
            if budget == 0 {
                break;
            }
            place = map.next(now, now.at + unit - 1);
            let runs = map.runs(now.at, unit);
            self.all = self.inode.all || self.lists(&runs);
            self.shown = self.inode.scan.tells() || self.all;
            let dabno = u32::try_from(now.at & u64::from(u32::MAX)).unwrap_or(u32::MAX);
            if self.all {
                let fsb = runs.first().map_or(0, |run| run.fsb);
                self.say(format!("dir inode {number} block {dabno}={fsb}"));
            }
            let kind = if now.at < geometry.leaf_start.0 {
                BlockKind::DirData
            } else if now.at < geometry.free_start.0 {
                BlockKind::DirHash
            } else {
                BlockKind::DirFree
            };
            let Some(bytes) = self.read(kind, &runs) else {
                self.error(|| format!("can't read block {dabno} for directory inode {number}"));
                continue;
            };
            match kind {
                BlockKind::DirData => match self.data_block(&bytes, dabno, true) {
                    Some(_) if parent != 0 => {
                        self.error(|| format!("multiple .. entries in dir {number}"));
                    }
                    Some(found) => parent = found,
                    None => {}
                },
                BlockKind::DirHash => self.index_block(&bytes, dabno),
                _ => self.free_block(&bytes, dabno),
            }
        }
        self.check_missing();
        for data_block in std::mem::take(&mut self.free).into_keys() {
            let dabno = low_int(u64::from(data_block) * unit);
            self.error(|| format!("missing free index for data block {dabno} in dir ino {number}"));
        }
        parent
    }

    /// Entries that the index does not name.
    fn check_missing(&mut self) {
        let number = self.number();
        for (hash, address) in self.hashes.missing() {
            self.error(|| format!("dir ino {number} missing leaf entry for {hash:x}/{address:x}"));
        }
    }
}

/// A directory in short form, read entry by entry.
struct Short<'b> {
    bytes: &'b [u8],
    at: usize,
    size: u64,
    wide: bool,
    /// The least offset that the next entry can have.
    offset: u32,
    wide_numbers: u32,
}

struct ShortEntry<'b> {
    offset: u16,
    name: &'b [u8],
    ino: u64,
    /// Bytes that the entry takes.
    len: u32,
}

impl<'b> Short<'b> {
    fn take(&mut self, ftype: usize) -> Option<ShortEntry<'b>> {
        let rest = self.bytes.get(self.at..)?;
        let (head, tail) = RawDirSfEntry::prefix(rest)?;
        let namelen = usize::from(head.namelen);
        let number = if self.wide { 8 } else { 4 };
        let len = RawDirSfEntry::SIZE + namelen + ftype + number;
        let end = u64::try_from(self.at + len).ok()?;
        if end > self.size {
            return None;
        }
        let name = tail.get(..namelen)?;
        let field = tail.get(namelen + ftype..namelen + ftype + number)?;
        let ino = field.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)) & WIDE_INUMBER_MASK;
        self.at += len;
        Some(ShortEntry { offset: head.offset.get(), name, ino, len: u32::try_from(len).ok()? })
    }
}

/// Whether a block starts like a directory block of version 5.
fn has_known_magic(bytes: &[u8]) -> bool {
    let long = Be32::read_from_prefix(bytes).map_or(0, |(magic, _)| magic.get());
    let short = RawDaBlkinfo::prefix(bytes).map_or(0, |(info, _)| info.magic.get());
    matches!(long, DIR3_BLOCK_MAGIC | DIR3_DATA_MAGIC | DIR3_FREE_MAGIC)
        || matches!(short, DIR3_LEAF1_MAGIC | DIR3_LEAFN_MAGIC | DA3_NODE_MAGIC)
}

/// A name as `%*.*s` prints it: to the first zero byte, filled up with spaces on the left.
pub(super) fn padded(name: &[u8], width: usize) -> Vec<u8> {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let mut shown = vec![b' '; width.saturating_sub(end)];
    shown.extend_from_slice(&name[..end]);
    shown
}

/// Bytes that an entry of a data block takes.
pub(super) fn data_entry_len(namelen: u8, ftype: bool) -> usize {
    entry_len(usize::from(namelen), ftype)
}
