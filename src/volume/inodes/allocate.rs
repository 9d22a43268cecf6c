//! A free inode found, in a group chosen as Linux chooses it (`xfs_dialloc`, `xfs_dialloc_ag`).

use super::chunk::make_chunk;
use super::group::count_inodes;
use super::tree::InodeTree;
use crate::error::{Error, Result, Rule};
use crate::forms::FileType;
use crate::geometry::{AgIno, AgNumber, Ino};
use crate::ondisk::{INODES_PER_CHUNK, InodeChunk, NULLAGINO};
use crate::transaction::{CounterChange, Transaction};
use crate::volume::space;

/// Chunks to each side of its parent's that are looked at, where there is no btree of free inodes.
const DISTANCE: usize = 10;

/// Takes a free inode near `parent`, and makes new ones if there is none. The transaction may roll. Its core still is that of
/// a free inode.
///
/// # Errors
/// `NoSpace` when there is no free inode and no room for more; `Corrupt` when a group is damaged.
pub fn allocate(tx: &mut Transaction<'_>, parent: Ino, mode: u16) -> Result<Ino> {
    let geometry = tx.store().geometry();
    let kind = FileType::from_mode(mode);
    let start = match kind {
        Some(FileType::Directory) => tx.next_directory_group(),
        _ => geometry.ino_parts(parent).map_or(AgNumber(0), |parts| parts.agno),
    };
    let geometry = tx.store().geometry();
    let groups: Vec<_> = (0..geometry.agcount).map(|step| AgNumber((start.0 + step) % geometry.agcount)).collect();
    let (counters, inodes) = (tx.store().counters(), geometry.inodes);
    let may_grow = inodes.max_count == 0 || counters.icount + u64::from(inodes.alloc_inodes) <= inodes.max_count;
    let low_space = counters.fdblocks < geometry.dblocks / 100;
    let needs_block = matches!(kind, Some(FileType::Directory | FileType::Regular | FileType::Symlink));
    for last_try in [false, true] {
        let make = may_grow && (last_try || !low_space);
        for agno in &groups {
            if is_good(tx, *agno, needs_block, make, last_try)?
                && let Some(ino) = try_group(tx, *agno, parent, make)?
            {
                return Ok(ino);
            }
        }
    }
    Err(Error::NoSpace("no inode is free, and there is no room for more".to_owned()))
}

/// Whether it makes sense to look into a group (`xfs_dialloc_good_ag`).
fn is_good(tx: &Transaction<'_>, agno: AgNumber, needs_block: bool, make: bool, last_try: bool) -> Result<bool> {
    if space::agi(tx.store(), agno)?.freecount.get() > 0 {
        return Ok(true);
    }
    if !make {
        return Ok(false);
    }
    let geometry = tx.store().geometry();
    let agf = space::agf(tx.store(), agno)?;
    let mut blocks = geometry.inodes.alloc_min_blocks;
    if !last_try && blocks > 1 {
        blocks += geometry.inodes.cluster_align;
    }
    let longest = match agf.longest.get() {
        0 => u32::from(agf.flcount.get() > 0),
        longest => longest,
    };
    Ok(agf.freeblks.get() >= blocks + u32::from(needs_block) && longest >= blocks)
}

fn try_group(tx: &mut Transaction<'_>, agno: AgNumber, parent: Ino, make: bool) -> Result<Option<Ino>> {
    if space::agi(tx.store(), agno)?.freecount.get() == 0 {
        if !make || !make_chunk(tx, agno)? {
            return Ok(None);
        }
        tx.roll()?;
    }
    take_free(tx, agno, parent).map(Some)
}

