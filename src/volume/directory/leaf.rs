//! Directories of several data blocks and one leaf (Linux `libxfs/xfs_dir2_leaf.c`).

use super::change::{Inserted, no_reservation, set_size};
use super::data::{Shape, address_of};
use super::index::{Leaf, LeafEntries, trim};
use super::{NewEntry, block, node, short};
use crate::buffer::BlockKind;
use crate::error::{Check, Error, Result, Rule};
use crate::forms::ForkKind;
use crate::forms::encode::{DirDataBuilder, encode_only_dir_leaf};
use crate::geometry::FileBlock;
use crate::ondisk::dir_leaf::{NULLDATAOFF, RawDirLeafEntry};
use crate::transaction::Logged;
use crate::volume::da_btree::DaFile;

/// What data blocks are read as.
pub(super) const DATA: BlockKind = BlockKind::DirData;
/// What the leaf is read as.
pub(super) const LEAF: BlockKind = BlockKind::DirLeaf1;

/// Where data block `db` lies, counted in directory blocks.
pub(super) fn data_at(file: &DaFile<'_, '_>, db: u32) -> FileBlock {
    FileBlock(u64::from(db) * u64::from(file.unit()))
}

/// The data block that holds an address of a leaf entry.
pub(super) fn db_of(file: &DaFile<'_, '_>, address: u32) -> u32 {
    use crate::ondisk::dir_data::DATA_ALIGN;
    let bytes = u64::from(address) * DATA_ALIGN as u64;
    u32::try_from(bytes >> file.geometry().directory.blklog).expect("invariant: an address of 32 bits in smaller units")
}

/// Makes the only leaf.
pub(super) fn create(file: &mut DaFile<'_, '_>, entries: &[RawDirLeafEntry], bests: &[u16]) -> Result<()> {
    let root = file.root();
    file.add_at(root)?;
    let bytes = encode_only_dir_leaf(file.geometry(), &file.owner(), entries, bests);
    let bytes = bytes.ok_or_else(|| Error::Internal("the entries of a block fit a leaf".to_owned()))?;
    file.write_new(LEAF, root, bytes, &Logged::All)
}

pub(super) fn read(file: &mut DaFile<'_, '_>) -> Result<Leaf> {
    let bytes = file.read(LEAF, file.root())?;
    Leaf::decode(&bytes, file.crc()).map_err(|check| file.corrupt(check))
}

fn store(file: &mut DaFile<'_, '_>, leaf: &Leaf) -> Result<()> {
    let (root, crc) = (file.root(), file.crc());
    let mut bytes = file.read(LEAF, root)?.to_vec();
    leaf.store(&mut bytes, crc)?;
    file.write(LEAF, root, bytes)
}

/// Adds an empty data block at the first free place: its number.
pub(super) fn add_data_block(file: &mut DaFile<'_, '_>) -> Result<u32> {
    if file.tx.blocks_left() == 0 {
        return Err(no_reservation(file));
    }
    let at = file.add(FileBlock(0))?;
    let end = file.geometry().directory.leaf_start;
    if at.0 + u64::from(file.unit()) > end.0 {
        return Err(Error::NoSpace(format!("directory {} has no room for more entries", file.ino)));
    }
    let db = u32::try_from(at.0 / u64::from(file.unit())).map_err(|_| no_reservation(file))?;
    let (bytes, _) = DirDataBuilder::new(file.geometry()).into_data(&file.owner());
    // header, start and end of the unused range have a meaning
    let used = usize::try_from(file.geometry().directory.data_header_size).unwrap_or(0) + size_of::<u64>();
    let end = bytes.len() - size_of::<u64>();
    file.write_new(DATA, at, bytes, &Logged::Except(used..end))?;
    let size = (at.0 + u64::from(file.unit())) << file.geometry().blocklog;
    if size > file.inode()?.size() {
        set_size(file, size)?;
    }
    Ok(db)
}

