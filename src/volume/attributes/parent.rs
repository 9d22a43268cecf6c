//! Parent pointers added, removed and replaced (Linux `libxfs/xfs_parent.c`). Their changes are always logged.

use zerocopy::IntoBytes;

use super::set::{Change, has_short, touch};
use super::short;
use super::wanted::Wanted;
use crate::error::{Check, Error, Result, Rule};
use crate::geometry::Ino;
use crate::ondisk::attr_short::ATTR_PARENT;
use crate::ondisk::log_attri::attri;
use crate::ondisk::parent::RawParentRec;
use crate::transaction::{AttributeChange, AttributeProgress, Deferred, Transaction};

/// The value of a parent pointer to a directory.
fn value(tx: &Transaction<'_>, parent: Ino) -> Result<Vec<u8>> {
    let generation = tx.inode(parent)?.raw().core.generation;
    Ok(RawParentRec { ino: parent.0.into(), generation }.as_bytes().to_vec())
}

fn has_parents(tx: &Transaction<'_>) -> bool {
    tx.store().geometry().features.has_parent()
}

fn wanted<'a>(tx: &Transaction<'_>, name: &'a [u8], value: &'a [u8]) -> Result<Wanted<'a>> {
    Wanted::new(tx.store().geometry(), ATTR_PARENT, name, value)
}

/// Notes in `child` that `parent` has an entry `name` for it, where the filesystem has parent pointers.
///
/// # Errors
/// `NoSpace`; `Corrupt` when the attributes are damaged.
pub fn parent_add(tx: &mut Transaction<'_>, child: Ino, parent: Ino, name: &[u8]) -> Result<()> {
    if !has_parents(tx) {
        return Ok(());
    }
    let value = value(tx, parent)?;
    let wanted = wanted(tx, name, &value)?;
    if has_short(tx, child)? && short::add(tx, child, &wanted, &value)? {
        return touch(tx, child);
    }
    defer(tx, child, name, &value, Change::Set, None);
    Ok(())
}

/// The entry has gone.
///
/// # Errors
/// As [`parent_add`]; `Corrupt` when the parent pointer is not there.
pub fn parent_remove(tx: &mut Transaction<'_>, child: Ino, parent: Ino, name: &[u8]) -> Result<()> {
    if !has_parents(tx) {
        return Ok(());
    }
    let value = value(tx, parent)?;
    if !has_short(tx, child)? {
        defer(tx, child, name, &value, Change::Remove, None);
        return Ok(());
    }
    let wanted = wanted(tx, name, &value)?;
    if short::remove(tx, child, &wanted, false)? {
        return Ok(());
    }
    Err(missing(tx, child)?)
}

fn missing(tx: &Transaction<'_>, child: Ino) -> Result<Error> {
    Ok(Error::corrupt(Check::new("parent_rec", "name", Rule::Mismatch), tx.inode(child)?.place.clone()))
}

/// The entry `name` of `parent` has become `new_name` of `new_parent`.
///
/// # Errors
/// As [`parent_remove`].
pub fn parent_replace(
    tx: &mut Transaction<'_>,
    child: Ino,
    parent: Ino,
    name: &[u8],
    new_parent: Ino,
    new_name: &[u8],
) -> Result<()> {
    if !has_parents(tx) {
        return Ok(());
    }
    let (old_value, new_value) = (value(tx, parent)?, value(tx, new_parent)?);
    if !has_short(tx, child)? {
        defer(tx, child, name, &old_value, Change::Replace, Some((new_name, &new_value)));
        return Ok(());
    }
    let old = wanted(tx, name, &old_value)?;
    if short::replace(tx, child, &old, new_name, &new_value)? {
        return Ok(());
    }
    if !short::remove(tx, child, &old, true)? {
        return Err(missing(tx, child)?);
    }
    parent_add(tx, child, new_parent, new_name)
}

fn defer(tx: &mut Transaction<'_>, child: Ino, name: &[u8], value: &[u8], change: Change, new: Option<(&[u8], &[u8])>) {
    let (new_name, new_value) = new.map_or((Vec::new(), Vec::new()), |(name, value)| (name.to_vec(), value.to_vec()));
    tx.defer(Deferred::Attribute(Box::new(AttributeChange {
        ino: child,
        op: match change {
            Change::Set => attri::PPTR_SET,
            Change::Remove => attri::PPTR_REMOVE,
            Change::Replace => attri::PPTR_REPLACE,
        },
        namespace: ATTR_PARENT,
        name: name.to_vec(),
        new_name,
        value: value.to_vec(),
        new_value,
        logged: true,
        progress: AttributeProgress::default(),
    })));
}
