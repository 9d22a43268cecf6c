//! The images that are mutated: small, of every kind.

use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use xfskit::buffer::{SearchEffort, find_superblock};
use xfskit::device::{Device, FileDevice, MemoryDevice, OpenFile};
use xfskit::error::DeviceRole;
use xfskit::geometry::Geometry;
use xfskit::journal::{LogArea, LogState, scan};

use super::structures::{Sites, Unit};

/// Images of `testdata`, below that folder, without their suffix; those with a realtime device have that beside them.
const STORED: &[&str] = &[
    "mutations/small-blocks",
    "mutations/large-blocks",
    "mutations/directory-blocks",
    "files/tree",
    "db/v4",
    "db/v4-quota",
    "db/quota",
    "db/realtime",
    "db/groups",
    // their journals are dirty
    "crash/k73-default.1",
    "crash/k61-rr.1",
    "crash/i386-61.1",
    "crash/s390x-61.1",
];

/// Images that are made: name and arguments of mkfs.
const MADE: &[(&str, &[&str])] = &[
    ("external", &["-l", "logdev=log,size=64m"]),
    ("zoned", &["-r", "rtdev=rt,zoned=1,rgsize=128m"]),
    ("v1-log", &["-m", "crc=0", "-l", "version=1,lazy-count=0", "-n", "version=ci"]),
];

/// A filesystem in memory.
pub struct Base {
    pub name: &'static str,
    pub data: Arc<MemoryDevice>,
    pub log: Option<Arc<MemoryDevice>>,
    pub realtime: Option<Arc<MemoryDevice>>,
    pub geometry: Geometry,
    pub sites: Sites,
    /// Numbers of inodes.
    pub inodes: Vec<u64>,
    /// Blocks of 512 bytes of the journal that would be replayed.
    pub dirty_blocks: Range<u64>,
}

impl Base {
    fn new(name: &'static str, data: MemoryDevice, log: Option<MemoryDevice>, realtime: Option<MemoryDevice>) -> Self {
        let found = find_superblock(&data, SearchEffort::Guesses).unwrap_or_else(|error| panic!("{name}: {error}"));
        let geometry = found.geometry;
        let mut sites = Sites::default();
        sites.add(&data, &geometry, false);
        if let Some(realtime) = &realtime {
            sites.add(realtime, &geometry, true);
        }
        let inodes = sites.all().filter(|site| site.form.unit == Unit::Inode);
        let inodes = inodes.filter_map(|site| ino(&geometry, site.offset)).collect();
        let device: &dyn Device = log.as_ref().map_or(&data, |log| log);
        let dirty_blocks = LogArea::new(device, &geometry).and_then(|area| Ok((scan(&area)?, area.blocks())));
        let dirty_blocks = match dirty_blocks {
            Ok((found, blocks)) if found.state == LogState::Dirty => {
                let (tail, head) = (u64::from(found.tail), u64::from(found.head));
                tail..if head > tail { head } else { head + u64::from(blocks) }
            }
            _ => 0..0,
        };
        let shared = |device: MemoryDevice| Arc::new(device);
        let (log, realtime) = (log.map(shared), realtime.map(shared));
        Base { name, data: Arc::new(data), log, realtime, geometry, sites, inodes, dirty_blocks }
    }

    /// The number of the inode at a byte of the data device.
    pub fn inode_at(&self, offset: u64) -> Option<u64> {
        ino(&self.geometry, offset)
    }

    /// The byte of its device at which the journal begins.
    pub fn log_start(&self) -> u64 {
        self.geometry.log_daddr().filter(|_| self.log.is_none()).map_or(0, |daddr| daddr.0 * 512)
    }
}

/// The number of the inode at a byte of the data device.
fn ino(geometry: &Geometry, offset: u64) -> Option<u64> {
    let block = offset >> geometry.blocklog;
    let group = u64::from(geometry.agblocks);
    let index = (offset & (u64::from(geometry.blocksize) - 1)) / u64::from(geometry.inodes.size);
    let in_group = ((block % group) << geometry.inodes.per_block_log) | index;
    let ino = (block / group) << (geometry.agblklog + geometry.inodes.per_block_log) | in_group;
    geometry.ino_offset(ino.into()).filter(|found| *found == offset).map(|_| ino)
}

