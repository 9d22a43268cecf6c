//! The listing of `tests/oracle/tree_manifest`, made from an image without a kernel.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::ops::ControlFlow;

use sha2::{Digest, Sha256};
use xfskit::forms::{Attributes, DirForm, Directory, FileType, ForkForm, ForkKind, Inode, read_symlink};
use xfskit::geometry::Ino;
use xfskit::ondisk::attr_short::AttrNamespace;
use xfskit::ondisk::dinode::{flags, flags2};

use crate::source::Image;

/// What a walk over an image found.
#[derive(Default)]
pub struct Listing {
    /// All inodes that have a name.
    pub inodes: HashSet<Ino>,
    /// The lines of the manifest.
    pub lines: Vec<String>,
    /// Damage, anywhere.
    pub damage: Vec<String>,
    /// How many directories there are of each form.
    pub dir_forms: BTreeMap<String, usize>,
    attributes: BTreeMap<Ino, String>,
    /// How many attribute forks there are of each form.
    pub attr_forms: BTreeMap<String, usize>,
    /// How many data forks there are of each form.
    pub fork_forms: BTreeMap<&'static str, usize>,
    /// Parent pointers, as lines of inode, directory and name; and entries, in the same form.
    pub parents: HashSet<(u64, u64, Vec<u8>)>,
    pub entries: HashSet<(u64, u64, Vec<u8>)>,
}

/// An entry that was copied out of its directory.
struct Entry {
    name: Vec<u8>,
    ino: Ino,
    ftype: Option<u8>,
    offset: u64,
}

pub fn list(image: &Image) -> Listing {
    let mut listing = Listing::default();
    let root = image.geometry().rootino;
    let mut todo = vec![(".".to_owned(), root)];
    while let Some((path, ino)) = todo.pop() {
        let inode = match Inode::read(&image.blocks, ino) {
            Ok(inode) => inode,
            Err(error) => {
                listing.damage.push(format!("{path}: {error}"));
                continue;
            }
        };
        listing.damage.extend(inode.verdict.failures().iter().map(|failure| format!("{path}: {failure}")));
        if listing.inodes.insert(ino) {
            count_forms(image, &inode, &mut listing);
        }
        let line = line(image, &path, &inode, &mut listing);
        listing.lines.push(line);
        if inode.file_type() == Some(FileType::Directory) {
            for entry in entries(image, &inode, &path, &mut listing) {
                let name = quote(&entry.name);
                let below = if path == "." { name } else { format!("{path}/{name}") };
                listing.entries.insert((entry.ino.0, ino.0, entry.name));
                todo.push((below, entry.ino));
            }
        }
    }
    listing.lines.sort();
    listing
}

fn count_forms(image: &Image, inode: &Inode, listing: &mut Listing) {
    let form = match inode.fork(ForkKind::Data).expect("data forks are sound").expect("there is a data fork").form {
        ForkForm::Device(_) => "device",
        ForkForm::Local(_) => "local",
        ForkForm::Extents(_) => "extents",
        ForkForm::Btree(root) if root.level > 1 => "deep btree",
        ForkForm::Btree(_) => "btree",
        ForkForm::MetaBtree(_) => "metadata btree",
    };
    *listing.fork_forms.entry(form).or_default() += 1;
    if let Some(attributes) = Attributes::open(&image.blocks, inode).expect("attribute forks are sound") {
        let form = format!("{:?}", attributes.form().expect("the root is sound"));
        *listing.attr_forms.entry(form).or_default() += 1;
    }
    xfskit::forms::for_each_parent(&image.blocks, inode, &mut |pointer| {
        match pointer {
            Ok(pointer) => drop(listing.parents.insert((inode.ino.0, pointer.parent.0, pointer.name.to_vec()))),
            Err(error) => listing.damage.push(error.to_string()),
        }
        ControlFlow::Continue(())
    })
    .expect("attribute forks are sound");
}

/// The entries of a directory but `.` and `..`. Each is also looked up by its hash.
fn entries(image: &Image, inode: &Inode, path: &str, listing: &mut Listing) -> Vec<Entry> {
    let directory = Directory::open(&image.blocks, inode).expect("invariant: it is a directory");
    let form = directory.form().unwrap_or(DirForm::Short);
    *listing.dir_forms.entry(format!("{form:?}")).or_default() += 1;
    let mut entries = Vec::new();
    directory.for_each(&mut |entry| {
        match entry {
            Ok(e) => entries.push(Entry { name: e.name.to_vec(), ino: e.ino, ftype: e.ftype, offset: e.offset }),
            Err(error) => listing.damage.push(format!("{path}: {error}")),
        }
        ControlFlow::Continue(())
    });
    for entry in &entries {
        let found = directory.lookup(&entry.name).unwrap_or_else(|error| panic!("{path}: {error}"));
        let found = found.unwrap_or_else(|| panic!("{path}: {:?} is not found", quote(&entry.name)));
        assert_eq!((found.ino, found.ftype, found.offset), (entry.ino, entry.ftype, entry.offset), "{path}");
    }
    for absent in [&b"no such name"[..], b"...", b"z"] {
        let there = entries.iter().any(|entry| entry.name == absent);
        assert_eq!(directory.lookup(absent).expect("lookups succeed").is_some(), there, "{path}");
    }
    assert!(entries.len() >= 2 && entries[0].name == b"." && entries[0].ino == inode.ino, "{path} has no . first");
    assert_eq!(entries[1].name, b"..", "{path} has no .. second");
    let rest = entries.split_off(2);
    for entry in &rest {
        let kind = Inode::read(&image.blocks, entry.ino).ok().and_then(|inode| inode.file_type());
        let expected = kind.map(FileType::dir_ftype);
        assert!(entry.ftype.is_none() || entry.ftype == expected, "{path}: type of {:?}", quote(&entry.name));
    }
    rest
}

