//! Blocks taken from a file (`xfs_bunmapi`, `xfs_itruncate_extents_flags`).

use super::fork::OpenFork;
use super::window::{Window, cut, end_of};
use crate::error::{Error, Result};
use crate::forms::ForkKind;
use crate::geometry::{FileBlock, FsBlock, Ino};
use crate::ondisk::Extent;
use crate::ondisk::dinode::flags2;
use crate::ondisk::extent::MAX_STARTOFF;
use crate::transaction::Transaction;
use crate::volume::space::{self, MappingOwner, RmapOwner};
use crate::volume::{finish, inodes};

/// Pieces of extents that one step of a truncation takes.
const PIECES_OF_STEP: usize = 2;

/// Takes blocks out of a fork, from the end of the range of `count` blocks from `at` on, at most `most` pieces of extents.
/// Freeing them is deferred. Returns how many blocks of the range, from its start, are left to be looked at; 0 when it is done.
///
/// # Errors
/// `NoSpace` when an extent has to be split and there is no block for that; `Unsupported` for realtime files; `Corrupt` when
/// the fork is damaged.
pub fn unmap(
    tx: &mut Transaction<'_>,
    ino: Ino,
    fork: ForkKind,
    at: FileBlock,
    count: u64,
    most: usize,
) -> Result<u64> {
    let (left, _) = take(tx, ino, fork, (at.0, at.0.saturating_add(count)), most, Fate::Released)?;
    Ok(left)
}

/// What happens to blocks that are taken out of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// They are freed, or have one owner less.
    Released,
    /// Somebody else takes care of them.
    Kept,
}

/// As [`unmap`], from the first block of the range to before the second; also returns the pieces, the last one first.
pub(super) fn take(
    tx: &mut Transaction<'_>,
    ino: Ino,
    fork: ForkKind,
    (start, end): (u64, u64),
    most: usize,
    fate: Fate,
) -> Result<(u64, Vec<Extent>)> {
    let mut open = OpenFork::open_last(tx, ino, fork, (start, end), most)?;
    let (pieces, left) = last_pieces(&open.window, start, end, most);
    for piece in &pieces {
        let splits = open
            .window
            .at_or_after(piece.startoff)
            .is_some_and(|extent| extent.startoff < piece.startoff && end_of(&extent) > end_of(piece));
        if splits && tx.blocks_left() == 0 && open.is_full_list() {
            return Err(Error::NoSpace(format!("an extent of inode {ino} cannot be split")));
        }
        open.window.remove(piece.startoff, end_of(piece));
        space::rmap_unmap(tx, &open.owner, piece);
        if fate == Fate::Released {
            release(tx, &open.owner, piece);
        }
    }
    let blocks: u64 = pieces.iter().map(|piece| u64::from(piece.blockcount)).sum();
    open.store(tx, -i64::try_from(blocks).unwrap_or(i64::MAX))?;
    Ok((left, pieces))
}

/// Blocks that a file has no longer are freed, or have one owner less.
fn release(tx: &mut Transaction<'_>, owner: &MappingOwner, extent: &Extent) {
    let start = FsBlock(extent.startblock);
    if owner.shared {
        space::refcount_decrease(tx, start, extent.blockcount);
    } else {
        space::free_later(tx, start, extent.blockcount, &RmapOwner::SKIP);
    }
}

/// The last `most` pieces of extents of a range, the last one first, and how many blocks of the range are left before them.
fn last_pieces(window: &Window, start: u64, end: u64, most: usize) -> (Vec<Extent>, u64) {
    let (mut pieces, mut behind) = (Vec::new(), end);
    while let Some(piece) = window.last_below(behind).and_then(|extent| cut(&extent, start, behind)) {
        if pieces.len() == most {
            return (pieces, behind - start);
        }
        behind = piece.startoff;
        pieces.push(piece);
    }
    (pieces, 0)
}

/// Takes all blocks from `at` on out of a fork, in as many steps as it takes; what they defer is finished between them
/// (`xfs_itruncate_extents`). The transaction stays open.
///
/// # Errors
/// As [`unmap`]; those of finishing.
pub fn truncate(tx: &mut Transaction<'_>, ino: Ino, fork: ForkKind, at: FileBlock) -> Result<()> {
    let mut count = (MAX_STARTOFF + 1).saturating_sub(at.0);
    while count > 0 {
        count = unmap(tx, ino, fork, at, count, PIECES_OF_STEP)?;
        finish::finish_some(tx)?;
    }
    clear_shared_flag(tx, ino, fork)
}

/// A file without blocks shares none (`xfs_itruncate_clear_reflink_flags`).
fn clear_shared_flag(tx: &mut Transaction<'_>, ino: Ino, fork: ForkKind) -> Result<()> {
    let inode = tx.inode(ino)?;
    let raw = inode.raw();
    if fork != ForkKind::Data || raw.flags2_or_zero() & flags2::REFLINK == 0 || raw.data_extents() > 0 {
        return Ok(());
    }
    inodes::change(tx, ino, 0, |raw, _| {
        raw.flags2.set(raw.flags2.get() & !flags2::REFLINK);
        Ok(())
    })
}
