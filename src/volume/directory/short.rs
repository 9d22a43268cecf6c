//! Directories in the inode (Linux `libxfs/xfs_dir2_sf.c`).

use super::change::{Inserted, fork_size, no_entry, store_local};
use super::data::Shape;
use super::{NewEntry, block};
use crate::error::{Check, Error};
use crate::error::{Result, Rule};
use crate::forms::{Directory, ForkForm, ForkKind, Inode};
use crate::ondisk::OnDisk;
use crate::ondisk::dir_data::RawDirBlockTail;
use crate::ondisk::dir_leaf::RawDirLeafEntry;
use crate::ondisk::dir_short::{DirSfEntry, DirShort, encode};
use crate::volume::da_btree::DaFile;

/// `.` and `..` have leaf entries in a block, and so has the entry that is added.
const BESIDES: usize = 3;

/// A directory in short form, as it is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Short<'i> {
    pub(super) parent: u64,
    pub(super) entries: Vec<DirSfEntry<'i>>,
}

impl<'i> Short<'i> {
    /// The directory that `inode` is, if it is in short form.
    pub(super) fn of(file: &DaFile<'_, '_>, inode: &'i Inode) -> Result<Option<Self>> {
        let Some(fork) = inode.fork(ForkKind::Data)? else { return Ok(None) };
        let ForkForm::Local(bytes) = fork.form else { return Ok(None) };
        let dir = DirShort::decode(bytes, file.geometry().features.has_ftype()).map_err(|check| file.corrupt(check))?;
        let entries: std::result::Result<Vec<_>, Check> = dir.entries().collect();
        Ok(Some(Short { parent: dir.parent, entries: entries.map_err(|check| file.corrupt(check))? }))
    }

    fn encode(&self) -> Option<Vec<u8>> {
        encode(self.parent, &self.entries)
    }

    /// Where an entry of `name` goes: its place in the list, and its offset. `None` when a block would not hold it.
    fn place(&self, file: &DaFile<'_, '_>, shape: Shape, name: &[u8]) -> Option<(usize, u16)> {
        let size = shape.entry_len(name);
        let mut offset = usize::try_from(file.geometry().directory.data_first_offset).ok()?;
        let mut hole = None;
        for (at, entry) in self.entries.iter().enumerate() {
            if hole.is_none() && offset + size <= usize::from(entry.offset) {
                hole = Some((at, offset));
            }
            offset = usize::from(entry.offset) + shape.entry_len(entry.name);
        }
        let used = offset + (self.entries.len() + BESIDES) * RawDirLeafEntry::SIZE + RawDirBlockTail::SIZE;
        let place = if used + size <= file.size() { Some((self.entries.len(), offset)) } else { hole };
        place.filter(|_| used <= file.size()).and_then(|(at, offset)| Some((at, u16::try_from(offset).ok()?)))
    }
}

/// Adds an entry, if it fits.
pub(super) fn add(file: &mut DaFile<'_, '_>, shape: Shape, entry: &NewEntry<'_>) -> Result<Inserted> {
    let inode = file.inode()?;
    let Some(mut dir) = Short::of(file, &inode)? else { return Ok(Inserted::NoRoom) };
    let Some((at, offset)) = dir.place(file, shape, entry.name) else { return Ok(Inserted::NoRoom) };
    let ftype = shape.ftype.then_some(entry.ftype);
    dir.entries.insert(at, DirSfEntry { offset, name: entry.name, ftype, inumber: entry.ino.0 });
    match dir.encode().filter(|bytes| bytes.len() <= fork_size(&inode)) {
        Some(bytes) => store_local(file, &bytes).map(|()| Inserted::Done),
        None => Ok(Inserted::NoRoom),
    }
}

/// The entry that a lookup of `name` finds.
fn position(file: &DaFile<'_, '_>, inode: &Inode, dir: &Short<'_>, name: &[u8]) -> Result<usize> {
    let found = Directory::open(&*file.tx, inode)?.lookup(name)?;
    let at = found.and_then(|found| dir.entries.iter().position(|entry| u64::from(entry.offset) == found.offset));
    at.ok_or_else(|| no_entry(file, name))
}

/// Takes an entry out.
pub(super) fn remove(file: &mut DaFile<'_, '_>, name: &[u8]) -> Result<()> {
    let inode = file.inode()?;
    let mut dir = demand(file, &inode)?;
    dir.entries.remove(position(file, &inode, &dir, name)?);
    let bytes = dir.encode().ok_or_else(|| Error::Internal("a directory that became smaller fits".to_owned()))?;
    store_local(file, &bytes)
}

/// Lets an entry name another inode, if its number fits.
pub(super) fn replace(file: &mut DaFile<'_, '_>, shape: Shape, entry: &NewEntry<'_>) -> Result<Inserted> {
    let inode = file.inode()?;
    let mut dir = demand(file, &inode)?;
    if entry.name == b".." {
        dir.parent = entry.ino.0;
    } else {
        let at = position(file, &inode, &dir, entry.name)?;
        dir.entries[at].inumber = entry.ino.0;
        dir.entries[at].ftype = shape.ftype.then_some(entry.ftype);
    }
    match dir.encode().filter(|bytes| bytes.len() <= fork_size(&inode)) {
        Some(bytes) => store_local(file, &bytes).map(|()| Inserted::Done),
        None => Ok(Inserted::NoRoom),
    }
}

fn demand<'i>(file: &DaFile<'_, '_>, inode: &'i Inode) -> Result<Short<'i>> {
    let other = || file.corrupt(Check::new("dinode", "format", Rule::Mismatch));
    Short::of(file, inode)?.ok_or_else(other)
}

/// The entries of the only block go into the inode, if they fit (`xfs_dir2_block_to_sf`).
pub(super) fn take_back(file: &mut DaFile<'_, '_>, shape: Shape) -> Result<()> {
    let inode = file.inode()?;
    let bytes = file.read(block::KIND, block::AT)?;
    let data = shape.decode(&bytes).map_err(|check| file.corrupt(check))?;
    let mut dir = Short { parent: 0, entries: Vec::new() };
    for item in data.items() {
        use crate::ondisk::dir_data::DirDataItem;
        let DirDataItem::Entry(entry) = item.map_err(|check| file.corrupt(check))? else { continue };
        match entry.name {
            b"." => {}
            b".." => dir.parent = entry.inumber,
            name => {
                dir.entries.push(DirSfEntry { offset: entry.offset, name, ftype: entry.ftype, inumber: entry.inumber })
            }
        }
    }
    let Some(short) = dir.encode().filter(|short| short.len() <= fork_size(&inode)) else { return Ok(()) };
    file.take_out(block::KIND, block::AT)?;
    store_local(file, &short)
}
