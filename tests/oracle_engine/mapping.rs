//! Mappings of files: random changes against a plain map of blocks, then xfs_repair and the kernel.

use std::collections::BTreeMap;

use xfskit::error::{Error, Result};
use xfskit::forms::ForkKind;
use xfskit::geometry::{FileBlock, Ino};
use xfskit::ondisk::Extent;
use xfskit::transaction::{Store, Transaction};
use xfskit::volume::finish::finish;
use xfskit::volume::mapping::{self, Growth};

use crate::image::Image;
use crate::random::Random;
use crate::reference::reference;

/// Blocks of a file that a test uses.
const BLOCKS: u64 = 4000;
/// Blocks that each step reserves.
const RESERVED: u64 = 1200;

const KINDS: [&[&str]; 6] = [
    &[],
    &["-b", "size=1k", "-m", "rmapbt=1,reflink=1"],
    &["-b", "size=1k", "-m", "rmapbt=0,reflink=0,finobt=0"],
    &["-b", "size=65536", "-d", "agcount=2", "-l", "su=64k"],
    &["-m", "rmapbt=1,reflink=0", "-i", "nrext64=0"],
    &["-m", "crc=0"],
];

/// What each block of a file is mapped to, and whether it is unwritten.
type Model = BTreeMap<u64, (u64, bool)>;

/// A file, and what its blocks should be.
struct File {
    ino: Ino,
    model: Model,
}

