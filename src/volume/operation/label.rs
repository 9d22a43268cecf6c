//! The label of the filesystem (Linux `xfs_ioc_setlabel`).

use super::volume::Volume;
use crate::error::{Error, FileError, Result};

/// Bytes of a label.
const LENGTH: usize = 12;

impl Volume {
    /// Sets the label: in the primary superblock through the journal, then in its copies.
    ///
    /// # Errors
    /// `File` when it is longer than 12 bytes; `Io`.
    pub fn set_label(&mut self, label: &[u8]) -> Result<()> {
        if label.len() > LENGTH || label.contains(&0) {
            return Err(Error::File(FileError::Invalid));
        }
        let mut name = [0; LENGTH];
        name[..label.len()].copy_from_slice(label);
        self.run(self.store.reservations().sb, 0, |tx| tx.log_superblock(|superblock| superblock.fname = name))?;
        self.store.sync()?;
        self.store.write_superblock_copies(|superblock| superblock.fname = name)
    }
}
