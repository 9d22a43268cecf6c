//! A fork opened to be changed: part of its extents in memory, and how what has changed is stored.

use zerocopy::IntoBytes;

use super::lookup::{extents_around, key_of, last_extents};
use super::tree_blocks::TreeBlocks;
use super::window::{Difference, Window, end_of};
use crate::btree::{BlockStore, EditRoot, Editor, Layout, Node, NodeBuf, TreeIdentity, TreeOwner};
use crate::error::{Check, Error, Result, Rule};
use crate::forms::{Fork, ForkForm, ForkKind, Inode};
use crate::geometry::{BtreeKind, Ino};
use crate::ondisk::dinode::{MAX_EXTCNT_ATTR_SMALL, MAX_EXTCNT_DATA_SMALL, flags2, format};
use crate::ondisk::log_inode::field;
use crate::ondisk::{Extent, OnDisk, RawDinode, RawExtent};
use crate::transaction::Transaction;
use crate::volume::inodes;
use crate::volume::space::MappingOwner;

/// How many extents a window that is opened from its end holds at most besides those asked for.
const BACKWARD: usize = 16;

/// Where the extents of a fork are kept.
#[derive(Clone, Debug)]
enum Kept {
    /// In the inode.
    List,
    /// In a btree, whose root is this.
    Tree(NodeBuf),
}

/// A fork opened to be changed.
pub(super) struct OpenFork {
    pub(super) owner: MappingOwner,
    pub(super) inode: Inode,
    kept: Kept,
    nextents: u64,
    /// Bytes of the fork in the inode.
    size: usize,
    old: Window,
    pub(super) window: Window,
    /// No extents follow those of the window.
    pub(super) to_end: bool,
}

impl OpenFork {
    /// The fork with all extents that touch the blocks from `start` to before `end`, and a neighbour to each side.
    pub(super) fn open(tx: &Transaction<'_>, ino: Ino, fork: ForkKind, start: u64, end: u64) -> Result<Self> {
        let inode = tx.inode(ino)?;
        let window = extents_around(tx, &present(&inode, fork)?, start, end)?;
        Self::with_window(inode, fork, window)
    }

    /// The fork with the last `most` extents that touch the blocks from `start` to before `end`, and what comes before them.
    pub(super) fn open_last(
        tx: &Transaction<'_>,
        ino: Ino,
        fork: ForkKind,
        (start, end): (u64, u64),
        most: usize,
    ) -> Result<Self> {
        if most > BACKWARD {
            return Self::open(tx, ino, fork, start, end);
        }
        let inode = tx.inode(ino)?;
        let extents = last_extents(tx, &present(&inode, fork)?, (start, end), most)?;
        Self::with_window(inode, fork, (extents, false))
    }

    fn with_window(inode: Inode, kind: ForkKind, (extents, to_end): (Vec<Extent>, bool)) -> Result<Self> {
        let ino = inode.ino;
        if kind == ForkKind::Data && inode.is_realtime() {
            return Err(Error::Unsupported(format!("changing the mappings of inode {ino}, a realtime file")));
        }
        let shared = kind == ForkKind::Data && inode.raw().flags2_or_zero() & flags2::REFLINK != 0;
        let fork = present(&inode, kind)?;
        let kept = match fork.form {
            ForkForm::Extents(_) => Kept::List,
            ForkForm::Btree(root) => Kept::Tree(NodeBuf::of(&root)),
            ForkForm::Local(_) | ForkForm::Device(_) | ForkForm::MetaBtree(_) => {
                return Err(Error::Internal(format!("a fork of inode {ino} has no extents")));
            }
        };
        if extents.windows(2).any(|pair| end_of(&pair[0]) > pair[1].startoff) {
            return Err(Error::corrupt(Check::new("bmbt_rec", "startoff", Rule::Order), inode.place.clone()));
        }
        let (nextents, size) = (fork.nextents, fork.bytes().len());
        let window = Window::new(extents);
        let owner = MappingOwner { ino, fork: kind, shared };
        Ok(OpenFork { owner, inode, kept, nextents, size, old: window.clone(), window, to_end })
    }

