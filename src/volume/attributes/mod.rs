//! Extended attributes set and removed, in every form, and parent pointers, which are attributes (Linux `libxfs/xfs_attr.c`
//! and the files beside it, `libxfs/xfs_parent.c`).

use crate::error::{Error, Result};
use crate::geometry::Ino;
use crate::geometry::reservation::Reservation;
use crate::ondisk::attr_short::AttrNamespace;
use crate::transaction::{AttributeChange, Store, Transaction};

/// An attribute's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeName<'a> {
    /// Namespace.
    pub namespace: AttrNamespace,
    /// The name in it.
    pub name: &'a [u8],
}

/// Gives an inode an attribute fork, if it has none, with room for attributes of `size` bytes in short form if that can be
/// (`xfs_bmap_add_attrfork`): a transaction of its own comes before the one that sets the first attribute.
///
/// # Errors
/// `NoSpace`; `Corrupt` when the inode is damaged.
pub fn add_fork(_tx: &mut Transaction<'_>, _ino: Ino, _size: usize) -> Result<()> {
    Err(Error::Unsupported("attributes".to_owned()))
}

/// What the transaction that sets an attribute reserves: log space, and blocks.
pub fn set_reservation(_store: &Store, _namelen: usize, _valuelen: usize) -> (Reservation, u64) {
    (Reservation { logres: 0, logcount: 1, permanent: true }, 0)
}

/// Sets an attribute to a value, whether it is there or not. The inode has an attribute fork. What does not go at once is
/// deferred. The time of change is set.
///
/// # Errors
/// `Usage` for a name or value that is too long; `NoSpace`; `Corrupt` when the attributes are damaged.
pub fn set(_tx: &mut Transaction<'_>, _ino: Ino, _name: &AttributeName<'_>, _value: &[u8]) -> Result<()> {
    Err(Error::Unsupported("attributes".to_owned()))
}

/// Removes an attribute; what does not go at once is deferred. `false` when it is not there.
///
/// # Errors
/// As [`set`].
pub fn remove(_tx: &mut Transaction<'_>, _ino: Ino, _name: &AttributeName<'_>) -> Result<bool> {
    Err(Error::Unsupported("attributes".to_owned()))
}

/// Takes a deferred change one transaction further (`xfs_attr_set_iter`). `true` when it is done; else the transaction is to
/// be rolled, with a new intent for what is left if the change is logged.
///
/// # Errors
/// As [`set`].
pub fn step(_tx: &mut Transaction<'_>, _change: &mut AttributeChange) -> Result<bool> {
    Err(Error::Unsupported("attributes".to_owned()))
}

/// Frees all blocks of the attribute fork of an inode that is about to be freed, in transactions of their own, and the fork
/// (`xfs_attr_inactive`).
///
/// # Errors
/// `Corrupt` when the attributes are damaged; `Io`.
pub fn release(_store: &mut Store, _ino: Ino) -> Result<()> {
    Err(Error::Unsupported("attributes".to_owned()))
}

/// Notes in `child` that `parent` has an entry `name` for it.
///
/// # Errors
/// As [`set`].
pub fn parent_add(_tx: &mut Transaction<'_>, _child: Ino, _parent: Ino, _name: &[u8]) -> Result<()> {
    Err(Error::Unsupported("attributes".to_owned()))
}

/// The entry has gone.
///
/// # Errors
/// As [`set`]; `Corrupt` when the parent pointer is not there.
pub fn parent_remove(_tx: &mut Transaction<'_>, _child: Ino, _parent: Ino, _name: &[u8]) -> Result<()> {
    Err(Error::Unsupported("attributes".to_owned()))
}

/// The entry `name` of `parent` has become `new_name` of `new_parent`.
///
/// # Errors
/// As [`parent_remove`].
pub fn parent_replace(
    _tx: &mut Transaction<'_>,
    _child: Ino,
    _parent: Ino,
    _name: &[u8],
    _new_parent: Ino,
    _new_name: &[u8],
) -> Result<()> {
    Err(Error::Unsupported("attributes".to_owned()))
}
