//! A directory in its final form, built at once (Linux `fs/xfs/libxfs/xfs_dir2*.c`).

use super::file_blocks::FileMetadata;
use super::hash_tree::HashTree;
use crate::error::{Error, Result};
use crate::forms::FileType;
use crate::forms::encode::{
    BlockOwner, DirDataBuilder, Header, encode_da_node, encode_dir_free, encode_dir_leaf, encode_only_dir_leaf,
    fits_only_leaf,
};
use crate::geometry::{Geometry, Ino};
use crate::ondisk::OnDisk;
use crate::ondisk::dir_data::{DATA_ALIGN, RawDirBlockTail, entry_len};
use crate::ondisk::dir_leaf::RawDirLeafEntry;
use crate::ondisk::dir_short::{self, DirSfEntry};
use crate::ondisk::name_hash::NameHash;

/// Most entries of a directory in the inode.
const MOST_SHORT: usize = 255;

/// A name, and what it stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'c> {
    /// The name.
    pub name: &'c [u8],
    /// The inode.
    pub ino: Ino,
    /// Its kind.
    pub kind: FileType,
}

/// A directory that lies in blocks.
#[derive(Debug)]
pub(super) struct DirectoryBlocks {
    /// Size of the directory in bytes: that of its data blocks.
    pub size: u64,
    /// Its blocks in the order of the file.
    pub blocks: Vec<FileMetadata>,
}