fn line(image: &Image, path: &str, inode: &Inode, listing: &mut Listing) -> String {
    let raw = inode.raw();
    let nanoseconds = |stamp| {
        let time = raw.timestamp(stamp);
        i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds)
    };
    let kind = inode.file_type();
    let (mut map, mut detail, mut rdev) = ("-".to_owned(), "-".to_owned(), 0);
    match kind {
        Some(FileType::Regular) => (map, detail) = contents(image, inode, path, listing),
        Some(FileType::Symlink) => match read_symlink(&image.blocks, inode) {
            Ok(target) => detail = quote(&target),
            Err(error) => listing.damage.push(format!("{path}: {error}")),
        },
        Some(FileType::CharDevice | FileType::BlockDevice) => rdev = device_number(inode),
        _ => {}
    }
    let with_flags = matches!(kind, Some(FileType::Regular | FileType::Directory));
    let size = if kind == Some(FileType::Directory) { 0 } else { inode.size() };
    [
        path.to_owned(),
        inode.ino.to_string(),
        format!("{:o}", raw.core.mode.get()),
        format!("{}:{}", raw.core.uid, raw.core.gid),
        raw.links().to_string(),
        size.to_string(),
        nanoseconds(raw.core.mtime).to_string(),
        nanoseconds(raw.core.ctime).to_string(),
        rdev.to_string(),
        if with_flags { flag_column(image, inode) } else { "-".to_owned() },
        map,
        detail,
        attributes(image, inode, path, listing),
    ]
    .join("\t")
}

