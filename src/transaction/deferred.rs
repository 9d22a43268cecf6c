//! Deferred operations, as data (Linux `libxfs/xfs_defer.c`). What finishes them knows the structures they change.
//!
//! An operation is put on a queue by a transaction, logged as an intent when that transaction commits, and finished in a
//! later one of the same chain, which logs that it is done.

use std::collections::VecDeque;

use crate::geometry::{AgNumber, FsBlock, Ino};
use crate::ondisk::log_intent::{MapExtent, PhysExtent};
use crate::ondisk::log_xmi::XmiLogFormat;

/// The kinds, each with an intent and a done item of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeferredKind {
    /// A change of an attribute (ATTRI).
    Attribute,
    /// A mapping added to a file or taken out (BUI).
    Mapping,
    /// A change of reference counts (CUI).
    Refcount,
    /// A change of reverse mappings (RUI).
    Rmap,
    /// Blocks freed (EFI).
    Free,
    /// A block of a free list freed; logged as EFI, too.
    FreeListBlock,
    /// Ranges of two files exchanged (XMI).
    Exchange,
}

impl DeferredKind {
    /// How many operations one intent holds at most.
    pub fn most(self) -> usize {
        match self {
            DeferredKind::Attribute | DeferredKind::Mapping | DeferredKind::Exchange => 1,
            _ => 16,
        }
    }
}

/// Blocks that are to be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreedExtent {
    /// The first.
    pub start: FsBlock,
    /// How many.
    pub len: u32,
    /// Whom the reverse mapping names: an inode or one of the others that rmap records name; `None` if it is not to
    /// be touched.
    pub owner: Option<u64>,
    /// Where in the file, in blocks; 0 for other owners.
    pub offset: u64,
    /// The blocks belong to the attribute fork.
    pub attr_fork: bool,
    /// The blocks are of the file's mapping btree.
    pub bmbt_block: bool,
    /// The group takes them back for its reference count or free inode btree.
    pub held: bool,
}

/// A change of an attribute that may take several transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeChange {
    /// The file.
    pub ino: Ino,
    /// Which change, as [`crate::ondisk::log_attri`] numbers them.
    pub op: u32,
    /// Namespace flags of the attribute.
    pub namespace: u8,
    /// Its name.
    pub name: Vec<u8>,
    /// The new name, where a parent pointer is replaced.
    pub new_name: Vec<u8>,
    /// The value to be set, or that of the parent pointer taken out.
    pub value: Vec<u8>,
    /// The new value, where a parent pointer is replaced.
    pub new_value: Vec<u8>,
    /// Whether the change is logged as an intent: parent pointers always, others when asked for.
    pub logged: bool,
    /// How far it has come.
    pub progress: AttributeProgress,
}

impl AttributeChange {
    /// The name that is worked on: of a parent pointer that is replaced, first the old one, then the new one.
    pub fn current_name(&self) -> &[u8] {
        if self.progress.renamed { &self.new_name } else { &self.name }
    }

    /// The value that goes with it.
    pub fn current_value(&self) -> &[u8] {
        if self.progress.renamed { &self.new_value } else { &self.value }
    }
}

/// How far a change of an attribute has come; only what takes it further knows what the values mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributeProgress {
    /// The step that is next.
    pub state: u32,
    /// Both the old and the new attribute are there for a while.
    pub replacing: bool,
    /// The old parent pointer is out, and the new one goes in. Intents go on naming both, as a replay wants them.
    pub renamed: bool,
    /// First block of the value in the attribute fork.
    pub remote_start: u32,
    /// The next of its blocks that is to be allocated or freed.
    pub remote_next: u32,
    /// How many there are from that on.
    pub remote_left: u32,
}

/// A deferred operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Deferred {
    /// A change of an attribute.
    Attribute(Box<AttributeChange>),
    /// A mapping, with operation and flags as in a BUI.
    Mapping(MapExtent),
    /// Reference counts, with the operation as in a CUI.
    Refcount(PhysExtent),
    /// A reverse mapping, with operation and flags as in a RUI.
    Rmap(MapExtent),
    /// Blocks freed.
    Free(FreedExtent),
    /// A block of a free list freed.
    FreeListBlock {
        /// The group.
        agno: AgNumber,
        /// The block.
        extent: FreedExtent,
    },
    /// Ranges exchanged.
    Exchange(Box<XmiLogFormat>),
}

