//! Every block and record of a tree that may be damaged, with all that is wrong.

use std::collections::HashSet;

use super::key::{KeyBytes, SortKey, in_order};
use super::layout::Layout;
use super::node::Node;
use super::record_check::{RecordContext, check_record};
use super::tree::{Root, Tree};
use crate::buffer::{Block, BlockCache};
use crate::error::{Check, Place, Result, Rule, Verdict};

/// What a walk comes upon.
#[derive(Clone, Copy, Debug)]
pub enum Visit<'a> {
    /// A block of the tree, before what it holds; roots inside inodes are none.
    Block {
        /// Block of the group, or filesystem block.
        pointer: u64,
        /// Level that the tree asks for.
        level: u32,
        /// The block and its verdict.
        block: &'a Block,
    },
    /// A record, in the order of the tree.
    Record {
        /// Its bytes.
        record: &'a [u8],
        /// The block that holds it.
        place: &'a Place,
    },
}

/// What the visitor wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Go on.
    Continue,
    /// Leave out what is below this block. After a record the same as `Continue`.
    Skip,
    /// End the walk.
    Stop,
}

/// What came of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Blocks visited.
    pub blocks: u64,
    /// Records visited.
    pub records: u64,
    /// Levels of the tree, a root inside an inode included; 0 when the root could not be read.
    pub levels: u32,
    /// Everything that is wrong.
    pub verdict: Verdict,
    /// Whether every block was reached: nothing unreadable, no budget at its end, no visitor that stopped.
    pub complete: bool,
}

/// Visits every block and record of `tree` in order, at most `budget` blocks.
///
/// Besides what each block must hold by itself, it checks what the blocks say of each other: levels, siblings, keys,
/// the order of records, the fewest records, and the rules of each record.
///
/// # Errors
/// Those of `visit`, and `Io`. Damage is no error but part of the verdict; the walk goes on with what can be read.
pub fn walk(
    cache: &BlockCache,
    tree: &Tree<'_>,
    budget: u64,
    visit: &mut dyn FnMut(Visit<'_>) -> Result<Step>,
) -> Result<Walked> {
    let mut walker = Walker {
        cache,
        tree,
        layout: Layout::of_block(cache.geometry(), tree.kind),
        context: RecordContext::of(cache.geometry(), tree),
        budget,
        visited: HashSet::new(),
        last_of_level: Vec::new(),
        last_record: None,
        stopped: false,
        walked: Walked { complete: true, ..Walked::default() },
        visit,
    };
    walker.start()?;
    Ok(walker.walked)
}

/// What a parent says of a child.
#[derive(Clone, Copy)]
struct Expected {
    low: Option<KeyBytes>,
    high: Option<KeyBytes>,
    /// It has no neighbours below the same root, and so may hold less than others.
    alone: bool,
}

struct Walker<'a, 'v> {
    cache: &'a BlockCache,
    tree: &'a Tree<'a>,
    layout: Layout,
    context: RecordContext<'a>,
    budget: u64,
    visited: HashSet<u64>,
    /// For each level the block visited last, and the sibling that it names to its right.
    last_of_level: Vec<Option<(u64, Option<u64>)>>,
    last_record: Option<Vec<u8>>,
    stopped: bool,
    walked: Walked,
    visit: &'v mut dyn FnMut(Visit<'_>) -> Result<Step>,
}

impl Walker<'_, '_> {
    fn fail(&mut self, field: &'static str, rule: Rule, place: Place, detail: String) {
        self.walked.verdict.fail(Check::new(self.tree.kind.name(), field, rule), place, detail);
    }

    fn start(&mut self) -> Result<()> {
        let geometry = self.cache.geometry();
        let most = self.tree.max_levels(geometry);
        match self.tree.root {
            Root::Block { pointer, levels } => {
                if levels == 0 || levels > most {
                    self.walked.complete = false;
                    self.fail("level", Rule::Range, self.tree.place(), format!("{levels} levels, at most {most}"));
                    return Ok(());
                }
                self.last_of_level = vec![None; usize::try_from(levels).unwrap_or(0)];
                self.walked.levels = levels;
                self.block(pointer, levels - 1, Expected { low: None, high: None, alone: true })?;
            }
            Root::Inode(_) => match self.tree.inode_root(geometry) {
                Ok(Some(root)) => self.inode_root(&root, most)?,
                Ok(None) => {}
                Err(check) => {
                    self.walked.complete = false;
                    self.walked.verdict.fail(check, self.tree.place(), String::new());
                }
            },
        }
        self.ends();
        Ok(())
    }

    fn inode_root(&mut self, root: &Node<'_>, most: u32) -> Result<()> {
        // extents of a file lie in blocks; the other trees may start with their records in the inode
        let least = u32::from(self.tree.kind == crate::geometry::BtreeKind::Bmbt);
        if root.level < least || root.level >= most.max(1) {
            self.walked.complete = false;
            self.fail("level", Rule::Range, self.tree.place(), format!("the root is at level {}", root.level));
            return Ok(());
        }
        if root.level > 0 && root.count == 0 {
            self.fail("numrecs", Rule::Range, self.tree.place(), "a root without children".to_owned());
        }
        self.last_of_level = vec![None; usize::try_from(root.level).unwrap_or(0)];
        self.walked.levels = root.level + 1;
        self.node(root, &self.tree.place())
    }

    /// The last blocks of all levels have no right neighbour.
    fn ends(&mut self) {
        if self.stopped || !self.walked.complete {
            return;
        }
        for last in std::mem::take(&mut self.last_of_level).into_iter().flatten() {
            if let (pointer, Some(right)) = last {
                let place = self.place_of(pointer);
                self.fail("rightsib", Rule::Mismatch, place, format!("block {right}, and the tree ends here"));
            }
        }
    }

