//! What the tools do with an image, by their engines.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;

use xfskit::buffer::SearchEffort;
use xfskit::device::{ByteRange, Device, SectorSize};
use xfskit::error::{DeviceRole, Error, Place};
use xfskit::files::extract::Extraction;
use xfskit::files::owner::{BlockAddress, owners, paths_of};
use xfskit::files::tar::Archive;
use xfskit::files::{Counted, Event, Filter, Glob, Last, Map, Next, Order, Reader, Stat, Xattrs, walk};
use xfskit::forms::{FileType, ForkKind};
use xfskit::geometry::Ino;
use xfskit::image::Image;
use xfskit::info::{Subject, geometry_text, inspect};
use xfskit::journal::LogArea;
use xfskit::logprint::{Detail, Journal, Output, Request, View, copy, print};
use xfskit::metadump::{DumpOptions, DumpReader, Format, Target, Targets, dump};

use super::Random;
use super::bases::Base;
use super::mutation::Mutant;
use super::watch::{Listener, Sink, usual};

/// xfskit-info.
pub fn info(base: &Base, mutant: &Mutant) -> String {
    let subject = Subject {
        name: base.name.to_owned(),
        data: &*mutant.devices.data,
        log: mutant.devices.log.as_deref(),
        log_name: mutant.devices.log.as_ref().map(|_| "log".to_owned()),
        realtime_name: mutant.devices.realtime.as_ref().map(|_| "realtime".to_owned()),
        mounted_on: None,
    };
    match inspect(&subject) {
        Ok(report) => {
            assert!(!geometry_text(&report).is_empty());
            assert!(serde_json::to_string_pretty(&report).is_ok_and(|text| !text.is_empty()));
        }
        Err(error) => usual(&error),
    }
    "info".to_owned()
}

/// Paths of the images.
const PATHS: &[&[u8]] = &[
    b"/",
    b"/dirs/n300",
    b"/attrs",
    b"/links",
    b"/files",
    b"/files/deep",
    b"/links/to-link",
    b"/wide/entry-0003",
    b"/rt",
    b"names/../contents/far",
    b"/attributes/many",
    b"/dirs/n3000/1-longlonglong",
    b"/p0",
    b"/owned",
    b"/links/l1000",
];

/// xfskit-files.
pub fn files(base: &Base, mutant: &Mutant, random: &mut Random) -> String {
    let Ok(image) = Image::open(mutant.devices.clone(), SearchEffort::Guesses) else { return "files".to_owned() };
    let listener = Listener::default();
    let reader = Reader::new(&image, &listener);
    let path = *random.pick(PATHS);
    let found = reader.lookup(path, Last::Follow).or_else(|_| reader.lookup(b"/", Last::Keep));
    let _ = image.journal();
    let what = ["ls", "tar", "find", "du", "map", "owner", "cat", "get"][random.below(8)];
    let told = format!("files {what} {}", String::from_utf8_lossy(path));
    let Ok(found) = found else { return told };
    let order = if random.one_in(2) { Order::Name } else { Order::Stored };
    match what {
        "ls" => list(&reader, &found.inode, order),
        "tar" => {
            let mut out = Sink::new();
            let mut archive = Archive::new(&reader, &mut out);
            if archive.add(b".", &found.inode).is_ok() {
                let _ = archive.finish();
            }
        }
        "find" => {
            let kinds = if random.one_in(2) { vec![FileType::Regular, FileType::Symlink] } else { Vec::new() };
            let filter =
                Filter { names: vec![Glob::parse(b"*[0-9]*").expect("a pattern")], kinds, ..Filter::default() };
            let walked: Result<(), ()> = walk(&reader, &found.inode, order, &mut |event| {
                if let Event::Enter(at) = event {
                    let _ = Stat::of(&reader, at.inode).map(|stat| filter.accepts(at.name, &stat));
                }
                Ok(Next::Descend)
            });
            assert!(walked.is_ok());
        }
        "du" => {
            let _ = Counted::default().usage(&reader, &found.inode, &mut |_, _| Ok::<(), ()>(()));
        }
        "map" => {
            for ino in &base.inodes {
                let Some(inode) = reader.inode(Ino(*ino)) else { continue };
                for kind in [ForkKind::Data, ForkKind::Attr] {
                    if let Ok((_, Some(map))) = Map::open(&reader, &inode, kind) {
                        map.take(10_000).for_each(drop);
                    }
                }
            }
        }
        "owner" => {
            let number = random.under(base.geometry.dblocks);
            let text = match random.below(3) {
                0 => format!("daddr:{}", mutant.hit.first().map_or(0, |site| site.offset / 512)),
                1 => format!("rt:{number}"),
                _ => number.to_string(),
            };
            if let Some(block) = BlockAddress::parse(image.geometry(), &text) {
                let _ = owners(&reader, block, random.one_in(2)).map_err(|error| usual(&error));
                paths_of(&reader, &[Ino(random.under(1_000_000)), base.geometry.rootino]);
            }
        }
        "cat" => {
            for ino in &base.inodes {
                if let Some(inode) =
                    reader.inode(Ino(*ino)).filter(|inode| inode.file_type() == Some(FileType::Regular))
                {
                    let _ = reader.cat(&inode, &mut Sink::new());
                }
                if random.one_in(50) {
                    break;
                }
            }
        }
        _ => extract(&reader),
    }
    told
}