    pub(super) fn corrupt(&self, name: &'static str, rule: Rule) -> Error {
        Error::corrupt(Check::new("bmbt_rec", name, rule), self.inode.place.clone())
    }

    fn shape(&self, tx: &Transaction<'_>) -> (Layout, TreeIdentity) {
        let geometry = tx.store().geometry();
        let owner = TreeOwner::Inode(self.owner.ino);
        (Layout::of_block(geometry, BtreeKind::Bmbt), TreeIdentity::new(geometry, owner))
    }

    /// How many blocks an extent btree may need when records are added.
    pub(super) fn is_tree(&self) -> bool {
        matches!(self.kept, Kept::Tree(_))
    }

    /// Whether the list in the inode is full.
    pub(super) fn is_full_list(&self) -> bool {
        !self.is_tree() && self.window.extents().len() >= self.size / RawExtent::SIZE
    }

    /// Stores what has changed. `blocks` is by how many the file grew, those of its btree left out.
    pub(super) fn store(mut self, tx: &mut Transaction<'_>, blocks: i64) -> Result<Window> {
        let difference = self.window.difference(&self.old);
        if difference.is_empty() && blocks == 0 {
            return Ok(self.window);
        }
        let added = difference.added.len() as u64;
        let nextents = (self.nextents + added).checked_sub(difference.removed.len() as u64);
        self.nextents = nextents.ok_or_else(|| self.corrupt("nextents", Rule::Mismatch))?;
        let fits = usize::try_from(self.nextents).is_ok_and(|count| count <= self.size / RawExtent::SIZE);
        let stored = match (&self.kept, fits) {
            (Kept::List, true) => Stored { kept: Kept::List, bytes: list_bytes(self.window.extents())?, blocks: 0 },
            (Kept::List, false) => self.make_tree(tx)?,
            (Kept::Tree(root), true) => self.take_list(tx, root, &difference)?,
            (Kept::Tree(root), false) => self.change_tree(tx, root.clone(), &difference)?,
        };
        self.write_inode(tx, &stored, blocks + stored.blocks)?;
        Ok(self.window)
    }

    fn make_tree(&self, tx: &mut Transaction<'_>) -> Result<Stored> {
        let (layout, identity) = self.shape(tx);
        let mut blocks = TreeBlocks::new(tx, self.owner.ino, self.owner.fork);
        let mut editor = Editor::new_in_inode(&mut blocks, layout, identity, self.size)?;
        for extent in self.window.extents() {
            editor.insert(record_of(extent)?.as_bytes())?;
        }
        let root = tree_root(&editor)?;
        Ok(Stored { blocks: blocks.blocks, ..root })
    }

    fn change_tree(&self, tx: &mut Transaction<'_>, root: NodeBuf, difference: &Difference) -> Result<Stored> {
        let (layout, identity) = self.shape(tx);
        let mut blocks = TreeBlocks::new(tx, self.owner.ino, self.owner.fork);
        let root = EditRoot::Inode { node: root, fork_size: self.size };
        let mut editor = Editor::open(&mut blocks, layout, identity, root);
        change_records(&mut editor, difference).map_err(|error| match error {
            Error::Usage(_) => self.corrupt("startoff", Rule::Mismatch),
            other => other,
        })?;
        let root = tree_root(&editor)?;
        Ok(Stored { blocks: blocks.blocks, ..root })
    }

