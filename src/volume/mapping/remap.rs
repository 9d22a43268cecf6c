//! Blocks that exist mapped, unmapped without being freed, and converted between written and unwritten (`xfs_bmapi_remap`,
//! `xfs_bmap_finish_one`, `xfs_bmap_add_extent_unwritten_real`).

use super::fork::OpenFork;
use super::unmap::{Fate, take};
use super::window::end_of;
use crate::error::{Check, Error, Place, Result, Rule};
use crate::forms::ForkKind;
use crate::geometry::{FileBlock, FsBlock, Ino};
use crate::ondisk::Extent;
use crate::ondisk::extent::{MAX_BLOCKCOUNT, MAX_STARTOFF};
use crate::ondisk::log_intent::{MapExtent, bmap};
use crate::transaction::{Deferred, Transaction};
use crate::volume::space;

/// Maps blocks that the file owns from now on, where there was a hole.
///
/// # Errors
/// `Corrupt` when there is none, or the extent lies outside the filesystem; else as [`super::grow()`].
pub fn map(tx: &mut Transaction<'_>, ino: Ino, fork: ForkKind, extent: Extent) -> Result<()> {
    let failed = |field, rule| {
        let place = Place { inode: Some(ino.0), ..Place::default() };
        Err(Error::corrupt(Check::new("bmbt_rec", field, rule), place))
    };
    let len = u64::from(extent.blockcount);
    if extent.blockcount == 0 || extent.blockcount > MAX_BLOCKCOUNT {
        return failed("blockcount", Rule::Range);
    }
    if extent.startoff.saturating_add(len) > MAX_STARTOFF {
        return failed("startoff", Rule::Range);
    }
    if !tx.store().geometry().is_usable_extent(FsBlock(extent.startblock), len) {
        return failed("startblock", Rule::Range);
    }
    let mut open = OpenFork::open(tx, ino, fork, extent.startoff, end_of(&extent))?;
    if !open.window.insert(extent) {
        return failed("startoff", Rule::Order);
    }
    space::rmap_map(tx, &open.owner, &extent);
    open.store(tx, i64::from(extent.blockcount)).map(|_| ())
}

/// Makes what the data fork maps in a range unwritten, or written, at most `most` pieces of extents from its start on.
/// Returns how many blocks of the range, at its end, are left to be looked at; 0 when it is done.
///
/// # Errors
/// As [`super::grow()`].
pub fn convert(
    tx: &mut Transaction<'_>,
    ino: Ino,
    at: FileBlock,
    count: u64,
    unwritten: bool,
    most: usize,
) -> Result<u64> {
    let end = at.0.saturating_add(count);
    let mut open = OpenFork::open(tx, ino, ForkKind::Data, at.0, end)?;
    let mut parts = open.window.parts(at.0, end);
    parts.retain(|part| part.unwritten != unwritten);
    let left = parts.get(most).map_or(0, |part| end - part.startoff);
    for part in parts.iter().take(most) {
        open.window.convert(part.startoff, end_of(part), unwritten);
        space::rmap_convert(tx, &open.owner, &Extent { unwritten, ..*part });
    }
    open.store(tx, 0)?;
    Ok(left)
}

/// Puts off that a file gets an extent.
pub fn defer_map(tx: &mut Transaction<'_>, ino: Ino, fork: ForkKind, extent: &Extent) {
    defer(tx, ino, fork, extent, bmap::MAP);
}

/// Puts off that a file loses an extent. Its blocks are not freed.
pub fn defer_unmap(tx: &mut Transaction<'_>, ino: Ino, fork: ForkKind, extent: &Extent) {
    defer(tx, ino, fork, extent, bmap::UNMAP);
}

fn defer(tx: &mut Transaction<'_>, ino: Ino, fork: ForkKind, extent: &Extent, operation: u32) {
    let fork = if fork == ForkKind::Attr { bmap::ATTR_FORK } else { 0 };
    let state = if extent.unwritten { bmap::UNWRITTEN } else { 0 };
    tx.defer(Deferred::Mapping(MapExtent {
        owner: ino.0,
        startblock: extent.startblock,
        startoff: extent.startoff,
        len: extent.blockcount,
        flags: operation | fork | state,
    }));
}

/// Does a step of a deferred change of mappings, which then says what is left of it. Whether it is done.
///
/// # Errors
/// `Corrupt` when the operation cannot be, or the file is damaged; `Unsupported` for realtime files; `NoSpace`.
pub fn finish_mapping(tx: &mut Transaction<'_>, operation: &mut MapExtent) -> Result<bool> {
    let ino = Ino(operation.owner);
    let fork = if operation.flags & bmap::ATTR_FORK != 0 { ForkKind::Attr } else { ForkKind::Data };
    if operation.flags & bmap::REALTIME != 0 {
        return Err(Error::Unsupported(format!("mappings of inode {ino}, a realtime file")));
    }
    match operation.flags & bmap::TYPE_MASK {
        bmap::MAP => {
            let extent = Extent {
                startoff: operation.startoff,
                startblock: operation.startblock,
                blockcount: operation.len,
                unwritten: operation.flags & bmap::UNWRITTEN != 0,
            };
            map(tx, ino, fork, extent)?;
            operation.len = 0;
            Ok(true)
        }
        bmap::UNMAP => {
            let range = (operation.startoff, operation.startoff.saturating_add(u64::from(operation.len)));
            let (left, _) = take(tx, ino, fork, range, 1, Fate::Kept)?;
            operation.len = u32::try_from(left).unwrap_or(operation.len);
            Ok(left == 0)
        }
        _ => {
            let place = Place { inode: Some(ino.0), ..Place::default() };
            Err(Error::corrupt(Check::new("map_extent", "flags", Rule::Flags), place))
        }
    }
}
