//! What is fuzzed: each function takes any bytes, and must neither panic nor hang nor take much memory.
//!
//! `cargo fuzz run NAME` calls them with what libFuzzer comes up with; `tests/fuzz.rs` of the package above calls them
//! with the inputs that once made trouble, and with a fixed share of random ones.

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use xfskit::buffer::{BlockCache, BlockKind, SearchEffort, Verifier, find_superblock};
use xfskit::device::{Device, MemoryDevice, OverlayDevice, PartitionTable, Signature, UndoFile};
use xfskit::forms::{Attributes, Directory, ForkKind, Inode, for_each_parent, read_symlink};
use xfskit::geometry::{AgNumber, Ino};
use xfskit::info::{Subject, geometry_text, inspect};
use xfskit::journal::{Checkpoints, LogArea, Records, Step, scan};
use xfskit::mkfs::devices::{DeviceFacts, DeviceKind, Devices};
use xfskit::mkfs::layout::Timestamp;
use xfskit::mkfs::suboptions::Group;
use xfskit::mkfs::{Defaults, Environment, Options, format, resolve};
use xfskit::ondisk::{RawAgf, RawAgfl, RawAgi, RawDinode, RawSuperblock, crc};

/// Filesystems that are damaged: as mkfs makes them, with different features.
const FILESYSTEMS: &[&[(Group, &str)]] = &[
    &[],
    &[(Group::Metadata, "crc=0,finobt=0,rmapbt=0,reflink=0"), (Group::Block, "size=1k")],
    &[(Group::Metadata, "metadir=1,uquota=1"), (Group::Sector, "size=4k")],
    &[(Group::Naming, "parent=1,size=16k"), (Group::Log, "size=64m,su=32k")],
];

/// Size of these filesystems.
const SIZE: u64 = 300 << 20;

/// Objects that a walk visits at most, so that an input is done soon.
const BUDGET: usize = 200;

/// A filesystem, and the offsets of its sectors that are not zero.
struct Base {
    device: MemoryDevice,
    sectors: Vec<u64>,
}

fn bases() -> &'static [Base] {
    static BASES: OnceLock<Vec<Base>> = OnceLock::new();
    BASES.get_or_init(|| FILESYSTEMS.iter().map(|lists| base(lists)).collect())
}

fn base(lists: &[(Group, &str)]) -> Base {
    let mut options = Options::default();
    for (group, list) in lists {
        options.add_list(*group, list).expect("the options are sound");
    }
    let data = DeviceFacts::file("fuzz", DeviceKind::File, SIZE);
    let devices = Devices { data, log: None, realtime: None };
    let environment = Environment {
        cpus: 1,
        time: Timestamp { sec: 1_700_000_000, nsec: 0 },
        seed: Some(1),
        uuid: uuid::Uuid::from_u128(0x1234_5678),
        discard: false,
        force: true,
        dry_run: false,
        test_suite: false,
    };
    let resolved = resolve(&options, &devices, &Defaults::default(), &environment).expect("the options are sound");
    let device = MemoryDevice::new(SIZE);
    format(&resolved.layout, &device, None, None, &mut || ()).expect("memory can be written");
    let sectors = sectors_of(&device);
    Base { device, sectors }
}

fn sectors_of(device: &MemoryDevice) -> Vec<u64> {
    let mut sectors = Vec::new();
    for range in (device as &dyn Device).allocated_ranges() {
        let range = range.expect("memory can be read");
        for offset in (range.start..range.end()).step_by(512) {
            let mut sector = [0; 512];
            device.read_at(offset, &mut sector).expect("memory can be read");
            if sector != [0; 512] {
                sectors.push(offset);
            }
        }
    }
    sectors
}

/// Takes bytes off the front of an input.
fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(*head)
}

/// A filesystem with changes. The input says which filesystem, and then for each change: which sector (from the front or
/// the back of what is in use), where in it, how many bytes, and what they become; and whether the checksum is then made
/// right, so that the change gets past it.
fn damaged(input: &mut &[u8]) -> Option<OverlayDevice<&'static MemoryDevice>> {
    let [which] = take(input)?;
    let base = &bases()[usize::from(which) % bases().len()];
    let device = OverlayDevice::new(&base.device);
    while let Some([sector_low, sector_high, at_low, at_high, shape]) = take(input) {
        let sector = usize::from(u16::from_le_bytes([sector_low, sector_high])) % base.sectors.len();
        let offset = base.sectors[sector];
        let mut bytes = [0; 512];
        device.read_at(offset, &mut bytes).ok()?;
        let at = usize::from(u16::from_le_bytes([at_low, at_high])) % 512;
        let len = usize::from(shape % 8 + 1).min(512 - at).min(input.len());
        let (new, rest) = input.split_at(len);
        bytes[at..at + len].copy_from_slice(new);
        *input = rest;
        if shape & 0x80 == 0 {
            stamp(&mut bytes);
        }
        device.write_at(offset, &bytes).ok()?;
    }
    Some(device)
}

