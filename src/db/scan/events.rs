//! What the scan of a group comes upon: claims of blocks, and messages, in one order.

use std::sync::Arc;

use super::block_type::BlockType;
use super::board::Board;
use super::message::{Message, Space};
use super::names::NameEvents;

/// Blocks that somebody uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    /// The first block.
    pub start: u64,
    /// Whose they are; 0 when no inode's.
    pub ino: u64,
    /// How many.
    pub len: u32,
    /// Its place among the events of its sink.
    pub seq: u32,
    /// The block that names them, in the same group, where no inode does.
    pub by: u32,
    /// What they are used for.
    pub kind: BlockType,
    /// What they must be used for before.
    pub expect: BlockType,
    /// The inode's blocks may be shared.
    pub reflink: bool,
    /// The blocks speak for themselves: they are of an extent btree.
    pub own: bool,
}

/// The events of a part of the scan, in order.
#[derive(Debug, Default)]
pub(super) struct Sink {
    /// The group that is scanned.
    pub agno: u32,
    /// Claims of blocks in this group.
    pub claims: Vec<Claim>,
    /// Claims of blocks elsewhere.
    pub elsewhere: Vec<(Space, Claim)>,
    /// Messages with their place among the events.
    pub messages: Vec<(u32, Message)>,
    /// Names, if they are asked for.
    pub names: NameEvents,
    /// Findings, as far as they are not serious.
    pub errors: u64,
    /// Findings that keep parts of the filesystem from being scanned.
    pub serious: u64,
    /// Superblock copies of a version that is not known.
    pub unknown_versions: u32,
    seq: u32,
    /// Where claims are noted; they are kept when there is none.
    board: Option<Arc<Board>>,
}

/// More messages are not kept: who reads a million lines?
const MOST_MESSAGES: usize = 1 << 20;

impl Sink {
    /// The events of a part of group `agno`.
    pub fn of_group(agno: u32, board: Option<Arc<Board>>) -> Self {
        Sink { agno, board, ..Sink::default() }
    }

    fn next(&mut self) -> u32 {
        self.seq = self.seq.saturating_add(1);
        self.seq
    }

    /// Notes that blocks in `space` are used.
    pub fn claim(&mut self, space: Space, claim: Claim) {
        if let Some(board) = &self.board {
            return board.claim(space, &claim);
        }
        self.keep(space, claim);
    }

    /// Notes a claim of blocks that others have to be claimed before: it is kept in any case.
    pub fn keep(&mut self, space: Space, claim: Claim) {
        let claim = Claim { seq: self.next(), ..claim };
        if space == Space::Group(self.agno) { self.claims.push(claim) } else { self.elsewhere.push((space, claim)) }
    }

    /// Notes the claims that were kept, now that all others are noted.
    pub fn settle(&mut self) {
        let Some(board) = self.board.take() else { return };
        let own = std::mem::take(&mut self.claims).into_iter().map(|claim| (Space::Group(self.agno), claim));
        for (space, claim) in own.chain(std::mem::take(&mut self.elsewhere)) {
            board.claim(space, &claim);
        }
    }

    /// Notes that a structure of group `agno` takes `len` blocks from `start` on; block `by` names them.
    pub fn claim_for_group(&mut self, agno: u32, start: u32, len: u32, kind: BlockType, by: u32) {
        let claim = Claim { start: u64::from(start), len, by, ..Claim::of(kind) };
        self.claim(Space::Group(agno), claim);
    }

    /// Adds a message.
    pub fn push(&mut self, message: Message) {
        let seq = self.next();
        if self.messages.len() < MOST_MESSAGES {
            self.messages.push((seq, message));
        }
    }

    /// Adds a line.
    pub fn say(&mut self, line: impl Into<Vec<u8>>) {
        self.push(Message::text(line));
    }

    /// A finding, told if `shown`.
    pub fn error(&mut self, shown: bool, line: impl FnOnce() -> String) {
        self.errors += 1;
        if shown {
            self.say(line());
        }
    }

    /// A serious finding, always told.
    pub fn serious(&mut self, line: impl Into<Vec<u8>>) {
        self.serious += 1;
        self.say(line);
    }
}

impl Claim {
    /// A claim of no blocks yet.
    pub fn of(kind: BlockType) -> Self {
        let expect = BlockType::Unknown;
        Claim { start: 0, ino: 0, len: 1, seq: 0, by: 0, kind, expect, reflink: false, own: false }
    }
}
