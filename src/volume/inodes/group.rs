//! The header of a group's inodes, read and changed.

use crate::buffer::{BlockKind, Request};
use crate::error::{Check, Error, Place, Result, Rule};
use crate::geometry::{AgBlock, AgNumber, BtreeKind};
use crate::ondisk::{OnDisk, RawAgi};
use crate::transaction::Transaction;

/// The header of a group's inodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agi(pub(super) RawAgi);

impl Agi {
    fn request(tx: &Transaction<'_>, agno: AgNumber) -> Result<Request> {
        let geometry = tx.store().geometry();
        let daddr = geometry.ag_header_daddr(agno, RawAgi::SECTOR);
        let daddr = daddr.ok_or_else(|| Error::Usage(format!("there is no group {agno}")))?;
        Ok(Request::new(geometry, BlockKind::Agi, daddr))
    }

    /// The header as this transaction sees it.
    pub(super) fn read(tx: &Transaction<'_>, agno: AgNumber) -> Result<Self> {
        let bytes = tx.bytes_of(&Self::request(tx, agno)?)?;
        let (raw, _) = RawAgi::prefix(&bytes).ok_or_else(cut_short)?;
        Ok(Agi(*raw))
    }

    /// Changes the header.
    pub(super) fn change(
        tx: &mut Transaction<'_>,
        agno: AgNumber,
        change: impl FnOnce(&mut Self) -> Option<()>,
    ) -> Result<()> {
        let request = Self::request(tx, agno)?;
        tx.modify(&request, |bytes| {
            let (raw, _) = RawAgi::prefix_mut(bytes).ok_or_else(cut_short)?;
            let mut agi = Agi(*raw);
            let place = Place { agno: Some(agno.0), ..Place::default() };
            let wrong = || Error::corrupt(Check::new("agi", "count", Rule::Mismatch), place);
            change(&mut agi).ok_or_else(wrong)?;
            *raw = agi.0;
            Ok(())
        })
    }

    /// Root and levels of one of its btrees.
    pub(super) fn root(&self, kind: BtreeKind) -> (u32, u32) {
        let agi = &self.0;
        match kind {
            BtreeKind::Finobt => (agi.free_root.get(), agi.free_level.get()),
            _ => (agi.root.get(), agi.level.get()),
        }
    }

    /// Sets root and levels; the tree has grown by `blocks`, which are counted where the filesystem counts them.
    pub(super) fn set_root(&mut self, kind: BtreeKind, root: u32, levels: u32, blocks: Option<i32>) -> Option<()> {
        let agi = &mut self.0;
        let (root_field, level_field, count_field) = match kind {
            BtreeKind::Finobt => (&mut agi.free_root, &mut agi.free_level, &mut agi.fblocks),
            _ => (&mut agi.root, &mut agi.level, &mut agi.iblocks),
        };
        root_field.set(root);
        level_field.set(levels);
        if let Some(blocks) = blocks {
            count_field.set(count_field.get().checked_add_signed(blocks)?);
        }
        Some(())
    }

    /// Adds to the numbers of inodes and of free ones.
    pub(super) fn count(&mut self, inodes: i32, free: i32) -> Option<()> {
        let agi = &mut self.0;
        let (count, freecount) = (agi.count.get().checked_add_signed(inodes)?, agi.freecount.get().checked_add_signed(free)?);
        agi.count.set(count);
        agi.freecount.set(freecount);
        Some(())
    }
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

fn cut_short() -> Error {
    Error::Internal("an AGI is shorter than a sector".to_owned())
}