/// An image of `testdata`.
pub fn stored(name: &'static str) -> Base {
    let packed =
        |suffix: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(format!("{name}.{suffix}.zst"));
    let realtime = packed("rt").exists().then(|| unpacked(&packed("rt")).on(DeviceRole::Realtime));
    Base::new(name, unpacked(&packed("img")), None, realtime)
}

/// All images.
pub fn bases(folder: &Path) -> Vec<Base> {
    let stored = STORED.iter().map(|name| stored(name));
    let made = MADE.iter().map(|(name, arguments)| {
        for (file, size) in [(*name, 320 << 20), ("log", 64 << 20), ("rt", 1 << 30)] {
            fs::remove_file(folder.join(file)).ok();
            File::create(folder.join(file)).and_then(|file| file.set_len(size)).expect("a file can be made");
        }
        let mut mkfs = Command::new(env!("CARGO_BIN_EXE_xfskit-mkfs"));
        let output = mkfs.args(["-q", "-f"]).args(*arguments).arg(name).current_dir(folder).output();
        let output = output.expect("the tool can be started");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let load = |file: &str, role| {
            let file = FileDevice::open(&folder.join(file), OpenFile::READ).expect("it was just made");
            copied(&file).on(role)
        };
        let log = (*name == "external").then(|| load("log", DeviceRole::Log));
        let realtime = (*name == "zoned").then(|| load("rt", DeviceRole::Realtime));
        Base::new(name, load(name, DeviceRole::Data), log, realtime)
    });
    stored.chain(made).collect()
}

fn unpacked(path: &Path) -> MemoryDevice {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut source = zstd::stream::read::Decoder::new(file).expect("a zstd stream");
    source.window_log_max(27).expect("a window of 128 MiB");
    load(&mut source)
}

/// What a stream holds, as a device of its length; zeroes take no memory.
fn load(source: &mut dyn Read) -> MemoryDevice {
    let mut pieces = Vec::new();
    let mut piece = vec![0; PIECE];
    let mut len = 0;
    loop {
        let filled = fill(source, &mut piece);
        if piece[..filled] != ZEROES[..filled] {
            pieces.push((len, piece[..filled].to_vec()));
        }
        len += filled as u64;
        if filled < PIECE {
            break;
        }
    }
    let device = MemoryDevice::new(len);
    for (at, piece) in pieces {
        put(&device, at, &piece);
    }
    device
}

const PIECE: usize = 1 << 17;
const PAGE: usize = 4096;
static ZEROES: [u8; PIECE] = [0; PIECE];

/// Fills `piece` as far as there is something; how far.
fn fill(source: &mut dyn Read, piece: &mut [u8]) -> usize {
    let mut filled = 0;
    while filled < piece.len() {
        match source.read(&mut piece[filled..]).expect("readable") {
            0 => break,
            more => filled += more,
        }
    }
    filled
}

/// Writes the pages that are not all zero.
fn put(device: &MemoryDevice, at: u64, bytes: &[u8]) {
    for (page, start) in bytes.chunks(PAGE).zip((at..).step_by(PAGE)) {
        if *page != ZEROES[..page.len()] {
            device.write_at(start, page).expect("memory can be written");
        }
    }
}

/// What a file holds.
fn copied(file: &FileDevice) -> MemoryDevice {
    let device = MemoryDevice::new(file.len());
    let mut piece = vec![0; PIECE];
    for range in (file as &dyn Device).allocated_ranges() {
        let range = range.expect("a file knows what it holds");
        for at in (range.start..range.end()).step_by(PIECE) {
            let len = usize::try_from(range.end() - at).unwrap_or(PIECE).min(PIECE);
            file.read_at(at, &mut piece[..len]).expect("readable");
            put(&device, at, &piece[..len]);
        }
    }
    device
}
