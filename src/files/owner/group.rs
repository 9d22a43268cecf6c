//! What a group of the data device uses by itself.

use super::BlockOwner;
use crate::btree::{Step, Tree, Visit, walk};
use crate::buffer::BlockKind;
use crate::error::{Error, Result};
use crate::geometry::{AgBlock, AgIno, AgNumber, BtreeKind};
use crate::ondisk::{
    OnDisk, RawAgf, RawAgfl, RawAgi, RawAllocRecord, RawInobtRecord, RawRefcountRecord, RawSparseInobtRecord,
};
use crate::tree::Reader;

/// Adds what of group `agno` owns its block `agbno`.
pub(super) fn owners(reader: &Reader<'_>, agno: AgNumber, agbno: AgBlock, owners: &mut Vec<BlockOwner>) -> Result<()> {
    let geometry = reader.geometry();
    if agbno.0 < geometry.ag_header_blocks() {
        owners.push(BlockOwner::Headers);
    }
    if in_journal(reader, agno, agbno) {
        owners.push(BlockOwner::Journal);
    }
    let mut trees = Vec::new();
    if let Some(agf) = header::<RawAgf>(reader, BlockKind::Agf, agno)? {
        if is_in_free_list(reader, agno, agbno, &agf)? {
            owners.push(BlockOwner::FreeList);
        }
        trees.push((BtreeKind::Bnobt, agf.bno_root, agf.bno_level));
        trees.push((BtreeKind::Cntbt, agf.cnt_root, agf.cnt_level));
        if geometry.features.has_rmapbt() {
            trees.push((BtreeKind::Rmapbt, agf.rmap_root, agf.rmap_level));
        }
        if geometry.features.has_reflink() {
            trees.push((BtreeKind::Refcountbt, agf.refcount_root, agf.refcount_level));
        }
    }
    if let Some(agi) = header::<RawAgi>(reader, BlockKind::Agi, agno)? {
        trees.push((BtreeKind::Inobt, agi.root, agi.level));
        if geometry.features.has_finobt() {
            trees.push((BtreeKind::Finobt, agi.free_root, agi.free_level));
        }
    }
    for (kind, root, level) in trees {
        let tree = Tree::of_group(kind, agno, AgBlock(root.get()), level.get());
        in_tree(reader, &tree, agno, agbno, owners)?;
    }
    Ok(())
}

/// One of the group's headers; what it fails is reported.
fn header<T: OnDisk + Copy>(reader: &Reader<'_>, kind: BlockKind, agno: AgNumber) -> Result<Option<T>> {
    let block = reader.image().cache().read_header(kind, agno)?;
    for failure in block.verdict().failures() {
        reader.report(&Error::Corrupt(Box::new(failure.clone())));
    }
    Ok(T::prefix(block.bytes()).map(|(raw, _)| *raw))
}

fn in_journal(reader: &Reader<'_>, agno: AgNumber, agbno: AgBlock) -> bool {
    let geometry = reader.geometry();
    let start = geometry.log.start.and_then(|start| geometry.fsb_parts(start));
    start.is_some_and(|(group, first)| {
        group == agno && agbno.0.checked_sub(first.0).is_some_and(|behind| behind < geometry.log.blocks)
    })
}

/// Whether the block is one of those between the first and the last of the free list, a ring.
fn is_in_free_list(reader: &Reader<'_>, agno: AgNumber, agbno: AgBlock, agf: &RawAgf) -> Result<bool> {
    let block = reader.image().cache().read_header(BlockKind::Agfl, agno)?;
    let entries = RawAgfl::entries(block.bytes(), reader.geometry().features.has_crc());
    let len = entries.len().max(1);
    let index = |raw: u32| usize::try_from(raw).unwrap_or(0);
    let (first, count) = (index(agf.flfirst.get()), index(agf.flcount.get()).min(len));
    let used = (0..count).filter_map(|at| entries.get((first % len + at) % len));
    Ok(used.into_iter().any(|entry| entry.get() == agbno.0))
}

/// Adds a tree that has the block, and what its records say of it.
fn in_tree(
    reader: &Reader<'_>,
    tree: &Tree<'_>,
    agno: AgNumber,
    agbno: AgBlock,
    owners: &mut Vec<BlockOwner>,
) -> Result<()> {
    let geometry = reader.geometry();
    let budget = u64::from(geometry.ag_blocks(agno).unwrap_or(0));
    let sparse = geometry.features.has_sparseinodes();
    let walked = walk(reader.image().cache(), tree, budget, &mut |visit| {
        match visit {
            Visit::Block { pointer, .. } if pointer == u64::from(agbno.0) => owners.push(BlockOwner::Btree(tree.kind)),
            Visit::Block { .. } => {}
            Visit::Record { record, .. } => owners.extend(match tree.kind {
                BtreeKind::Bnobt => RawAllocRecord::prefix(record).and_then(|(raw, _)| {
                    covers(raw.startblock.get(), raw.blockcount.get(), agbno).then_some(BlockOwner::Free)
                }),
                BtreeKind::Refcountbt => {
                    RawRefcountRecord::prefix(record).map(|(raw, _)| raw.decode()).and_then(|raw| {
                        (raw.cow && covers(raw.startblock, raw.blockcount, agbno)).then_some(BlockOwner::CopyOnWrite)
                    })
                }
                BtreeKind::Inobt => in_chunk(reader, record, sparse, agno, agbno),
                _ => None,
            }),
        }
        Ok(Step::Continue)
    })?;
    for failure in walked.verdict.failures() {
        reader.report(&Error::Corrupt(Box::new(failure.clone())));
    }
    Ok(())
}

fn covers(start: u32, len: u32, agbno: AgBlock) -> bool {
    agbno.0.checked_sub(start).is_some_and(|behind| behind < len)
}

/// Whether inodes of a chunk lie in the block, outside its holes.
fn in_chunk(reader: &Reader<'_>, record: &[u8], sparse: bool, agno: AgNumber, agbno: AgBlock) -> Option<BlockOwner> {
    let geometry = reader.geometry();
    let chunk = if sparse {
        RawSparseInobtRecord::prefix(record)?.0.decode()
    } else {
        RawInobtRecord::prefix(record)?.0.decode()
    };
    let (present, first) = (chunk.allocated_mask(), AgIno(chunk.startino));
    let found = (0..64_u32).filter(|index| present >> index & 1 == 1).any(|index| {
        let agino = first.0.checked_add(index).map(AgIno);
        agino.is_some_and(|agino| geometry.agino_parts(agino).0 == agbno)
    });
    found.then(|| geometry.ino(agno, first).map(BlockOwner::Inodes)).flatten()
}
