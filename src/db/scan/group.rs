//! The scan of an allocation group: its headers, its btrees, and with the inode btree its inodes.

use std::sync::Arc;

use rayon::prelude::*;

use super::block_type::BlockType;
use super::board::Board;
use super::events::{Claim, Sink};
use super::group_tree::{Found, GroupTree, TreeBlock};
use super::inode_chunk::ChunkBatch;
use super::message::Space;
use super::options::ScanOptions;
use super::reader::Reader;
use crate::buffer::{BlockKind, Request};
use crate::geometry::{BtreeKind, Daddr, Features};
use crate::ondisk::feature_bits::{features2, incompat, versionnum};
use crate::ondisk::refcount_record::COW_FLAG;
use crate::ondisk::{
    NULLAGINO, OnDisk, RawAgf, RawAgfl, RawAgi, RawAllocRecord, RawInobtRecord, RawRefcountRecord, RawRmapRecord,
    RawSparseInobtRecord, RawSuperblock,
};

/// What all parts of a scan know.
#[derive(Clone)]
pub(super) struct Scan<'a> {
    pub reader: Reader<'a>,
    pub options: &'a ScanOptions,
    /// The superblock in force.
    pub sb: &'a RawSuperblock,
    /// Where claims are noted; they are kept when there is none.
    pub board: Option<Arc<Board>>,
}

impl Scan<'_> {
    /// Whether findings that concern no listed block or inode are told.
    pub fn tells(&self) -> bool {
        !self.options.silent
    }
}

/// A part of a group's scan, in order.
enum Part {
    Events(Sink),
    Inodes(ChunkBatch),
}

/// Counters that the group's headers are compared with.
#[derive(Default)]
struct Counted {
    freeblks: u32,
    longest: u32,
    btreeblks: u32,
    inodes: u32,
    free_inodes: u32,
}

/// Scans group `agno`. The events come in the order in which a scan by one thread would come upon them.
pub(super) fn scan_group(scan: &Scan<'_>, agno: u32) -> Vec<Sink> {
    let mut group = GroupScan {
        scan,
        agno,
        seqno: agno,
        sink: Sink::of_group(agno, scan.board.clone()),
        parts: Vec::new(),
        counted: Counted::default(),
    };
    group.run();
    group.close();
    let parts = group.parts.into_par_iter().map(|part| match part {
        Part::Events(sink) => sink,
        Part::Inodes(batch) => {
            let sink = batch.scan(scan, agno);
            scan.reader.observer().advance(batch.inodes());
            sink
        }
    });
    let mut sinks: Vec<Sink> = parts.collect();
    // the btree of free inodes comes before the inodes, which it is held against
    sinks.iter_mut().for_each(Sink::settle);
    sinks
}

struct GroupScan<'a> {
    scan: &'a Scan<'a>,
    agno: u32,
    /// The number that the free space header gives the group; btrees are looked for there.
    seqno: u32,
    sink: Sink,
    parts: Vec<Part>,
    counted: Counted,
}

/// How the checks of a kind of btree differ.
struct TreeText {
    kind: BtreeKind,
    name: &'static str,
    /// The name that goes with counts that cannot be.
    count_name: &'static str,
    block_type: BlockType,
    magics: [u32; 2],
    /// Blocks are counted among those that free space is taken for: all, or all but the root.
    counted: Option<bool>,
}

impl TreeText {
    fn of(kind: BtreeKind) -> Self {
        let magics = [kind.magic(false), kind.magic(true)];
        let of = |name, block_type, counted| TreeText { kind, name, count_name: name, block_type, magics, counted };
        match kind {
            BtreeKind::Bnobt => of("btbno", BlockType::BtBno, Some(true)),
            BtreeKind::Cntbt => TreeText { count_name: "btbno", ..of("btcnt", BlockType::BtCnt, Some(true)) },
            BtreeKind::Rmapbt => of("rmapbt", BlockType::BtRmap, Some(false)),
            BtreeKind::Refcountbt => of("refcntbt", BlockType::BtRefcnt, None),
            BtreeKind::Finobt => of("finobt", BlockType::BtFino, None),
            _ => of("inobt", BlockType::BtIno, None),
        }
    }
}

