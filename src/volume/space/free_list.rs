//! The free list of a group: blocks kept for its free space and reverse mapping btrees.

use super::header::{agf, change_agf, corrupt, header};
use crate::buffer::BlockKind;
use crate::error::{Error, Result, Rule};
use crate::geometry::{AgBlock, AgNumber};
use crate::ondisk::{RawAgf, RawAgfl};
use crate::transaction::Transaction;

/// The index after `index`, around the end of the list.
fn following(index: u32, capacity: u32) -> u32 {
    if index + 1 >= capacity { 0 } else { index + 1 }
}

/// Whether the header's counts agree; an old kernel with another size of the list could leave them so that they do not.
fn check(agf: &RawAgf, capacity: u32, agno: AgNumber) -> Result<()> {
    let (first, last, count) = (agf.flfirst.get(), agf.fllast.get(), agf.flcount.get());
    let active = if count == 0 {
        0
    } else if last >= first {
        last - first + 1
    } else {
        capacity - first + last + 1
    };
    if active == count { Ok(()) } else { Err(corrupt("agf", "flcount", Rule::Mismatch, agno)) }
}

/// Takes the first block off the list; `None` when it is empty. `for_btree` says that it becomes a block of a btree.
///
/// # Errors
/// `Corrupt` when the list is damaged; `Io`.
pub(super) fn take(tx: &mut Transaction<'_>, agno: AgNumber, for_btree: bool) -> Result<Option<AgBlock>> {
    let geometry = tx.store().geometry();
    let (capacity, v5) = (geometry.agfl_capacity, geometry.features.has_crc());
    let header_now = agf(tx.store(), agno)?;
    check(&header_now, capacity, agno)?;
    if header_now.flcount.get() == 0 {
        return Ok(None);
    }
    let first = header_now.flfirst.get();
    let request = header(geometry, BlockKind::Agfl, agno, RawAgfl::SECTOR)?;
    let bytes = tx.bytes_of(&request)?;
    let entry = usize::try_from(first).ok().and_then(|first| RawAgfl::entries(&bytes, v5).get(first).copied());
    let block = AgBlock(entry.ok_or_else(|| corrupt("agf", "flfirst", Rule::Range, agno))?.get());
    if !geometry.is_usable_agbno(agno, block) {
        return Err(corrupt("agfl", "bno", Rule::Range, agno));
    }
    change_agf(tx, agno, |agf| {
        agf.flfirst.set(following(first, capacity));
        agf.flcount -= 1;
        if for_btree {
            agf.btreeblks += 1;
        }
    })?;
    Ok(Some(block))
}

/// Puts a block at the end of the list. `from_btree` says that it was a block of a btree.
///
/// # Errors
/// `Corrupt` when the list is damaged or full; `Io`.
pub(super) fn put(tx: &mut Transaction<'_>, agno: AgNumber, block: AgBlock, from_btree: bool) -> Result<()> {
    let geometry = tx.store().geometry();
    let (capacity, v5) = (geometry.agfl_capacity, geometry.features.has_crc());
    let header_now = agf(tx.store(), agno)?;
    check(&header_now, capacity, agno)?;
    if header_now.flcount.get() >= capacity {
        return Err(Error::Internal(format!("the free list of group {agno} is full")));
    }
    if from_btree && header_now.btreeblks.get() == 0 {
        return Err(corrupt("agf", "btreeblks", Rule::Range, agno));
    }
    let last = following(header_now.fllast.get(), capacity);
    let request = header(geometry, BlockKind::Agfl, agno, RawAgfl::SECTOR)?;
    tx.modify(&request, |bytes| {
        let entry = usize::try_from(last).ok().and_then(|last| RawAgfl::entries_mut(bytes, v5).get_mut(last));
        entry.ok_or_else(|| corrupt("agf", "fllast", Rule::Range, agno))?.set(block.0);
        Ok(())
    })?;
    change_agf(tx, agno, |agf| {
        agf.fllast.set(last);
        agf.flcount += 1;
        if from_btree {
            agf.btreeblks -= 1;
        }
    })
}
