//! A change of an attribute, one transaction after the other (`xfs_attr_set_iter`).
//!
//! Each call makes what Linux makes in one transaction, so that a change that is logged has as many intents as there.

use super::leaf::{self, NewAttribute, is_local};
use super::tree::{self, Form};
use super::wanted::Wanted;
use super::{remote, short};
use crate::error::{Check, Error, Result, Rule};
use crate::geometry::Ino;
use crate::ondisk::attr_leaf::{AttrLeafName, AttrLeafValue};
use crate::ondisk::attr_short::ATTR_INCOMPLETE;
use crate::ondisk::log_attri::attri;
use crate::transaction::{AttributeChange, Transaction};
use crate::volume::da_btree::DaFile;

/// What comes next; the values of `AttributeProgress::state`.
mod state {
    pub(super) const START: u32 = 0;
    pub(super) const ADD_SHORT: u32 = 1;
    pub(super) const ADD_LEAF: u32 = 2;
    pub(super) const ADD_NODE: u32 = 3;
    pub(super) const REMOVE_SHORT: u32 = 4;
    pub(super) const REMOVE_LEAF: u32 = 5;
    pub(super) const REMOVE_NODE: u32 = 6;
    pub(super) const FIND_SPACE: u32 = 7;
    pub(super) const ALLOCATE: u32 = 8;
    pub(super) const FLIP: u32 = 9;
    pub(super) const REMOVE_OLD: u32 = 10;
    pub(super) const FREE_VALUE: u32 = 11;
    pub(super) const REMOVE_ENTRY: u32 = 12;
    pub(super) const DONE: u32 = 13;
}

/// Takes a deferred change one transaction further. `true` when it is done; else the transaction is to be rolled, with a new
/// intent for what is left if the change is logged.
///
/// # Errors
/// `NoSpace`; `Usage` when an attribute to be replaced or removed is not there; `Corrupt` when the attributes are damaged.
pub fn step(tx: &mut Transaction<'_>, change: &mut AttributeChange) -> Result<bool> {
    if change.progress.state == state::START {
        change.progress.state = first_state(tx, change)?;
    }
    loop {
        let now = change.progress.state;
        let goes_on = match now {
            state::ADD_SHORT => add_short(tx, change)?,
            state::ADD_LEAF | state::ADD_NODE => add_leaf(tx, change)?,
            state::REMOVE_SHORT => remove_short(tx, change)?,
            state::REMOVE_LEAF => remove_leaf(tx, change)?,
            state::REMOVE_NODE => hide(tx, change)?,
            state::FIND_SPACE => {
                let len = change.current_value().len();
                remote::find_space(tx, change.ino, len, &mut change.progress)?;
                change.progress.state = state::ALLOCATE;
                true
            }
            state::ALLOCATE => allocate(tx, change)?,
            state::FLIP => flip(tx, change)?,
            state::REMOVE_OLD => {
                let is_remote = change.progress.remote_left > 0;
                change.progress.state = if is_remote { state::FREE_VALUE } else { state::REMOVE_ENTRY };
                true
            }
            state::FREE_VALUE => {
                if remote::free(tx, change.ino, &mut change.progress)? {
                    change.progress.state = state::REMOVE_ENTRY;
                }
                false
            }
            state::REMOVE_ENTRY => remove_entry(tx, change)?,
            _ => false,
        };
        if !goes_on || change.progress.state == state::DONE {
            return Ok(change.progress.state == state::DONE);
        }
    }
}

fn first_state(tx: &Transaction<'_>, change: &mut AttributeChange) -> Result<u32> {
    let add = add_state(tx, change.ino)?;
    match change.op & attri::TYPE_MASK {
        attri::SET | attri::PPTR_SET => Ok(add),
        attri::REMOVE | attri::PPTR_REMOVE => remove_state(tx, change.ino),
        attri::REPLACE | attri::PPTR_REPLACE => {
            change.progress.replacing = true;
            // with an intent in the log, the old one can be removed first
            if change.logged { remove_state(tx, change.ino) } else { Ok(add) }
        }
        other => Err(Error::Internal(format!("a change of an attribute of kind {other}"))),
    }
}

fn add_state(tx: &Transaction<'_>, ino: Ino) -> Result<u32> {
    Ok(match tree::form(&tx.inode(ino)?)? {
        // a removal took the fork with it
        Form::None => state::DONE,
        Form::Short => state::ADD_SHORT,
        Form::Leaf => state::ADD_LEAF,
        Form::Node => state::ADD_NODE,
    })
}

