//! The blocks of a btree of an allocation group, visited whatever state they are in.
//!
//! The walk believes the header of the group about root and levels, and each node about its children, as a check has
//! to that wants to say what is wrong with them; depth and number of blocks are bounded.

use super::reader::Reader;
use crate::btree::Layout;
use crate::buffer::{BlockKind, Request};
use crate::geometry::{AgBlock, BtreeKind};
use crate::ondisk::{OnDisk, RawShortBlock};

/// No btree of a group has more levels.
const DEEPEST: u32 = 16;

/// What the walk comes upon.
pub(super) enum Found<'b> {
    /// A block that cannot be read.
    Unreadable { agbno: u32 },
    /// A block.
    Block(TreeBlock<'b>),
}

/// A block of the tree.
#[derive(Clone, Copy)]
pub(super) struct TreeBlock<'b> {
    pub agbno: u32,
    /// Level that the tree asks for; below 0 only when the header of the group says that there are no levels.
    pub level: i32,
    /// It hangs from the header of the group.
    pub root: bool,
    pub header: RawShortBlock,
    layout: Layout,
    bytes: &'b [u8],
}

impl<'b> TreeBlock<'b> {
    /// Records of a leaf or children of a node, as the block says.
    pub fn count(&self) -> u32 {
        u32::from(self.header.numrecs.get())
    }

    /// The records that fit the block, in order.
    pub fn records(&self) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        let (layout, bytes) = (self.layout, self.bytes);
        let count = usize::from(self.header.numrecs.get()).min(layout.most(0));
        (0..count).filter_map(move |index| bytes.get(layout.record(index)))
    }

    fn pointers(&self) -> impl Iterator<Item = u32> + use<'b> {
        let (layout, bytes) = (self.layout, self.bytes);
        let count = usize::from(self.header.numrecs.get()).min(layout.most(1));
        (0..count).filter_map(move |index| {
            let field = bytes.get(layout.pointer(index))?;
            Some(u32::from_be_bytes(field.try_into().ok()?))
        })
    }
}

/// A btree of a group, as the group's headers have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupTree {
    pub kind: BtreeKind,
    /// The group in which the blocks are looked for.
    pub agno: u32,
    pub root: u32,
    pub levels: u32,
}

impl GroupTree {
    /// Visits the blocks from the root down, each before its children; those only if `visit` says so.
    pub fn walk(&self, reader: &Reader<'_>, visit: &mut dyn FnMut(Found<'_>) -> bool) {
        let geometry = reader.geometry();
        let layout = Layout::of_block(geometry, self.kind);
        let mut walk = Walk { tree: *self, reader, layout, budget: geometry.agblocks, visit };
        // the number is taken as a signed one, as it is printed
        walk.block(self.root, self.levels.cast_signed().wrapping_sub(1), 0);
    }
}

struct Walk<'a, 'v> {
    tree: GroupTree,
    reader: &'a Reader<'a>,
    layout: Layout,
    budget: u32,
    visit: &'v mut dyn FnMut(Found<'_>) -> bool,
}

impl Walk<'_, '_> {
    fn block(&mut self, agbno: u32, level: i32, depth: u32) {
        let Some(left) = self.budget.checked_sub(1) else { return };
        self.budget = left;
        let Some(bytes) = self.read(agbno, level) else {
            (self.visit)(Found::Unreadable { agbno });
            return;
        };
        let Some((header, _)) = RawShortBlock::prefix(&bytes) else { return };
        let block = TreeBlock { agbno, level, root: depth == 0, header: *header, layout: self.layout, bytes: &bytes };
        if (self.visit)(Found::Block(block)) && level != 0 && depth < DEEPEST {
            for child in block.pointers() {
                self.block(child, level.saturating_sub(1), depth + 1);
            }
        }
    }

    fn read(&self, agbno: u32, level: i32) -> Option<Vec<u8>> {
        let geometry = self.reader.geometry();
        let daddr = self.reader.daddr(self.tree.agno, u64::from(AgBlock(agbno).0))?;
        let mut request = Request::new(geometry, BlockKind::Btree(self.tree.kind), daddr);
        request.level = u32::try_from(level).ok();
        self.reader.request(&request)
    }
}
