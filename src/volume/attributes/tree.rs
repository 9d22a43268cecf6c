//! Attributes in leaves: one, or several below nodes (Linux `libxfs/xfs_attr.c`, `libxfs/xfs_attr_leaf.c`).

use super::fork;
use super::leaf::{self, AttrLeaves, NewAttribute};
use super::wanted::Wanted;
use crate::error::{Error, Result};
use crate::forms::encode::{AttrLeafBuilder, Siblings};
use crate::forms::{ForkForm, ForkKind, Inode};
use crate::geometry::FileBlock;
use crate::ondisk::OnDisk;
use crate::ondisk::attr_leaf::{AttrLeaf, AttrLeafName, AttrLeafValue, local_len};
use crate::ondisk::attr_short::{ATTR_INCOMPLETE, ATTR_NSP_ONDISK_MASK, AttrSfEntry, RawAttrSfHdr, encode};
use crate::transaction::{Logged, Transaction};
use crate::volume::da_btree::{DaFile, Path, install, is_node, join, lift_root};

/// Where the root lies in the fork.
pub(super) const ROOT: FileBlock = FileBlock(0);

/// Where an attribute stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) path: Path,
    pub(super) index: usize,
    /// First block and length of a remote value.
    pub(super) remote: Option<(u32, u32)>,
}

/// The form of an attribute fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// There is no fork.
    None,
    /// In the inode, or there are no attributes.
    Short,
    /// One block.
    Leaf,
    /// Several.
    Node,
}

pub(super) fn form(inode: &Inode) -> Result<Form> {
    let Some(fork) = inode.fork(ForkKind::Attr)? else { return Ok(Form::None) };
    Ok(match fork.form {
        ForkForm::Local(_) | ForkForm::Extents([]) => Form::Short,
        ForkForm::Extents([only]) => {
            let only = only.decode();
            if only.startoff == 0 && only.blockcount == 1 { Form::Leaf } else { Form::Node }
        }
        _ => Form::Node,
    })
}

/// Looks an attribute up, among those that readers see or among the others.
pub(super) fn find(file: &mut DaFile<'_, '_>, wanted: &Wanted<'_>, incomplete: bool) -> Result<Option<Position>> {
    let mut path = Path::to(file, wanted.hash)?;
    loop {
        let bytes = file.read(file.hash_kind(), path.leaf)?;
        let leaf = AttrLeaf::decode(&bytes, file.crc()).map_err(|check| file.corrupt(check))?;
        if let Some(index) = wanted.position_in_leaf(&leaf, incomplete) {
            let name = leaf.name(&leaf.entries[index]).map_err(|check| file.corrupt(check))?;
            let remote = match name.value {
                AttrLeafValue::Remote { valueblk, valuelen } => Some((valueblk, valuelen)),
                AttrLeafValue::Local(_) => None,
            };
            return Ok(Some(Position { path, index, remote }));
        }
        let goes_on = leaf.entries.last().is_none_or(|last| last.hashval.get() <= wanted.hash);
        if !goes_on || !path.next_leaf(file)? {
            return Ok(None);
        }
    }
}

/// Adds an attribute to the leaf where it belongs; one that is full is split if there are nodes. `false`, and nothing has
/// changed, when the only leaf is full.
pub(super) fn add(file: &mut DaFile<'_, '_>, new: &NewAttribute<'_>) -> Result<bool> {
    let path = Path::to(file, new.hash)?;
    let (kind, crc) = (file.hash_kind(), file.crc());
    let mut bytes = file.read(kind, path.leaf)?.to_vec();
    if leaf::add(&mut bytes, crc, new)? {
        let last = AttrLeaf::decode(&bytes, crc).map_err(|check| file.corrupt(check))?;
        let last = last.entries.last().map_or(0, |entry| entry.hashval.get());
        file.write(kind, path.leaf, bytes)?;
        path.fix_leaf_hash(file, last)?;
        return Ok(true);
    }
    if !path.has_nodes() {
        return Ok(false);
    }
    let leaves = leaf::split(file.geometry(), &file.owner(), &bytes, new)?;
    install(file, path, leaves)?;
    Ok(true)
}

/// The only leaf moves below a node (`xfs_attr3_leaf_to_node`).
pub(super) fn make_node(file: &mut DaFile<'_, '_>) -> Result<()> {
    let bytes = file.read(file.hash_kind(), ROOT)?;
    let leaf = AttrLeaf::decode(&bytes, file.crc()).map_err(|check| file.corrupt(check))?;
    let hash = leaf.entries.last().map_or(0, |entry| entry.hashval.get());
    let mut path = Path::to(file, hash)?;
    lift_root(file, &mut path, hash)
}

