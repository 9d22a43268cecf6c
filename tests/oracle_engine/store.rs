//! The store alone: an inode changed, the journal written, replayed, and closed.

use std::os::unix::fs::MetadataExt;

use xfskit::error::Result;
use xfskit::geometry::Ino;
use xfskit::journal::{LogArea, LogState, scan};
use xfskit::ondisk::log_inode::field;
use xfskit::ondisk::{OnDisk, RawDinodeCore};
use xfskit::transaction::Store;

use crate::image::Image;
use crate::reference::reference;

/// Gives the root directory another owner, in as many transactions as owners.
fn change_owner(store: &mut Store, owners: std::ops::RangeInclusive<u32>) -> Result<()> {
    let root = Ino(store.superblock().rootino.get());
    for owner in owners {
        let reservation = store.reservations().ichange;
        let mut transaction = store.begin(reservation, 0)?;
        transaction.log_inode(root, field::CORE, |bytes| {
            let (core, _) = RawDinodeCore::prefix_mut(bytes).expect("an inode has a core");
            core.uid.set(owner);
            Ok(())
        })?;
        transaction.commit()?;
    }
    Ok(())
}

fn uid_of_root(store: &Store) -> u32 {
    let root = Ino(store.superblock().rootino.get());
    store.inode(root).expect("sound").raw().core.uid.get()
}

const KINDS: [&[&str]; 4] = [
    &[],
    &["-b", "size=1k", "-m", "rmapbt=1,reflink=1"],
    &["-b", "size=65536", "-d", "agcount=2", "-l", "su=64k"],
    &["-m", "crc=0", "-l", "version=1,size=10m"],
];

#[test]
fn what_is_synced_is_what_a_replay_finds() {
    let Some(reference) = reference() else { return };
    for arguments in KINDS {
        let image = Image::new(512, arguments);
        let mut store = image.store();
        change_owner(&mut store, 1..=7).expect("room");
        store.sync().expect("written");
        change_owner(&mut store, 8..=8).expect("room");
        drop(store);
        let geometry = image.geometry();
        let found = scan(&LogArea::new(&*image.devices().data, &geometry).expect("a log")).expect("a sound log");
        assert_eq!(found.state, LogState::Dirty, "{arguments:?}");
        let text = image.logprint(reference);
        assert!(text.contains("DIRTY") && text.contains("INO"), "{arguments:?}: {text}");
        if !arguments.contains(&"crc=0") {
            let uid = image.mounted(|folder| folder.metadata().expect("a folder").uid());
            assert_eq!(uid.unwrap_or(7), 7, "{arguments:?}");
            image.assert_repaired(reference);
        }
    }
}

#[test]
fn a_closed_filesystem_is_clean() {
    let Some(reference) = reference() else { return };
    for arguments in KINDS {
        let image = Image::new(512, arguments);
        let mut store = image.store();
        // many times around the log
        for round in 0..60 {
            change_owner(&mut store, round..=round + 3).expect("room");
            store.sync().expect("written");
        }
        store.close().expect("written");
        let text = image.logprint(reference);
        assert!(text.contains("CLEAN"), "{arguments:?}: {text}");
        image.assert_repaired(reference);
        assert_eq!(uid_of_root(&image.store()), 62, "{arguments:?}");
    }
}

#[test]
fn a_transaction_that_is_not_committed_changes_nothing() {
    let image = Image::new(64, &[]);
    let mut store = image.store();
    let root = Ino(store.superblock().rootino.get());
    change_owner(&mut store, 5..=5).expect("room");
    let reservation = store.reservations().ichange;
    let mut transaction = store.begin(reservation, 0).expect("room");
    transaction
        .log_inode(root, field::CORE, |bytes| {
            let (core, _) = RawDinodeCore::prefix_mut(bytes).expect("an inode has a core");
            core.uid.set(6);
            Ok(())
        })
        .expect("sound");
    transaction.log_superblock(|superblock| superblock.fname = *b"other name..").expect("sound");
    drop(transaction);
    assert_eq!(uid_of_root(&store), 5);
    assert_eq!(store.superblock().fname, [0; 12]);
    store.close().expect("written");
    assert_eq!(uid_of_root(&image.store()), 5);
}
