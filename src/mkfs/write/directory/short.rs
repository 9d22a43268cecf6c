//! Directories in the inode. Source: Linux `fs/xfs/libxfs/xfs_dir2_sf.c`.

use super::{NewEntry, damaged};
use crate::error::Result;
use crate::geometry::Ino;
use crate::mkfs::write::attribute::data_room;
use crate::mkfs::write::inode::{Data, Inode};
use crate::mkfs::write::shape::Shape;
use crate::ondisk::OnDisk;
use crate::ondisk::dir_data::{RawDirBlockTail, entry_len, header_len};
use crate::ondisk::dir_leaf::RawDirLeafEntry;
use crate::ondisk::dir_short::{self, DirSfEntry};

/// An entry, as the form in the inode keeps it.
pub(super) struct Entry {
    /// Name.
    pub name: Vec<u8>,
    /// Inode.
    pub ino: Ino,
    /// Type of the inode.
    pub ftype: u8,
    /// Offset that it would have in a directory block.
    pub offset: u16,
}

/// Stores `entries` in the inode.
pub(super) fn store(inode: &mut Inode, parent: Ino, entries: &[Entry], ftype: bool) -> Result<()> {
    let bytes = encode(parent, entries, ftype)?;
    inode.size = bytes.len() as u64;
    inode.data = Data::Local(bytes);
    Ok(())
}

fn encode(parent: Ino, entries: &[Entry], ftype: bool) -> Result<Vec<u8>> {
    let list: Vec<_> = entries
        .iter()
        .map(|entry| DirSfEntry {
            offset: entry.offset,
            name: &entry.name,
            ftype: ftype.then_some(entry.ftype),
            inumber: entry.ino.0,
        })
        .collect();
    dir_short::encode(parent.0, &list).ok_or_else(damaged)
}

/// Adds an entry; `false` if it does not fit, and nothing has changed.
pub(super) fn add(
    shape: &Shape,
    inode: &mut Inode,
    parent: Ino,
    entries: &mut Vec<Entry>,
    new: &NewEntry<'_>,
) -> Result<bool> {
    let ftype = shape.layout.features.ftype;
    let offset = match entries.last() {
        Some(last) => usize::from(last.offset) + entry_len(last.name.len(), ftype),
        None => header_len(shape.layout.features.crc) + entry_len(1, ftype) + entry_len(2, ftype),
    };
    let block = usize::try_from(shape.layout.directory_block.bytes()).map_err(|_| damaged())?;
    let leaves = (entries.len() + 3) * RawDirLeafEntry::SIZE + RawDirBlockTail::SIZE;
    if offset + leaves + entry_len(new.name.len(), ftype) > block {
        return Ok(false);
    }
    let offset = u16::try_from(offset).map_err(|_| damaged())?;
    entries.push(Entry { name: new.name.to_vec(), ino: new.ino, ftype: new.ftype(), offset });
    let room = data_room(shape, inode.forkoff);
    if encode(parent, entries, ftype)?.len() > room {
        entries.pop();
        return Ok(false);
    }
    store(inode, parent, entries, ftype)?;
    Ok(true)
}
