//! Archives that are made here, as layers.

use std::io::Write;

use super::{Accounts, read};
use crate::error::{Error, Result};
use crate::ondisk::Timestamp;
use crate::ondisk::dinode::{DeviceNumber, flags};
use crate::populate::content::{Attributes, Content, Kind, Node, NodeId};
use crate::populate::exclude::Exclude;
use crate::populate::filling::Filling;
use crate::populate::memory_sink::MemorySink;
use crate::report::{Observer, Unit};
use std::sync::Mutex;
use tar::EntryType;

/// Keeps warnings.
#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl Observer for Warnings {
    fn begin(&self, _what: &str, _total: u64, _unit: Unit) {}
    fn advance(&self, _units: u64) {}
    fn end(&self) {}
    fn warn(&self, problem: &Error) {
        self.0.lock().expect("one thread").push(problem.to_string());
    }
}

/// An archive that is being made.
#[derive(Default)]
struct Maker {
    bytes: Vec<u8>,
}

impl Maker {
    fn header(kind: EntryType, mode: u32, size: u64) -> tar::Header {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(1000);
        header.set_gid(100);
        header.set_mtime(1_000_000_000);
        header.set_size(size);
        header
    }

    fn block(mut self, mut header: tar::Header, path: &str, data: &[u8]) -> Self {
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        self.bytes.write_all(header.as_bytes()).expect("in memory");
        self.bytes.write_all(data).expect("in memory");
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self
    }

    fn file(self, path: &str, data: &[u8]) -> Self {
        let header = Self::header(EntryType::Regular, 0o640, data.len() as u64);
        self.block(header, path, data)
    }

    fn folder(self, path: &str, mode: u32) -> Self {
        self.block(Self::header(EntryType::Directory, mode, 0), path, b"")
    }

    fn link(self, kind: EntryType, path: &str, target: &str) -> Self {
        let mut header = Self::header(kind, 0o777, 0);
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        self.block(header, path, b"")
    }

    fn records(self, kind: u8, records: &[(&str, &[u8])]) -> Self {
        let mut text = Vec::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let len = (rest + 1..).find(|len| len.to_string().len() + rest == *len).expect("a length");
            text.extend([format!("{len} {key}=").as_bytes(), value, b"\n"].concat());
        }
        let header = Self::header(EntryType::new(kind), 0o644, text.len() as u64);
        self.block(header, "records", &text)
    }

    fn done(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 1024, 0);
        self.bytes
    }
}

fn tar() -> Maker {
    Maker::default()
}

struct Read {
    content: Content,
    sink: MemorySink,
    warnings: Vec<String>,
}

fn layers_without(exclude: &[&str], layers: &[Vec<u8>]) -> Result<Read> {
    let exclude = Exclude::new(&exclude.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>())?;
    let mut sink = MemorySink::new(1024);
    let observer = Warnings::default();
    let content = Content::new(Attributes { permissions: 0o755, ..Attributes::default() });
    let mut filling = Filling { content, sink: &mut sink, observer: &observer, exclude: &exclude };
    let mut accounts = Accounts::default();
    for (number, layer) in layers.iter().enumerate() {
        read(&format!("{number}.tar"), Box::new(&layer[..]), &mut accounts, &mut filling)?;
    }
    let content = filling.content;
    Ok(Read { content, sink, warnings: observer.0.into_inner().expect("one thread") })
}

fn layers(layers: &[Vec<u8>]) -> Result<Read> {
    layers_without(&[], layers)
}

fn refused(archive: Vec<u8>) -> String {
    layers(&[archive]).map(|_| ()).expect_err("it is not sound").to_string()
}

impl Read {
    fn id(&self, path: &str) -> NodeId {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(NodeId::ROOT, |id, name| self.content.lookup(id, name.as_bytes())).expect(path)
    }

    fn node(&self, path: &str) -> &Node {
        self.content.node(self.id(path))
    }

    fn text(&self, path: &str) -> String {
        match &self.node(path).kind {
            Kind::Regular(data) => String::from_utf8(self.sink.read(data)).expect("text"),
            other => format!("{other:?}"),
        }
    }

    /// All paths, in the order of the tree.
    fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        let mut left = vec![(NodeId::ROOT, String::new())];
        while let Some((id, path)) = left.pop() {
            for (name, child) in self.content.entries(id) {
                left.push((child, format!("{path}/{}", String::from_utf8_lossy(name))));
            }
            if !path.is_empty() {
                paths.push(path);
            }
        }
        paths.sort();
        paths
    }
}

