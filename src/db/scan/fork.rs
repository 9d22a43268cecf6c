//! The forks of an inode under scan: their extents, and the blocks of their btrees.

use super::block_type::BlockType;
use super::events::Claim;
use super::file_map::FileMap;
use super::group::alternate_hex;
use super::inode::{InodeScan, low_int};
use super::message::Space;
use crate::btree::Layout;
use crate::buffer::{BlockKind, Request};
use crate::forms::ForkKind;
use crate::geometry::{BtreeKind, Ino};
use crate::ondisk::attr_short::RawAttrSfHdr;
use crate::ondisk::dinode::format;
use crate::ondisk::{Be64, Extent, OnDisk, RawBmdrRoot, RawExtent, RawLongBlock};
use zerocopy::FromBytes;

/// What was counted in a fork.
#[derive(Debug, Default)]
pub(super) struct ForkCount {
    /// Blocks, those of the btree included.
    pub blocks: u64,
    pub extents: u64,
    /// Where the file's blocks lie, if that was asked for.
    pub map: Option<FileMap>,
}

/// A fork under scan.
struct ForkScan {
    kind: ForkKind,
    block_type: BlockType,
    blocks: u64,
    extents: u64,
    /// The extents, if a map is asked for.
    kept: Option<Vec<Extent>>,
    /// Blocks of the btree that may still be read.
    budget: u64,
}

impl ForkScan {
    fn name(&self) -> &'static str {
        if self.kind == ForkKind::Data { "data" } else { "attr" }
    }
}

