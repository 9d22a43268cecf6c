//! The claims of all groups brought together: for each group, and the realtime section, what every block is used for.
//!
//! Claims of one space are taken in the order in which a scan group by group comes upon them, so that the findings and
//! their order do not depend on the number of threads.

use rayon::prelude::*;

use super::block_type::BlockType;
use super::events::{Claim, Sink};
use super::message::{Claimant, Message, Space};
use super::options::ScanOptions;
use super::run_map::RunMap;
use crate::geometry::Geometry;

/// What a block is used for, and by which inode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    /// The inode; 0 when none.
    pub ino: u64,
    /// What for.
    pub kind: BlockType,
    /// The inode's blocks may be shared.
    pub reflink: bool,
}

/// A message of a claim: the number of the sink, the place in it, the message.
pub(super) type Placed = (usize, u32, Message);

/// The map of one space.
pub(super) struct SpaceMap {
    pub space: Space,
    pub cells: RunMap<Cell>,
    pub messages: Vec<Placed>,
    pub errors: u64,
}

/// The maps of all spaces that anybody claims blocks in.
pub(super) fn bring_together(sinks: &[Sink], geometry: &Geometry, options: &ScanOptions) -> Vec<SpaceMap> {
    let mut elsewhere: Vec<(Space, usize, &Claim)> = Vec::new();
    for (index, sink) in sinks.iter().enumerate() {
        elsewhere.extend(sink.elsewhere.iter().map(|(space, claim)| (*space, index, claim)));
    }
    // stable: within a space the order of the scan is kept
    elsewhere.sort_by_key(|(space, _, _)| *space);
    let mut spaces: Vec<Space> = sinks.iter().map(|sink| Space::Group(sink.agno)).collect();
    spaces.extend(elsewhere.iter().map(|(space, _, _)| *space));
    spaces.sort_unstable();
    spaces.dedup();
    let maps = spaces.into_par_iter().map(|space| {
        let from = elsewhere.partition_point(|other| other.0 < space);
        let to = elsewhere.partition_point(|other| other.0 <= space);
        replay(space, sinks, &elsewhere[from..to], geometry, options)
    });
    maps.collect()
}

fn replay(
    space: Space,
    sinks: &[Sink],
    foreign: &[(Space, usize, &Claim)],
    geometry: &Geometry,
    options: &ScanOptions,
) -> SpaceMap {
    let mut replay = Replay::new(space, geometry, options);
    let first = match space {
        Space::Group(agno) => sinks.partition_point(|sink| sink.agno < agno),
        Space::Realtime => sinks.len(),
    };
    let split = foreign.partition_point(|(_, sink, _)| *sink < first);
    for (_, sink, claim) in &foreign[..split] {
        replay.claim(*sink, claim);
    }
    let own = sinks.iter().enumerate().skip(first).take_while(|(_, sink)| space == Space::Group(sink.agno));
    for (index, sink) in own {
        sink.claims.iter().for_each(|claim| replay.claim(index, claim));
    }
    for (_, sink, claim) in &foreign[split..] {
        replay.claim(*sink, claim);
    }
    replay.map
}

struct Replay<'a> {
    map: SpaceMap,
    geometry: &'a Geometry,
    options: &'a ScanOptions,
    /// Blocks of the space; `None` when there is no such group.
    blocks: Option<u64>,
    sink: usize,
    seq: u32,
}

/// More messages of one space are not kept.
const MOST_MESSAGES: usize = 1 << 20;

impl<'a> Replay<'a> {
    fn new(space: Space, geometry: &'a Geometry, options: &'a ScanOptions) -> Self {
        let blocks = match space {
            Space::Group(agno) => (agno < geometry.agcount).then_some(u64::from(geometry.agblocks)),
            Space::Realtime => Some(geometry.realtime.blocks),
        };
        let map = SpaceMap { space, cells: RunMap::default(), messages: Vec::new(), errors: 0 };
        Replay { map, geometry, options, blocks, sink: 0, seq: 0 }
    }

    fn push(&mut self, message: Message) {
        if self.map.messages.len() < MOST_MESSAGES {
            self.map.messages.push((self.sink, self.seq, message));
        }
    }

    fn claim(&mut self, sink: usize, claim: &Claim) {
        (self.sink, self.seq) = (sink, claim.seq);
        let last = self.last_of(claim);
        if self.check_range(claim, last) {
            self.check_type(claim);
            self.set_type(claim);
        } else if self.map.space != Space::Realtime {
            let by = self.claimant(claim);
            self.push(Message::ClaimedBy { space: self.map.space, start: claim.start, last, by });
        }
        if claim.ino != 0 {
            self.set_inode(claim, last);
        }
    }

    /// The last block, in the width that the numbers of the space have: sums wrap in damaged records.
    fn last_of(&self, claim: &Claim) -> u64 {
        let last = claim.start.wrapping_add(u64::from(claim.len)).wrapping_sub(1);
        if self.map.space == Space::Realtime { last } else { last & u64::from(u32::MAX) }
    }

