//! New inodes made (`xfs_ialloc_ag_alloc`, `xfs_ialloc_inode_init`).

use zerocopy::{FromZeros, IntoBytes};

use super::group::{clusters, count_inodes};
use super::initial::mix;
use super::tree::InodeTree;
use crate::error::{Error, Result, Rule};
use crate::geometry::{AgBlock, AgNumber, BtreeKind, FsBlock, Geometry, Ino};
use crate::ondisk::inobt_record::INODES_PER_HOLEMASK_BIT;
use crate::ondisk::log_item::RawIcreateLog;
use crate::ondisk::{BigEndian, INODES_PER_CHUNK, InodeChunk, NULLAGINO, RawDinode, crc};
use crate::transaction::{CounterChange, Logged, Transaction};
use crate::volume::space::{self, AllocationRequest, Purpose, RmapOwner, Target};

/// Blocks for new inodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    start: AgBlock,
    len: u32,
    /// They are fewer than a chunk takes.
    sparse: bool,
}

/// Makes inodes in a group: a chunk, or where that has no room a part of one. `false` when not even that fits.
pub(super) fn make_chunk(tx: &mut Transaction<'_>, agno: AgNumber) -> Result<bool> {
    let agi = space::agi(tx.store(), agno)?;
    let Some(place) = find_place(tx, agno, agi.newino.get(), AgBlock(agi.root.get()))? else { return Ok(false) };
    let per_block = tx.store().geometry().inodes.per_block;
    let first = place.start.0 * per_block;
    let inodes = place.len * per_block;
    write_inodes(tx, agno, place, inodes)?;
    let newino = if place.sparse { add_part(tx, agno, first, inodes)? } else { add_chunks(tx, agno, first, inodes)? };
    let count = i32::try_from(inodes).map_err(|_| Error::Internal("a chunk of too many inodes".to_owned()))?;
    space::change_agi(tx, agno, |agi| agi.newino.set(newino))?;
    count_inodes(tx, agno, count, count)?;
    let count = i64::from(count);
    tx.count(CounterChange { icount: count, ifree: count, ..CounterChange::default() });
    Ok(true)
}

/// Blocks right behind the chunk made last, else aligned ones near the inode btree's root, else a part of a chunk.
fn find_place(tx: &mut Transaction<'_>, agno: AgNumber, newino: u32, root: AgBlock) -> Result<Option<Place>> {
    let geometry = tx.store().geometry();
    let inodes = geometry.inodes;
    let fsb = |agbno: u32| geometry.fsb(agno, AgBlock(agbno));
    let whole = inodes.alloc_blocks;
    let behind = (newino != NULLAGINO).then(|| newino / inodes.per_block + whole).and_then(fsb);
    let root = fsb(root.0).ok_or_else(|| InodeTree::all(agno).corrupt("root", Rule::Range))?;
    let stripe = (inodes.stripe_align > 0).then_some(geometry.stripe_unit);
    let (sparse_align, part) = (inodes.sparse_align, inodes.alloc_min_blocks);
    let has_parts = geometry.features.has_sparseinodes() && part < whole;
    let bounds = part_bounds(geometry, agno);
    let min_left = geometry.btree(BtreeKind::Inobt).max_levels;
    let mut attempts = Vec::new();
    attempts.extend(behind.map(|behind| (Target::Exact(behind), whole, 1)));
    attempts.extend(stripe.map(|align| (Target::Near(root), whole, align)));
    attempts.push((Target::Near(root), whole, inodes.cluster_align));
    attempts.extend(has_parts.then_some((Target::Near(root), part, sparse_align)));
    for (target, len, align) in attempts {
        let sparse = len < whole;
        let mut request = AllocationRequest::new(target, len, len, RmapOwner::INODES, Purpose::Metadata);
        request.align = align;
        request.align_slop = if matches!(target, Target::Exact(_)) { inodes.cluster_align - 1 } else { 0 };
        request.min_left = min_left;
        request.range = sparse.then_some(bounds);
        if let Some((start, _)) = space::allocate(tx, &request)? {
            return Ok(Some(Place { start: block_of(tx, start)?, len, sparse }));
        }
    }
    Ok(None)
}

/// The first and the last block at which a part of a chunk may begin, so that the whole chunk would lie within the group.
fn part_bounds(geometry: &Geometry, agno: AgNumber) -> (AgBlock, AgBlock) {
    let align = geometry.inodes.chunk_align.max(1);
    let blocks = geometry.ag_blocks(agno).unwrap_or(0);
    (AgBlock(align), AgBlock((blocks / align * align).saturating_sub(1)))
}

fn block_of(tx: &Transaction<'_>, start: FsBlock) -> Result<AgBlock> {
    let parts = tx.store().geometry().fsb_parts(start);
    parts.map(|(_, agbno)| agbno).ok_or_else(|| Error::Internal(format!("block {start} was allocated")))
}

