//! Attributes changed at random, against a plain map, and judged.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use xfskit::forms::{AttrForm, Attributes, BlockSource, Inode, for_each_parent};
use xfskit::geometry::Ino;
use xfskit::ondisk::attr_short::AttrNamespace;
use xfskit::transaction::StoreOptions;
use xfskit::volume::attributes::AttributeName;
use xfskit::volume::operation::{NewFile, Volume};

use crate::image::Image;
use crate::random::Random;
use crate::reference::reference;

const REGULAR: u16 = 0o100_644;

type Key = (AttrNamespace, Vec<u8>);

/// A file, and what attributes it should have.
struct Model {
    ino: Ino,
    attributes: BTreeMap<Key, Vec<u8>>,
    forms: BTreeSet<&'static str>,
}

fn key(random: &mut Random, spread: u64) -> Key {
    let namespace = [AttrNamespace::User, AttrNamespace::Root, AttrNamespace::Secure][random.index(3)];
    let number = random.below(spread);
    let name = match number % 8 {
        0 => format!("{number:a>width$}", width = 20 + usize::try_from(number % 236).expect("small")),
        1 => "n".repeat(usize::try_from(number % 250 + 1).expect("small")),
        _ => format!("name{number}"),
    };
    (namespace, name.into_bytes())
}

impl Model {
    fn new(volume: &mut Volume, name: &[u8], mode: u16) -> Self {
        let root = volume.root();
        let ino = volume.create(root, name, &NewFile { mode, ..NewFile::default() }).expect("room");
        Model { ino, attributes: BTreeMap::new(), forms: BTreeSet::new() }
    }

    fn step(&mut self, volume: &mut Volume, random: &mut Random, sets: u64, spread: u64, longest: u64) {
        let key = key(random, spread);
        let name = AttributeName { namespace: key.0, name: &key.1 };
        if random.below(100) < sets {
            let len = usize::try_from(random.length(longest)).expect("short");
            let value = random.bytes(len);
            volume.set_attribute(self.ino, &name, &value).expect("room");
            self.attributes.insert(key, value);
        } else {
            let removed = volume.remove_attribute(self.ino, &name);
            assert_eq!(removed.is_ok(), self.attributes.remove(&key).is_some(), "{removed:?}");
        }
    }

    fn compare(&mut self, source: &dyn BlockSource) {
        let inode = Inode::read(source, self.ino).expect("an inode");
        let mut found = BTreeMap::new();
        if let Some(attributes) = Attributes::open(source, &inode).expect("a sound fork") {
            self.forms.insert(match attributes.form().expect("sound") {
                AttrForm::Short => "short",
                AttrForm::Leaf => "leaf",
                AttrForm::Node => "node",
            });
            attributes.for_each(&mut |attribute| {
                let attribute = attribute.expect("sound");
                assert!(!attribute.is_incomplete());
                let namespace = attribute.namespace.expect("one namespace");
                if namespace != AttrNamespace::Parent {
                    let value = attributes.value(&attribute.value).expect("sound").into_owned();
                    let key = (namespace, attribute.name.to_vec());
                    assert!(found.insert(key, value).is_none(), "{:?} twice", attribute.name);
                }
                ControlFlow::Continue(())
            });
        }
        assert!(found == self.attributes, "{:?}\n{:?}", shown(&found), shown(&self.attributes));
    }
}

fn shown(attributes: &BTreeMap<Key, Vec<u8>>) -> Vec<(AttrNamespace, String, usize)> {
    attributes
        .iter()
        .map(|((namespace, name), value)| (*namespace, String::from_utf8_lossy(name).into_owned(), value.len()))
        .collect()
}

/// Grows and shrinks the attributes of one file; every form must be met.
fn grow_and_shrink(arguments: &[&str], spread: u64, longest: u64, logged: bool) {
    let spread = if std::env::var_os("XFSKIT_FULL").is_some() { spread * 4 } else { spread / 2 };
    let image = Image::new(512, arguments);
    let mut volume = Volume::open(image.devices(), StoreOptions::default()).expect("opens");
    if logged {
        volume.log_attributes().expect("possible");
    }
    let mut model = Model::new(&mut volume, b"file", REGULAR);
    let mut random = Random::new(spread ^ longest);
    for (phase, sets) in [(0, 85), (1, 60), (2, 8)] {
        for at in 0..spread * 2 {
            model.step(&mut volume, &mut random, sets, spread, longest);
            if at % (spread / 12).max(1) == 0 || model.attributes.len() < 12 && at % 4 == 0 {
                model.compare(volume.store());
            }
        }
        if phase == 1 {
            volume.sync().expect("written");
        }
    }
    for key in model.attributes.keys().cloned().collect::<Vec<_>>() {
        volume.remove_attribute(model.ino, &AttributeName { namespace: key.0, name: &key.1 }).expect("there");
        model.attributes.remove(&key);
        model.compare(volume.store());
    }
    assert_eq!(model.forms.len(), 3, "{arguments:?}: {:?}", model.forms);
    volume.close().expect("written");
    if let Some(reference) = reference() {
        image.assert_repaired(reference);
    }
}

