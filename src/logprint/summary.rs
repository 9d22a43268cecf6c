//! Sums over a journal.

use std::collections::{BTreeMap, HashSet};

use super::item_fields::buffer_word;
use super::touched::{BufferKey, Touched};
use crate::geometry::Lsn;
use crate::journal::{BufferItem, Checkpoint, Intent, IntentEvent, Intents, ItemBody, JournalRecord, LogItem};
use crate::ondisk::LittleEndian;
use crate::ondisk::OnDisk;
use crate::ondisk::log_intent::RawIntentHead;
use crate::ondisk::log_item::LogItemType;

/// Items and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) items: u64,
    pub(super) regions: u64,
    /// Bytes of regions and of their operation headers.
    pub(super) bytes: u64,
}

impl Tally {
    fn add(&mut self, item: LogItem<'_>) {
        self.items += 1;
        self.regions += item.regions() as u64;
        self.bytes += item.log_bytes();
    }

    fn add_all(&mut self, other: Tally) {
        self.items += other.items;
        self.regions += other.regions;
        self.bytes += other.bytes;
    }
}

/// One checkpoint in the sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckpointSum {
    pub(super) lsn: Lsn,
    pub(super) commit: Lsn,
    pub(super) tid: u32,
    pub(super) all: Tally,
    /// Intents and done items of pairs within it.
    pub(super) paired: Tally,
}

/// An object that is logged in many checkpoints.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repeats {
    /// Items of it altogether.
    pub(super) all: Tally,
    /// Items behind the first of each object.
    pub(super) again: Tally,
}

/// Sums over a journal.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) records: u64,
    pub(super) record_blocks: u64,
    pub(super) payload_bytes: u64,
    pub(super) checkpoints: Vec<CheckpointSum>,
    /// Bytes of committed checkpoints, transaction headers included.
    pub(super) checkpoint_bytes: u64,
    pub(super) uncommitted: u64,
    pub(super) by_type: BTreeMap<u16, Tally>,
    /// Buffers by what they hold.
    pub(super) by_buffer: BTreeMap<&'static str, Tally>,
    /// Intents of pairs within a checkpoint, by their type, with their done items.
    pub(super) pairs: BTreeMap<u16, Tally>,
    /// Intents that were logged anew to move them forward in the log, with the done items of their predecessors.
    pub(super) relogged: Tally,
    /// Intents with what was left of an intent that was done in part, with its done item.
    pub(super) continued: Tally,
    pub(super) buffers: Repeats,
    pub(super) inodes: Repeats,
    pub(super) dquots: Repeats,
    pub(super) touched: Touched,
    seen_buffers: HashSet<BufferKey>,
    seen_inodes: HashSet<u64>,
    seen_dquots: HashSet<(u8, u32)>,
    intents: Intents,
}

impl Summary {
    pub(super) fn record(&mut self, record: &JournalRecord) {
        self.records += 1;
        self.record_blocks += u64::from(record.blocks);
        self.payload_bytes += u64::from(record.header.len.get());
    }

    pub(super) fn checkpoint(&mut self, checkpoint: &Checkpoint) {
        let number = self.checkpoints.len() as u64;
        let mut sum = CheckpointSum {
            lsn: checkpoint.lsn,
            commit: checkpoint.commit_lsn.unwrap_or(Lsn(0)),
            tid: checkpoint.tid,
            all: Tally::default(),
            paired: Tally::default(),
        };
        self.checkpoint_bytes += checkpoint.log_bytes();
        let mut cancelled = Vec::new();
        // the intent that the item before said is done, if that was logged in an earlier checkpoint
        let mut answered: Option<(Box<Intent>, LogItem<'_>)> = None;
        for item in checkpoint.items() {
            sum.all.add(item);
            self.by_type.entry(item.number()).or_default().add(item);
            let before = answered.take();
            match self.intents.take(number, item) {
                IntentEvent::Answered(intent) if intent.checkpoint == number => {
                    let mut pair = Tally::default();
                    pair.add(intent.item());
                    pair.add(item);
                    sum.paired.add_all(pair);
                    self.pairs.entry(intent.kind.number()).or_default().add_all(pair);
                }
                IntentEvent::Answered(intent) => answered = Some((intent, item)),
                IntentEvent::Logged => self.logged_again(before, item),
                IntentEvent::Unmatched | IntentEvent::Other => self.object(item, checkpoint.lsn, &mut cancelled),
            }
        }
        for key in cancelled {
            self.touched.cancel(key);
        }
        self.checkpoints.push(sum);
    }

    /// An intent that follows a done item: the same intent again, or the rest of it.
    fn logged_again(&mut self, before: Option<(Box<Intent>, LogItem<'_>)>, item: LogItem<'_>) {
        let Some((intent, done)) = before.filter(|(intent, _)| Some(intent.kind) == item.kind()) else { return };
        let tally = if same_but_id(intent.item(), item) { &mut self.relogged } else { &mut self.continued };
        tally.add(done);
        tally.add(item);
    }

    /// An item of something that is changed, not of an intent.
    fn object(&mut self, item: LogItem<'_>, lsn: Lsn, cancelled: &mut Vec<BufferKey>) {
        match item.decode() {
            Ok(ItemBody::Buffer(buffer)) => self.buffer(item, &buffer, lsn, cancelled),
            Ok(ItemBody::Inode(inode)) => {
                self.inodes.add(item, self.seen_inodes.insert(inode.format.ino));
                self.touched.inode(&inode, lsn);
            }
            Ok(ItemBody::Dquot(dquot)) => {
                let key = (dquot.dquot.dqtype, dquot.format.id);
                self.dquots.add(item, self.seen_dquots.insert(key));
                self.touched.dquot(&dquot, lsn);
            }
            Ok(ItemBody::Icreate(chunk)) => self.touched.new_inodes += u64::from(chunk.count.get()),
            _ => {}
        }
    }

    fn buffer(&mut self, item: LogItem<'_>, buffer: &BufferItem<'_>, lsn: Lsn, cancelled: &mut Vec<BufferKey>) {
        let word = if buffer.is_cancel() { "cancelled" } else { buffer_word(buffer.format.kind) };
        self.by_buffer.entry(word).or_default().add(item);
        let key = (buffer.format.blkno, u32::from(buffer.format.len));
        self.buffers.add(item, self.seen_buffers.insert(key));
        if buffer.is_cancel() {
            cancelled.push(key);
        } else {
            self.touched.buffer(buffer, lsn);
        }
    }

    /// The intents that are pending in the end.
    pub(super) fn pending(&mut self) -> Vec<Intent> {
        std::mem::take(&mut self.intents).into_pending()
    }
}

impl Repeats {
    fn add(&mut self, item: LogItem<'_>, first: bool) {
        self.all.add(item);
        if !first {
            self.again.add(item);
        }
    }
}

/// Whether two intents differ in nothing but their ids.
fn same_but_id(one: LogItem<'_>, other: LogItem<'_>) -> bool {
    let id = std::mem::offset_of!(RawIntentHead<LittleEndian>, id);
    let (head, other_head) = (one.format(), other.format());
    let rest = RawIntentHead::<LittleEndian>::SIZE;
    head.get(..id) == other_head.get(..id)
        && head.get(rest..) == other_head.get(rest..)
        && one.all_regions().skip(1).eq(other.all_regions().skip(1))
}

/// Whether a type is that of an intent or done item.
pub(super) fn is_deferred(kind: LogItemType) -> bool {
    kind.done().is_some() || kind.intent().is_some()
}