    /// What is left of a btree fits into the inode: all its blocks are freed.
    fn take_list(&self, tx: &mut Transaction<'_>, root: &NodeBuf, difference: &Difference) -> Result<Stored> {
        let (all, _) = extents_around(tx, &present(&self.inode, self.owner.fork)?, 0, u64::MAX)?;
        let mut records: std::collections::BTreeMap<u64, Extent> =
            all.into_iter().map(|extent| (extent.startoff, extent)).collect();
        records.retain(|start, _| !difference.removed.contains(start));
        records.extend(difference.replaced.iter().chain(&difference.added).map(|extent| (extent.startoff, *extent)));
        if records.len() as u64 != self.nextents {
            return Err(self.corrupt("nextents", Rule::Mismatch));
        }
        let extents: Vec<_> = records.into_values().collect();
        let (layout, _) = self.shape(tx);
        let mut blocks = TreeBlocks::new(tx, self.owner.ino, self.owner.fork);
        free_below(&mut blocks, layout, root)?;
        Ok(Stored { kept: Kept::List, bytes: list_bytes(&extents)?, blocks: blocks.blocks })
    }

    /// Stores the fork in at most `size` bytes of the inode, in another form if it must.
    pub(super) fn resize(mut self, tx: &mut Transaction<'_>, size: usize) -> Result<()> {
        let fits = self.window.extents().len() <= size / RawExtent::SIZE;
        if matches!(self.kept, Kept::List) && fits {
            return Ok(());
        }
        self.size = size;
        let stored = match &self.kept {
            Kept::List => self.make_tree(tx)?,
            Kept::Tree(root) => self.move_root(tx, root)?,
        };
        self.write_inode(tx, &stored, stored.blocks)
    }

    /// The root as it is, if it fits into the fork; else its entries move into a block, the only child of a new root.
    fn move_root(&self, tx: &mut Transaction<'_>, root: &NodeBuf) -> Result<Stored> {
        let (layout, identity) = self.shape(tx);
        let small = layout.in_inode(self.size);
        let does_not_fit = || Error::Internal("the root of an extent btree does not fit its inode".to_owned());
        let mut blocks = TreeBlocks::new(tx, self.owner.ino, self.owner.fork);
        let mut node = root.clone();
        if root.items.len() > small.most(root.level) {
            let pointer = blocks.allocate()?;
            let bytes = root.encode(&layout, &identity, blocks.daddr(pointer));
            blocks.write(pointer, bytes.ok_or_else(does_not_fit)?)?;
            let child = root.as_child(BtreeKind::Bmbt, pointer).ok_or_else(does_not_fit)?;
            node = NodeBuf { level: root.level + 1, items: vec![child], ..NodeBuf::default() };
        }
        let bytes = node.encode(&small, &identity, 0).ok_or_else(does_not_fit)?;
        Ok(Stored { kept: Kept::Tree(node), bytes, blocks: blocks.blocks })
    }

    fn write_inode(&self, tx: &mut Transaction<'_>, stored: &Stored, blocks: i64) -> Result<()> {
        let is_tree = matches!(stored.kept, Kept::Tree(_));
        let fields = match (self.owner.fork, is_tree) {
            (ForkKind::Data, false) => field::DEXT,
            (ForkKind::Data, true) => field::DBROOT,
            (ForkKind::Attr, false) => field::AEXT,
            (ForkKind::Attr, true) => field::ABROOT,
        };
        let large = tx.store().geometry().features.has_nrext64();
        inodes::change(tx, self.owner.ino, fields, |raw, literal| {
            let start = if self.owner.fork == ForkKind::Attr { raw.core.fork_offset() } else { 0 };
            let place = literal.get_mut(start..start + self.size);
            let place = place.ok_or_else(|| Error::Internal("a fork has moved".to_owned()))?;
            place.fill(0);
            let used = place.get_mut(..stored.bytes.len());
            used.ok_or_else(|| Error::Internal("a fork does not fit".to_owned()))?.copy_from_slice(&stored.bytes);
            let form = if is_tree { format::BTREE } else { format::EXTENTS };
            match self.owner.fork {
                ForkKind::Data => raw.core.format = form,
                ForkKind::Attr => raw.core.aformat = i8::from_ne_bytes([form]),
            }
            self.count_extents(raw, large)?;
            let nblocks = raw.core.nblocks.get().checked_add_signed(blocks);
            let fewer = || Error::corrupt(Check::new("dinode", "nblocks", Rule::Mismatch), self.inode.place.clone());
            raw.core.nblocks.set(nblocks.ok_or_else(fewer)?);
            Ok(())
        })
    }

