//! Attributes set and removed: at once if they are in the inode, else deferred (`xfs_attr_set`).

use super::leaf::is_local;
use super::short;
use super::tree::{self, Form};
use super::wanted::Wanted;
use super::{AttributeName, remote};
use crate::error::{Error, Result};
use crate::geometry::reservation::Reservation;
use crate::geometry::{BtreeKind, Geometry, Ino};
use crate::ondisk::attr_short::AttrNamespace;
use crate::ondisk::feature_bits::log_incompat;
use crate::ondisk::log_attri::attri;
use crate::ondisk::remote::ATTR_MAX_VALUELEN;
use crate::transaction::{AttributeChange, AttributeProgress, Deferred, Store, Transaction};
use crate::volume::da_btree::DaFile;
use crate::volume::inodes;

/// Longest name in bytes.
const LONGEST_NAME: usize = 255;

/// What is to be done to an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Set,
    Remove,
    Replace,
}

/// Blocks that a fork of extents may need to map `blocks` more (`XFS_NEXTENTADD_SPACE_RES`).
fn map_blocks(geometry: &Geometry, blocks: u64) -> u64 {
    // Linux takes the numbers of free space btrees
    let btree = geometry.btree(BtreeKind::Bnobt);
    let per_leaf = u64::from(btree.leaf_max.saturating_sub(btree.leaf_min)).max(1);
    blocks.div_ceil(per_leaf) * u64::from(geometry.btrees.attr_bmbt_max_levels.saturating_sub(1))
}

/// What the transaction that sets an attribute reserves: log space, and blocks (`xfs_attr_calc_size`).
pub fn set_reservation(store: &Store, namelen: usize, valuelen: usize) -> (Reservation, u64) {
    use crate::ondisk::attr_leaf::local_len;
    let geometry = store.geometry();
    let depth = u64::from(crate::ondisk::da_block::DA_NODE_MAXDEPTH);
    let enter = depth + map_blocks(geometry, depth);
    let blocks = if is_local(geometry, namelen, valuelen) {
        let half = usize::try_from(geometry.blocksize / 2).unwrap_or(0);
        if local_len(namelen, valuelen) > half { enter * 2 } else { enter }
    } else {
        let value = u64::from(geometry.attr_remote_blocks(u32::try_from(valuelen).unwrap_or(ATTR_MAX_VALUELEN)));
        enter + value + map_blocks(geometry, value)
    };
    let reservations = store.reservations();
    let each = u64::from(reservations.attrsetrt.logres);
    let logres = u64::from(reservations.attrsetm.logres) + each * blocks;
    let logres = u32::try_from(logres).unwrap_or(u32::MAX);
    (Reservation { logres, ..reservations.attrsetm }, blocks)
}

/// What the transaction that removes an attribute reserves: log space, and blocks.
pub fn remove_reservation(store: &Store) -> (Reservation, u64) {
    let depth = u64::from(crate::ondisk::da_block::DA_NODE_MAXDEPTH);
    (store.reservations().attrrm, map_blocks(store.geometry(), depth))
}

fn check(name: &AttributeName<'_>, value: &[u8]) -> Result<()> {
    let shown = String::from_utf8_lossy(name.name);
    if name.namespace == AttrNamespace::Parent {
        return Err(Error::Usage("parent pointers follow the directories".to_owned()));
    }
    if name.name.is_empty() || name.name.len() > LONGEST_NAME || name.name.contains(&0) {
        return Err(Error::Usage(format!("{shown:?} cannot be the name of an attribute")));
    }
    if value.len() > usize::try_from(ATTR_MAX_VALUELEN).unwrap_or(usize::MAX) {
        return Err(Error::Usage(format!("the value of attribute {shown:?} has {} bytes", value.len())));
    }
    Ok(())
}

/// Whether an attribute is there.
pub(super) fn exists(tx: &mut Transaction<'_>, ino: Ino, wanted: &Wanted<'_>) -> Result<bool> {
    let inode = tx.inode(ino)?;
    match tree::form(&inode)? {
        Form::None => Ok(false),
        Form::Short => Ok(wanted.position_in_short(&short::entries(&inode)?).is_some()),
        Form::Leaf | Form::Node => Ok(tree::find(&mut DaFile::attributes(tx, ino), wanted, false)?.is_some()),
    }
}

