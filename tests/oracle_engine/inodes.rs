//! Inodes: allocated, freed, put on unlinked lists; then xfs_repair and the kernel.

use std::collections::BTreeMap;
use std::path::Path;

use xfskit::error::{Error, Result};
use xfskit::forms::{FileType, ForkKind};
use xfskit::geometry::{AgNumber, BtreeKind, FileBlock, Ino};
use xfskit::ondisk::{OnDisk, RawSparseInobtRecord};
use xfskit::transaction::{Store, Transaction};
use xfskit::volume::directory::{self, NewEntry};
use xfskit::volume::finish::finish;
use xfskit::volume::inodes::{self, NewInode};
use xfskit::volume::mapping::{self, Growth};
use xfskit::volume::space::GroupTree;

use crate::image::Image;
use crate::random::Random;
use crate::reference::reference;

/// Blocks that each step reserves.
const RESERVED: u64 = 200;

const KINDS: [&[&str]; 7] = [
    &["-n", "parent=0"],
    &["-b", "size=1k", "-m", "rmapbt=1,reflink=1", "-n", "parent=0"],
    &["-b", "size=65536", "-d", "agcount=2", "-l", "su=64k", "-n", "parent=0"],
    &["-m", "finobt=0,rmapbt=0,reflink=0", "-i", "sparse=0", "-n", "parent=0"],
    &["-d", "su=64k,sw=4", "-i", "size=1024,nrext64=0", "-n", "parent=0"],
    &["-m", "crc=0"],
    &["-m", "crc=0,finobt=0", "-b", "size=1k", "-i", "size=256"],
];

/// The root directory.
pub fn root(store: &Store) -> Ino {
    Ino(store.superblock().rootino.get())
}

fn step<T>(store: &mut Store, change: impl FnOnce(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
    let reservation = store.reservations().create;
    let mut tx = store.begin(reservation, RESERVED)?;
    let result = change(&mut tx)?;
    finish(tx)?;
    Ok(result)
}

fn add_links(tx: &mut Transaction<'_>, ino: Ino, by: i32) -> Result<()> {
    inodes::change(tx, ino, 0, |raw, _| {
        raw.core.nlink.set(raw.core.nlink.get().checked_add_signed(by).expect("links"));
        Ok(())
    })
}

/// Makes a file, or a folder, in a folder.
fn make(store: &mut Store, folder: Ino, name: &str, is_folder: bool) -> Result<Ino> {
    step(store, |tx| {
        let (mode, kind) = if is_folder { (0o040_755, FileType::Directory) } else { (0o100_644, FileType::Regular) };
        let ino = inodes::create(tx, folder, &NewInode { mode, ..NewInode::default() })?;
        directory::add(tx, folder, &NewEntry { name: name.as_bytes(), ino, ftype: kind.dir_ftype() })?;
        if is_folder {
            directory::init(tx, ino, folder)?;
            add_links(tx, folder, 1)?;
        }
        Ok(ino)
    })
}

/// Makes empty files f0, f1 and so on in the root directory.
pub fn make_files(store: &mut Store, count: usize) -> Vec<Ino> {
    let root = root(store);
    (0..count).map(|index| make(store, root, &format!("f{index}"), false).expect("room")).collect()
}

/// Takes the name of a file away; the file is on an unlinked list then.
fn unlink(store: &mut Store, folder: Ino, name: &str, ino: Ino) {
    step(store, |tx| {
        directory::remove(tx, folder, name.as_bytes())?;
        add_links(tx, ino, -1)?;
        inodes::unlinked_add(tx, ino)
    })
    .expect("room");
}

fn free(store: &mut Store, ino: Ino) {
    step(store, |tx| inodes::free(tx, ino)).expect("room");
}

/// How many inodes are in use.
fn in_use(store: &Store) -> u64 {
    store.counters().icount - store.counters().ifree
}

/// Files and folders below a folder.
fn count_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.map(|path| 1 + if path.is_dir() { count_below(&path) } else { 0 }).sum()
}

/// A tree that changes.
struct Tree {
    folders: Vec<Ino>,
    files: BTreeMap<String, (Ino, Ino)>,
    orphans: Vec<Ino>,
    made: u64,
}

impl Tree {
    fn new(store: &Store) -> Self {
        Tree { folders: vec![root(store)], files: BTreeMap::new(), orphans: Vec::new(), made: 0 }
    }

    fn named(&self) -> u64 {
        self.files.len() as u64 + self.folders.len() as u64 - 1
    }

    fn change(&mut self, store: &mut Store, random: &mut Random, growing: bool) {
        let bound = if growing { 14 } else { 30 };
        match random.below(bound) {
            0..10 => {
                let folder = self.folders[random.index(self.folders.len())];
                let name = format!("f{}", self.made);
                let ino = make(store, folder, &name, false).expect("room");
                self.files.insert(name, (folder, ino));
                self.made += 1;
            }
            10 if self.folders.len() < 20 => {
                let folder = self.folders[random.index(self.folders.len())];
                let ino = make(store, folder, &format!("d{}", self.made), true).expect("room");
                self.folders.push(ino);
                self.made += 1;
            }
            11..13 if !self.orphans.is_empty() => {
                let ino = self.orphans.swap_remove(random.index(self.orphans.len()));
                free(store, ino);
            }
            _ if !self.files.is_empty() => {
                let name = self.files.keys().nth(random.index(self.files.len())).expect("below").clone();
                let (folder, ino) = self.files.remove(&name).expect("there");
                unlink(store, folder, &name, ino);
                self.orphans.push(ino);
            }
            _ => {}
        }
    }
}

