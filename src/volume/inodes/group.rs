//! What a group says of its inodes, changed; and the clusters that they lie in.

use crate::buffer::Request;
use crate::error::{Check, Error, Place, Result, Rule};
use crate::geometry::{AgBlock, AgNumber};
use crate::transaction::Transaction;
use crate::volume::space::{agi, change_agi};

/// Adds to a group's numbers of inodes and of free ones.
pub(super) fn count_inodes(tx: &mut Transaction<'_>, agno: AgNumber, inodes: i32, free: i32) -> Result<()> {
    let old = agi(tx.store(), agno)?;
    let place = Place { agno: Some(agno.0), ..Place::default() };
    let wrong = || Error::corrupt(Check::new("agi", "count", Rule::Mismatch), place);
    let count = old.count.get().checked_add_signed(inodes).zip(old.freecount.get().checked_add_signed(free));
    let (count, freecount) = count.ok_or_else(wrong)?;
    change_agi(tx, agno, |agi| {
        agi.count.set(count);
        agi.freecount.set(freecount);
    })
}

/// The clusters of the inodes in `len` blocks from `start` on.
pub(super) fn clusters(tx: &Transaction<'_>, agno: AgNumber, start: AgBlock, len: u32) -> Result<Vec<Request>> {
    let geometry = tx.store().geometry();
    let (mut at, end) = (start.0, start.0.saturating_add(len));
    let mut clusters = Vec::new();
    while at < end {
        let ino = geometry.agbno_agino(AgBlock(at)).and_then(|agino| geometry.ino(agno, agino));
        let outside = || Error::Internal(format!("block {at} of group {agno} holds no inodes"));
        let (request, _) = tx.store().cluster(ino.ok_or_else(outside)?)?;
        at += u32::try_from(request.len() / u64::from(geometry.blocksize)).unwrap_or(u32::MAX).max(1);
        clusters.push(request);
    }
    Ok(clusters)
}
