//! The items of the next checkpoint (Linux `fs/xfs/xfs_log_cil.c`).

use std::collections::HashMap;

use super::counters::{ItemTotals, WhiteoutCounters};
use super::item::{Commit, ItemKey, ItemSize, LoggedDone, LoggedIntent};
use crate::error::{Error, Result};
use crate::geometry::Geometry;
use crate::geometry::limits::BASIC_BLOCK;
use crate::ondisk::log_item::LogItemType;
use crate::ondisk::log_record::{BIG_RECORD_SIZE, MAX_ICLOGS, MAX_RECORD_SIZE};

/// How checkpoints are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CilOptions {
    /// Whether intents that are answered in their own checkpoint are left out, with the answers.
    pub whiteouts: bool,
    /// From so many bytes on a checkpoint should be written.
    pub push_at: u64,
}

impl CilOptions {
    /// As Linux does it for such a log: checkpoints of an eighth of it, but not more than 16 times what can be on its way to
    /// the disk at once, which is 32 MiB (`XLOG_CIL_SPACE_LIMIT`).
    pub fn of(geometry: &Geometry) -> Self {
        let size = geometry.log_basic_blocks().saturating_mul(u64::from(BASIC_BLOCK));
        let record = if geometry.log.version >= 2 { MAX_RECORD_SIZE } else { BIG_RECORD_SIZE };
        let most = 16 * u64::from(MAX_ICLOGS * record);
        CilOptions { whiteouts: true, push_at: (size / 8).min(most) }
    }
}

/// An item of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointItem {
    /// A buffer, inode or dquot; it is formatted when it is written.
    Relogged(ItemKey),
    /// An item as it stands in the log.
    Formatted {
        /// Its type.
        kind: LogItemType,
        /// Its regions.
        regions: Vec<Vec<u8>>,
    },
}

/// An item, and when it was last committed.
#[derive(Debug)]
struct Entry {
    order: u64,
    size: ItemSize,
    /// Nothing once an intent is marked with a whiteout.
    item: Option<CheckpointItem>,
}

/// What is to be written as one checkpoint: the items of all transactions that were committed since the last one.
#[derive(Debug)]
pub struct Cil {
    options: CilOptions,
    sequence: u64,
    /// Counts the commits of this checkpoint.
    order: u64,
    /// In the order in which they were first committed.
    entries: Vec<Entry>,
    relogged: HashMap<ItemKey, usize>,
    intents: HashMap<(LogItemType, u64), usize>,
    used: u64,
    live: usize,
    counters: WhiteoutCounters,
}

/// A checkpoint that is to be written.
#[derive(Debug)]
pub struct TakenCheckpoint {
    /// Its number, counted from 1.
    pub sequence: u64,
    /// The items in the order of the log, and what they announced.
    pub items: Vec<(CheckpointItem, ItemSize)>,
    /// Items by type.
    pub totals: ItemTotals,
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// The checkpoint that will log it.
    pub sequence: u64,
    /// Intents that it answers and that are left out together with the answers.
    pub whiteouts: u64,
    /// By how many bytes the checkpoint grew; negative when it shrank.
    pub growth: i64,
}

impl Cil {
    /// An empty checkpoint.
    pub fn new(options: CilOptions) -> Self {
        Cil {
            options,
            sequence: 1,
            order: 0,
            entries: Vec::new(),
            relogged: HashMap::new(),
            intents: HashMap::new(),
            used: 0,
            live: 0,
            counters: WhiteoutCounters::default(),
        }
    }

    /// The number of the checkpoint that is being collected, counted from 1.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// How checkpoints are collected.
    pub fn options(&self) -> CilOptions {
        self.options
    }