/// Writes free inodes into new blocks: behind an ICREATE item where inodes have version 3, else logged.
fn write_inodes(tx: &mut Transaction<'_>, agno: AgNumber, place: Place, inodes: u32) -> Result<()> {
    let geometry = tx.store().geometry().clone();
    let now = tx.store().now();
    let words = [now.seconds.cast_unsigned(), u64::from(now.nanoseconds), u64::from(agno.0), u64::from(place.start.0)];
    let generation = mix(&geometry, &words);
    let first = geometry.agbno_agino(place.start).and_then(|agino| geometry.ino(agno, agino));
    let mut ino = first.ok_or_else(|| InodeTree::all(agno).corrupt("startino", Rule::Range))?;
    let crc = geometry.features.has_crc();
    if crc {
        let mut item = RawIcreateLog::<BigEndian>::new_zeroed();
        (item.ag, item.agbno, item.count) = (agno.0.into(), place.start.0.into(), inodes.into());
        (item.isize, item.length) = (geometry.inodes.size.into(), place.len.into());
        item.generation = generation.into();
        tx.log_icreate(&item);
    }
    for request in clusters(tx, agno, place.start, place.len)? {
        let mut bytes = Vec::new();
        for _ in 0..request.len() >> geometry.inodes.log {
            bytes.extend(free_inode(&geometry, ino, generation));
            ino = Ino(ino.0 + 1);
        }
        if crc {
            tx.write_ordered(&request, bytes)?;
        } else {
            tx.write_new(&request, bytes, &Logged::All)?;
        }
    }
    Ok(())
}

fn free_inode(geometry: &Geometry, ino: Ino, generation: u32) -> Vec<u8> {
    let mut raw = RawDinode::new_zeroed();
    raw.core.magic.set(RawDinode::MAGIC);
    raw.core.version = if geometry.features.has_crc() { 3 } else { 2 };
    raw.core.generation.set(generation);
    raw.core.next_unlinked.set(NULLAGINO);
    if geometry.features.has_crc() {
        raw.ino.set(ino.0);
        raw.uuid = geometry.meta_uuid;
    }
    let mut bytes = raw.as_bytes()[..raw.core.literal_offset()].to_vec();
    bytes.resize(1 << geometry.inodes.log, 0);
    if geometry.features.has_crc() {
        crc::stamp(&mut bytes, RawDinode::CRC_OFFSET);
    }
    bytes
}

/// Enters whole chunks into the btrees; returns the first inode.
fn add_chunks(tx: &mut Transaction<'_>, agno: AgNumber, first: u32, inodes: u32) -> Result<u32> {
    for startino in (first..first + inodes).step_by(INODES_PER_CHUNK as usize) {
        let chunk = InodeChunk { startino, holemask: 0, count: 64, freecount: INODES_PER_CHUNK, free: u64::MAX };
        InodeTree::all(agno).insert(tx, &chunk)?;
        if let Some(tree) = InodeTree::free(tx, agno) {
            tree.insert(tx, &chunk)?;
        }
    }
    Ok(first)
}

/// Enters a part of a chunk into the btrees, where there may be another part of the same chunk; returns the chunk's first
/// inode.
fn add_part(tx: &mut Transaction<'_>, agno: AgNumber, first: u32, inodes: u32) -> Result<u32> {
    let all = InodeTree::all(agno);
    let new =
        part_of_chunk(tx.store().geometry(), first, inodes).ok_or_else(|| all.corrupt("holemask", Rule::Range))?;
    let chunk = match all.get(tx, new.startino)? {
        None => {
            all.insert(tx, &new)?;
            new
        }
        Some(old) => {
            let merged = merge(&old, &new).ok_or_else(|| all.corrupt("holemask", Rule::Order))?;
            all.replace(tx, &merged)?;
            merged
        }
    };
    if let Some(tree) = InodeTree::free(tx, agno) {
        match tree.get(tx, chunk.startino)? {
            None => tree.insert(tx, &chunk)?,
            Some(_) => tree.replace(tx, &chunk)?,
        }
    }
    Ok(chunk.startino)
}

/// The record of `inodes` inodes from `first` on, all free, as part of the aligned chunk that they belong to.
fn part_of_chunk(geometry: &Geometry, first: u32, inodes: u32) -> Option<InodeChunk> {
    let align = geometry.inodes.chunk_align.max(1).checked_mul(geometry.inodes.per_block)?;
    let startino = first - first % align;
    let (skipped, bits) = ((first - startino) / INODES_PER_HOLEMASK_BIT, inodes / INODES_PER_HOLEMASK_BIT);
    if skipped + bits > u16::BITS || bits == 0 {
        return None;
    }
    let present = u16::try_from(((1_u32 << bits) - 1) << skipped).ok()?;
    let count = u8::try_from(inodes).ok()?;
    Some(InodeChunk { startino, holemask: !present, count, freecount: inodes, free: u64::MAX })
}

/// Two parts of a chunk as one record; `None` when they overlap.
fn merge(old: &InodeChunk, new: &InodeChunk) -> Option<InodeChunk> {
    if !old.holemask & !new.holemask != 0 || old.startino != new.startino {
        return None;
    }
    Some(InodeChunk {
        startino: old.startino,
        holemask: old.holemask & new.holemask,
        count: old.count.checked_add(new.count)?,
        freecount: old.freecount + new.freecount,
        free: old.free & new.free,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::samples;

    #[test]
    fn parts_of_a_chunk_join() {
        let mut geometry = Geometry::assume(&samples::superblock("default"));
        geometry.inodes.chunk_align = 8;
        geometry.inodes.per_block = 8;
        let part = |first| part_of_chunk(&geometry, first, 16).expect("aligned");
        let (low, high) = (part(128), part(160));
        assert_eq!((low.startino, low.holemask, low.count), (128, 0xfff0, 16));
        assert_eq!((high.startino, high.holemask), (128, 0xf0ff));
        let both = merge(&low, &high).expect("apart");
        assert_eq!((both.holemask, both.count, both.freecount), (0xf0f0, 32, 32));
        assert_eq!(merge(&both, &low), None);
        let used = InodeChunk { free: !1, freecount: 15, ..low };
        assert_eq!(merge(&used, &high).map(|chunk| (chunk.free, chunk.freecount)), Some((!1, 31)));
    }
}