/// The bytes of a directory in its inode; `None` when it cannot have that form, even in an inode of any size.
pub(super) fn short(geometry: &Geometry, parent: Ino, entries: &[Entry<'_>]) -> Option<Vec<u8>> {
    if entries.len() > MOST_SHORT {
        return None;
    }
    let ftype = geometry.features.has_ftype();
    let mut offset = usize::try_from(geometry.directory.data_first_offset).ok()?;
    let mut list = Vec::with_capacity(entries.len());
    for entry in entries {
        let at = u16::try_from(offset).ok()?;
        let kind = ftype.then_some(entry.kind.dir_ftype());
        list.push(DirSfEntry { offset: at, name: entry.name, ftype: kind, inumber: entry.ino.0 });
        offset += entry_len(entry.name.len(), ftype);
    }
    // it could be turned into a single block at any time
    let leaf = (entries.len() + 2) * RawDirLeafEntry::SIZE + RawDirBlockTail::SIZE;
    let fits = offset + leaf <= usize::try_from(geometry.directory.blksize).ok()?;
    dir_short::encode(parent.0, &list).filter(|_| fits)
}

/// The blocks of a directory.
///
/// # Errors
/// `Usage` when two names are the same, or there are too many.
pub(super) fn blocks(
    geometry: &Geometry,
    owner: &BlockOwner,
    parent: Ino,
    entries: &[Entry<'_>],
) -> Result<DirectoryBlocks> {
    let dots = [
        Entry { name: b".", ino: owner.ino, kind: FileType::Directory },
        Entry { name: b"..", ino: parent, kind: FileType::Directory },
    ];
    let mut data = vec![DirDataBuilder::new(geometry)];
    let mut index = Vec::with_capacity(entries.len() + 2);
    let hash = if geometry.features.has_asciici() { NameHash::AsciiCi } else { NameHash::Bytes };
    let size = u64::from(geometry.directory.blksize);
    for entry in dots.iter().chain(entries) {
        let mut placed = push(&mut data, entry);
        if placed.is_none() {
            data.push(DirDataBuilder::new(geometry));
            placed = push(&mut data, entry);
        }
        let offset = placed.ok_or_else(|| Error::Internal("a name does not fit into a directory block".into()))?;
        let at = (data.len() as u64 - 1) * size + u64::from(offset);
        let address = u32::try_from(at / DATA_ALIGN as u64).map_err(|_| too_large())?;
        index.push((hash.hash(entry.name), address, entry.name));
    }
    index.sort_unstable_by_key(|&(hash, address, _)| (hash, address));
    if hash == NameHash::AsciiCi {
        refuse_same_names(&index)?;
    }
    let leaf: Vec<RawDirLeafEntry> = index
        .iter()
        .map(|&(hash, address, _)| RawDirLeafEntry { hashval: hash.into(), address: address.into() })
        .collect();
    if let [only] = &data[..]
        && let Some(bytes) = only.clone().into_only(owner, &leaf)
    {
        let block = FileMetadata { at: 0, header: Some(Header::DirData), bytes };
        return Ok(DirectoryBlocks { size, blocks: vec![block] });
    }
    let step = u64::from(geometry.directory.fsbcount);
    let mut blocks = Vec::new();
    let mut bests = Vec::new();
    for (number, data) in data.into_iter().enumerate() {
        let (bytes, best) = data.into_data(owner);
        blocks.push(FileMetadata { at: number as u64 * step, header: Some(Header::DirData), bytes });
        bests.push(best);
    }
    let size = size * blocks.len() as u64;
    if fits_only_leaf(geometry, leaf.len(), bests.len()) {
        let bytes = encode_only_dir_leaf(geometry, owner, &leaf, &bests).ok_or_else(misfit)?;
        blocks.push(FileMetadata { at: geometry.directory.leaf_start.0, header: Some(Header::DaBlock), bytes });
    } else {
        put_tree(geometry, owner, &leaf, &mut blocks)?;
        put_free(geometry, owner, &bests, &mut blocks)?;
    }
    Ok(DirectoryBlocks { size, blocks })
}

fn push(data: &mut [DirDataBuilder], entry: &Entry<'_>) -> Option<u16> {
    data.last_mut()?.push(entry.ino, entry.name, entry.kind.dir_ftype())
}

/// Names that differ in case alone are one name where case does not count.
fn refuse_same_names(index: &[(u32, u32, &[u8])]) -> Result<()> {
    for run in index.chunk_by(|one, other| one.0 == other.0) {
        for (at, (_, _, name)) in run.iter().enumerate() {
            if let Some((_, _, other)) = run[..at].iter().find(|(_, _, other)| NameHash::AsciiCi.same(name, other)) {
                let (one, other) = (String::from_utf8_lossy(other), String::from_utf8_lossy(name));
                return Err(Error::Usage(format!(
                    "{one:?} and {other:?} in one folder are the same name where case does not count (-n version=ci)"
                )));
            }
        }
    }
    Ok(())
}

/// Adds leaves, and nodes over them.
fn put_tree(
    geometry: &Geometry,
    owner: &BlockOwner,
    leaf: &[RawDirLeafEntry],
    blocks: &mut Vec<FileMetadata>,
) -> Result<()> {
    let most = usize::try_from(geometry.directory.leaf_max_entries).map_err(|_| misfit())?;
    let count = leaf.len().div_ceil(most);
    let share = leaf.len().div_ceil(count);
    let parts: Vec<&[RawDirLeafEntry]> = leaf.chunks(share).collect();
    let hashes: Vec<u32> = parts.iter().map(|part| part.last().map_or(0, |last| last.hashval.get())).collect();
    let first = u32::try_from(geometry.directory.leaf_start.0).map_err(|_| misfit())?;
    let tree = HashTree::new(&hashes, first, geometry.directory.fsbcount, geometry.directory.node_entries)?;
    let begin = blocks.len();
    for (part, (at, siblings)) in parts.iter().zip(&tree.leaves) {
        let bytes = encode_dir_leaf(geometry, owner, *siblings, part).ok_or_else(misfit)?;
        blocks.push(FileMetadata { at: u64::from(*at), header: Some(Header::DaBlock), bytes });
    }
    for node in &tree.nodes {
        let size = geometry.directory.blksize;
        let bytes = encode_da_node(size, owner, node.siblings, node.level, &node.entries).ok_or_else(misfit)?;
        blocks.push(FileMetadata { at: u64::from(node.at), header: Some(Header::DaBlock), bytes });
    }
    blocks[begin..].sort_by_key(|block| block.at);
    Ok(())
}

/// Adds the index of free space.
fn put_free(geometry: &Geometry, owner: &BlockOwner, bests: &[u16], blocks: &mut Vec<FileMetadata>) -> Result<()> {
    let most = usize::try_from(geometry.directory.free_max_bests).map_err(|_| misfit())?;
    for (number, part) in bests.chunks(most).enumerate() {
        let firstdb = u32::try_from(number * most).map_err(|_| too_large())?;
        let bytes = encode_dir_free(geometry, owner, firstdb, part).ok_or_else(misfit)?;
        let at = geometry.directory.free_start.0 + number as u64 * u64::from(geometry.directory.fsbcount);
        blocks.push(FileMetadata { at, header: Some(Header::DirData), bytes });
    }
    Ok(())
}

fn too_large() -> Error {
    Error::Usage("a folder has more names than a directory can hold".into())
}

fn misfit() -> Error {
    Error::Internal("what was counted for a directory block does not fit into it".into())
}