impl Deferred {
    /// The first block that it is about; `None` for changes of attributes and of whole files.
    pub fn start(&self) -> Option<FsBlock> {
        match self {
            Deferred::Mapping(extent) | Deferred::Rmap(extent) => Some(FsBlock(extent.startblock)),
            Deferred::Refcount(extent) => Some(FsBlock(extent.startblock)),
            Deferred::Free(extent) | Deferred::FreeListBlock { extent, .. } => Some(extent.start),
            Deferred::Attribute(_) | Deferred::Exchange(_) => None,
        }
    }

    /// Its kind.
    pub fn kind(&self) -> DeferredKind {
        match self {
            Deferred::Attribute(_) => DeferredKind::Attribute,
            Deferred::Mapping(_) => DeferredKind::Mapping,
            Deferred::Refcount(_) => DeferredKind::Refcount,
            Deferred::Rmap(_) => DeferredKind::Rmap,
            Deferred::Free(_) => DeferredKind::Free,
            Deferred::FreeListBlock { .. } => DeferredKind::FreeListBlock,
            Deferred::Exchange(_) => DeferredKind::Exchange,
        }
    }
}

/// Operations of one kind that one intent covers.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingIntent {
    /// The kind.
    pub kind: DeferredKind,
    /// The operations that are left.
    pub operations: VecDeque<Deferred>,
    /// The id of the intent, once it is logged.
    pub id: Option<u64>,
}

/// The operations of a chain of transactions, in the order in which they are to be finished.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deferrals {
    /// Put there by the transaction that runs.
    added: VecDeque<PendingIntent>,
    /// Logged as intents, or about to be.
    pending: VecDeque<PendingIntent>,
}

impl Deferrals {
    /// Puts an operation at the end, into the last intent if that is of its kind and has room.
    pub fn add(&mut self, operation: Deferred) {
        let kind = operation.kind();
        match self.added.back_mut() {
            Some(last) if last.kind == kind && last.operations.len() < kind.most() => {
                last.operations.push_back(operation);
            }
            _ => self.added.push_back(PendingIntent { kind, operations: [operation].into(), id: None }),
        }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.pending.is_empty()
    }

    /// Puts what was added before all that is pending (`xfs_defer_finish_noroll`); the new intents have to be logged.
    pub fn take_up(&mut self) {
        while let Some(last) = self.added.pop_back() {
            self.pending.push_front(last);
        }
    }

    /// All that is pending, the next first.
    pub fn pending(&mut self) -> &mut VecDeque<PendingIntent> {
        &mut self.pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(start: u64) -> Deferred {
        let extent = FreedExtent {
            start: FsBlock(start),
            len: 1,
            owner: None,
            offset: 0,
            attr_fork: false,
            bmbt_block: false,
            held: false,
        };
        Deferred::Free(extent)
    }

    #[test]
    fn operations_of_a_kind_share_an_intent_up_to_its_room() {
        let mut deferrals = Deferrals::default();
        (0..17).for_each(|start| deferrals.add(free(start)));
        deferrals.add(Deferred::Refcount(PhysExtent { startblock: 1, len: 1, flags: 1 }));
        deferrals.add(free(99));
        deferrals.take_up();
        let shape: Vec<_> = deferrals.pending().iter().map(|intent| (intent.kind, intent.operations.len())).collect();
        use DeferredKind::{Free, Refcount};
        assert_eq!(shape, [(Free, 16), (Free, 1), (Refcount, 1), (Free, 1)]);
    }

    #[test]
    fn what_an_operation_adds_comes_before_what_was_pending() {
        let mut deferrals = Deferrals::default();
        deferrals.add(free(1));
        deferrals.take_up();
        deferrals.add(Deferred::Refcount(PhysExtent { startblock: 1, len: 1, flags: 1 }));
        deferrals.take_up();
        let kinds: Vec<_> = deferrals.pending().iter().map(|intent| intent.kind).collect();
        assert_eq!(kinds, [DeferredKind::Refcount, DeferredKind::Free]);
    }
}
