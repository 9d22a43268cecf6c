//! The btrees of a group in a transaction: where their blocks come from and go to, and where their roots stand.

use std::cell::Cell;

use super::allocate::allocate;
use super::free_list;
use super::header::{agf, agi, change_agf, change_agi, corrupt};
use super::hold;
use super::later::free_to;
use super::owner::RmapOwner;
use super::request::{AllocationRequest, Purpose, Target};
use crate::btree::{
    BlockStore, Cursor, EditRoot, Editor, Layout, Node, NodeSource, SortKey, Tree, TreeIdentity, TreeOwner,
};
use crate::buffer::{BlockKind, Request};
use crate::error::{Error, Result, Rule};
use crate::geometry::{AgBlock, AgNumber, BtreeKind};
use crate::ondisk::{Be64, NULLAGBLOCK, OnDisk, RawShortBlockV5};
use crate::transaction::{Logged, Store, Transaction};

/// Where the root of a btree of a group lies, and how many levels the tree has.
///
/// # Errors
/// `Internal` when groups have no such btree; `Corrupt` when the header is damaged; `Io`.
fn root_of(store: &Store, agno: AgNumber, kind: BtreeKind) -> Result<(AgBlock, u32)> {
    let (root, level) = match kind {
        BtreeKind::Bnobt => agf(store, agno).map(|agf| (agf.bno_root, agf.bno_level))?,
        BtreeKind::Cntbt => agf(store, agno).map(|agf| (agf.cnt_root, agf.cnt_level))?,
        BtreeKind::Rmapbt => agf(store, agno).map(|agf| (agf.rmap_root, agf.rmap_level))?,
        BtreeKind::Refcountbt => agf(store, agno).map(|agf| (agf.refcount_root, agf.refcount_level))?,
        BtreeKind::Inobt => agi(store, agno).map(|agi| (agi.root, agi.level))?,
        BtreeKind::Finobt => agi(store, agno).map(|agi| (agi.free_root, agi.free_level))?,
        _ => return Err(Error::Internal(format!("{} is no btree of a group", kind.name()))),
    };
    Ok((AgBlock(root.get()), level.get()))
}

fn set_root(tx: &mut Transaction<'_>, agno: AgNumber, kind: BtreeKind, root: u32, levels: u32) -> Result<()> {
    match kind {
        BtreeKind::Inobt => change_agi(tx, agno, |agi| {
            agi.root.set(root);
            agi.level.set(levels);
        }),
        BtreeKind::Finobt => change_agi(tx, agno, |agi| {
            agi.free_root.set(root);
            agi.free_level.set(levels);
        }),
        _ => change_agf(tx, agno, |agf| {
            let (place, level) = match kind {
                BtreeKind::Bnobt => (&mut agf.bno_root, &mut agf.bno_level),
                BtreeKind::Cntbt => (&mut agf.cnt_root, &mut agf.cnt_level),
                BtreeKind::Rmapbt => (&mut agf.rmap_root, &mut agf.rmap_level),
                _ => (&mut agf.refcount_root, &mut agf.refcount_level),
            };
            place.set(root);
            level.set(levels);
        }),
    }
}

/// The blocks of a btree of a group, as its editor needs them.
pub struct GroupBlocks<'t, 's> {
    tx: &'t mut Transaction<'s>,
    agno: AgNumber,
    kind: BtreeKind,
    /// The block that was read last: new ones lie near it.
    near: Cell<u64>,
    /// The block that was allocated last, which has no contents yet.
    fresh: Option<u64>,
}

impl GroupBlocks<'_, '_> {
    fn request(&self, pointer: u64) -> Result<Request> {
        request(self.tx.store(), self.agno, self.kind, pointer)
    }

    /// From the group's free space, as a block of the inode or reference count btrees.
    fn allocate_extent(&mut self) -> Result<AgBlock> {
        let geometry = self.tx.store().geometry();
        let (owner, purpose) = match self.kind {
            BtreeKind::Inobt => (RmapOwner::INOBT, Purpose::Metadata),
            BtreeKind::Finobt => (RmapOwner::INOBT, Purpose::Reserved),
            _ => (RmapOwner::REFC, Purpose::Reserved),
        };
        // the kernel looks for blocks of the reference count btree near its first root
        let near = match geometry.initial_root(self.kind) {
            Some(root) if self.kind == BtreeKind::Refcountbt => root,
            _ => AgBlock(u32::try_from(self.near.get()).unwrap_or(0)),
        };
        let target = geometry.fsb(self.agno, near).ok_or_else(|| Error::Internal("a block in no group".to_owned()))?;
        let request = AllocationRequest::new(Target::Near(target), 1, 1, owner, purpose);
        let full = || Error::NoSpace(format!("no block for the {} of group {}", self.kind.name(), self.agno));
        let (start, _) = allocate(self.tx, &request)?.ok_or_else(full)?;
        let parts = self.tx.store().geometry().fsb_parts(start);
        parts.map(|(_, agbno)| agbno).ok_or_else(|| Error::Internal("a block in no group".to_owned()))
    }

