//! The board on which claims are noted as they come, as long as none contradicts another.
//!
//! Claims that fit together give the same board in whatever order they come, so that all processors can note theirs. Once
//! two do not fit, the board is torn: what does not fit has to be found in the order of the scan ([`super::replay`]).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::block_type::BlockType;
use super::events::Claim;
use super::message::Space;
use super::page_map::PageMap;
use super::replay::Cell;
use crate::geometry::Geometry;

/// What every block is used for.
#[derive(Debug)]
pub(super) struct Board {
    groups: Vec<OnceLock<PageMap>>,
    realtime: OnceLock<PageMap>,
    group_blocks: u64,
    realtime_blocks: u64,
    reflink: bool,
    torn: AtomicBool,
}

impl Board {
    /// An empty one for so many groups.
    pub fn new(geometry: &Geometry, groups: u32) -> Self {
        Board {
            groups: (0..groups).map(|_| OnceLock::new()).collect(),
            realtime: OnceLock::new(),
            group_blocks: u64::from(geometry.agblocks),
            realtime_blocks: geometry.realtime.blocks,
            reflink: geometry.features.has_reflink(),
            torn: AtomicBool::new(false),
        }
    }

    fn map(&self, space: Space) -> Option<&PageMap> {
        match space {
            Space::Group(agno) => {
                let group = self.groups.get(usize::try_from(agno).ok()?)?;
                Some(group.get_or_init(|| PageMap::new(self.group_blocks)))
            }
            Space::Realtime => Some(self.realtime.get_or_init(|| PageMap::new(self.realtime_blocks))),
        }
    }

    fn blocks(&self, space: Space) -> u64 {
        if space == Space::Realtime { self.realtime_blocks } else { self.group_blocks }
    }

    /// Notes a claim.
    pub fn claim(&self, space: Space, claim: &Claim) {
        let end = claim.start.checked_add(u64::from(claim.len));
        let inside = claim.len > 0 && end.is_some_and(|end| end <= self.blocks(space));
        let realtime = space == Space::Realtime;
        let sharable = self.reflink && !realtime && matches!(claim.kind, BlockType::Data | BlockType::RlData);
        let change = |cell: Cell| merge(cell, claim, sharable);
        let noted = if inside { self.map(space) } else { None };
        let noted = noted.and_then(|map| map.change(claim.start, u64::from(claim.len), &change));
        if noted.is_none() {
            self.torn.store(true, Ordering::Relaxed);
        }
    }

    /// Whether two claims did not fit together, or one not into its space.
    pub fn is_torn(&self) -> bool {
        self.torn.load(Ordering::Relaxed)
    }

    /// Says what blocks of a group are used for, whatever was known of them.
    pub fn put(&self, agno: u32, start: u64, len: u64, cell: Cell) {
        if let Some(map) = self.map(Space::Group(agno)) {
            // an inode number that is too long is left out
            let _ = map.change(start, len, &|_| Some(cell));
        }
    }

    /// What block `agbno` of group `agno` is used for.
    pub fn get(&self, agno: u32, agbno: u32) -> Cell {
        let group = usize::try_from(agno).ok().and_then(|agno| self.groups.get(agno)).and_then(OnceLock::get);
        group.map_or(Cell::default(), |map| map.get(u64::from(agbno)))
    }
}

/// What a claim makes of a cell; `None` when it contradicts it, or if the order might count.
fn merge(cell: Cell, claim: &Claim, sharable: bool) -> Option<Cell> {
    let shared = matches!(cell.kind, BlockType::Unknown | BlockType::Data | BlockType::RlData);
    if cell.kind != claim.expect && !(sharable && shared) {
        return None;
    }
    let kind = match (cell.kind, claim.kind) {
        (BlockType::RlData | BlockType::Data, BlockType::Data) => BlockType::RlData,
        (_, kind) => kind,
    };
    if claim.ino == 0 {
        return Some(Cell { kind, ..cell });
    }
    if cell.ino != 0 && !(cell.reflink && claim.reflink) {
        return None;
    }
    // of several inodes the one that the scan comes upon last
    Some(Cell { ino: cell.ino.max(claim.ino), kind, reflink: claim.reflink })
}
