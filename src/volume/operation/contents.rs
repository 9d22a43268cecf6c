//! Contents of files written, cut, punched and shared (Linux `xfs_iomap.c`, `xfs_bmap_util.c`, `xfs_reflink.c`).

use super::inode_change::{Touch, change_core, touch};
use super::volume::Volume;
use crate::error::{Error, FileError, Result};
use crate::forms::{FileType, ForkKind, Inode};
use crate::geometry::{FileBlock, FsBlock, Ino};
use crate::ondisk::Extent;
use crate::ondisk::extent::{MAX_BLOCKCOUNT, MAX_STARTOFF};
use crate::transaction::Transaction;
use crate::volume::{finish, mapping};

/// Bytes that one transaction writes at most: as many blocks as it reserves.
const STEP: u64 = 16 << 20;
/// Pieces of extents that one transaction takes out of a file.
const PIECES_OF_STEP: usize = 2;

impl Volume {
    /// Writes `bytes` to a file from `offset` on. The journal holds the mapping only after the contents are in place; what was
    /// there already is overwritten in place, unless it is shared with another file.
    ///
    /// # Errors
    /// `File` when it is no regular file, or would become too large; `NoSpace`; `Unsupported` for realtime files; `Corrupt`.
    pub fn write(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> Result<()> {
        let inode = self.regular(ino)?;
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.check_size(offset.checked_add(len))?;
        if bytes.is_empty() {
            return Ok(());
        }
        if offset > inode.size() {
            self.zero_behind_end(ino)?;
        }
        let mut done = 0;
        for piece in bytes.chunks(usize::try_from(STEP).unwrap_or(usize::MAX)) {
            self.write_piece(ino, offset + done, piece)?;
            done += u64::try_from(piece.len()).unwrap_or(0);
        }
        Ok(())
    }

    /// Cuts a file, or lets it grow by a hole.
    ///
    /// # Errors
    /// As [`Volume::write`].
    pub fn truncate(&mut self, ino: Ino, size: u64) -> Result<()> {
        let inode = self.regular(ino)?;
        self.check_size(Some(size))?;
        if size == inode.size() {
            return self.run(self.store.reservations().ichange, 0, |tx| touch(tx, ino, Touch::Contents));
        }
        let blocksize = u64::from(self.store.geometry().blocksize);
        if size < inode.size() {
            self.zero_part(ino, size, size.next_multiple_of(blocksize).min(inode.size()))?;
        } else {
            self.zero_behind_end(ino)?;
        }
        let mut tx = self.begin(self.store.reservations().itruncate, 0)?;
        change_core(
            &mut tx,
            ino,
            |core| {
                core.size.set(size);
                Ok(())
            },
            Some(Touch::Contents),
        )?;
        if size < inode.size() {
            mapping::truncate(&mut tx, ino, ForkKind::Data, FileBlock(size.div_ceil(blocksize)))?;
        }
        finish::finish(tx)
    }

    /// Makes a hole of `len` bytes: blocks within are freed, what is left of others is set to zero. The size stays.
    ///
    /// # Errors
    /// As [`Volume::write`].
    pub fn punch(&mut self, ino: Ino, offset: u64, len: u64) -> Result<()> {
        let inode = self.regular(ino)?;
        let end = offset.saturating_add(len).min(inode.size());
        if offset >= end {
            return Ok(());
        }
        let blocksize = u64::from(self.store.geometry().blocksize);
        let first = offset.next_multiple_of(blocksize);
        // nothing lies behind the end: the last block goes as a whole
        let last = if end == inode.size() { end.next_multiple_of(blocksize) } else { end / blocksize * blocksize };
        self.zero_part(ino, offset, first.min(end))?;
        if last < first {
            return Ok(());
        }
        self.zero_part(ino, last.min(end), end)?;
        let mut left = (last - first) / blocksize;
        while left > 0 {
            let at = FileBlock(first / blocksize);
            // splitting an extent can need blocks for the mapping
            let blocks = self.blocks.write(0);
            left = self.run(self.store.reservations().write, blocks, |tx| {
                touch(tx, ino, Touch::Contents)?;
                mapping::unmap(tx, ino, ForkKind::Data, at, left, PIECES_OF_STEP)
            })?;
        }
        Ok(())
    }

    /// Lets `target` share all blocks of `source` and takes its size, whatever it held before.
    ///
    /// # Errors
    /// `Unsupported` without the reflink feature; else as [`Volume::write`].
    pub fn reflink(&mut self, source: Ino, target: Ino) -> Result<()> {
        let from = self.regular(source)?;
        self.regular(target)?;
        if source == target {
            return Ok(());
        }
        self.truncate(target, 0)?;
        for ino in [source, target] {
            self.run(self.store.reservations().ichange, 0, |tx| mapping::set_shared_flag(tx, ino))?;
        }
        let end = mapping::last_block(&self.store, &from, ForkKind::Data)?.0;
        let mut at = 0;
        while at < end {
            let blocks = self.blocks.data_extents_and_rmaps(1);
            at += self.run(self.store.reservations().write, blocks, |tx| {
                let block = FileBlock(at);
                mapping::share_step(tx, (source, block), (target, block), end - at, Some(from.size()))
            })?;
        }
        let size = |core: &mut crate::ondisk::RawDinodeCore| {
            core.size.set(from.size());
            Ok(())
        };
        self.run(self.store.reservations().ichange, 0, |tx| change_core(tx, target, size, Some(Touch::Contents)))
    }

    fn regular(&self, ino: Ino) -> Result<Inode> {
        let inode = self.file(ino)?;
        match inode.file_type() {
            Some(FileType::Regular) if inode.is_realtime() => {
                Err(Error::Unsupported(format!("changing the contents of inode {ino}, a realtime file")))
            }
            Some(FileType::Regular) => Ok(inode),
            Some(FileType::Directory) => Err(Error::File(FileError::IsADirectory)),
            _ => Err(Error::File(FileError::Invalid)),
        }
    }

    fn check_size(&self, size: Option<u64>) -> Result<()> {
        let most = self.store.geometry().blocks_to_bytes(MAX_STARTOFF).unwrap_or(u64::MAX).min(i64::MAX.unsigned_abs());
        if size.is_some_and(|size| size <= most) { Ok(()) } else { Err(Error::File(FileError::TooLarge)) }
    }

    /// Whole blocks with `piece` in them, and what else they hold now; the number of the first.
    fn whole_blocks(&self, ino: Ino, offset: u64, piece: &[u8]) -> Result<(u64, Vec<u8>)> {
        let blocksize = u64::from(self.store.geometry().blocksize);
        let inode = self.store.inode(ino)?;
        let first = offset / blocksize;
        let end = offset + u64::try_from(piece.len()).unwrap_or(0);
        let count = end.div_ceil(blocksize) - first;
        let mut bytes = vec![0; usize::try_from(count * blocksize).unwrap_or(0)];
        let block = usize::try_from(blocksize).unwrap_or(0);
        if !offset.is_multiple_of(blocksize) {
            self.read_block(&inode, first, &mut bytes[..block])?;
        }
        if !end.is_multiple_of(blocksize) && end < inode.size() {
            let at = bytes.len() - block;
            self.read_block(&inode, first + count - 1, &mut bytes[at..])?;
        }
        let skip = usize::try_from(offset % blocksize).unwrap_or(0);
        bytes[skip..skip + piece.len()].copy_from_slice(piece);
        Ok((first, bytes))
    }

    /// Reads a block of a file; holes and what is unwritten are zeroes.
    fn read_block(&self, inode: &Inode, at: u64, bytes: &mut [u8]) -> Result<()> {
        bytes.fill(0);
        match mapping::lookup(&self.store, inode, ForkKind::Data, FileBlock(at))? {
            Some(extent) if !extent.unwritten => {
                self.store.read_data(FsBlock(extent.startblock + (at - extent.startoff)), 0, bytes)
            }
            _ => Ok(()),
        }
    }

    fn write_piece(&mut self, ino: Ino, offset: u64, piece: &[u8]) -> Result<()> {
        let blocksize = u64::from(self.store.geometry().blocksize);
        let (first, bytes) = self.whole_blocks(ino, offset, piece)?;
        let end = first + u64::try_from(bytes.len()).unwrap_or(0) / blocksize;
        let size = offset + u64::try_from(piece.len()).unwrap_or(0);
        let mut at = first;
        while at < end {
            let left = end - at;
            let blocks = self.blocks.write(left) + self.blocks.data_extents_and_rmaps(1);
            let skip = usize::try_from((at - first) * blocksize).unwrap_or(0);
            let rest = &bytes[skip..];
            at += self.run(self.store.reservations().write, blocks, |tx| {
                let done = write_step(tx, ino, at, left, rest)?;
                let reached = ((at + done) * blocksize).min(size);
                let grow = |core: &mut crate::ondisk::RawDinodeCore| {
                    core.size.set(core.size.get().max(reached));
                    Ok(())
                };
                change_core(tx, ino, grow, Some(Touch::Contents))?;
                Ok(done)
            })?;
        }
        Ok(())
    }

    /// Sets bytes of a file to zero that lie within one block; a hole stays one.
    fn zero_part(&mut self, ino: Ino, start: u64, end: u64) -> Result<()> {
        if start >= end {
            return Ok(());
        }
        let at = FileBlock(start / u64::from(self.store.geometry().blocksize));
        let inode = self.store.inode(ino)?;
        let mapped = mapping::lookup(&self.store, &inode, ForkKind::Data, at)?;
        if mapped.is_none_or(|extent| extent.unwritten) {
            return Ok(());
        }
        let zeroes = vec![0; usize::try_from(end - start).unwrap_or(0)];
        self.write_piece(ino, start, &zeroes)
    }

    /// What lies behind the end in the last block must read as zeroes once the file grows.
    fn zero_behind_end(&mut self, ino: Ino) -> Result<()> {
        let blocksize = u64::from(self.store.geometry().blocksize);
        let inode = self.store.inode(ino)?;
        let (size, end) = (inode.size(), inode.size().next_multiple_of(blocksize));
        if size == end {
            return Ok(());
        }
        let at = FileBlock(size / blocksize);
        let Some(extent) = mapping::lookup(&self.store, &inode, ForkKind::Data, at)? else { return Ok(()) };
        if extent.unwritten {
            return Ok(());
        }
        let mut tail = vec![0; usize::try_from(blocksize).unwrap_or(0)];
        self.read_block(&inode, at.0, &mut tail)?;
        let skip = usize::try_from(size % blocksize).unwrap_or(0);
        if tail[skip..].iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        tail[skip..].fill(0);
        self.store.write_data(FsBlock(extent.startblock + (at.0 - extent.startoff)), 0, &tail)
    }
}

/// Writes the start of `bytes`, whole blocks of a file from block `at` on, to blocks that are its own. How many were written.
fn write_step(tx: &mut Transaction<'_>, ino: Ino, at: u64, count: u64, bytes: &[u8]) -> Result<u64> {
    let blocksize = u64::from(tx.store().geometry().blocksize);
    let store_in = |tx: &Transaction<'_>, extent: &Extent| {
        let skip = usize::try_from((extent.startoff - at) * blocksize).unwrap_or(usize::MAX);
        let len = usize::try_from(u64::from(extent.blockcount) * blocksize).unwrap_or(usize::MAX);
        let part = bytes.get(skip..).map(|part| &part[..len.min(part.len())]);
        let part = part.ok_or_else(|| Error::Internal("an extent lies behind what is written".to_owned()))?;
        tx.store().write_data(FsBlock(extent.startblock), 0, part)
    };
    if let Some(shared) = mapping::first_shared(tx, ino, FileBlock(at), count)? {
        if shared.startoff > at {
            return write_step(tx, ino, at, shared.startoff - at, bytes);
        }
        let owned = mapping::own(tx, ino, FileBlock(at), u64::from(shared.blockcount).min(count))?;
        let owned = owned.ok_or_else(|| Error::Internal("shared blocks are not found again".to_owned()))?;
        store_in(tx, &owned.new)?;
        return Ok(u64::from(owned.new.blockcount));
    }
    let wanted = u32::try_from(count.min(u64::from(MAX_BLOCKCOUNT))).unwrap_or(MAX_BLOCKCOUNT);
    let extents =
        mapping::grow(tx, ino, ForkKind::Data, FileBlock(at), wanted, mapping::Growth::Contents { unwritten: false })?;
    let mut done = 0;
    for extent in &extents {
        store_in(tx, extent)?;
        done += u64::from(extent.blockcount);
    }
    let mut left = done;
    if extents.iter().any(|extent| extent.unwritten) {
        let behind = mapping::convert(tx, ino, FileBlock(at), done, false, PIECES_OF_STEP)?;
        left = done - behind;
    }
    if left == 0 { Err(Error::NoSpace(format!("no block for inode {ino}"))) } else { Ok(left) }
}