/// Takes a free inode of a group that has some.
fn take_free(tx: &mut Transaction<'_>, agno: AgNumber, parent: Ino) -> Result<Ino> {
    let near = tx.store().geometry().ino_parts(parent).filter(|parts| parts.agno == agno).map(|parts| parts.agino.0);
    let newest = Some(space::agi(tx.store(), agno)?.newino.get()).filter(|agino| *agino != NULLAGINO);
    let all = InodeTree::all(agno);
    let free = InodeTree::free(tx, agno);
    let found = match free {
        Some(tree) => find_among_free(tx, tree, near, newest)?,
        None => find_among_all(tx, all, near, newest)?,
    };
    let mut chunk = found.ok_or_else(|| all.corrupt("freecount", Rule::Mismatch))?;
    let index = (chunk.free & chunk.allocated_mask()).trailing_zeros();
    if index >= INODES_PER_CHUNK {
        return Err(all.corrupt("free", Rule::Mismatch));
    }
    if free.is_some() && all.get(tx, chunk.startino)? != Some(chunk) {
        return Err(all.corrupt("free", Rule::Mismatch));
    }
    chunk.free &= !(1 << index);
    chunk.freecount -= 1;
    match free {
        Some(tree) if chunk.freecount == 0 => tree.delete(tx, chunk.startino)?,
        Some(tree) => tree.replace(tx, &chunk)?,
        None => {}
    }
    all.replace(tx, &chunk)?;
    count_inodes(tx, agno, 0, -1)?;
    tx.count(CounterChange { ifree: -1, ..CounterChange::default() });
    let geometry = tx.store().geometry();
    let ino = geometry.ino(agno, AgIno(chunk.startino + index)).filter(|ino| geometry.is_valid_ino(*ino));
    ino.filter(|ino| *ino != parent).ok_or_else(|| all.corrupt("startino", Rule::Range))
}

/// The chunk nearest to the parent, or the one made last, else the first (`xfs_dialloc_ag_finobt_near`,
/// `xfs_dialloc_ag_finobt_newino`).
fn find_among_free(
    tx: &Transaction<'_>,
    tree: InodeTree,
    near: Option<u32>,
    newest: Option<u32>,
) -> Result<Option<InodeChunk>> {
    if let Some(near) = near {
        let (left, right) = (tree.at_or_before(tx, near)?, tree.at_or_after(tx, near)?);
        return Ok(match (left, right) {
            (Some(left), _) if near - left.startino < INODES_PER_CHUNK => Some(left),
            (Some(left), Some(right)) if near - left.startino + INODES_PER_CHUNK - 1 > right.startino - near => {
                Some(right)
            }
            (left, right) => left.or(right),
        });
    }
    if let Some(newest) = newest
        && let Some(chunk) = tree.get(tx, newest)?
    {
        return Ok(Some(chunk));
    }
    tree.at_or_after(tx, 0)
}

/// The same where the btree of all chunks must do (`xfs_dialloc_ag_inobt`).
fn find_among_all(
    tx: &Transaction<'_>,
    tree: InodeTree,
    near: Option<u32>,
    newest: Option<u32>,
) -> Result<Option<InodeChunk>> {
    if let Some(near) = near
        && let Some(chunk) = find_near(tx, tree, near)?
    {
        return Ok(Some(chunk));
    }
    if let Some(newest) = newest
        && let Some(chunk) = tree.get(tx, newest)?.filter(|chunk| chunk.freecount > 0)
    {
        return Ok(Some(chunk));
    }
    let mut next = tree.at_or_after(tx, 0)?;
    while let Some(chunk) = next.filter(|chunk| chunk.freecount == 0) {
        next = match chunk.startino.checked_add(1) {
            Some(behind) => tree.at_or_after(tx, behind)?,
            None => None,
        };
    }
    Ok(next)
}

/// A chunk with free inodes among those next to the parent's, the nearer first.
fn find_near(tx: &Transaction<'_>, tree: InodeTree, near: u32) -> Result<Option<InodeChunk>> {
    let Some(own) = tree.at_or_before(tx, near)? else { return Ok(None) };
    if own.freecount > 0 {
        return Ok(Some(own));
    }
    let left_of = |tx: &Transaction<'_>, startino: u32| match startino.checked_sub(1) {
        Some(before) => tree.at_or_before(tx, before),
        None => Ok(None),
    };
    let right_of = |tx: &Transaction<'_>, startino: u32| tree.at_or_after(tx, startino + 1);
    let (mut left, mut right) = (left_of(tx, own.startino)?, right_of(tx, own.startino)?);
    for _ in 1..DISTANCE {
        let use_left = match (left, right) {
            (None, None) => return Ok(None),
            (Some(left), Some(right)) => {
                near.saturating_sub(left.startino + INODES_PER_CHUNK - 1) < right.startino - near
            }
            (left, _) => left.is_some(),
        };
        let candidate = if use_left { left } else { right };
        let Some(candidate) = candidate else { return Ok(None) };
        if candidate.freecount > 0 {
            return Ok(Some(candidate));
        }
        if use_left {
            left = left_of(tx, candidate.startino)?;
        } else {
            right = right_of(tx, candidate.startino)?;
        }
    }
    Ok(None)
}
