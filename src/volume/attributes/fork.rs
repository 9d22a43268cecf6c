//! Where the attribute fork of an inode begins, and attributes in short form in it (Linux `libxfs/xfs_attr_leaf.c`,
//! `libxfs/xfs_bmap.c`).

use crate::error::{Error, Result};
use crate::forms::encode::root_in_inode_len;
use crate::forms::{Fork, ForkForm, ForkKind, Inode};
use crate::geometry::{Geometry, Ino};
use crate::ondisk::dinode::format;
use crate::ondisk::log_inode::field;
use crate::ondisk::{OnDisk, RawDinode, RawExtent};
use crate::transaction::Transaction;
use crate::volume::{directory, inodes, mapping, symlink};

/// Pointers that the root of a data fork's extent btree has room for in any case.
const LEAST_DATA_POINTERS: usize = 3;
/// The same of an attribute fork.
const LEAST_ATTR_POINTERS: usize = 2;
/// Where the attribute fork of a device begins, in units of 8 bytes: behind the number of the device.
const BEHIND_DEVICE: u8 = 1;

fn bytes(value: u32) -> usize {
    usize::try_from(value).expect("invariant: an inode has 2 KiB at most")
}

/// Where the attribute fork begins, in units of 8 bytes, when it holds `size` bytes in short form; `None` when it cannot
/// (`xfs_attr_shortform_bytesfit`).
pub(super) fn offset_for(geometry: &Geometry, inode: &Inode, size: usize) -> Result<Option<u8>> {
    let area = bytes(geometry.inodes.literal_size);
    let Some(room) = area.checked_sub(size) else { return Ok(None) };
    let offset = room >> 3;
    let current = inode.raw().core.fork_offset();
    let Some(data) = inode.fork(ForkKind::Data)? else { return Ok(None) };
    if matches!(data.form, ForkForm::Device(_)) {
        return Ok((offset >= usize::from(BEHIND_DEVICE)).then_some(BEHIND_DEVICE));
    }
    if current != 0 && size <= area - current.min(area) {
        return Ok(Some(inode.raw().core.forkoff));
    }
    if matches!(data.form, ForkForm::Btree(_)) && current != 0 {
        return Ok(if offset < current >> 3 { None } else { Some(inode.raw().core.forkoff) });
    }
    let least = data_size(geometry, &data).max(root_in_inode_len(LEAST_DATA_POINTERS)).div_ceil(8);
    let most = (area - root_in_inode_len(LEAST_ATTR_POINTERS)) >> 3;
    let fits = if offset >= most { Some(most) } else { (offset >= least).then_some(offset) };
    Ok(fits.and_then(|units| u8::try_from(units).ok()))
}

/// Bytes that the data fork cannot do without.
fn data_size(geometry: &Geometry, data: &Fork<'_>) -> usize {
    match data.form {
        ForkForm::Local(local) => local.len(),
        ForkForm::Extents(list) => {
            let has_attributes = data.inode.raw().core.forkoff != 0;
            // a list that the usual fork would not hold becomes a btree
            let usual = bytes(geometry.inodes.attr_fork_offset);
            if !has_attributes && size_of_val(list) > usual { 0 } else { size_of_val(list) }
        }
        ForkForm::Btree(root) => root_in_inode_len(root.count),
        ForkForm::Device(_) | ForkForm::MetaBtree(_) => 0,
    }
}

/// Where the attribute fork usually begins (`xfs_default_attroffset`).
fn usual_offset(geometry: &Geometry, inode: &Inode) -> u8 {
    if inode.raw().core.format == format::DEV {
        return BEHIND_DEVICE;
    }
    u8::try_from(geometry.inodes.attr_fork_offset >> 3).unwrap_or(u8::MAX)
}

/// Gives an inode an attribute fork, if it has none, with room for attributes of `size` bytes in short form if that can be
/// (`xfs_bmap_add_attrfork`): a transaction of its own comes before the one that sets the first attribute.
///
/// # Errors
/// `NoSpace`; `Corrupt` when the inode is damaged.
pub fn add_fork(tx: &mut Transaction<'_>, ino: Ino, size: usize) -> Result<()> {
    let inode = tx.inode(ino)?;
    if inode.raw().core.forkoff != 0 {
        return Ok(());
    }
    let geometry = tx.store().geometry();
    let usual = usual_offset(geometry, &inode);
    let forkoff = match inode.raw().core.format {
        format::DEV => usual,
        _ => offset_for(geometry, &inode, size)?.unwrap_or(usual),
    };
    make_room(tx, &inode, usize::from(forkoff) << 3)?;
    inodes::change(tx, ino, 0, |raw, literal| {
        raw.core.forkoff = forkoff;
        raw.core.aformat = i8::from_ne_bytes([format::EXTENTS]);
        attribute_area(raw, literal)?.fill(0);
        set_attr_extents(raw)
    })?;
    inodes::note_attributes(tx)
}

