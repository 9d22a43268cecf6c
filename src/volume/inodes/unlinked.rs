//! The lists of inodes without a name: each group has 64, by inode number (`xfs_iunlink`, `xfs_iunlink_remove`).

use crate::error::{Check, Error, Place, Result, Rule};
use crate::geometry::{AgIno, AgNumber, Ino};
use crate::ondisk::{NULLAGINO, RawAgi};
use crate::transaction::Transaction;
use crate::volume::space::{agi, change_agi};

/// Most inodes of a list that are looked at; more are a cycle.
const MOST: u32 = 1 << 26;

/// Puts an inode without links at the head of its list.
///
/// # Errors
/// `Corrupt` when the list is damaged.
pub fn unlinked_add(tx: &mut Transaction<'_>, ino: Ino) -> Result<()> {
    let list = List::of(tx, ino)?;
    let head = list.head(tx)?;
    if head == list.agino || !list.is_valid_or_none(tx, head) {
        return Err(list.corrupt("unlinked", Rule::Range));
    }
    if head != NULLAGINO {
        tx.log_next_unlinked(ino, head)?;
    }
    list.set_head(tx, list.agino)
}

/// Takes an inode from its list.
///
/// # Errors
/// `Corrupt` when it is not on the list.
pub fn unlinked_remove(tx: &mut Transaction<'_>, ino: Ino) -> Result<()> {
    let list = List::of(tx, ino)?;
    let head = list.head(tx)?;
    if head == NULLAGINO || !list.is_valid_or_none(tx, head) {
        return Err(list.corrupt("unlinked", Rule::Range));
    }
    let next = list.next_of(tx, list.agino)?;
    let previous = list.previous(tx, head)?;
    tx.log_next_unlinked(ino, NULLAGINO)?;
    match previous {
        None => list.set_head(tx, next),
        Some(previous) => tx.log_next_unlinked(list.ino(tx, previous)?, next),
    }
}

/// The list that an inode belongs to.
#[derive(Clone, Copy)]
struct List {
    agno: AgNumber,
    agino: u32,
    index: usize,
}

impl List {
    fn of(tx: &Transaction<'_>, ino: Ino) -> Result<Self> {
        let parts = tx.store().geometry().ino_parts(ino);
        let parts = parts.ok_or_else(|| Error::Usage(format!("no inode can have the number {ino}")))?;
        let lists = u32::try_from(RawAgi::UNLINKED_BUCKETS).unwrap_or(1);
        let index = usize::try_from(parts.agino.0 % lists).unwrap_or(0);
        Ok(List { agno: parts.agno, agino: parts.agino.0, index })
    }

    fn corrupt(self, field: &'static str, rule: Rule) -> Error {
        let place = Place { agno: Some(self.agno.0), ..Place::default() };
        Error::corrupt(Check::new("agi", field, rule), place)
    }

    fn head(self, tx: &Transaction<'_>) -> Result<u32> {
        Ok(agi(tx.store(), self.agno)?.unlinked[self.index].get())
    }

    fn set_head(self, tx: &mut Transaction<'_>, agino: u32) -> Result<()> {
        change_agi(tx, self.agno, |agi| agi.unlinked[self.index].set(agino))
    }

    fn is_valid_or_none(self, tx: &Transaction<'_>, agino: u32) -> bool {
        agino == NULLAGINO || tx.store().geometry().is_valid_agino(self.agno, AgIno(agino))
    }

    fn ino(self, tx: &Transaction<'_>, agino: u32) -> Result<Ino> {
        let ino = tx.store().geometry().ino(self.agno, AgIno(agino));
        ino.ok_or_else(|| self.corrupt("unlinked", Rule::Range))
    }

    fn next_of(self, tx: &Transaction<'_>, agino: u32) -> Result<u32> {
        let inode = tx.inode(self.ino(tx, agino)?)?;
        let next = inode.raw().core.next_unlinked.get();
        if self.is_valid_or_none(tx, next) { Ok(next) } else { Err(self.corrupt("unlinked", Rule::Range)) }
    }

    /// The inode before this one; `None` when it is the first.
    fn previous(self, tx: &Transaction<'_>, head: u32) -> Result<Option<u32>> {
        let (mut previous, mut at) = (None, head);
        for _ in 0..MOST {
            if at == self.agino {
                return Ok(previous);
            }
            if at == NULLAGINO {
                return Err(self.corrupt("unlinked", Rule::Mismatch));
            }
            previous = Some(at);
            at = self.next_of(tx, at)?;
        }
        Err(self.corrupt("unlinked", Rule::Cycle))
    }
}
