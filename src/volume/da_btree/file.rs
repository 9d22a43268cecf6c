//! The blocks of a fork that holds a directory or attributes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::buffer::{BlockKind, Fragment, Request};
use crate::error::{Check, Error, Place, Result, Rule};
use crate::forms::encode::{BlockOwner, Header};
use crate::forms::{ForkForm, ForkKind, Inode, find_extent, map_file_block};
use crate::geometry::{FileBlock, Geometry, Ino};
use crate::ondisk::{Extent, OnDisk, RawExtent};
use crate::transaction::{Logged, Transaction};
use crate::volume::mapping::{Growth, grow, unmap};

/// A fork whose blocks are changed.
pub(in crate::volume) struct DaFile<'t, 's> {
    pub tx: &'t mut Transaction<'s>,
    pub ino: Ino,
    fork: ForkKind,
    /// Where blocks lie, as far as it has been looked up.
    mapped: HashMap<FileBlock, Vec<Fragment>>,
}

impl<'t, 's> DaFile<'t, 's> {
    /// The data fork of a directory.
    pub fn directory(tx: &'t mut Transaction<'s>, ino: Ino) -> Self {
        DaFile { tx, ino, fork: ForkKind::Data, mapped: HashMap::new() }
    }

    /// The attribute fork of any inode.
    pub fn attributes(tx: &'t mut Transaction<'s>, ino: Ino) -> Self {
        DaFile { tx, ino, fork: ForkKind::Attr, mapped: HashMap::new() }
    }

    pub fn geometry(&self) -> &Geometry {
        self.tx.store().geometry()
    }

    /// Whether blocks are of version 5.
    pub fn crc(&self) -> bool {
        self.geometry().features.has_crc()
    }

    pub fn owner(&self) -> BlockOwner {
        BlockOwner::new(self.geometry(), self.ino)
    }

    pub fn inode(&self) -> Result<Inode> {
        self.tx.inode(self.ino)
    }

    /// Filesystem blocks of a block.
    pub fn unit(&self) -> u32 {
        if self.fork == ForkKind::Data { self.geometry().directory.fsbcount } else { 1 }
    }

    /// Bytes of a block.
    pub fn size(&self) -> usize {
        let size =
            if self.fork == ForkKind::Data { self.geometry().directory.blksize } else { self.geometry().blocksize };
        usize::try_from(size).expect("invariant: blocks have 64 KiB at most")
    }

    /// Where the root of the tree lies.
    pub fn root(&self) -> FileBlock {
        if self.fork == ForkKind::Data { self.geometry().directory.leaf_start } else { FileBlock(0) }
    }

    /// What nodes, and leaves below nodes, are read as.
    pub fn hash_kind(&self) -> BlockKind {
        if self.fork == ForkKind::Data { BlockKind::DirHash } else { BlockKind::AttrHash }
    }

    /// Most entries of a node.
    pub fn node_entries(&self) -> usize {
        let geometry = self.geometry();
        let most = if self.fork == ForkKind::Data {
            geometry.directory.node_entries
        } else {
            geometry.attributes.node_entries
        };
        usize::try_from(most).expect("invariant: blocks have 64 KiB at most")
    }

    /// A check that fails at a block.
    pub fn corrupt(&self, check: Check) -> Error {
        Error::corrupt(check, Place { inode: Some(self.ino.0), ..Place::default() })
    }

    /// Where the block at `at` lies; `None` for a hole.
    fn fragments(&mut self, at: FileBlock) -> Result<Option<Vec<Fragment>>> {
        if let Some(found) = self.mapped.get(&at) {
            return Ok(Some(found.clone()));
        }
        let inode = self.inode()?;
        let hole = || self.corrupt(Check::new("dinode", "forkoff", Rule::Mismatch));
        let fork = inode.fork(self.fork)?.ok_or_else(hole)?;
        let Some(pieces) = map_file_block(&*self.tx, &fork, at, self.unit())? else { return Ok(None) };
        let geometry = self.geometry();
        let fragment = |piece: &crate::forms::Piece| {
            let daddr = geometry.fsb_daddr(piece.start)?;
            Some(Fragment { daddr, len: piece.count.checked_mul(geometry.blocksize)? })
        };
        let fragments: Option<Vec<_>> = pieces.iter().map(fragment).collect();
        let outside = || self.corrupt(Check::new("bmbt_rec", "startblock", Rule::Range));
        let fragments = fragments.ok_or_else(outside)?;
        self.mapped.insert(at, fragments.clone());
        Ok(Some(fragments))
    }

    /// The request for the block at `at`; `None` for a hole.
    pub fn find(&mut self, kind: BlockKind, at: FileBlock) -> Result<Option<Request>> {
        let ino = self.ino;
        Ok(self.fragments(at)?.map(|fragments| Request::of_fragments(kind, fragments).of_inode(ino)))
    }

    fn request(&mut self, kind: BlockKind, at: FileBlock) -> Result<Request> {
        let found = self.find(kind, at)?;
        found.ok_or_else(|| self.corrupt(Check::new("bmbt_rec", "startoff", Rule::Mismatch)))
    }

