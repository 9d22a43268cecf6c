//! The btrees, the free list and the headers of a group, when all that is in it is known.

use std::collections::VecDeque;

use zerocopy::IntoBytes;

use super::builder::Image;
use super::free_space::Run;
use super::group::Group;
use crate::btree::{BlockStore, EditRoot, Fill, Layout, TreeIdentity, TreeOwner, bulk_load, bulk_size};
use crate::error::{Error, Result};
use crate::geometry::{AgBlock, AgNumber, BtreeKind, Geometry};
use crate::ondisk::rmap_record::owner;
use crate::ondisk::{FreeExtent, InodeChunk, OnDisk, RawAgf, RawAgfl, RawAgi, RawRmapRecord, Rmap, crc};

/// How full the blocks of the trees are made: changes find room.
const FILL: Fill = Fill::Middle;
/// Longest reverse mapping, in blocks (Linux `XFS_RMAP_LEN_MAX`).
const RMAP_LEN_MAX: u64 = u32::MAX as u64;
/// Header sectors of a group in their order.
const AGF_SECTOR: u32 = 1;
const AGI_SECTOR: u32 = 2;

/// What the superblock counts of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupCount {
    /// Inodes.
    pub icount: u64,
    /// Free inodes.
    pub ifree: u64,
    /// Free blocks.
    pub fdblocks: u64,
    /// Those of them that are kept back.
    pub kept: u64,
}

/// A tree that was loaded.
struct Loaded {
    root: u32,
    levels: u32,
    blocks: u32,
}