    /// Sets the extent counter, which grows to the large form when it must and the filesystem has it.
    fn count_extents(&self, raw: &mut RawDinode, large: bool) -> Result<()> {
        let too_many = || Error::Usage(format!("inode {} has too many extents", self.owner.ino));
        let (data, attr) = match self.owner.fork {
            ForkKind::Data => (self.nextents, u64::from(raw.attr_extents())),
            ForkKind::Attr => (raw.data_extents(), self.nextents),
        };
        let small = data <= MAX_EXTCNT_DATA_SMALL && attr <= MAX_EXTCNT_ATTR_SMALL;
        if !small && large && raw.core.version >= 3 {
            raw.flags2.set(raw.flags2.get() | flags2::NREXT64);
        }
        if !small && !raw.has_large_counters() {
            return Err(too_many());
        }
        raw.set_extents(data, u32::try_from(attr).map_err(|_| too_many())?).ok_or_else(too_many)
    }
}

/// How a fork is kept after a change.
struct Stored {
    kept: Kept,
    /// What stands in the fork.
    bytes: Vec<u8>,
    /// By how many blocks the btree grew.
    blocks: i64,
}

/// A fork that must be there.
fn present(inode: &Inode, kind: ForkKind) -> Result<Fork<'_>> {
    let missing = || Error::Internal(format!("inode {} has no such fork", inode.ino));
    inode.fork(kind)?.ok_or_else(missing)
}

fn record_of(extent: &Extent) -> Result<RawExtent> {
    extent.encode().ok_or_else(|| Error::Internal(format!("{extent:?} does not fit a record")))
}

fn list_bytes(extents: &[Extent]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(extents.len() * RawExtent::SIZE);
    for extent in extents {
        bytes.extend_from_slice(record_of(extent)?.as_bytes());
    }
    Ok(bytes)
}

fn tree_root(editor: &Editor<'_, TreeBlocks<'_, '_>>) -> Result<Stored> {
    let broken = || Error::Internal("the root of an extent btree does not fit its inode".to_owned());
    let EditRoot::Inode { node, .. } = editor.root() else { return Err(broken()) };
    let bytes = editor.inode_root_bytes().ok_or_else(broken)?;
    Ok(Stored { kept: Kept::Tree(node.clone()), bytes, blocks: 0 })
}

fn change_records(editor: &mut Editor<'_, TreeBlocks<'_, '_>>, difference: &Difference) -> Result<()> {
    let missing = || Error::Usage("a record is missing".to_owned());
    for extent in &difference.replaced {
        if !editor.replace(key_of(extent.startoff), record_of(extent)?.as_bytes())? {
            return Err(missing());
        }
    }
    for start in &difference.removed {
        if !editor.delete(key_of(*start))? {
            return Err(missing());
        }
    }
    for extent in &difference.added {
        editor.insert(record_of(extent)?.as_bytes())?;
    }
    Ok(())
}

/// Frees all blocks below a node. Levels fall at each step, so that this ends.
fn free_below(blocks: &mut TreeBlocks<'_, '_>, layout: Layout, node: &NodeBuf) -> Result<()> {
    use crate::btree::Item;
    for item in &node.items {
        let Item::Child { pointer, .. } = item else { return Ok(()) };
        let bytes = blocks.read(*pointer)?;
        let below = Node::decode(layout, &bytes).map_err(|check| Error::corrupt(check, Default::default()))?;
        if below.level + 1 != node.level {
            let check = Check::new("bmbt", "level", Rule::Mismatch);
            return Err(Error::corrupt(check, Default::default()));
        }
        free_below(blocks, layout, &NodeBuf::of(&below))?;
        blocks.free(*pointer)?;
    }
    Ok(())
}
