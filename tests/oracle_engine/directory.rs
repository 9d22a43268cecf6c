//! Directories changed at random, against a plain map, and judged.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;

use xfskit::forms::{BlockSource, DirForm, Directory, Inode};
use xfskit::geometry::Ino;
use xfskit::transaction::StoreOptions;
use xfskit::volume::operation::{NewFile, Volume};

use crate::image::Image;
use crate::random::Random;
use crate::reference::reference;

const REGULAR: u16 = 0o100_644;
const FOLDER: u16 = 0o040_755;

/// A directory, and what should be in it.
struct Model {
    dir: Ino,
    names: BTreeMap<Vec<u8>, Ino>,
    /// Files that the names lead to.
    files: Vec<Ino>,
    forms: BTreeSet<&'static str>,
    ascii_ci: bool,
}

/// Names of one hash: pairs of bytes that change together and leave it as it is.
fn same_hash(number: u32) -> Vec<u8> {
    let mut name = b"same".to_vec();
    for bit in 0..10 {
        let flip = u8::from(number >> bit & 1 == 1);
        name.extend([b'`' ^ flip, b'A' ^ flip << 7]);
    }
    name
}

fn name(random: &mut Random, spread: u64) -> Vec<u8> {
    let number = random.below(spread);
    match number % 8 {
        0 => same_hash(u32::try_from(number / 8 % 1024).expect("small")),
        1 => format!("{number:0>width$}", width = 20 + usize::try_from(number % 236).expect("small")).into_bytes(),
        2 => format!("Upper-{number}").into_bytes(),
        _ => format!("name{number}").into_bytes(),
    }
}

impl Model {
    fn new(volume: &mut Volume, ascii_ci: bool) -> Self {
        let root = volume.root();
        let dir = volume.create(root, b"folder", &NewFile { mode: FOLDER, ..NewFile::default() }).expect("room");
        let file = NewFile { mode: REGULAR, ..NewFile::default() };
        let files = (0..5).map(|at| volume.create(root, format!("file{at}").as_bytes(), &file).expect("room"));
        let files = files.collect();
        Model { dir, names: BTreeMap::new(), files, forms: BTreeSet::new(), ascii_ci }
    }

    /// The name as the directory has it.
    fn known(&self, name: &[u8]) -> Option<Vec<u8>> {
        if !self.ascii_ci {
            return self.names.contains_key(name).then(|| name.to_vec());
        }
        // only ASCII differs in these names, save in those of one hash, which are told apart by other bytes
        let same = |known: &&Vec<u8>| xfskit::ondisk::name_hash::NameHash::AsciiCi.same(known, name);
        self.names.keys().find(same).cloned()
    }

    fn step(&mut self, volume: &mut Volume, random: &mut Random, adds: u64, spread: u64) {
        let name = name(random, spread);
        let ino = self.files[usize::try_from(random.below(self.files.len() as u64)).expect("small")];
        let known = self.known(&name);
        if random.below(100) < adds {
            let linked = volume.link(ino, self.dir, &name);
            assert_eq!(linked.is_ok(), known.is_none(), "{linked:?} of {name:?}");
            self.names.entry(known.unwrap_or(name)).or_insert(ino);
        } else if random.below(10) == 0 && !self.names.is_empty() {
            let at = usize::try_from(random.below(self.names.len() as u64)).expect("small");
            let old = self.names.keys().nth(at).expect("counted").clone();
            let moved = self.names[&old];
            if known.as_ref().is_none_or(|known| self.names[known] != moved) {
                volume.rename(self.dir, &old, self.dir, &name).expect("moved");
                self.names.remove(&old);
                self.names.insert(known.unwrap_or(name), moved);
            }
        } else if let Some(known) = known {
            volume.unlink(self.dir, &name).expect("there");
            self.names.remove(&known);
        } else {
            assert!(volume.unlink(self.dir, &name).is_err());
        }
    }

    fn compare(&mut self, source: &dyn BlockSource) {
        let inode = Inode::read(source, self.dir).expect("an inode");
        let directory = Directory::open(source, &inode).expect("a directory");
        self.forms.insert(match directory.form().expect("sound") {
            DirForm::Short => "short",
            DirForm::Block => "block",
            DirForm::Leaf => "leaf",
            DirForm::Node => "node",
        });
        let mut found = BTreeMap::new();
        directory.for_each(&mut |entry| {
            let entry = entry.expect("sound");
            if entry.name != b"." && entry.name != b".." {
                assert!(found.insert(entry.name.to_vec(), entry.ino).is_none(), "{:?} twice", entry.name);
            }
            ControlFlow::Continue(())
        });
        assert_eq!(found, self.names);
        let some = (self.names.len() / 50).max(1);
        for (name, ino) in self.names.iter().step_by(some) {
            let found = directory.lookup(name).expect("sound").map(|found| found.ino);
            assert_eq!(found, Some(*ino), "{:?}", String::from_utf8_lossy(name));
        }
    }
}

