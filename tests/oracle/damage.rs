//! The judges themselves: each must find fault with an image that has been damaged, or it says nothing about a sound one.

use crate::compare;
use crate::format::{Formatted, Side, format};
use crate::host_kernel;
use crate::matrix::repair;
use crate::place::Places;
use crate::reference::{Reference, reference};
use crate::sets::{Set, accepted};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes per block and blocks of the group headers in the image of the set `block-4k`.
const BLOCK: u64 = 4096;

fn set(name: &str) -> Set {
    accepted().into_iter().find(|set| set.name == name).expect("the set is in the matrix")
}

/// An image of the set by mkfs.xfs, with `bytes` written at `offset` of its data file.
fn damaged(set: &Set, name: &str, places: &Places, reference: &Reference, offset: u64, bytes: &[u8]) -> Formatted {
    let folder = places.folder(set, reference).expect("a folder").keep();
    let made = format(set, Side::Theirs, &folder.join(name), reference).expect("a run");
    made.success().expect("mkfs.xfs accepts it");
    let file = File::options().write(true).open(made.files.image('d')).expect("an image");
    file.write_all_at(bytes, offset).expect("a write");
    made
}

#[test]
fn judges_find_damage() {
    let Some(reference) = reference() else { return };
    let places = Places::new();
    let set = set("block-4k");
    let sound = damaged(&set, "sound", &places, reference, 0, b"XFSB");
    repair(&set, &sound.files, reference).expect("xfs_repair finds a sound image sound");
    // A bit of the root directory's inode, of the free space btree of the first group, and of a secondary superblock.
    let cases = [("inode", 16 * BLOCK + 3), ("bnobt", 3 * BLOCK + 60), ("secondary", 32768 * BLOCK + 9)];
    for (name, offset) in cases {
        let bad = damaged(&set, name, &places, reference, offset, &[0x5a]);
        let difference = compare::files(&bad.files.image('d'), &sound.files.image('d')).expect("a comparison");
        assert!(difference.is_some_and(|found| found.contains(&format!("{offset:#x} "))), "{name}: not found");
        assert!(repair(&set, &bad.files, reference).is_err(), "{name}: xfs_repair -n has found nothing");
    }
}

#[test]
fn the_kernel_refuses_damage() {
    let Some(reference) = reference() else { return };
    if !host_kernel::can_mount() {
        return;
    }
    let places = Places::new();
    let set = set("block-4k");
    let sound = damaged(&set, "sound", &places, reference, 0, b"XFSB");
    host_kernel::use_it(&set, &sound.files).expect("the kernel uses a sound image");
    repair(&set, &sound.files, reference).expect("and leaves it sound");
    let bad = damaged(&set, "magic", &places, reference, 0, b"XFSX");
    host_kernel::use_it(&set, &bad.files).expect_err("no superblock");
    let bad = damaged(&set, "inode", &places, reference, 16 * BLOCK, b"XX");
    host_kernel::use_it(&set, &bad.files).expect_err("no root directory");
}
