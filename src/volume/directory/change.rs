//! Which form a directory has, and which it takes.

use super::data::Shape;
use super::{NewEntry, block, leaf, node, short};
use crate::error::{Check, Error, Result, Rule};
use crate::forms::{Directory, ForkForm, ForkKind, Inode, find_extent};
use crate::geometry::Ino;
use crate::ondisk::dinode::format;
use crate::ondisk::dir_data::{DATA_ALIGN, MAXNAMELEN};
use crate::ondisk::dir_short;
use crate::ondisk::log_inode::field;
use crate::transaction::Transaction;
use crate::volume::da_btree::DaFile;
use crate::volume::inodes;

/// Whether an entry was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// It was.
    Done,
    /// The form has no room for it.
    NoRoom,
}

/// The forms, the small ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Short,
    Block,
    Leaf,
    Node,
}

fn form(file: &DaFile<'_, '_>) -> Result<Form> {
    let inode = file.inode()?;
    let directory = &file.geometry().directory;
    let missing = || file.corrupt(Check::new("dinode", "format", Rule::Range));
    let fork = inode.fork(ForkKind::Data)?.ok_or_else(missing)?;
    if matches!(fork.form, ForkForm::Local(_)) {
        return Ok(Form::Short);
    }
    Ok(if find_extent(&*file.tx, &fork, directory.free_start)?.is_some() {
        Form::Node
    } else if find_extent(&*file.tx, &fork, directory.leaf_start)?.is_some() {
        Form::Leaf
    } else {
        Form::Block
    })
}

fn shape(file: &DaFile<'_, '_>) -> Shape {
    Shape { crc: file.crc(), ftype: file.geometry().features.has_ftype() }
}

/// There is no such entry.
pub(super) fn no_entry(file: &DaFile<'_, '_>, name: &[u8]) -> Error {
    Error::Usage(format!("directory {} has no entry {:?}", file.ino, String::from_utf8_lossy(name)))
}

/// There is no block for it.
pub(super) fn no_reservation(file: &DaFile<'_, '_>) -> Error {
    Error::NoSpace(format!("no block for directory {}", file.ino))
}

/// Bytes of the data fork in the inode.
pub(super) fn fork_size(inode: &Inode) -> usize {
    let core = &inode.raw().core;
    let literal = inode.bytes().len().saturating_sub(core.literal_offset());
    if core.forkoff == 0 { literal } else { core.fork_offset().min(literal) }
}

/// Puts `bytes` into the data fork as a directory in short form.
pub(super) fn store_local(file: &mut DaFile<'_, '_>, bytes: &[u8]) -> Result<()> {
    inodes::change(file.tx, file.ino, field::DDATA, |raw, literal| {
        let end = if raw.core.forkoff == 0 { literal.len() } else { raw.core.fork_offset() };
        let full = || Error::Internal("a directory does not fit its inode".to_owned());
        let fork = literal.get_mut(..end).ok_or_else(full)?;
        let (used, rest) = fork.split_at_mut_checked(bytes.len()).ok_or_else(full)?;
        used.copy_from_slice(bytes);
        rest.fill(0);
        raw.core.format = format::LOCAL;
        raw.core.size.set(bytes.len() as u64);
        Ok(())
    })
}

/// Empties the data fork: it has a list of extents now, without any yet, and the size of one block.
pub(super) fn make_extents(file: &mut DaFile<'_, '_>) -> Result<()> {
    let size = file.size() as u64;
    inodes::change(file.tx, file.ino, field::DEXT, |raw, literal| {
        let end = if raw.core.forkoff == 0 { literal.len() } else { raw.core.fork_offset() };
        literal.get_mut(..end).ok_or_else(|| Error::Internal("a fork lies in its inode".to_owned()))?.fill(0);
        raw.core.format = format::EXTENTS;
        raw.core.size.set(size);
        Ok(())
    })
}

/// Sets the size of the directory.
pub(super) fn set_size(file: &mut DaFile<'_, '_>, size: u64) -> Result<()> {
    inodes::change(file.tx, file.ino, 0, |raw, _| {
        raw.core.size.set(size);
        Ok(())
    })
}

/// Makes an empty directory in a new inode.
///
/// # Errors
/// `Corrupt` when the inode of the directory is damaged.
pub fn init(tx: &mut Transaction<'_>, dir: Ino, parent: Ino) -> Result<()> {
    let bytes =
        dir_short::encode(parent.0, &[]).ok_or_else(|| Error::Internal("an empty directory fits".to_owned()))?;
    store_local(&mut DaFile::directory(tx, dir), &bytes)
}

fn check_name(name: &[u8]) -> Result<()> {
    if name.is_empty() || name.len() > MAXNAMELEN || name.iter().any(|byte| matches!(byte, 0 | b'/')) {
        return Err(Error::Usage(format!("{:?} cannot be the name of a file", String::from_utf8_lossy(name))));
    }
    Ok(())
}