#[test]
fn attributes_of_small_blocks_are_maps() {
    grow_and_shrink(&["-b", "size=1k"], 400, 900, false);
}

#[test]
fn attributes_with_values_of_all_lengths_are_maps() {
    grow_and_shrink(&[], 200, 65536, false);
}

#[test]
fn logged_attributes_are_maps() {
    grow_and_shrink(&[], 200, 65536, true);
    grow_and_shrink(&["-b", "size=1k"], 300, 3000, true);
}

#[test]
fn attributes_of_version_4_are_maps() {
    grow_and_shrink(&["-m", "crc=0", "-b", "size=1k"], 300, 65536, false);
}

#[test]
fn attributes_of_small_inodes_of_version_4_are_maps() {
    grow_and_shrink(&["-m", "crc=0", "-i", "size=256,attr=2"], 200, 5000, false);
}

#[test]
fn attributes_beside_parent_pointers_are_maps() {
    grow_and_shrink(&["-n", "parent=1", "-b", "size=1k"], 300, 4000, false);
}

#[test]
fn attributes_of_large_blocks_are_maps() {
    grow_and_shrink(&["-b", "size=65536", "-d", "agcount=2"], 400, 4000, false);
}

/// Many files of all kinds with attributes, for others to look at.
fn leave(arguments: &[&str], logged: bool) {
    let image = Image::new(512, arguments);
    let mut volume = Volume::open(image.devices(), StoreOptions::default()).expect("opens");
    if logged {
        volume.log_attributes().expect("possible");
    }
    let mut random = Random::new(7);
    let mut models: Vec<Model> = Vec::new();
    for at in 0..40 {
        let mode = [REGULAR, 0o040_755, 0o010_644][at % 3];
        let mut model = Model::new(&mut volume, format!("file{at}").as_bytes(), mode);
        for _ in 0..random.below(60) {
            let longest = [20, 300, 5000, 65536][at % 4];
            model.step(&mut volume, &mut random, 75, 40, longest);
        }
        model.compare(volume.store());
        models.push(model);
    }
    volume.close().expect("written");
    let Some(reference) = reference() else { return };
    image.assert_repaired(reference);
    if arguments.contains(&"crc=0") {
        return;
    }
    image.mounted(|folder| {
        for (at, model) in models.iter().enumerate() {
            let path = folder.join(format!("file{at}"));
            for ((namespace, name), value) in &model.attributes {
                let name = namespace.prefix().to_owned() + &String::from_utf8_lossy(name);
                // Linux does not let user attributes be read of anything but files and folders
                if at % 3 == 2 && *namespace == AttrNamespace::User {
                    continue;
                }
                let mut read = vec![0; 65536];
                let len = rustix::fs::getxattr(&path, &name, &mut read[..]);
                let len = len.unwrap_or_else(|error| panic!("{name} of {path:?}: {error}"));
                assert!(read[..len] == value[..], "{name} of {path:?}");
            }
        }
    });
}

#[test]
fn attributes_are_what_the_kernel_reads() {
    leave(&[], false);
    leave(&[], true);
    leave(&["-b", "size=1k"], false);
    leave(&["-b", "size=65536", "-d", "agcount=2"], false);
    leave(&["-n", "parent=1"], true);
    leave(&["-m", "crc=0"], false);
}

/// How many intents a set logs, which are all answered in the checkpoint that would have held them: there are no others
/// without reverse mappings and reference counts.
fn intents_of(volume: &mut Volume, ino: Ino, name: &[u8], len: usize) -> u64 {
    let before = volume.store().cil().counters().marked;
    let name = AttributeName { namespace: AttrNamespace::User, name };
    volume.set_attribute(ino, &name, &vec![b'v'; len]).expect("room");
    volume.store().cil().counters().marked - before
}

#[test]
fn a_set_logs_as_many_intents_as_linux() {
    let image = Image::new(512, &["-m", "rmapbt=0,reflink=0"]);
    let mut volume = Volume::open(image.devices(), StoreOptions::default()).expect("opens");
    volume.log_attributes().expect("possible");
    let root = volume.root();
    let new = NewFile { mode: REGULAR, ..NewFile::default() };
    // what fits the inode needs none; a leaf is made by one step and filled by the next; a value in blocks of its own is the third
    for (len, intents) in [(16, 0), (256, 2), (3000, 2), (4096, 3), (65536, 3)] {
        let ino = volume.create(root, format!("file{len}").as_bytes(), &new).expect("room");
        assert_eq!(intents_of(&mut volume, ino, b"first", len), intents, "{len} bytes into an empty fork");
    }
    let ino = volume.lookup(root, b"file65536").expect("sound").expect("there");
    // the name goes into the leaf, then the value is stored
    assert_eq!(intents_of(&mut volume, ino, b"second", 65536), 2);
    // the old one is hidden, its value unmapped, and that is freed, its name taken out; then as a new one
    assert_eq!(intents_of(&mut volume, ino, b"second", 65536), 6);
    volume.close().expect("written");
    if let Some(reference) = reference() {
        image.assert_repaired(reference);
    }
}

