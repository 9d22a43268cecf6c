//! Directories of every form, as lists of entries (Linux `fs/xfs/xfs_dir2_readdir.c`).

use super::extents::find_extent;
use super::file_blocks::MappedBlocks;
use super::fork::{Fork, ForkForm, ForkKind};
use super::inode::{FileType, Inode};
use super::source::{BlockSource, corrupt, damage_of, place_of};
use crate::buffer::{Block, BlockKind};
use crate::error::{Check, Error, Place, Result, Rule};
use crate::geometry::{FileBlock, Geometry, Ino};
use crate::ondisk::dir_data::{DirData, DirDataItem, entry_len, ftype, header_len};
use crate::ondisk::dir_short::DirShort;
use std::ops::ControlFlow;

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirEntry<'a> {
    /// The name: bytes that need not be UTF-8.
    pub name: &'a [u8],
    /// The inode.
    pub ino: Ino,
    /// The file type byte, where the filesystem has it.
    pub ftype: Option<u8>,
    /// Where it stands in the directory's data space, in bytes. In short form, where it would.
    pub offset: u64,
}

/// What a walk over a directory calls for each entry and each damage.
pub type VisitEntry<'v> = &'v mut dyn FnMut(Result<DirEntry<'_>>) -> ControlFlow<()>;

/// The forms of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DirForm {
    /// In the inode.
    Short,
    /// One block with entries and leaf.
    Block,
    /// Data blocks and one leaf.
    Leaf,
    /// Data blocks, leaves, nodes and free index.
    Node,
}

/// A directory.
#[derive(Clone, Copy)]
pub struct Directory<'a> {
    pub(super) source: &'a dyn BlockSource,
    pub(super) inode: &'a Inode,
    pub(super) fork: Fork<'a>,
}

impl<'a> Directory<'a> {
    /// The directory that `inode` is.
    ///
    /// # Errors
    /// `Usage` when it is none; `Corrupt` when its data fork cannot be decoded.
    pub fn open(source: &'a dyn BlockSource, inode: &'a Inode) -> Result<Self> {
        if inode.file_type() != Some(FileType::Directory) {
            return Err(Error::Usage(format!("inode {} is not a directory", inode.ino)));
        }
        match inode.fork(ForkKind::Data)? {
            Some(fork) => Ok(Directory { source, inode, fork }),
            None => Err(corrupt(Check::new("dinode", "format", Rule::Range), &inode.place, "")),
        }
    }

    /// Calls `visit` for each entry, `.` and `..` among them, in the order of their offsets, and for each damage. A
    /// damaged block costs its own entries and no others. An entry with a name or an inode number that cannot be is
    /// reported as damage first and then shown.
    pub fn for_each(&self, visit: VisitEntry<'_>) {
        // whether the walk was broken off is known to who broke it off
        let _ = match self.fork.form {
            ForkForm::Local(bytes) => self.short(bytes, visit),
            ForkForm::Extents(_) | ForkForm::Btree(_) => self.blocks(visit),
            ForkForm::Device(_) | ForkForm::MetaBtree(_) => visit(Err(self.failed("dinode", "format", Rule::Mismatch))),
        };
    }

    fn failed(&self, structure: &'static str, field: &'static str, rule: Rule) -> Error {
        corrupt(Check::new(structure, field, rule), &self.inode.place, "")
    }

    fn short(&self, bytes: &[u8], visit: VisitEntry<'_>) -> ControlFlow<()> {
        let features = &self.source.geometry().features;
        let dir = match DirShort::decode(bytes, features.has_ftype()) {
            Ok(dir) => dir,
            Err(check) => return visit(Err(corrupt(check, &self.inode.place, ""))),
        };
        // a block would have these two first
        let dot = header_len(features.has_crc());
        let dotdot = dot + entry_len(1, features.has_ftype());
        let folder = features.has_ftype().then_some(ftype::DIR);
        for (name, ino, at) in [(&b"."[..], self.inode.ino, dot), (b"..", Ino(dir.parent), dotdot)] {
            let entry = DirEntry { name, ino, ftype: folder, offset: u64::try_from(at).unwrap_or(0) };
            self.show(entry, &self.inode.place, visit)?;
        }
        let mut entries = dir.entries();
        for entry in entries.by_ref() {
            match entry {
                Err(check) => return visit(Err(corrupt(check, &self.inode.place, ""))),
                Ok(e) => {
                    let offset = u64::from(e.offset);
                    let entry = DirEntry { name: e.name, ino: Ino(e.inumber), ftype: e.ftype, offset };
                    self.show(entry, &self.inode.place, visit)?;
                }
            }
        }
        if entries.rest().is_empty() {
            return ControlFlow::Continue(());
        }
        visit(Err(self.failed("dir2_sf.hdr", "count", Rule::Mismatch)))
    }

