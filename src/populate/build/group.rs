//! A group of the new image: what is free in it, who owns the rest, which inodes it has.

use std::collections::{BTreeMap, BTreeSet};

use super::free_space::{FreeSpace, Run};
use crate::btree::{Step, Tree, Visit, walk};
use crate::buffer::{BlockCache, BlockKind};
use crate::error::{Error, Result};
use crate::geometry::{AgBlock, AgNumber, BtreeKind, Geometry};
use crate::ondisk::rmap_record::owner;
use crate::ondisk::{
    InodeChunk, OnDisk, RawAgf, RawAgfl, RawAgi, RawAllocRecord, RawInobtRecord, RawRmapRecord, RawSparseInobtRecord,
    Rmap,
};

/// Blocks of each group that stay free for changes of the btrees (Linux `xfs_alloc_set_aside`, `XFS_ALLOCBT_AGFL_RESERVE`
/// and four more).
const SET_ASIDE: u64 = 8;

/// A group.
pub(super) struct Group {
    /// Its number.
    pub agno: AgNumber,
    /// Its length in blocks.
    pub blocks: u32,
    /// What is free; the blocks of its btrees and of its free list are not among it.
    pub free: FreeSpace,
    /// Blocks that stay free while files are laid out.
    pub kept_back: u64,
    /// Who owns blocks, where there are reverse mappings; the btrees and the free list are left out.
    pub rmaps: Vec<Rmap>,
    /// Chunks of inodes by their first inode.
    pub chunks: BTreeMap<u32, InodeChunk>,
    /// Those of them that have free inodes.
    pub open_chunks: BTreeSet<u32>,
    /// Blocks that the btrees of free space and of reverse mappings, and the free list, have had so far, in order.
    pub own_blocks: Vec<u32>,
    /// The same of the inode btrees.
    pub inode_tree_blocks: Vec<u32>,
    /// Its headers.
    pub agf: RawAgf,
    /// See [`Group::agf`].
    pub agi: RawAgi,
    /// The group has had less free space than it should keep back since it was made: a log fills it.
    pub short_from_the_start: bool,
    /// Where the next chunk of inodes is looked for.
    pub next_chunk: u32,
    /// Chunks of inodes that a block of their btree describes.
    chunks_per_block: usize,
}

impl Group {
    /// Group `agno` of a filesystem that was just made.
    pub fn take_over(cache: &BlockCache, agno: AgNumber) -> Result<Self> {
        let geometry = cache.geometry();
        let agf = *cache.agf(agno)?;
        let agi = *cache.agi(agno)?;
        let mut group = Group {
            agno,
            blocks: geometry.ag_blocks(agno).ok_or_else(|| unexpected("a group"))?,
            free: FreeSpace::default(),
            kept_back: 0,
            rmaps: Vec::new(),
            chunks: BTreeMap::new(),
            open_chunks: BTreeSet::new(),
            own_blocks: free_list(cache, agno, &agf)?,
            inode_tree_blocks: Vec::new(),
            agf,
            agi,
            short_from_the_start: false,
            next_chunk: 0,
            chunks_per_block: usize::try_from(geometry.btree(BtreeKind::Inobt).leaf_min)
                .map_err(|_| unexpected("a btree"))?,
        };
        group.read_space(cache)?;
        group.read_inodes(cache)?;
        group.own_blocks.sort_unstable();
        group.inode_tree_blocks.sort_unstable();
        group.next_chunk = group.chunks.keys().next_back().map_or(0, |&last| geometry.agino_parts(last.into()).0.0);
        let used =
            u64::from(agf.refcount_blocks.get()) + u64::from(agf.rmap_blocks.get()) + finobt_blocks(geometry, &agi);
        let list = geometry.min_freelist(2, 2, agf.rmap_level.get() + 1);
        let reserve = geometry.ag_reserve(agno).saturating_sub(used);
        group.kept_back = reserve + SET_ASIDE + u64::from(list);
        group.short_from_the_start = u64::from(agf.freeblks.get()) + u64::from(agf.flcount.get()) < reserve;
        Ok(group)
    }

