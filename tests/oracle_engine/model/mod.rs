//! Random operations on a volume and on a plain tree in memory, which must agree: as the engine reads it, as xfs_repair checks
//! it, and as this machine's kernel shows it.

mod compare;
pub mod kernel;
pub mod steps;
mod tree;

use xfskit::transaction::StoreOptions;
use xfskit::volume::operation::Volume;

use crate::image::Image;
use crate::reference::reference;
use compare::assert_same;
use steps::Steps;

/// Operations of one run.
fn operations() -> u64 {
    if std::env::var_os("XFSKIT_FULL").is_some() { 200_000 } else { 2_000 }
}

/// How often a run is checked by xfs_repair.
fn checks() -> u64 {
    if std::env::var_os("XFSKIT_FULL").is_some() { 200 } else { 4 }
}

/// Runs operations on a new filesystem of so many MiB. `size` is the most bytes of a file.
fn run(name: &str, megabytes: u64, arguments: &[&str], size: u64, seed: u64) {
    let Some(reference) = reference() else { return };
    let image = Image::new(megabytes, arguments);
    let mut steps = Steps::new(seed, size, image.geometry().features.has_reflink());
    let rounds = checks();
    for round in 0..rounds {
        let options = StoreOptions { cache: 1 << 20, ..StoreOptions::default() };
        let mut volume = Volume::open(image.devices(), options).expect("a clean filesystem");
        for _ in 0..operations() / rounds {
            steps.step(&mut volume).unwrap_or_else(|error| panic!("{name}, round {round}: {error}"));
        }
        assert_same(&steps.tree, &volume, &format!("{name}, round {round}"));
        volume.close().expect("written");
        image.assert_repaired(reference);
    }
    if !image.geometry().features.is_v5() {
        return;
    }
    image.mounted(|folder| kernel::assert_same(&steps.tree, folder, name));
}

#[test]
fn blocks_of_4k() {
    run("4k", 512, &[], 300_000, 1);
}

#[test]
fn blocks_of_1k_with_all_features() {
    run("1k", 400, &["-b", "size=1k", "-m", "rmapbt=1,reflink=1", "-n", "parent=1"], 200_000, 2);
}

#[test]
fn blocks_of_64k() {
    run("64k", 2048, &["-b", "size=64k", "-d", "agcount=2", "-m", "rmapbt=1"], 600_000, 3);
}

#[test]
fn blocks_of_4k_without_features() {
    let without = ["-m", "finobt=0,rmapbt=0,reflink=0,bigtime=0,inobtcount=0", "-i", "sparse=0,nrext64=0"];
    run("plain", 512, &without, 300_000, 4);
}

#[test]
fn version_4() {
    run("v4", 256, &["-m", "crc=0", "-d", "agcount=4"], 300_000, 5);
}

#[test]
fn almost_full() {
    run("full", 40, &["-b", "size=1k", "-m", "rmapbt=1,reflink=1", "-d", "agcount=2"], 400_000, 6);
}
