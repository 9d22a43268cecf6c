//! From a path to an inode of a volume, or to a directory and a new name.

use crate::error::{Error, FileError, Result};
use crate::forms::{FileType, read_symlink};
use crate::geometry::Ino;
use crate::volume::operation::Volume;

/// Symbolic links that are followed on the way to one file, as in Linux.
const MOST_LINKS: u32 = 40;

/// Where a path ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The directory that has its last name; of the root, the root.
    pub(super) parent: Ino,
    /// The last name; none of the root, and behind `.` and `..`.
    pub(super) name: Vec<u8>,
    /// What has that name, if anything.
    pub(super) ino: Option<Ino>,
}

/// Where `path` ends. Symbolic links on the way are followed; one at its end if `follow` says so.
pub(super) fn find(volume: &Volume, path: &[u8], follow: bool) -> Result<End> {
    let mut links = 0;
    let mut left = names(path);
    let root = volume.root();
    let mut way = vec![root];
    let mut end = End { parent: root, name: Vec::new(), ino: Some(root) };
    while let Some(name) = left.pop() {
        let Some(dir) = end.ino else { return Err(Error::File(FileError::NotFound)) };
        if name == b".." {
            if way.len() > 1 {
                way.pop();
            }
            let at = way.last().copied().unwrap_or(root);
            end = End { parent: at, name: Vec::new(), ino: Some(at) };
            continue;
        }
        let found = volume.lookup(dir, &name)?;
        if let Some(ino) = found
            && (follow || !left.is_empty())
            && let Some(target) = symlink_target(volume, ino)?
        {
            links += 1;
            if links > MOST_LINKS {
                return Err(Error::Usage("too many symbolic links on the way".to_owned()));
            }
            if target.starts_with(b"/") {
                way.truncate(1);
            }
            let at = way.last().copied().unwrap_or(root);
            end = End { parent: at, name: Vec::new(), ino: Some(at) };
            left.extend(names(&target));
            continue;
        }
        way.extend(found);
        end = End { parent: dir, name, ino: found };
    }
    Ok(end)
}

/// The names of a path, the last one first; dots alone lead nowhere else.
fn names(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".");
    let mut names: Vec<Vec<u8>> = names.map(<[u8]>::to_vec).collect();
    names.reverse();
    names
}

fn symlink_target(volume: &Volume, ino: Ino) -> Result<Option<Vec<u8>>> {
    let inode = volume.store().inode(ino)?;
    if inode.file_type() != Some(FileType::Symlink) {
        return Ok(None);
    }
    read_symlink(volume.store(), &inode).map(Some)
}

/// The file that a path leads to.
pub(super) fn existing(volume: &Volume, path: &[u8], follow: bool) -> Result<Ino> {
    find(volume, path, follow)?.ino.ok_or(Error::File(FileError::NotFound))
}

/// Whether an inode is a directory.
pub(super) fn is_directory(volume: &Volume, ino: Ino) -> Result<bool> {
    Ok(volume.store().inode(ino)?.file_type() == Some(FileType::Directory))
}

/// The directory and the name under which something with the last name of `source` comes to `target`: into it, if it is a
/// directory.
pub(super) fn destination(volume: &Volume, source: &[u8], target: &[u8], into: bool) -> Result<End> {
    let end = find(volume, target, true)?;
    match end.ino {
        Some(ino) if is_directory(volume, ino)? => {
            let name = names(source).into_iter().next().unwrap_or_default();
            let inside = volume.lookup(ino, &name)?;
            Ok(End { parent: ino, name, ino: inside })
        }
        _ if into => Err(Error::File(FileError::NotADirectory)),
        _ => find(volume, target, false),
    }
}