/// Adds an entry to a data block that has room: its address, and the block's longest unused range.
pub(super) fn add_to_data(
    file: &mut DaFile<'_, '_>,
    shape: Shape,
    db: u32,
    entry: &NewEntry<'_>,
) -> Result<(u32, u16)> {
    let at = data_at(file, db);
    let mut bytes = file.read(DATA, at)?.to_vec();
    let added = shape.add(&mut bytes, entry.ino.0, entry.name, entry.ftype).map_err(|check| file.corrupt(check))?;
    let offset = added.ok_or_else(|| file.corrupt(Check::new("dir2_free", "bests", Rule::Mismatch)))?;
    let best = shape.longest(&bytes).map_err(|check| file.corrupt(check))?;
    file.write(DATA, at, bytes)?;
    let address = address_of(db, offset, file.geometry().directory.blklog);
    let full = || Error::NoSpace(format!("directory {} has no room for more entries", file.ino));
    Ok((address.ok_or_else(full)?, best))
}

/// The data block for an entry of `len` bytes: one that has an entry of the same hash, or else the first with room.
fn choose(file: &DaFile<'_, '_>, leaf: &Leaf, hash: u32, len: usize) -> Option<u32> {
    let fits = |db: u32| {
        let best = usize::try_from(db).ok().and_then(|index| leaf.bests.get(index));
        best.is_some_and(|&best| best != NULLDATAOFF && usize::from(best) >= len)
    };
    let same = leaf.entries.addresses(hash).map(|address| db_of(file, address)).find(|&db| fits(db));
    same.or_else(|| (0..u32::try_from(leaf.bests.len()).ok()?).find(|&db| fits(db)))
}

/// Adds an entry, if the leaf has room for it.
pub(super) fn add(file: &mut DaFile<'_, '_>, shape: Shape, entry: &NewEntry<'_>) -> Result<Inserted> {
    let mut leaf = read(file)?;
    let hash = block::name_hash(file).hash(entry.name);
    let chosen = choose(file, &leaf, hash, shape.entry_len(entry.name));
    let bests = leaf.bests.len() + usize::from(chosen.is_none());
    let entries = leaf.entries.0.len() + usize::from(leaf.entries.stale() == 0);
    if Leaf::only_len(file.crc(), entries, bests) > file.size() {
        if Leaf::only_len(file.crc(), leaf.entries.live() + 1, bests) > file.size() {
            return Ok(Inserted::NoRoom);
        }
        leaf.entries.compact();
    }
    let db = match chosen {
        Some(db) => db,
        None => add_data_block(file)?,
    };
    let (address, best) = add_to_data(file, shape, db, entry)?;
    leaf.entries.insert(hash, address);
    let index = usize::try_from(db).map_err(|_| no_reservation(file))?;
    if index >= leaf.bests.len() {
        leaf.bests.resize(index + 1, NULLDATAOFF);
    }
    leaf.bests[index] = best;
    store(file, &leaf)?;
    Ok(Inserted::Done)
}

/// Takes an entry out of its data block, and the block out of the directory if that was the last: what is left as the
/// longest unused range, [`NULLDATAOFF`] if nothing.
pub(super) fn remove_from_data(file: &mut DaFile<'_, '_>, shape: Shape, db: u32, offset: usize) -> Result<u16> {
    let at = data_at(file, db);
    let mut bytes = file.read(DATA, at)?.to_vec();
    shape.remove(&mut bytes, offset).map_err(|check| file.corrupt(check))?;
    let empty = shape.is_empty(&bytes).map_err(|check| file.corrupt(check))?;
    let best = shape.longest(&bytes).map_err(|check| file.corrupt(check))?;
    file.write(DATA, at, bytes)?;
    if !empty || db == 0 {
        return Ok(best);
    }
    match take_out_data(file, at) {
        Ok(()) => Ok(NULLDATAOFF),
        // without a reservation, there may be no block for the mapping that is split: the block stays, and is used again
        Err(Error::NoSpace(_)) if file.tx.blocks_left() == 0 => Ok(best),
        Err(error) => Err(error),
    }
}