/// The number of a device inode, as `stat` has it.
fn device_number(inode: &Inode) -> u64 {
    let Some(ForkForm::Device(raw)) = inode.fork(ForkKind::Data).ok().flatten().map(|fork| fork.form) else { return 0 };
    let (major, minor) = (u64::from(raw >> 18 & 0x3fff), u64::from(raw & 0x3_ffff));
    (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12 | (major & !0xfff) << 32
}

/// What FS_IOC_FSGETXATTR says: flags, extent size hints in bytes, project.
fn flag_column(image: &Image, inode: &Inode) -> String {
    let (raw, blocksize) = (inode.raw(), u64::from(image.geometry().blocksize));
    let (bits, bits2) = (raw.core.flags.get(), raw.flags2.get());
    let visible = [
        (flags::REALTIME, 0x1),
        (flags::PREALLOC, 0x2),
        (flags::IMMUTABLE, 0x8),
        (flags::APPEND, 0x10),
        (flags::SYNC, 0x20),
        (flags::NOATIME, 0x40),
        (flags::NODUMP, 0x80),
        (flags::RTINHERIT, 0x100),
        (flags::PROJINHERIT, 0x200),
        (flags::NOSYMLINKS, 0x400),
        (flags::EXTSIZE, 0x800),
        (flags::EXTSZINHERIT, 0x1000),
        (flags::NODEFRAG, 0x2000),
        (flags::FILESTREAM, 0x4000),
    ];
    let mut column = visible.into_iter().filter(|(bit, _)| bits & bit != 0).fold(0u32, |sum, (_, flag)| sum | flag);
    for (bit, flag) in [(flags2::DAX, 0x8000), (flags2::COWEXTSIZE, 0x1_0000)] {
        column |= if bits2 & bit != 0 { flag } else { 0 };
    }
    column |= if raw.core.forkoff != 0 { 0x8000_0000 } else { 0 };
    let hinted = bits & (flags::EXTSIZE | flags::EXTSZINHERIT) != 0;
    let extsize = if hinted { u64::from(raw.core.extsize.get()) * blocksize } else { 0 };
    let shared = bits2 & flags2::COWEXTSIZE != 0;
    let cowextsize = if shared { u64::from(raw.cowextsize.get()) * blocksize } else { 0 };
    format!("{column:x}:{extsize:x}:{cowextsize:x}:{:x}", raw.core.projid())
}

/// Hashes of the mapped ranges and of the contents.
fn contents(image: &Image, inode: &Inode, path: &str, listing: &mut Listing) -> (String, String) {
    let (blocksize, size) = (u64::from(image.geometry().blocksize), inode.size());
    let fork = inode.fork(ForkKind::Data).expect("data forks are sound").expect("there is a data fork");
    let mut runs: Vec<(u64, u64, bool)> = Vec::new();
    let mut pieces = Pieces { hash: Sha256::new(), size, current: None };
    pieces.hash.update(size.to_string());
    for extent in fork.extents(&image.blocks) {
        let extent = match extent {
            Ok(extent) => extent,
            Err(error) => {
                listing.damage.push(format!("{path}: {error}"));
                continue;
            }
        };
        let start = extent.startoff * blocksize;
        let end = start + u64::from(extent.blockcount) * blocksize;
        if start >= size {
            continue;
        }
        match runs.last_mut() {
            Some(last) if last.1 == start && last.2 == extent.unwritten => last.1 = end.min(size),
            _ => runs.push((start, end.min(size), extent.unwritten)),
        }
        if !extent.unwritten {
            let mut block = vec![0; blocksize as usize];
            for (at, startblock) in (start..end.min(size)).step_by(blocksize as usize).zip(extent.startblock..) {
                image.read_data(inode.is_realtime(), startblock, &mut block);
                pieces.add(at, &block);
            }
        }
    }
    let python = |unwritten| if unwritten { "True" } else { "False" };
    let text: Vec<_> = runs.iter().map(|run| format!("[{}, {}, {}]", run.0, run.1, python(run.2))).collect();
    let map = if runs.is_empty() { "-".to_owned() } else { short(&Sha256::digest(format!("[{}]", text.join(", ")))) };
    (map, short(&pieces.finish()))
}

/// The contents in pieces of 4 KiB, of which those of zeroes do not count.
struct Pieces {
    hash: Sha256,
    size: u64,
    current: Option<(u64, Vec<u8>)>,
}

const PIECE: u64 = 4096;

impl Pieces {
    fn add(&mut self, at: u64, block: &[u8]) {
        for (offset, part) in (at..).step_by(512).zip(block.chunks(512)) {
            let start = offset / PIECE * PIECE;
            if self.current.as_ref().is_none_or(|(current, _)| *current != start) {
                self.flush();
                self.current = Some((start, vec![0; PIECE as usize]));
            }
            let (_, bytes) = self.current.as_mut().expect("invariant: just set");
            bytes[(offset - start) as usize..][..part.len()].copy_from_slice(part);
        }
    }

    fn flush(&mut self) {
        let Some((start, mut bytes)) = self.current.take().filter(|(start, _)| *start < self.size) else { return };
        bytes.truncate((self.size - start).min(PIECE) as usize);
        if bytes.iter().any(|&byte| byte != 0) {
            self.hash.update(format!("{start}:"));
            self.hash.update(&bytes);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.flush();
        self.hash.finalize().to_vec()
    }
}

/// The attributes of a file; with thousands of links it has as many parent pointers to pass over, so they are read once.
fn attributes(image: &Image, inode: &Inode, path: &str, listing: &mut Listing) -> String {
    if let Some(known) = listing.attributes.get(&inode.ino) {
        return known.clone();
    }
    let read = read_attributes(image, inode, path, listing);
    listing.attributes.insert(inode.ino, read.clone());
    read
}

fn read_attributes(image: &Image, inode: &Inode, path: &str, listing: &mut Listing) -> String {
    let Some(attributes) = Attributes::open(&image.blocks, inode).expect("attribute forks are sound") else {
        return "-".to_owned();
    };
    let mut list = BTreeMap::new();
    attributes.for_each(&mut |attribute| {
        match attribute {
            Ok(attribute) if attribute.namespace == Some(AttrNamespace::Parent) || attribute.is_incomplete() => {}
            Ok(attribute) => match attributes.value(&attribute.value) {
                Ok(value) => {
                    let prefix = attribute.namespace.expect("a namespace").prefix();
                    let name = format!("{prefix}{}", quote(attribute.name));
                    assert!(list.insert(name, hex(&Sha256::digest(&value))[..12].to_owned()).is_none(), "{path}");
                }
                Err(error) => listing.damage.push(format!("{path}: {error}")),
            },
            Err(error) => listing.damage.push(format!("{path}: {error}")),
        }
        ControlFlow::Continue(())
    });
    let list: Vec<_> = list.iter().map(|(name, hash)| format!("{name}={hash}")).collect();
    if list.is_empty() { "-".to_owned() } else { list.join(",") }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("invariant: a string takes all");
        text
    })
}

fn short(hash: &[u8]) -> String {
    hex(hash)[..16].to_owned()
}

/// As Python's `unicode_escape` writes it, with bytes that are not UTF-8 as surrogates.
pub fn quote(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            let written = match (character, u32::from(character)) {
                ('\\', _) => write!(text, "\\\\"),
                ('\t', _) => write!(text, "\\t"),
                ('\n', _) => write!(text, "\\n"),
                ('\r', _) => write!(text, "\\r"),
                (' '..='~', _) => write!(text, "{character}"),
                (_, code @ 0..=0xff) => write!(text, "\\x{code:02x}"),
                (_, code @ 0..=0xffff) => write!(text, "\\u{code:04x}"),
                (_, code) => write!(text, "\\U{code:08x}"),
            };
            written.expect("invariant: a string takes all");
        }
        for byte in chunk.invalid() {
            write!(text, "\\udc{byte:02x}").expect("invariant: a string takes all");
        }
    }
    text
}
