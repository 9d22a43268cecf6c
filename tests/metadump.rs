//! xfskit-metadump and xfskit-mdrestore as one runs them: what they refuse, and what they go on without.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use xfskit::buffer::{SearchEffort, find_superblock};
use xfskit::device::{FileDevice, OpenFile};
use xfskit::ondisk::dinode::format;
use xfskit::ondisk::metadump::{RawMetaExtent, RawMetadumpHeader};
use xfskit::ondisk::{OnDisk, RawDinode};

fn run(binary: &str, folder: &Path, arguments: &[&str]) -> Output {
    Command::new(binary).args(arguments).current_dir(folder).output().expect("the tool can be started")
}

fn metadump(folder: &Path, arguments: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_xfskit-metadump"), folder, arguments)
}

fn mdrestore(folder: &Path, arguments: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_xfskit-mdrestore"), folder, arguments)
}

fn succeed(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A folder with a filesystem in `image`.
fn image(arguments: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let arguments = [&["-q", "-f"][..], arguments, &["image"]].concat();
    succeed(&run(env!("CARGO_BIN_EXE_xfskit-mkfs"), folder.path(), &arguments));
    folder
}

const SMALL: &[&str] = &["--size", "300m"];

fn read(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).expect("readable")
}

/// Whether two images are the same but for the primary superblock, which a restore writes in the form that Linux does.
fn same(first: &[u8], second: &[u8]) -> bool {
    first.len() == second.len() && first[512..] == second[512..]
}

#[test]
fn a_dump_comes_back_through_files_pipes_and_compression() {
    let folder = image(SMALL);
    let path = folder.path();
    for version in ["1", "2"] {
        succeed(&metadump(path, &["-a", "-o", "-v", version, "image", "dump"]));
        succeed(&metadump(path, &["-a", "-o", "-v", version, "--zstd", "image", "dump.zst"]));
        let piped = metadump(path, &["-a", "-o", "-v", version, "image"]);
        succeed(&piped);
        assert!(piped.stdout == read(path, "dump"), "version {version}");
        assert!(read(path, "dump.zst").len() < piped.stdout.len() / 10);
        // the metadata of a filesystem without files is all that it has
        let image = read(path, "image");
        // a longer file with other contents must not shine through
        fs::write(path.join("restored"), vec![0x5a; image.len() + 4096]).expect("writable");
        succeed(&mdrestore(path, &["dump", "restored"]));
        assert!(same(&read(path, "restored"), &image), "version {version}");
        succeed(&mdrestore(path, &["dump.zst", "second"]));
        assert!(same(&read(path, "second"), &image), "version {version}, compressed");
        let binary = env!("CARGO_BIN_EXE_xfskit-mdrestore");
        let command = Command::new(binary).args(["-", "third"]).current_dir(path).stdin(Stdio::piped()).spawn();
        let mut child = command.expect("the tool can be started");
        child.stdin.take().expect("invariant: it is a pipe").write_all(&piped.stdout).expect("it reads everything");
        assert!(child.wait().is_ok_and(|status| status.success()));
        assert!(same(&read(path, "third"), &image), "version {version}, from a pipe");
        let info = mdrestore(path, &["-i", "dump"]);
        succeed(&info);
        let text = String::from_utf8_lossy(&info.stdout).into_owned();
        assert!(text.starts_with("dump: not obfuscated, clean log") && text.contains("full metadata blocks"), "{text}");
    }
}

#[test]
fn a_seed_makes_dumps_equal_and_labels_go() {
    let folder = image(&["--size", "300m", "-L", "secretlabel"]);
    let path = folder.path();
    for name in ["a", "b"] {
        succeed(&metadump(path, &["--seed", "7", "-v", "2", "image", name]));
    }
    let dump = read(path, "a");
    assert!(dump == read(path, "b"));
    assert!(!dump.windows(11).any(|window| window == b"secretlabel"));
    assert!(dump.windows(11).any(|window| window == b"LLLLLLLLLLL"));
    succeed(&mdrestore(path, &["a", "restored"]));
    let info = run(env!("CARGO_BIN_EXE_xfskit-info"), path, &["-v", "restored"]);
    succeed(&info);
    assert!(String::from_utf8_lossy(&info.stdout).contains("clean"), "{}", String::from_utf8_lossy(&info.stdout));
}

