//! A filesystem opened for operations on its files.

use crate::error::{Error, FileError, Result};
use crate::forms::{Directory, FileType, Found, Inode};
use crate::geometry::reservation::Reservation;
use crate::geometry::{BlockReservations, Ino};
use crate::image::ImageDevices;
use crate::ondisk::dir_data::MAXNAMELEN;
use crate::ondisk::feature_bits::qflags;
use crate::transaction::{Store, StoreOptions, Transaction};
use crate::volume::{finish, space};

/// The bits that say that the counts of quotas are right.
const CHECKED: u16 = qflags::UQUOTA_CHKD | qflags::GQUOTA_CHKD | qflags::PQUOTA_CHKD | qflags::OQUOTA_CHKD;

/// A filesystem opened for operations on its files.
pub struct Volume {
    pub(super) store: Store,
    pub(super) blocks: BlockReservations,
    /// Quotas are on, and the superblock still says that their counts are right.
    quotas_checked: bool,
}

impl Volume {
    /// Opens the filesystem on `devices`.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn open(devices: ImageDevices, options: StoreOptions) -> Result<Self> {
        let mut store = Store::open(devices, options)?;
        space::hold_reserves(&mut store)?;
        let blocks = BlockReservations::new(store.geometry());
        let quotas_checked = store.superblock().qflags.get() & CHECKED != 0;
        Ok(Volume { store, blocks, quotas_checked })
    }

    /// The filesystem underneath: a [`crate::forms::BlockSource`] that sees all changes.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The root directory.
    pub fn root(&self) -> Ino {
        self.store.geometry().rootino
    }

    /// Makes all that was done durable.
    ///
    /// # Errors
    /// `Io`.
    pub fn sync(&mut self) -> Result<()> {
        self.store.sync()
    }

    /// Puts everything in its place and leaves a clean journal.
    ///
    /// # Errors
    /// `Io`.
    pub fn close(self) -> Result<()> {
        self.store.close()
    }

    /// Runs an operation of one chain of transactions, from the first of them to the last of what it defers. If there was no
    /// room, and blocks wait for the journal to be written before they can be used again, it is tried once more after that.
    pub(super) fn run<T>(
        &mut self,
        reservation: Reservation,
        blocks: u64,
        mut operation: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        match self.attempt(reservation, blocks, &mut operation) {
            Err(Error::NoSpace(_)) if self.store.groups().iter().any(|group| group.busy.blocks() > 0) => {
                self.store.push()?;
                self.attempt(reservation, blocks, &mut operation)
            }
            result => result,
        }
    }

    fn attempt<T>(
        &mut self,
        reservation: Reservation,
        blocks: u64,
        operation: &mut impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut transaction = self.begin(reservation, blocks)?;
        let value = operation(&mut transaction)?;
        finish::finish(transaction)?;
        Ok(value)
    }

    /// Begins a transaction. The first one says that the counts of quotas are not right any more: the next mount with quotas
    /// counts anew what each user has (`xfs_qm_quotacheck`).
    pub(super) fn begin(&mut self, reservation: Reservation, blocks: u64) -> Result<Transaction<'_>> {
        if std::mem::take(&mut self.quotas_checked) {
            let mut transaction = self.store.begin(self.store.reservations().sb, 0)?;
            let flags = transaction.store().superblock().qflags.get() & !CHECKED;
            transaction.log_superblock(|superblock| superblock.qflags.set(flags))?;
            transaction.commit()?;
        }
        self.store.begin(reservation, blocks)
    }

    /// What `name` in a directory leads to.
    ///
    /// # Errors
    /// `File` when `dir` is no directory; `Corrupt` when it is damaged.
    pub fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Option<Ino>> {
        Ok(find(&self.store, dir, name)?.map(|found| found.ino))
    }

    /// An inode that is in use.
    pub(super) fn file(&self, ino: Ino) -> Result<Inode> {
        let inode = self.store.inode(ino)?;
        if inode.file_type().is_none() { Err(Error::File(FileError::NotFound)) } else { Ok(inode) }
    }
}

/// The entry `name` of a directory.
pub(super) fn find(store: &Store, dir: Ino, name: &[u8]) -> Result<Option<Found>> {
    let inode = store.inode(dir)?;
    if inode.file_type() != Some(FileType::Directory) {
        return Err(Error::File(FileError::NotADirectory));
    }
    Directory::open(store, &inode)?.lookup(name)
}

/// Refuses names that no entry can have.
pub(super) fn check_name(name: &[u8]) -> Result<()> {
    if name.len() > MAXNAMELEN {
        return Err(Error::File(FileError::NameTooLong));
    }
    if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') || name.contains(&0) {
        return Err(Error::File(FileError::Invalid));
    }
    Ok(())
}
