//! Filesystems whose bytes are known from mkfs.xfs 7.2: they were made with `--unsupported -q`, `SOURCE_DATE_EPOCH=1700000000`,
//! `DETERMINISTIC_SEED=1` and `-m uuid=11111111-2222-3333-4444-555555555555`.

use super::format;
use crate::device::{Device, Effect, Event, Fault, FaultDevice, MemoryDevice, Operation};
use crate::geometry::{AgBlock, AgNumber};
use crate::mkfs::layout::{
    Autofsck, DataLayout, Features, Layout, LogLayout, LogPlace, PowerSize, RealtimeGroups, RealtimeLayout,
    RealtimePlace, RootDefaults, Timestamp,
};

const MIB: u64 = 1 << 20;
const MAGIC: &[u8] = b"XFSB";

/// 32 MiB with the defaults.
fn defaults() -> Layout {
    let features = Features {
        crc: true,
        finobt: true,
        sparse_inodes: true,
        rmapbt: true,
        reflink: true,
        inobtcount: true,
        bigtime: true,
        nrext64: true,
        metadir: false,
        exchange: true,
        parent: true,
        ftype: true,
        attr2: true,
        attributes: true,
        lazy_counters: true,
        projid32: true,
        inode_alignment: true,
        ascii_ci: false,
        zoned: false,
        zone_gaps: false,
    };
    Layout {
        block: PowerSize::from_log(12),
        sector: PowerSize::from_log(9),
        inode: PowerSize::from_log(9),
        directory_block: PowerSize::from_log(12),
        features,
        data: DataLayout {
            device_bytes: 32 * MIB,
            blocks: 8192,
            agblocks: 4096,
            agcount: 2,
            stripe_unit: 0,
            stripe_width: 0,
            inode_alignment: 8,
            sparse_alignment: 4,
            imax_pct: 25,
        },
        log: LogLayout {
            place: LogPlace::Internal { agno: AgNumber(1), agblock: AgBlock(7) },
            blocks: 2001,
            version: 2,
            sector: PowerSize::from_log(9),
            stripe_unit: 0,
        },
        realtime: RealtimeLayout {
            place: RealtimePlace::None,
            extent_blocks: 1,
            blocks: 0,
            extents: 0,
            bitmap_blocks: 0,
            groups: None,
            reserved_blocks: 0,
        },
        root: RootDefaults::default(),
        quota_flags: 0,
        autofsck: Some(Autofsck::Repair),
        uuid: uuid::uuid!("11111111-2222-3333-4444-555555555555"),
        label: [0; 12],
        time: Timestamp { sec: 1_700_000_000, nsec: 0 },
        seed: Some(0x5345_4544),
        discard: false,
        erase_old_superblocks: true,
    }
}

/// 32 MiB with `-m crc=0 -b size=1024`.
fn version_4() -> Layout {
    let mut layout = defaults();
    layout.block = PowerSize::from_log(10);
    layout.inode = PowerSize::from_log(8);
    layout.directory_block = PowerSize::from_log(12);
    layout.features = Features {
        crc: false,
        finobt: false,
        sparse_inodes: false,
        rmapbt: false,
        reflink: false,
        inobtcount: false,
        bigtime: false,
        nrext64: false,
        exchange: false,
        parent: false,
        attributes: false,
        ..layout.features
    };
    layout.data.blocks = 32768;
    layout.data.agblocks = 16384;
    layout.data.sparse_alignment = 0;
    layout.log.place = LogPlace::Internal { agno: AgNumber(1), agblock: AgBlock(5) };
    layout.log.blocks = 2567;
    layout.realtime.extent_blocks = 4;
    layout.autofsck = None;
    layout
}

/// 64 MiB with `-m metadir=1 -r rtdev=...,rgcount=4`, and a realtime device of 64 MiB.
fn realtime_groups() -> Layout {
    let mut layout = defaults();
    layout.features.metadir = true;
    layout.data.device_bytes = 64 * MIB;
    layout.data.blocks = 16384;
    layout.data.agcount = 4;
    layout.log.place = LogPlace::Internal { agno: AgNumber(2), agblock: AgBlock(7) };
    layout.log.blocks = 2845;
    layout.realtime = RealtimeLayout {
        place: RealtimePlace::Device,
        extent_blocks: 1,
        blocks: 16384,
        extents: 16384,
        bitmap_blocks: 1,
        groups: Some(RealtimeGroups { count: 4, extents: 4096 }),
        reserved_blocks: 0,
    };
    layout
}

