//! What the scan says of a block of directory entries.

use super::directory::{DirScan, data_entry_len, padded};
use super::inode::low_int;
use crate::ondisk::dir_data::{
    DATA_ALIGN, DATA_FREE_TAG, DIR2_BLOCK_MAGIC, DIR2_DATA_MAGIC, DIR3_BLOCK_MAGIC, DIR3_DATA_MAGIC, RawDir2DataHdr,
    RawDir3DataHdr, RawDirBlockTail, RawDirDataEntry, RawDirDataFree, RawDirDataUnused, header_len,
};
use crate::ondisk::dir_leaf::{NULL_DATAPTR, RawDirLeafEntry};
use crate::ondisk::{Be32, NULLFSINO, OnDisk};
use zerocopy::FromBytes;

/// A block under scan.
struct DataScan<'b> {
    bytes: &'b [u8],
    dabno: u32,
    /// Number of the block, counted in directory blocks.
    db: u32,
    bestfree: [(u16, u16); 3],
    /// Which of the longest ranges were found.
    seen: u8,
    wrong_bestfree: bool,
    wrong_tag: bool,
    consecutive: bool,
    after_free: bool,
    entries: u32,
    parent: Option<u64>,
}

/// Entries and tail of a single-block directory.
struct Tail<'b> {
    count: u32,
    stale: u32,
    /// None when they do not fit.
    leaf: Option<&'b [RawDirLeafEntry]>,
}

fn is_single(magic: u32) -> bool {
    matches!(magic, DIR2_BLOCK_MAGIC | DIR3_BLOCK_MAGIC)
}

impl DirScan<'_, '_> {
    /// Scans the block at file block `dabno`; `indexed` if a free index must name it. The parent that it names.
    pub fn data_block(&mut self, bytes: &[u8], dabno: u32, indexed: bool) -> Option<u64> {
        let (number, geometry) = (self.number(), self.geometry());
        let magic = Be32::read_from_prefix(bytes).map_or(0, |(magic, _)| magic.get());
        if !is_single(magic) && !matches!(magic, DIR2_DATA_MAGIC | DIR3_DATA_MAGIC) {
            let magic = super::group::alternate_hex(magic);
            let at = low_int(u64::from(dabno));
            self.error(|| format!("bad directory data magic # {magic} for dir ino {number} block {at}"));
            return Some(NULLFSINO);
        }
        let crc = self.inode.geometry().features.has_crc();
        let bestfree = bestfree_of(bytes, crc)?;
        let start = header_len(crc);
        let tail = if is_single(magic) { tail_of(bytes, start) } else { None };
        let mut end = bytes.len();
        if let Some(tail) = &tail {
            match tail.leaf {
                Some(leaf) => end = bytes.len() - RawDirBlockTail::SIZE - size_of_val(leaf),
                None => self.error(|| format!("bad block directory tail for dir ino {number}")),
            }
        }
        let mut data = DataScan {
            bytes,
            dabno,
            db: dabno / geometry.fsbcount,
            bestfree,
            seen: 0,
            wrong_bestfree: bestfree[0].1 < bestfree[1].1 || bestfree[1].1 < bestfree[2].1,
            wrong_tag: false,
            consecutive: false,
            after_free: false,
            entries: 0,
            parent: None,
        };
        for (index, (offset, length)) in bestfree.into_iter().enumerate() {
            if length == 0 {
                data.wrong_bestfree |= offset != 0;
                data.seen |= 1 << index;
            }
        }
        if indexed {
            self.data_blocks = self.data_blocks.max(data.db.saturating_add(1));
            self.free.insert(data.db, bestfree[0].1);
        }
        self.items(&mut data, start, end);
        self.findings(&mut data, tail.as_ref());
        data.parent
    }