#[test]
fn members_of_all_kinds() {
    let device = |kind, mode| {
        let mut header = Maker::header(kind, mode, 0);
        header.set_device_major(259).expect("ustar");
        header.set_device_minor(7).expect("ustar");
        header
    };
    let archive = tar()
        .folder("./", 0o750)
        .folder("d/", 0o2775)
        .file("d/f", b"contents")
        .link(EntryType::Link, "./h", "/d/f")
        .link(EntryType::Symlink, "/s", "to/where")
        .block(device(EntryType::Char, 0o620), "c", b"")
        .block(device(EntryType::Block, 0o660), "b", b"")
        .block(Maker::header(EntryType::Fifo, 0o600, 0), "p", b"")
        .file("deep/er/old-folder/", b"")
        .done();
    let read = layers(&[archive]).expect("an archive");
    let expected = ["/b", "/c", "/d", "/d/f", "/deep", "/deep/er", "/deep/er/old-folder", "/h", "/p", "/s"];
    assert_eq!(read.paths(), expected);
    assert_eq!((read.text("d/f").as_str(), read.id("h")), ("contents", read.id("d/f")));
    assert_eq!(read.content.names(read.id("h")), 2);
    assert_eq!(read.node("s").kind, Kind::Symlink((*b"to/where").into()));
    assert_eq!(read.node("c").kind, Kind::CharDevice(DeviceNumber { major: 259, minor: 7 }));
    assert_eq!(read.node("b").kind, Kind::BlockDevice(DeviceNumber { major: 259, minor: 7 }));
    assert_eq!((&read.node("p").kind, read.node("p").attributes.permissions), (&Kind::Fifo, 0o600));
    let attributes = |path: &str| {
        let attributes = &read.node(path).attributes;
        (attributes.permissions, attributes.uid, attributes.gid, attributes.mtime.map(|time| time.seconds))
    };
    assert_eq!(attributes(""), (0o750, 1000, 100, Some(1_000_000_000)));
    assert_eq!(attributes("d"), (0o2775, 1000, 100, Some(1_000_000_000)));
    assert_eq!(attributes("deep/er"), (0o755, 0, 0, None));
    assert!(matches!(read.node("deep/er/old-folder").kind, Kind::Directory(_)));
}

#[test]
fn records_go_before_headers() {
    let long = "n".repeat(255);
    let path = format!("folder/{long}");
    let archive = tar()
        .records(b'g', &[("uid", b"77"), ("comment", b"x")])
        .records(
            b'x',
            &[
                ("path", path.as_bytes()),
                ("mtime", b"-1.5"),
                ("atime", b"12.000000001"),
                ("gid", b"4294967294"),
                ("hdrcharset", b"BINARY"),
                ("SCHILY.xattr.user.a%3Db", b"1\n2\0"),
                ("LIBARCHIVE.xattr.security.x", b"AAEC"),
                ("SCHILY.acl.access", b"user::rw-,user:1001:rwx,group::r--,mask::rwx,other::---"),
                ("SCHILY.fflags", b"nodump,schg"),
            ],
        )
        .file("short", b"data")
        .records(b'x', &[("path", b"raw\xff\nname"), ("size", b"3"), ("uid", b"")])
        .block(Maker::header(EntryType::Regular, 0o600, 0), "x", b"abc")
        .records(b'x', &[("linkpath", b"folder/../raw")])
        .link(EntryType::Symlink, "sym", "header")
        .done();
    let read = layers(&[archive]).expect("an archive");
    let node = read.node(&path);
    let attributes = &node.attributes;
    assert_eq!((attributes.uid, attributes.gid, attributes.permissions), (77, 4_294_967_294, 0o670));
    assert_eq!(attributes.mtime, Some(Timestamp { seconds: -2, nanoseconds: 500_000_000 }));
    assert_eq!(attributes.atime, Some(Timestamp { seconds: 12, nanoseconds: 1 }));
    assert_eq!(attributes.flags, flags::NODUMP | flags::IMMUTABLE);
    let xattrs: Vec<_> = attributes.xattrs.iter().map(|xattr| (&*xattr.name, xattr.value.len())).collect();
    assert_eq!(xattrs, [(&b"a=b"[..], 4), (b"SGI_ACL_FILE", 64), (b"x", 3)]);
    let raw = read.content.lookup(NodeId::ROOT, b"raw\xff\nname").expect("names are bytes");
    assert!(matches!(&read.content.node(raw).kind, Kind::Regular(data) if data.size == 3));
    assert_eq!(read.content.node(raw).attributes.uid, 1000, "an empty record takes the global one away");
    assert_eq!(read.node("sym").kind, Kind::Symlink((*b"folder/../raw").into()));
}