    /// The header's count of the blocks of this tree.
    fn count(&mut self, more: bool) -> Result<()> {
        let (kind, agno) = (self.kind, self.agno);
        if matches!(kind, BtreeKind::Inobt | BtreeKind::Finobt) {
            if !self.tx.store().geometry().features.has_inobtcount() {
                return Ok(());
            }
            return change_agi(self.tx, agno, |agi| {
                let count = if kind == BtreeKind::Inobt { &mut agi.iblocks } else { &mut agi.fblocks };
                count.set(if more { count.get().wrapping_add(1) } else { count.get().wrapping_sub(1) });
            });
        }
        change_agf(self.tx, agno, |agf| {
            let count = if kind == BtreeKind::Rmapbt { &mut agf.rmap_blocks } else { &mut agf.refcount_blocks };
            count.set(if more { count.get().wrapping_add(1) } else { count.get().wrapping_sub(1) });
        })
    }
}

fn request(store: &Store, agno: AgNumber, kind: BtreeKind, pointer: u64) -> Result<Request> {
    let geometry = store.geometry();
    let block = u32::try_from(pointer).ok().map(AgBlock).filter(|block| geometry.is_usable_agbno(agno, *block));
    let daddr = block.and_then(|block| geometry.ag_daddr(agno, block));
    let daddr = daddr.ok_or_else(|| corrupt(kind.name(), "ptr", Rule::Range, agno))?;
    Ok(Request::new(geometry, BlockKind::Btree(kind), daddr))
}

impl BlockStore for GroupBlocks<'_, '_> {
    fn allocate(&mut self) -> Result<u64> {
        let agno = self.agno;
        let block = match self.kind {
            BtreeKind::Bnobt | BtreeKind::Cntbt | BtreeKind::Rmapbt => {
                let block = free_list::take(self.tx, agno, true)?;
                block.ok_or_else(|| Error::NoSpace(format!("the free list of group {agno} is empty")))?
            }
            _ => self.allocate_extent()?,
        };
        match self.kind {
            BtreeKind::Bnobt | BtreeKind::Cntbt => self.tx.holdings_mut(agno)?.free_space_btrees += 1,
            BtreeKind::Rmapbt => {
                self.count(true)?;
                hold::rmapbt_grows(self.tx, agno)?;
            }
            _ => self.count(true)?,
        }
        self.fresh = Some(u64::from(block.0));
        Ok(u64::from(block.0))
    }

    fn free(&mut self, pointer: u64) -> Result<()> {
        let agno = self.agno;
        let request = self.request(pointer)?;
        let block = AgBlock(u32::try_from(pointer).map_err(|_| corrupt(self.kind.name(), "ptr", Rule::Range, agno))?);
        match self.kind {
            BtreeKind::Bnobt | BtreeKind::Cntbt => {
                free_list::put(self.tx, agno, block, true)?;
                let holdings = self.tx.holdings_mut(agno)?;
                holdings.free_space_btrees = holdings.free_space_btrees.saturating_sub(1);
                self.tx.mark_busy(agno, block, 1);
            }
            BtreeKind::Rmapbt => {
                free_list::put(self.tx, agno, block, true)?;
                self.count(false)?;
                hold::rmapbt_shrinks(self.tx, agno)?;
                self.tx.mark_busy(agno, block, 1);
            }
            _ => {
                let fsb = self.tx.store().geometry().fsb(agno, block);
                let fsb = fsb.ok_or_else(|| corrupt(self.kind.name(), "ptr", Rule::Range, agno))?;
                self.count(false)?;
                let owner = if self.kind == BtreeKind::Refcountbt { RmapOwner::REFC } else { RmapOwner::INOBT };
                free_to(self.tx, fsb, 1, &owner, self.kind != BtreeKind::Inobt);
            }
        }
        self.tx.invalidate(&request);
        Ok(())
    }

    fn read(&self, pointer: u64) -> Result<Vec<u8>> {
        self.near.set(pointer);
        Ok(self.tx.bytes_of(&self.request(pointer)?)?.to_vec())
    }

    fn write(&mut self, pointer: u64, mut bytes: Vec<u8>) -> Result<()> {
        let request = self.request(pointer)?;
        if self.fresh == Some(pointer) {
            self.fresh = None;
            let used = used_bytes(self.tx, self.kind, &bytes);
            return self.tx.write_new(&request, bytes, &Logged::Except(used..usize::MAX));
        }
        if self.tx.store().geometry().features.has_crc() {
            keep_stamp(&self.tx.bytes_of(&request)?, &mut bytes);
        }
        self.tx.write(&request, bytes)
    }

    fn daddr(&self, pointer: u64) -> u64 {
        self.request(pointer).map_or(0, |request| request.daddr().0)
    }

