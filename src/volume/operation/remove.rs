//! Links and directories removed, and what no link leads to any more freed (Linux `xfs_remove`, `xfs_inactive`).

use super::inode_change::{Touch, change_core, drop_link, touch};
use super::volume::{Volume, find};
use crate::buffer::BlockKind;
use crate::error::{Error, FileError, Result};
use crate::forms::{BlockSource, Directory, FileType, ForkForm, ForkKind, map_file_block, request_of};
use crate::geometry::{FileBlock, Ino};
use crate::transaction::{Store, Transaction};
use crate::volume::directory::{self, NewEntry};
use crate::volume::{attributes, inodes, mapping, symlink};

impl Volume {
    /// Removes a link; the file goes with its last one.
    ///
    /// # Errors
    /// `File` when the name is not there, or names a directory; `Corrupt`.
    pub fn unlink(&mut self, parent: Ino, name: &[u8]) -> Result<()> {
        self.remove(parent, name, false)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `File` when the name is not there, or names no directory, or one that is not empty; `Corrupt`.
    pub fn rmdir(&mut self, parent: Ino, name: &[u8]) -> Result<()> {
        self.remove(parent, name, true)
    }

    fn remove(&mut self, parent: Ino, name: &[u8], directory: bool) -> Result<()> {
        if name == b"." || name == b".." {
            return Err(Error::File(FileError::Invalid));
        }
        let found = find(&self.store, parent, name)?.ok_or(Error::File(FileError::NotFound))?;
        let ino = found.ino;
        let is_directory = self.file(ino)?.file_type() == Some(FileType::Directory);
        match (is_directory, directory) {
            (true, false) => return Err(Error::File(FileError::IsADirectory)),
            (false, true) => return Err(Error::File(FileError::NotADirectory)),
            (true, true) => check_empty(&self.store, ino)?,
            (false, false) => {}
        }
        let root = self.root();
        let blocks = self.blocks.remove(name.len());
        // a full volume must let files go: what a directory then cannot give back it keeps
        let blocks = if self.store.available_blocks() < blocks { 0 } else { blocks };
        self.run(self.store.reservations().remove, blocks, |tx| {
            if is_directory {
                drop_link(tx, parent)?;
                drop_link(tx, ino)?;
                if parent != root {
                    let up = NewEntry { name: b"..", ino: root, ftype: FileType::Directory.dir_ftype() };
                    directory::replace(tx, ino, &up)?;
                }
            }
            touch(tx, parent, Touch::Contents)?;
            drop_link(tx, ino)?;
            directory::remove(tx, parent, name)?;
            attributes::parent_remove(tx, ino, parent, name)
        })?;
        self.release_unlinked(ino)
    }

    /// Frees a file that no link leads to.
    pub(super) fn release_unlinked(&mut self, ino: Ino) -> Result<()> {
        let inode = self.file(ino)?;
        if inode.raw().links() > 0 {
            return Ok(());
        }
        if inode.file_type() == Some(FileType::Symlink) {
            if inode.fork(ForkKind::Data)?.is_some_and(|fork| !matches!(fork.form, ForkForm::Local(_))) {
                self.run(self.store.reservations().itruncate, 0, |tx| symlink::remove_target(tx, ino))?;
            }
        } else {
            self.truncate_unlinked(ino)?;
        }
        if inode.raw().core.forkoff != 0 {
            attributes::release(&mut self.store, ino)?;
        }
        self.run(self.store.reservations().ifree, 0, |tx| inodes::free(tx, ino))
    }

    /// Takes all blocks from a file or directory that no link leads to.
    fn truncate_unlinked(&mut self, ino: Ino) -> Result<()> {
        let inode = self.store.inode(ino)?;
        if mapping::last_block(&self.store, &inode, ForkKind::Data)? == FileBlock(0) && inode.size() == 0 {
            return Ok(());
        }
        let mut tx = self.begin(self.store.reservations().itruncate, 0)?;
        if inode.file_type() == Some(FileType::Directory) {
            invalidate_directory(&mut tx, ino)?;
        }
        if !matches!(inode.fork(ForkKind::Data)?.map(|fork| fork.form), Some(ForkForm::Local(_))) {
            change_core(
                &mut tx,
                ino,
                |core| {
                    core.size.set(0);
                    Ok(())
                },
                None,
            )?;
            mapping::truncate(&mut tx, ino, ForkKind::Data, FileBlock(0))?;
        }
        crate::volume::finish::finish(tx)
    }
}

/// The journal must not bring back the blocks of a directory that is freed (`xfs_inactive_dir`).
fn invalidate_directory(tx: &mut Transaction<'_>, ino: Ino) -> Result<()> {
    let inode = tx.inode(ino)?;
    let Some(fork) = inode.fork(ForkKind::Data)? else { return Ok(()) };
    if !matches!(fork.form, ForkForm::Extents(_) | ForkForm::Btree(_)) {
        return Ok(());
    }
    let unit = u64::from(tx.geometry().directory.fsbcount);
    let mut requests = Vec::new();
    for extent in fork.extents(tx) {
        let extent = extent?;
        let end = extent.startoff + u64::from(extent.blockcount);
        for at in (extent.startoff.next_multiple_of(unit)..end).step_by(usize::try_from(unit).unwrap_or(1)) {
            let pieces =
                map_file_block(tx, &fork, FileBlock(at), tx.geometry().directory.fsbcount)?.unwrap_or_default();
            requests.push(request_of(tx.geometry(), BlockKind::DirData, ino, &pieces)?);
        }
    }
    requests.iter().for_each(|request| tx.invalidate(request));
    Ok(())
}

/// Refuses a directory with entries.
pub(super) fn check_empty(store: &Store, ino: Ino) -> Result<()> {
    let inode = store.inode(ino)?;
    let mut entries = false;
    let mut damage = None;
    Directory::open(store, &inode)?.for_each(&mut |entry| {
        match entry {
            Ok(entry) => entries |= entry.name != b"." && entry.name != b"..",
            Err(error) => damage = Some(error),
        }
        if entries { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    });
    match (entries, damage) {
        (true, _) => Err(Error::File(FileError::NotEmpty)),
        (false, Some(error)) => Err(error),
        (false, None) => Ok(()),
    }
}