impl Image<'_> {
    /// Writes the trees and headers of a group.
    pub(super) fn finish_group(&mut self, index: usize) -> Result<GroupCount> {
        self.load_inode_trees(index)?;
        self.load_space_trees(index)?;
        let group = &self.space.groups[index];
        let used = match self.geometry.features.has_finobt() {
            true if self.geometry.features.has_inobtcount() => group.agi.fblocks.get(),
            true => finobt_blocks(&self.geometry, group),
            false => 0,
        };
        let used =
            u64::from(used) + u64::from(group.agf.refcount_blocks.get()) + u64::from(group.agf.rmap_blocks.get());
        let free = u64::from(group.free.total()) + u64::from(group.agf.flcount.get());
        let kept = self.geometry.ag_reserve(group.agno).saturating_sub(used);
        if free < kept && !group.short_from_the_start {
            return Err(Error::Usage(format!(
                "the image is full: allocation group {} keeps {kept} blocks for its btrees, and {free} are free",
                group.agno
            )));
        }
        let mut fdblocks = free;
        if self.geometry.features.has_lazysbcount() {
            fdblocks += u64::from(group.agf.btreeblks.get());
        }
        let count = GroupCount {
            icount: group.agi.count.get().into(),
            ifree: group.agi.freecount.get().into(),
            fdblocks,
            kept,
        };
        self.write_headers(index)?;
        Ok(count)
    }

    fn load_inode_trees(&mut self, index: usize) -> Result<()> {
        let features = self.geometry.features;
        let sparse = features.has_sparseinodes();
        let group = &mut self.space.groups[index];
        let mut blocks: VecDeque<u32> = std::mem::take(&mut group.inode_tree_blocks).into();
        let chunks: Vec<InodeChunk> = group.chunks.values().copied().collect();
        let open: Vec<InodeChunk> = chunks.iter().filter(|chunk| chunk.freecount > 0).copied().collect();
        let all = self.load(index, BtreeKind::Inobt, &mut blocks, chunk_records(&chunks, sparse)?)?;
        let free = if features.has_finobt() {
            Some(self.load(index, BtreeKind::Finobt, &mut blocks, chunk_records(&open, sparse)?)?)
        } else {
            None
        };
        let group = &mut self.space.groups[index];
        for block in blocks {
            group.free.insert(Run { start: block, len: 1 });
        }
        let agi = &mut group.agi;
        agi.root.set(all.root);
        agi.level.set(all.levels);
        if let Some(free) = &free {
            agi.free_root.set(free.root);
            agi.free_level.set(free.levels);
        }
        if features.has_inobtcount() {
            agi.iblocks.set(all.blocks);
            agi.fblocks.set(free.map_or(0, |free| free.blocks));
        }
        agi.count.set(chunks.iter().map(|chunk| u32::from(chunk.count)).sum());
        agi.freecount.set(chunks.iter().map(|chunk| chunk.freecount).sum());
        if let Some(last) = chunks.last() {
            agi.newino.set(last.startino);
        }
        Ok(())
    }

    /// Loads the trees of free space and of reverse mappings. Their own blocks are taken out of the free space first, so that
    /// the number of records, and with it that of blocks, settles.
    fn load_space_trees(&mut self, index: usize) -> Result<()> {
        let geometry = self.geometry.clone();
        let group = &mut self.space.groups[index];
        let plan = settle(&geometry, group)?;
        let mut own: VecDeque<u32> = std::mem::take(&mut group.own_blocks).into();
        let free = |run: Run| FreeExtent { startblock: run.start, blockcount: run.len }.encode().as_bytes().to_vec();
        let by_block: Vec<Vec<u8>> = group.free.runs().map(free).collect();
        let by_size: Vec<Vec<u8>> = group.free.by_size().map(free).collect();
        let freeblks = group.free.total();
        let longest = group.free.longest().map_or(0, |run| run.len);
        let rmaps: Option<Vec<RawRmapRecord>> = plan.rmaps.iter().map(Rmap::encode).collect();
        let rmaps = rmaps.ok_or_else(|| unsettled("reverse mappings"))?;
        let rmaps: Vec<Vec<u8>> = rmaps.iter().map(|record| record.as_bytes().to_vec()).collect();
        let bno = self.load(index, BtreeKind::Bnobt, &mut own, by_block)?;
        let cnt = self.load(index, BtreeKind::Cntbt, &mut own, by_size)?;
        let rmap = match geometry.features.has_rmapbt() {
            true => Some(self.load(index, BtreeKind::Rmapbt, &mut own, rmaps)?),
            false => None,
        };
        let group = &mut self.space.groups[index];
        if group.free.total() != freeblks {
            return Err(unsettled("btree blocks"));
        }
        let agf = &mut group.agf;
        agf.bno_root.set(bno.root);
        agf.bno_level.set(bno.levels);
        agf.cnt_root.set(cnt.root);
        agf.cnt_level.set(cnt.levels);
        let mut btreeblks = bno.blocks - 1 + cnt.blocks - 1;
        if let Some(rmap) = rmap {
            agf.rmap_root.set(rmap.root);
            agf.rmap_level.set(rmap.levels);
            agf.rmap_blocks.set(rmap.blocks);
            btreeblks += rmap.blocks - 1;
        }
        agf.btreeblks.set(btreeblks);
        agf.freeblks.set(freeblks);
        agf.longest.set(longest);
        let count = u32::try_from(own.len()).map_err(|_| unsettled("the free list"))?;
        agf.flfirst.set(0);
        agf.fllast.set(count.checked_sub(1).unwrap_or(geometry.agfl_capacity - 1));
        agf.flcount.set(count);
        group.own_blocks = own.into();
        Ok(())
    }

    /// Loads a tree into the blocks that are there for it, and into free ones.
    fn load(
        &mut self,
        index: usize,
        kind: BtreeKind,
        blocks: &mut VecDeque<u32>,
        records: Vec<Vec<u8>>,
    ) -> Result<Loaded> {
        let layout = Layout::of_block(&self.geometry, kind);
        let agno = self.space.groups[index].agno;
        let identity = TreeIdentity::new(&self.geometry, TreeOwner::Group(agno));
        let count = records.len();
        let mut store = GroupStore { image: self, index, agno, blocks, taken: Vec::new() };
        let editor = bulk_load(&mut store, layout, identity, None, FILL, count, &mut records.into_iter())?;
        let EditRoot::Block { pointer, levels } = *editor.root() else { return Err(unsettled("a root")) };
        let taken = store.taken;
        let special = match kind {
            BtreeKind::Inobt | BtreeKind::Finobt => owner::INOBT,
            // the other trees are mapped together with the free list
            _ => return loaded(pointer, levels, taken.len()),
        };
        let group = &mut self.space.groups[index];
        let len = taken.len();
        for startblock in taken {
            group.note(&self.geometry, Rmap { startblock, blockcount: 1, owner: special, ..Rmap::default() });
        }
        loaded(pointer, levels, len)
    }

    fn write_headers(&mut self, index: usize) -> Result<()> {
        let geometry = &self.geometry;
        let group = &self.space.groups[index];
        let crcs = geometry.features.has_crc();
        let size = usize::try_from(geometry.sectsize).map_err(|_| unsettled("a sector"))?;
        let mut sectors = Vec::new();
        let mut agf = vec![0; size];
        agf[..RawAgf::SIZE].copy_from_slice(group.agf.as_bytes());
        sectors.push((AGF_SECTOR, agf, RawAgf::CRC_OFFSET));
        let mut agi = vec![0; size];
        agi[..RawAgi::SIZE].copy_from_slice(group.agi.as_bytes());
        sectors.push((AGI_SECTOR, agi, RawAgi::CRC_OFFSET));
        let mut agfl = vec![0; size];
        if crcs {
            let (head, _) = RawAgfl::prefix_mut(&mut agfl).ok_or_else(|| unsettled("a sector"))?;
            head.magicnum.set(RawAgfl::MAGIC);
            head.seqno.set(group.agno.0);
            head.uuid = geometry.meta_uuid;
        }
        let list = group.own_blocks.iter().copied().chain(std::iter::repeat(u32::MAX));
        for (slot, block) in RawAgfl::entries_mut(&mut agfl, crcs).iter_mut().zip(list) {
            slot.set(block);
        }
        sectors.push((RawAgfl::SECTOR, agfl, RawAgfl::CRC_OFFSET));
        for (number, mut bytes, offset) in sectors {
            if crcs {
                crc::stamp(&mut bytes, offset);
            }
            let daddr = geometry.ag_header_daddr(group.agno, number);
            let place = daddr.and_then(|daddr| geometry.daddr_offset(daddr)).ok_or_else(|| unsettled("a header"))?;
            self.output.metadata(place, bytes)?;
        }
        Ok(())
    }
}

