//! Directories of one block, with entries and leaf in it (Linux `libxfs/xfs_dir2_block.c`).

use zerocopy::IntoBytes;

use super::change::{Inserted, make_extents};
use super::data::{Shape, address_of, leaf_len};
use super::index::LeafEntries;
use super::short::{self, Short};
use super::{NewEntry, leaf};
use crate::buffer::BlockKind;
use crate::error::{Check, Error, Result, Rule};
use crate::forms::encode::DirDataBuilder;
use crate::geometry::FileBlock;
use crate::ondisk::OnDisk;
use crate::ondisk::dir_data::{RawDirBlockTail, ftype};
use crate::ondisk::dir_leaf::RawDirLeafEntry;
use crate::ondisk::name_hash::NameHash;
use crate::transaction::Logged;
use crate::volume::da_btree::DaFile;

/// What the block is read as.
pub(super) const KIND: BlockKind = BlockKind::DirBlock;
/// Where it lies in the directory.
pub(super) const AT: FileBlock = FileBlock(0);

/// How the filesystem hashes names.
pub(super) fn name_hash(file: &DaFile<'_, '_>) -> NameHash {
    if file.geometry().features.has_asciici() { NameHash::AsciiCi } else { NameHash::Bytes }
}

fn leaf_of(file: &DaFile<'_, '_>, shape: Shape, block: &[u8]) -> Result<(LeafEntries, usize)> {
    let data = shape.decode(block).map_err(|check| file.corrupt(check))?;
    Ok((LeafEntries(data.leaf.to_vec()), block.len() - leaf_len(&data)))
}

fn start_of(block: &[u8], entries: &LeafEntries) -> usize {
    block.len().saturating_sub(RawDirBlockTail::SIZE + size_of_val(&entries.0[..]))
}

/// Stores the leaf, which begins where entries and unused ranges end.
fn put_leaf(block: &mut [u8], entries: &LeafEntries) -> Result<()> {
    let start = start_of(block, entries);
    let few = |count: usize| u32::try_from(count).map_err(|_| Error::Internal("a block has few entries".to_owned()));
    let tail = RawDirBlockTail { count: few(entries.0.len())?.into(), stale: few(entries.stale())?.into() };
    let end = block.len() - RawDirBlockTail::SIZE;
    block[start..end].copy_from_slice(entries.0.as_bytes());
    block[end..].copy_from_slice(tail.as_bytes());
    Ok(())
}

/// Adds an entry, if it fits.
pub(super) fn add(file: &mut DaFile<'_, '_>, shape: Shape, entry: &NewEntry<'_>) -> Result<Inserted> {
    let old = file.read(KIND, AT)?;
    let (entries, _) = leaf_of(file, shape, &old)?;
    // a stale leaf entry is used again; failing that the leaf grows, without stale entries if need be
    let mut compact = entries.clone();
    compact.compact();
    for mut entries in [entries, compact] {
        let mut block = old.to_vec();
        if try_add(file, shape, &mut block, &mut entries, entry)? {
            file.write(KIND, AT, block)?;
            return Ok(Inserted::Done);
        }
    }
    Ok(Inserted::NoRoom)
}

fn try_add(
    file: &DaFile<'_, '_>,
    shape: Shape,
    block: &mut [u8],
    entries: &mut LeafEntries,
    entry: &NewEntry<'_>,
) -> Result<bool> {
    let (_, from) = leaf_of(file, shape, block)?;
    let grown = entries.0.len() + usize::from(entries.stale() == 0);
    let end = block.len() - RawDirBlockTail::SIZE;
    let Some(to) = end.checked_sub(grown * RawDirLeafEntry::SIZE) else { return Ok(false) };
    let checked = |check| file.corrupt(check);
    if !shape.move_end(block, from, to).map_err(checked)? {
        return Ok(false);
    }
    // the tail says where entries and ranges end
    let count = u32::try_from(grown).map_err(|_| Error::Internal("a block has few entries".to_owned()))?;
    block[end..].copy_from_slice(RawDirBlockTail { count: count.into(), stale: 0.into() }.as_bytes());
    shape.rescan(block).map_err(checked)?;
    let Some(offset) = shape.add(block, entry.ino.0, entry.name, entry.ftype).map_err(checked)? else {
        return Ok(false);
    };
    let address = address_of(0, offset, file.geometry().directory.blklog);
    let address = address.ok_or_else(|| Error::Internal("a block has few entries".to_owned()))?;
    entries.insert(name_hash(file).hash(entry.name), address);
    put_leaf(block, entries)?;
    Ok(true)
}

