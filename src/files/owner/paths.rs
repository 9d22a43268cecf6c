//! The names of an inode: all directories are read until every link that it says it has is found.

use std::collections::{BTreeMap, HashSet};

use crate::forms::{FileType, Inode};
use crate::geometry::Ino;
use crate::tree::Reader;
use crate::tree::{Folder, Order};

/// An inode, and the paths that lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The inode.
    pub ino: Ino,
    /// Paths from the root; none for an inode that has no name, or is one of the filesystem itself.
    pub paths: Vec<Vec<u8>>,
}

/// Paths longer than this are not followed further; see [`super::super::walk()`].
const LONGEST_PATH: usize = 32 * 1024;

/// The paths of `inodes`.
pub fn paths_of(reader: &Reader<'_>, inodes: &[Ino]) -> Vec<Named> {
    let mut found: BTreeMap<u64, Vec<Vec<u8>>> = inodes.iter().map(|ino| (ino.0, Vec::new())).collect();
    let root = reader.geometry().rootino;
    // links that are still to be found, if the inodes say how many
    let links = inodes.iter().collect::<HashSet<_>>().into_iter().map(|&ino| links_of(reader, ino)).sum::<u64>();
    let mut left = links;
    if let Some(paths) = found.get_mut(&root.0) {
        paths.push(b"/".to_vec());
        left = left.saturating_sub(1);
    }
    let mut visited = HashSet::new();
    let mut folders: Vec<(Ino, Vec<u8>)> = vec![(root, Vec::new())];
    while let Some((ino, path)) = folders.pop() {
        if left == 0 || !visited.insert(ino) || path.len() > LONGEST_PATH {
            continue;
        }
        let Some(folder) = reader.inode(ino).filter(|inode| inode.file_type() == Some(FileType::Directory)) else {
            continue;
        };
        for entry in Folder::read(reader, &folder, Order::Stored).iter() {
            let whole = || [&path[..], b"/", entry.name].concat();
            if let Some(paths) = found.get_mut(&entry.ino.0) {
                paths.push(whole());
                left = left.saturating_sub(1);
            }
            if entry.file_type.is_none_or(|kind| kind == FileType::Directory) {
                folders.push((entry.ino, whole()));
            }
        }
    }
    found.into_iter().map(|(ino, paths)| Named { ino: Ino(ino), paths }).collect()
}

/// How many names an inode has; one for a folder, however many links its subfolders make.
fn links_of(reader: &Reader<'_>, ino: Ino) -> u64 {
    let inode = Inode::read(reader.source(), ino).ok();
    inode.map_or(0, |inode| match inode.file_type() {
        _ if inode.raw().is_metadata() || reader.geometry().is_internal_ino(ino) => 0,
        Some(FileType::Directory) => 1,
        Some(_) => u64::from(inode.raw().links()),
        None => 0,
    })
}
