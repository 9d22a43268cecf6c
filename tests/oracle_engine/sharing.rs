//! Blocks shared between files, taken back, and exchanged: random changes against plain contents, then xfs_repair.

use std::collections::BTreeMap;

use xfskit::error::Result;
use xfskit::forms::ForkKind;
use xfskit::geometry::{FileBlock, FsBlock, Ino};
use xfskit::ondisk::log_xmi::{XmiLogFormat, exchange};
use xfskit::transaction::{Store, Transaction};
use xfskit::volume::finish::finish;
use xfskit::volume::inodes;
use xfskit::volume::mapping::{self, Growth};

use crate::image::Image;
use crate::random::Random;
use crate::reference::reference;

/// Blocks of a file that a test uses.
const BLOCKS: u64 = 300;
/// Blocks that each step reserves.
const RESERVED: u64 = 500;
const FILES: usize = 4;

const KINDS: [&[&str]; 4] = [
    &["-n", "parent=0", "-m", "rmapbt=1"],
    &["-b", "size=1k", "-m", "rmapbt=1", "-n", "parent=0"],
    &["-b", "size=1k", "-m", "rmapbt=0", "-n", "parent=0"],
    &["-b", "size=65536", "-d", "agcount=2", "-l", "su=64k", "-n", "parent=0"],
];

/// What stands at the start of each written block.
type Contents = BTreeMap<u64, u64>;