/// A listing of everything, with all that is shown of a file.
fn list(reader: &Reader<'_>, start: &xfskit::forms::Inode, order: Order) {
    let (mut folders, mut seen) = (0_u64, HashSet::new());
    let walked: Result<(), ()> = walk(reader, start, order, &mut |event| {
        match event {
            Event::Enter(at) => {
                folders += u64::from(at.inode.file_type() == Some(FileType::Directory));
                let _ = Stat::of(reader, at.inode);
                // a file with thousands of names has as many parent pointers
                if seen.insert(at.inode.ino) {
                    let xattrs = Xattrs::read(reader, at.inode);
                    xattrs.access.iter().chain(&xattrs.default).for_each(|acl| drop(acl.to_text()));
                    drop((xattrs.shown(), reader.target(at.inode)));
                }
            }
            Event::Leave(_) => folders -= 1,
        }
        Ok(Next::Descend)
    });
    assert!(walked.is_ok() && folders == 0, "each folder that is entered is left");
}

/// Files of a folder that has none but small ones: nothing lies outside of where they are put.
fn extract(reader: &Reader<'_>) {
    let Ok(links) = reader.lookup(b"/links", Last::Follow) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("a/b");
    fs::create_dir_all(&target).expect("writable");
    let mut extraction = Extraction::into(reader, File::open(&target).expect("it is there")).expect("a folder");
    let _ = extraction.add(None, &links.inode);
    drop(extraction.finish());
    let names = |path: &std::path::Path| fs::read_dir(path).expect("readable").count();
    assert_eq!((names(folder.path()), names(&folder.path().join("a"))), (1, 1));
}

/// xfskit-logprint.
pub fn logprint(mutant: &Mutant, random: &mut Random) -> String {
    let views = [View::Checkpoints, View::Intents, View::Summary, View::Records, View::Headers];
    let request = Request {
        // long, and the same whatever the bytes are
        view: if random.one_in(40) { View::Blocks } else { *random.pick(&views) },
        detail: Detail { bytes: random.one_in(4), ..Detail::FIELDS },
        all: random.one_in(4),
        start: random.one_in(8).then(|| u32::try_from(random.under(40_000)).expect("a small number")),
        stop: random.one_in(8),
        saved_words: random.one_in(8),
        headers_only: random.one_in(8),
    };
    let told = format!("logprint {request:?}");
    let Ok(image) = Image::open(mutant.devices.clone(), SearchEffort::Guesses) else { return told };
    let Ok(device) = image.log() else { return told };
    let Ok(area) = LogArea::new(device, image.geometry()) else { return told };
    let journal = Journal::new(area, Some(image.geometry()), device.role());
    if random.one_in(20) {
        let _ = copy(&journal, &mut Sink::new(), &Listener::default());
    } else {
        let mut sink = Sink::new();
        let _ = print(&journal, &request, &mut Output::new(&mut sink, random.one_in(2)));
    }
    told
}

/// xfskit-metadump, and xfskit-mdrestore of what it wrote, whole or damaged.
pub fn metadump(base: &Base, mutant: &Mutant, random: &mut Random) -> String {
    let options = DumpOptions {
        format: [None, Some(Format::V1), Some(Format::V2)][random.below(3)],
        obscure: !random.one_in(3),
        zero_stale: !random.one_in(3),
        stop_on_error: random.one_in(10),
        compress: random.one_in(10),
        max_extent: if random.one_in(4) {
            1 + u32::try_from(random.under(1000)).expect("small")
        } else {
            (1 << 21) - 1
        },
        seed: Some(random.next()),
    };
    let told = format!("metadump {options:?}");
    let Ok(image) = Image::open(mutant.devices.clone(), SearchEffort::Guesses) else { return told };
    let changes = random.one_in(2).then(|| Changes::new(random));
    let spoilt = changes.is_some();
    let (reader, writer) = std::io::pipe().expect("there are pipes");
    let (dumped, restored) = std::thread::scope(|scope| {
        let restoring =
            scope.spawn(move || restore(Spoilt { inner: reader, at: 0, changes: changes.unwrap_or_default() }));
        let dumped = dump(&image, &options, Box::new(writer), &Listener::default());
        (dumped, restoring.join())
    });
    let restored = restored.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    if let (Ok(_), Err(error)) = (&dumped, &restored) {
        assert!(spoilt || mutant.headless, "{}: its own dump: {error}", base.name);
    }
    for error in [dumped.err(), restored.err()].into_iter().flatten() {
        usual(&error);
    }
    told
}

