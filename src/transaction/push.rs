//! A checkpoint written to the log, and the end of all (Linux `xlog_cil_push_work`, `xfs_log_quiesce`).

use super::ail::Kept;
use super::format::Formatter;
use super::store::Store;
use crate::error::{Error, Result};
use crate::geometry::Lsn;
use crate::geometry::reservation::Reservation;
use crate::journal::{CheckpointItem, ItemKey, TakenCheckpoint};

impl Store {
    /// Writes what was committed so far to the log. When it returns, all that is durable, and so are the contents of files that
    /// were written before.
    ///
    /// # Errors
    /// `Io`: then the store is of no use any more; what the log holds is whole.
    pub fn push(&mut self) -> Result<()> {
        let tail = self.tail();
        let Some(taken) = self.cil.take() else { return Ok(()) };
        let written = self.log.write_checkpoint(
            &taken,
            &Formatter { geometry: self.cache.geometry(), newer: &self.newer },
            tail,
        )?;
        self.settle(&taken, written.start);
        Ok(())
    }

    /// The log holds a checkpoint: what it logs may go to its place, what it freed may be used again.
    fn settle(&mut self, taken: &TakenCheckpoint, lsn: Lsn) {
        for (item, _) in &taken.items {
            match item {
                CheckpointItem::Relogged(ItemKey::Inode(ino)) => self.settle_inode(*ino, lsn),
                CheckpointItem::Relogged(ItemKey::Buffer(key)) => self.settle_buffer(*key, lsn),
                CheckpointItem::Relogged(ItemKey::Dquot { .. }) | CheckpointItem::Formatted { .. } => {}
            }
        }
        for key in std::mem::take(&mut self.ordered) {
            self.settle_buffer(key, lsn);
        }
        for (key, _) in std::mem::take(&mut self.newer.cancelled) {
            if !self.newer.buffers.contains_key(&key) {
                self.ail.remove(Kept::Buffer(key));
            }
        }
        for id in std::mem::take(&mut self.new_intents) {
            self.ail.set(Kept::Intent(id), lsn);
        }
        for id in std::mem::take(&mut self.done_intents) {
            self.ail.remove(Kept::Intent(id));
        }
        self.groups.iter_mut().for_each(|group| group.busy.clear());
    }

    fn settle_inode(&mut self, ino: crate::geometry::Ino, lsn: Lsn) {
        match self.newer.inodes.get_mut(&ino) {
            Some(item) => {
                item.pinned = false;
                item.lsn = Some(lsn);
                self.ail.set(Kept::Inode(ino), lsn);
            }
            None => self.ail.remove(Kept::Inode(ino)),
        }
    }

    fn settle_buffer(&mut self, key: crate::journal::BufferKey, lsn: Lsn) {
        let Some(buffer) = self.newer.buffers.get_mut(&key) else { return };
        buffer.pinned = false;
        buffer.in_full = false;
        if !(buffer.allocation && buffer.lsn.is_some()) {
            buffer.lsn = Some(lsn);
            self.ail.set(Kept::Buffer(key), lsn);
        }
    }

    /// Makes all that was committed durable.
    ///
    /// # Errors
    /// As [`Store::push`].
    pub fn sync(&mut self) -> Result<()> {
        self.push()
    }

    /// Writes everything to its place and ends the journal with an unmount record.
    ///
    /// # Errors
    /// `Io`, and `Usage` when an operation failed between two of its transactions: the journal is whole, and dirty.
    pub fn close(mut self) -> Result<()> {
        self.quiesce()?;
        if !self.ail.is_empty() {
            // who replays the journal finishes it
            return Err(Error::Usage("an operation was not finished: the journal is left dirty".to_owned()));
        }
        let counters = self.counters;
        if self.is_changed() {
            let mut transaction = self.begin(Reservation { ..self.reservations.sb }, 0)?;
            transaction.log_superblock(|superblock| {
                counters.store(superblock);
                // the log is empty: it holds nothing that only some readers know
                superblock.features_log_incompat.set(0);
            })?;
            transaction.commit()?;
            self.quiesce()?;
            self.log.write_unmount(self.log.head())?;
        }
        Ok(())
    }

    /// Whether anything was written since the filesystem was opened.
    fn is_changed(&self) -> bool {
        self.cil.sequence() > 1
    }

    /// Puts everything in its place: leaves nothing that only the log holds.
    ///
    /// # Errors
    /// As [`Store::push`].
    pub fn quiesce(&mut self) -> Result<()> {
        self.push()?;
        self.write_back(None)
    }
}