/// Number of sectors of 512 bytes that are not zero, and the CRC of them and their numbers.
fn fingerprint(device: &dyn Device) -> (u64, u32) {
    let (mut count, mut crc) = (0, 0);
    let mut bytes = vec![0; 1 << 20];
    for start in (0..device.len()).step_by(bytes.len()) {
        device.read_at(start, &mut bytes).expect("in range");
        for (sector, number) in bytes.chunks(512).zip(start / 512..) {
            if sector.iter().any(|&byte| byte != 0) {
                count += 1;
                crc = crc32c::crc32c_append(crc, &number.to_be_bytes());
                crc = crc32c::crc32c_append(crc, sector);
            }
        }
    }
    (count, crc)
}

#[test]
fn defaults_are_those_of_mkfs_xfs() {
    let device = MemoryDevice::new(32 * MIB);
    let report = format(&defaults(), &device, None, None, &mut || ()).expect("enough space");
    assert_eq!(report.rootino, 128);
    assert_eq!(fingerprint(&device), (86, 0xf2ae_144d));
}

#[test]
fn version_4_is_that_of_mkfs_xfs() {
    let device = MemoryDevice::new(32 * MIB);
    format(&version_4(), &device, None, None, &mut || ()).expect("enough space");
    assert_eq!(fingerprint(&device), (48, 0x4dcf_3e8d));
}

#[test]
fn realtime_groups_are_those_of_mkfs_xfs() {
    let (device, rt) = (MemoryDevice::new(64 * MIB), MemoryDevice::new(64 * MIB));
    format(&realtime_groups(), &device, None, Some(&rt), &mut || ()).expect("enough space");
    assert_eq!(fingerprint(&device), (184, 0xd074_07d5));
    assert_eq!(fingerprint(&rt), (1, 0xfc05_dab5));
}

#[test]
fn a_second_run_makes_the_same_bytes() {
    let device = MemoryDevice::new(32 * MIB);
    for _ in 0..2 {
        format(&defaults(), &device, None, None, &mut || ()).expect("enough space");
        assert_eq!(fingerprint(&device), (86, 0xf2ae_144d));
    }
}

#[test]
fn the_primary_superblock_is_the_last_that_is_written() {
    let device = FaultDevice::new(MemoryDevice::new(32 * MIB)).recording();
    format(&defaults(), &device, None, None, &mut || ()).expect("enough space");
    let events = device.take_events();
    let [.., Event::Flush, Event::Write { offset: 0, bytes }, Event::Flush] = &events[..] else {
        panic!("ends with {:?}", &events[events.len() - 3..]);
    };
    assert_eq!(bytes.len(), 512);
    assert!(bytes.starts_with(MAGIC));
}

#[test]
fn an_error_at_any_write_leaves_no_filesystem() {
    let old = MemoryDevice::new(32 * MIB);
    format(&version_4(), &old, None, None, &mut || ()).expect("enough space");
    let mut start = vec![0; usize::try_from(MIB).expect("small")];
    old.read_at(0, &mut start).expect("in range");

    let count = FaultDevice::new(MemoryDevice::new(32 * MIB));
    format(&defaults(), &count, None, None, &mut || ()).expect("enough space");
    for nth in 1..count.count(Operation::Write) {
        let fault = Fault { operation: Operation::Write, nth, effect: Effect::Torn(100), then_dead: false };
        let inner = MemoryDevice::new(32 * MIB);
        inner.write_at(0, &start).expect("in range");
        let device = FaultDevice::new(inner).with(fault);
        format(&defaults(), &device, None, None, &mut || ()).expect_err("the device fails");
        let mut sector = vec![0; 512];
        device.read_at(0, &mut sector).expect("in range");
        let last = nth + 1 == count.count(Operation::Write);
        // a torn superblock has its magic number, but not its checksum, which lies behind the first 100 bytes
        assert!(!sector.starts_with(MAGIC) || (last && sector[100..].iter().all(|&byte| byte == 0)), "write {nth}");
    }
}

#[test]
fn a_missing_device_is_an_error() {
    let device = MemoryDevice::new(64 * MIB);
    let mut layout = realtime_groups();
    format(&layout, &device, None, None, &mut || ()).expect_err("no realtime device");
    layout = defaults();
    layout.log.place = LogPlace::External;
    format(&layout, &device, None, None, &mut || ()).expect_err("no log device");
}
