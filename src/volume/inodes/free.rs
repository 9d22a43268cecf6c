//! An inode freed (`xfs_difree`, `xfs_inode_uninit`, `xfs_ifree_cluster`).

use super::core::change;
use super::group::{clusters, count_inodes};
use super::times::recode;
use super::tree::InodeTree;
use super::unlinked::unlinked_remove;
use crate::error::{Error, Result, Rule};
use crate::geometry::{AgBlock, AgIno, AgNumber, Ino};
use crate::ondisk::dinode::format;
use crate::ondisk::inobt_record::INODES_PER_HOLEMASK_BIT;
use crate::ondisk::log_inode::field;
use crate::ondisk::{INODES_PER_CHUNK, InodeChunk};
use crate::transaction::{CounterChange, Transaction};
use crate::volume::space::{RmapOwner, free_later};

/// Frees an inode that has neither links nor blocks and is on an unlinked list; the last inode of a chunk takes the
/// chunk with it.
///
/// # Errors
/// `Corrupt` when the inode is free already, or a structure is damaged.
pub fn free(tx: &mut Transaction<'_>, ino: Ino) -> Result<()> {
    let parts = tx.store().geometry().ino_parts(ino);
    let parts = parts.ok_or_else(|| Error::Usage(format!("no inode can have the number {ino}")))?;
    let emptied = mark_free(tx, parts.agno, parts.agino)?;
    unlinked_remove(tx, ino)?;
    clear_core(tx, ino)?;
    match emptied {
        Some(chunk) => drop_clusters(tx, parts.agno, &chunk),
        None => Ok(()),
    }
}

/// Marks an inode as free in the btrees; returns its chunk when that is gone from them.
fn mark_free(tx: &mut Transaction<'_>, agno: AgNumber, agino: AgIno) -> Result<Option<InodeChunk>> {
    let tree = InodeTree::all(agno);
    let found = tree.at_or_before(tx, agino.0)?.filter(|chunk| agino.0 - chunk.startino < INODES_PER_CHUNK);
    let mut chunk = found.ok_or_else(|| tree.corrupt("startino", Rule::Mismatch))?;
    let bit = 1_u64 << (agino.0 - chunk.startino);
    if chunk.free & bit != 0 {
        return Err(tree.corrupt("free", Rule::Mismatch));
    }
    chunk.free |= bit;
    chunk.freecount += 1;
    // a block that holds several chunks stays
    let goes = chunk.free == u64::MAX && tx.store().geometry().inodes.per_block <= INODES_PER_CHUNK;
    let (inodes, free) = if goes {
        let count = i32::from(chunk.count);
        tree.delete(tx, chunk.startino)?;
        defer_chunk(tx, agno, &chunk)?;
        (-count, 1 - count)
    } else {
        tree.replace(tx, &chunk)?;
        (0, 1)
    };
    count_inodes(tx, agno, inodes, free)?;
    tx.count(CounterChange { icount: i64::from(inodes), ifree: i64::from(free), ..CounterChange::default() });
    if let Some(tree) = InodeTree::free(tx, agno) {
        match tree.get(tx, chunk.startino)? {
            None if chunk.freecount != 1 => return Err(tree.corrupt("freecount", Rule::Mismatch)),
            None if goes => {}
            None => tree.insert(tx, &chunk)?,
            Some(old) if old.free | bit != chunk.free || old.freecount + 1 != chunk.freecount => {
                return Err(tree.corrupt("freecount", Rule::Mismatch));
            }
            Some(_) if goes => tree.delete(tx, chunk.startino)?,
            Some(_) => tree.replace(tx, &chunk)?,
        }
    }
    Ok(goes.then_some(chunk))
}

/// The blocks of a chunk: first block and number of each run.
fn runs(per_block: u32, chunk: &InodeChunk) -> Vec<(AgBlock, u32)> {
    let blocks = |bits: u32| bits * INODES_PER_HOLEMASK_BIT / per_block;
    let first = chunk.startino / per_block;
    let (mut mask, mut at, mut runs) = (!chunk.holemask, 0, Vec::new());
    while mask != 0 {
        let gap = mask.trailing_zeros();
        let len = (mask >> gap).trailing_ones();
        runs.push((AgBlock(first + blocks(at + gap)), blocks(len).max(1)));
        at += gap + len;
        mask = mask.checked_shr(gap + len).unwrap_or(0);
    }
    runs
}

/// Puts off that the blocks of a chunk are freed.
fn defer_chunk(tx: &mut Transaction<'_>, agno: AgNumber, chunk: &InodeChunk) -> Result<()> {
    let per_block = tx.store().geometry().inodes.per_block;
    for (agbno, len) in runs(per_block, chunk) {
        let start = tx.store().geometry().fsb(agno, agbno);
        let start = start.ok_or_else(|| InodeTree::all(agno).corrupt("startino", Rule::Range))?;
        free_later(tx, start, len, &RmapOwner::INODES);
    }
    Ok(())
}

/// The inodes of a chunk are gone: nothing may bring their clusters back.
fn drop_clusters(tx: &mut Transaction<'_>, agno: AgNumber, chunk: &InodeChunk) -> Result<()> {
    let per_block = tx.store().geometry().inodes.per_block;
    for (agbno, len) in runs(per_block, chunk) {
        for request in clusters(tx, agno, agbno, len)? {
            tx.invalidate(&request);
        }
    }
    Ok(())
}

/// What the core of a free inode says.
fn clear_core(tx: &mut Transaction<'_>, ino: Ino) -> Result<()> {
    let fresh = super::initial::fresh_flags2(tx.store().geometry());
    change(tx, ino, field::CORE, |raw, _| {
        let extents = (raw.data_extents(), raw.attr_extents());
        recode(raw, fresh)?;
        raw.core.mode.set(0);
        raw.core.flags.set(0);
        raw.core.forkoff = 0;
        raw.core.format = format::EXTENTS;
        raw.core.aformat = i8::from_ne_bytes([format::EXTENTS]);
        raw.core.generation.set(raw.core.generation.get().wrapping_add(1));
        if extents != (0, 0) {
            return Err(Error::Internal(format!("inode {ino} is freed with extents")));
        }
        let set = raw.set_extents(0, 0);
        set.ok_or_else(|| Error::Internal("counters of zero do not fit".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_lies_in_runs() {
        let chunk = |holemask| InodeChunk { startino: 128, holemask, ..InodeChunk::default() };
        assert_eq!(runs(8, &chunk(0)), [(AgBlock(16), 8)]);
        assert_eq!(runs(8, &chunk(0xff00)), [(AgBlock(16), 4)]);
        assert_eq!(runs(8, &chunk(0x00ff)), [(AgBlock(20), 4)]);
        assert_eq!(runs(8, &chunk(0x0ff0)), [(AgBlock(16), 2), (AgBlock(22), 2)]);
        assert_eq!(runs(64, &chunk(0)), [(AgBlock(2), 1)]);
    }
}
