//! The parts of an inode that many operations change.

use crate::error::{Error, FileError, Result};
use crate::geometry::Ino;
use crate::ondisk::log_inode::field;
use crate::ondisk::{OnDisk, RawDinode, RawDinodeCore};
use crate::transaction::Transaction;
use crate::volume::inodes;

/// Most links that an inode can have (`XFS_MAXLINK`).
const MAX_LINKS: u32 = (1 << 31) - 1;

/// Which times a change sets to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// That of the inode.
    Change,
    /// That of the contents, too.
    Contents,
}

/// Sets times to now.
pub(super) fn touch(tx: &mut Transaction<'_>, ino: Ino, what: Touch) -> Result<()> {
    change_core(tx, ino, |_| Ok(()), Some(what))
}

/// Changes the core of an inode and sets times to now.
pub(super) fn change_core(
    tx: &mut Transaction<'_>,
    ino: Ino,
    change: impl FnOnce(&mut RawDinodeCore) -> Result<()>,
    what: Option<Touch>,
) -> Result<()> {
    let now = tx.store().now();
    let bigtime = tx.inode(ino)?.raw().has_bigtime();
    tx.log_inode(ino, field::CORE, |bytes| {
        let defect = || Error::Internal("an inode has a core".to_owned());
        let (core, _) = RawDinodeCore::prefix_mut(bytes).ok_or_else(defect)?;
        change(core)?;
        if let Some(what) = what {
            core.ctime = now.encode(bigtime).ok_or(Error::File(FileError::Invalid))?;
            if what == Touch::Contents {
                core.mtime = core.ctime;
            }
        }
        count_change(bytes);
        Ok(())
    })
}

/// Version 3 counts the changes of an inode.
fn count_change(bytes: &mut [u8]) {
    if RawDinodeCore::prefix(bytes).is_some_and(|(core, _)| core.version == 3)
        && let Some((raw, _)) = RawDinode::prefix_mut(bytes)
    {
        raw.changecount.set(raw.changecount.get().wrapping_add(1));
    }
}

/// Adds a link (`xfs_bumplink`).
pub(super) fn bump_link(tx: &mut Transaction<'_>, ino: Ino) -> Result<()> {
    let links = tx.inode(ino)?.raw().links();
    if links >= MAX_LINKS {
        return Err(Error::File(FileError::TooManyLinks));
    }
    set_links(tx, ino, links + 1)
}

/// Takes a link away; an inode that has none left goes on an unlinked list (`xfs_droplink`).
pub(super) fn drop_link(tx: &mut Transaction<'_>, ino: Ino) -> Result<()> {
    let links = tx.inode(ino)?.raw().links().saturating_sub(1);
    set_links(tx, ino, links)?;
    if links == 0 { inodes::unlinked_add(tx, ino) } else { Ok(()) }
}

fn set_links(tx: &mut Transaction<'_>, ino: Ino, links: u32) -> Result<()> {
    let set = |core: &mut RawDinodeCore| {
        if core.version == 1 {
            // the old form has 16 bits for it
            core.metatype.set(u16::try_from(links).map_err(|_| Error::File(FileError::TooManyLinks))?);
        } else {
            core.nlink.set(links);
        }
        Ok(())
    };
    change_core(tx, ino, set, Some(Touch::Change))
}
