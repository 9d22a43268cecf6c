//! Extents moved within their file: a range that collapses, and one that is inserted (`xfs_bmap_collapse_extents`,
//! `xfs_bmap_insert_extents`).

use super::fork::OpenFork;
use super::window::end_of;
use crate::error::{Error, Result};
use crate::forms::ForkKind;
use crate::geometry::{FileBlock, Ino};
use crate::ondisk::Extent;
use crate::ondisk::extent::MAX_STARTOFF;
use crate::transaction::Transaction;
use crate::volume::{finish, space};

/// Moves all extents from block `from` on towards the start by `by` blocks, which must be a hole before `from`. Each step
/// moves one extent; what it defers is finished before the next. The transaction stays open.
///
/// # Errors
/// `Usage` when the blocks before `from` are no hole; `Unsupported` for realtime files; `NoSpace`; `Corrupt`.
pub fn collapse(tx: &mut Transaction<'_>, ino: Ino, from: FileBlock, by: u64) -> Result<()> {
    let mut next = Some(from.0);
    while let Some(at) = next {
        next = collapse_step(tx, ino, at, by)?;
        finish::finish_some(tx)?;
    }
    Ok(())
}

/// Moves the first extent that ends behind `at`; returns where the next one begins.
fn collapse_step(tx: &mut Transaction<'_>, ino: Ino, at: u64, by: u64) -> Result<Option<u64>> {
    let hole = at.checked_sub(by).ok_or_else(|| in_the_way(ino))?;
    let open = OpenFork::open(tx, ino, ForkKind::Data, hole, at.saturating_add(1))?;
    let Some(extent) = open.window.at_or_after(at) else { return Ok(None) };
    let startoff = extent.startoff.checked_sub(by).ok_or_else(|| in_the_way(ino))?;
    // the one behind it may be out of sight
    let next = next_start(tx, ino, &extent)?;
    if open.window.before(extent.startoff).is_some_and(|previous| end_of(&previous) > startoff) {
        return Err(in_the_way(ino));
    }
    move_extent(tx, open, &extent, startoff)?;
    Ok(next)
}

fn next_start(tx: &Transaction<'_>, ino: Ino, extent: &Extent) -> Result<Option<u64>> {
    let open = OpenFork::open(tx, ino, ForkKind::Data, end_of(extent), end_of(extent))?;
    Ok(open.window.at_or_after(end_of(extent)).map(|next| next.startoff))
}

/// Makes a hole of `by` blocks at block `at`: an extent that lies across it is split, and all from there on move towards the
/// end, the last one first. Each step moves one extent; what it defers is finished before the next. The transaction stays
/// open.
///
/// # Errors
/// `Usage` when the file would become too large; `Unsupported` for realtime files; `NoSpace`; `Corrupt`.
pub fn insert(tx: &mut Transaction<'_>, ino: Ino, at: FileBlock, by: u64) -> Result<()> {
    let mut open = OpenFork::open(tx, ino, ForkKind::Data, at.0, at.0.saturating_add(1))?;
    if open.window.split(at.0) {
        open.store(tx, 0)?;
    }
    let mut behind = MAX_STARTOFF + 1;
    loop {
        finish::finish_some(tx)?;
        let open = OpenFork::open_last(tx, ino, ForkKind::Data, (at.0, behind), 1)?;
        let last = open.window.last_below(behind).filter(|extent| extent.startoff >= at.0);
        let Some(extent) = last else { return Ok(()) };
        let startoff = extent
            .startoff
            .checked_add(by)
            .filter(|start| start.saturating_add(u64::from(extent.blockcount)) <= MAX_STARTOFF);
        let startoff = startoff.ok_or_else(|| Error::Usage(format!("inode {ino} would become too large")))?;
        move_extent(tx, open, &extent, startoff)?;
        behind = extent.startoff;
    }
}

fn move_extent(tx: &mut Transaction<'_>, mut open: OpenFork, extent: &Extent, startoff: u64) -> Result<()> {
    let moved = Extent { startoff, ..*extent };
    open.window.remove(extent.startoff, end_of(extent));
    if !open.window.insert(moved) {
        return Err(in_the_way(open.owner.ino));
    }
    space::rmap_unmap(tx, &open.owner, extent);
    space::rmap_map(tx, &open.owner, &moved);
    open.store(tx, 0).map(|_| ())
}

fn in_the_way(ino: Ino) -> Error {
    Error::Usage(format!("an extent of inode {ino} is in the way of another"))
}