fn remove_state(tx: &Transaction<'_>, ino: Ino) -> Result<u32> {
    Ok(match tree::form(&tx.inode(ino)?)? {
        Form::None => state::DONE,
        Form::Short => state::REMOVE_SHORT,
        Form::Leaf => state::REMOVE_LEAF,
        Form::Node => state::REMOVE_NODE,
    })
}

/// The attribute that the change names.
fn wanted<'a>(tx: &Transaction<'_>, change: &'a AttributeChange) -> Result<Wanted<'a>> {
    Wanted::new(tx.store().geometry(), change.namespace, change.current_name(), change.current_value())
}

fn missing(change: &AttributeChange) -> Error {
    let name = String::from_utf8_lossy(change.current_name()).into_owned();
    Error::Usage(format!("inode {} has no attribute {name:?}", change.ino))
}

fn broken(tx: &Transaction<'_>, ino: Ino, rule: Rule) -> Result<Error> {
    Ok(Error::corrupt(Check::new("attr_leaf", "flags", rule), tx.inode(ino)?.place.clone()))
}

/// The first half is done: a replacement goes on with `next`, anything else is at its end (`xfs_attr_complete_op`).
fn complete(change: &mut AttributeChange, next: u32) {
    let replacing = std::mem::take(&mut change.progress.replacing);
    if replacing && change.op & attri::TYPE_MASK == attri::PPTR_REPLACE {
        change.progress.renamed = true;
    }
    change.progress.state = if replacing { next } else { state::DONE };
}

fn add_short(tx: &mut Transaction<'_>, change: &mut AttributeChange) -> Result<bool> {
    let wanted = wanted(tx, change)?;
    if change.progress.replacing && short::remove(tx, change.ino, &wanted, true)? {
        change.progress.replacing = false;
    }
    let wanted = self::wanted(tx, change)?;
    if short::add(tx, change.ino, &wanted, change.current_value())? {
        change.progress.state = state::DONE;
    } else {
        tree::from_short(tx, change.ino)?;
        change.progress.state = state::ADD_LEAF;
    }
    Ok(false)
}

fn add_leaf(tx: &mut Transaction<'_>, change: &mut AttributeChange) -> Result<bool> {
    let wanted = wanted(tx, change)?;
    let local = is_local(tx.store().geometry(), change.current_name().len(), change.current_value().len());
    let mut file = DaFile::attributes(tx, change.ino);
    if tree::find(&mut file, &wanted, false)?.is_some() != change.progress.replacing {
        return Err(if change.progress.replacing { missing(change) } else { exists(change) });
    }
    let hidden = !local || change.progress.replacing && !change.logged;
    let value = if local {
        AttrLeafValue::Local(change.current_value())
    } else {
        AttrLeafValue::Remote { valueblk: 0, valuelen: 0 }
    };
    let new = NewAttribute {
        hash: wanted.hash,
        flags: wanted.namespace | if hidden { ATTR_INCOMPLETE } else { 0 },
        name: AttrLeafName { name: wanted.name, value },
    };
    if !tree::add(&mut file, &new)? {
        tree::make_node(&mut file)?;
        change.progress.state = state::ADD_NODE;
    } else if local {
        complete(change, state::FLIP);
    } else {
        change.progress.state = state::FIND_SPACE;
    }
    Ok(false)
}

fn exists(change: &AttributeChange) -> Error {
    let name = String::from_utf8_lossy(change.current_name()).into_owned();
    Error::Usage(format!("inode {} has an attribute {name:?}", change.ino))
}

fn remove_short(tx: &mut Transaction<'_>, change: &mut AttributeChange) -> Result<bool> {
    let wanted = wanted(tx, change)?;
    if !short::remove(tx, change.ino, &wanted, change.progress.replacing)? {
        return Err(missing(change));
    }
    complete(change, add_state(tx, change.ino)?);
    Ok(false)
}

fn remove_leaf(tx: &mut Transaction<'_>, change: &mut AttributeChange) -> Result<bool> {
    let wanted = wanted(tx, change)?;
    let mut file = DaFile::attributes(tx, change.ino);
    let found = tree::find(&mut file, &wanted, false)?.ok_or_else(|| missing(change))?;
    tree::remove(&mut file, found)?;
    tree::shrink(tx, change.ino, change.progress.replacing)?;
    complete(change, add_state(tx, change.ino)?);
    Ok(false)
}

/// Where the value of an attribute lies that is to be freed.
fn note_old(tx: &Transaction<'_>, change: &mut AttributeChange, remote: Option<(u32, u32)>) -> Result<()> {
    let (start, left) = match remote {
        Some((start, len)) if start != 0 => (start, remote::blocks(tx, usize::try_from(len).unwrap_or(0))?),
        _ => (0, 0),
    };
    (change.progress.remote_start, change.progress.remote_left) = (start, left);
    Ok(())
}

