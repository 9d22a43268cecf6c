//! What Linux shows of a tree: computed from the model, and read from a mounted filesystem.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use xfskit::geometry::Ino;
use xfskit::ondisk::attr_short::AttrNamespace;

use super::tree::{File, Kind, Tree};

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Holds {
    Names,
    Bytes(Vec<u8>),
    Target(Vec<u8>),
    Nothing,
}

/// A file as Linux shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    ino: u64,
    permissions: u32,
    uid: u32,
    links: u64,
    holds: Holds,
    attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Files by path.
pub type Listing = BTreeMap<Vec<u8>, Shown>;

/// What Linux should show of the model.
pub fn of_tree(tree: &Tree) -> Listing {
    let mut listing = Listing::new();
    let mut left = vec![(tree.root, Vec::new())];
    while let Some((ino, path)) = left.pop() {
        let file = &tree.files[&ino];
        if let Kind::Directory(entries, _) = &file.kind {
            left.extend(entries.iter().map(|(name, ino)| (*ino, [&path, &b"/"[..], name].concat())));
        }
        listing.insert(path, shown(ino, file));
    }
    listing
}

fn shown(ino: Ino, file: &File) -> Shown {
    let holds = match &file.kind {
        Kind::Directory(..) => Holds::Names,
        Kind::Regular(contents) => Holds::Bytes(contents.clone()),
        Kind::Symlink(target) => Holds::Target(target.clone()),
        Kind::Fifo => Holds::Nothing,
    };
    let attributes = file.attributes.iter().filter_map(|((namespace, name), value)| {
        // of other files than regular ones and directories, Linux shows no user attributes
        let prefix: &[u8] = match (namespace, &file.kind) {
            (AttrNamespace::User, Kind::Symlink(_) | Kind::Fifo) => return None,
            (AttrNamespace::User, _) => b"user.",
            (AttrNamespace::Root, _) => b"trusted.",
            _ => b"security.",
        };
        Some(([prefix, name].concat(), value.clone()))
    });
    Shown {
        ino: ino.0,
        permissions: u32::from(file.permissions),
        uid: file.uid,
        links: u64::from(file.links),
        holds,
        attributes: attributes.collect(),
    }
}

/// What Linux shows of a mounted filesystem.
pub fn of_folder(folder: &Path) -> Listing {
    let mut listing = Listing::new();
    let mut left = vec![(folder.to_path_buf(), Vec::new())];
    while let Some((at, path)) = left.pop() {
        let seen = fs::symlink_metadata(&at).unwrap_or_else(|error| panic!("{}: {error}", at.display()));
        let kind = seen.file_type();
        let holds = if kind.is_dir() {
            for entry in fs::read_dir(&at).unwrap_or_else(|error| panic!("{}: {error}", at.display())) {
                let name = entry.expect("an entry").file_name().into_vec();
                left.push((at.join(OsStr::from_bytes(&name)), [&path, &b"/"[..], &name].concat()));
            }
            Holds::Names
        } else if kind.is_file() {
            Holds::Bytes(fs::read(&at).unwrap_or_else(|error| panic!("{}: {error}", at.display())))
        } else if kind.is_symlink() {
            Holds::Target(fs::read_link(&at).expect("a target").into_os_string().into_vec())
        } else {
            assert!(kind.is_fifo(), "{}", at.display());
            Holds::Nothing
        };
        let shown = Shown {
            ino: seen.ino(),
            permissions: seen.mode() & 0o7777,
            uid: seen.uid(),
            links: seen.nlink(),
            holds,
            attributes: attributes(&at),
        };
        listing.insert(path, shown);
    }
    listing
}

fn attributes(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 65_536];
    let len = rustix::fs::llistxattr(path, &mut names[..]).expect("a list of attributes");
    let mut value = vec![0; 65_537];
    let mut found = BTreeMap::new();
    let has_user = fs::symlink_metadata(path).is_ok_and(|seen| seen.is_file() || seen.is_dir());
    for name in names[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        // Linux lists user attributes of other files, but does not give their values
        if name.starts_with(b"user.") && !has_user {
            continue;
        }
        let len = rustix::fs::lgetxattr(path, OsStr::from_bytes(name), &mut value[..]);
        let len = len.unwrap_or_else(|error| panic!("{}, {}: {error}", path.display(), String::from_utf8_lossy(name)));
        found.insert(name.to_vec(), value[..len].to_vec());
    }
    found
}

/// Fails unless `folder` shows just this tree.
pub fn assert_same(tree: &Tree, folder: &Path, name: &str) {
    let (wanted, seen) = (of_tree(tree), of_folder(folder));
    let missing = wanted.keys().find(|path| !seen.contains_key(*path));
    let more = seen.keys().find(|path| !wanted.contains_key(*path));
    let shown = |path: Option<&Vec<u8>>| path.map(|path| String::from_utf8_lossy(path).into_owned());
    assert!(missing.is_none() && more.is_none(), "{name}: {:?} missing, {:?} more", shown(missing), shown(more));
    for (path, file) in &wanted {
        assert!(seen[path] == *file, "{name}, {}: shown otherwise", String::from_utf8_lossy(path));
    }
}