impl<'s> InodeScan<'s> {
    /// Bytes of a fork.
    fn fork_bytes(&self, kind: ForkKind) -> &'s [u8] {
        let (literal, at) = (self.literal(), self.raw.core.fork_offset());
        match kind {
            ForkKind::Data if at == 0 => literal,
            ForkKind::Data => literal.get(..at).unwrap_or(literal),
            ForkKind::Attr => literal.get(at..).unwrap_or(&[]),
        }
    }

    /// Scans the data fork; with `map` the extents are kept.
    pub fn data_fork(&mut self, block_type: BlockType, map: bool) -> ForkCount {
        let kept = (map && self.raw.core.format != format::LOCAL).then(Vec::new);
        self.fork(ForkKind::Data, block_type, self.raw.core.format, kept)
    }

    /// Scans the attribute fork.
    pub fn attr_fork(&mut self) -> ForkCount {
        self.fork(ForkKind::Attr, BlockType::Attr, self.raw.core.aformat.cast_unsigned(), None)
    }

    fn fork(&mut self, kind: ForkKind, block_type: BlockType, form: u8, kept: Option<Vec<Extent>>) -> ForkCount {
        let budget = self.geometry().dblocks;
        let mut fork = ForkScan { kind, block_type, blocks: 0, extents: 0, kept, budget };
        match form {
            format::LOCAL => self.local_fork(kind),
            format::EXTENTS => self.extent_list(&mut fork),
            format::BTREE => self.btree_root(&mut fork),
            _ => {}
        }
        ForkCount { blocks: fork.blocks, extents: fork.extents, map: fork.kept.map(FileMap::new) }
    }

    fn local_fork(&mut self, kind: ForkKind) {
        let (number, size, bytes) = (self.number(), self.raw.core.size.get(), self.fork_bytes(kind));
        let room = u64::try_from(bytes.len()).unwrap_or(0);
        match kind {
            ForkKind::Data if size > room => {
                let size = size.cast_signed();
                self.sink.error(self.shown, || format!("local inode {number} data is too large (size {size})"));
            }
            ForkKind::Attr => {
                let total = RawAttrSfHdr::prefix(bytes).map_or(0, |(header, _)| header.totsize.get());
                if u64::from(total) > room {
                    self.sink.error(self.shown, || format!("local inode {number} attr is too large (size {total})"));
                }
            }
            ForkKind::Data => {}
        }
    }

    fn extent_list(&mut self, fork: &mut ForkScan) {
        let (kind, number) = (fork.kind, self.number());
        let inodes = &self.geometry().inodes;
        let (stored, most) = match kind {
            ForkKind::Data => (self.raw.data_extents(), inodes.max_data_extents),
            ForkKind::Attr => (u64::from(self.raw.attr_extents()), inodes.max_attr_extents),
        };
        fork.extents = stored;
        let bytes = self.fork_bytes(kind);
        let count = usize::try_from(stored).ok().filter(|_| stored <= most);
        let records = count.and_then(|count| RawExtent::prefix_slice(bytes, count));
        let Some((records, _)) = records else {
            let shown = self.scan.tells() || self.all;
            self.sink.error(shown, || format!("bad number of extents {stored} for inode {number}"));
            return;
        };
        self.records(fork, records);
    }

    fn btree_root(&mut self, fork: &mut ForkScan) {
        let (number, name, bytes) = (self.number(), fork.name(), self.fork_bytes(fork.kind));
        let shown = self.scan.tells() || self.all;
        let Some((root, rest)) = RawBmdrRoot::prefix(bytes) else { return };
        let (level, count) = (u32::from(root.level.get()), usize::from(root.numrecs.get()));
        let most = match fork.kind {
            ForkKind::Data => self.geometry().btree(BtreeKind::Bmbt).max_levels,
            ForkKind::Attr => self.geometry().btrees.attr_bmbt_max_levels,
        };
        if level >= most {
            let line = || format!("level for ino {number} {name} fork bmap root too large ({level})");
            return self.sink.error(shown, line);
        }
        // an extent takes as many bytes as a key and a pointer
        if count > rest.len() / RawExtent::SIZE {
            let line = || format!("numrecs for ino {number} {name} fork bmap root too large ({count})");
            return self.sink.error(shown, line);
        }
        if level == 0 {
            if let Some((records, _)) = RawExtent::prefix_slice(rest, count) {
                self.records(fork, records);
                fork.extents += u64::try_from(count).unwrap_or(0);
            }
            return;
        }
        let layout = Layout::of_block(self.geometry(), BtreeKind::Bmbt).in_inode(bytes.len());
        for index in 0..count {
            let Some(pointer) = bytes.get(layout.pointer(index)).and_then(pointer) else { continue };
            self.btree_block(fork, pointer, level - 1, true);
        }
        if fork.extents <= u64::try_from(bytes.len() / RawExtent::SIZE).unwrap_or(0) {
            let count = low_int(fork.extents);
            let line = || format!("extent count for ino {number} {name} fork too low ({count}) for file format");
            self.sink.error(shown, line);
        }
    }

    /// A block of the fork's btree; `top` when it hangs from the inode.
    fn btree_block(&mut self, fork: &mut ForkScan, fsb: u64, level: u32, top: bool) {
        let (geometry, number) = (self.geometry(), self.number());
        let Some(left) = fork.budget.checked_sub(1) else { return };
        fork.budget = left;
        let (agno, agbno) = self.parts(fsb);
        let at = format!("{agno}/{agbno}");
        let request = self.scan.reader.fsb_daddr(fsb).map(|daddr| {
            let request = Request::new(geometry, BlockKind::Btree(BtreeKind::Bmbt), daddr);
            request.of_inode(Ino(self.ino)).at_level(level)
        });
        let Some(bytes) = request.and_then(|request| self.scan.reader.request(&request)) else {
            return self.sink.error(self.scan.tells(), || format!("can't read btree block {at}"));
        };
        let shown = self.scan.tells() || self.all || self.scan.options.lists(fsb);
        let Some((header, _)) = RawLongBlock::prefix(&bytes) else { return };
        let magic = header.magic.get();
        if ![BtreeKind::Bmbt.magic(false), BtreeKind::Bmbt.magic(true)].contains(&magic) {
            let magic = alternate_hex(magic);
            self.sink.error(shown, || format!("bad magic # {magic} in inode {number} bmbt block {at}"));
        }
        let found = u32::from(header.level.get());
        if found != level {
            let line = || format!("expected level {level} got {found} in inode {number} bmbt block {at}");
            self.sink.error(shown, line);
        }
        let claim = Claim { start: u64::from(agbno), own: true, ..self.claim(fork.block_type) };
        self.sink.claim(Space::Group(agno), claim);
        fork.blocks = fork.blocks.wrapping_add(1);
        let sizes = geometry.btree(BtreeKind::Bmbt);
        let (min, max) = (sizes.min_records(level), sizes.max_records(level));
        let count = u32::from(header.numrecs.get());
        if count > max || !top && count < min {
            let (nrecs, fsb) = (format!("bad btree nrecs ({count}, min={min}, max={max})"), fsb.cast_signed());
            return self.sink.error(shown, || format!("{nrecs} in inode {number} bmap block {fsb}"));
        }
        let layout = Layout::of_block(geometry, BtreeKind::Bmbt);
        let count = usize::from(header.numrecs.get());
        if level == 0 {
            fork.extents = fork.extents.wrapping_add(u64::from(header.numrecs.get()));
            let start = layout.record(0).start;
            let records = bytes.get(start..).and_then(|bytes| RawExtent::prefix_slice(bytes, count));
            if let Some((records, _)) = records {
                self.records(fork, records);
            }
            return;
        }
        for index in 0..count {
            let Some(pointer) = bytes.get(layout.pointer(index)).and_then(pointer) else { continue };
            self.btree_block(fork, pointer, level - 1, false);
        }
    }

    /// Group and block of a filesystem block, whether they exist or not.
    pub fn parts(&self, fsb: u64) -> (u32, u32) {
        let log = self.geometry().agblklog;
        let agno = fsb >> log & u64::from(u32::MAX);
        let agbno = fsb & ((1 << log) - 1);
        (u32::try_from(agno).unwrap_or(u32::MAX), u32::try_from(agbno).unwrap_or(u32::MAX))
    }

    /// A claim of the inode, of no blocks yet.
    fn claim(&self, block_type: BlockType) -> Claim {
        Claim { ino: self.ino, reflink: self.is_reflink(), ..Claim::of(block_type) }
    }

    fn records(&mut self, fork: &mut ForkScan, records: &[RawExtent]) {
        let number = self.number();
        let mut end = 0;
        for (index, extent) in records.iter().map(RawExtent::decode).enumerate() {
            let Extent { startoff, startblock, blockcount, unwritten } = extent;
            if self.all {
                let state = u8::from(unwritten);
                self.sink.say(format!("inode {number} extent [{startoff},{startblock},{blockcount},{state}]"));
            }
            if self.scan.tells() && index > 0 && end > startoff {
                self.sink.say(format!("bmap rec out of order, inode {number} entry {index}"));
            }
            end = startoff.saturating_add(u64::from(blockcount));
            if !self.extent(fork, &extent) {
                continue;
            }
            if let Some(kept) = &mut fork.kept {
                kept.push(extent);
            }
            let blocks = &self.scan.options.blocks;
            for fsb in blocks.range(startblock..startblock + u64::from(blockcount)) {
                let offset = startoff + (fsb - startblock);
                self.sink.say(format!("inode {number} block {} at offset {offset}", fsb.cast_signed()));
            }
            fork.blocks = fork.blocks.wrapping_add(u64::from(blockcount));
        }
    }

    /// Claims the blocks of an extent, if they can be.
    fn extent(&mut self, fork: &ForkScan, extent: &Extent) -> bool {
        let Extent { startoff, startblock, blockcount, .. } = *extent;
        let (number, tells) = (self.number(), self.scan.tells());
        if fork.block_type == BlockType::RtData {
            if tells && startblock >= self.scan.sb.rblocks.get() {
                self.sink.say(format!("inode {number} bad rt block number {startblock}, offset {startoff}"));
                return false;
            }
            let claim = Claim { start: startblock, len: blockcount, ..self.claim(fork.block_type) };
            self.sink.claim(Space::Realtime, claim);
            return true;
        }
        let (agno, agbno) = self.parts(startblock);
        let (agcount, agblocks) = (self.geometry().agcount, u64::from(self.geometry().agblocks));
        let last = u64::from(agbno).wrapping_add(u64::from(blockcount)).wrapping_sub(1);
        if tells && (agno >= agcount || u64::from(agbno) >= agblocks || last >= agblocks) {
            let first = agno >= agcount || u64::from(agbno) >= agblocks;
            let (fsb, at) = if first {
                (startblock, agbno)
            } else {
                let more = u64::from(blockcount).wrapping_sub(1);
                (startblock.wrapping_add(more), low_int(last).cast_unsigned())
            };
            let (fsb, agno, at) = (fsb.cast_signed(), agno.cast_signed(), at.cast_signed());
            self.sink.say(format!("inode {number} bad block number {fsb} [{agno},{at}], offset {startoff}"));
            return false;
        }
        let claim = Claim { start: u64::from(agbno), len: blockcount, ..self.claim(fork.block_type) };
        self.sink.claim(Space::Group(agno), claim);
        true
    }
}

fn pointer(field: &[u8]) -> Option<u64> {
    Be64::read_from_bytes(field).ok().map(Be64::get)
}