#[test]
fn long_names_of_gnu_tar() {
    let long = format!("{}/{}", "a".repeat(200), "b".repeat(200));
    let target = "t".repeat(300);
    let text = |text: &str| [text.as_bytes(), b"\0"].concat();
    let kind = |kind| Maker::header(EntryType::new(kind), 0, 301);
    let archive = tar()
        .block(Maker::header(EntryType::new(b'L'), 0, long.len() as u64 + 1), "././@LongLink", &text(&long))
        .block(kind(b'K'), "././@LongLink", &text(&target))
        .link(EntryType::Symlink, "cut", "cut")
        .block(Maker::header(EntryType::new(b'V'), 0, 0), "volume", b"")
        .done();
    let read = layers(&[archive]).expect("an archive");
    assert_eq!(read.node(&long).kind, Kind::Symlink(target.into_bytes().into()));
}

#[test]
fn what_comes_later_wins() {
    let archive = tar()
        .file("twice", b"first")
        .file("twice", b"second")
        .folder("file-then-folder/..stay/", 0o700)
        .file("folder", b"was a file")
        .folder("folder", 0o711)
        .file("folder/in", b"in")
        .folder("folder/", 0o500)
        .folder("was-folder/sub", 0o755)
        .file("was-folder/sub/gone", b"gone")
        .file("was-folder", b"now a file")
        .file("x/only", b"only")
        .link(EntryType::Link, "x", "x/only")
        .link(EntryType::Link, "x", "./x")
        .done();
    let read = layers(&[archive]).expect("an archive");
    assert_eq!(read.text("twice"), "second");
    assert_eq!((read.text("folder/in").as_str(), read.node("folder").attributes.permissions), ("in", 0o500));
    assert_eq!(read.text("was-folder"), "now a file");
    assert_eq!((read.text("x").as_str(), read.content.names(read.id("x"))), ("only", 1));
    assert_eq!(read.sink.held(), 4);
}

#[test]
fn layers_take_away() {
    let lower = tar()
        .file("a/1", b"lower")
        .file("a/2", b"lower")
        .file("a/sub/3", b"lower")
        .file("b/1", b"lower")
        .file("b/sub/2", b"lower")
        .file("c", b"lower")
        .file("d/x", b"lower")
        .done();
    let upper = tar()
        .file("a/.wh.1", b"")
        .file("b/new", b"upper")
        .folder("b/sub", 0o700)
        .file("b/sub/mine", b"upper")
        .file("b/.wh..wh..opq", b"")
        .file("b/after", b"upper")
        .file(".wh.c", b"")
        .file(".wh.never-there", b"")
        .file("no/where/.wh.x", b"")
        .file(".wh..wh.plnk/12.34", b"")
        .file(".wh..wh.aufs", b"")
        .folder("d", 0o711)
        .file("d/y", b"upper")
        .file(".wh.d", b"")
        .file("new/.wh..wh..opq", b"")
        .done();
    let read = layers(&[lower.clone(), upper.clone()]).expect("archives");
    let expected =
        ["/a", "/a/2", "/a/sub", "/a/sub/3", "/b", "/b/after", "/b/new", "/b/sub", "/b/sub/mine", "/d", "/d/y", "/new"];
    assert_eq!(read.paths(), expected);
    assert_eq!(read.sink.held(), 6);
    let again =
        layers(&[lower.clone(), upper, tar().file("b/.wh.sub", b"").file(".wh.a", b"").done()]).expect("archives");
    assert_eq!(again.paths(), ["/b", "/b/after", "/b/new", "/d", "/d/y", "/new"]);
}

#[test]
fn links_on_the_way_stay_in_the_tree() {
    let archive = tar()
        .folder("usr/lib", 0o755)
        .link(EntryType::Symlink, "lib", "usr/lib")
        .link(EntryType::Symlink, "out", "../../../etc")
        .link(EntryType::Symlink, "abs", "/usr/./lib/..")
        .file("lib/a", b"a")
        .file("out/b", b"b")
        .file("abs/c", b"c")
        .link(EntryType::Link, "hard", "lib/a")
        .done();
    let read = layers(&[archive]).expect("an archive");
    assert_eq!(read.text("usr/lib/a") + &read.text("etc/b") + &read.text("usr/c"), "abc");
    assert_eq!(read.id("hard"), read.id("usr/lib/a"));
    let cycle = tar().link(EntryType::Symlink, "a", "b").link(EntryType::Symlink, "b", "a").file("a/x", b"").done();
    assert!(refused(cycle).contains("too many symbolic links"));
}

