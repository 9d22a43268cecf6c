//! The blocks of a btree that may be damaged: as many of them as can be reached, each once.

use std::collections::HashSet;

use super::dump::Dumper;
use super::order::Sink;
use super::stale;
use crate::btree::Layout;
use crate::error::{Check, Place, Result, Rule};
use crate::geometry::{AgBlock, AgNumber, BtreeKind, Daddr, FsBlock};
use crate::ondisk::{OnDisk, RawLongBlock, RawShortBlock};

/// A btree that is being copied.
pub(super) struct TreeWalk<'a> {
    dumper: &'a Dumper<'a>,
    kind: BtreeKind,
    layout: Layout,
    /// The group of a short-form tree.
    agno: Option<AgNumber>,
    place: Place,
    visited: HashSet<u64>,
}

/// Is given each record of the leaves, and which one of its leaf it is.
pub(super) type VisitRecord<'v> = dyn FnMut(usize, &[u8]) -> Result<()> + 'v;

impl<'a> TreeWalk<'a> {
    pub(super) fn new(dumper: &'a Dumper<'a>, kind: BtreeKind, agno: Option<AgNumber>, place: Place) -> Self {
        let layout = Layout::of_block(dumper.geometry, kind);
        TreeWalk { dumper, kind, layout, agno, place, visited: HashSet::new() }
    }

    /// Copies the tree with its root at `pointer`, which is block of the group or filesystem block, and has `levels`.
    pub(super) fn copy(
        &mut self,
        sink: &mut Sink<'_>,
        pointer: u64,
        levels: u32,
        visit: &mut VisitRecord<'_>,
    ) -> Result<()> {
        if levels > self.most_levels() || pointer == 0 {
            self.warn("root", Rule::Range, format!("block {pointer}, {levels} levels"));
            return Ok(());
        }
        self.block(sink, pointer, levels.saturating_sub(1), visit)
    }

    fn most_levels(&self) -> u32 {
        // attribute forks may have as many levels as data forks here: what is too tall ends by itself
        self.dumper.geometry.btree(self.kind).max_levels.max(self.dumper.geometry.btrees.attr_bmbt_max_levels)
    }

    fn warn(&self, field: &'static str, rule: Rule, detail: String) {
        self.dumper.warn_check(Check::new(self.kind.name(), field, rule), &self.place, detail);
    }

    fn daddr(&self, pointer: u64) -> Option<Daddr> {
        match self.agno {
            Some(agno) => {
                let agbno = AgBlock(u32::try_from(pointer).ok().filter(|agbno| *agbno > 0)?);
                self.dumper.geometry.ag_daddr(agno, agbno)
            }
            None => {
                let (agno, agbno) = self.dumper.geometry.fsb_parts(FsBlock(pointer)).filter(|parts| parts.1.0 > 0)?;
                self.dumper.geometry.ag_daddr(agno, agbno)
            }
        }
    }

    fn block(&mut self, sink: &mut Sink<'_>, pointer: u64, level: u32, visit: &mut VisitRecord<'_>) -> Result<()> {
        let Some(daddr) = self.daddr(pointer) else {
            self.warn("ptr", Rule::Range, format!("block {pointer}"));
            return Ok(());
        };
        if !self.visited.insert(pointer) {
            self.warn("ptr", Rule::Cycle, format!("block {pointer}"));
            return Ok(());
        }
        let mut block = vec![0; self.layout.size()];
        if !self.dumper.read(daddr, &mut block)? {
            return Ok(());
        }
        if self.dumper.options.zero_stale {
            stale::clear_btree_block(&mut block, &self.layout, self.dumper.geometry.features.has_crc());
        }
        sink.append(daddr.0, &block)?;
        let Some(count) = self.count(&block, level, daddr) else { return Ok(()) };
        if level == 0 {
            for index in 0..count {
                visit(index, block.get(self.layout.record(index)).unwrap_or(&[]))?;
            }
            return Ok(());
        }
        for index in 0..count {
            let field = block.get(self.layout.pointer(index)).unwrap_or(&[]);
            self.block(sink, be_number(field), level - 1, visit)?;
        }
        Ok(())
    }

    /// Records or children of a block; `None` when it cannot have as many as it says.
    fn count(&self, block: &[u8], level: u32, daddr: Daddr) -> Option<usize> {
        let count = if self.kind.is_long() {
            RawLongBlock::prefix(block).map(|(head, _)| head.numrecs)
        } else {
            RawShortBlock::prefix(block).map(|(head, _)| head.numrecs)
        };
        let (count, most) = (count.map_or(0, |count| usize::from(count.get())), self.layout.most(level));
        if count <= most {
            return Some(count);
        }
        let place = Place { daddr: Some(daddr.0), ..self.place.clone() };
        let check = Check::new(self.kind.name(), "numrecs", Rule::Count);
        self.dumper.warn_check(check, &place, format!("{count}, at most {most}"));
        // inodes are looked for even then, as far as the block reaches
        matches!(self.kind, BtreeKind::Inobt | BtreeKind::Finobt).then_some(most)
    }
}

/// A big-endian number of whatever length.
pub(super) fn be_number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