    /// Bytes that the items take in the log, without record headers and what else the checkpoint as a whole needs.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Whether the checkpoint has grown so large that it should be written.
    pub fn should_push(&self) -> bool {
        self.used >= self.options.push_at
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Whether the item is part of the checkpoint that is being collected.
    pub fn contains(&self, key: &ItemKey) -> bool {
        self.relogged.contains_key(key)
    }

    /// Whether the intent was committed to the checkpoint that is being collected, and is not answered
    /// (`xlog_item_in_current_chkpt`).
    pub fn contains_intent(&self, kind: LogItemType, id: u64) -> bool {
        self.intents.contains_key(&(kind, id))
    }

    /// Leaves an item out: what it stands for has gone, and the checkpoint cancels the block that it was in.
    pub fn forget(&mut self, key: &ItemKey) {
        if let Some(at) = self.relogged.remove(key) {
            let entry = &mut self.entries[at];
            self.used -= entry.size.log_bytes();
            self.live -= 1;
            // nothing is left of it, while a marked intent is known by its size
            (entry.item, entry.size) = (None, ItemSize::default());
        }
    }

    /// What whiteouts did so far.
    pub fn counters(&self) -> WhiteoutCounters {
        self.counters
    }

    /// Takes what a transaction logs.
    ///
    /// # Errors
    /// `Internal` when a done item is none, or an intent has the type and id of one that the checkpoint holds already.
    pub fn commit(&mut self, commit: Commit) -> Result<Committed> {
        let before = self.used;
        let marked = self.counters.marked;
        self.order += 1;
        for done in commit.dones {
            self.take_done(done)?;
        }
        for regions in commit.icreates {
            self.insert_formatted(LogItemType::Icreate, vec![regions]);
        }
        for (key, size) in commit.relogged {
            self.relog(key, size);
        }
        for intent in commit.intents {
            self.take_intent(intent)?;
        }
        let (now, before) = (i64::try_from(self.used), i64::try_from(before));
        Ok(Committed {
            sequence: self.sequence,
            whiteouts: self.counters.marked - marked,
            growth: now.unwrap_or(i64::MAX) - before.unwrap_or(i64::MAX),
        })
    }

    /// Ends the checkpoint, and begins the next one. `None` when there is nothing to write.
    pub fn take(&mut self) -> Option<TakenCheckpoint> {
        let mut entries = std::mem::take(&mut self.entries);
        if self.is_empty() {
            self.counters.skipped += entries.len() as u64;
            return None;
        }
        // items of one commit stay in the order in which they came
        entries.sort_by_key(|entry| entry.order);
        let mut taken = TakenCheckpoint {
            sequence: self.sequence,
            items: Vec::with_capacity(self.live),
            totals: ItemTotals::default(),
        };
        for Entry { size, item, .. } in entries {
            match item {
                Some(item) => {
                    taken.totals.add(item.kind(), size);
                    taken.items.push((item, size));
                }
                None => self.counters.skipped += u64::from(size != ItemSize::default()),
            }
        }
        self.relogged.clear();
        self.intents.clear();
        (self.used, self.live, self.order) = (0, 0, 0);
        self.sequence += 1;
        Some(taken)
    }

    /// A done item: left out together with its intent, if that is part of this very checkpoint
    /// (`xlog_cil_process_intents`).
    fn take_done(&mut self, done: LoggedDone) -> Result<()> {
        let Some(kind) = done.kind.intent() else {
            return Err(Error::Internal(format!("a done item of type {}", done.kind.name())));
        };
        let answered = self.intents.remove(&(kind, done.intent_id));
        let Some(at) = answered.filter(|_| self.options.whiteouts) else {
            self.insert_formatted(done.kind, done.regions);
            return Ok(());
        };
        let entry = &mut self.entries[at];
        entry.item = None;
        let released = entry.size.log_bytes();
        self.used -= released;
        self.live -= 1;
        self.counters.marked += 1;
        self.counters.released_bytes += released;
        Ok(())
    }

    fn take_intent(&mut self, intent: LoggedIntent) -> Result<()> {
        let at = self.insert_formatted(intent.kind, intent.regions);
        if intent.kind.done().is_none() || self.intents.insert((intent.kind, intent.id), at).is_some() {
            return Err(Error::Internal(format!("intent {} {:#x} is logged twice", intent.kind.name(), intent.id)));
        }
        Ok(())
    }

    fn insert_formatted(&mut self, kind: LogItemType, regions: Vec<Vec<u8>>) -> usize {
        let size = ItemSize::of(&regions);
        self.insert(CheckpointItem::Formatted { kind, regions }, size)
    }

    fn insert(&mut self, item: CheckpointItem, size: ItemSize) -> usize {
        self.entries.push(Entry { order: self.order, size, item: Some(item) });
        self.used += size.log_bytes();
        self.live += 1;
        self.entries.len() - 1
    }

    fn relog(&mut self, key: ItemKey, size: ItemSize) {
        match self.relogged.get(&key) {
            Some(at) => {
                let entry = &mut self.entries[*at];
                self.used = self.used - entry.size.log_bytes() + size.log_bytes();
                (entry.order, entry.size) = (self.order, size);
            }
            None => {
                let at = self.insert(CheckpointItem::Relogged(key), size);
                self.relogged.insert(key, at);
            }
        }
    }
}

impl CheckpointItem {
    /// Its type.
    pub fn kind(&self) -> LogItemType {
        match self {
            CheckpointItem::Relogged(key) => key.item_type(),
            CheckpointItem::Formatted { kind, .. } => *kind,
        }
    }
}

impl TakenCheckpoint {
    /// Bytes that the items take in the log, as [`Cil::used`] counts.
    pub fn bytes(&self) -> u64 {
        self.totals.sum().bytes
    }

    /// Regions of all items.
    pub fn regions(&self) -> u64 {
        self.totals.sum().regions
    }
}