/// Makes the checksum of a structure of one sector right.
fn stamp(sector: &mut [u8; 512]) {
    let known = [
        (RawSuperblock::MAGIC, RawSuperblock::CRC_OFFSET),
        (RawAgf::MAGIC, RawAgf::CRC_OFFSET),
        (RawAgi::MAGIC, RawAgi::CRC_OFFSET),
        (RawAgfl::MAGIC, RawAgfl::CRC_OFFSET),
    ];
    let magic = u32::from_be_bytes([sector[0], sector[1], sector[2], sector[3]]);
    let found = known.iter().find(|(known, _)| *known == magic).map(|(_, offset)| *offset);
    let inode = magic >> 16 == u32::from(RawDinode::MAGIC);
    if let Some(offset) = found.or(inode.then_some(RawDinode::CRC_OFFSET)) {
        crc::stamp(sector, offset);
    }
}

/// A damaged filesystem: described, and walked from its root.
pub fn image(mut input: &[u8]) {
    let Some(device) = damaged(&mut input) else { return };
    let subject = Subject {
        name: "fuzz".to_owned(),
        data: &device,
        log: None,
        log_name: None,
        realtime_name: None,
        mounted_on: None,
    };
    if let Ok(report) = inspect(&subject) {
        geometry_text(&report);
    }
    let Ok(found) = find_superblock(&device, SearchEffort::Guesses) else { return };
    let root = found.geometry.rootino;
    let groups = found.geometry.agcount;
    let blocks = BlockCache::new(Verifier::new(found.geometry), Arc::new(device), 1 << 20);
    for group in 0..groups.min(8) {
        for kind in [BlockKind::Superblock, BlockKind::Agf, BlockKind::Agi, BlockKind::Agfl] {
            drop(blocks.read_header(kind, AgNumber(group)));
        }
    }
    walk(&blocks, root);
}

/// Visits what can be reached from an inode.
fn walk(blocks: &BlockCache, root: Ino) {
    // The inodes behind the root are those that mkfs makes for the realtime section.
    let mut todo = vec![root, Ino(root.0 + 1), Ino(root.0 + 2), Ino(root.0 + 3)];
    let mut visits = 0;
    while let Some(ino) = todo.pop() {
        visits += 1;
        if visits > BUDGET {
            return;
        }
        let Ok(inode) = Inode::read(blocks, ino) else { continue };
        for kind in [ForkKind::Data, ForkKind::Attr] {
            if let Ok(Some(fork)) = inode.fork(kind) {
                fork.extents(blocks).take(BUDGET).for_each(drop);
            }
        }
        if let Ok(directory) = Directory::open(blocks, &inode) {
            let mut seen = 0;
            directory.for_each(&mut |entry| {
                todo.extend(entry.ok().map(|entry| entry.ino).filter(|_| seen < BUDGET));
                seen += 1;
                if seen < BUDGET { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            drop(directory.lookup(b"name"));
        }
        drop(read_symlink(blocks, &inode));
        if let Ok(Some(attributes)) = Attributes::open(blocks, &inode) {
            attributes.for_each(&mut |_| ControlFlow::Continue(()));
        }
        drop(for_each_parent(blocks, &inode, &mut |_| ControlFlow::Continue(())));
    }
}

/// A log full of anything: its head and tail are looked for.
pub fn journal(mut input: &[u8]) {
    let [which, shift_low, shift_high] = match take(&mut input) {
        Some(bytes) => bytes,
        None => return,
    };
    let base = &bases()[usize::from(which) % bases().len()];
    let device = OverlayDevice::new(&base.device);
    let Ok(found) = find_superblock(&device, SearchEffort::Guesses) else { return };
    let geometry = &found.geometry;
    let Some(start) = geometry.log.start.and_then(|start| geometry.fsb_daddr(start)) else { return };
    let shift = u64::from(u16::from_le_bytes([shift_low, shift_high])) % 4096 * 512;
    // Records begin at sectors: each piece of the input is the beginning of one.
    for (sector, piece) in (0_u64..).zip(input.chunks(64)) {
        drop(device.write_at(start.0 * 512 + shift + sector * 512, piece));
    }
    if let Ok(area) = LogArea::new(&device, geometry) {
        drop(scan(&area));
        let first = u32::try_from(shift / 512).expect("invariant: below the size of a log");
        for step in Checkpoints::new(&area, Records::new(&area, first, 4096)) {
            let Step::Checkpoint(checkpoint) = step else { continue };
            checkpoint.items().for_each(|item| drop(item.decode()));
        }
    }
}

/// A disk full of anything: partition tables and known contents.
pub fn partition(input: &[u8]) {
    for len in [input.len() as u64, 1 << 20] {
        let device = MemoryDevice::new(len);
        if device.write_at(0, &input[..input.len().min(1 << 20)]).is_err() {
            return;
        }
        if let Ok(table) = PartitionTable::read(&device) {
            for partition in &table.partitions {
                drop(table.find(&device, partition.number));
            }
        }
        drop(Signature::all_on(&device));
    }
}

/// A file that claims to be an undo file.
pub fn undo(input: &[u8]) {
    let Ok(file) = tempfile::NamedTempFile::new() else { return };
    if std::fs::write(file.path(), input).is_err() {
        return;
    }
    if let Ok(undo) = UndoFile::open(file.path()) {
        drop(undo.apply(&MemoryDevice::new(1 << 20)));
    }
}