fn loaded(pointer: u64, levels: u32, blocks: usize) -> Result<Loaded> {
    let root = u32::try_from(pointer).map_err(|_| unsettled("a root"))?;
    Ok(Loaded { root, levels, blocks: u32::try_from(blocks).map_err(|_| unsettled("a btree"))? })
}

/// Blocks of the btree of free inodes, from its records.
fn finobt_blocks(geometry: &Geometry, group: &Group) -> u32 {
    let open = group.chunks.values().filter(|chunk| chunk.freecount > 0).count();
    let (blocks, _) = bulk_size(&Layout::of_block(geometry, BtreeKind::Finobt), FILL, open);
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

fn chunk_records(chunks: &[InodeChunk], sparse: bool) -> Result<Vec<Vec<u8>>> {
    let encode = |chunk: &InodeChunk| {
        if sparse {
            chunk.encode_sparse().map(|record| record.as_bytes().to_vec())
        } else {
            chunk.encode_full().map(|record| record.as_bytes().to_vec())
        }
    };
    let records: Option<Vec<_>> = chunks.iter().map(encode).collect();
    records.ok_or_else(|| unsettled("a chunk of inodes"))
}

/// What the trees of free space and of reverse mappings will hold.
struct Plan {
    rmaps: Vec<Rmap>,
}

/// Gives the group's own trees and its free list as many blocks as they need.
fn settle(geometry: &Geometry, group: &mut Group) -> Result<Plan> {
    let layout = |kind| Layout::of_block(geometry, kind);
    let (bno, rmap) = (layout(BtreeKind::Bnobt), layout(BtreeKind::Rmapbt));
    let has_rmap = geometry.features.has_rmapbt();
    group.rmaps.sort_unstable_by_key(|rmap| (rmap.startblock, rmap.owner, rmap.offset));
    loop {
        let (space_blocks, space_levels) = bulk_size(&bno, FILL, group.free.runs().len());
        let rmaps = if has_rmap { with_own(&group.rmaps, &group.own_blocks) } else { Vec::new() };
        let (rmap_blocks, rmap_levels) = if has_rmap { bulk_size(&rmap, FILL, rmaps.len()) } else { (0, 0) };
        let list = geometry.min_freelist(space_levels, space_levels, rmap_levels);
        let need = 2 * space_blocks + rmap_blocks + usize::try_from(list).map_err(|_| unsettled("the free list"))?;
        let short = need.saturating_sub(group.own_blocks.len());
        // as in a filesystem that was just made, the free list gets what there is
        let least = need - usize::try_from(list).map_err(|_| unsettled("the free list"))?;
        if short == 0 || group.free.total() == 0 && least <= group.own_blocks.len() {
            return Ok(Plan { rmaps });
        }
        let count = u32::try_from(short).map_err(|_| unsettled("btree blocks"))?;
        take_own(group, count.min(group.free.total().max(1)))?;
    }
}

/// Takes free blocks for the trees and the free list, behind those that they have if there are some.
fn take_own(group: &mut Group, mut count: u32) -> Result<()> {
    let near = group.own_blocks.last().map_or(0, |last| last + 1);
    while count > 0 {
        let run = match group.free.find(count, 1, near) {
            Some(start) => Run { start, len: count },
            None => group.free.longest().ok_or_else(|| {
                Error::Usage(format!(
                    "the image is full: no space is left for the btrees of allocation group {}",
                    group.agno
                ))
            })?,
        };
        if !group.free.take(run) {
            return Err(unsettled("free blocks"));
        }
        group.own_blocks.extend(run.start..run.start + run.len);
        count -= run.len;
    }
    group.own_blocks.sort_unstable();
    Ok(())
}

/// The reverse mappings in order, with those of the group's own blocks; neighbours that continue each other are joined.
fn with_own(rmaps: &[Rmap], own: &[u32]) -> Vec<Rmap> {
    let own = own.iter().map(|&startblock| Rmap { startblock, blockcount: 1, owner: owner::AG, ..Rmap::default() });
    let mut own = own.peekable();
    let mut all: Vec<Rmap> = Vec::with_capacity(rmaps.len() + own.len());
    let mut add = |rmap: Rmap| match all.last_mut().filter(|last| continues(last, &rmap)) {
        Some(last) => last.blockcount += rmap.blockcount,
        None => all.push(rmap),
    };
    for rmap in rmaps {
        while let Some(before) = own.next_if(|own| own.startblock < rmap.startblock) {
            add(before);
        }
        add(*rmap);
    }
    own.for_each(add);
    all
}

fn continues(last: &Rmap, next: &Rmap) -> bool {
    let same = last.owner == next.owner
        && last.attr_fork == next.attr_fork
        && last.bmbt_block == next.bmbt_block
        && last.unwritten == next.unwritten;
    let len = u64::from(last.blockcount);
    let no_offset = owner::is_special(last.owner) || last.bmbt_block;
    same && u64::from(last.startblock) + len == u64::from(next.startblock)
        && (no_offset || last.offset + len == next.offset)
        && len + u64::from(next.blockcount) <= RMAP_LEN_MAX
}

/// The blocks of a tree of a group.
struct GroupStore<'s, 'a> {
    image: &'s mut Image<'a>,
    index: usize,
    agno: AgNumber,
    blocks: &'s mut VecDeque<u32>,
    taken: Vec<u32>,
}

impl GroupStore<'_, '_> {
    fn place(&self, pointer: u64) -> Option<u64> {
        let block = AgBlock(u32::try_from(pointer).ok()?);
        self.image.geometry.ag_daddr(self.agno, block).map(|daddr| daddr.0)
    }
}

impl BlockStore for GroupStore<'_, '_> {
    fn allocate(&mut self) -> Result<u64> {
        let group = &mut self.image.space.groups[self.index];
        let block = match self.blocks.pop_front() {
            Some(block) => block,
            None => {
                let near = self.taken.last().copied().unwrap_or(group.next_chunk);
                let start = group.free.find(1, 1, near).ok_or_else(|| {
                    Error::Usage(format!(
                        "the image is full: no space is left for the btrees of allocation group {}",
                        self.agno
                    ))
                })?;
                group.free.take(Run { start, len: 1 });
                start
            }
        };
        self.taken.push(block);
        Ok(u64::from(block))
    }

    fn free(&mut self, _pointer: u64) -> Result<()> {
        Err(unsettled("a btree"))
    }

    fn read(&self, _pointer: u64) -> Result<Vec<u8>> {
        Err(unsettled("a btree"))
    }

    fn write(&mut self, pointer: u64, bytes: Vec<u8>) -> Result<()> {
        let place = self.place(pointer).ok_or_else(|| unsettled("a btree"))?;
        self.image.output.metadata(place * 512, bytes)
    }

    fn daddr(&self, pointer: u64) -> u64 {
        self.place(pointer).unwrap_or(0)
    }
}

fn unsettled(what: &str) -> Error {
    Error::Internal(format!("{what} of a group do not come out as planned"))
}
