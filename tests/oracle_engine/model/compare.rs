//! The tree against what the walkers find in the volume.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use xfskit::forms::{Attributes, Directory, Inode, StoredData, read_symlink};
use xfskit::geometry::Ino;
use xfskit::ondisk::attr_short::AttrNamespace;
use xfskit::volume::operation::Volume;

use super::tree::{File, Kind, Tree};

fn inode(volume: &Volume, ino: Ino) -> Inode {
    volume.store().inode(ino).unwrap_or_else(|error| panic!("inode {ino}: {error}"))
}

/// The contents of a file.
pub fn contents(volume: &Volume, ino: Ino) -> Vec<u8> {
    let inode = inode(volume, ino);
    let mut bytes = vec![0; usize::try_from(inode.size()).expect("small")];
    for range in StoredData::open(volume.store(), &inode).expect("a regular file") {
        let range = range.unwrap_or_else(|error| panic!("inode {ino}: {error}"));
        if !range.unwritten {
            let at = usize::try_from(range.offset).expect("small");
            let end = usize::try_from(range.end()).expect("small");
            volume.store().read_bytes(range.at, &mut bytes[at..end]).expect("readable");
        }
    }
    bytes
}

fn entries(volume: &Volume, inode: &Inode) -> BTreeMap<Vec<u8>, Ino> {
    let mut entries = BTreeMap::new();
    Directory::open(volume.store(), inode).expect("a directory").for_each(&mut |entry| {
        let entry = entry.unwrap_or_else(|error| panic!("inode {}: {error}", inode.ino));
        if entry.name != b"." && entry.name != b".." {
            assert!(entries.insert(entry.name.to_vec(), entry.ino).is_none(), "a name twice");
        }
        ControlFlow::Continue(())
    });
    entries
}

/// The attributes of a file, without parent pointers.
pub fn attributes(volume: &Volume, inode: &Inode) -> BTreeMap<(AttrNamespace, Vec<u8>), Vec<u8>> {
    let mut found = BTreeMap::new();
    let Some(attributes) = Attributes::open(volume.store(), inode).expect("sound attributes") else { return found };
    attributes.for_each(&mut |attribute| {
        let attribute = attribute.unwrap_or_else(|error| panic!("inode {}: {error}", inode.ino));
        let namespace = attribute.namespace.expect("a namespace");
        if namespace != AttrNamespace::Parent {
            let value = attributes.value(&attribute.value).expect("a value").into_owned();
            assert!(found.insert((namespace, attribute.name.to_vec()), value).is_none(), "an attribute twice");
        }
        ControlFlow::Continue(())
    });
    found
}

fn assert_file(file: &File, volume: &Volume, ino: Ino, place: &str) {
    let inode = inode(volume, ino);
    let core = &inode.raw().core;
    assert_eq!(core.mode.get() & 0o7777, file.permissions, "{place}, inode {ino}");
    assert_eq!(core.uid.get(), file.uid, "{place}, inode {ino}");
    assert_eq!(inode.raw().links(), file.links, "{place}, inode {ino}");
    match &file.kind {
        Kind::Directory(wanted, parent) => {
            assert!(entries(volume, &inode) == *wanted, "{place}, inode {ino}: other names");
            assert_eq!(volume.lookup(ino, b"..").expect("sound"), Some(*parent), "{place}, inode {ino}");
            for (name, target) in wanted.iter().step_by(17) {
                assert_eq!(volume.lookup(ino, name).expect("sound"), Some(*target), "{place}, inode {ino}");
            }
        }
        Kind::Regular(wanted) => assert!(contents(volume, ino) == *wanted, "{place}, inode {ino}: other contents"),
        Kind::Symlink(target) => assert_eq!(read_symlink(volume.store(), &inode).expect("a target"), *target),
        Kind::Fifo => {}
    }
    let found = attributes(volume, &inode);
    let sizes = |set: &BTreeMap<(AttrNamespace, Vec<u8>), Vec<u8>>, other: &BTreeMap<_, _>| {
        let differing = set.iter().filter(|(name, value)| other.get(*name) != Some(*value));
        let shown = differing.map(|((space, name), value)| (*space, name.len(), value.len()));
        shown.collect::<Vec<_>>()
    };
    let (more, missing) = (sizes(&found, &file.attributes), sizes(&file.attributes, &found));
    assert!(more.is_empty() && missing.is_empty(), "{place}, inode {ino}: {more:?} instead of {missing:?}");
}

/// Fails unless the volume holds just this tree.
pub fn assert_same(tree: &Tree, volume: &Volume, place: &str) {
    for (ino, file) in &tree.files {
        assert_file(file, volume, *ino, place);
    }
}