    fn blocks(&self, visit: VisitEntry<'_>) -> ControlFlow<()> {
        let geometry = self.source.geometry();
        let mut blocks = MappedBlocks::new(self.source, self.fork, dir_unit(geometry), leaf_start(geometry));
        while let Some(next) = blocks.next() {
            match next.and_then(|(at, pieces)| Ok((at, blocks.read(self.data_kind(), &pieces)?))) {
                Ok((at, block)) => self.data_block(at, &block, visit)?,
                Err(error) => visit(Err(error))?,
            }
        }
        ControlFlow::Continue(())
    }

    fn data_block(&self, at: FileBlock, block: &Block, visit: VisitEntry<'_>) -> ControlFlow<()> {
        for error in damage_of(block) {
            visit(Err(error))?;
        }
        let place = place_of(self.source, block);
        let data = match self.decode_data(block) {
            Ok(data) => data,
            Err(error) => return visit(Err(error)),
        };
        let base = at.0 << self.source.geometry().blocklog;
        for item in data.items() {
            match item {
                Ok(DirDataItem::Unused { .. }) => {}
                Ok(DirDataItem::Entry(e)) => {
                    let offset = base + u64::from(e.offset);
                    let entry = DirEntry { name: e.name, ino: Ino(e.inumber), ftype: e.ftype, offset };
                    self.show(entry, &place, visit)?;
                }
                Err(check) => visit(Err(corrupt(check, &place, format!("file block {at}"))))?,
            }
        }
        ControlFlow::Continue(())
    }

    /// A directory of one block has its entries and its leaf in it. One data block can also have a leaf of its own.
    pub(super) fn data_kind(&self) -> BlockKind {
        let geometry = self.source.geometry();
        let one = self.inode.size() == u64::from(geometry.directory.blksize);
        let leaf = || find_extent(self.source, &self.fork, geometry.directory.leaf_start);
        if one && !matches!(leaf(), Ok(Some(_))) { BlockKind::DirBlock } else { BlockKind::DirData }
    }

    pub(super) fn decode_data<'b>(&self, block: &'b Block) -> Result<DirData<'b>> {
        let features = &self.source.geometry().features;
        DirData::decode(block.bytes(), features.has_crc(), features.has_ftype())
            .map_err(|check| corrupt(check, &place_of(self.source, block), ""))
    }

    fn show(&self, entry: DirEntry<'_>, place: &Place, visit: VisitEntry<'_>) -> ControlFlow<()> {
        let detail = || format!("{:?} at {:#x}", String::from_utf8_lossy(entry.name), entry.offset);
        let geometry = self.source.geometry();
        if entry.name.iter().any(|byte| matches!(byte, 0 | b'/')) {
            visit(Err(corrupt(Check::new("dirent", "name", Rule::Range), place, detail())))?;
        }
        if !geometry.is_valid_ino(entry.ino) || geometry.is_internal_ino(entry.ino) {
            visit(Err(corrupt(Check::new("dirent", "inumber", Rule::Range), place, detail())))?;
        }
        if entry.ftype.is_some_and(|byte| byte >= ftype::MAX) {
            visit(Err(corrupt(Check::new("dirent", "ftype", Rule::Range), place, detail())))?;
        }
        visit(Ok(entry))
    }
}

/// Filesystem blocks of a directory block.
pub(super) fn dir_unit(geometry: &Geometry) -> u32 {
    geometry.directory.fsbcount
}

/// First filesystem block of a directory's leaves and nodes.
pub(super) fn leaf_start(geometry: &Geometry) -> FileBlock {
    geometry.directory.leaf_start
}
