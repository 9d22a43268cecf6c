//! What the records of each tree must say (Linux `xfs_*_check_irec`, `xfs_bmap_validate_extent`).

use super::tree::{ForkContents, Tree, TreeOwner};
use crate::error::{Check, Rule};
use crate::geometry::{AgBlock, AgIno, AgNumber, BtreeKind, FsBlock, Geometry, Ino, RgNumber, RtBlock};
use crate::ondisk::extent::MAX_STARTOFF;
use crate::ondisk::inobt_record::INODES_PER_HOLEMASK_BIT;
use crate::ondisk::rmap_record::owner;
use crate::ondisk::{
    Extent, INODES_PER_CHUNK, InodeChunk, OnDisk, RawAllocRecord, RawExtent, RawInobtRecord, RawRefcountRecord,
    RawRmapRecord, RawSparseInobtRecord, Refcount, Rmap,
};

/// Where records of a tree belong.
#[derive(Clone, Copy, Debug)]
pub struct RecordContext<'a> {
    /// The filesystem.
    pub geometry: &'a Geometry,
    /// The allocation group, for trees of one.
    pub agno: Option<AgNumber>,
    /// The realtime group, for trees of one, where it is known.
    pub rgno: Option<RgNumber>,
    /// What the fork holds, for extent trees.
    pub fork: ForkContents,
}

impl<'a> RecordContext<'a> {
    /// The context of the records of `tree`.
    pub fn of(geometry: &'a Geometry, tree: &Tree<'_>) -> Self {
        let agno = if let TreeOwner::Group(agno) = tree.owner { Some(agno) } else { None };
        RecordContext { geometry, agno, rgno: None, fork: tree.fork }
    }

    fn in_group(&self, start: u32, len: u32) -> bool {
        let Some(agno) = self.agno else { return true };
        let Some(last) = len.checked_sub(1).and_then(|more| start.checked_add(more)) else { return false };
        [start, last].iter().all(|&block| self.geometry.is_usable_agbno(agno, AgBlock(block)))
    }

    fn in_realtime_group(&self, start: u32, len: u32) -> bool {
        let Some(end) = start.checked_add(len) else { return false };
        let blocks = self.rgno.and_then(|rgno| self.geometry.realtime.group_blocks(rgno));
        let most = self.geometry.realtime.groups.map_or(0, |groups| u64::from(groups.blocks));
        len > 0 && u64::from(end) <= blocks.unwrap_or(most)
    }
}

/// The rules that a record of `kind` breaks.
pub fn check_record(kind: BtreeKind, record: &[u8], context: &RecordContext<'_>) -> Vec<Check> {
    let mut failed = Failed { structure: kind.name(), checks: Vec::new() };
    match kind {
        BtreeKind::Bnobt | BtreeKind::Cntbt => {
            if let Some((raw, _)) = RawAllocRecord::prefix(record) {
                let extent = raw.decode();
                let len = extent.blockcount;
                failed.unless(len > 0, "blockcount", Rule::Range);
                failed.unless(len == 0 || context.in_group(extent.startblock, len), "startblock", Rule::Range);
            }
        }
        BtreeKind::Inobt | BtreeKind::Finobt => check_chunk(&mut failed, record, context),
        BtreeKind::Rmapbt => check_rmap(&mut failed, record, context),
        BtreeKind::Rtrmapbt => check_rtrmap(&mut failed, record, context),
        BtreeKind::Refcountbt | BtreeKind::Rtrefcountbt => {
            if let Some((raw, _)) = RawRefcountRecord::prefix(record) {
                check_refcount(&mut failed, kind, &raw.decode(), context);
            }
        }
        BtreeKind::Bmbt => {
            if let Some((raw, _)) = RawExtent::prefix(record) {
                check_extent(&mut failed, &raw.decode(), context);
            }
        }
    }
    failed.checks
}

struct Failed {
    structure: &'static str,
    checks: Vec<Check>,
}

impl Failed {
    fn unless(&mut self, holds: bool, field: &'static str, rule: Rule) {
        let check = Check::new(self.structure, field, rule);
        if !holds && !self.checks.contains(&check) {
            self.checks.push(check);
        }
    }
}

fn check_chunk(failed: &mut Failed, record: &[u8], context: &RecordContext<'_>) {
    let chunk: InodeChunk = if context.geometry.features.has_sparseinodes() {
        let Some((raw, _)) = RawSparseInobtRecord::prefix(record) else { return };
        raw.decode()
    } else {
        let Some((raw, _)) = RawInobtRecord::prefix(record) else { return };
        raw.decode()
    };
    if let Some(agno) = context.agno {
        let last = chunk.startino.checked_add(INODES_PER_CHUNK - 1);
        let valid = |agino: u32| context.geometry.is_valid_agino(agno, AgIno(agino));
        failed.unless(valid(chunk.startino) && last.is_some_and(valid), "startino", Rule::Range);
    }
    let count = u32::from(chunk.count);
    failed.unless((INODES_PER_HOLEMASK_BIT..=INODES_PER_CHUNK).contains(&count), "count", Rule::Range);
    failed.unless(chunk.freecount <= INODES_PER_CHUNK, "freecount", Rule::Range);
    let free = (chunk.free & chunk.allocated_mask()).count_ones();
    failed.unless(free == chunk.freecount, "freecount", Rule::Mismatch);
}