#[test]
fn version_1_is_refused_for_realtime_groups() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path();
    File::create(path.join("rt")).and_then(|file| file.set_len(300 << 20)).expect("a sparse file");
    let mkfs = ["-q", "-f", "--size", "300m", "-m", "metadir=1", "-r", "rtdev=rt", "image"];
    succeed(&run(env!("CARGO_BIN_EXE_xfskit-mkfs"), path, &mkfs));
    let refused = metadump(path, &["-v", "1", "-r", "rt", "image", "dump"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(text.contains("version 1") && text.contains("realtime"), "{text}");
    let missing = metadump(path, &["image", "dump"]);
    assert_eq!(missing.status.code(), Some(1));
    succeed(&metadump(path, &["-a", "-o", "-r", "rt", "image", "dump"]));
    assert_eq!(mdrestore(path, &["dump", "restored"]).status.code(), Some(1), "the realtime device is not named");
    succeed(&mdrestore(path, &["-r", "restored.rt", "dump", "restored"]));
    assert!(read(path, "restored") == read(path, "image") && read(path, "restored.rt") == read(path, "rt"));
}

/// Changes the inode of number root + `step`, which is in use in every filesystem.
fn change_inode(folder: &Path, step: u64, change: impl Fn(&mut RawDinode)) {
    let path = folder.join("image");
    let device = FileDevice::open(&path, OpenFile::READ).expect("readable");
    let found = find_superblock(&device, SearchEffort::Guesses).expect("a filesystem");
    let ino = xfskit::geometry::Ino(found.geometry.rootino.0 + step);
    let at = usize::try_from(found.geometry.ino_offset(ino).expect("it exists")).expect("small");
    let mut bytes = fs::read(&path).expect("readable");
    let (inode, _) = RawDinode::prefix_mut(&mut bytes[at..]).expect("whole");
    change(inode);
    fs::write(path, bytes).expect("writable");
}

#[test]
fn damaged_inodes_cost_only_themselves() {
    let too_many = |inode: &mut RawDinode| {
        inode.core.format = format::EXTENTS;
        inode.core.nextents = ((1 << 28) + 1).into();
        inode.core.big_nextents = ((1 << 28) + 1).into();
    };
    let device = |inode: &mut RawDinode| {
        inode.core.mode = 0o020_600.into();
        inode.core.nextents = 1.into();
        inode.core.big_nextents = 1.into();
    };
    let fork = |inode: &mut RawDinode| inode.core.forkoff = 255;
    let changes: [&dyn Fn(&mut RawDinode); 3] = [&too_many, &device, &fork];
    for (number, change) in changes.into_iter().enumerate() {
        let folder = image(SMALL);
        change_inode(folder.path(), 1, change);
        for options in [&["-w", "-a", "-o"][..], &["-w"], &["-w", "-v", "2"]] {
            let dumped = metadump(folder.path(), &[options, &["image", "dump"]].concat());
            succeed(&dumped);
            let text = String::from_utf8_lossy(&dumped.stderr).into_owned();
            assert!(text.contains("inode 129"), "{number} {options:?}: {text}");
            succeed(&mdrestore(folder.path(), &["dump", "restored"]));
        }
        let quiet = metadump(folder.path(), &["image", "dump"]);
        assert!(String::from_utf8_lossy(&quiet.stderr).contains("1 structures are damaged"));
        if number == 1 {
            continue;
        }
        succeed(&metadump(folder.path(), &["-a", "-o", "image", "dump"]));
        succeed(&mdrestore(folder.path(), &["dump", "restored"]));
        assert!(same(&read(folder.path(), "restored"), &read(folder.path(), "image")));
    }
}

#[test]
fn dumps_are_not_believed() {
    let folder = image(SMALL);
    let path = folder.path();
    succeed(&metadump(path, &["-v", "1", "image", "v1"]));
    succeed(&metadump(path, &["-v", "2", "image", "v2"]));
    let (v1, v2) = (read(path, "v1"), read(path, "v2"));
    let second = RawMetadumpHeader::SIZE + RawMetaExtent::SIZE + 512;
    let with = |bytes: &[u8], at: usize, value: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes[at..at + value.len()].copy_from_slice(value);
        bytes
    };
    let cases: [(&str, Vec<u8>); 14] = [
        ("no magic number", with(&v2, 0, b"XMD3")),
        ("another version", with(&v2, 4, &[0, 0, 0, 3])),
        ("unknown flags", with(&v2, 12, &[0, 0, 0, 2])),
        ("an extent without length", with(&v2, second + 8, &[0; 4])),
        ("an extent longer than the device", with(&v2, second + 8, &[0x7f, 0xff, 0xff, 0xff])),
        ("an extent of all that is counted", with(&v2, second + 8, &[0xff; 4])),
        ("an extent behind the device", with(&v2, second, &[0, 0, 0, 1, 0, 0, 0, 0])),
        ("an extent of an unknown device", with(&v2, second, &[0x3f, 0xc0, 0, 0, 0, 0, 0, 1])),
        ("an extent of a device that is not there", with(&v2, second, &[0, 0x40, 0, 0, 0, 0, 0, 1])),
        ("an end within an extent", v2[..v2.len() - 100].to_vec()),
        ("too many addresses", with(&v1, 4, &[0, 64])),
        ("an address behind the device", with(&v1, 16, &[0, 0, 1, 0, 0, 0, 0, 0])),
        ("the last address of all, and the first", with(&v1, 16, &[&[0xff; 8][..], &[0; 8]].concat())),
        ("an end within a block", v1[..v1.len() - 100].to_vec()),
    ];
    for (what, dump) in cases {
        fs::write(path.join("bad"), dump).expect("writable");
        let output = mdrestore(path, &["bad", "restored"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{what}: {text}");
        assert!(text.starts_with("xfskit-mdrestore: ") && !text.contains("panicked"), "{what}: {text}");
        // what is not whole does not look as if it were
        let info = run(env!("CARGO_BIN_EXE_xfskit-info"), path, &["restored"]);
        assert!(!path.join("restored").exists() || !info.status.success(), "{what}");
    }
}

#[test]
fn files_are_not_lost_by_mistake() {
    let folder = image(SMALL);
    let path = folder.path();
    let before = read(path, "image");
    assert_eq!(metadump(path, &["image", "image"]).status.code(), Some(1));
    assert!(read(path, "image") == before);
    succeed(&metadump(path, &["image", "dump"]));
    let dump = read(path, "dump");
    assert_eq!(mdrestore(path, &["dump", "dump"]).status.code(), Some(1));
    // what is no dump empties nothing
    assert_eq!(mdrestore(path, &["image", "dump"]).status.code(), Some(1));
    assert!(read(path, "dump") == dump);
}
