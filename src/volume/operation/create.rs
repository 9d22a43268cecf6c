//! Files, directories and symbolic links created, and links added (Linux `xfs_create`, `xfs_symlink`, `xfs_link`).

use super::inode_change::{Touch, bump_link, touch};
use super::volume::{Volume, check_name, find};
use crate::error::{Error, FileError, Result};
use crate::forms::{FileType, Inode};
use crate::geometry::Ino;
use crate::ondisk::dinode::flags;
use crate::transaction::Transaction;
use crate::volume::directory::{self, NewEntry};
use crate::volume::inodes::{self, NewInode};
use crate::volume::{attributes, symlink};

/// A file to be created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewFile {
    /// Type and access bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group; a directory with the setgid bit gives its own instead.
    pub gid: u32,
    /// Device number, for devices.
    pub rdev: u32,
    /// Whether attributes will follow: room for them is made at once.
    pub attributes: bool,
}

impl NewFile {
    fn inode(&self) -> NewInode {
        let NewFile { mode, uid, gid, rdev, attributes } = *self;
        NewInode { mode, uid, gid, rdev, attributes, unnamed: false }
    }
}

impl Volume {
    /// Creates a file or an empty directory.
    ///
    /// # Errors
    /// `File` when the name is there, or cannot be; `NoSpace`; `Corrupt`.
    pub fn create(&mut self, parent: Ino, name: &[u8], new: &NewFile) -> Result<Ino> {
        self.check_new(parent, name)?;
        let kind = FileType::from_mode(new.mode).ok_or(Error::File(FileError::Invalid))?;
        let reservations = self.store.reservations();
        let reservation = if kind == FileType::Directory { reservations.mkdir } else { reservations.create };
        let blocks = self.blocks.create(name.len());
        self.run(reservation, blocks, |tx| {
            let ino = inodes::create(tx, parent, &new.inode())?;
            add_child(tx, parent, name, ino, kind)?;
            Ok(ino)
        })
    }

    /// Creates a symbolic link.
    ///
    /// # Errors
    /// As [`Volume::create`].
    pub fn symlink(&mut self, parent: Ino, name: &[u8], target: &[u8], new: &NewFile) -> Result<Ino> {
        self.check_new(parent, name)?;
        let blocks =
            u64::try_from(target.len()).unwrap_or(u64::MAX).div_ceil(u64::from(self.store.geometry().blocksize));
        // headers may take a block more
        let blocks = self.blocks.symlink(name.len(), blocks + 1);
        self.run(self.store.reservations().symlink, blocks, |tx| {
            let ino = inodes::create(tx, parent, &new.inode())?;
            symlink::write_target(tx, ino, target)?;
            add_child(tx, parent, name, ino, FileType::Symlink)?;
            Ok(ino)
        })
    }

    /// Adds a link to a file that is no directory.
    ///
    /// # Errors
    /// As [`Volume::create`]; `File` for directories.
    pub fn link(&mut self, ino: Ino, parent: Ino, name: &[u8]) -> Result<()> {
        self.check_new(parent, name)?;
        let inode = self.file(ino)?;
        let kind = inode.file_type().ok_or(Error::File(FileError::NotFound))?;
        if kind == FileType::Directory {
            return Err(Error::File(FileError::NotPermitted));
        }
        check_project(&self.store.inode(parent)?, &inode)?;
        let unnamed = inode.raw().links() == 0;
        let blocks = self.blocks.link(name.len());
        self.run(self.store.reservations().link, blocks, |tx| {
            if unnamed {
                inodes::unlinked_remove(tx, ino)?;
            }
            enter(tx, parent, name, ino, kind)?;
            bump_link(tx, ino)?;
            attributes::parent_add(tx, ino, parent, name)
        })
    }

    fn check_new(&self, parent: Ino, name: &[u8]) -> Result<()> {
        check_name(name)?;
        match find(&self.store, parent, name)? {
            Some(_) => Err(Error::File(FileError::Exists)),
            None => Ok(()),
        }
    }
}

/// Files do not leave the project of a directory that hands its own down (`xfs_projid_differ`).
pub(super) fn check_project(parent: &Inode, inode: &Inode) -> Result<()> {
    let inherits = parent.raw().core.flags.get() & flags::PROJINHERIT != 0;
    if inherits && parent.raw().core.projid() != inode.raw().core.projid() {
        return Err(Error::File(FileError::OtherProject));
    }
    Ok(())
}

/// Names a new inode in its directory (`xfs_dir_create_child`).
fn add_child(tx: &mut Transaction<'_>, parent: Ino, name: &[u8], ino: Ino, kind: FileType) -> Result<()> {
    enter(tx, parent, name, ino, kind)?;
    if kind == FileType::Directory {
        directory::init(tx, ino, parent)?;
        bump_link(tx, parent)?;
    }
    attributes::parent_add(tx, ino, parent, name)
}

fn enter(tx: &mut Transaction<'_>, parent: Ino, name: &[u8], ino: Ino, kind: FileType) -> Result<()> {
    directory::add(tx, parent, &NewEntry { name, ino, ftype: kind.dir_ftype() })?;
    touch(tx, parent, Touch::Contents)
}
