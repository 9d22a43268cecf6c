//! Intents and done items for the journal.

use crate::error::Result;
use crate::journal::{AttributeItem, DoneBody, IntentBody};
use crate::ondisk::log_attri::{AttriLogFormat, attri};
use crate::ondisk::log_intent::{FreeItem, FreedExtent, MapItem, RefcountItem};
use crate::ondisk::log_item::LogItemType;
use crate::ondisk::log_xmi::XmiLogFormat;
use crate::transaction::{AttributeChange, Deferred, DeferredKind, PendingIntent, Transaction};

/// Logs an intent for what is left of an entry: its id. `None` when it is not logged, as plain changes of attributes are.
pub(super) fn log_intent(tx: &mut Transaction<'_>, intent: &PendingIntent) -> Result<Option<u64>> {
    let generation = generation(tx, intent)?;
    if body(intent, 0, generation).is_none() {
        return Ok(None);
    }
    let layout = tx.log_layout();
    let defect = || crate::error::Error::Internal("an intent for nothing".to_owned());
    tx.log_intent(|id| body(intent, id, generation).ok_or_else(defect)?.format(layout)).map(Some)
}

/// Logs that an intent is done, if it was logged.
pub(super) fn log_done(tx: &mut Transaction<'_>, intent: &PendingIntent) -> Result<()> {
    let Some(body) = intent.id.and_then(|id| body(intent, id, 0)) else { return Ok(()) };
    let done = DoneBody::of(&body).format(tx.log_layout())?;
    tx.log_done(done);
    Ok(())
}

/// Intents of parent pointers name the generation of the inode.
fn generation(tx: &Transaction<'_>, intent: &PendingIntent) -> Result<u32> {
    match intent.operations.front() {
        Some(Deferred::Attribute(change)) if change.logged && change.op & attri::TYPE_MASK >= attri::PPTR_SET => {
            Ok(tx.inode(change.ino)?.raw().core.generation.get())
        }
        _ => Ok(0),
    }
}

fn body(intent: &PendingIntent, id: u64, generation: u32) -> Option<IntentBody<'_>> {
    match intent.kind {
        DeferredKind::Free | DeferredKind::FreeListBlock => {
            let extents = intent.operations.iter().filter_map(|operation| match operation {
                Deferred::Free(extent) | Deferred::FreeListBlock { extent, .. } => {
                    Some(FreedExtent { start: extent.start.0, len: extent.len })
                }
                _ => None,
            });
            Some(IntentBody::Free(FreeItem { kind: LogItemType::Efi, id, extents: extents.collect() }))
        }
        DeferredKind::Rmap | DeferredKind::Mapping => {
            let extents = intent.operations.iter().filter_map(|operation| match operation {
                Deferred::Rmap(extent) | Deferred::Mapping(extent) => Some(*extent),
                _ => None,
            });
            let kind = if intent.kind == DeferredKind::Rmap { LogItemType::Rui } else { LogItemType::Bui };
            Some(IntentBody::Map(MapItem { kind, id, extents: extents.collect() }))
        }
        DeferredKind::Refcount => {
            let extents = intent.operations.iter().filter_map(|operation| match operation {
                Deferred::Refcount(extent) => Some(*extent),
                _ => None,
            });
            Some(IntentBody::Refcount(RefcountItem { kind: LogItemType::Cui, id, extents: extents.collect() }))
        }
        DeferredKind::Attribute => match intent.operations.front() {
            Some(Deferred::Attribute(change)) if change.logged => Some(attribute(change, id, generation)),
            _ => None,
        },
        DeferredKind::Exchange => match intent.operations.front() {
            Some(Deferred::Exchange(exchange)) => Some(IntentBody::Exchange(XmiLogFormat { id, ..**exchange })),
            _ => None,
        },
    }
}

fn attribute(change: &AttributeChange, id: u64, generation: u32) -> IntentBody<'_> {
    let replaces = change.op & attri::TYPE_MASK == attri::PPTR_REPLACE;
    let value = Some(change.value.as_slice()).filter(|value| !value.is_empty());
    IntentBody::Attribute(AttributeItem {
        format: AttriLogFormat {
            size: 0,
            igen: generation,
            id,
            ino: change.ino.0,
            op_flags: change.op,
            name_len: 0,
            new_name_len: None,
            value_len: 0,
            attr_filter: u32::from(change.namespace),
        },
        name: &change.name,
        new_name: replaces.then_some(&change.new_name),
        value,
        new_value: replaces.then_some(&change.new_value),
    })
}
