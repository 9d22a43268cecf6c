//! Looking up a name in a directory by its hash (Linux `fs/xfs/libxfs/xfs_dir2_block.c`, `xfs_dir2_leaf.c`,
//! `xfs_dir2_node.c`).

use super::da_btree::{HashIndex, IndexBlock};
use super::directory::{DirEntry, DirForm, Directory, dir_unit};
use super::file_blocks::read_file_block;
use super::fork::ForkForm;
use super::source::{corrupt, demand_sound, place_of};
use crate::buffer::Block;
use crate::error::{Check, Error, Result, Rule};
use crate::geometry::{FileBlock, Ino};
use crate::ondisk::dir_data::{DATA_ALIGN, DataKind};
use crate::ondisk::dir_leaf::{NULL_DATAPTR, RawDirLeafEntry, with_hash};
use crate::ondisk::name_hash::NameHash;
use std::ops::ControlFlow;

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The inode.
    pub ino: Ino,
    /// The file type byte, where the filesystem has it.
    pub ftype: Option<u8>,
    /// Where the entry stands in the directory's data space, in bytes.
    pub offset: u64,
}

impl From<DirEntry<'_>> for Found {
    fn from(entry: DirEntry<'_>) -> Self {
        Found { ino: entry.ino, ftype: entry.ftype, offset: entry.offset }
    }
}

impl Directory<'_> {
    /// How the filesystem hashes names.
    fn name_hash(&self) -> NameHash {
        if self.source.geometry().features.has_asciici() { NameHash::AsciiCi } else { NameHash::Bytes }
    }

    /// The form of the directory.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when the block that tells cannot be read.
    pub fn form(&self) -> Result<DirForm> {
        if matches!(self.fork.form, ForkForm::Local(_)) {
            return Ok(DirForm::Short);
        }
        let block = self.first_block()?;
        if self.decode_data(&block)?.kind == DataKind::Block {
            return Ok(DirForm::Block);
        }
        Ok(if self.index()?.has_nodes()? { DirForm::Node } else { DirForm::Leaf })
    }

    fn index(&self) -> Result<HashIndex<'_>> {
        HashIndex::directory(self.source, self.fork)
    }

    fn first_block(&self) -> Result<Block> {
        let block = self.data_block_at(FileBlock(0))?;
        let check = Check::new("dir2_data", "hdr", Rule::Truncated);
        block.ok_or_else(|| corrupt(check, &self.inode.place, "no first block"))
    }

    fn data_block_at(&self, at: FileBlock) -> Result<Option<Block>> {
        read_file_block(self.source, &self.fork, self.data_kind(), at, dir_unit(self.source.geometry()))
    }

    /// Looks up `name` by its hash, without a look at entries of other hashes. In a filesystem that does not regard
    /// case, an entry that differs only in that is found, but an exact one is preferred.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when a block on the way is damaged.
    pub fn lookup(&self, name: &[u8]) -> Result<Option<Found>> {
        if matches!(self.fork.form, ForkForm::Local(_)) {
            return self.scan(name);
        }
        let hash = self.name_hash().hash(name);
        let first = self.first_block()?;
        demand_sound(&first)?;
        let data = self.decode_data(&first)?;
        let mut search = Search { directory: self, name, block: None, best: None };
        if data.kind == DataKind::Block {
            // the one that stopped the search is the best
            let _ = search.compare_all(with_hash(data.leaf, hash))?;
            return Ok(search.best);
        }
        let index = self.index()?;
        let mut next = index.leaf_of(hash)?;
        while let Some((block, _)) = next {
            let IndexBlock::DirLeaf(leaf) = index.decode(&block)? else { break };
            if search.compare_all(with_hash(leaf.entries, hash))?.is_break() {
                break;
            }
            // entries of one hash may go on in the next leaf
            let goes_on = leaf.entries.last().is_none_or(|last| last.hashval.get() <= hash);
            next = if goes_on { index.next_leaf(leaf.forw)? } else { None };
        }
        Ok(search.best)
    }

    fn scan(&self, name: &[u8]) -> Result<Option<Found>> {
        let (mut exact, mut inexact, mut damage) = (None, None, None);
        self.for_each(&mut |entry| {
            match entry {
                Ok(entry) if entry.name == name => {
                    exact = Some(Found::from(entry));
                    return ControlFlow::Break(());
                }
                Ok(entry) if self.name_hash().same(entry.name, name) => inexact = inexact.or(Some(Found::from(entry))),
                Ok(_) => {}
                Err(error) => damage = damage.take().or(Some(error)),
            }
            ControlFlow::Continue(())
        });
        match (exact.or(inexact), damage) {
            (None, Some(error)) => Err(error),
            (found, _) => Ok(found),
        }
    }
}

/// The state of a lookup.
struct Search<'a, 'n> {
    directory: &'a Directory<'a>,
    name: &'n [u8],
    /// The data block that was read last, with its place in the file.
    block: Option<(FileBlock, Block)>,
    /// The best entry so far; an exact one ends the search.
    best: Option<Found>,
}

impl Search<'_, '_> {
    /// Compares the names of the entries that `entries` point to; breaks at the one that is exactly it.
    fn compare_all<'e>(&mut self, entries: impl Iterator<Item = &'e RawDirLeafEntry>) -> Result<ControlFlow<()>> {
        for entry in entries.filter(|entry| entry.address.get() != NULL_DATAPTR) {
            if self.compare(entry)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn compare(&mut self, leaf: &RawDirLeafEntry) -> Result<ControlFlow<()>> {
        let geometry = self.directory.source.geometry();
        let unit = u64::from(geometry.directory.blksize);
        let offset = u64::from(leaf.address.get()) * DATA_ALIGN as u64;
        let at = FileBlock((offset / unit * unit) >> geometry.blocklog);
        let dangling = || self.directory.dangling(leaf);
        let block = match self.block.take() {
            Some((cached, block)) if cached == at => block,
            _ => self.directory.data_block_at(at)?.ok_or_else(dangling)?,
        };
        demand_sound(&block)?;
        let within = usize::try_from(offset % unit).map_err(|_| dangling())?;
        let data = self.directory.decode_data(&block)?;
        let entry = data
            .entry_at(within)
            .map_err(|check| corrupt(check, &place_of(self.directory.source, &block), format!("{leaf:?}")))?;
        let found = Found { ino: Ino(entry.inumber), ftype: entry.ftype, offset };
        let exact = entry.name == self.name;
        if exact || self.best.is_none() && self.directory.name_hash().same(entry.name, self.name) {
            self.best = Some(found);
        }
        self.block = Some((at, block));
        Ok(if exact { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

impl Directory<'_> {
    fn dangling(&self, leaf: &RawDirLeafEntry) -> Error {
        let check = Check::new("dir2_leaf", "address", Rule::Range);
        corrupt(check, &self.inode.place, format!("address {:#x}", leaf.address.get()))
    }
}