/// Takes out the entry of this hash and address; the directory goes back into the inode if it fits.
pub(super) fn remove(file: &mut DaFile<'_, '_>, shape: Shape, hash: u32, offset: usize, address: u32) -> Result<()> {
    let mut block = file.read(KIND, AT)?.to_vec();
    let (mut entries, _) = leaf_of(file, shape, &block)?;
    if !entries.remove(hash, address) {
        return Err(file.corrupt(Check::new("dir2_data", "leaf", Rule::Mismatch)));
    }
    shape.remove(&mut block, offset).map_err(|check| file.corrupt(check))?;
    put_leaf(&mut block, &entries)?;
    file.write(KIND, AT, block)?;
    short::take_back(file, shape)
}

/// The directory in the inode becomes one of a block; entries stand where they would have (`xfs_dir2_sf_to_block`).
pub(super) fn from_short(file: &mut DaFile<'_, '_>, shape: Shape) -> Result<()> {
    let inode = file.inode()?;
    let wrong = || file.corrupt(Check::new("dir2_sf.entry", "offset", Rule::Range));
    let dir = Short::of(file, &inode)?.ok_or_else(|| file.corrupt(Check::new("dinode", "format", Rule::Mismatch)))?;
    let parent = crate::geometry::Ino(dir.parent);
    let mut builder = DirDataBuilder::new(file.geometry());
    let (hash, blklog) = (name_hash(file), file.geometry().directory.blklog);
    let mut entries = LeafEntries::default();
    let dots = [(file.ino, &b"."[..]), (parent, b"..")];
    let dots = dots.map(|(ino, name)| (None, ino, name, ftype::DIR));
    let others = dir.entries.iter().map(|entry| {
        (Some(entry.offset), crate::geometry::Ino(entry.inumber), entry.name, entry.ftype.unwrap_or(ftype::UNKNOWN))
    });
    for (wanted, ino, name, ftype) in dots.into_iter().chain(others) {
        if let Some(wanted) = wanted {
            let gap = builder.room().checked_sub(file.size() - usize::from(wanted)).ok_or_else(wrong)?;
            builder.skip(gap).ok_or_else(wrong)?;
        }
        let offset = builder.push(ino, name, ftype).ok_or_else(wrong)?;
        entries.insert(hash.hash(name), address_of(0, offset, blklog).ok_or_else(wrong)?);
    }
    let owner = file.owner();
    let mut bytes = builder.into_only(&owner, &entries.0).ok_or_else(wrong)?;
    shape.rescan(&mut bytes).map_err(|check| file.corrupt(check))?;
    make_extents(file)?;
    file.add_at(AT)?;
    file.write_new(KIND, AT, bytes, &Logged::All)
}

/// The leaf gets a block of its own (`xfs_dir2_block_to_leaf`).
pub(super) fn to_leaf(file: &mut DaFile<'_, '_>, shape: Shape) -> Result<()> {
    let mut block = file.read(KIND, AT)?.to_vec();
    let (mut entries, from) = leaf_of(file, shape, &block)?;
    entries.compact();
    let checked = |check| file.corrupt(check);
    let end = block.len();
    shape.move_end(&mut block, from, end).map_err(checked)?;
    shape.set_kind(&mut block, false).map_err(checked)?;
    shape.rescan(&mut block).map_err(checked)?;
    let best = shape.longest(&block).map_err(checked)?;
    file.write_new(leaf::DATA, AT, block, &Logged::All)?;
    leaf::create(file, &entries.0, &[best])
}

/// The only leaf goes into the only data block, if it fits there (`xfs_dir2_leaf_to_block`).
pub(super) fn from_leaf(file: &mut DaFile<'_, '_>, shape: Shape, entries: &LeafEntries) -> Result<bool> {
    let mut block = file.read(leaf::DATA, AT)?.to_vec();
    let mut entries = entries.clone();
    entries.compact();
    let (from, to) = (block.len(), start_of(&block, &entries));
    let checked = |check| file.corrupt(check);
    if !shape.move_end(&mut block, from, to).map_err(checked)? {
        return Ok(false);
    }
    put_leaf(&mut block, &entries)?;
    shape.set_kind(&mut block, true).map_err(checked)?;
    shape.rescan(&mut block).map_err(checked)?;
    file.write_new(KIND, AT, block, &Logged::All)?;
    Ok(true)
}
