//! Links moved to other names (Linux `xfs_rename`, `xfs_dir_rename_children`).

use super::create::check_project;
use super::inode_change::{Touch, bump_link, drop_link, touch};
use super::remove::check_empty;
use super::volume::{Volume, check_name, find};
use crate::error::{Error, FileError, Result};
use crate::forms::FileType;
use crate::geometry::Ino;
use crate::transaction::Transaction;
use crate::volume::attributes;
use crate::volume::directory::{self, NewEntry};

/// A link that is to be moved.
struct Move<'a> {
    from: (Ino, &'a [u8]),
    to: (Ino, &'a [u8]),
    ino: Ino,
    kind: FileType,
    /// The file that has the new name until now.
    replaced: Option<Ino>,
}

impl Volume {
    /// Moves a link. A file that has the new name already loses it, if it is of the same kind; a directory must be empty.
    ///
    /// # Errors
    /// `File` when there is no such name, or the move cannot be; `NoSpace`; `Corrupt`.
    pub fn rename(&mut self, parent: Ino, name: &[u8], new_parent: Ino, new_name: &[u8]) -> Result<()> {
        check_name(name)?;
        check_name(new_name)?;
        let ino = find(&self.store, parent, name)?.ok_or(Error::File(FileError::NotFound))?.ino;
        let inode = self.file(ino)?;
        let kind = inode.file_type().ok_or(Error::File(FileError::NotFound))?;
        let replaced = find(&self.store, new_parent, new_name)?.map(|found| found.ino);
        if replaced == Some(ino) {
            // two names of one file: POSIX leaves them both
            return Ok(());
        }
        check_project(&self.store.inode(new_parent)?, &inode)?;
        if kind == FileType::Directory {
            self.check_not_below(ino, new_parent)?;
        }
        if let Some(target) = replaced {
            self.check_replaced(kind, target)?;
        }
        let blocks = self.blocks.rename(new_name.len(), replaced.is_some());
        let step = Move { from: (parent, name), to: (new_parent, new_name), ino, kind, replaced };
        self.run(self.store.reservations().rename, blocks, |tx| step.carry_out(tx))?;
        match replaced {
            Some(target) => self.release_unlinked(target),
            None => Ok(()),
        }
    }

    fn check_replaced(&self, kind: FileType, target: Ino) -> Result<()> {
        let is_directory = self.file(target)?.file_type() == Some(FileType::Directory);
        match (kind == FileType::Directory, is_directory) {
            (true, false) => Err(Error::File(FileError::NotADirectory)),
            (false, true) => Err(Error::File(FileError::IsADirectory)),
            (true, true) => check_empty(&self.store, target),
            (false, false) => Ok(()),
        }
    }

    /// A directory cannot be moved below itself.
    fn check_not_below(&self, ino: Ino, dir: Ino) -> Result<()> {
        let mut at = dir;
        // no path is deeper than there are inodes
        for _ in 0..self.store.counters().icount {
            if at == ino {
                return Err(Error::File(FileError::Invalid));
            }
            if at == self.root() {
                return Ok(());
            }
            at = find(&self.store, at, b"..")?.ok_or(Error::File(FileError::NotFound))?.ino;
        }
        Err(Error::File(FileError::Invalid))
    }
}

impl Move<'_> {
    fn carry_out(&self, tx: &mut Transaction<'_>) -> Result<()> {
        let ((parent, name), (new_parent, new_name)) = (self.from, self.to);
        let is_directory = self.kind == FileType::Directory;
        let across = parent != new_parent;
        let entry = NewEntry { name: new_name, ino: self.ino, ftype: self.kind.dir_ftype() };
        match self.replaced {
            None => {
                directory::add(tx, new_parent, &entry)?;
                touch(tx, new_parent, Touch::Contents)?;
                if across && is_directory {
                    bump_link(tx, new_parent)?;
                }
            }
            Some(target) => {
                directory::replace(tx, new_parent, &entry)?;
                touch(tx, new_parent, Touch::Contents)?;
                drop_link(tx, target)?;
                if is_directory {
                    drop_link(tx, target)?;
                }
            }
        }
        if across && is_directory {
            let up = NewEntry { name: b"..", ino: new_parent, ftype: FileType::Directory.dir_ftype() };
            directory::replace(tx, self.ino, &up)?;
        }
        touch(tx, self.ino, Touch::Change)?;
        if is_directory && (across || self.replaced.is_some()) {
            drop_link(tx, parent)?;
        }
        directory::remove(tx, parent, name)?;
        touch(tx, parent, Touch::Contents)?;
        attributes::parent_replace(tx, self.ino, parent, name, new_parent, new_name)?;
        match self.replaced {
            Some(target) => attributes::parent_remove(tx, target, new_parent, new_name),
            None => Ok(()),
        }
    }
}
