//! What the log must keep: items by the checkpoint that holds them (Linux `xfs_trans_ail.c`).

use std::collections::{BTreeSet, HashMap};

use crate::geometry::{Ino, Lsn};
use crate::journal::BufferKey;

/// Something that the log must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kept {
    /// A block that is not in place.
    Buffer(BufferKey),
    /// An inode that is not in place.
    Inode(Ino),
    /// An intent that is not done, by its id.
    Intent(u64),
}

/// The items in the order of their checkpoints.
#[derive(Debug, Default)]
pub(super) struct Ail {
    order: BTreeSet<(Lsn, Kept)>,
    lsns: HashMap<Kept, Lsn>,
}

impl Ail {
    /// The checkpoint at `lsn` holds `item` from now on.
    pub(super) fn set(&mut self, item: Kept, lsn: Lsn) {
        self.remove(item);
        self.order.insert((lsn, item));
        self.lsns.insert(item, lsn);
    }

    /// Nothing of `item` is needed any more.
    pub(super) fn remove(&mut self, item: Kept) {
        if let Some(lsn) = self.lsns.remove(&item) {
            self.order.remove(&(lsn, item));
        }
    }

    /// The checkpoint that holds `item`.
    pub(super) fn lsn(&self, item: Kept) -> Option<Lsn> {
        self.lsns.get(&item).copied()
    }

    /// The oldest checkpoint that is still needed.
    pub(super) fn oldest(&self) -> Option<Lsn> {
        self.order.first().map(|(lsn, _)| *lsn)
    }

    /// Whether nothing is needed.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The items, those of the oldest checkpoint first.
    pub(super) fn items(&self) -> impl Iterator<Item = (Lsn, Kept)> + '_ {
        self.order.iter().copied()
    }
}
