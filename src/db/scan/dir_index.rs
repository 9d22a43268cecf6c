//! What the scan says of a directory's index blocks: leaves, nodes, and the free index.

use super::directory::DirScan;
use super::group::alternate_hex;
use super::inode::low_int;
use crate::ondisk::da_block::{
    DA_NODE_MAGIC, DA_NODE_MAXDEPTH, DA3_NODE_MAGIC, RawDa3NodeHdr, RawDaBlkinfo, RawDaNodeHdr,
};
use crate::ondisk::dir_leaf::{
    DIR2_FREE_MAGIC, DIR2_LEAF1_MAGIC, DIR2_LEAFN_MAGIC, DIR3_FREE_MAGIC, DIR3_LEAF1_MAGIC, DIR3_LEAFN_MAGIC,
    NULL_DATAPTR, NULLDATAOFF, RawDir2FreeHdr, RawDir2LeafHdr, RawDir3FreeHdr, RawDir3LeafHdr, RawDirLeafEntry,
    RawDirLeafTail,
};
use crate::ondisk::{Be16, Be32, OnDisk};
use zerocopy::FromBytes;

impl DirScan<'_, '_> {
    /// Scans the leaf or node at file block `dabno`.
    pub fn index_block(&mut self, bytes: &[u8], dabno: u32) {
        let (number, at) = (self.number(), low_int(u64::from(dabno)));
        let Some((info, _)) = RawDaBlkinfo::prefix(bytes) else { return };
        match info.magic.get() {
            DIR2_LEAF1_MAGIC | DIR3_LEAF1_MAGIC => {
                self.only_leaf(bytes, info, dabno);
                self.leaf_entries(bytes, info.magic.get(), at);
            }
            DIR2_LEAFN_MAGIC | DIR3_LEAFN_MAGIC => self.leaf_entries(bytes, info.magic.get(), at),
            DA_NODE_MAGIC | DA3_NODE_MAGIC => {
                let level = if self.inode.geometry().features.has_crc() {
                    RawDa3NodeHdr::prefix(bytes).map(|(header, _)| header.level.get())
                } else {
                    RawDaNodeHdr::prefix(bytes).map(|(header, _)| header.level.get())
                };
                let level = level.unwrap_or(0);
                if !(1..=DA_NODE_MAXDEPTH).contains(&level) {
                    self.error(|| format!("bad node block level {level} for dir ino {number} block {at}"));
                }
            }
            magic => {
                let magic = alternate_hex(u32::from(magic));
                self.error(|| format!("bad directory data magic # {magic} for dir ino {number} block {at}"));
            }
        }
    }

    fn only_leaf(&mut self, bytes: &[u8], info: &RawDaBlkinfo, dabno: u32) {
        let (number, at) = (self.number(), low_int(u64::from(dabno)));
        let (forw, back) = (info.forw.get().cast_signed(), info.back.get().cast_signed());
        if forw != 0 || back != 0 {
            self.error(|| format!("bad leaf block forw/back pointers {forw}/{back} for dir ino {number} block {at}"));
        }
        let start = self.geometry().leaf_start.0;
        if u64::from(dabno) != start {
            let start = low_int(start);
            self.error(|| format!("single leaf block for dir ino {number} block {at} should be at block {start}"));
        }
        let Some(tail) = bytes.len().checked_sub(RawDirLeafTail::SIZE) else { return };
        let count = bytes.get(tail..).and_then(RawDirLeafTail::prefix).map_or(0, |(tail, _)| tail.bestcount.get());
        let len = usize::try_from(count).ok().and_then(|count| count.checked_mul(size_of::<Be16>()));
        let Some(first) = len.and_then(|len| tail.checked_sub(len)) else { return };
        for (db, best) in (0_u32..).zip(bytes[first..tail].chunks_exact(size_of::<Be16>())) {
            let best = u16::from_be_bytes([best[0], best[1]]);
            let known = self.free.remove(&db);
            if db >= self.data_blocks || known.unwrap_or(NULLDATAOFF) != best {
                let table = known.unwrap_or(NULLDATAOFF);
                let block = low_int(u64::from(db) * u64::from(self.geometry().fsbcount));
                // a wrong one is told, and does not count as a finding
                if self.shown {
                    self.say(format!(
                        "bestfree {table} for dir ino {number} block {block} doesn't match table value {best}"
                    ));
                }
            }
        }
    }

