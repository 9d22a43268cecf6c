//! A tree that has every form of directory, attribute, link and fork.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FallocateFlags, FileType, Mode, XattrFlags, fallocate, lsetxattr, makedev, mknodat};

/// Numbers of entries: from the short form up to many leaves below nodes.
const SIZES: [usize; 9] = [0, 1, 2, 5, 12, 40, 90, 300, 1_200];

/// Fills `root`; its largest directory gets `most` entries.
pub fn populate(root: &Path, blocksize: u64, most: usize) -> io::Result<()> {
    directories(&root.join("dirs"), most)?;
    attributes(&root.join("attrs"))?;
    links(&root.join("links"))?;
    special(&root.join("special"))?;
    files(&root.join("files"), blocksize)
}

fn directories(root: &Path, most: usize) -> io::Result<()> {
    fs::create_dir(root)?;
    let seed = root.join("seed");
    File::create(&seed)?;
    for count in SIZES.into_iter().chain([most]) {
        let dir = root.join(format!("n{count}"));
        fs::create_dir(&dir)?;
        // links to a few files, so that twenty thousand entries do not need as many inodes
        let mut target = seed.clone();
        for at in 0..count {
            let name = dir.join(name_of(at));
            if at % 30_000 == 0 {
                target = dir.join(name_of(at));
                File::create(&target)?;
            } else {
                fs::hard_link(&target, name)?;
            }
        }
    }
    let holes = root.join("holes");
    fs::create_dir(&holes)?;
    for at in 0..3_000 {
        fs::hard_link(&seed, holes.join(name_of(at)))?;
    }
    for at in (0..3_000).filter(|at| at % 3 != 0 || (900..1_400).contains(at)) {
        fs::remove_file(holes.join(name_of(at)))?;
    }
    // names of one hash, filed side by side
    let clash = root.join("clash");
    fs::create_dir(&clash)?;
    for at in 0..1_500u32 {
        fs::hard_link(&seed, clash.join(format!("{}{}", colliding(at), "x".repeat(20))))?;
    }
    Ok(())
}

/// Short, middling and very long names, some not in ASCII.
fn name_of(at: usize) -> String {
    match at % 7 {
        0 => format!("{at}"),
        1 => format!("file-{at:06}"),
        2 => format!("{at}-{}", "long".repeat(60)),
        3 => format!("na\u{ef}ve \u{2603} {at}"),
        4 => format!("{}{at}", "y".repeat(at % 200)),
        5 => format!("tab\there\\{at}"),
        _ => format!(".{at}"),
    }
}

/// A name for each `at` below 2048, all of one hash: each character is rotated by 7 bits more than the next, so that
/// two characters that stand 32 apart fall on the same bits, and equal changes in both cancel out.
fn colliding(at: u32) -> String {
    let mut name = vec![b'a'; 64];
    for bit in 0..11 {
        if at >> bit & 1 != 0 {
            name[bit] ^= 1;
            name[bit + 32] ^= 1;
        }
    }
    String::from_utf8(name).expect("invariant: ASCII")
}

fn set(path: &Path, name: &str, value: &[u8]) -> io::Result<()> {
    Ok(lsetxattr(path, name, value, XattrFlags::empty())?)
}

fn attributes(root: &Path) -> io::Result<()> {
    fs::create_dir(root)?;
    // all names together must fit the 64 KiB that Linux lists
    for (label, count, len) in
        [("short", 3, 8), ("leaf", 12, 60), ("leaf2", 1, 900), ("node", 120, 200), ("deep", 900, 120)]
    {
        let path = root.join(label);
        File::create(&path)?;
        for at in 0..count {
            let space = ["user", "trusted", "security"][at % 3];
            set(
                &path,
                &format!("{space}.{label}-{at:04}{}", "n".repeat(if count > 500 { at % 40 } else { at * 7 % 150 })),
                &vec![at as u8; len],
            )?;
        }
    }
    let remote = root.join("remote");
    File::create(&remote)?;
    for (at, len) in [3_000, 5_000, 16_384, 40_000, 65_000, 65_536].into_iter().enumerate() {
        let value: Vec<u8> = (0..len).map(|byte| ((byte * (at + 3)) >> 3) as u8).collect();
        set(&remote, &format!("user.value-{len}"), &value)?;
    }
    set(&remote, &format!("user.{}", "n".repeat(250)), b"the longest name")?;
    set(&remote, "user.empty", b"")?;
    let dir = root.join("directory");
    fs::create_dir(&dir)?;
    set(&dir, "trusted.of-a-directory", &[7; 300])?;
    symlink("target", root.join("link"))?;
    set(&root.join("link"), "trusted.of-a-link", b"value")?;
    Ok(())
}

fn links(root: &Path) -> io::Result<()> {
    fs::create_dir(root)?;
    for len in [1, 2, 50, 150, 300, 336, 337, 500, 800, 968, 969, 1_000, 1_023] {
        let target: String = "/way/to/a/place-".chars().cycle().take(len).collect();
        symlink(&target, root.join(format!("l{len}")))?;
    }
    Ok(())
}

fn special(root: &Path) -> io::Result<()> {
    fs::create_dir(root)?;
    let node = |name: &str, kind, device| mknodat(CWD, root.join(name), kind, Mode::from(0o640), device);
    node("pipe", FileType::Fifo, 0)?;
    node("char", FileType::CharacterDevice, makedev(5, 1))?;
    node("block", FileType::BlockDevice, makedev(259, 70_000))?;
    drop(UnixListener::bind(root.join("socket"))?);
    Ok(())
}

fn files(root: &Path, blocksize: u64) -> io::Result<()> {
    fs::create_dir(root)?;
    for size in [0, 1, 511, 4_096, 4_097, 100_000, 3_000_000] {
        let contents: Vec<u8> = (0..size).map(|at: u64| (at.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
        File::create(root.join(format!("s{size}")))?.write_all(&contents)?;
    }
    // every second block: as many extents as blocks
    for (name, count) in [("some", 6), ("btree", 300), ("deep", 20_000)] {
        let file = File::create(root.join(name))?;
        let count = if blocksize > 16_384 { count / 32 } else { count };
        for at in 0..count {
            file.write_all_at(&[at as u8 | 1; 17], at * 2 * blocksize + at % 100)?;
        }
    }
    let file = OpenOptions::new().create_new(true).write(true).open(root.join("preallocated"))?;
    fallocate(&file, FallocateFlags::empty(), 0, 100 * blocksize)?;
    for at in [0, 7, 8, 60] {
        file.write_all_at(b"written", at * blocksize)?;
    }
    let file = OpenOptions::new().create_new(true).write(true).open(root.join("far"))?;
    file.write_all_at(b"end", (1 << 42) - 3)?;
    file.write_all_at(b"middle", 1 << 41)
}