    fn read_space(&mut self, cache: &BlockCache) -> Result<()> {
        let agf = self.agf;
        let mut free = FreeSpace::default();
        let mut own = Vec::new();
        read_tree(
            cache,
            self.agno,
            BtreeKind::Bnobt,
            agf.bno_root.get(),
            agf.bno_level.get(),
            &mut own,
            &mut |bytes| {
                let (record, _) = RawAllocRecord::prefix(bytes)?;
                let extent = record.decode();
                free.insert(Run { start: extent.startblock, len: extent.blockcount });
                Some(())
            },
        )?;
        read_tree(cache, self.agno, BtreeKind::Cntbt, agf.cnt_root.get(), agf.cnt_level.get(), &mut own, &mut |_| {
            Some(())
        })?;
        if cache.geometry().features.has_rmapbt() {
            let mut rmaps = Vec::new();
            let (root, levels) = (agf.rmap_root.get(), agf.rmap_level.get());
            read_tree(cache, self.agno, BtreeKind::Rmapbt, root, levels, &mut own, &mut |bytes| {
                let rmap = RawRmapRecord::prefix(bytes)?.0.decode()?;
                if rmap.owner != owner::AG && rmap.owner != owner::INOBT {
                    rmaps.push(rmap);
                }
                Some(())
            })?;
            self.rmaps = rmaps;
        }
        self.free = free;
        self.own_blocks.extend(own);
        Ok(())
    }

    fn read_inodes(&mut self, cache: &BlockCache) -> Result<()> {
        let agi = self.agi;
        let sparse = cache.geometry().features.has_sparseinodes();
        let (mut chunks, mut blocks) = (BTreeMap::new(), Vec::new());
        read_tree(cache, self.agno, BtreeKind::Inobt, agi.root.get(), agi.level.get(), &mut blocks, &mut |bytes| {
            let chunk = if sparse {
                RawSparseInobtRecord::prefix(bytes)?.0.decode()
            } else {
                RawInobtRecord::prefix(bytes)?.0.decode()
            };
            chunks.insert(chunk.startino, chunk);
            Some(())
        })?;
        if cache.geometry().features.has_finobt() {
            let (root, levels) = (agi.free_root.get(), agi.free_level.get());
            read_tree(cache, self.agno, BtreeKind::Finobt, root, levels, &mut blocks, &mut |_| Some(()))?;
        }
        self.open_chunks = chunks.values().filter(|chunk| chunk.freecount > 0).map(|chunk| chunk.startino).collect();
        self.chunks = chunks;
        self.inode_tree_blocks = blocks;
        Ok(())
    }

    /// Blocks that files may still take: what is free but for the reserve and for the btree of the inodes.
    pub fn available(&self) -> u32 {
        let inode_tree = self.chunks.len() / self.chunks_per_block.max(1);
        let kept = self.kept_back.saturating_add(u64::try_from(inode_tree).unwrap_or(u64::MAX));
        u32::try_from(u64::from(self.free.total()).saturating_sub(kept)).unwrap_or(u32::MAX)
    }

    /// Notes who owns blocks.
    pub fn note(&mut self, geometry: &Geometry, rmap: Rmap) {
        if geometry.features.has_rmapbt() {
            self.rmaps.push(rmap);
        }
    }
}

/// Blocks of the btree of free inodes of a group that was just made.
fn finobt_blocks(geometry: &Geometry, agi: &RawAgi) -> u64 {
    match geometry.features {
        features if !features.has_finobt() => 0,
        features if features.has_inobtcount() => u64::from(agi.fblocks.get()),
        _ => 1,
    }
}

/// The blocks of the free list.
fn free_list(cache: &BlockCache, agno: AgNumber, agf: &RawAgf) -> Result<Vec<u32>> {
    let block = cache.read_header(BlockKind::Agfl, agno)?.sound()?;
    let entries = RawAgfl::entries(block.bytes(), cache.geometry().features.has_crc());
    let first = usize::try_from(agf.flfirst.get()).map_err(|_| unexpected("the free list"))?;
    let count = usize::try_from(agf.flcount.get()).map_err(|_| unexpected("the free list"))?;
    let list = entries.iter().cycle().skip(first).take(count.min(entries.len())).map(|block| block.get());
    Ok(list.collect())
}

/// Hands all records of a tree to `record`, and adds its blocks to `blocks`.
fn read_tree(
    cache: &BlockCache,
    agno: AgNumber,
    kind: BtreeKind,
    root: u32,
    levels: u32,
    blocks: &mut Vec<u32>,
    record: &mut dyn FnMut(&[u8]) -> Option<()>,
) -> Result<()> {
    let tree = Tree::of_group(kind, agno, AgBlock(root), levels);
    let budget = u64::from(cache.geometry().agblocks);
    let walked = walk(cache, &tree, budget, &mut |visit| {
        match visit {
            Visit::Block { pointer, .. } => {
                blocks.push(u32::try_from(pointer).map_err(|_| unexpected("a block of a btree"))?);
            }
            Visit::Record { record: bytes, .. } => record(bytes).ok_or_else(|| unexpected("a record of a btree"))?,
        }
        Ok(Step::Continue)
    })?;
    walked.verdict.into_result()
}

fn unexpected(what: &str) -> Error {
    Error::Internal(format!("{what} of the new filesystem is not as it was made"))
}