    fn place_of(&self, pointer: u64) -> Place {
        let geometry = self.cache.geometry();
        Place { daddr: self.tree.daddr(geometry, pointer).map(|daddr| daddr.0), ..self.tree.place() }
    }

    fn block(&mut self, pointer: u64, level: u32, expected: Expected) -> Result<()> {
        let Some(request) = self.tree.request(self.cache.geometry(), pointer, level) else {
            self.lost("ptr", Rule::Range, pointer, level);
            return Ok(());
        };
        if !self.visited.insert(pointer) {
            self.lost("ptr", Rule::Cycle, pointer, level);
            return Ok(());
        }
        if self.walked.blocks >= self.budget {
            self.walked.complete = false;
            self.stopped = true;
            return Ok(());
        }
        self.walked.blocks += 1;
        let block = self.cache.read(request)?;
        self.walked.verdict.append(block.verdict().clone());
        let step = (self.visit)(Visit::Block { pointer, level, block: &block })?;
        self.stopped |= step == Step::Stop;
        if step != Step::Continue {
            self.walked.complete = false;
            self.forget(level);
            return Ok(());
        }
        match Node::decode(self.layout, block.bytes()) {
            Ok(node) if node.level == level => {
                let place = self.place_of(pointer);
                self.check_node(&node, pointer, expected, &place);
                self.node(&node, &place)
            }
            _ => {
                self.walked.complete = false;
                self.forget(level);
                Ok(())
            }
        }
    }

    /// A child that cannot be visited.
    fn lost(&mut self, field: &'static str, rule: Rule, pointer: u64, level: u32) {
        self.walked.complete = false;
        self.fail(field, rule, self.tree.place(), format!("block {pointer} at level {level}"));
        self.forget(level);
    }

    /// Below a block that was left out, no neighbours are known.
    fn forget(&mut self, level: u32) {
        self.last_record = None;
        let levels = usize::try_from(level).map_or(0, |level| level + 1);
        self.last_of_level.iter_mut().take(levels).for_each(|last| *last = None);
    }

    fn check_node(&mut self, node: &Node<'_>, pointer: u64, expected: Expected, place: &Place) {
        self.check_siblings(node, pointer, place);
        let fewest = self.layout.fewest(node.level);
        if !expected.alone && node.count < fewest {
            self.fail("numrecs", Rule::Range, place.clone(), format!("{}, at least {fewest}", node.count));
        } else if node.count == 0 && node.level > 0 {
            self.fail("numrecs", Rule::Range, place.clone(), "a node without children".to_owned());
        }
        if node.count == 0 {
            return;
        }
        let sort = |key: KeyBytes| SortKey::of_key(self.tree.kind, key.as_bytes());
        if expected.low.is_some_and(|low| sort(low) > node.sort_key(0)) {
            self.fail("key", Rule::Mismatch, place.clone(), "the parent's low key is greater".to_owned());
        }
        let highest = (0..node.count).filter_map(|index| node.high_key(index)).map(sort).max();
        if let (Some(high), Some(highest)) = (expected.high, highest)
            && sort(high) < highest
        {
            self.fail("key", Rule::Mismatch, place.clone(), "the parent's high key is less".to_owned());
        }
        let overlapping = self.tree.kind.is_overlapping();
        let ordered = |pair: (SortKey, SortKey)| pair.0 < pair.1 || overlapping && pair.0 == pair.1;
        if node.level > 0 && !(1..node.count).all(|i| ordered((node.sort_key(i - 1), node.sort_key(i)))) {
            self.fail("key", Rule::Order, place.clone(), String::new());
        }
    }

    fn check_siblings(&mut self, node: &Node<'_>, pointer: u64, place: &Place) {
        let Ok(level) = usize::try_from(node.level) else { return };
        let Some(slot) = self.last_of_level.get_mut(level) else { return };
        let before = slot.replace((pointer, node.right));
        match before {
            Some((left, right)) => {
                if node.left != Some(left) {
                    self.fail("leftsib", Rule::Mismatch, place.clone(), format!("{:?}, expected {left}", node.left));
                }
                if right != Some(pointer) {
                    let place = self.place_of(left);
                    self.fail("rightsib", Rule::Mismatch, place, format!("{right:?}, expected {pointer}"));
                }
            }
            None if self.walked.complete && node.left.is_some() => {
                let detail = format!("{:?}, and the tree starts here", node.left);
                self.fail("leftsib", Rule::Mismatch, place.clone(), detail);
            }
            None => {}
        }
    }

    fn node(&mut self, node: &Node<'_>, place: &Place) -> Result<()> {
        if node.is_leaf() {
            return self.leaf(node, place);
        }
        for index in 0..node.count {
            if self.stopped {
                self.walked.complete = false;
                break;
            }
            let alone = node.count == 1;
            let high = node.high_key(index);
            let expected = Expected { low: Some(node.low_key(index)), high, alone };
            self.block(node.pointer(index), node.level - 1, expected)?;
        }
        Ok(())
    }

    fn leaf(&mut self, node: &Node<'_>, place: &Place) -> Result<()> {
        for (index, record) in node.records().enumerate() {
            let ordered = self.last_record.as_ref().is_none_or(|last| in_order(self.tree.kind, last, record));
            if !ordered {
                self.fail("rec", Rule::Order, place.clone(), format!("record {index}"));
            }
            for check in check_record(self.tree.kind, record, &self.context) {
                self.walked.verdict.fail(check, place.clone(), format!("record {index}"));
            }
            self.last_record = Some(record.to_vec());
            self.walked.records += 1;
            if (self.visit)(Visit::Record { record, place })? == Step::Stop {
                self.stopped = true;
                self.walked.complete = false;
                break;
            }
        }
        Ok(())
    }
}