#[test]
fn inodes_come_and_go() {
    let Some(reference) = reference() else { return };
    let steps = if std::env::var_os("XFSKIT_FULL").is_some() { 20_000 } else { 300 };
    for (seed, arguments) in (1..).zip(KINDS) {
        let image = Image::new(512, arguments);
        let mut store = image.store();
        let mut random = Random::new(seed);
        let (mut tree, before) = (Tree::new(&store), in_use(&store));
        for round in 0..steps {
            tree.change(&mut store, &mut random, round < steps / 2);
            assert_eq!(in_use(&store), before + tree.named() + tree.orphans.len() as u64, "{arguments:?}");
        }
        while let Some(ino) = tree.orphans.pop() {
            free(&mut store, ino);
        }
        store.close().expect("written");
        image.assert_repaired(reference);
        if !arguments.iter().any(|argument| argument.starts_with("crc=0")) {
            let found = image.mounted(count_below);
            assert_eq!(found.unwrap_or(tree.named()), tree.named(), "{arguments:?}");
            image.assert_repaired(reference);
        }
        let mut store = image.store();
        for (name, (folder, ino)) in std::mem::take(&mut tree.files) {
            unlink(&mut store, folder, &name, ino);
            free(&mut store, ino);
        }
        let (before, root) = (store.counters().icount, root(&store));
        let files = make_files(&mut store, 700);
        assert!(store.counters().icount > before, "{arguments:?}");
        for (index, ino) in files.into_iter().enumerate() {
            unlink(&mut store, root, &format!("f{index}"), ino);
            free(&mut store, ino);
        }
        if store.geometry().inodes.per_block <= 64 {
            assert!(store.counters().icount <= before, "{arguments:?}: chunks without inodes are kept");
        }
        store.close().expect("written");
        image.assert_repaired(reference);
    }
}

#[test]
fn the_kernel_frees_what_is_on_an_unlinked_list() {
    let Some(reference) = reference() else { return };
    let image = Image::new(512, &["-n", "parent=0"]);
    let mut store = image.store();
    let root = root(&store);
    let before = in_use(&store);
    let files = make_files(&mut store, 200);
    for (index, ino) in files.iter().enumerate() {
        unlink(&mut store, root, &format!("f{index}"), *ino);
    }
    // from the midst, the start and the end of the lists
    for ino in files.iter().step_by(3) {
        free(&mut store, *ino);
    }
    store.sync().expect("written");
    drop(store);
    if image.mounted(|folder| assert_eq!(count_below(folder), 0)).is_some() {
        image.assert_repaired(reference);
        assert_eq!(in_use(&image.store()), before);
    }
}

#[test]
fn where_no_chunk_fits_a_part_of_one_does() {
    let Some(reference) = reference() else { return };
    let image = Image::new(320, &["-n", "parent=0", "-m", "rmapbt=0,reflink=0,finobt=0", "-d", "agcount=2"]);
    let mut store = image.store();
    let root = root(&store);
    let file = make_files(&mut store, 1)[0];
    let mut end = 0_u64;
    // the volume is filled, and holes of half a chunk are made everywhere
    while store.available_blocks() > 40 {
        let left = store.available_blocks();
        let count = u32::try_from(left - 20).expect("small");
        let grown =
            step_with(&mut store, left, |tx| mapping::grow(tx, file, ForkKind::Data, FileBlock(end), count, WRITTEN));
        match grown {
            Ok(found) => end = found.last().map_or(end, |last| last.startoff + u64::from(last.blockcount)),
            Err(Error::NoSpace(_)) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let inode = store.inode(file).expect("sound");
    let extents = mapping::extents_in(&store, &inode, ForkKind::Data, FileBlock(0), end).expect("sound");
    let mut holes = Vec::new();
    for extent in extents {
        let skip = extent.startblock.next_multiple_of(64) - extent.startblock;
        holes.extend((skip..u64::from(extent.blockcount).saturating_sub(4)).step_by(64).map(|at| extent.startoff + at));
    }
    for hole in holes.iter().take(150) {
        step_with(&mut store, 8, |tx| mapping::unmap(tx, file, ForkKind::Data, FileBlock(*hole), 4, 1)).expect("room");
    }
    store.sync().expect("written");
    let folder = make(&mut store, root, "d", true).expect("room");
    let mut made = 0;
    let mut failure = None;
    while made < 2000 && failure.is_none() {
        failure = make(&mut store, folder, &format!("g{made}"), false).err();
        made += 1;
    }
    assert!(made > 200, "{made} files: {failure:?}");
    let mut parts = 0;
    for agno in [AgNumber(0), AgNumber(1)] {
        let tree = GroupTree::of(&store, agno, BtreeKind::Inobt).expect("sound");
        let mut cursor = tree.from(Default::default()).expect("sound");
        while let Some(record) = cursor.next_record().expect("sound") {
            parts += u32::from(RawSparseInobtRecord::prefix(&record).expect("whole").0.holemask.get() != 0);
        }
    }
    assert!(parts > 0, "no chunk has holes");
    store.close().expect("written");
    image.assert_repaired(reference);
}

const WRITTEN: Growth = Growth::Contents { unwritten: false };

fn step_with<T>(store: &mut Store, blocks: u64, change: impl FnOnce(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
    let reservation = store.reservations().write;
    let mut tx = store.begin(reservation, blocks)?;
    let result = change(&mut tx)?;
    finish(tx)?;
    Ok(result)
}