#[test]
fn sparse_files_keep_their_holes() {
    let mut data = b"begin".to_vec();
    data.extend([b'e'; 2000]);
    let mut gnu = tar::Header::new_gnu();
    gnu.set_entry_type(EntryType::GNUSparse);
    gnu.set_mode(0o600);
    gnu.set_uid(0);
    gnu.set_gid(0);
    gnu.set_size(2005);
    {
        let gnu = gnu.as_gnu_mut().expect("a header of GNU tar");
        gnu.set_real_size(10_000);
        for (piece, (offset, len)) in gnu.sparse.iter_mut().zip([(0, 5), (8000, 2000), (10_000, 0)]) {
            piece.set_offset(offset);
            piece.set_length(len);
        }
    }
    let records = [
        ("GNU.sparse.major", &b"1"[..]),
        ("GNU.sparse.minor", b"0"),
        ("GNU.sparse.name", b"new"),
        ("GNU.sparse.realsize", b"10000"),
    ];
    let mut mapped = b"2\n0\n5\n8000\n2000\n".to_vec();
    mapped.resize(512, 0);
    mapped.extend(&data);
    let archive = tar().block(gnu, "old", &data).records(b'x', &records).file("GNUSparseFile.0/new", &mapped).done();
    let read = layers(&[archive]).expect("an archive");
    for path in ["old", "new"] {
        let Kind::Regular(data) = &read.node(path).kind else { panic!("no file") };
        let blocks: Vec<_> = data.ranges.iter().map(|range| (range.block, range.piece.blocks())).collect();
        assert_eq!((data.size, blocks), (10_000, vec![(0, 1), (7, 3)]), "{path}");
        let text = read.text(path);
        assert!(text.starts_with("begin\0") && text.ends_with(&format!("\0{}", "e".repeat(2000))));
    }
    let short = tar().records(b'x', &records).file("x", &mapped[..2000]).done();
    assert!(refused(short).contains("not that of its data"));
}

#[test]
fn lists_with_names_are_read_at_the_end() {
    let list = &b"user::rw-,user:ada:r--,group::r--,group:staff:rwx,mask::rwx,other::---"[..];
    let mut ada = Maker::header(EntryType::Regular, 0o600, 0);
    ada.set_username("ada").expect("ustar");
    let passwd = tar().file("etc/passwd", b"ada:x:5:5\n").file("etc/group", b"staff:x:50:\n").done();
    let listed = tar().records(b'x', &[("SCHILY.acl.access", list)]).file("f", b"").block(ada, "later", b"").done();
    let read = layers(&[passwd, listed]).expect("archives");
    let xattr = &read.node("f").attributes.xattrs[0];
    let text = crate::forms::PosixAcl::decode(&xattr.value).expect("a list").to_text();
    assert_eq!(text, "user::rw-,user:1000:r--,group::r--,group:50:rwx,mask::rwx,other::---");
    assert_eq!((read.text("etc/passwd").as_str(), read.warnings.len()), ("ada:x:5:5\n", 0));
    let unknown = tar().records(b'x', &[("SCHILY.acl.access", b"user:not-anybody:r--")]).file("f", b"").done();
    assert!(refused(unknown).contains("user:not-anybody:r--"));
}

#[test]
fn what_xfs_has_no_place_for_is_told() {
    let records = [("SCHILY.xattr.com.apple.x", &b"1"[..]), ("SCHILY.acl.ace", b"x"), ("SCHILY.xattr.user.y", b"2")];
    let mut archive = tar().records(b'x', &records).file("f", b"").done();
    archive.extend(b"more");
    let read = layers(&[archive]).expect("an archive");
    assert_eq!(read.node("f").attributes.xattrs.len(), 1);
    let words = ["com.apple.x", "NFSv4", "what follows the end"];
    assert_eq!(read.warnings.len(), 3);
    assert!(read.warnings.iter().zip(words).all(|(warning, word)| warning.contains(word)), "{:?}", read.warnings);
}

#[test]
fn what_is_excluded_is_not_stored() {
    let archive = tar().file("a/b.o", b"1").file("a/c", b"2").folder("tmp", 0o1777).file("tmp/x", b"3").done();
    let read = layers_without(&["*.o", "/tmp/"], &[archive]).expect("an archive");
    assert_eq!((read.paths(), read.sink.held()), (vec!["/a".to_owned(), "/a/c".to_owned()], 1));
}

