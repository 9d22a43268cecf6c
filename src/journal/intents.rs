//! Which intents are done, and which are pending (Linux `xfs_log_recover.c`, `xlog_recover_release_intent`).

use std::collections::{HashMap, VecDeque};

use super::parse::{Checkpoint, LogItem};
use crate::ondisk::log_item::LogItemType;

/// An intent, and where it was logged.
#[derive(Clone, Debug)]
pub struct Intent {
    /// Its type.
    pub kind: LogItemType,
    /// What the done item refers to, together with the type.
    pub id: u64,
    /// The number of the checkpoint that logged it, as it was given to [`Intents::take`].
    pub checkpoint: u64,
    /// Its place among that checkpoint's items.
    pub index: usize,
    contents: Checkpoint,
}

impl Intent {
    /// The intent itself.
    pub fn item(&self) -> LogItem<'_> {
        self.contents.item(0).expect("invariant: made of one item")
    }
}

/// What an item means for the intents.
#[derive(Debug)]
pub enum IntentEvent {
    /// It is an intent; a done item may follow.
    Logged,
    /// It says that this intent is done.
    Answered(Box<Intent>),
    /// It says that an intent is done which was not seen: that was before the tail.
    Unmatched,
    /// It is something else.
    Other,
}

/// The intents that are pending at a point of the journal.
///
/// Ids are addresses in the writer's memory and are used again, so that items must be given in the order of the log, those of
/// committed checkpoints alone. Where two intents of the same type and id are pending, a done item answers the older one.
#[derive(Debug, Default)]
pub struct Intents {
    pending: HashMap<(LogItemType, u64), VecDeque<Intent>>,
}

impl Intents {
    /// No intents.
    pub fn new() -> Self {
        Intents::default()
    }

    /// Takes an item of the committed checkpoint number `checkpoint`.
    pub fn take(&mut self, checkpoint: u64, item: LogItem<'_>) -> IntentEvent {
        let (Some(kind), Some(id)) = (item.kind(), item.intent_id()) else { return IntentEvent::Other };
        let Some(answered) = kind.intent() else {
            let contents = Checkpoint::of_item(item);
            let intent = Intent { kind, id, checkpoint, index: item.index(), contents };
            self.pending.entry((kind, id)).or_default().push_back(intent);
            return IntentEvent::Logged;
        };
        let Some(found) = self.pending.get_mut(&(answered, id)) else { return IntentEvent::Unmatched };
        let intent = found.pop_front().expect("invariant: no entry is empty");
        if found.is_empty() {
            self.pending.remove(&(answered, id));
        }
        IntentEvent::Answered(Box::new(intent))
    }

    /// What is pending, in the order in which it was logged: a replay must finish it.
    pub fn into_pending(self) -> Vec<Intent> {
        let mut pending: Vec<Intent> = self.pending.into_values().flatten().collect();
        pending.sort_by_key(|intent| (intent.checkpoint, intent.index));
        pending
    }
}
