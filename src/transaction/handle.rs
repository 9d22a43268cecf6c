//! A transaction: what it reserved, what it changed, and the way back.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::ail::Kept;
use super::buffer::Buffer;
use super::counters::{CounterChange, Counters};
use super::deferred::{Deferrals, Deferred};
use super::group::Holdings;
use super::inode_item::InodeItem;
use super::store::Store;
use crate::buffer::Request;
use crate::error::{Error, Result};
use crate::geometry::reservation::Reservation;
use crate::geometry::{AgBlock, AgNumber, Ino};
use crate::journal::{BufferKey, WriterLayout};
use crate::journal::{Commit, ItemKey, LoggedDone, LoggedIntent, format_icreate};
use crate::ondisk::log_item::RawIcreateLog;
use crate::ondisk::{BigEndian, RawSuperblock};

/// What stood before the transaction, as far as it has changed it.
#[derive(Debug, Default)]
pub(super) struct Before {
    pub(super) buffers: HashMap<BufferKey, Option<Buffer>>,
    pub(super) inodes: HashMap<Ino, Option<InodeItem>>,
    pub(super) cancelled: HashMap<BufferKey, Option<Request>>,
    pub(super) ordered: HashSet<BufferKey>,
    pub(super) holdings: BTreeMap<u32, Holdings>,
    pub(super) superblock: Option<RawSuperblock>,
}

/// A transaction. What it changed takes effect with [`Transaction::commit`] or [`Transaction::roll`]; else, when it is dropped,
/// everything stands as before it began, or as the last roll left it.
pub struct Transaction<'s> {
    pub(super) store: &'s mut Store,
    pub(super) reservation: Reservation,
    /// Blocks that are reserved and not yet taken.
    pub(super) blocks: u64,
    pub(super) before: Before,
    /// What it changed, in the order of the last change.
    pub(super) touched: Vec<ItemKey>,
    /// Inodes whose cluster it drops.
    pub(super) dropped: Vec<Ino>,
    pub(super) icreates: Vec<Vec<u8>>,
    pub(super) intents: Vec<LoggedIntent>,
    pub(super) dones: Vec<LoggedDone>,
    pub(super) counts: CounterChange,
    pub(super) busy: Vec<(AgNumber, AgBlock, u32)>,
    pub(super) deferred: Deferrals,
}

impl Store {
    /// Begins a transaction that changes at most what `reservation` covers, and takes at most `blocks` blocks of the data device.
    ///
    /// # Errors
    /// `Usage` when so many blocks are not free; `Io` and others when the journal has to be written to make room.
    pub fn begin(&mut self, reservation: Reservation, blocks: u64) -> Result<Transaction<'_>> {
        self.make_room(reservation)?;
        self.check_free(blocks)?;
        Ok(Transaction {
            store: self,
            reservation,
            blocks,
            before: Before::default(),
            touched: Vec::new(),
            dropped: Vec::new(),
            icreates: Vec::new(),
            intents: Vec::new(),
            dones: Vec::new(),
            counts: CounterChange::default(),
            busy: Vec::new(),
            deferred: Deferrals::default(),
        })
    }
}