/// Puts a dump onto devices, as large as it says.
fn restore(dump: Spoilt) -> xfskit::error::Result<()> {
    let reader = DumpReader::open(Box::new(dump))?;
    let sizes = reader.sizes();
    let data = Hole { len: sizes.data, role: DeviceRole::Data };
    let log = Hole { len: sizes.log, role: DeviceRole::Log };
    let realtime = Hole { len: sizes.realtime, role: DeviceRole::Realtime };
    fn given(device: &Hole) -> Option<Target<'_>> {
        (device.len > 0).then_some(Target { device, is_new: true })
    }
    let targets = Targets { data: given(&data), log: given(&log), realtime: given(&realtime) };
    reader.restore(&targets, &Listener::default())
}

/// What is changed of a dump: mostly its heads, which say how long things are and where they belong.
#[derive(Default)]
struct Changes {
    /// Where, and what stands there then.
    bytes: Vec<(u64, Vec<u8>)>,
    end: Option<u64>,
}

impl Changes {
    fn new(random: &mut Random) -> Self {
        let change = |random: &mut Random| {
            let reach = if random.one_in(3) { 8 << 20 } else { 40_000 };
            let at = match random.below(3) {
                0 => random.under(40),
                // where index blocks of version 1 may be
                1 => 64 * 512 * random.under(reach / (64 * 512)) + random.under(512),
                _ => random.under(reach),
            };
            let width = [1, 2, 4, 8][random.below(4)];
            let value = match random.below(5) {
                0 => 0,
                1 => u64::MAX,
                2 => 1 << random.below(64),
                3 => random.under(1000),
                _ => random.next(),
            };
            (at, value.to_be_bytes()[8 - width..].to_vec())
        };
        let bytes = (0..=random.below(4)).map(|_| change(random)).collect();
        let end = random.one_in(8).then(|| random.under(4 << 20));
        Changes { bytes, end }
    }
}

/// A stream with changes.
struct Spoilt {
    inner: std::io::PipeReader,
    at: u64,
    changes: Changes,
}

impl Read for Spoilt {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let room = self
            .changes
            .end
            .map_or(usize::MAX, |end| usize::try_from(end.saturating_sub(self.at)).unwrap_or(usize::MAX));
        let most = buf.len().min(room);
        let len = self.inner.read(&mut buf[..most])?;
        let read = self.at..self.at + len as u64;
        for (at, bytes) in &self.changes.bytes {
            for (place, byte) in (*at..).zip(bytes).filter(|(place, _)| read.contains(place)) {
                buf[usize::try_from(place - read.start).expect("within the buffer")] = *byte;
            }
        }
        self.at = read.end;
        Ok(len)
    }
}

/// A device that takes whatever is written in its bounds, and keeps nothing.
struct Hole {
    len: u64,
    role: DeviceRole,
}

impl Hole {
    fn check(&self, offset: u64, len: u64) -> xfskit::error::Result<()> {
        if offset.checked_add(len).is_some_and(|end| end <= self.len) {
            return Ok(());
        }
        Err(Error::io(Place::at_daddr(offset / 512).on(self.role), std::io::ErrorKind::UnexpectedEof.into()))
    }
}

impl Device for Hole {
    fn len(&self) -> u64 {
        self.len
    }

    fn role(&self) -> DeviceRole {
        self.role
    }

    fn sector_size(&self) -> SectorSize {
        SectorSize::FILE
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> xfskit::error::Result<()> {
        buf.fill(0);
        self.check(offset, buf.len() as u64)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> xfskit::error::Result<()> {
        self.check(offset, buf.len() as u64)
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> xfskit::error::Result<()> {
        self.check(offset, len)
    }

    fn flush(&self) -> xfskit::error::Result<()> {
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> xfskit::error::Result<bool> {
        self.check(offset, len).map(|()| true)
    }

    fn next_allocated(&self, _from: u64) -> xfskit::error::Result<Option<ByteRange>> {
        Ok(None)
    }
}