/// The parent pointers of an inode.
fn parents(source: &dyn BlockSource, ino: Ino) -> BTreeSet<(Ino, Vec<u8>)> {
    let inode = Inode::read(source, ino).expect("an inode");
    let mut found = BTreeSet::new();
    for_each_parent(source, &inode, &mut |parent| {
        let parent = parent.expect("sound");
        assert!(found.insert((parent.parent, parent.name.to_vec())));
        ControlFlow::Continue(())
    })
    .expect("a sound fork");
    found
}

#[test]
fn parent_pointers_follow_names() {
    for arguments in [&["-n", "parent=1"][..], &["-n", "parent=1", "-b", "size=1k"]] {
        let image = Image::new(128, arguments);
        let mut volume = Volume::open(image.devices(), StoreOptions::default()).expect("opens");
        let mut random = Random::new(3);
        let root = volume.root();
        let folder = NewFile { mode: 0o040_755, ..NewFile::default() };
        let folders: Vec<Ino> =
            (0..4).map(|at| volume.create(root, format!("f{at}").as_bytes(), &folder).expect("room")).collect();
        let new = NewFile { mode: REGULAR, ..NewFile::default() };
        let file = volume.create(root, b"file", &new).expect("room");
        let mut names = BTreeSet::from([(root, b"file".to_vec())]);
        for at in 0..600 {
            let grows = at < 350;
            let dir = folders[random.index(folders.len())];
            let name = format!("{:x>width$}", random.below(400), width = 1 + random.index(200)).into_bytes();
            let key = (dir, name.clone());
            if random.below(10) < if grows { 7 } else { 2 } {
                if !names.contains(&key) {
                    volume.link(file, dir, &name).expect("room");
                    names.insert(key);
                }
            } else if let Some((old_dir, old)) = names.iter().nth(random.index(names.len())).cloned() {
                if random.below(2) == 0 && !names.contains(&key) {
                    volume.rename(old_dir, &old, dir, &name).expect("moved");
                    names.insert(key);
                    names.remove(&(old_dir, old));
                } else if names.len() > 1 {
                    volume.unlink(old_dir, &old).expect("there");
                    names.remove(&(old_dir, old));
                }
            }
            if at % 10 == 0 {
                assert_eq!(parents(volume.store(), file), names);
            }
        }
        assert_eq!(parents(volume.store(), file), names);
        volume.rename(folders[0], b"nothing", folders[1], b"else").expect_err("is not there");
        volume.close().expect("written");
        if let Some(reference) = reference() {
            image.assert_repaired(reference);
        }
    }
}

#[test]
fn symbolic_links_of_all_lengths() {
    for arguments in [&[][..], &["-b", "size=1k"], &["-m", "crc=0", "-b", "size=512"], &["-n", "parent=1"]] {
        let image = Image::new(64, arguments);
        let mut volume = Volume::open(image.devices(), StoreOptions::default()).expect("opens");
        let root = volume.root();
        let new = NewFile { mode: 0o120_777, ..NewFile::default() };
        let target = |len: usize| (0..len).map(|at| b'a' + u8::try_from(at % 26).expect("small")).collect::<Vec<u8>>();
        let lengths = [1, 50, 156, 157, 300, 336, 337, 456, 457, 512, 900, 968, 969, 1000, 1023];
        for len in lengths {
            let ino = volume.symlink(root, format!("link{len}").as_bytes(), &target(len), &new).expect("room");
            let inode = Inode::read(volume.store(), ino).expect("an inode");
            assert_eq!(xfskit::forms::read_symlink(volume.store(), &inode).expect("sound"), target(len));
            // an attribute may drive the target from the inode
            let name = AttributeName { namespace: AttrNamespace::Root, name: b"attribute" };
            volume.set_attribute(ino, &name, &[b'v'; 150]).expect("room");
            let inode = Inode::read(volume.store(), ino).expect("an inode");
            assert_eq!(xfskit::forms::read_symlink(volume.store(), &inode).expect("sound"), target(len));
        }
        assert!(volume.symlink(root, b"long", &target(1024), &new).is_err());
        for len in lengths.iter().step_by(2) {
            volume.unlink(root, format!("link{len}").as_bytes()).expect("there");
        }
        volume.close().expect("written");
        if let Some(reference) = reference() {
            image.assert_repaired(reference);
        }
    }
}