    fn items(&mut self, data: &mut DataScan<'_>, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            let rest = data.bytes.get(at..).unwrap_or(&[]);
            let step = match RawDirDataUnused::prefix(rest) {
                Some((unused, _)) if unused.freetag.get() == DATA_FREE_TAG => {
                    self.unused(data, at, end, unused.length.get())
                }
                _ => self.entry(data, at, end),
            };
            let Some(step) = step else { break };
            at += step;
        }
    }

    /// An unused range; `None` when nothing can be found behind it.
    fn unused(&mut self, data: &mut DataScan<'_>, at: usize, end: usize, length: u16) -> Option<usize> {
        data.consecutive |= data.after_free;
        let len = usize::from(length);
        let tag = (at + len).checked_sub(2);
        if len % DATA_ALIGN != 0 || len == 0 || tag.is_none_or(|tag| tag >= end) {
            let (number, dabno) = (self.number(), low_int(u64::from(data.dabno)));
            self.error(|| format!("dir {number} block {dabno} bad free entry at {at}"));
            return None;
        }
        data.check_tag(at, tag);
        match data.bestfree_index(at, length) {
            Some(index) => {
                data.wrong_bestfree |= data.seen & (1 << index) != 0;
                data.seen |= 1 << index;
            }
            None => data.wrong_bestfree |= length > data.bestfree[2].1,
        }
        data.after_free = true;
        Some(len)
    }

    /// An entry; `None` when nothing can be found behind it.
    fn entry(&mut self, data: &mut DataScan<'_>, at: usize, end: usize) -> Option<usize> {
        let (number, dabno) = (self.number(), low_int(u64::from(data.dabno)));
        let rest = data.bytes.get(at..).unwrap_or(&[]);
        let head = RawDirDataEntry::prefix(rest).map(|(head, _)| *head);
        let namelen = head.map_or(0, |head| head.namelen);
        if namelen == 0 {
            self.error(|| format!("dir {number} block {dabno} zero length entry at {at}"));
        }
        let len = data_entry_len(namelen, self.inode.geometry().features.has_ftype());
        let name = rest.get(RawDirDataEntry::SIZE..RawDirDataEntry::SIZE + usize::from(namelen));
        let (Some(head), Some(name)) = (head.filter(|_| at + len - 2 < end), name) else {
            self.error(|| format!("dir {number} block {dabno} bad entry at {at}"));
            return None;
        };
        data.check_tag(at, (at + len).checked_sub(2));
        let base = u64::from(data.db) << self.geometry().blklog;
        let address = (base + u64::try_from(at).unwrap_or(0)) >> 3 & u64::from(u32::MAX);
        self.hashes.add(self.hash.hash(name), u32::try_from(address).unwrap_or(u32::MAX));
        data.entries += 1;
        data.after_free = false;
        self.data_entry(data, name, head.inumber.get());
        Some(len)
    }

    fn data_entry(&mut self, data: &mut DataScan<'_>, name: &[u8], ino: u64) {
        let (number, dabno) = (self.number(), low_int(u64::from(data.dabno)));
        let shown_ino = ino.cast_signed();
        let line = |between: &str| {
            let (head, tail) = (format!("dir {number} block {dabno} entry "), format!("{between} {shown_ino}"));
            [head.as_bytes(), &padded(name, name.len()), tail.as_bytes()].concat()
        };
        if self.all {
            self.say(line(""));
        }
        let addressable = self.link(ino);
        if !addressable {
            self.inode.sink.errors += 1;
            if self.shown {
                self.say(line(" bad inode number"));
            }
        }
        match name {
            b".." => {
                match data.parent {
                    Some(first) => {
                        let first = first.cast_signed();
                        self.error(|| format!("multiple .. entries in dir {number} ({first}, {shown_ino})"));
                    }
                    None => data.parent = Some(if addressable { ino } else { NULLFSINO }),
                }
                self.dotdot(ino);
            }
            b"." => {
                if ino != self.inode.ino {
                    self.error(|| format!("dir {number} entry . inode number mismatch ({shown_ino})"));
                }
                self.dot();
            }
            _ if addressable => self.name(ino, name),
            _ => {}
        }
    }

    fn findings(&mut self, data: &mut DataScan<'_>, tail: Option<&Tail<'_>>) {
        let (number, dabno) = (self.number(), low_int(u64::from(data.dabno)));
        let mut stale = 0;
        for entry in tail.and_then(|tail| tail.leaf).unwrap_or(&[]) {
            let (hash, address) = (entry.hashval.get(), entry.address.get());
            if address == NULL_DATAPTR {
                stale += 1;
            } else if !self.hashes.see(hash, address) {
                self.error(|| format!("dir {number} block {dabno} extra leaf entry {hash:x} {address:x}"));
            }
        }
        if data.wrong_bestfree || data.seen != 7 {
            self.error(|| format!("dir {number} block {dabno} bad bestfree data"));
        }
        if let Some(tail) = tail {
            let (count, marked) = (tail.count.cast_signed(), tail.stale.cast_signed());
            if data.entries != tail.count.wrapping_sub(tail.stale) {
                self.error(|| format!("dir {number} block {dabno} bad block tail count {count} (stale {marked})"));
            }
            if stale != tail.stale {
                self.error(|| format!("dir {number} block {dabno} bad stale tail count {marked}"));
            }
        }
        if data.consecutive {
            self.error(|| format!("dir {number} block {dabno} consecutive free entries"));
        }
        if data.wrong_tag {
            self.error(|| format!("dir {number} block {dabno} entry/unused tag mismatch"));
        }
    }
}

impl DataScan<'_> {
    /// The tag at the end of an item is its own offset.
    fn check_tag(&mut self, at: usize, tag: Option<usize>) {
        let found = tag.and_then(|tag| self.bytes.get(tag..tag + 2)).and_then(|field| field.try_into().ok());
        self.wrong_tag |= found.map(u16::from_be_bytes).map(usize::from) != Some(at);
    }

    /// Which of the longest unused ranges it is.
    fn bestfree_index(&self, at: usize, length: u16) -> Option<usize> {
        if length < self.bestfree[2].1 {
            return None;
        }
        let named = self.bestfree.iter().take_while(|(offset, _)| *offset != 0);
        named.into_iter().position(|(offset, _)| usize::from(*offset) == at)
    }
}

fn bestfree_of(bytes: &[u8], crc: bool) -> Option<[(u16, u16); 3]> {
    let table: &[RawDirDataFree; 3] =
        if crc { &RawDir3DataHdr::prefix(bytes)?.0.best_free } else { &RawDir2DataHdr::prefix(bytes)?.0.bestfree };
    Some(table.map(|free| (free.offset.get(), free.length.get())))
}

fn tail_of(bytes: &[u8], start: usize) -> Option<Tail<'_>> {
    let at = bytes.len().checked_sub(RawDirBlockTail::SIZE)?;
    let (tail, _) = RawDirBlockTail::prefix(bytes.get(at..)?)?;
    let count = usize::try_from(tail.count.get()).ok()?;
    let first = count.checked_mul(RawDirLeafEntry::SIZE).and_then(|len| at.checked_sub(len));
    let leaf = first
        .filter(|first| *first > start)
        .and_then(|first| RawDirLeafEntry::prefix_slice(bytes.get(first..)?, count).map(|(leaf, _)| leaf));
    Some(Tail { count: tail.count.get(), stale: tail.stale.get(), leaf })
}
