//! Inodes: allocated, freed, put on unlinked lists.

use xfskit::error::Result;
use xfskit::forms::FileType;
use xfskit::geometry::Ino;
use xfskit::transaction::{Store, Transaction};
use xfskit::volume::directory::{self, NewEntry};
use xfskit::volume::finish::finish;
use xfskit::volume::inodes::{self, NewInode};

/// The root directory.
pub fn root(store: &Store) -> Ino {
    Ino(store.superblock().rootino.get())
}

fn create_step<T>(store: &mut Store, change: impl FnOnce(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
    let reservation = store.reservations().create;
    let mut tx = store.begin(reservation, 200)?;
    let result = change(&mut tx)?;
    finish(tx)?;
    Ok(result)
}

/// Makes empty files f0, f1 and so on in the root directory.
pub fn make_files(store: &mut Store, count: usize) -> Vec<Ino> {
    let root = root(store);
    let make = |store: &mut Store, index: usize| {
        let name = format!("f{index}");
        create_step(store, |tx| {
            let new = NewInode { mode: 0o100_644, ..NewInode::default() };
            let ino = inodes::create(tx, root, &new)?;
            let entry = NewEntry { name: name.as_bytes(), ino, ftype: FileType::Regular.dir_ftype() };
            directory::add(tx, root, &entry)?;
            Ok(ino)
        })
        .expect("room")
    };
    (0..count).map(|index| make(store, index)).collect()
}