/// Of so many names, a part that is enough for every form, unless all is to be tried.
fn share(most: u64) -> u64 {
    if std::env::var_os("XFSKIT_FULL").is_some() { most * 3 } else { most / 3 }
}

/// Grows a directory to about `most` names and empties it again, comparing on the way.
fn grow_and_shrink(arguments: &[&str], most: u64, megabytes: u64) {
    let most = share(most);
    let image = Image::new(megabytes, arguments);
    let ascii_ci = arguments.iter().any(|argument| argument.contains("version=ci"));
    let mut volume = Volume::open(image.devices(), StoreOptions::default()).expect("opens");
    let mut model = Model::new(&mut volume, ascii_ci);
    let mut random = Random::new(most ^ megabytes);
    let steps = most * 2;
    let mut kept = None;
    for (phase, adds) in [(0, 85), (1, 50), (2, 8)] {
        for at in 0..steps {
            model.step(&mut volume, &mut random, adds, most);
            if at % (steps / 25).max(1) == 0 || model.names.len() < 60 && at % 8 == 0 {
                model.compare(volume.store());
            }
        }
        if phase == 1 {
            volume.sync().expect("written");
            kept = Some(model.names.len());
        }
    }
    for name in model.names.keys().cloned().collect::<Vec<_>>() {
        volume.unlink(model.dir, &name).expect("there");
        model.names.remove(&name);
        if model.names.len() % 4 == 0 {
            model.compare(volume.store());
        }
    }
    assert_eq!(model.forms.len(), 4, "{arguments:?}: {:?} with {kept:?} names", model.forms);
    volume.close().expect("written");
    if let Some(reference) = reference() {
        image.assert_repaired(reference);
    }
}

/// Leaves a directory of `most` names for others to look at.
fn leave(arguments: &[&str], most: u64, megabytes: u64) {
    let most = share(most);
    let image = Image::new(megabytes, arguments);
    let mut volume = Volume::open(image.devices(), StoreOptions::default()).expect("opens");
    let ascii_ci = arguments.iter().any(|argument| argument.contains("version=ci"));
    let mut model = Model::new(&mut volume, ascii_ci);
    let mut random = Random::new(most);
    for round in 0..4 {
        for _ in 0..most {
            model.step(&mut volume, &mut random, 70 - 10 * round, most);
        }
    }
    model.compare(volume.store());
    volume.close().expect("written");
    let Some(reference) = reference() else { return };
    image.assert_repaired(reference);
    // many kernels are built without version 4, and without names without case
    if arguments.contains(&"crc=0") || ascii_ci {
        return;
    }
    image.mounted(|folder| {
        let listed = std::fs::read_dir(folder.join("folder")).expect("a folder");
        let listed: BTreeSet<Vec<u8>> =
            listed.map(|entry| entry.expect("an entry").file_name().as_bytes().to_vec()).collect();
        assert_eq!(listed, model.names.keys().cloned().collect(), "{arguments:?}");
        for (name, ino) in &model.names {
            use std::os::unix::fs::MetadataExt;
            let path = folder.join("folder").join(std::ffi::OsStr::from_bytes(name));
            assert_eq!(path.symlink_metadata().expect("there").ino(), ino.0, "{path:?}");
        }
    });
}

#[test]
fn directories_of_blocks_in_pieces_are_maps() {
    grow_and_shrink(&["-b", "size=1k"], 3000, 64);
}

#[test]
fn directories_of_usual_blocks_are_maps() {
    grow_and_shrink(&[], 3000, 64);
}

#[test]
fn directories_of_version_4_are_maps() {
    grow_and_shrink(&["-m", "crc=0", "-b", "size=1k"], 3000, 64);
}

#[test]
fn directories_without_types_are_maps() {
    grow_and_shrink(&["-m", "crc=0", "-n", "ftype=0", "-b", "size=2k"], 3000, 64);
}

#[test]
fn directories_without_case_are_maps() {
    grow_and_shrink(&["-n", "version=ci", "-b", "size=1k"], 3000, 64);
}

#[test]
fn directories_with_parent_pointers_are_maps() {
    grow_and_shrink(&["-n", "parent=1", "-b", "size=1k"], 3000, 64);
}

#[test]
fn directories_are_what_the_kernel_reads() {
    leave(&[], 3000, 64);
    leave(&["-b", "size=1k"], 3000, 64);
    leave(&["-n", "size=64k"], 3000, 512);
    leave(&["-b", "size=1k", "-n", "size=32k"], 3000, 128);
    leave(&["-n", "parent=1"], 3000, 64);
    leave(&["-m", "crc=0"], 3000, 64);
    leave(&["-n", "version=ci"], 3000, 64);
}