fn check_rmap(failed: &mut Failed, record: &[u8], context: &RecordContext<'_>) {
    let Some((raw, _)) = RawRmapRecord::prefix(record) else { return };
    let Some(rmap) = raw.decode() else { return failed.unless(false, "offset", Rule::Flags) };
    let geometry = context.geometry;
    failed.unless(rmap.blockcount > 0, "blockcount", Rule::Range);
    let headers = geometry.ag_header_blocks();
    if rmap.startblock < headers {
        let whole = rmap.owner == owner::FS && rmap.blockcount == headers;
        failed.unless(whole, "startblock", Rule::Mismatch);
    } else {
        let inside = rmap.blockcount == 0 || context.in_group(rmap.startblock, rmap.blockcount);
        failed.unless(inside, "startblock", Rule::Range);
    }
    let defined = (owner::MIN_DEFINED..=owner::FS).contains(&rmap.owner);
    failed.unless(defined || geometry.is_valid_ino(Ino(rmap.owner)), "owner", Rule::Range);
    check_rmap_offset(failed, &rmap);
}

fn check_rmap_offset(failed: &mut Failed, rmap: &Rmap) {
    let inode = !owner::is_special(rmap.owner);
    let flagged = rmap.bmbt_block || rmap.unwritten || rmap.attr_fork;
    failed.unless(inode || !flagged, "offset", Rule::Flags);
    failed.unless(!rmap.unwritten || !(rmap.bmbt_block || rmap.attr_fork), "offset", Rule::Flags);
    let moves = inode && !rmap.bmbt_block;
    failed.unless(moves || rmap.offset == 0, "offset", Rule::Range);
    let last = rmap.offset.saturating_add(u64::from(rmap.blockcount)).saturating_sub(1);
    failed.unless(!moves || last <= MAX_STARTOFF, "offset", Rule::Range);
}

fn check_rtrmap(failed: &mut Failed, record: &[u8], context: &RecordContext<'_>) {
    let Some((raw, _)) = RawRmapRecord::prefix(record) else { return };
    let Some(rmap) = raw.decode() else { return failed.unless(false, "offset", Rule::Flags) };
    failed.unless(rmap.blockcount > 0, "blockcount", Rule::Range);
    failed.unless(!rmap.bmbt_block && !rmap.attr_fork, "offset", Rule::Flags);
    let inside = rmap.blockcount == 0 || context.in_realtime_group(rmap.startblock, rmap.blockcount);
    failed.unless(inside, "startblock", Rule::Range);
    let header = rmap.startblock == 0 && rmap.blockcount == context.geometry.realtime.extent_blocks;
    failed.unless(rmap.owner != owner::FS || header, "startblock", Rule::Mismatch);
    let special = rmap.owner == owner::FS || rmap.owner == owner::COW && context.geometry.features.has_rtreflink();
    failed.unless(special || context.geometry.is_valid_ino(Ino(rmap.owner)), "owner", Rule::Range);
    check_rmap_offset(failed, &rmap);
}

fn check_refcount(failed: &mut Failed, kind: BtreeKind, refcount: &Refcount, context: &RecordContext<'_>) {
    let (start, len) = (refcount.startblock, refcount.blockcount);
    failed.unless(len > 0, "blockcount", Rule::Range);
    let inside = match kind {
        BtreeKind::Rtrefcountbt => context.in_realtime_group(start, len),
        _ => context.in_group(start, len),
    };
    failed.unless(len == 0 || inside, "startblock", Rule::Range);
    // what is held for copy on write has one owner, what is shared has several
    let fine = if refcount.cow { refcount.refcount == 1 } else { refcount.refcount >= 2 };
    failed.unless(fine, "refcount", Rule::Range);
}

fn check_extent(failed: &mut Failed, extent: &Extent, context: &RecordContext<'_>) {
    let geometry = context.geometry;
    let len = u64::from(extent.blockcount);
    failed.unless(len > 0, "blockcount", Rule::Range);
    let last = extent.startoff.saturating_add(len).saturating_sub(1);
    failed.unless(last <= MAX_STARTOFF, "startoff", Rule::Range);
    let inside = match context.fork {
        ForkContents::Realtime => geometry.is_usable_rt_extent(RtBlock(extent.startblock), len),
        ForkContents::Data | ForkContents::Attributes => geometry.is_usable_extent(FsBlock(extent.startblock), len),
    };
    failed.unless(len == 0 || inside, "startblock", Rule::Range);
    failed.unless(!extent.unwritten || context.fork != ForkContents::Attributes, "unwritten", Rule::Flags);
}