fn step<T>(store: &mut Store, change: impl FnOnce(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
    let reservation = store.reservations().write;
    let mut tx = store.begin(reservation, RESERVED)?;
    let result = change(&mut tx)?;
    finish(tx)?;
    Ok(result)
}

struct File {
    ino: Ino,
    contents: Contents,
}

impl File {
    fn read(&self, store: &Store) -> Contents {
        let inode = store.inode(self.ino).expect("sound");
        let mut contents = Contents::new();
        for extent in mapping::extents_in(store, &inode, ForkKind::Data, FileBlock(0), BLOCKS).expect("sound") {
            for index in (0..u64::from(extent.blockcount)).filter(|_| !extent.unwritten) {
                let mut word = [0; 8];
                store.read_data(FsBlock(extent.startblock + index), 0, &mut word).expect("readable");
                contents.insert(extent.startoff + index, u64::from_le_bytes(word));
            }
        }
        contents
    }

    /// Writes a number into each block of a range, into blocks of the file's own.
    fn write(&mut self, store: &mut Store, at: u64, count: u64, number: u64) {
        let end = at + count;
        loop {
            let range = (FileBlock(at), count);
            let Some(owned) = step(store, |tx| mapping::own(tx, self.ino, range.0, range.1)).expect("room") else {
                break;
            };
            for index in 0..u64::from(owned.old.blockcount) {
                let mut word = [0; 8];
                store.read_data(FsBlock(owned.old.startblock + index), 0, &mut word).expect("readable");
                store.write_data(FsBlock(owned.new.startblock + index), 0, &word).expect("writable");
            }
        }
        let mut next = at;
        while next < end {
            let left = u32::try_from(end - next).expect("small");
            let growth = Growth::Contents { unwritten: false };
            let found = step(store, |tx| mapping::grow(tx, self.ino, ForkKind::Data, FileBlock(next), left, growth))
                .expect("room");
            for extent in found {
                for index in 0..u64::from(extent.blockcount) {
                    store.write_data(FsBlock(extent.startblock + index), 0, &number.to_le_bytes()).expect("writable");
                }
                next = extent.startoff + u64::from(extent.blockcount);
            }
        }
        self.contents.extend((at..end).map(|block| (block, number)));
    }

    fn punch(&mut self, store: &mut Store, at: u64, count: u64) {
        let mut left = count;
        while left > 0 {
            left =
                step(store, |tx| mapping::unmap(tx, self.ino, ForkKind::Data, FileBlock(at), left, 2)).expect("room");
        }
        self.contents.retain(|block, _| *block < at || *block >= at + count);
    }
}

/// Takes a range out and returns what was there, counted from its start.
fn taken(contents: &mut Contents, at: u64, count: u64) -> Contents {
    let mut rest = contents.split_off(&at);
    let behind = rest.split_off(&(at + count));
    contents.extend(behind);
    rest.into_iter().map(|(block, number)| (block - at, number)).collect()
}

fn share(store: &mut Store, files: &mut [File], (from, to): (usize, usize), (at, into): (u64, u64), count: u64) {
    for index in [from, to] {
        step(store, |tx| mapping::set_shared_flag(tx, files[index].ino)).expect("room");
    }
    let (source, target) = (files[from].ino, files[to].ino);
    let mut done = 0;
    while done < count {
        let (start, end) = ((source, FileBlock(at + done)), (target, FileBlock(into + done)));
        done += step(store, |tx| mapping::share_step(tx, start, end, count - done, None)).expect("room");
    }
    let mut copy = files[from].contents.clone();
    let copy = taken(&mut copy, at, count);
    taken(&mut files[to].contents, into, count);
    files[to].contents.extend(copy.into_iter().map(|(block, number)| (block + into, number)));
}

fn exchange(store: &mut Store, files: &mut [File], (one, two): (usize, usize), at: [u64; 2], count: u64) {
    let shared = [one, two].map(|index| {
        let inode = store.inode(files[index].ino).expect("sound");
        inode.raw().flags2.get() & xfskit::ondisk::dinode::flags2::REFLINK != 0
    });
    if shared[0] || shared[1] {
        for index in [one, two] {
            step(store, |tx| mapping::set_shared_flag(tx, files[index].ino)).expect("room");
        }
    }
    let generation = |index: usize| store.inode(files[index].ino).expect("sound").raw().core.generation.get();
    let operation = XmiLogFormat {
        id: 0,
        inodes: [files[one].ino.0, files[two].ino.0],
        generations: [generation(one), generation(two)],
        startoffs: at,
        blockcount: count,
        flags: 0,
        isizes: [0; 2],
    };
    assert_eq!(operation.flags & exchange::ALL, 0);
    step(store, |tx| {
        mapping::defer_exchange(tx, operation);
        Ok(())
    })
    .expect("room");
    let first = taken(&mut files[one].contents, at[0], count);
    let second = taken(&mut files[two].contents, at[1], count);
    files[one].contents.extend(second.into_iter().map(|(block, number)| (block + at[0], number)));
    files[two].contents.extend(first.into_iter().map(|(block, number)| (block + at[1], number)));
}

#[test]
fn shared_blocks_keep_what_each_file_wrote() {
    let Some(reference) = reference() else { return };
    let steps = if std::env::var_os("XFSKIT_FULL").is_some() { 5_000 } else { 80 };
    for (seed, arguments) in (1..).zip(KINDS) {
        let image = Image::new(512, arguments);
        let mut store = image.store();
        let mut random = Random::new(seed);
        let mut files: Vec<File> = crate::inodes::make_files(&mut store, FILES)
            .into_iter()
            .map(|ino| File { ino, contents: Contents::new() })
            .collect();
        for round in 0..steps {
            let (one, step) = (random.index(FILES), random.index(FILES - 1) + 1);
            let two = (one + step) % FILES;
            let count = random.below(40) + 1;
            let (at, into) = (random.below(BLOCKS - count), random.below(BLOCKS - count));
            match random.below(10) {
                0..5 => files[one].write(&mut store, at, count, round + 1),
                5 => files[one].punch(&mut store, at, count),
                6..9 => share(&mut store, &mut files, (one, two), (at, into), count),
                _ => exchange(&mut store, &mut files, (one, two), [at, into], count),
            }
            for file in &files {
                assert_eq!(file.read(&store), file.contents, "{arguments:?} round {round}");
            }
        }
        let size = BLOCKS * u64::from(store.geometry().blocksize);
        for file in &files {
            step(&mut store, |tx| {
                inodes::change(tx, file.ino, 0, |raw, _| {
                    raw.core.size.set(size);
                    Ok(())
                })
            })
            .expect("room");
        }
        store.close().expect("written");
        image.assert_repaired(reference);
        let store = image.store();
        for file in &files {
            assert_eq!(file.read(&store), file.contents, "{arguments:?}");
        }
        drop(store);
        image.mounted(|folder| assert!(folder.join("f0").exists()));
        image.assert_repaired(reference);
        let mut store = image.store();
        for file in &mut files {
            step(&mut store, |tx| mapping::truncate(tx, file.ino, ForkKind::Data, FileBlock(0))).expect("room");
        }
        store.close().expect("written");
        image.assert_repaired(reference);
    }
}