fn step<T>(store: &mut Store, change: impl FnOnce(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
    let reservation = store.reservations().write;
    let mut tx = store.begin(reservation, RESERVED)?;
    let result = change(&mut tx)?;
    finish(tx)?;
    Ok(result)
}

fn blocks_of(extents: &[Extent]) -> Model {
    let mut blocks = Model::new();
    for extent in extents {
        for index in 0..u64::from(extent.blockcount) {
            let old = blocks.insert(extent.startoff + index, (extent.startblock + index, extent.unwritten));
            assert_eq!(old, None, "two extents map a block");
        }
    }
    blocks
}

impl File {
    /// What the inode says.
    fn read(&self, store: &Store) -> Model {
        let inode = store.inode(self.ino).expect("sound");
        let fork = inode.fork(ForkKind::Data).expect("sound").expect("a data fork");
        let extents: Vec<Extent> = fork.extents(store).map(|extent| extent.expect("sound")).collect();
        assert!(extents.windows(2).all(|pair| pair[0].startoff < pair[1].startoff));
        blocks_of(&extents)
    }

    fn grow(&mut self, store: &mut Store, at: u64, count: u32, growth: Growth) {
        let found = step(store, |tx| mapping::grow(tx, self.ino, ForkKind::Data, FileBlock(at), count, growth));
        let found = match found {
            Err(Error::NoSpace(_)) => return,
            found => found.expect("room"),
        };
        assert_eq!(found.first().map(|extent| extent.startoff), Some(at));
        let unwritten = growth == Growth::Contents { unwritten: true };
        for (block, (to, state)) in blocks_of(&found) {
            assert!((at..at + u64::from(count)).contains(&block));
            match self.model.get(&block) {
                Some(old) => assert_eq!(*old, (to, state)),
                None => {
                    assert_eq!(state, unwritten && store.geometry().features.has_extflg());
                    self.model.insert(block, (to, state));
                }
            }
        }
    }

    fn unmap(&mut self, store: &mut Store, at: u64, count: u64, most: usize) {
        let mut left = count;
        while left > 0 {
            let now = step(store, |tx| mapping::unmap(tx, self.ino, ForkKind::Data, FileBlock(at), left, most));
            let now = now.expect("room");
            assert!(now < left);
            left = now;
        }
        self.model.retain(|block, _| *block < at || *block >= at + count);
    }

    fn convert(&mut self, store: &mut Store, at: u64, count: u64, unwritten: bool, most: usize) {
        let end = at + count;
        let mut left = count;
        while left > 0 {
            let from = FileBlock(end - left);
            left = step(store, |tx| mapping::convert(tx, self.ino, from, left, unwritten, most)).expect("room");
        }
        self.model.range_mut(at..end).for_each(|(_, value)| value.1 = unwritten);
    }

    fn truncate(&mut self, store: &mut Store, at: u64) {
        step(store, |tx| mapping::truncate(tx, self.ino, ForkKind::Data, FileBlock(at))).expect("room");
        self.model.split_off(&at);
    }

    fn collapse(&mut self, store: &mut Store, at: u64, count: u64) {
        self.unmap(store, at, count, 2);
        step(store, |tx| mapping::collapse(tx, self.ino, FileBlock(at + count), count)).expect("room");
        let behind = self.model.split_off(&at);
        self.model.extend(behind.into_iter().map(|(block, value)| (block - count, value)));
    }

    fn insert(&mut self, store: &mut Store, at: u64, count: u64) {
        step(store, |tx| mapping::insert(tx, self.ino, FileBlock(at), count)).expect("room");
        let behind = self.model.split_off(&at);
        self.model.extend(behind.into_iter().map(|(block, value)| (block + count, value)));
    }

    /// A change drawn at random.
    fn change(&mut self, store: &mut Store, random: &mut Random) {
        let at = random.below(BLOCKS);
        let few = random.below(6) + 1;
        let many = random.below(200) + 1;
        let unwritten = random.below(2) == 0 && store.geometry().features.has_extflg();
        let most = usize::try_from(random.below(3)).expect("small") + 1;
        match random.below(40) {
            0..24 => {
                let count = u32::try_from(if random.below(8) == 0 { many } else { few }).expect("small");
                self.grow(store, at, count, Growth::Contents { unwritten });
            }
            24..26 => self.grow(store, at, u32::try_from(few).expect("small"), Growth::Metadata),
            26..32 => self.unmap(store, at, few, most),
            32..36 => self.convert(store, at, many, unwritten, most),
            36 => self.unmap(store, at, many, usize::MAX),
            37 => self.truncate(store, BLOCKS - many),
            38 => self.collapse(store, at.max(BLOCKS - 300), few),
            _ => self.insert(store, at.max(BLOCKS - 300), few),
        }
    }
}

/// Sets the size of a file so that it holds all its blocks.
fn set_size(store: &mut Store, file: &File) {
    let end = file.model.last_key_value().map_or(0, |(block, _)| block + 1);
    let size = end * u64::from(store.geometry().blocksize);
    step(store, |tx| {
        xfskit::volume::inodes::change(tx, file.ino, 0, |raw, _| {
            raw.core.size.set(size);
            Ok(())
        })
    })
    .expect("room");
}

#[test]
fn mappings_are_those_of_a_plain_map() {
    let Some(reference) = reference() else { return };
    let steps = if std::env::var_os("XFSKIT_FULL").is_some() { 20_000 } else { 500 };
    for (seed, arguments) in (1..).zip(KINDS) {
        let image = Image::new(512, &[arguments, &["-n", "parent=0"]].concat());
        let mut store = image.store();
        let mut random = Random::new(seed);
        let mut files: Vec<File> =
            crate::inodes::make_files(&mut store, 3).into_iter().map(|ino| File { ino, model: Model::new() }).collect();
        for round in 0..steps {
            let index = usize::try_from(random.below(3)).expect("small");
            files[index].change(&mut store, &mut random);
            if round % 16 == 0 {
                assert_eq!(files[index].read(&store), files[index].model, "{arguments:?} round {round}");
            }
        }
        let mut owned: Vec<u64> = Vec::new();
        for file in &mut files {
            assert_eq!(file.read(&store), file.model, "{arguments:?}");
            owned.extend(file.model.values().map(|value| value.0));
            set_size(&mut store, file);
        }
        owned.sort_unstable();
        assert!(owned.windows(2).all(|pair| pair[0] != pair[1]), "{arguments:?}: a block belongs to two files");
        store.close().expect("written");
        image.assert_repaired(reference);
        let store = image.store();
        for file in &files {
            assert_eq!(file.read(&store), file.model, "{arguments:?}");
        }
        drop(store);
        if !arguments.contains(&"crc=0") {
            image.mounted(|folder| assert!(folder.join("f0").exists()));
            image.assert_repaired(reference);
        }
        let mut store = image.store();
        for file in &mut files {
            file.truncate(&mut store, 0);
            assert!(file.read(&store).is_empty(), "{arguments:?}");
            set_size(&mut store, file);
        }
        store.close().expect("written");
        image.assert_repaired(reference);
    }
}

/// The extents of a file.
fn extents_of(store: &Store, ino: Ino) -> Vec<Extent> {
    let inode = store.inode(ino).expect("sound");
    mapping::extents_in(store, &inode, ForkKind::Data, FileBlock(0), BLOCKS).expect("sound")
}

#[test]
fn hints_widen_what_is_allocated_and_stripes_align_it() {
    let Some(reference) = reference() else { return };
    let image = Image::new(512, &["-d", "su=64k,sw=4", "-n", "parent=0"]);
    let mut store = image.store();
    let files = crate::inodes::make_files(&mut store, 2);
    step(&mut store, |tx| {
        xfskit::volume::inodes::change(tx, files[0], 0, |raw, _| {
            raw.core.extsize.set(16);
            raw.core.flags.set(raw.core.flags.get() | xfskit::ondisk::dinode::flags::EXTSIZE);
            raw.core.size.set(48 << 12);
            Ok(())
        })
    })
    .expect("room");
    let growth = Growth::Contents { unwritten: false };
    let found = step(&mut store, |tx| mapping::grow(tx, files[0], ForkKind::Data, FileBlock(21), 3, growth));
    assert_eq!(
        found.expect("room").iter().map(|extent| (extent.startoff, extent.blockcount)).collect::<Vec<_>>(),
        [(21, 3)]
    );
    let extents = extents_of(&store, files[0]);
    let shape: Vec<_> = extents.iter().map(|extent| (extent.startoff, extent.blockcount, extent.unwritten)).collect();
    assert_eq!(shape, [(16, 5, true), (21, 3, false), (24, 8, true)]);
    step(&mut store, |tx| mapping::grow(tx, files[1], ForkKind::Data, FileBlock(0), 40, growth)).expect("room");
    let extents = extents_of(&store, files[1]);
    let (_, start) = store.geometry().fsb_parts(xfskit::geometry::FsBlock(extents[0].startblock)).expect("inside");
    assert_eq!((extents.len(), start.0 % 16), (1, 0));
    step(&mut store, |tx| {
        xfskit::volume::inodes::change(tx, files[1], 0, |raw, _| {
            raw.core.size.set(40 << 12);
            Ok(())
        })
    })
    .expect("room");
    store.close().expect("written");
    image.assert_repaired(reference);
}
