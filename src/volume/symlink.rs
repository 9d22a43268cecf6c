//! Targets of symbolic links (Linux `libxfs/xfs_symlink_remote.c`).

use crate::buffer::{BlockKind, Request};
use crate::error::{Check, Error, Result, Rule};
use crate::forms::encode::{BlockOwner, Header, encode_symlink_target};
use crate::forms::{ForkForm, ForkKind, Inode, read_symlink};
use crate::geometry::{FileBlock, FsBlock, Ino};
use crate::ondisk::dinode::format;
use crate::ondisk::log_inode::field;
use crate::ondisk::remote::{RawDsymlinkHdr, SYMLINK_MAXLEN};
use crate::ondisk::{OnDisk, RawDinode};
use crate::transaction::{Logged, Transaction};
use crate::volume::inodes;
use crate::volume::mapping::{Growth, grow, truncate};

/// Filesystem blocks that a target of `len` bytes takes, if the inode does not hold it.
fn blocks(tx: &Transaction<'_>, len: usize) -> Result<u32> {
    let geometry = tx.store().geometry();
    let header = if geometry.features.has_crc() { RawDsymlinkHdr::SIZE } else { 0 };
    let space = usize::try_from(geometry.blocksize).unwrap_or(0).saturating_sub(header).max(1);
    u32::try_from(len.div_ceil(space)).map_err(|_| Error::Usage("a target is too long".to_owned()))
}

/// The data fork in the literal area.
fn data_fork<'l>(raw: &RawDinode, literal: &'l mut [u8]) -> Result<&'l mut [u8]> {
    let end = if raw.core.forkoff == 0 { literal.len() } else { raw.core.fork_offset() };
    literal.get_mut(..end).ok_or_else(|| Error::Internal("a fork lies in its inode".to_owned()))
}

/// Stores the target of a new symbolic link.
///
/// # Errors
/// `Usage` when it is empty or longer than 1023 bytes; `NoSpace`.
pub fn write_target(tx: &mut Transaction<'_>, link: Ino, target: &[u8]) -> Result<()> {
    let most = usize::try_from(SYMLINK_MAXLEN).unwrap_or(0);
    if target.is_empty() || target.len() >= most || target.contains(&0) {
        return Err(Error::Usage(format!("{} bytes cannot be the target of a symbolic link", target.len())));
    }
    // a link without a target passes no check
    let raw = *Inode::read(&*tx, link)?.raw();
    let literal = usize::try_from(tx.store().geometry().inodes.literal_size).unwrap_or(0);
    let room = if raw.core.forkoff == 0 { literal } else { raw.core.fork_offset() };
    if target.len() > room {
        return write_blocks(tx, link, target);
    }
    inodes::change(tx, link, field::DDATA, |raw, literal| {
        let fork = data_fork(raw, literal)?;
        let (used, rest) = fork.split_at_mut(target.len());
        used.copy_from_slice(target);
        rest.fill(0);
        raw.core.format = format::LOCAL;
        raw.core.size.set(target.len() as u64);
        Ok(())
    })
}

/// Stores the target in blocks; the data fork has a list of extents, without any.
fn write_blocks(tx: &mut Transaction<'_>, link: Ino, target: &[u8]) -> Result<()> {
    let count = blocks(tx, target.len())?;
    inodes::change(tx, link, 0, |raw, _| {
        raw.core.size.set(target.len() as u64);
        Ok(())
    })?;
    let extents = grow(tx, link, ForkKind::Data, FileBlock(0), count, Growth::Metadata)?;
    let owner = BlockOwner::new(tx.store().geometry(), link);
    let mut from = 0;
    for extent in extents {
        let geometry = tx.store().geometry();
        let outside = || Error::corrupt(Check::new("bmbt_rec", "startblock", Rule::Range), Default::default());
        let daddr = geometry.fsb_daddr(FsBlock(extent.startblock)).ok_or_else(outside)?;
        let (mut bytes, held) = encode_symlink_target(geometry, &owner, target, from, extent.blockcount);
        owner.seal(Header::Symlink, &mut bytes, daddr);
        let len = u32::try_from(bytes.len()).map_err(|_| Error::Internal("targets have 1 KiB at most".to_owned()))?;
        let header = if owner.crc { RawDsymlinkHdr::SIZE } else { 0 };
        let rest = header + held..bytes.len();
        let request = Request::of_len(BlockKind::Symlink, daddr, len).of_inode(link);
        tx.write_new(&request, bytes, &Logged::Except(rest))?;
        from += held;
    }
    if from == target.len() { Ok(()) } else { Err(Error::NoSpace(format!("blocks for symbolic link {link}"))) }
}

/// The target moves from the inode to blocks.
pub(super) fn leave_inode(tx: &mut Transaction<'_>, link: Ino) -> Result<()> {
    let inode = tx.inode(link)?;
    let target = read_symlink(&*tx, &inode)?;
    inodes::change(tx, link, field::DEXT, |raw, literal| {
        data_fork(raw, literal)?.fill(0);
        raw.core.format = format::EXTENTS;
        Ok(())
    })?;
    write_blocks(tx, link, &target)
}

/// Takes the target from a symbolic link that is about to be freed, if blocks hold it. What they were is freed in
/// transactions of the same chain; the transaction stays open.
///
/// # Errors
/// `Corrupt` when the link is damaged.
pub fn remove_target(tx: &mut Transaction<'_>, link: Ino) -> Result<()> {
    let inode = tx.inode(link)?;
    let Some(fork) = inode.fork(ForkKind::Data)? else { return Ok(()) };
    if matches!(fork.form, ForkForm::Local(_)) {
        return Ok(());
    }
    let extents: Result<Vec<_>> = fork.extents(&*tx).collect();
    for extent in extents? {
        let geometry = tx.store().geometry();
        let outside = || Error::corrupt(Check::new("bmbt_rec", "startblock", Rule::Range), inode.place.clone());
        let daddr = geometry.fsb_daddr(FsBlock(extent.startblock)).ok_or_else(outside)?;
        let len = extent.blockcount.checked_mul(geometry.blocksize).ok_or_else(outside)?;
        tx.invalidate(&Request::of_len(BlockKind::Symlink, daddr, len).of_inode(link));
    }
    // without a target it is an empty link, which no reader takes for a damaged one
    inodes::change(tx, link, 0, |raw, _| {
        raw.core.size.set(0);
        Ok(())
    })?;
    truncate(tx, link, ForkKind::Data, FileBlock(0))
}