impl Transaction<'_> {
    /// The filesystem, as this transaction sees it.
    pub fn store(&self) -> &Store {
        self.store
    }

    /// What each of its steps may log.
    pub fn reservation(&self) -> Reservation {
        self.reservation
    }

    /// What a group keeps back, to be changed; cancelling puts it back.
    ///
    /// # Errors
    /// `Usage` when there is no such group.
    pub fn holdings_mut(&mut self, agno: AgNumber) -> Result<&mut Holdings> {
        let index = usize::try_from(agno.0).unwrap_or(usize::MAX);
        let group = self.store.groups.get_mut(index);
        let group = group.ok_or_else(|| Error::Usage(format!("there is no group {agno}")))?;
        self.before.holdings.entry(agno.0).or_insert(group.holdings);
        Ok(&mut group.holdings)
    }

    /// What a group keeps back; nothing when there is no such group.
    pub fn holdings(&self, agno: AgNumber) -> Holdings {
        let group = self.store.groups.get(usize::try_from(agno.0).unwrap_or(usize::MAX));
        group.map(|group| group.holdings).unwrap_or_default()
    }

    /// The part of the range that was freed and must keep its contents, as far as it lies lowest: first block and length.
    pub fn busy_in(&self, agno: AgNumber, start: AgBlock, len: u32) -> Option<(AgBlock, u32)> {
        let group = self.store.groups.get(usize::try_from(agno.0).unwrap_or(usize::MAX));
        let committed = group.and_then(|group| group.busy.overlapping(start, len));
        let end = start.0.saturating_add(len);
        let own = self.busy.iter().filter(|(group, first, count)| {
            *group == agno && first.0 < end && first.0.saturating_add(*count) > start.0
        });
        own.map(|(_, first, count)| (*first, *count)).chain(committed).min()
    }

    /// Puts off an operation to a later transaction of this chain.
    pub fn defer(&mut self, operation: Deferred) {
        self.deferred.add(operation);
    }

    /// The operations that were put off.
    pub fn deferrals(&mut self) -> &mut Deferrals {
        &mut self.deferred
    }

    /// Logs an intent; returns its id.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn log_intent(&mut self, make: impl FnOnce(u64) -> Result<LoggedIntent>) -> Result<u64> {
        let id = self.store.next_intent;
        self.intents.push(make(id)?);
        self.store.next_intent += 1;
        Ok(id)
    }

    /// How the journal lays out intents and done items.
    pub fn log_layout(&self) -> WriterLayout {
        self.store.log.layout()
    }

    /// Logs that an intent is done.
    pub fn log_done(&mut self, done: LoggedDone) {
        self.dones.push(done);
    }

    /// Logs that a run of inodes was created; their clusters have been given to [`Transaction::write_ordered`].
    pub fn log_icreate(&mut self, item: &RawIcreateLog<BigEndian>) {
        let layout = self.store.log.layout();
        self.icreates.push(format_icreate(item, layout));
    }

    /// The group where the next directory goes: one after the other, so that directories are spread over all of them.
    pub fn next_directory_group(&mut self) -> AgNumber {
        let groups = self.store.geometry().agcount;
        let next = self.store.directory_rotor % groups;
        self.store.directory_rotor = (next + 1) % groups;
        AgNumber(next)
    }

    /// Changes the superblock's counters, when it commits.
    pub fn count(&mut self, change: CounterChange) {
        self.counts.add(&change);
    }

    /// Takes `len` blocks from those that were reserved.
    ///
    /// # Errors
    /// `Internal` when fewer are left.
    pub fn take_blocks(&mut self, len: u64) -> Result<()> {
        let left = self.blocks.checked_sub(len);
        self.blocks =
            left.ok_or_else(|| Error::Internal("a transaction takes more blocks than it reserved".to_owned()))?;
        self.counts.fdblocks -= i64::try_from(len).unwrap_or(i64::MAX);
        Ok(())
    }

    /// Blocks that are reserved and not yet taken.
    pub fn blocks_left(&self) -> u64 {
        self.blocks
    }

    /// Notes that blocks were freed: until the journal holds that, their contents must stay.
    pub fn mark_busy(&mut self, agno: AgNumber, start: AgBlock, len: u32) {
        self.busy.push((agno, start, len));
    }

    /// Whether it has changed anything.
    pub fn is_dirty(&self) -> bool {
        !self.touched.is_empty() || !self.intents.is_empty() || !self.dones.is_empty() || !self.icreates.is_empty()
    }

    /// Makes what it changed part of the checkpoint that is being collected.
    ///
    /// # Errors
    /// `Internal` when deferred operations are left, or it changed more than it reserved: then nothing is changed.
    pub fn commit(mut self) -> Result<()> {
        if !self.deferred.is_empty() {
            return Err(Error::Internal("a transaction is committed before its deferred operations".to_owned()));
        }
        self.commit_step()
    }

    /// Commits what it changed so far and goes on with a transaction of the same reservation.
    ///
    /// # Errors
    /// As [`Transaction::commit`]; those of writing the journal.
    pub fn roll(&mut self) -> Result<()> {
        self.commit_step()?;
        self.store.make_room(self.reservation)
    }

    /// The same with another reservation.
    ///
    /// # Errors
    /// As [`Transaction::roll`].
    pub fn roll_with(&mut self, reservation: Reservation) -> Result<()> {
        self.reservation = reservation;
        self.roll()
    }

    fn commit_step(&mut self) -> Result<()> {
        if !self.store.geometry().features.has_lazysbcount() && self.counts != CounterChange::default() {
            let counts = self.counts;
            self.log_superblock(|superblock| {
                if let Some(counters) = Counters::of(superblock).changed(&counts) {
                    counters.store(superblock);
                }
            })?;
        }
        let counters = self.store.counters.changed(&self.counts);
        let counters =
            counters.ok_or_else(|| Error::Internal("a counter of the superblock falls below zero".to_owned()))?;
        let commit = self.collect()?;
        for ino in self.dropped.drain(..) {
            self.store.cil.forget(&ItemKey::Inode(ino));
            self.store.ail.remove(Kept::Inode(ino));
        }
        self.store.counters = counters;
        self.counts = CounterChange::default();
        self.before = Before::default();
        for (agno, start, len) in self.busy.drain(..) {
            if let Some(group) = self.store.groups.get_mut(usize::try_from(agno.0).unwrap_or(usize::MAX)) {
                group.busy.add(start, len);
            }
        }
        for intent in &commit.intents {
            self.store.new_intents.push(intent.id);
        }
        for done in &commit.dones {
            match self.store.new_intents.iter().position(|id| *id == done.intent_id) {
                Some(at) => drop(self.store.new_intents.swap_remove(at)),
                None => self.store.done_intents.push(done.intent_id),
            }
        }
        self.store.cil.commit(commit).map(|_| ())
    }

    /// What the checkpoint takes over.
    fn collect(&mut self) -> Result<Commit> {
        let mut seen = HashSet::new();
        let mut keys: Vec<ItemKey> = self.touched.drain(..).rev().filter(|key| seen.insert(*key)).collect();
        keys.reverse();
        let mut relogged = Vec::with_capacity(keys.len());
        for key in keys {
            self.store.newer.pin(&key);
            relogged.push((key, self.store.newer.size_of(self.store.cache.geometry(), &key, self.store.log.layout())?));
        }
        Ok(Commit {
            relogged,
            icreates: std::mem::take(&mut self.icreates),
            intents: std::mem::take(&mut self.intents),
            dones: std::mem::take(&mut self.dones),
        })
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        let before = std::mem::take(&mut self.before);
        let newer = &mut self.store.newer;
        for (key, buffer) in before.buffers {
            newer.put_buffer(key, buffer);
        }
        for (ino, item) in before.inodes {
            newer.put_inode(ino, item);
        }
        for (key, request) in before.cancelled {
            match request {
                Some(request) => newer.cancelled.insert(key, request),
                None => newer.cancelled.remove(&key),
            };
        }
        if let Some(superblock) = before.superblock {
            self.store.superblock = superblock;
        }
        for key in before.ordered {
            self.store.ordered.remove(&key);
        }
        for (agno, holdings) in before.holdings {
            if let Some(slot) = self.store.groups.get_mut(usize::try_from(agno).unwrap_or(usize::MAX)) {
                slot.holdings = holdings;
            }
        }
    }
}
