//! An archive read by another library, with what the records say.

use std::collections::BTreeMap;
use std::io::Read;

use xfskit::report::name;

use crate::manifest::{self, Line};

/// A member.
#[derive(Clone, Debug, Default)]
pub struct Member {
    pub kind: u8,
    pub mode: u32,
    pub uid: u64,
    pub gid: u64,
    pub size: u64,
    pub mtime: i128,
    pub link: Vec<u8>,
    pub device: Option<(u32, u32)>,
    /// Pieces of the contents that are not holes.
    pub pieces: Vec<(u64, Vec<u8>)>,
    pub records: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The bytes of an escaped name.
pub fn unescape(text: &str) -> Vec<u8> {
    name::unescape(text.as_bytes()).expect("an escaped name")
}

/// The members by path.
pub fn read(bytes: &[u8]) -> BTreeMap<Vec<u8>, Member> {
    assert_eq!(bytes.len() % 10_240, 0);
    let mut archive = tar::Archive::new(bytes);
    let mut members = BTreeMap::new();
    let mut records = BTreeMap::new();
    for entry in archive.entries().expect("an archive").raw(true) {
        let mut entry = entry.expect("a sound member");
        if entry.header().entry_type().is_pax_local_extensions() {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("whole records");
            records = records_of(&bytes);
            continue;
        }
        let mut member = Member { records: std::mem::take(&mut records), ..Member::default() };
        let header = entry.header();
        let record =
            |key: &str| member.records.get(key.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned());
        let number = |key: &str, plain: u64| record(key).map_or(plain, |text| text.parse().expect("a number"));
        member.kind = header.as_bytes()[156];
        member.mode = header.mode().expect("a mode");
        member.uid = number("uid", header.uid().expect("a number"));
        member.gid = number("gid", header.gid().expect("a number"));
        let plain = header.mtime().expect("a time");
        member.mtime = record("mtime").map_or(i128::from(plain) * 1_000_000_000, |text| nanoseconds(&text));
        member.device = header.device_major().expect("a number").zip(header.device_minor().expect("a number"));
        let named = |key: &str| member.records.get(key.as_bytes()).cloned();
        let link = entry.header().link_name_bytes().map(|link| link.into_owned()).unwrap_or_default();
        let path = named("GNU.sparse.name").or(named("path")).unwrap_or_else(|| header.path_bytes().into_owned());
        member.link = named("linkpath").unwrap_or(link);
        member.size = number("GNU.sparse.realsize", entry.size());
        let sparse = member.records.contains_key(&b"GNU.sparse.major"[..]);
        let mut data = Vec::new();
        entry.read_to_end(&mut data).expect("whole contents");
        member.pieces = if sparse { pieces(&data) } else { vec![(0, data)] };
        let path = path.strip_prefix(b"./").unwrap_or(&path);
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let path = if path.is_empty() { b"." } else { path };
        assert!(members.insert(path.to_vec(), member).is_none(), "{} comes twice", path.escape_ascii());
    }
    members
}

/// The records: each with its length, a blank, a key, an equals sign, a value that may be anything, and a newline.
fn records_of(bytes: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut records = BTreeMap::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let blank = rest.iter().position(|&byte| byte == b' ').expect("a blank");
        let len: usize = std::str::from_utf8(&rest[..blank]).expect("ASCII").parse().expect("a length");
        let record = rest[blank + 1..len].strip_suffix(b"\n").expect("a newline");
        let equals = record.iter().position(|&byte| byte == b'=').expect("an equals sign");
        records.insert(record[..equals].to_vec(), record[equals + 1..].to_vec());
        rest = &rest[len..];
    }
    records
}

/// A decimal fraction of seconds.
fn nanoseconds(text: &str) -> i128 {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fraction: i128 = format!("{fraction:0<9}").parse().expect("a number");
    sign * (whole.parse::<i128>().expect("a number") * 1_000_000_000 + fraction)
}

/// The pieces of a sparse file, whose data begins with its map.
fn pieces(data: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut at = 0;
    let mut number = || {
        let len = data[at..].iter().position(|&byte| byte == b'\n').expect("a number");
        let number: u64 = std::str::from_utf8(&data[at..at + len]).expect("ASCII").parse().expect("a number");
        at += len + 1;
        number
    };
    let count = number();
    let map: Vec<_> = (0..count).map(|_| (number(), usize::try_from(number()).expect("small"))).collect();
    let mut from = at.next_multiple_of(512);
    map.into_iter()
        .map(|(start, len)| {
            let piece = data[from..from + len].to_vec();
            from += len;
            (start, piece)
        })
        .collect()
}

/// The member is what the manifest says of the file.
pub fn same(path: &[u8], member: &Member, line: &Line) {
    let path = path.escape_ascii().to_string();
    if member.kind == b'1' {
        assert!(line.nlink > 1, "{path}");
        return;
    }
    let kind = match member.kind {
        b'0' => 0o10,
        b'2' => 0o12,
        b'3' => 0o2,
        b'4' => 0o6,
        b'5' => 0o4,
        b'6' => 0o1,
        other => panic!("{path}: kind {other}"),
    };
    assert_eq!(format!("{:o}", kind << 12 | member.mode & 0o7777), line.mode, "{path}");
    assert_eq!((member.uid, member.gid, member.mtime), (line.uid, line.gid, line.mtime), "{path}");
    match member.kind {
        b'0' => {
            assert_eq!(member.size, line.size, "{path}");
            assert_eq!(manifest::content_of(member.size, &member.pieces), line.content, "{path}");
        }
        b'2' => assert_eq!(member.link, line.target(), "{path}"),
        b'3' | b'4' => {
            let (major, minor) = member.device.expect("a device");
            assert_eq!(rustix::fs::makedev(major, minor), line.rdev, "{path}");
        }
        _ => {}
    }
    let mut expected = line.xattrs.clone();
    // lists are records of their own, and the kernel shows the attributes that hold them, too
    for (stored, shown, key) in [
        ("trusted.SGI_ACL_FILE", "system.posix_acl_access", "SCHILY.acl.access"),
        ("trusted.SGI_ACL_DEFAULT", "system.posix_acl_default", "SCHILY.acl.default"),
    ] {
        expected.remove(stored);
        assert_eq!(expected.remove(shown).is_some(), member.records.contains_key(key.as_bytes()), "{path}: {key}");
    }
    let found: BTreeMap<_, _> = (member.records.iter())
        .filter_map(|(key, value)| Some((key.strip_prefix(b"SCHILY.xattr.")?, manifest::value(value))))
        .collect();
    assert_eq!(found.len(), expected.len(), "{path}");
    for (name, hash) in &expected {
        let name = manifest::unquote(name);
        let name = String::from_utf8_lossy(&name).replace('%', "%25").replace('=', "%3D");
        assert_eq!(found.get(name.as_bytes()), Some(hash), "{path}: {name}");
    }
}
