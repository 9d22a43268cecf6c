//! Directories with several leaves, nodes over them, and a free index (Linux `libxfs/xfs_dir2_node.c`).

use super::NewEntry;
use super::block::name_hash;
use super::change::no_reservation;
use super::data::Shape;
use super::index::{DirLeaves, Free, Leaf, LeafEntries};
use super::leaf::{self, add_data_block, add_to_data, db_of, remove_from_data};
use crate::buffer::BlockKind;
use crate::error::{Check, Error, Result, Rule};
use crate::forms::ForkKind;
use crate::forms::encode::{Siblings, encode_dir_free, encode_dir_leaf};
use crate::geometry::FileBlock;
use crate::ondisk::dir_leaf::NULLDATAOFF;
use crate::transaction::Logged;
use crate::volume::da_btree::{DaFile, NewLeaf, Path, install, is_node, join};

/// What blocks of the free index are read as.
const FREE: BlockKind = BlockKind::DirFree;

/// Where the block of the free index lies that has data block `db`, and the first data block of it.
fn free_of(file: &DaFile<'_, '_>, db: u32) -> (FileBlock, u32) {
    let directory = &file.geometry().directory;
    let index = db / directory.free_max_bests;
    let at = directory.free_start.0 + u64::from(index) * u64::from(file.unit());
    (FileBlock(at), index * directory.free_max_bests)
}

fn read_free(file: &mut DaFile<'_, '_>, at: FileBlock) -> Result<Option<Free>> {
    let Some(bytes) = file.try_read(FREE, at)? else { return Ok(None) };
    Free::decode(&bytes, file.crc()).map(Some).map_err(|check| file.corrupt(check))
}

fn store_free(file: &mut DaFile<'_, '_>, at: FileBlock, free: &Free) -> Result<()> {
    let crc = file.crc();
    let mut bytes = file.read(FREE, at)?.to_vec();
    free.store(&mut bytes, crc)?;
    file.write(FREE, at, bytes)
}

/// Makes the block of the free index that begins with data block `firstdb`.
pub(super) fn create_free(file: &mut DaFile<'_, '_>, firstdb: u32, bests: &[u16]) -> Result<()> {
    let (at, _) = free_of(file, firstdb);
    file.add_at(at)?;
    let bytes = encode_dir_free(file.geometry(), &file.owner(), firstdb, bests);
    let bytes = bytes.ok_or_else(|| Error::Internal("the table of a leaf fits a block".to_owned()))?;
    file.write_new(FREE, at, bytes, &Logged::All)
}

/// The first block behind the free index.
fn free_end(file: &DaFile<'_, '_>) -> Result<FileBlock> {
    let inode = file.inode()?;
    crate::volume::mapping::last_block(&*file.tx, &inode, ForkKind::Data)
}

/// A data block with room for `len` bytes, the last one first.
fn find_room(file: &mut DaFile<'_, '_>, len: usize) -> Result<Option<u32>> {
    let (start, unit) = (file.geometry().directory.free_start.0, u64::from(file.unit()));
    let mut at = free_end(file)?.0;
    while at >= start + unit {
        at -= unit;
        let Some(free) = read_free(file, FileBlock(at))? else { continue };
        let fits = |&best: &u16| best != NULLDATAOFF && usize::from(best) >= len;
        if let Some(index) = free.bests.iter().rposition(fits) {
            let index = u32::try_from(index).map_err(|_| no_reservation(file))?;
            return Ok(Some(free.firstdb.saturating_add(index)));
        }
    }
    Ok(None)
}

/// The data block of an entry of the same hash, if it has room.
fn beside_same(file: &mut DaFile<'_, '_>, entries: &LeafEntries, hash: u32, len: usize) -> Result<Option<u32>> {
    let dbs: Vec<u32> = entries.addresses(hash).map(|address| db_of(file, address)).collect();
    for db in dbs {
        let (at, _) = free_of(file, db);
        let Some(free) = read_free(file, at)? else { continue };
        let index = free.index_of(db).map_err(|check| file.corrupt(check))?;
        if free.bests.get(index).is_some_and(|&best| best != NULLDATAOFF && usize::from(best) >= len) {
            return Ok(Some(db));
        }
    }
    Ok(None)
}

fn read_leaf(file: &mut DaFile<'_, '_>, at: FileBlock) -> Result<LeafEntries> {
    let bytes = file.read(file.hash_kind(), at)?;
    let leaf = Leaf::decode(&bytes, file.crc()).map_err(|check| file.corrupt(check))?;
    Ok(leaf.entries)
}

fn store_leaf(file: &mut DaFile<'_, '_>, at: FileBlock, entries: LeafEntries) -> Result<()> {
    let (kind, crc) = (file.hash_kind(), file.crc());
    let mut bytes = file.read(kind, at)?.to_vec();
    Leaf { entries, bests: Vec::new() }.store(&mut bytes, crc)?;
    file.write(kind, at, bytes)
}

