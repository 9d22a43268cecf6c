//! What went into the log, and what whiteouts kept out of it.

use crate::ondisk::log_item::LogItemType;

use super::item::ItemSize;

/// What whiteouts did since the engine was opened (the trace points `xfs_cil_whiteout_*` of Linux count the same).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhiteoutCounters {
    /// Intents that were marked, since they were answered in the checkpoint that was to log them. As many done items were
    /// left out.
    pub marked: u64,
    /// Marked intents that a checkpoint passed over when it was written.
    pub skipped: u64,
    /// Bytes of log that the marked intents would have taken.
    pub released_bytes: u64,
}

/// Items of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemTotal {
    /// Items.
    pub items: u64,
    /// Regions.
    pub regions: u64,
    /// Bytes of log, with the headers of operations.
    pub bytes: u64,
}

/// Items by type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemTotals {
    by_type: [ItemTotal; LogItemType::ALL.len()],
}

impl ItemTotals {
    /// Counts an item.
    pub fn add(&mut self, kind: LogItemType, size: ItemSize) {
        let total = self.slot(kind);
        total.items += 1;
        total.regions += u64::from(size.regions);
        total.bytes += size.log_bytes();
    }

    /// Counts what `other` counts.
    pub fn merge(&mut self, other: &ItemTotals) {
        for (kind, more) in other.iter() {
            let total = self.slot(kind);
            total.items += more.items;
            total.regions += more.regions;
            total.bytes += more.bytes;
        }
    }

    /// What was counted since they were like `before`.
    #[must_use]
    pub fn since(&self, before: &ItemTotals) -> Self {
        let mut since = *self;
        for (total, before) in since.by_type.iter_mut().zip(&before.by_type) {
            total.items -= before.items;
            total.regions -= before.regions;
            total.bytes -= before.bytes;
        }
        since
    }

    /// The items of one type.
    pub fn of(&self, kind: LogItemType) -> ItemTotal {
        LogItemType::ALL
            .iter()
            .zip(self.by_type)
            .find(|(other, _)| **other == kind)
            .map_or_else(Default::default, |it| it.1)
    }

    /// The types of which there are items, by number.
    pub fn iter(&self) -> impl Iterator<Item = (LogItemType, ItemTotal)> {
        LogItemType::ALL.into_iter().zip(self.by_type).filter(|(_, total)| total.items > 0)
    }

    /// All types together.
    pub fn sum(&self) -> ItemTotal {
        self.iter().fold(ItemTotal::default(), |sum, (_, total)| ItemTotal {
            items: sum.items + total.items,
            regions: sum.regions + total.regions,
            bytes: sum.bytes + total.bytes,
        })
    }

    fn slot(&mut self, kind: LogItemType) -> &mut ItemTotal {
        let at = LogItemType::ALL.iter().position(|other| *other == kind);
        &mut self.by_type[at.expect("invariant: the list names all types")]
    }
}
