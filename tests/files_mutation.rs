//! Files of damaged images: a filesystem with every kind of file, with fields of its metadata changed and the checksums made
//! right again, is listed, archived, measured and searched. Nothing panics, everything ends soon and takes little memory.
//! Seeded; a fixed share, or 10,000 images with `XFSKIT_FULL=1`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xfskit::buffer::{BlockCache, FoundSuperblock, SearchEffort, find_superblock};
use xfskit::device::{Device, MemoryDevice, OverlayDevice};
use xfskit::files::extract::Extraction;
use xfskit::files::owner::{BlockAddress, owners, paths_of};
use xfskit::files::tar::Archive;
use xfskit::files::{Counted, Event, Last, Map, Next, Order, Reader, Stat, Xattrs, walk};
use xfskit::forms::ForkKind;
use xfskit::geometry::Ino;
use xfskit::image::{Image, ImageDevices};
use xfskit::ondisk::crc;
use xfskit::report::Silent;

/// Images, in full and in short.
const RUNS: (u64, u64) = (10_000, 150);
/// The longest that one image may take, on a machine that does other things, too.
const LIMIT: Duration = Duration::from_secs(20);
/// Most bytes of an archive that are waited for: a file may be as large as its inode says.
const MOST_BYTES: u64 = 64 << 20;
/// Most memory that the process may have had, in KiB.
const MOST_MEMORY: u64 = 512 << 10;
/// Bytes of a block.
const BLOCK: usize = 4096;
/// Bytes of an inode.
const INODE: usize = 512;

/// splitmix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).expect("small")).expect("small")
    }
}

/// The filesystem, and the offsets of its blocks of metadata.
struct Base {
    device: Arc<MemoryDevice>,
    blocks: Vec<u64>,
}

/// Where the checksum of a structure is, by the bytes with which it begins or that its header has.
fn checksum_of(bytes: &[u8]) -> Option<usize> {
    match (&bytes[..4], &bytes[8..10]) {
        ([b'I', b'N', ..], _) => Some(100),
        (b"XAGF", _) => Some(216),
        (b"XAGI", _) => Some(312),
        (b"AB3B" | b"AB3C" | b"IAB3" | b"FIB3" | b"RMB3" | b"R3FC", _) => Some(52),
        (b"BMA3", _) => Some(64),
        (b"XDB3" | b"XDD3" | b"XDF3", _) => Some(4),
        (b"XARM" | b"XSLM", _) => Some(12),
        (_, [0x3d, 0xf1 | 0xff] | [0x3e, 0xbe] | [0x3b, 0xee]) => Some(12),
        _ => None,
    }
}

fn base() -> Base {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/files/tree.img.zst");
    let mut packed = zstd::Decoder::new(File::open(packed).expect("it is there")).expect("sound");
    let device = MemoryDevice::new(300 << 20);
    let (mut bytes, mut at, mut blocks) = (vec![0; BLOCK], 0, Vec::new());
    while packed.read_exact(&mut bytes).is_ok() {
        if bytes.iter().any(|&byte| byte != 0) {
            device.write_at(at, &bytes).expect("memory can be written");
            if (0..BLOCK).step_by(INODE).any(|start| checksum_of(&bytes[start..]).is_some()) {
                blocks.push(at);
            }
        }
        at += BLOCK as u64;
    }
    assert!(blocks.len() > 100, "{}", blocks.len());
    Base { device: Arc::new(device), blocks }
}

/// Changes some bytes of a block of metadata, most often numbers to what malice would choose, and makes checksums right.
fn damage(random: &mut Random, block: &mut [u8]) {
    // structures that are a part of a block have the size of a sector or an inode
    let whole = checksum_of(block).is_some_and(|at| at != 100 && at != 216 && at != 312);
    let (start, len) = if whole { (0, BLOCK) } else { (random.below(BLOCK / INODE) * INODE, INODE) };
    let part = &mut block[start..start + len];
    for _ in 0..=random.below(3) {
        // headers and the first records are what walks go by
        let at = if random.below(3) > 0 { random.below(240) } else { random.below(len) };
        let width = [1, 2, 4, 8][random.below(4)].min(len - at);
        let value = match random.below(5) {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << random.below(64),
            3 => random.next() % 1000,
            _ => random.next(),
        };
        part[at..at + width].copy_from_slice(&value.to_be_bytes()[8 - width..]);
        // a pointer, count or record of the same structure elsewhere
        if random.below(4) == 0 {
            let from = random.below(len - width);
            part.copy_within(from..from + width, at);
        }
    }
    if random.below(8) > 0
        && let Some(at) = checksum_of(part)
    {
        crc::stamp(part, at);
    }
}