/// Hides an attribute that is to be removed (`xfs_attr_node_removename_setup`).
fn hide(tx: &mut Transaction<'_>, change: &mut AttributeChange) -> Result<bool> {
    let wanted = wanted(tx, change)?;
    let mut file = DaFile::attributes(tx, change.ino);
    let found = tree::find(&mut file, &wanted, false)?.ok_or_else(|| missing(change))?;
    tree::change(&mut file, &found, leaf::set_incomplete)?;
    note_old(tx, change, found.remote)?;
    let is_remote = change.progress.remote_left > 0;
    change.progress.state = if is_remote { state::FREE_VALUE } else { state::REMOVE_ENTRY };
    Ok(false)
}

fn allocate(tx: &mut Transaction<'_>, change: &mut AttributeChange) -> Result<bool> {
    if change.progress.remote_left > 0 {
        remote::allocate(tx, change.ino, &mut change.progress)?;
        if change.progress.remote_left > 0 {
            return Ok(false);
        }
    }
    remote::write(tx, change.ino, change.progress.remote_start, change.current_value())?;
    if change.progress.replacing {
        // the two change their places in the same transaction
        complete(change, state::FLIP);
        return Ok(true);
    }
    show(tx, change)?;
    complete(change, state::DONE);
    Ok(false)
}

/// Lets readers see the attribute that was added.
fn show(tx: &mut Transaction<'_>, change: &AttributeChange) -> Result<()> {
    let wanted = wanted(tx, change)?;
    let remote = if is_local(tx.store().geometry(), change.current_name().len(), change.current_value().len()) {
        None
    } else {
        let len =
            u32::try_from(change.current_value().len()).map_err(|_| Error::Usage("a value is too long".to_owned()))?;
        Some((change.progress.remote_start, len))
    };
    let mut file = DaFile::attributes(tx, change.ino);
    let Some(new) = tree::find(&mut file, &wanted, true)? else { return Err(broken(tx, change.ino, Rule::Mismatch)?) };
    tree::change(&mut file, &new, |block, crc, index| leaf::set_complete(block, crc, index, remote))
}

/// The new attribute is shown and the old one hidden, both at once (`xfs_attr3_leaf_flipflags`).
fn flip(tx: &mut Transaction<'_>, change: &mut AttributeChange) -> Result<bool> {
    let wanted = wanted(tx, change)?;
    let mut file = DaFile::attributes(tx, change.ino);
    let old = tree::find(&mut file, &wanted, false)?.ok_or_else(|| missing(change))?;
    // before the old one is hidden, the new one is the only hidden one
    show(tx, change)?;
    let mut file = DaFile::attributes(tx, change.ino);
    tree::change(&mut file, &old, leaf::set_incomplete)?;
    note_old(tx, change, old.remote)?;
    change.progress.state = state::REMOVE_OLD;
    Ok(false)
}

/// Takes out the attribute that is hidden.
fn remove_entry(tx: &mut Transaction<'_>, change: &mut AttributeChange) -> Result<bool> {
    let wanted = wanted(tx, change)?;
    let mut file = DaFile::attributes(tx, change.ino);
    let Some(old) = tree::find(&mut file, &wanted, true)? else { return Err(broken(tx, change.ino, Rule::Mismatch)?) };
    tree::remove(&mut file, old)?;
    tree::shrink(tx, change.ino, change.progress.replacing)?;
    complete(change, add_state(tx, change.ino)?);
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::AttributeProgress;

    /// A replay wants an intent that names old and new parent, at whichever step it was logged.
    #[test]
    fn a_parent_that_is_replaced_keeps_both_names() {
        let mut change = AttributeChange {
            ino: Ino(131),
            op: attri::PPTR_REPLACE,
            namespace: 0,
            name: b"old".to_vec(),
            new_name: b"newer".to_vec(),
            value: vec![1; 12],
            new_value: vec![2; 12],
            logged: true,
            progress: AttributeProgress { replacing: true, ..AttributeProgress::default() },
        };
        assert_eq!((change.current_name(), change.current_value()), (&b"old"[..], &[1; 12][..]));
        complete(&mut change, state::ADD_LEAF);
        assert_eq!((change.current_name(), change.current_value()), (&b"newer"[..], &[2; 12][..]));
        assert_eq!((&change.name[..], &change.value[..]), (&b"old"[..], &[1; 12][..]));
        assert_eq!(change.progress.state, state::ADD_LEAF);
        complete(&mut change, state::FLIP);
        assert_eq!(change.progress.state, state::DONE);
    }
}
