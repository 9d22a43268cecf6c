//! Attributes in the inode.

use super::fork::{may_lose_fork, offset_for, remove_fork, store_short};
use super::wanted::Wanted;
use crate::error::{Error, Result};
use crate::forms::{ForkForm, ForkKind, Inode};
use crate::geometry::Ino;
use crate::ondisk::attr_short::{AttrSfEntry, AttrShort, encode};
use crate::transaction::Transaction;

/// Names and values from this length on have no place in short form, which has 8 bits for their lengths.
pub(super) const LONGEST: usize = 256 - 1;

/// The attributes in the inode; none when the fork is empty.
pub(super) fn entries(inode: &Inode) -> Result<Vec<AttrSfEntry<'_>>> {
    let Some(fork) = inode.fork(ForkKind::Attr)? else { return Ok(Vec::new()) };
    let ForkForm::Local(bytes) = fork.form else { return Ok(Vec::new()) };
    let broken = |check| Error::corrupt(check, inode.place.clone());
    AttrShort::decode(bytes).map_err(broken)?.entries().map(|entry| entry.map_err(broken)).collect()
}

fn store(tx: &mut Transaction<'_>, inode: &Inode, entries: &[AttrSfEntry<'_>]) -> Result<bool> {
    let Some(short) = encode(entries) else { return Ok(false) };
    let Some(forkoff) = offset_for(tx.store().geometry(), inode, short.len())? else { return Ok(false) };
    store_short(tx, inode.ino, forkoff, &short)?;
    Ok(true)
}

/// Adds an attribute. `false`, and nothing has changed, when it does not fit the inode.
pub(super) fn add(tx: &mut Transaction<'_>, ino: Ino, wanted: &Wanted<'_>, value: &[u8]) -> Result<bool> {
    if wanted.name.len() >= LONGEST || value.len() >= LONGEST {
        return Ok(false);
    }
    let inode = tx.inode(ino)?;
    let mut entries = entries(&inode)?;
    entries.push(AttrSfEntry { flags: wanted.namespace, name: wanted.name, value });
    store(tx, &inode, &entries)
}

/// Takes an attribute out; with the last one the fork goes, unless another attribute is to follow. `false` when it is not
/// there.
pub(super) fn remove(tx: &mut Transaction<'_>, ino: Ino, wanted: &Wanted<'_>, keep_fork: bool) -> Result<bool> {
    let inode = tx.inode(ino)?;
    let mut entries = entries(&inode)?;
    let Some(at) = wanted.position_in_short(&entries) else { return Ok(false) };
    entries.remove(at);
    if entries.is_empty() && !keep_fork && may_lose_fork(tx, &inode) {
        remove_fork(tx, ino)?;
    } else if !store(tx, &inode, &entries)? {
        return Err(Error::Internal("attributes that became fewer fit their inode".to_owned()));
    }
    Ok(true)
}

/// Gives an attribute another value and, if it is a parent pointer, another name, of the same lengths. `false`, and nothing
/// has changed, when the lengths differ.
pub(super) fn replace(
    tx: &mut Transaction<'_>,
    ino: Ino,
    wanted: &Wanted<'_>,
    name: &[u8],
    value: &[u8],
) -> Result<bool> {
    let inode = tx.inode(ino)?;
    let mut entries = entries(&inode)?;
    let Some(at) = wanted.position_in_short(&entries) else { return Ok(false) };
    if entries[at].name.len() != name.len() || entries[at].value.len() != value.len() {
        return Ok(false);
    }
    (entries[at].name, entries[at].value) = (name, value);
    store(tx, &inode, &entries)
}
