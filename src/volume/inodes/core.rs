//! The core of an inode changed in place.

use zerocopy::{FromZeros, IntoBytes};

use crate::error::{Error, Result};
use crate::geometry::Ino;
use crate::ondisk::{OnDisk, RawDinode, RawDinodeCore};
use crate::transaction::Transaction;

/// Changes an inode: `change` gets its core, whatever its version, and the literal area with the forks. `fields` names the
/// parts of the forks that change ([`crate::ondisk::log_inode::field`]).
///
/// # Errors
/// As [`Transaction::log_inode`]; those of `change`.
pub fn change(
    tx: &mut Transaction<'_>,
    ino: Ino,
    fields: u32,
    change: impl FnOnce(&mut RawDinode, &mut [u8]) -> Result<()>,
) -> Result<()> {
    tx.log_inode(ino, fields, |bytes| {
        let cut = || Error::Internal("an inode is shorter than its core".to_owned());
        let len = RawDinodeCore::prefix(bytes).ok_or_else(cut)?.0.literal_offset();
        let (head, literal) = bytes.split_at_mut_checked(len).ok_or_else(cut)?;
        let mut raw = RawDinode::new_zeroed();
        raw.as_mut_bytes()[..len].copy_from_slice(head);
        change(&mut raw, literal)?;
        head.copy_from_slice(&raw.as_bytes()[..len]);
        Ok(())
    })
}