impl GroupScan<'_> {
    /// Puts the events so far among the parts.
    fn close(&mut self) {
        let sink = std::mem::replace(&mut self.sink, Sink::of_group(self.agno, self.scan.board.clone()));
        self.parts.push(Part::Events(sink));
    }

    fn header<T: OnDisk + Copy>(&self, kind: BlockKind, sector: u32) -> Option<(T, Vec<u8>)> {
        let reader = &self.scan.reader;
        let start = reader.daddr(self.agno, 0)?;
        let daddr = Daddr(start.0 + (u64::from(sector) << (reader.geometry().sectlog - 9)));
        let bytes = reader.request(&Request::new(reader.geometry(), kind, daddr))?;
        let (raw, _) = T::prefix(&bytes)?;
        Some((*raw, bytes))
    }

    /// The block that holds header number `sector` of a group.
    fn header_block(&self, sector: u32) -> u32 {
        let geometry = self.scan.reader.geometry();
        (sector << geometry.sectlog) >> geometry.blocklog
    }

    /// Claims the block of a header that has one for itself.
    fn claim_header(&mut self, agno: u32, sector: u32, kind: BlockType) {
        let block = self.header_block(sector);
        if (0..sector).all(|other| self.header_block(other) != block) {
            self.sink.claim_for_group(agno, block, 1, kind, 0);
        }
    }

    fn run(&mut self) {
        let agno = self.agno;
        let Some((sb, _)) = self.header::<RawSuperblock>(BlockKind::Superblock, 0) else {
            return self.sink.serious(format!("can't read superblock for ag {agno}"));
        };
        self.superblock(&sb);
        let Some((agf, _)) = self.header::<RawAgf>(BlockKind::Agf, RawAgf::SECTOR) else {
            return self.sink.serious(format!("can't read agf block for ag {agno}"));
        };
        self.seqno = agf.seqno.get();
        let shown = self.scan.tells();
        if agf.magicnum.get() != RawAgf::MAGIC {
            self.sink.error(shown, || format!("bad agf magic # {} in ag {agno}", alternate_hex(agf.magicnum.get())));
        }
        if agf.versionnum.get() != RawAgf::VERSION {
            let version = alternate_hex(agf.versionnum.get());
            self.sink.error(shown, || format!("bad agf version # {version} in ag {agno}"));
        }
        self.claim_header(agno, RawAgf::SECTOR, BlockType::Agf);
        let (blocks, length) = (sb.agblocks.get(), agf.length.get());
        if blocks > length {
            self.sink.claim_for_group(agno, length, blocks - length, BlockType::Missing, 0);
        }
        let Some((agi, _)) = self.header::<RawAgi>(BlockKind::Agi, RawAgi::SECTOR) else {
            return self.sink.serious(format!("can't read agi block for ag {agno}"));
        };
        if agi.magicnum.get() != RawAgi::MAGIC {
            self.sink.error(shown, || format!("bad agi magic # {} in ag {agno}", alternate_hex(agi.magicnum.get())));
        }
        if agi.versionnum.get() != RawAgi::VERSION {
            let version = alternate_hex(agi.versionnum.get());
            self.sink.error(shown, || format!("bad agi version # {version} in ag {agno}"));
        }
        self.claim_header(agno, RawAgi::SECTOR, BlockType::Agi);
        self.freelist(&agf);
        self.trees(&agf, &agi);
        self.compare(&agf, &agi);
    }

    fn superblock(&mut self, sb: &RawSuperblock) {
        let (agno, shown) = (self.agno, self.scan.tells());
        if sb.magicnum.get() != RawSuperblock::MAGIC {
            self.sink.error(shown, || format!("bad sb magic # {} in ag {agno}", alternate_hex(sb.magicnum.get())));
        }
        if !has_good_version(sb) {
            let version = alternate_hex(u32::from(sb.versionnum.get()));
            self.sink.error(shown, || format!("bad sb version # {version} in ag {agno}"));
            self.sink.unknown_versions += 1;
        }
        if agno == 0 && sb.inprogress != 0 {
            self.sink.error(shown, || "mkfs not completed successfully".to_owned());
        }
        let needs_repair = sb.is_v5() && sb.features_incompat.get() & incompat::NEEDSREPAIR != 0;
        if needs_repair {
            self.sink.error(shown, || "filesystem needs xfs_repair".to_owned());
        }
        self.sink.claim_for_group(agno, 0, 1, BlockType::Sb, 0);
        let log = self.scan.reader.geometry().agblklog;
        let start = sb.logstart.get();
        if start != 0 && start >> log == u64::from(agno) {
            let agbno = u32::try_from(start & ((1 << log) - 1)).unwrap_or(u32::MAX);
            self.sink.claim_for_group(agno, agbno, sb.logblocks.get(), BlockType::Log, 0);
        }
    }

    fn freelist(&mut self, agf: &RawAgf) {
        let (seqno, geometry) = (self.seqno, self.scan.reader.geometry());
        self.claim_header(seqno, RawAgfl::SECTOR, BlockType::Agfl);
        if agf.flcount.get() == 0 {
            return;
        }
        let daddr = self.scan.reader.daddr(seqno, 0);
        let daddr = daddr.map(|start| Daddr(start.0 + (u64::from(RawAgfl::SECTOR) << (geometry.sectlog - 9))));
        let Some(sector) = daddr.and_then(|daddr| self.scan.reader.block(BlockKind::Agfl, daddr)) else {
            return self.sink.serious(format!("can't read agfl block for ag {seqno}"));
        };
        let entries = RawAgfl::entries(&sector, geometry.features.has_crc());
        let Some(list) = super::freelist::entries_of(agf, entries) else {
            let seqno = seqno.cast_signed();
            return self.sink.say(format!("agf {seqno} freelist blocks bad, skipping freelist scan"));
        };
        let by = self.header_block(RawAgfl::SECTOR);
        let mut count = 0;
        for agbno in list {
            self.sink.claim_for_group(seqno, agbno, 1, BlockType::FreeList, by);
            count += 1;
        }
        if count != agf.flcount.get() {
            let flcount = agf.flcount.get();
            self.sink.error(self.scan.tells(), || format!("freeblk count {count} != flcount {flcount} in ag {seqno}"));
        }
    }

    fn trees(&mut self, agf: &RawAgf, agi: &RawAgi) {
        self.tree(BtreeKind::Bnobt, agf.bno_root.get(), agf.bno_level.get());
        self.tree(BtreeKind::Cntbt, agf.cnt_root.get(), agf.cnt_level.get());
        if agf.rmap_root.get() != 0 {
            self.tree(BtreeKind::Rmapbt, agf.rmap_root.get(), agf.rmap_level.get());
        }
        if agf.refcount_root.get() != 0 {
            self.tree(BtreeKind::Refcountbt, agf.refcount_root.get(), agf.refcount_level.get());
        }
        self.tree(BtreeKind::Inobt, agi.root.get(), agi.level.get());
        if agi.free_root.get() != 0 {
            self.tree(BtreeKind::Finobt, agi.free_root.get(), agi.free_level.get());
        }
    }

    fn tree(&mut self, kind: BtreeKind, root: u32, levels: u32) {
        let tree = GroupTree { kind, agno: self.seqno, root, levels };
        let (text, reader) = (TreeText::of(kind), self.scan.reader);
        tree.walk(&reader, &mut |found| match found {
            Found::Unreadable { agbno } => {
                let seqno = self.seqno;
                self.sink.error(self.scan.tells(), || format!("can't read btree block {seqno}/{agbno}"));
                false
            }
            Found::Block(block) => self.block(&text, &block),
        });
    }

    /// Checks a block; whether its children are worth a visit.
    fn block(&mut self, text: &TreeText, block: &TreeBlock<'_>) -> bool {
        let (seqno, agbno, name) = (self.seqno, block.agbno, text.name);
        let magic = block.header.magic.get();
        if !text.magics.contains(&magic) {
            self.sink.serious(format!("bad magic # {} in {name} block {seqno}/{agbno}", alternate_hex(magic)));
            return false;
        }
        if text.counted.is_some_and(|all| all || !block.root) {
            self.counted.btreeblks = self.counted.btreeblks.wrapping_add(1);
        }
        let level = i32::from(block.header.level.get());
        if level != block.level {
            let expected = block.level;
            self.sink.error(self.scan.tells(), || {
                format!("expected level {expected} got {level} in {name} block {seqno}/{agbno}")
            });
        }
        self.sink.claim_for_group(seqno, agbno, 1, text.block_type, agbno);
        let sizes = self.scan.reader.geometry().btree(text.kind);
        let level = u32::from(block.level != 0);
        let (min, max, count) = (sizes.min_records(level), sizes.max_records(level), block.count());
        if count > max || !block.root && count < min {
            let name = text.count_name;
            let nrecs = format!("bad btree nrecs ({count}, min={min}, max={max})");
            self.sink.serious(format!("{nrecs} in {name} block {seqno}/{agbno}"));
            return false;
        }
        if block.level == 0 {
            self.leaf(text.kind, block);
        }
        true
    }

    fn leaf(&mut self, kind: BtreeKind, block: &TreeBlock<'_>) {
        match kind {
            BtreeKind::Bnobt => self.free_by_block(block),
            BtreeKind::Cntbt => self.free_by_size(block),
            BtreeKind::Rmapbt => self.reverse_mappings(block),
            BtreeKind::Refcountbt => self.reference_counts(block),
            BtreeKind::Finobt => self.free_inodes(block),
            _ => self.inodes(block),
        }
    }

    fn free_by_block(&mut self, block: &TreeBlock<'_>) {
        let mut last = 0;
        for (index, record) in records::<RawAllocRecord>(block).enumerate() {
            let free = record.decode();
            self.sink.claim_for_group(self.seqno, free.startblock, free.blockcount, BlockType::Free1, block.agbno);
            if free.startblock <= last {
                let (start, count) = (free.startblock, free.blockcount);
                let at = format!("block {}/{}", self.seqno, block.agbno);
                self.sink.serious(format!("out-of-order bno btree record {index} ({start} {count}) {at}"));
            } else {
                last = free.startblock;
            }
        }
    }

    fn free_by_size(&mut self, block: &TreeBlock<'_>) {
        let mut last = 0;
        for (index, record) in records::<RawAllocRecord>(block).enumerate() {
            let free = record.decode();
            let claim = Claim {
                start: u64::from(free.startblock),
                len: free.blockcount,
                by: block.agbno,
                expect: BlockType::Free1,
                ..Claim::of(BlockType::Free2)
            };
            self.sink.claim(Space::Group(self.seqno), claim);
            self.counted.freeblks = self.counted.freeblks.wrapping_add(free.blockcount);
            self.counted.longest = self.counted.longest.max(free.blockcount);
            if free.blockcount < last {
                let (start, count) = (free.startblock, free.blockcount);
                let at = format!("block {}/{}", self.seqno, block.agbno);
                self.sink.say(format!("out-of-order cnt btree record {index} ({start} {count}) {at}"));
            } else {
                last = free.blockcount;
            }
        }
    }

    fn reverse_mappings(&mut self, block: &TreeBlock<'_>) {
        let mut last = 0;
        for (index, record) in records::<RawRmapRecord>(block).enumerate() {
            let start = record.startblock.get();
            if start < last {
                let at = format!("block {}/{}", self.seqno, block.agbno);
                self.sink.say(format!("out-of-order rmap btree record {index} ({start} {start}) {at}"));
            } else {
                last = start;
            }
        }
    }

    fn reference_counts(&mut self, block: &TreeBlock<'_>) {
        let mut last = 0;
        for (index, record) in records::<RawRefcountRecord>(block).enumerate() {
            let (start, count) = (record.startblock.get(), record.blockcount.get());
            if record.refcount.get() == 1 {
                let (agbno, place) =
                    if start & COW_FLAG != 0 { (start & !COW_FLAG, "") } else { (start, " at unexpected address") };
                self.sink.say(format!("leftover CoW extent{place} ({}/{agbno}) len {count}", self.seqno));
                self.sink.claim_for_group(self.seqno, agbno, count, BlockType::CowData, block.agbno);
            } else {
                self.sink.claim_for_group(self.seqno, start, count, BlockType::RlData, block.agbno);
            }
            if start < last {
                let at = format!("block {}/{}", self.seqno, block.agbno);
                self.sink.say(format!("out-of-order refcnt btree record {index} ({start} {start}) {at}"));
            } else {
                last = start.wrapping_add(count);
            }
        }
    }

    fn inodes(&mut self, block: &TreeBlock<'_>) {
        let geometry = self.scan.reader.geometry();
        let chunks: Vec<_> = if geometry.features.has_sparseinodes() {
            records::<RawSparseInobtRecord>(block).map(|raw| raw.decode()).collect()
        } else {
            records::<RawInobtRecord>(block).map(|raw| raw.decode()).collect()
        };
        self.close();
        for chunks in chunks.chunks(ChunkBatch::MOST) {
            let batch = ChunkBatch { agno: self.seqno, by: block.agbno, chunks: chunks.to_vec() };
            let (inodes, free) = batch.count(geometry);
            self.counted.inodes = self.counted.inodes.wrapping_add(inodes);
            self.counted.free_inodes = self.counted.free_inodes.wrapping_add(free);
            self.parts.push(Part::Inodes(batch));
        }
    }

    fn free_inodes(&mut self, block: &TreeBlock<'_>) {
        let geometry = self.scan.reader.geometry();
        let chunks: Vec<_> = if geometry.features.has_sparseinodes() {
            records::<RawSparseInobtRecord>(block).map(|raw| raw.decode()).collect()
        } else {
            records::<RawInobtRecord>(block).map(|raw| raw.decode()).collect()
        };
        let batch = ChunkBatch { agno: self.seqno, by: block.agbno, chunks };
        for chunk in &batch.chunks {
            for buffer in batch.buffers(geometry, chunk).filter(|buffer| !buffer.sparse) {
                let len = (buffer.inodes >> geometry.inodes.per_block_log).max(1);
                let claim = Claim {
                    start: u64::from(buffer.agbno),
                    len,
                    by: block.agbno,
                    expect: BlockType::Inode,
                    ..Claim::of(BlockType::Inode)
                };
                self.sink.keep(Space::Group(self.seqno), claim);
            }
        }
    }

    /// Compares what was counted with the headers.
    fn compare(&mut self, agf: &RawAgf, agi: &RawAgi) {
        let (agno, shown) = (self.agno, self.scan.tells());
        let counted = std::mem::take(&mut self.counted);
        // the two roots are not counted
        let btreeblks = counted.btreeblks.wrapping_sub(2);
        let lazy = self.scan.reader.geometry().features.has_lazysbcount();
        let pairs = [
            (true, "agf_freeblks", agf.freeblks.get(), counted.freeblks),
            (true, "agf_longest", agf.longest.get(), counted.longest),
            (lazy, "agf_btreeblks", agf.btreeblks.get(), btreeblks),
            (true, "agi_count", agi.count.get(), counted.inodes),
            (true, "agi_freecount", agi.freecount.get(), counted.free_inodes),
        ];
        for (applies, name, stored, counted) in pairs {
            if applies && stored != counted {
                self.sink.error(shown, || format!("{name} {stored}, counted {counted} in ag {agno}"));
            }
        }
        let log = self.scan.reader.geometry().inodes.agino_log;
        for (bucket, head) in agi.unlinked.iter().map(|head| head.get()).enumerate() {
            if head != NULLAGINO {
                let ino = u64::from(agno) << log | u64::from(head);
                self.sink.error(shown, || {
                    format!("agi unlinked bucket {bucket} is {head} in ag {agno} (inode={})", ino.cast_signed())
                });
            }
        }
    }
}

fn records<'b, T: OnDisk + 'b>(block: &TreeBlock<'b>) -> impl Iterator<Item = &'b T> + use<'b, T> {
    block.records().filter_map(|bytes| T::prefix(bytes).map(|(raw, _)| raw))
}

/// A number in hexadecimal with `0x`, save for 0.
pub(super) fn alternate_hex(number: u32) -> String {
    if number == 0 { "0".to_owned() } else { format!("{number:#x}") }
}

/// Whether programs of our time read filesystems of this version.
fn has_good_version(sb: &RawSuperblock) -> bool {
    let unknown = Features::from_superblock(sb).unknown();
    let version = sb.versionnum.get();
    let required = if sb.is_v5() { versionnum::V5_REQUIRED } else { versionnum::DIRV2 | versionnum::EXTFLG };
    let features2 = if sb.is_v5() { features2::V5_REQUIRED } else { 0 };
    matches!(sb.version(), 4 | 5)
        && unknown.versionnum == 0
        && unknown.features2 == 0
        && version & required == required
        && sb.features2.get() & features2 == features2
}