/// The time of the last change is now.
pub(super) fn touch(tx: &mut Transaction<'_>, ino: Ino) -> Result<()> {
    let now = tx.store().now();
    inodes::change(tx, ino, 0, |raw, _| {
        let outside = || Error::Usage(format!("the time {} does not fit an inode", now.seconds));
        raw.core.ctime = now.encode(raw.has_bigtime()).ok_or_else(outside)?;
        Ok(())
    })
}

/// Sets an attribute to a value, whether it is there or not. The inode has an attribute fork. What does not go at once is
/// deferred. The time of change is set.
///
/// # Errors
/// `Usage` for a name or value that is too long; `NoSpace`; `Corrupt` when the attributes are damaged.
pub fn set(tx: &mut Transaction<'_>, ino: Ino, name: &AttributeName<'_>, value: &[u8]) -> Result<()> {
    check(name, value)?;
    let wanted = Wanted::new(tx.store().geometry(), name.namespace.flags(), name.name, value)?;
    let local = is_local(tx.store().geometry(), name.name.len(), value.len());
    touch(tx, ino)?;
    let is_there = exists(tx, ino, &wanted)?;
    let at_once = local && has_short(tx, ino)?;
    match (is_there, at_once) {
        (false, true) if short::add(tx, ino, &wanted, value)? => Ok(()),
        (true, true) => {
            if short::replace(tx, ino, &wanted, name.name, value)? {
                return Ok(());
            }
            short::remove(tx, ino, &wanted, true)?;
            if short::add(tx, ino, &wanted, value)? {
                return Ok(());
            }
            defer(tx, ino, name, value, Change::Set);
            Ok(())
        }
        (false, _) => {
            defer(tx, ino, name, value, Change::Set);
            Ok(())
        }
        (true, false) => {
            defer(tx, ino, name, value, Change::Replace);
            Ok(())
        }
    }
}

/// Removes an attribute; what does not go at once is deferred. `false` when it is not there.
///
/// # Errors
/// As [`set`].
pub fn remove(tx: &mut Transaction<'_>, ino: Ino, name: &AttributeName<'_>) -> Result<bool> {
    check(name, &[])?;
    let wanted = Wanted::new(tx.store().geometry(), name.namespace.flags(), name.name, &[])?;
    if !exists(tx, ino, &wanted)? {
        return Ok(false);
    }
    touch(tx, ino)?;
    if has_short(tx, ino)? {
        return short::remove(tx, ino, &wanted, false);
    }
    defer(tx, ino, name, &[], Change::Remove);
    Ok(true)
}

/// Whether the attributes are in the inode, so that a change needs no other block.
pub(super) fn has_short(tx: &Transaction<'_>, ino: Ino) -> Result<bool> {
    Ok(tree::form(&tx.inode(ino)?)? == Form::Short)
}

fn defer(tx: &mut Transaction<'_>, ino: Ino, name: &AttributeName<'_>, value: &[u8], change: Change) {
    let logged = tx.store().superblock().features_log_incompat.get() & log_incompat::XATTRS != 0;
    tx.defer(Deferred::Attribute(Box::new(AttributeChange {
        ino,
        op: match change {
            Change::Set => attri::SET,
            Change::Remove => attri::REMOVE,
            Change::Replace => attri::REPLACE,
        },
        namespace: name.namespace.flags(),
        name: name.name.to_vec(),
        new_name: Vec::new(),
        value: value.to_vec(),
        new_value: Vec::new(),
        logged,
        progress: AttributeProgress::default(),
    })));
}

/// Blocks of their own that a value of `len` bytes takes, if it does not stand beside its name.
pub fn value_blocks(tx: &Transaction<'_>, namelen: usize, len: usize) -> Result<u32> {
    if is_local(tx.store().geometry(), namelen, len) { Ok(0) } else { remote::blocks(tx, len) }
}

/// Changes of attributes are logged from now on, until the filesystem is closed: the superblock says so first, since only
/// readers that know such journals may replay them.
///
/// # Errors
/// `Unsupported` for version 4; `Io`.
pub fn enable_logging(store: &mut Store) -> Result<()> {
    if !store.geometry().features.has_crc() {
        return Err(Error::Unsupported("logged attributes in a version 4 filesystem".to_owned()));
    }
    let bits = store.superblock().features_log_incompat.get();
    if bits & log_incompat::XATTRS != 0 {
        return Ok(());
    }
    let mut tx = store.begin(store.reservations().sb, 0)?;
    tx.log_superblock(|superblock| superblock.features_log_incompat.set(bits | log_incompat::XATTRS))?;
    tx.commit()?;
    // a kernel that does not know such journals reads the bit before it reads the journal
    store.quiesce()
}