/// Changes the leaf of an attribute in place.
pub(super) fn change(
    file: &mut DaFile<'_, '_>,
    position: &Position,
    change: impl FnOnce(&mut [u8], bool, usize) -> std::result::Result<(), crate::error::Check>,
) -> Result<()> {
    let (kind, crc) = (file.hash_kind(), file.crc());
    let mut bytes = file.read(kind, position.path.leaf)?.to_vec();
    change(&mut bytes, crc, position.index).map_err(|check| file.corrupt(check))?;
    file.write(kind, position.path.leaf, bytes)
}

/// Takes an attribute out of its leaf, and joins leaves that have become small.
pub(super) fn remove(file: &mut DaFile<'_, '_>, position: Position) -> Result<()> {
    change(file, &position, leaf::remove)?;
    let path = position.path;
    if !path.has_nodes() {
        return Ok(());
    }
    let bytes = file.read(file.hash_kind(), path.leaf)?;
    let geometry = file.geometry().clone();
    let leaves = AttrLeaves { geometry: &geometry, owner: file.owner() };
    let decoded = AttrLeaf::decode(&bytes, file.crc()).map_err(|check| file.corrupt(check))?;
    if let Some(last) = decoded.entries.last() {
        path.fix_leaf_hash(file, last.hashval.get())?;
    }
    if leaves.is_small(&bytes)? { join(file, path, &leaves) } else { Ok(()) }
}

/// The attributes of the inode move to a leaf (`xfs_attr_shortform_to_leaf`).
pub(super) fn from_short(tx: &mut Transaction<'_>, ino: crate::geometry::Ino) -> Result<()> {
    let inode = tx.inode(ino)?;
    let entries = super::short::entries(&inode)?;
    fork::make_extents(tx, ino)?;
    let geometry = tx.store().geometry().clone();
    let mut file = DaFile::attributes(tx, ino);
    file.add_at(ROOT)?;
    let empty = AttrLeafBuilder::new(&geometry).into_leaf(&file.owner(), Siblings::default());
    let kind = file.hash_kind();
    file.write_new(kind, ROOT, empty, &Logged::All)?;
    for entry in &entries {
        let wanted = Wanted::new(&geometry, entry.flags & ATTR_NSP_ONDISK_MASK, entry.name, entry.value)?;
        let name = AttrLeafName { name: entry.name, value: AttrLeafValue::Local(entry.value) };
        if !add(&mut file, &NewAttribute { hash: wanted.hash, flags: wanted.namespace, name })? {
            return Err(Error::Internal("attributes of an inode fit a leaf".to_owned()));
        }
    }
    Ok(())
}

/// A single leaf whose attributes fit the inode moves there; one without attributes takes the fork with it, unless
/// `keep_fork` (`xfs_attr_leaf_shrink`).
pub(super) fn shrink(tx: &mut Transaction<'_>, ino: crate::geometry::Ino, keep_fork: bool) -> Result<()> {
    let inode = tx.inode(ino)?;
    if form(&inode)? != Form::Leaf {
        return Ok(());
    }
    let mut file = DaFile::attributes(tx, ino);
    let kind = file.hash_kind();
    let bytes = file.read(kind, ROOT)?;
    if is_node(&bytes) {
        return Ok(());
    }
    let leaf = AttrLeaf::decode(&bytes, file.crc()).map_err(|check| file.corrupt(check))?;
    let mut entries = Vec::new();
    for entry in leaf.entries.iter().filter(|entry| entry.flags & ATTR_INCOMPLETE == 0) {
        let name = leaf.name(entry).map_err(|check| file.corrupt(check))?;
        let AttrLeafValue::Local(value) = name.value else { return Ok(()) };
        let fits = name.name.len() < super::short::LONGEST && value.len() < super::short::LONGEST;
        if !fits {
            return Ok(());
        }
        debug_assert!(local_len(name.name.len(), value.len()) < bytes.len());
        entries.push(AttrSfEntry { flags: entry.flags & ATTR_NSP_ONDISK_MASK, name: name.name, value });
    }
    if entries.is_empty() && inode.raw().core.format != crate::ondisk::dinode::format::BTREE {
        file.take_out(kind, ROOT)?;
        return if keep_fork || !fork::may_lose_fork(tx, &inode) {
            // a replacement, or a parent pointer, comes next
            Ok(())
        } else {
            fork::remove_fork(tx, ino)
        };
    }
    let Some(short) = encode(&entries).filter(|short| short.len() >= RawAttrSfHdr::SIZE) else { return Ok(()) };
    let Some(forkoff) = fork::offset_for(file.geometry(), &inode, short.len())? else { return Ok(()) };
    file.take_out(kind, ROOT)?;
    fork::store_short(tx, ino, forkoff, &short)
}