#[test]
fn an_archive_of_nothing_is_one() {
    assert!(layers(&[vec![0; 10_240]]).expect("an archive").paths().is_empty());
    assert!(layers(&[vec![0; 512]]).expect("an archive").paths().is_empty());
}

#[test]
fn archives_that_are_cut_off() {
    let whole = tar().file("a", b"contents").records(b'x', &[("mtime", b"1")]).file("b", &[1; 600]).done();
    for len in (0..whole.len() - 1024).step_by(64) {
        let error = refused(whole[..len].to_vec());
        assert!(error.starts_with("0.tar: ") && (error.contains("cut off") || len == 0), "{len}: {error}");
    }
}

#[test]
fn members_that_cannot_be_in_an_image() {
    let kind = |kind: u8| Maker::header(EntryType::new(kind), 0o644, 0);
    let long = "x".repeat(1024);
    let mut unsound = tar().file("a", b"").done();
    unsound[0] = b'b';
    let mut negative = kind(b'0');
    negative.as_old_mut().size = *b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
    let mut numbers = kind(b'0');
    numbers.as_old_mut().mode = *b"rwxr-xr-";
    for (archive, words) in [
        (tar().file("a/../b", b"").done(), "0.tar: a/../b: its path goes back"),
        (tar().records(b'x', &[("path", b"a\0b")]).file("x", b"").done(), "zero byte"),
        (tar().records(b'x', &[("path", "n".repeat(256).as_bytes())]).file("x", b"").done(), "longer than 255"),
        (tar().records(b'x', &[("linkpath", long.as_bytes())]).link(EntryType::Symlink, "l", "x").done(), "1023"),
        (tar().link(EntryType::Symlink, "l", "").done(), "l: is a symbolic link to nothing"),
        (tar().link(EntryType::Link, "l", "none").done(), "l: is a hard link to none, which is not there"),
        (tar().folder("d", 0o755).link(EntryType::Link, "l", "d").done(), "l: is a hard link to d, which is a folder"),
        (tar().file("f", b"").file("f/x", b"").done(), "f/x: f on the way to it is no folder"),
        (tar().file(".", b"x").done(), "no folder, where the root"),
        (tar().block(kind(b'M'), "m", b"").done(), "begins in another archive"),
        (tar().block(kind(b'z'), "m", b"").done(), "kind that is not known (z)"),
        (tar().records(b'x', &[("uid", b"4294967295")]).file("x", b"").done(), "x: a number"),
        (tar().records(b'x', &[("mtime", b"soon")]).file("x", b"").done(), "x: a time"),
        (tar().records(b'x', &[("SCHILY.xattr.user.", b"")]).file("x", b"").done(), "0.tar: x: its attribute user."),
        (tar().records(b'x', &[("mtime", b"1")]).done(), "announced"),
        (tar().block(kind(b'x'), "records", b"").file("a", b"").bytes, "cut off"),
        (tar().block(negative, "n", b"").done(), "out of range"),
        (tar().block(numbers, "n", b"").done(), "n: a number"),
        (unsound, "0.tar: is no tar archive"),
        (b"#!/bin/sh\n".repeat(100), "is no tar archive"),
        ([tar().file("a", b"").bytes, vec![7; 512]].concat(), "is damaged"),
    ] {
        let error = refused(archive);
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let whole = tar()
        .folder("d", 0o755)
        .records(b'x', &[("GNU.sparse.map", b"0,5"), ("GNU.sparse.size", b"9")])
        .file("d/f", b"12345")
        .link(EntryType::Link, "h", "d/f")
        .done();
    let mut random = 1_u64;
    for _ in 0..3000 {
        let mut bytes = whole.clone();
        for _ in 0..3 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = usize::try_from(random >> 33).expect("small") % bytes.len();
            bytes[at] = bytes[at].wrapping_add(u8::try_from(random >> 20 & 0xff).expect("a byte"));
            // a header that was changed gets its sum, so that what is behind it is looked at
            let block = at / 512 * 512;
            let mut header = tar::Header::from_byte_slice(&bytes[block..block + 512]).clone();
            header.set_cksum();
            if block % 1024 == 0 {
                bytes[block..block + 512].copy_from_slice(header.as_bytes());
            }
        }
        let _ = layers(&[bytes]);
    }
}