    fn leaf_entries(&mut self, bytes: &[u8], magic: u16, at: i32) {
        let number = self.number();
        let v3 = matches!(magic, DIR3_LEAF1_MAGIC | DIR3_LEAFN_MAGIC);
        let header = if v3 {
            RawDir3LeafHdr::prefix(bytes).map(|(header, _)| (header.count.get(), header.stale.get()))
        } else {
            RawDir2LeafHdr::prefix(bytes).map(|(header, _)| (header.count.get(), header.stale.get()))
        };
        let Some((count, marked)) = header else { return };
        let start = if self.inode.geometry().features.has_crc() { RawDir3LeafHdr::SIZE } else { RawDir2LeafHdr::SIZE };
        let room = bytes.len().saturating_sub(start) / RawDirLeafEntry::SIZE;
        let entries = bytes.get(start..).and_then(|bytes| {
            RawDirLeafEntry::prefix_slice(bytes, usize::from(count).min(room)).map(|(entries, _)| entries)
        });
        let mut stale = 0;
        for entry in entries.unwrap_or(&[]) {
            let (hash, address) = (entry.hashval.get(), entry.address.get());
            if address == NULL_DATAPTR {
                stale += 1;
            } else if !self.hashes.see(hash, address) {
                self.error(|| format!("dir {number} block {at} extra leaf entry {hash:x} {address:x}"));
            }
        }
        if stale != u32::from(marked) {
            let dir = if v3 { "dir3" } else { "dir" };
            self.error(|| format!("{dir} {number} block {at} stale mismatch {stale}/{marked}"));
        }
    }

    /// Scans the block of the free index at file block `dabno`.
    pub fn free_block(&mut self, bytes: &[u8], dabno: u32) {
        let (number, at) = (self.number(), low_int(u64::from(dabno)));
        let magic = Be32::read_from_prefix(bytes).map_or(0, |(magic, _)| magic.get());
        let (header, size) = match magic {
            DIR3_FREE_MAGIC => {
                let fields = |header: &RawDir3FreeHdr| [header.firstdb, header.nvalid, header.nused];
                (RawDir3FreeHdr::prefix(bytes).map(|(header, _)| fields(header)), RawDir3FreeHdr::SIZE)
            }
            DIR2_FREE_MAGIC => {
                let fields = |header: &RawDir2FreeHdr| [header.firstdb, header.nvalid, header.nused];
                (RawDir2FreeHdr::prefix(bytes).map(|(header, _)| fields(header)), RawDir2FreeHdr::SIZE)
            }
            magic => {
                let magic = alternate_hex(magic);
                return self.error(|| format!("bad free block magic # {magic} for dir ino {number} block {at}"));
            }
        };
        let Some([first, valid, used]) = header.map(|fields| fields.map(Be32::get)) else { return };
        let geometry = self.geometry();
        let most = geometry.free_max_bests;
        let index = u64::from(dabno).wrapping_sub(geometry.free_start.0) / u64::from(geometry.fsbcount);
        if u64::from(first) != index.wrapping_mul(u64::from(most)) & u64::from(u32::MAX) {
            let first = first.cast_signed();
            return self.error(|| format!("bad free block firstdb {first} for dir ino {number} block {at}"));
        }
        if valid > most || used > most || used > valid {
            let (valid, used) = (valid.cast_signed(), used.cast_signed());
            return self
                .error(|| format!("bad free block nvalid/nused {valid}/{used} for dir ino {number} block {at}"));
        }
        self.bests(bytes.get(size..).unwrap_or(&[]), at, first, valid, used);
    }

    fn bests(&mut self, bytes: &[u8], at: i32, first: u32, valid: u32, used: u32) {
        let number = self.number();
        let mut found = 0;
        for (index, best) in (0..valid).zip(bytes.chunks_exact(size_of::<Be16>())) {
            let best = u16::from_be_bytes([best[0], best[1]]);
            let entry = self.free.remove(&first.wrapping_add(index)).unwrap_or(NULLDATAOFF);
            if entry != best {
                self.error(|| {
                    format!("bad free block ent {index} is {best} should be {entry} for dir ino {number} block {at}")
                });
            }
            found += u32::from(best != NULLDATAOFF);
        }
        if found != used {
            self.error(|| format!("bad free block nused {used} should be {found} for dir ino {number} block {at}"));
        }
    }
}
