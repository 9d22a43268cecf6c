//! Folders that are made here.

use std::collections::HashSet;
use std::fs::{self, File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, XattrFlags, mknodat, setxattr};

use super::walk::Options;
use super::{FileIdentity, read};
use crate::error::Result;
use crate::populate::content::{Attributes, Content, Kind, NodeId};
use crate::populate::data::{Bytes, DataSink, Stored};
use crate::populate::exclude::Exclude;
use crate::populate::filling::Filling;
use crate::populate::memory_sink::MemorySink;
use crate::report::Silent;

/// A sink that does something to the source when it is given a file.
struct Meddling<'m> {
    sink: MemorySink,
    meddle: &'m dyn Fn(),
}

impl DataSink for Meddling<'_> {
    fn block_size(&self) -> u32 {
        self.sink.block_size()
    }

    fn store(&mut self, len: u64, bytes: &mut dyn Bytes) -> Result<Stored> {
        (self.meddle)();
        self.sink.store(len, bytes)
    }

    fn release(&mut self, stored: Stored) -> Result<()> {
        self.sink.release(stored)
    }
}

fn read_with(top: &Path, exclude: &[&str], forbidden: &[&Path], sink: &mut dyn DataSink) -> Result<Content> {
    let exclude = Exclude::new(&exclude.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>())?;
    let identity = |path: &&Path| {
        let found = fs::metadata(path).expect("it is there");
        FileIdentity { device: found.dev(), inode: found.ino() }
    };
    let forbidden: HashSet<FileIdentity> = forbidden.iter().map(identity).collect();
    let content = Content::new(Attributes::default());
    let mut filling = Filling { content, sink, observer: &Silent, exclude: &exclude };
    read(top, Options { atime: true, forbidden: &forbidden }, &mut filling)?;
    Ok(filling.content)
}

fn read_all(top: &Path) -> (Content, MemorySink) {
    let mut sink = MemorySink::new(4096);
    (read_with(top, &[], &[], &mut sink).expect("it can be read"), sink)
}