/// The data fork takes another form if it needs more than `size` bytes.
fn make_room(tx: &mut Transaction<'_>, inode: &Inode, size: usize) -> Result<()> {
    let Some(data) = inode.fork(ForkKind::Data)? else { return Ok(()) };
    match data.form {
        ForkForm::Local(local) if local.len() > size => match inode.file_type() {
            Some(crate::forms::FileType::Directory) => directory::leave_inode(tx, inode.ino),
            _ => symlink::leave_inode(tx, inode.ino),
        },
        ForkForm::Extents(list) if list.len() * RawExtent::SIZE > size => {
            mapping::set_fork_size(tx, inode.ino, ForkKind::Data, size)
        }
        ForkForm::Btree(_) => mapping::set_fork_size(tx, inode.ino, ForkKind::Data, size),
        _ => Ok(()),
    }
}

fn set_attr_extents(raw: &mut RawDinode) -> Result<()> {
    let data = raw.data_extents();
    raw.set_extents(data, 0).ok_or_else(|| Error::Internal("an extent counter that is smaller fits".to_owned()))
}

fn attribute_area<'l>(raw: &RawDinode, literal: &'l mut [u8]) -> Result<&'l mut [u8]> {
    let defect = || Error::Internal("an attribute fork lies in its inode".to_owned());
    literal.get_mut(raw.core.fork_offset()..).ok_or_else(defect)
}

/// Puts attributes in short form into the fork, which begins at `forkoff` from now on.
pub(super) fn store_short(tx: &mut Transaction<'_>, ino: Ino, forkoff: u8, short: &[u8]) -> Result<()> {
    inodes::change(tx, ino, field::ADATA, |raw, literal| {
        let defect = || Error::Internal("attributes that fit their fork do not".to_owned());
        // what belonged to the other fork belongs to nobody
        let start = raw.core.fork_offset().min(usize::from(forkoff) << 3);
        let keep = if raw.core.forkoff == 0 { usize::from(forkoff) << 3 } else { start };
        literal.get_mut(keep..).ok_or_else(defect)?.fill(0);
        raw.core.forkoff = forkoff;
        raw.core.aformat = i8::from_ne_bytes([format::LOCAL]);
        attribute_area(raw, literal)?.get_mut(..short.len()).ok_or_else(defect)?.copy_from_slice(short);
        set_attr_extents(raw)
    })
}

/// Empties the attribute fork: it has a list of extents now, without any, and the data fork gets what it usually has.
pub(super) fn make_extents(tx: &mut Transaction<'_>, ino: Ino) -> Result<()> {
    let inode = tx.inode(ino)?;
    let usual = usual_offset(tx.store().geometry(), &inode);
    let movable = !matches!(inode.raw().core.format, format::DEV | format::BTREE);
    inodes::change(tx, ino, field::AEXT, |raw, literal| {
        attribute_area(raw, literal)?.fill(0);
        raw.core.aformat = i8::from_ne_bytes([format::EXTENTS]);
        if movable && usual > raw.core.forkoff {
            raw.core.forkoff = usual;
        }
        set_attr_extents(raw)
    })
}

/// Takes the attribute fork from the inode (`xfs_attr_fork_remove`).
pub(super) fn remove_fork(tx: &mut Transaction<'_>, ino: Ino) -> Result<()> {
    inodes::change(tx, ino, 0, |raw, literal| {
        if raw.core.forkoff != 0 {
            attribute_area(raw, literal)?.fill(0);
        }
        raw.core.forkoff = 0;
        raw.core.aformat = i8::from_ne_bytes([format::EXTENTS]);
        set_attr_extents(raw)
    })
}

/// Whether the fork can be taken away when there is no attribute any more.
pub(super) fn may_lose_fork(tx: &Transaction<'_>, inode: &Inode) -> bool {
    inode.raw().core.format != format::BTREE && !tx.store().geometry().features.has_parent()
}