    fn wants_crc(&self) -> bool {
        false
    }
}

/// Where the entries of a leaf end; all bytes of a node.
fn used_bytes(tx: &Transaction<'_>, kind: BtreeKind, bytes: &[u8]) -> usize {
    let layout = Layout::of_block(tx.store().geometry(), kind);
    match Node::decode(layout, bytes) {
        Ok(node) if node.is_leaf() => layout.record(node.count).start,
        _ => bytes.len(),
    }
}

/// CRC and LSN are stamped when a block is written to its place: until then they are no change.
fn keep_stamp(old: &[u8], new: &mut [u8]) {
    if let (Some((old, _)), Some((new, _))) = (RawShortBlockV5::prefix(old), RawShortBlockV5::prefix_mut(new)) {
        new.crc = old.crc;
        new.lsn = Be64::new(old.lsn.get());
    }
}

/// Changes a btree of a group; afterwards its header says where the root is.
///
/// # Errors
/// `NoSpace` when a block is needed and there is none; `Corrupt` when group or btree are damaged; `Io`; those of `change`.
pub fn edit_tree<R>(
    tx: &mut Transaction<'_>,
    agno: AgNumber,
    kind: BtreeKind,
    change: impl FnOnce(&mut Editor<'_, GroupBlocks<'_, '_>>) -> Result<R>,
) -> Result<R> {
    let (root, levels) = root_of(tx.store(), agno, kind)?;
    let geometry = tx.store().geometry();
    let layout = Layout::of_block(geometry, kind);
    let identity = TreeIdentity::new(geometry, TreeOwner::Group(agno));
    let before = EditRoot::Block { pointer: u64::from(root.0), levels };
    let mut blocks = GroupBlocks { tx, agno, kind, near: Cell::new(u64::from(root.0)), fresh: None };
    let mut editor = Editor::open(&mut blocks, layout, identity, before.clone());
    let result = change(&mut editor)?;
    let after = editor.root().clone();
    if after != before
        && let EditRoot::Block { pointer, levels } = after
    {
        let root = u32::try_from(pointer).unwrap_or(NULLAGBLOCK);
        set_root(blocks.tx, agno, kind, root, levels)?;
    }
    Ok(result)
}

/// A btree of a group, for reading.
pub struct GroupTree<'t> {
    store: &'t Store,
    tree: Tree<'static>,
    agno: AgNumber,
}

impl<'t> GroupTree<'t> {
    /// The btree as it stands; with the store of a transaction, as that has changed it.
    ///
    /// # Errors
    /// As [`super::agf`]; `Internal` when groups have no such btree.
    pub fn of(store: &'t Store, agno: AgNumber, kind: BtreeKind) -> Result<Self> {
        let (root, levels) = root_of(store, agno, kind)?;
        Ok(GroupTree { store, tree: Tree::of_group(kind, agno, root, levels), agno })
    }

    /// The records from the last that is not greater than `key` on.
    ///
    /// # Errors
    /// `Io`; `Corrupt`.
    pub fn from(&self, key: SortKey) -> Result<Cursor<'_, Self>> {
        Cursor::at_or_before(self, key)
    }

    /// How many blocks the tree has.
    ///
    /// # Errors
    /// As [`GroupTree::from`].
    pub fn count_blocks(&self) -> Result<u64> {
        let (layout, bytes) = self.root()?;
        self.count_below(layout, &bytes)
    }

    fn count_below(&self, layout: Layout, bytes: &[u8]) -> Result<u64> {
        let damaged = |check| Error::corrupt(check, crate::error::Place::default());
        let node = Node::decode(layout, bytes).map_err(damaged)?;
        let mut blocks = 1;
        if node.level == 1 {
            return Ok(blocks + u64::try_from(node.count).unwrap_or(u64::MAX));
        }
        for pointer in node.pointers() {
            let below = self.block(pointer, node.level - 1)?;
            // levels fall at each step, so that the depth is bounded by that of the root
            if Node::decode(layout, &below).map_err(damaged)?.level + 1 != node.level {
                return Err(corrupt(self.tree.kind.name(), "level", Rule::Mismatch, self.agno));
            }
            blocks += self.count_below(layout, &below)?;
        }
        Ok(blocks)
    }
}

impl NodeSource for GroupTree<'_> {
    fn layout(&self) -> Layout {
        Layout::of_block(self.store.geometry(), self.tree.kind)
    }

    fn root(&self) -> Result<(Layout, Vec<u8>)> {
        let crate::btree::Root::Block { pointer, .. } = self.tree.root else {
            return Err(Error::Internal("the root of a btree of a group lies in a block".to_owned()));
        };
        Ok((self.layout(), self.block(pointer, 0)?))
    }

    fn block(&self, pointer: u64, _level: u32) -> Result<Vec<u8>> {
        Ok(self.store.bytes_of(&request(self.store, self.agno, self.tree.kind, pointer)?)?.to_vec())
    }
}