fn find(content: &Content, path: &str) -> NodeId {
    path.split('/').fold(NodeId::ROOT, |id, name| content.lookup(id, name.as_bytes()).expect(path))
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn put(top: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = top.join(name);
    fs::create_dir_all(path.parent().expect("it is in a folder")).expect("made");
    fs::write(&path, bytes).expect("written");
    path
}

#[test]
fn files_are_as_they_were() {
    let top = folder();
    let file = put(top.path(), "d/e/f", b"contents");
    fs::hard_link(&file, top.path().join("h")).expect("linked");
    fs::set_permissions(&file, Permissions::from_mode(0o4751)).expect("set");
    fs::set_permissions(top.path().join("d"), Permissions::from_mode(0o1700)).expect("set");
    symlink("to/where", top.path().join("s")).expect("linked");
    mknodat(rustix::fs::CWD, top.path().join("p"), FileType::Fifo, Mode::RUSR, 0).expect("made");
    let strange = std::ffi::OsStr::from_bytes(b"\xff\n");
    fs::write(top.path().join(strange), b"").expect("written");

    let (content, sink) = read_all(top.path());
    let id = find(&content, "d/e/f");
    assert_eq!((find(&content, "h"), content.names(id)), (id, 2));
    let node = content.node(id);
    let found = fs::metadata(&file).expect("it is there");
    let attributes = &node.attributes;
    assert_eq!((attributes.permissions, attributes.uid, attributes.gid), (0o4751, found.uid(), found.gid()));
    let mtime = attributes.mtime.expect("it has one");
    assert_eq!((mtime.seconds, i64::from(mtime.nanoseconds)), (found.mtime(), found.mtime_nsec()));
    let Kind::Regular(data) = &node.kind else { panic!("no file") };
    assert_eq!(sink.read(data), b"contents");
    assert_eq!(content.node(find(&content, "d")).attributes.permissions, 0o1700);
    assert_eq!(content.node(find(&content, "s")).kind, Kind::Symlink((*b"to/where").into()));
    assert_eq!(content.node(find(&content, "p")).kind, Kind::Fifo);
    assert!(content.lookup(NodeId::ROOT, b"\xff\n").is_some());
}

#[test]
fn holes_stay_holes() {
    let top = folder();
    let mut file = File::create(top.path().join("sparse")).expect("made");
    file.seek(SeekFrom::Start(1 << 20)).expect("moved");
    file.write_all(b"middle").expect("written");
    file.set_len(1 << 22).expect("set");
    fs::write(top.path().join("zeroes"), [0; 8192]).expect("written");
    let (content, sink) = read_all(top.path());
    let data = |name: &str| match &content.node(find(&content, name)).kind {
        Kind::Regular(data) => data.clone(),
        other => panic!("{other:?}"),
    };
    let sparse = data("sparse");
    let blocks: u64 = sparse.ranges.iter().map(|range| range.piece.blocks()).sum();
    // not every filesystem knows of holes
    assert!(sparse.size == 1 << 22 && (blocks < 64 || blocks == 1024), "{blocks}");
    assert_eq!(&sink.read(&sparse)[1 << 20..][..6], b"middle");
    assert_eq!(data("zeroes").ranges.len(), 1);
}

#[test]
fn attributes_are_kept_where_the_filesystem_has_them() {
    let top = folder();
    let file = put(top.path(), "f", b"");
    if setxattr(&file, "user.name", b"value", XattrFlags::empty()).is_err() {
        return;
    }
    setxattr(&file, "user.empty", b"", XattrFlags::empty()).expect("set");
    let (content, _) = read_all(top.path());
    let xattrs = &content.node(find(&content, "f")).attributes.xattrs;
    let user = xattrs.iter().filter(|xattr| xattr.namespace == crate::ondisk::attr_short::AttrNamespace::User);
    let found: Vec<_> = user.map(|xattr| (&*xattr.name, &*xattr.value)).collect();
    assert_eq!(found, [(&b"empty"[..], &b""[..]), (b"name", b"value")]);
}

#[test]
fn what_is_excluded_is_not_read() {
    let top = folder();
    let image = put(top.path(), "image", b"x");
    put(top.path(), "keep/a", b"a");
    put(top.path(), "keep/b.o", b"b");
    put(top.path(), "drop/c", b"c");
    let mut sink = MemorySink::new(4096);
    let content = read_with(top.path(), &["*.o", "/drop", "image"], &[&image], &mut sink).expect("it can be read");
    assert_eq!((content.len(), sink.held()), (3, 1));
    let error = read_with(top.path(), &[], &[&image], &mut sink).map(|_| ()).expect_err("the image itself").to_string();
    assert!(error.contains("/image: is the image"), "{error}");
}

#[test]
fn a_source_that_changes_is_an_error() {
    let top = folder();
    let file = put(top.path(), "sub/f", &[1; 10_000]);
    let grow = || fs::write(&file, [1; 10_001]).expect("written");
    let shrink = || File::options().write(true).open(&file).expect("open").set_len(5).expect("set");
    let touch = || {
        let file = File::options().write(true).open(&file).expect("open");
        file.set_modified(std::time::UNIX_EPOCH).expect("set");
    };
    let add = || fs::write(top.path().join("sub/new"), b"").expect("written");
    let moved = || {
        let _ = fs::rename(top.path().join("sub"), top.path().join("moved"));
    };
    for (meddle, word) in [
        (&grow as &dyn Fn(), "/sub/f: it was changed"),
        (&shrink, "/sub/f: it was changed"),
        (&touch, "/sub/f: it was changed"),
        (&add, "/sub: names were added"),
        (&moved, ": names were added"),
    ] {
        put(top.path(), "sub/f", &[1; 10_000]);
        let mut sink = Meddling { sink: MemorySink::new(4096), meddle };
        let error = read_with(top.path(), &[], &[], &mut sink).map(|_| ()).expect_err(word).to_string();
        assert!(error.contains(word), "{word}: {error}");
    }
}

#[test]
fn what_is_not_there_or_no_folder() {
    let top = folder();
    let file = put(top.path(), "f", b"");
    for path in [top.path().join("none"), file] {
        let error = read_with(&path, &[], &[], &mut MemorySink::new(4096)).map(|_| ()).expect_err("no folder");
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    }
}

#[test]
fn folders_may_be_deep() {
    let top = folder();
    let mut at = rustix::fs::open(top.path(), rustix::fs::OFlags::PATH, Mode::empty()).expect("open");
    for _ in 0..1200 {
        rustix::fs::mkdirat(&at, c"d", Mode::RWXU).expect("made");
        at = rustix::fs::openat(&at, c"d", rustix::fs::OFlags::PATH, Mode::empty()).expect("open");
    }
    let (content, _) = read_all(top.path());
    assert_eq!(content.len(), 1201);
}
