//! A folder with everything that is awkward: made by this machine, with root's help where there is root.

use std::fs::{self, File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags, lsetxattr, mknodat, utimensat};

fn file(path: PathBuf, bytes: &[u8]) -> PathBuf {
    fs::write(&path, bytes).expect("writable");
    path
}

fn sparse(path: &Path, size: u64, segments: &[(u64, usize)]) {
    let mut file = File::create(path).expect("writable");
    for &(start, len) in segments {
        file.seek(SeekFrom::Start(start)).expect("moved");
        file.write_all(&vec![7; len]).expect("writable");
    }
    file.set_len(size).expect("set");
}

fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut value = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        value.extend([&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat());
    }
    value
}

/// Makes the tree in `top`, with `many` names in one folder; what a filesystem does not take is left out.
pub fn make(top: &Path, many: u32) {
    let root = rustix::process::geteuid().is_root();
    let at = |path: &str| top.join(path);
    for folder in ["d/e/f", "setgid/sub", "sticky", "empty", "xattrs", "sparse", "many", "names"] {
        fs::create_dir_all(at(folder)).expect("writable");
    }
    let main = file(at("f"), b"contents\n");
    fs::hard_link(&main, at("d/linked")).expect("linked");
    fs::hard_link(&main, at("d/e/f/linked")).expect("linked");
    symlink("abcd", at("l4")).expect("linked");
    symlink("t".repeat(1023), at("l1023")).expect("linked");
    symlink("/abs/./../olute", at("d/labs")).expect("linked");
    fs::hard_link(at("d/labs"), at("labs")).expect("linked");
    mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_bits_retain(0o640), 0).expect("made");
    drop(UnixListener::bind(at("socket")).expect("bound"));
    for name in [&b"new\nline"[..], b"\xff\xfe\x80", " sp ace ü".as_bytes(), b"-", b"...", b"a\\b", b"$", &[b'n'; 255]]
    {
        file(at("names").join(std::ffi::OsStr::from_bytes(name)), name);
    }
    for number in 0..many {
        file(at(&format!("many/file-{number:06}")), format!("{number}").repeat(number as usize % 50).as_bytes());
    }
    file(at("zeroes"), &[0; 100_000]);
    sparse(&at("sparse/a"), 10 << 20, &[(0, 1), (20_480, 4096), (5 << 20, 70_000)]);
    sparse(&at("sparse/b"), 1 << 33, &[(1 << 32, 10)]);
    sparse(&at("sparse/c"), 100_000, &[]);
    sparse(&at("sparse/d"), 30_001, &[(1024, 1024), (5 * 1024, 1024), (20_000, 1)]);
    for (number, len) in [1, 250, 1000, 60_000, 65_536].into_iter().enumerate() {
        let path = file(at(&format!("xattrs/{number}")), b"");
        // a filesystem may have less room for it
        let _ = lsetxattr(&path, "user.value", &vec![b'v'; len], XattrFlags::empty());
        let _ = lsetxattr(&path, "user.empty", b"", XattrFlags::empty());
    }
    fs::set_permissions(&main, Permissions::from_mode(0o751)).expect("set");
    if root {
        mknodat(CWD, at("char"), FileType::CharacterDevice, Mode::RUSR, rustix::fs::makedev(1, 3)).expect("made");
        mknodat(CWD, at("block"), FileType::BlockDevice, Mode::RUSR, rustix::fs::makedev(300, 70_000)).expect("made");
        chown(&main, Some(1234), Some(56_789)).expect("set");
        chown(at("setgid"), Some(7), Some(8)).expect("set");
        lchown(at("l4"), Some(4_000_000_000), Some(3)).expect("set");
        for (path, name) in [("l4", "trusted.link"), ("fifo", "trusted.fifo"), ("d", "security.folder")] {
            lsetxattr(at(path), name, b"value", XattrFlags::empty()).expect("set");
        }
    }
    let named = acl(&[(1, 7, !0), (2, 6, 1001), (4, 5, !0), (16, 7, !0), (32, 1, !0)]);
    let _ = lsetxattr(&main, "system.posix_acl_access", &named, XattrFlags::empty());
    let _ = lsetxattr(at("setgid"), "system.posix_acl_default", &named, XattrFlags::empty());
    fs::set_permissions(at("setgid"), Permissions::from_mode(0o2775)).expect("set");
    fs::set_permissions(at("setgid/sub"), Permissions::from_mode(0o755)).expect("set");
    fs::set_permissions(at("sticky"), Permissions::from_mode(0o1777)).expect("set");
    let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    for (path, seconds) in
        [("f", -5), ("l1023", 1_000_000_000), ("many", 0), ("fifo", 4_000_000_000), ("", 1_234_567_890)]
    {
        // libarchive and GNU tar do not agree on fractions of seconds before 1970
        let nanoseconds = if seconds < 0 { 0 } else { 123_456_789 };
        let times = Timestamps { last_access: time(seconds + 9, 1), last_modification: time(seconds, nanoseconds) };
        utimensat(CWD, at(path), &times, AtFlags::SYMLINK_NOFOLLOW).expect("set");
    }
}