    /// The block at `at`.
    pub fn read(&mut self, kind: BlockKind, at: FileBlock) -> Result<Arc<[u8]>> {
        let request = self.request(kind, at)?;
        self.tx.bytes_of(&request)
    }

    /// The block at `at`; `None` for a hole.
    pub fn try_read(&mut self, kind: BlockKind, at: FileBlock) -> Result<Option<Arc<[u8]>>> {
        match self.find(kind, at)? {
            Some(request) => self.tx.bytes_of(&request).map(Some),
            None => Ok(None),
        }
    }

    /// Gives a block of the same kind other contents.
    pub fn write(&mut self, kind: BlockKind, at: FileBlock, bytes: Vec<u8>) -> Result<()> {
        let request = self.request(kind, at)?;
        self.tx.write(&request, bytes)
    }

    /// Gives contents to a block that is new, or that was of another kind; its own address is put in. `logged` says which
    /// bytes have a meaning.
    pub fn write_new(&mut self, kind: BlockKind, at: FileBlock, mut bytes: Vec<u8>, logged: &Logged) -> Result<()> {
        let request = self.request(kind, at)?;
        let header = match kind {
            BlockKind::DirBlock | BlockKind::DirData | BlockKind::DirFree => Header::DirData,
            _ => Header::DaBlock,
        };
        self.owner().seal(header, &mut bytes, request.daddr());
        self.tx.write_new(&request, bytes, logged)
    }

    /// Adds a block at the first place from `from` on where there is room for one.
    pub fn add(&mut self, from: FileBlock) -> Result<FileBlock> {
        let at = first_unused(self.tx, self.ino, self.fork, from, self.unit())?;
        self.add_at(at)?;
        Ok(at)
    }

    /// Adds the block at `at`.
    pub fn add_at(&mut self, at: FileBlock) -> Result<()> {
        self.mapped.remove(&at);
        grow(self.tx, self.ino, self.fork, at, self.unit(), Growth::Metadata).map(drop)
    }

    /// Takes out the block at `at`.
    pub fn take_out(&mut self, kind: BlockKind, at: FileBlock) -> Result<()> {
        let request = self.request(kind, at)?;
        if self.tx.blocks_left() == 0 && self.may_need_block(at)? {
            return Err(Error::NoSpace(format!("a mapping of inode {} is split", self.ino)));
        }
        self.mapped.remove(&at);
        let pieces = request.fragments.len().max(1);
        let left = unmap(self.tx, self.ino, self.fork, at, u64::from(self.unit()), pieces)?;
        if left > 0 {
            return Err(self.corrupt(Check::new("bmbt_rec", "startoff", Rule::Mismatch)));
        }
        self.tx.invalidate(&request);
        Ok(())
    }
}

/// Blocks taken out without a reservation.
impl DaFile<'_, '_> {
    /// Whether taking out the block at `at` splits an extent, and the fork may need a block for that.
    fn may_need_block(&self, at: FileBlock) -> Result<bool> {
        let inode = self.inode()?;
        let Some(fork) = inode.fork(self.fork)? else { return Ok(false) };
        let is_full = match fork.form {
            ForkForm::Extents(list) => size_of_val(list) + RawExtent::SIZE > fork.bytes().len(),
            _ => true,
        };
        let end = at.0 + u64::from(self.unit());
        let splits = |extent: Option<Extent>| {
            extent.is_some_and(|extent| extent.startoff < at.0 && end < extent.startoff + u64::from(extent.blockcount))
        };
        Ok(is_full && splits(find_extent(&*self.tx, &fork, at)?))
    }

    /// The last block of leaves and nodes of a directory; `None` for attributes.
    pub(super) fn last_of_tree(&self) -> Result<Option<FileBlock>> {
        if self.fork == ForkKind::Attr {
            return Ok(None);
        }
        let inode = self.inode()?;
        let Some(fork) = inode.fork(self.fork)? else { return Ok(None) };
        let mut end = None;
        for extent in fork.extents(&*self.tx) {
            let extent = extent?;
            if extent.startoff >= self.geometry().directory.free_start.0 {
                break;
            }
            end = Some(extent.startoff + u64::from(extent.blockcount));
        }
        let last = end.and_then(|end| end.checked_sub(u64::from(self.unit()))).map(FileBlock);
        Ok(last.filter(|&last| last >= self.root()))
    }
}

/// The first place from `from` on where a fork has no block in `count` that follow each other (`xfs_bmap_first_unused`).
pub(in crate::volume) fn first_unused(
    tx: &Transaction<'_>,
    ino: Ino,
    fork: ForkKind,
    from: FileBlock,
    count: u32,
) -> Result<FileBlock> {
    let inode = tx.inode(ino)?;
    let Some(fork) = inode.fork(fork)? else { return Ok(from) };
    let mut at = from.0;
    for extent in fork.extents(tx) {
        let extent = extent?;
        if extent.startoff >= at + u64::from(count) {
            break;
        }
        at = at.max(extent.startoff + u64::from(extent.blockcount));
    }
    Ok(FileBlock(at))
}