/// Takes out a data block; the size is where the last one ends (`xfs_dir2_shrink_inode`).
fn take_out_data(file: &mut DaFile<'_, '_>, at: FileBlock) -> Result<()> {
    file.take_out(DATA, at)?;
    let inode = file.inode()?;
    if (at.0 + u64::from(file.unit())) << file.geometry().blocklog < inode.size() {
        return Ok(());
    }
    let mut end = 0;
    if let Some(fork) = inode.fork(ForkKind::Data)? {
        for extent in fork.extents(&*file.tx) {
            let extent = extent?;
            if extent.startoff >= at.0 {
                break;
            }
            end = extent.startoff + u64::from(extent.blockcount);
        }
    }
    set_size(file, end << file.geometry().blocklog)
}

/// Takes out the entry of this hash and address; the directory becomes one of a block, or goes into the inode, if it fits.
pub(super) fn remove(file: &mut DaFile<'_, '_>, shape: Shape, hash: u32, offset: usize, address: u32) -> Result<()> {
    let mut leaf = read(file)?;
    if !leaf.entries.remove(hash, address) {
        return Err(file.corrupt(Check::new("dir2_leaf", "address", Rule::Mismatch)));
    }
    let db = db_of(file, address);
    let best = remove_from_data(file, shape, db, offset)?;
    let slot = usize::try_from(db).ok().and_then(|index| leaf.bests.get_mut(index));
    *slot.ok_or_else(|| file.corrupt(Check::new("dir2_leaf", "bestcount", Rule::Mismatch)))? = best;
    trim(&mut leaf.bests);
    store(file, &leaf)?;
    shrink(file, shape)
}

/// A directory with a leaf whose data fit one block becomes one of a block, and goes into the inode if it fits.
pub(super) fn shrink(file: &mut DaFile<'_, '_>, shape: Shape) -> Result<()> {
    if file.inode()?.size() != file.size() as u64 {
        return Ok(());
    }
    let leaf = read(file)?;
    if !block::from_leaf(file, shape, &leaf.entries)? {
        return Ok(());
    }
    let root = file.root();
    file.take_out(LEAF, root)?;
    short::take_back(file, shape)
}

/// The leaf becomes one of several, and the table of data blocks a block of the free index (`xfs_dir2_leaf_to_node`).
pub(super) fn to_node(file: &mut DaFile<'_, '_>) -> Result<()> {
    let leaf = read(file)?;
    node::create_free(file, 0, &leaf.bests)?;
    let (root, crc) = (file.root(), file.crc());
    let mut bytes = file.read(LEAF, root)?.to_vec();
    super::index::set_leaf_kind(&mut bytes, crc, false);
    file.write_new(file.hash_kind(), root, bytes, &Logged::All)
}

/// One leaf of several, without nodes, becomes the only one, if the table of data blocks fits (`xfs_dir2_node_to_leaf`).
pub(super) fn from_node(file: &mut DaFile<'_, '_>, entries: &LeafEntries, bests: Vec<u16>) -> Result<bool> {
    if Leaf::only_len(file.crc(), entries.live(), bests.len()) > file.size() {
        return Ok(false);
    }
    let mut leaf = Leaf { entries: entries.clone(), bests };
    leaf.entries.compact();
    let (root, crc, kind) = (file.root(), file.crc(), file.hash_kind());
    let mut bytes = file.read(kind, root)?.to_vec();
    super::index::set_leaf_kind(&mut bytes, crc, true);
    // the tail may hold anything before the table is in its place
    let tail = bytes.len() - size_of::<u32>();
    bytes[tail..].fill(0);
    leaf.store(&mut bytes, crc)?;
    file.write_new(LEAF, root, bytes, &Logged::All)?;
    Ok(true)
}