/// Notes the longest unused range of a data block in the free index.
fn set_free(file: &mut DaFile<'_, '_>, db: u32, best: u16) -> Result<()> {
    let (at, firstdb) = free_of(file, db);
    let Some(mut free) = read_free(file, at)? else {
        if best == NULLDATAOFF {
            return Ok(());
        }
        let index = usize::try_from(db - firstdb).map_err(|_| no_reservation(file))?;
        let mut bests = vec![NULLDATAOFF; index];
        bests.push(best);
        return create_free(file, firstdb, &bests);
    };
    free.set(db, best).map_err(|check| file.corrupt(check))?;
    store_free(file, at, &free)?;
    if free.used() > 0 || firstdb == 0 {
        return Ok(());
    }
    match file.take_out(FREE, at) {
        // without a reservation it stays, and is used again
        Err(Error::NoSpace(_)) if file.tx.blocks_left() == 0 => Ok(()),
        other => other,
    }
}

/// Adds an entry.
pub(super) fn add(file: &mut DaFile<'_, '_>, shape: Shape, entry: &NewEntry<'_>) -> Result<()> {
    let (hash, len) = (name_hash(file).hash(entry.name), shape.entry_len(entry.name));
    let path = Path::to(file, hash)?;
    let entries = read_leaf(file, path.leaf)?;
    let found = match beside_same(file, &entries, hash, len)? {
        Some(db) => Some(db),
        None => find_room(file, len)?,
    };
    let db = match found {
        Some(db) => db,
        None => add_data_block(file)?,
    };
    let (address, best) = add_to_data(file, shape, db, entry)?;
    set_free(file, db, best)?;
    add_to_leaf(file, path, entries, hash, address)
}

/// Adds an entry to the leaf that `path` leads to; one that is full is split.
fn add_to_leaf(file: &mut DaFile<'_, '_>, path: Path, mut entries: LeafEntries, hash: u32, address: u32) -> Result<()> {
    let most = usize::try_from(file.geometry().directory.leaf_max_entries).map_err(|_| no_reservation(file))?;
    if entries.0.len() >= most && entries.stale() > 1 {
        entries.compact();
    }
    entries.insert(hash, address);
    if entries.0.len() <= most {
        let last = entries.last_hash();
        store_leaf(file, path.leaf, entries)?;
        return path.fix_leaf_hash(file, last);
    }
    entries.compact();
    let second = LeafEntries(entries.0.split_off(entries.0.len() / 2));
    let owner = file.owner();
    let mut leaves = Vec::with_capacity(2);
    for half in [entries, second] {
        let bytes = encode_dir_leaf(file.geometry(), &owner, Siblings::default(), &half.0);
        let bytes = bytes.ok_or_else(|| Error::Internal("half of a leaf fits a leaf".to_owned()))?;
        leaves.push(NewLeaf { bytes, last_hash: half.last_hash() });
    }
    install(file, path, leaves)
}

/// Takes out the entry of this hash and address; the directory becomes smaller if it can.
pub(super) fn remove(file: &mut DaFile<'_, '_>, shape: Shape, hash: u32, offset: usize, address: u32) -> Result<()> {
    let mut path = Path::to(file, hash)?;
    let mut entries = read_leaf(file, path.leaf)?;
    while !entries.remove(hash, address) {
        let goes_on = entries.0.is_empty() || entries.last_hash() <= hash;
        if !goes_on || !path.next_leaf(file)? {
            return Err(file.corrupt(Check::new("dir2_leaf", "address", Rule::Mismatch)));
        }
        entries = read_leaf(file, path.leaf)?;
    }
    let leaves = DirLeaves { crc: file.crc() };
    let small = leaves.is_small(&entries, file.size());
    let last = entries.last_hash();
    store_leaf(file, path.leaf, entries)?;
    path.fix_leaf_hash(file, last)?;
    let db = db_of(file, address);
    let best = remove_from_data(file, shape, db, offset)?;
    set_free(file, db, best)?;
    if small && path.has_nodes() {
        join(file, path, &leaves)?;
    }
    shrink(file, shape)
}

/// A directory with a single leaf whose table of data blocks fits into it loses its free index.
fn shrink(file: &mut DaFile<'_, '_>, shape: Shape) -> Result<()> {
    let root = file.root();
    if is_node(&file.read(file.hash_kind(), root)?) {
        return Ok(());
    }
    let start = file.geometry().directory.free_start;
    let unit = u64::from(file.unit());
    let mut end = free_end(file)?.0;
    // blocks of the free index that could not be taken out before
    while end > start.0 + unit {
        let at = FileBlock(end - unit);
        match read_free(file, at)? {
            Some(free) if free.used() > 0 => return Ok(()),
            Some(_) => file.take_out(FREE, at)?,
            None => {}
        }
        end -= unit;
    }
    // other leaves or nodes that are still there
    if free_end_before(file, start)? != root.0 + unit {
        return Ok(());
    }
    let Some(Free { bests, .. }) = read_free(file, start)? else { return Ok(()) };
    let entries = read_leaf(file, root)?;
    if !leaf::from_node(file, &entries, bests)? {
        return Ok(());
    }
    file.take_out(FREE, start)?;
    leaf::shrink(file, shape)
}

/// The first block behind all that lie before `limit`.
fn free_end_before(file: &DaFile<'_, '_>, limit: FileBlock) -> Result<u64> {
    let inode = file.inode()?;
    let mut end = 0;
    let Some(fork) = inode.fork(ForkKind::Data)? else { return Ok(end) };
    for extent in fork.extents(&*file.tx) {
        let extent = extent?;
        if extent.startoff >= limit.0 {
            break;
        }
        end = extent.startoff + u64::from(extent.blockcount);
    }
    Ok(end)
}
