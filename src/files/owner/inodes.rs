//! Owners among all inodes.

use super::{BlockAddress, BlockOwner, FileBlock, groups};
use crate::btree::{ForkContents, Step, Tree, Visit, walk};
use crate::error::{Error, Result};
use crate::forms::{Fork, ForkForm, ForkKind, Inode, for_each_inode_chunk};
use crate::geometry::{BtreeKind, FsBlock};
use crate::ondisk::dinode::metatype;
use crate::ondisk::{Extent, OnDisk, RawExtent};
use crate::report::Unit;
use crate::tree::Reader;

/// Adds every fork that has `block`.
pub(super) fn owners(reader: &Reader<'_>, block: BlockAddress, owners: &mut Vec<BlockOwner>) -> Result<()> {
    let wanted = Wanted::of(reader, block);
    reader.observer().begin("asking every inode", u64::from(reader.geometry().agcount), Unit::Items("groups"));
    for agno in groups(reader) {
        let visited = for_each_inode_chunk(reader.image().cache(), agno, &mut |chunk| {
            match chunk {
                Err(error) => reader.report(&error),
                Ok(chunk) => {
                    for found in chunk.inodes().filter(|found| !found.is_free) {
                        match Inode::decode(reader.source(), found.ino, found.bytes) {
                            Ok(inode) => wanted.in_inode(reader, &inode, owners)?,
                            Err(error) => reader.report(&error),
                        }
                    }
                }
            }
            Ok(Step::Continue)
        });
        if let Err(error) = visited {
            reader.report(&error);
        }
        reader.observer().advance(1);
    }
    reader.observer().end();
    Ok(())
}

/// The block as extents and pointers name it.
#[derive(Clone, Copy)]
struct Wanted {
    number: u64,
    realtime: bool,
}

impl Wanted {
    fn of(reader: &Reader<'_>, block: BlockAddress) -> Self {
        match block {
            BlockAddress::Data(agno, agbno) => {
                // a block that could be named exists
                let fsb = reader.geometry().fsb(agno, agbno).unwrap_or(FsBlock(u64::MAX));
                Wanted { number: fsb.0, realtime: false }
            }
            BlockAddress::Realtime(rtb) => Wanted { number: rtb.0, realtime: true },
        }
    }

    fn in_inode(&self, reader: &Reader<'_>, inode: &Inode, owners: &mut Vec<BlockOwner>) -> Result<()> {
        for kind in [ForkKind::Data, ForkKind::Attr] {
            match inode.fork(kind) {
                Ok(Some(fork)) => self.in_fork(reader, &fork, owners)?,
                Ok(None) => {}
                Err(error) => reader.report(&error),
            }
        }
        Ok(())
    }

    fn in_fork(&self, reader: &Reader<'_>, fork: &Fork<'_>, owners: &mut Vec<BlockOwner>) -> Result<()> {
        let inode = fork.inode;
        let realtime = fork.kind == ForkKind::Data && inode.is_realtime();
        let held = match (fork.kind, realtime) {
            (ForkKind::Attr, _) => ForkContents::Attributes,
            (ForkKind::Data, true) => ForkContents::Realtime,
            (ForkKind::Data, false) => ForkContents::Data,
        };
        match fork.form {
            ForkForm::Extents(list) => {
                owners.extend(list.iter().filter_map(|raw| self.in_extent(fork, realtime, &raw.decode())));
            }
            ForkForm::Btree(_) => {
                let tree = Tree::of_fork(BtreeKind::Bmbt, inode.ino, held, fork.bytes());
                self.in_tree(reader, fork, realtime, &tree, owners)?;
            }
            ForkForm::MetaBtree(bytes) => {
                let kind = match inode.raw().core.metatype.get() {
                    metatype::RTREFCOUNT => BtreeKind::Rtrefcountbt,
                    _ => BtreeKind::Rtrmapbt,
                };
                let tree = Tree::of_fork(kind, inode.ino, held, bytes);
                self.in_tree(reader, fork, realtime, &tree, owners)?;
            }
            ForkForm::Local(_) | ForkForm::Device(_) => {}
        }
        Ok(())
    }

    /// The block of the fork that `extent` maps to the wanted one.
    fn in_extent(&self, fork: &Fork<'_>, realtime: bool, extent: &Extent) -> Option<BlockOwner> {
        let behind = self.number.checked_sub(extent.startblock)?;
        let found = realtime == self.realtime && behind < u64::from(extent.blockcount);
        found.then(|| self.file(fork, false, extent.startoff + behind, extent.unwritten))
    }

    fn in_tree(
        &self,
        reader: &Reader<'_>,
        fork: &Fork<'_>,
        realtime: bool,
        tree: &Tree<'_>,
        owners: &mut Vec<BlockOwner>,
    ) -> Result<()> {
        let budget = reader.geometry().dblocks;
        let walked = walk(reader.image().cache(), tree, budget, &mut |visit| {
            match visit {
                Visit::Block { pointer, .. } if !self.realtime && pointer == self.number => {
                    owners.push(self.file(fork, true, 0, false));
                }
                Visit::Record { record, .. } if tree.kind == BtreeKind::Bmbt => {
                    let extent = RawExtent::prefix(record).map(|(raw, _)| raw.decode());
                    owners.extend(extent.and_then(|extent| self.in_extent(fork, realtime, &extent)));
                }
                _ => {}
            }
            Ok(Step::Continue)
        })?;
        for failure in walked.verdict.failures() {
            reader.report(&Error::Corrupt(Box::new(failure.clone())));
        }
        Ok(())
    }

    fn file(&self, fork: &Fork<'_>, is_btree: bool, offset: u64, unwritten: bool) -> BlockOwner {
        let is_attribute = fork.kind == ForkKind::Attr;
        BlockOwner::File(FileBlock { ino: fork.inode.ino, is_attribute, is_btree, offset, unwritten })
    }
}