    fn claimant(&self, claim: &Claim) -> Claimant {
        let agno = if let Space::Group(agno) = self.map.space { agno } else { 0 };
        let own = u32::try_from(claim.start).unwrap_or(u32::MAX);
        match (claim.ino, claim.own) {
            (0, _) => Claimant::Block(agno, claim.by),
            (_, true) => Claimant::Block(agno, own),
            (ino, false) => {
                let inodes = &self.geometry.inodes;
                let agino = ino & ((1 << inodes.agino_log) - 1);
                let agno = u32::try_from(ino >> inodes.agino_log).unwrap_or(u32::MAX);
                Claimant::Block(agno, u32::try_from(agino >> inodes.per_block_log).unwrap_or(u32::MAX))
            }
        }
    }

    /// The listed blocks among those from `start` on, in runs.
    fn listed(&self, start: u64, len: u64) -> Vec<(u64, u64)> {
        let base = if let Space::Group(agno) = self.map.space { u64::from(agno) << self.geometry.agblklog } else { 0 };
        let first = base | start;
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for fsb in self.options.blocks.range(first..first.saturating_add(len)) {
            let at = start + (fsb - first);
            match runs.last_mut() {
                Some(last) if last.0 + last.1 == at => last.1 += 1,
                _ => runs.push((at, 1)),
            }
        }
        runs
    }

    /// The blocks among those from `start` on of which is told, in runs.
    fn shown(&self, all: bool, start: u64, len: u64) -> Vec<(u64, u64)> {
        if all { vec![(start, len)] } else { self.listed(start, len) }
    }

    fn check_range(&mut self, claim: &Claim, last: u64) -> bool {
        if self.blocks.is_some_and(|blocks| last < blocks) && last.wrapping_add(1) >= u64::from(claim.len) {
            return true;
        }
        self.map.errors += 1;
        if self.blocks.is_some_and(|blocks| last < blocks) {
            // the numbers wrapped around
            let space = self.map.space;
            let name = match space {
                Space::Group(agno) => format!("block {agno}/{}", claim.start),
                Space::Realtime => format!("rtblock {}", claim.start),
            };
            self.push(Message::text(format!("{name} beyond end of expected area")));
            return false;
        }
        for (start, len) in self.shown(!self.options.silent, claim.start, u64::from(claim.len)) {
            if len > 0 {
                self.push(Message::OutOfRange { space: self.map.space, start, last: start + len - 1 });
            }
        }
        false
    }

    fn check_type(&mut self, claim: &Claim) {
        let shared = self.geometry.features.has_reflink()
            && self.map.space != Space::Realtime
            && matches!(claim.kind, BlockType::Data | BlockType::RlData);
        let sharable = |kind| matches!(kind, BlockType::Unknown | BlockType::Data | BlockType::RlData);
        let mut wrong = Vec::new();
        self.map.cells.for_each(claim.start, u64::from(claim.len), &mut |at, len, cell| {
            if cell.kind != claim.expect && !(shared && sharable(cell.kind)) {
                wrong.push((at, len, cell.kind));
            }
        });
        for (at, len, got) in wrong {
            self.map.errors += len;
            for (start, len) in self.shown(!self.options.silent, at, len) {
                self.push(Message::Expected { space: self.map.space, start, len, want: claim.expect, got });
            }
        }
    }

    fn set_type(&mut self, claim: &Claim) {
        let realtime = self.map.space == Space::Realtime;
        self.map.cells.update(claim.start, u64::from(claim.len), &mut |cell| {
            let kind = match (cell.kind, claim.kind) {
                (BlockType::RlData | BlockType::Data, BlockType::Data) if !realtime => BlockType::RlData,
                (_, kind) => kind,
            };
            Cell { kind, ..cell }
        });
        if self.options.verbose || !self.options.blocks.is_empty() {
            for (start, len) in self.shown(self.options.verbose, claim.start, u64::from(claim.len)) {
                self.push(Message::SetType { space: self.map.space, start, len, kind: claim.kind });
            }
        }
    }

    fn set_inode(&mut self, claim: &Claim, last: u64) {
        let (space, start, len) = (self.map.space, claim.start, u64::from(claim.len));
        if !self.check_range(claim, last) {
            self.push(Message::ClaimedBy { space, start, last, by: Claimant::Inode(claim.ino) });
            return;
        }
        let mut taken = Vec::new();
        self.map.cells.for_each(start, len, &mut |at, len, cell| {
            if cell.ino != 0 && (space == Space::Realtime || !cell.reflink) {
                taken.push((at, len, cell.ino));
            }
        });
        for &(at, len, previous) in &taken {
            self.map.errors += len;
            let all = !self.options.silent || self.options.inodes.contains(&previous);
            for (start, len) in self.shown(all, at, len) {
                self.push(Message::Claimed { space, start, len, inode: claim.ino, previous });
            }
        }
        if !taken.is_empty() {
            return;
        }
        let owned = |cell| Cell { ino: claim.ino, reflink: claim.reflink, ..cell };
        self.map.cells.update(start, len, &mut |cell| owned(cell));
        let all = self.options.tells_all(claim.ino);
        if all || !self.options.blocks.is_empty() {
            for (start, len) in self.shown(all, start, len) {
                self.push(Message::SetInode { space, start, len, inode: claim.ino });
            }
        }
    }
}
