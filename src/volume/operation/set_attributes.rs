//! Owner, mode, times and extended attributes of a file set (Linux `xfs_setattr_nonsize`, `xfs_attr_set`).

use super::inode_change::{Touch, change_core, touch};
use super::volume::Volume;
use crate::error::{Error, FileError, Result};
use crate::geometry::Ino;
use crate::ondisk::attr_short::RawAttrSfHdr;
use crate::ondisk::timestamp::Timestamp;
use crate::ondisk::{OnDisk, RawDinodeCore};
use crate::volume::attributes::{self, AttributeName};

/// Bits of the mode that are not the type.
const PERMISSIONS: u16 = 0o7777;
/// Bytes of an attribute in short form before its name.
const SHORT_ENTRY: usize = 3;

/// What is to be set; `None` leaves it as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// Access bits, with setuid, setgid and sticky.
    pub permissions: Option<u16>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Project.
    pub project: Option<u32>,
    /// Time of last access.
    pub atime: Option<Timestamp>,
    /// Time of last change of the contents.
    pub mtime: Option<Timestamp>,
}

impl Volume {
    /// Sets properties of a file.
    ///
    /// # Errors
    /// `File` when the file cannot hold such a time; `Corrupt`.
    pub fn set_properties(&mut self, ino: Ino, properties: &Properties) -> Result<()> {
        let bigtime = self.file(ino)?.raw().has_bigtime();
        let encode = |time: Timestamp| time.encode(bigtime).ok_or(Error::File(FileError::Invalid));
        let apply = |core: &mut RawDinodeCore| {
            if let Some(permissions) = properties.permissions {
                core.mode.set(core.mode.get() & !PERMISSIONS | permissions & PERMISSIONS);
            }
            properties.uid.into_iter().for_each(|uid| core.uid.set(uid));
            properties.gid.into_iter().for_each(|gid| core.gid.set(gid));
            properties.project.into_iter().for_each(|project| core.set_projid(project));
            if let Some(time) = properties.atime {
                core.atime = encode(time)?;
            }
            if let Some(time) = properties.mtime {
                core.mtime = encode(time)?;
            }
            Ok(())
        };
        self.run(self.store.reservations().ichange, 0, |tx| change_core(tx, ino, apply, Some(Touch::Change)))
    }

    /// Logs changes of attributes as intents from now on, as Linux does when it is told to (`larp`).
    ///
    /// # Errors
    /// As [`attributes::enable_logging`].
    pub fn log_attributes(&mut self) -> Result<()> {
        attributes::enable_logging(&mut self.store)
    }

    /// Sets an extended attribute, whether it is there or not.
    ///
    /// # Errors
    /// `Usage` for a name or value that is too long; `NoSpace`; `Corrupt`.
    pub fn set_attribute(&mut self, ino: Ino, name: &AttributeName<'_>, value: &[u8]) -> Result<()> {
        let inode = self.file(ino)?;
        if inode.raw().core.forkoff == 0 {
            let size = RawAttrSfHdr::SIZE + SHORT_ENTRY + name.name.len() + value.len();
            let blocks = self.blocks.add_attribute_fork();
            self.run(self.store.reservations().addafork, blocks, |tx| attributes::add_fork(tx, ino, size))?;
        }
        let (reservation, blocks) = attributes::set_reservation(&self.store, name.name.len(), value.len());
        self.run(reservation, blocks, |tx| {
            attributes::set(tx, ino, name, value)?;
            touch(tx, ino, Touch::Change)
        })
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// `File` when it is not there; `Corrupt`.
    pub fn remove_attribute(&mut self, ino: Ino, name: &AttributeName<'_>) -> Result<()> {
        self.file(ino)?;
        let blocks = self.blocks.attribute_remove();
        let removed = self.run(self.store.reservations().attrrm, blocks, |tx| {
            let removed = attributes::remove(tx, ino, name)?;
            if removed {
                touch(tx, ino, Touch::Change)?;
            }
            Ok(removed)
        })?;
        if removed { Ok(()) } else { Err(Error::File(FileError::NoAttribute)) }
    }
}
