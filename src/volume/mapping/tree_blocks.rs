//! The blocks of a fork's extent btree.

use std::collections::HashSet;

use crate::btree::{BlockStore, Layout, Node};
use crate::buffer::{BlockKind, Request};
use crate::error::{Check, Error, Place, Result, Rule};
use crate::forms::ForkKind;
use crate::geometry::{BtreeKind, FsBlock, Ino};
use crate::ondisk::{OnDisk, RawLongBlockV5};
use crate::transaction::{Logged, Transaction};
use crate::volume::space::{self, AllocationRequest, Purpose, RmapOwner, Target};

/// The blocks of a fork's extent btree, in a transaction.
pub(super) struct TreeBlocks<'t, 's> {
    tx: &'t mut Transaction<'s>,
    ino: Ino,
    fork: ForkKind,
    layout: Layout,
    /// Blocks allocated here, which have no contents yet.
    fresh: HashSet<u64>,
    /// Blocks allocated less blocks freed.
    pub(super) blocks: i64,
}

impl<'t, 's> TreeBlocks<'t, 's> {
    pub(super) fn new(tx: &'t mut Transaction<'s>, ino: Ino, fork: ForkKind) -> Self {
        let layout = Layout::of_block(tx.store().geometry(), BtreeKind::Bmbt);
        TreeBlocks { tx, ino, fork, layout, fresh: HashSet::new(), blocks: 0 }
    }

    fn request(&self, pointer: u64) -> Result<Request> {
        let geometry = self.tx.store().geometry();
        let fsb = FsBlock(pointer);
        let daddr = geometry.is_usable_fsb(fsb).then(|| geometry.fsb_daddr(fsb)).flatten();
        let outside = || {
            let place = Place { inode: Some(self.ino.0), ..Place::default() };
            Error::corrupt(Check::new("bmbt", "pointer", Rule::Range), place)
        };
        let request = Request::new(geometry, BlockKind::Btree(BtreeKind::Bmbt), daddr.ok_or_else(outside)?);
        Ok(request.of_inode(self.ino))
    }
}

impl BlockStore for TreeBlocks<'_, '_> {
    fn allocate(&mut self) -> Result<u64> {
        let owner = RmapOwner::bmbt(self.ino, self.fork);
        let near = self.tx.store().geometry().ino_fsb(self.ino).unwrap_or_default();
        let full = || Error::NoSpace(format!("a block for the extent btree of inode {}", self.ino));
        if self.tx.blocks_left() == 0 {
            return Err(full());
        }
        let request = AllocationRequest::new(Target::StartingAt(near), 1, 1, owner, Purpose::Metadata);
        let (block, _) = space::allocate(self.tx, &request)?.ok_or_else(full)?;
        self.fresh.insert(block.0);
        self.blocks += 1;
        Ok(block.0)
    }

    fn free(&mut self, pointer: u64) -> Result<()> {
        let request = self.request(pointer)?;
        space::free_later(self.tx, FsBlock(pointer), 1, &RmapOwner::bmbt(self.ino, self.fork));
        self.tx.invalidate(&request);
        self.fresh.remove(&pointer);
        self.blocks -= 1;
        Ok(())
    }

    fn read(&self, pointer: u64) -> Result<Vec<u8>> {
        Ok(self.tx.bytes_of(&self.request(pointer)?)?.to_vec())
    }

    fn write(&mut self, pointer: u64, mut bytes: Vec<u8>) -> Result<()> {
        let request = self.request(pointer)?;
        if !self.fresh.remove(&pointer) {
            if self.tx.store().geometry().features.has_crc() {
                keep_stamp(&self.tx.bytes_of(&request)?, &mut bytes);
            }
            return self.tx.write(&request, bytes);
        }
        // what a leaf does not use yet need not be in the journal
        let node = Node::decode(self.layout, &bytes).ok();
        let logged = match node {
            Some(node) if node.is_leaf() => Logged::Except(self.layout.record(node.count).start..self.layout.size()),
            _ => Logged::All,
        };
        self.tx.write_new(&request, bytes, &logged)
    }

    fn daddr(&self, pointer: u64) -> u64 {
        self.tx.store().geometry().fsb_daddr(FsBlock(pointer)).map_or(0, |daddr| daddr.0)
    }
}

/// CRC and LSN are stamped when a block is written to its place: until then they are no change.
fn keep_stamp(old: &[u8], new: &mut [u8]) {
    if let (Some((old, _)), Some((new, _))) = (RawLongBlockV5::prefix(old), RawLongBlockV5::prefix_mut(new)) {
        (new.crc, new.lsn) = (old.crc, old.lsn);
    }
}
