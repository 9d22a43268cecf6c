//! Values in blocks of their own (Linux `libxfs/xfs_attr_remote.c`). They are written at once, outside of the journal, before
//! the transaction that lets readers see them.

use crate::buffer::{BlockKind, Request};
use crate::error::{Error, Result};
use crate::forms::ForkKind;
use crate::forms::encode::{BlockOwner, Header, encode_attr_value};
use crate::geometry::{Daddr, FileBlock, FsBlock, Ino};
use crate::transaction::{AttributeProgress, Transaction};
use crate::volume::da_btree::first_unused;
use crate::volume::mapping::{Growth, extents_in, grow, unmap};

/// Chooses the blocks of the fork that the value will have.
pub(super) fn find_space(tx: &Transaction<'_>, ino: Ino, len: usize, progress: &mut AttributeProgress) -> Result<()> {
    let count = blocks(tx, len)?;
    let start = first_unused(tx, ino, ForkKind::Attr, FileBlock(0), count)?;
    let start = u32::try_from(start.0).map_err(|_| Error::NoSpace("an attribute fork is full".to_owned()))?;
    (progress.remote_start, progress.remote_next, progress.remote_left) = (start, start, count);
    Ok(())
}

/// How many blocks a value of `len` bytes takes.
pub(super) fn blocks(tx: &Transaction<'_>, len: usize) -> Result<u32> {
    let len = u32::try_from(len).map_err(|_| Error::Usage("a value is too long".to_owned()))?;
    Ok(tx.store().geometry().attr_remote_blocks(len))
}

/// Allocates the next extent of the value.
pub(super) fn allocate(tx: &mut Transaction<'_>, ino: Ino, progress: &mut AttributeProgress) -> Result<()> {
    let at = FileBlock(u64::from(progress.remote_next));
    let growth = Growth::Contents { unwritten: false };
    let extents = grow(tx, ino, ForkKind::Attr, at, progress.remote_left, growth)?;
    let got: u32 = extents.iter().map(|extent| extent.blockcount).sum();
    let left = progress.remote_left.checked_sub(got).filter(|_| got > 0);
    progress.remote_left = left.ok_or_else(|| Error::NoSpace("no block for the value of an attribute".to_owned()))?;
    progress.remote_next += got;
    Ok(())
}

/// Writes the value to its blocks.
pub(super) fn write(tx: &Transaction<'_>, ino: Ino, start: u32, value: &[u8]) -> Result<()> {
    let geometry = tx.store().geometry();
    let owner = BlockOwner::new(geometry, ino);
    let mut blocks = encode_attr_value(geometry, &owner, value).into_iter();
    let count = u64::from(self::blocks(tx, value.len())?);
    let inode = tx.inode(ino)?;
    let (first, end) = (u64::from(start), u64::from(start) + count);
    let lost = || Error::Internal("the blocks of a value are mapped".to_owned());
    for extent in extents_in(tx, &inode, ForkKind::Attr, FileBlock(first), count)? {
        let from = first.max(extent.startoff);
        let to = end.min(extent.startoff + u64::from(extent.blockcount));
        let fsb = FsBlock(extent.startblock + (from - extent.startoff));
        let daddr = geometry.fsb_daddr(fsb).ok_or_else(lost)?;
        let mut bytes = Vec::new();
        for at in 0..to - from {
            let mut block = blocks.next().ok_or_else(lost)?;
            let step = at * u64::from(geometry.blocksize / crate::geometry::limits::BASIC_BLOCK);
            owner.seal(Header::AttrRemote, &mut block, Daddr(daddr.0 + step));
            bytes.extend_from_slice(&block);
        }
        let len = u32::try_from(bytes.len()).map_err(|_| lost())?;
        let request = Request::of_len(BlockKind::AttrRemote, daddr, len).of_inode(ino);
        tx.store().write_unlogged(request, bytes)?;
    }
    if blocks.next().is_some() { Err(lost()) } else { Ok(()) }
}

/// Takes the next extent of a value out of the fork, the last one first. `true` when that was the last.
pub(super) fn free(tx: &mut Transaction<'_>, ino: Ino, progress: &mut AttributeProgress) -> Result<bool> {
    let at = FileBlock(u64::from(progress.remote_start));
    let left = unmap(tx, ino, ForkKind::Attr, at, u64::from(progress.remote_left), 1)?;
    progress.remote_left = u32::try_from(left).map_err(|_| Error::Internal("fewer blocks are left".to_owned()))?;
    Ok(progress.remote_left == 0)
}
