//! The tree against a mounted filesystem.

use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use xfskit::geometry::Ino;
use xfskit::ondisk::attr_short::AttrNamespace;

use super::tree::{File, Kind, Tree};

/// Fails unless `folder` shows just this tree.
pub fn assert_same(tree: &Tree, folder: &Path, name: &str) {
    assert_below(tree, tree.root, folder, name);
}

fn assert_below(tree: &Tree, ino: Ino, path: &Path, name: &str) {
    let place = format!("{name}, {}", path.display());
    let file = &tree.files[&ino];
    let seen = fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(seen.ino(), ino.0, "{place}");
    assert_eq!(seen.mode() & 0o7777, u32::from(file.permissions), "{place}");
    assert_eq!(seen.uid(), file.uid, "{place}");
    assert_eq!(seen.nlink(), u64::from(file.links), "{place}");
    match &file.kind {
        Kind::Directory(entries, _) => {
            let mut names: Vec<Vec<u8>> = fs::read_dir(path)
                .unwrap_or_else(|error| panic!("{place}: {error}"))
                .map(|entry| entry.expect("an entry").file_name().into_vec())
                .collect();
            names.sort();
            assert!(names.iter().eq(entries.keys()), "{place}: other names");
            for (entry, target) in entries {
                assert_below(tree, *target, &path.join(std::ffi::OsStr::from_bytes(entry)), name);
            }
        }
        Kind::Regular(contents) => {
            assert!(
                fs::read(path).unwrap_or_else(|error| panic!("{place}: {error}")) == *contents,
                "{place}: contents"
            );
        }
        Kind::Symlink(target) => {
            let seen = fs::read_link(path).unwrap_or_else(|error| panic!("{place}: {error}"));
            assert_eq!(seen.as_os_str().as_bytes(), target, "{place}");
        }
        Kind::Fifo => {}
    }
    assert_attributes(file, path, &place);
}

fn assert_attributes(file: &File, path: &Path, place: &str) {
    for ((namespace, name), value) in &file.attributes {
        // of other files than regular ones and directories, Linux shows no user attributes
        let prefix = match (namespace, &file.kind) {
            (AttrNamespace::User, Kind::Symlink(_) | Kind::Fifo) => continue,
            (AttrNamespace::User, _) => "user.",
            (AttrNamespace::Root, _) => "trusted.",
            _ => "security.",
        };
        let full = [prefix.as_bytes(), name].concat();
        let mut seen = vec![0; 65_537];
        let len = rustix::fs::lgetxattr(path, std::ffi::OsStr::from_bytes(&full), &mut seen[..]);
        let len = len.unwrap_or_else(|error| panic!("{place}, {}: {error}", String::from_utf8_lossy(&full)));
        assert!(seen[..len] == **value, "{place}, {}: other value", String::from_utf8_lossy(&full));
    }
}