/// Takes so many bytes and no more.
struct Bounded(u64);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = u64::try_from(bytes.len()).expect("small");
        self.0 = self.0.checked_sub(len).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Everything that can be asked of the files of an image.
fn ask(image: &Image, random: &mut Random) {
    let reader = Reader::new(image, &Silent);
    let Ok(root) = reader.lookup(b"/", Last::Follow) else { return };
    let mut folders = 0_u64;
    let walked: Result<(), ()> = walk(&reader, &root.inode, Order::Name, &mut |event| {
        match event {
            Event::Enter(at) => {
                folders += u64::from(at.inode.file_type() == Some(xfskit::forms::FileType::Directory));
                let _ = (Stat::of(&reader, at.inode), Xattrs::read(&reader, at.inode), reader.target(at.inode));
                if let Ok((_, Some(map))) = Map::open(&reader, at.inode, ForkKind::Data) {
                    map.take(10_000).for_each(drop);
                }
            }
            Event::Leave(_) => folders -= 1,
        }
        Ok(Next::Descend)
    });
    assert!(walked.is_ok() && folders == 0, "each folder that is entered is left");
    let mut out = Bounded(MOST_BYTES);
    let mut archive = Archive::new(&reader, &mut out);
    if archive.add(b".", &root.inode).is_ok() {
        let _ = archive.finish();
    }
    let _ = Counted::default().usage(&reader, &root.inode, &mut |_, _| Ok::<(), ()>(()));
    for path in [&b"/links/to-link"[..], b"/wide/entry-0003", b"names/../contents/far", b"/attributes/many"] {
        let _ = reader.lookup(path, Last::Follow);
    }
    let block = BlockAddress::parse(image.geometry(), &random.below(70_000).to_string());
    if let Some(block) = block {
        let _ = owners(&reader, block, random.below(2) == 0);
        paths_of(&reader, &[Ino(random.next() % 1_000_000)]);
    }
}

/// Files of a damaged image in a folder: none of them lies outside.
fn extract(image: &Image) {
    let reader = Reader::new(image, &Silent);
    let Ok(links) = reader.lookup(b"/links", Last::Follow) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("a/b");
    fs::create_dir_all(&target).expect("writable");
    let mut extraction = Extraction::into(&reader, File::open(&target).expect("it is there")).expect("a folder");
    let _ = extraction.add(None, &links.inode);
    drop(extraction.finish());
    let names = |path: &Path| fs::read_dir(path).expect("readable").count();
    assert_eq!((names(folder.path()), names(&folder.path().join("a"))), (1, 1));
}

fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0)
}

fn open(device: Arc<dyn Device>) -> Option<Image> {
    let found: FoundSuperblock = find_superblock(&*device, SearchEffort::Guesses).ok()?;
    Some(Image::of_superblock(ImageDevices::of_data(device), found, BlockCache::DEFAULT_CAPACITY))
}

#[test]
fn damaged_images_are_read_as_far_as_they_can_be() {
    let base = base();
    let full = std::env::var_os("XFSKIT_FULL").is_some();
    let runs = if full { RUNS.0 } else { RUNS.1 };
    let seed = std::env::var("XFSKIT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    let mut opened = 0;
    for run in 0..runs {
        let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(run));
        let device = OverlayDevice::new(Arc::clone(&base.device));
        for _ in 0..=random.below(4) {
            let at = base.blocks[random.below(base.blocks.len())];
            let mut block = vec![0; BLOCK];
            device.read_at(at, &mut block).expect("memory can be read");
            damage(&mut random, &mut block);
            device.write_at(at, &block).expect("memory can be written");
        }
        let Some(image) = open(Arc::new(device)) else { continue };
        opened += 1;
        let start = Instant::now();
        ask(&image, &mut random);
        if run % 20 == 0 {
            extract(&image);
        }
        assert!(start.elapsed() < LIMIT, "image {run} of seed {seed}: {:?}", start.elapsed());
    }
    assert!(opened > runs / 2);
    assert!(most_memory() < MOST_MEMORY, "{} KiB", most_memory());
}