/// Adds an entry whose name is not there yet. Times and link counts are the caller's.
///
/// # Errors
/// `Usage` for a name that cannot be; `NoSpace` when there is no block for it; `Corrupt` when the directory is damaged.
pub fn add(tx: &mut Transaction<'_>, dir: Ino, entry: &NewEntry<'_>) -> Result<()> {
    check_name(entry.name)?;
    let file = &mut DaFile::directory(tx, dir);
    let shape = shape(file);
    loop {
        let inserted = match form(file)? {
            Form::Short => match short::add(file, shape, entry)? {
                Inserted::NoRoom => {
                    demand_blocks(file)?;
                    block::from_short(file, shape)?;
                    Inserted::NoRoom
                }
                Inserted::Done => Inserted::Done,
            },
            Form::Block => match block::add(file, shape, entry)? {
                Inserted::NoRoom => {
                    demand_blocks(file)?;
                    block::to_leaf(file, shape)?;
                    Inserted::NoRoom
                }
                Inserted::Done => Inserted::Done,
            },
            Form::Leaf => match leaf::add(file, shape, entry)? {
                Inserted::NoRoom => {
                    demand_blocks(file)?;
                    leaf::to_node(file)?;
                    Inserted::NoRoom
                }
                Inserted::Done => Inserted::Done,
            },
            Form::Node => {
                node::add(file, shape, entry)?;
                Inserted::Done
            }
        };
        if inserted == Inserted::Done {
            return Ok(());
        }
    }
}

/// The entries move from the inode to a block.
pub(in crate::volume) fn leave_inode(tx: &mut Transaction<'_>, dir: Ino) -> Result<()> {
    let file = &mut DaFile::directory(tx, dir);
    let shape = shape(file);
    block::from_short(file, shape)
}

/// A directory that takes a larger form needs blocks.
fn demand_blocks(file: &DaFile<'_, '_>) -> Result<()> {
    if file.tx.blocks_left() == 0 { Err(no_reservation(file)) } else { Ok(()) }
}

/// Where an entry of a directory in blocks stands.
struct Place {
    /// Hash of its name.
    hash: u32,
    /// Its address as leaf entries have it.
    address: u32,
    /// Its offset in its block.
    offset: usize,
}

fn find(file: &DaFile<'_, '_>, name: &[u8]) -> Result<Place> {
    let inode = file.inode()?;
    let found = Directory::open(&*file.tx, &inode)?.lookup(name)?.ok_or_else(|| no_entry(file, name))?;
    let address = u32::try_from(found.offset / DATA_ALIGN as u64).map_err(|_| no_entry(file, name))?;
    let offset = usize::try_from(found.offset % file.size() as u64).map_err(|_| no_entry(file, name))?;
    Ok(Place { hash: block::name_hash(file).hash(name), address, offset })
}

/// Takes an entry out.
///
/// # Errors
/// `Usage` when it is not there; `Corrupt` when the directory is damaged.
pub fn remove(tx: &mut Transaction<'_>, dir: Ino, name: &[u8]) -> Result<()> {
    let file = &mut DaFile::directory(tx, dir);
    let shape = shape(file);
    let form = form(file)?;
    if form == Form::Short {
        return short::remove(file, name);
    }
    let Place { hash, address, offset } = find(file, name)?;
    match form {
        Form::Block => block::remove(file, shape, hash, offset, address),
        Form::Leaf => leaf::remove(file, shape, hash, offset, address),
        Form::Short | Form::Node => node::remove(file, shape, hash, offset, address),
    }
}

/// Lets an entry that is there, `..` too, name another inode.
///
/// # Errors
/// As [`remove`]; `NoSpace` when the directory must take another form, and there is no block.
pub fn replace(tx: &mut Transaction<'_>, dir: Ino, entry: &NewEntry<'_>) -> Result<()> {
    let file = &mut DaFile::directory(tx, dir);
    let shape = shape(file);
    if form(file)? == Form::Short {
        if short::replace(file, shape, entry)? == Inserted::Done {
            return Ok(());
        }
        demand_blocks(file)?;
        block::from_short(file, shape)?;
    }
    let place = find(file, entry.name)?;
    let (kind, db) = match form(file)? {
        Form::Block => (block::KIND, 0),
        _ => (leaf::DATA, leaf::db_of(file, place.address)),
    };
    let at = leaf::data_at(file, db);
    let mut bytes = file.read(kind, at)?.to_vec();
    shape.replace(&mut bytes, place.offset, entry.ino.0, entry.ftype).map_err(|check| file.corrupt(check))?;
    file.write(kind, at, bytes)
}
