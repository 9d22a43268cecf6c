//! The stages together: devices that tests cannot have, and options that nobody would think of.

use proptest::prelude::*;
use uuid::Uuid;

use super::{Defaults, Environment, Resolved, resolve};
use crate::device::Zones;
use crate::error::Result;
use crate::mkfs::Options;
use crate::mkfs::devices::{DeviceFacts, DeviceKind, Devices};
use crate::mkfs::layout::{LogPlace, RealtimePlace, Timestamp};
use crate::mkfs::suboptions::{Group, Kind, Suboption, TABLE};

const GIB: u64 = 1 << 30;

fn block_device(name: &str, bytes: u64) -> DeviceFacts {
    DeviceFacts::file(name, DeviceKind::Block, bytes)
}

fn striped(bytes: u64, unit: u64, width: u64) -> DeviceFacts {
    let mut facts = block_device("md0", bytes);
    (facts.topology.minimum_io, facts.topology.optimal_io) = (unit, width);
    facts
}

fn with_zones(name: &str, count: u64, conventional: u64, capacity: u64) -> DeviceFacts {
    let size = 256 << 20;
    let mut facts = block_device(name, count * size);
    facts.topology.zones = Some(Zones { count, conventional, size, capacity });
    facts
}

fn only(data: DeviceFacts) -> Devices {
    Devices { data, log: None, realtime: None }
}

fn resolved(devices: &Devices, lists: &[(Group, &str)]) -> Result<Resolved> {
    let mut options = Options::default();
    options.unsupported = true;
    for (group, list) in lists {
        options.add_list(*group, list)?;
    }
    if devices.realtime.is_some() {
        options.realtime_name = Some("rt".into());
    }
    let environment = Environment {
        cpus: 4,
        time: Timestamp::default(),
        seed: None,
        uuid: Uuid::nil(),
        discard: true,
        force: false,
        dry_run: false,
        test_suite: false,
    };
    resolve(&options, devices, &Defaults::default(), &environment)
}

fn refusal(devices: &Devices, lists: &[(Group, &str)]) -> String {
    resolved(devices, lists).map(|_| ()).expect_err("this is to be refused").to_string()
}

#[test]
fn stripes_come_from_the_device() {
    let made = resolved(&only(striped(10 * GIB, 65536, 262_144)), &[]).expect("allowed");
    let data = made.layout.data;
    assert_eq!((data.stripe_unit, data.stripe_width, made.layout.log.stripe_unit), (16, 64, 16));
    assert_eq!((data.agcount, data.agblocks % 16), (16, 0));
    assert_ne!(data.agblocks % 64, 0, "the groups do not all begin on one disk");
    let plain = resolved(&only(striped(10 * GIB, 65536, 262_144)), &[(Group::Data, "noalign")]).expect("allowed");
    assert_eq!((plain.layout.data.stripe_unit, plain.layout.data.agcount), (0, 4));
}

#[test]
fn stripes_that_make_no_sense_are_ignored() {
    for (bytes, unit, width) in
        [(512 << 20, 65536, 262_144), (10 * GIB, 65536, 0), (10 * GIB, 65536, 100_352), (10 * GIB, 512, 512)]
    {
        let made = resolved(&only(striped(bytes, unit, width)), &[]).expect("allowed");
        assert_eq!(made.layout.data.stripe_unit, 0, "{bytes} {unit} {width}");
    }
}

#[test]
fn a_log_unit_that_is_too_large_becomes_32_kib() {
    let made = resolved(&only(striped(10 * GIB, 1 << 20, 8 << 20)), &[]).expect("allowed");
    assert_eq!((made.layout.data.stripe_unit, made.layout.log.stripe_unit), (256, 8));
    assert_eq!(made.notes.len(), 1, "nobody asked for the unit; only --unsupported is noted");
}

#[test]
fn a_log_unit_is_whole_blocks_to_the_byte() {
    let devices = only(block_device("sda", GIB));
    for list in ["su=4097", "su=1k", "sunit=7", "su=4607"] {
        let error = refusal(&devices, &[(Group::Log, list)]);
        assert!(error.contains("allowed: multiples of 4096 up to 262144 bytes"), "{list}: {error}");
    }
    assert_eq!(resolved(&devices, &[(Group::Log, "su=8k")]).expect("allowed").layout.log.stripe_unit, 2);
}

#[test]
fn the_sector_is_the_physical_one_unless_blocks_are_smaller() {
    let mut facts = block_device("sda", GIB);
    facts.topology.sector_size.physical = 4096;
    let devices = only(facts);
    assert_eq!(resolved(&devices, &[]).expect("allowed").layout.sector.bytes(), 4096);
    let made = resolved(&devices, &[(Group::Block, "size=1k")]).expect("allowed");
    assert_eq!((made.layout.sector.bytes(), made.notes.len()), (512, 2));
    let large = resolved(&devices, &[]).expect("allowed").layout;
    assert_eq!((large.log.sector.bytes(), large.log.stripe_unit), (4096, 1));
}

#[test]
fn conventional_zones_hold_the_data_section() {
    let made = resolved(&only(with_zones("sdz", 100, 5, 256 << 20)), &[]).expect("allowed").layout;
    assert!(made.features.zoned && made.features.metadir && !made.features.reflink && made.root.rt_inherit);
    assert_eq!(made.data.blocks, 5 * 65536);
    assert_eq!(made.realtime.place, RealtimePlace::Internal { start: 5 * 65536 });
    assert_eq!((made.realtime.blocks, made.realtime.bitmap_blocks), (95 * 65536, 0));
    let none = refusal(&only(with_zones("sdz", 100, 0, 256 << 20)), &[]);
    assert!(none.contains("conventional zones"), "{none}");
}

#[test]
fn a_zoned_realtime_device_sets_the_groups() {
    let zoned = with_zones("nvme0", 40, 0, 200 << 20);
    let devices = Devices { realtime: Some(zoned), ..only(block_device("sda", 10 * GIB)) };
    let made = resolved(&devices, &[]).expect("allowed").layout;
    let groups = made.realtime.groups.expect("there are groups");
    assert_eq!((groups.count, groups.extents), (40, 51200));
    assert!(made.features.zone_gaps);
    let fewer = resolved(&devices, &[(Group::Realtime, "rgcount=10")]).expect("allowed").layout;
    assert_eq!(fewer.realtime.groups.expect("there are groups").count, 10);
    assert!(refusal(&devices, &[(Group::Realtime, "rgsize=256m")]).contains("-r rgsize"));
    assert!(refusal(&devices, &[(Group::Realtime, "rgcount=41")]).contains("up to 40"));
}

#[test]
fn untorn_writes_of_the_device_align_the_groups() {
    let mut facts = block_device("nvme0", 10 * GIB + 12 * 4096);
    facts.topology.untorn_write = (4096, 65536);
    let devices = only(facts);
    assert_eq!(resolved(&devices, &[]).expect("allowed").layout.data.agblocks % 16, 0);
    assert!(
        refusal(&devices, &[(Group::Inode, "max_atomic_write=1g"), (Group::Data, "agcount=32")])
            .contains("-i max_atomic_write")
    );
}

#[test]
fn writers_count_only_where_they_are_asked_for() {
    let devices = only(block_device("nvme0", 100 * GIB));
    assert_eq!(resolved(&devices, &[]).expect("allowed").layout.data.agcount, 4);
    for (list, count) in
        [("concurrency", 4), ("concurrency=nr_cpus", 4), ("concurrency=20", 20), ("concurrency=99", 25)]
    {
        assert_eq!(resolved(&devices, &[(Group::Data, list)]).expect("allowed").layout.data.agcount, count, "{list}");
    }
}

/// Values of a suboption: sound ones, both ends of its range, and what lies outside.
fn value(suboption: &'static Suboption) -> BoxedStrategy<String> {
    let (min, max) = suboption.range;
    let ends =
        prop_oneof![Just(min), Just(max), Just(min.saturating_sub(1)), Just(max.saturating_add(1)), min..=max.max(min)];
    let small = (0i64..4000).prop_map(|number| number.to_string());
    let units = (1i64..5000, "[bskmgt]").prop_map(|(number, unit)| format!("{number}{unit}"));
    let power = (0u32..40).prop_map(|log| (1i64 << log).to_string());
    match suboption.kind {
        Kind::Switch => "[01]".boxed(),
        Kind::Autofsck => "none|check|repair|0|1".boxed(),
        Kind::Naming => "2|ci".boxed(),
        Kind::Uuid | Kind::Text => Just("x".to_string()).boxed(),
        _ => prop_oneof![ends.prop_map(|number| number.to_string()), small, units, power].boxed(),
    }
}

fn suboptions() -> impl Strategy<Value = Vec<(usize, String)>> {
    let usable = |index: &usize| !matches!(TABLE[*index].group, Group::Config | Group::Proto);
    let one = (0..TABLE.len()).prop_filter("a suboption of a layout", usable);
    proptest::collection::vec(one.prop_flat_map(|index| (Just(index), value(&TABLE[index]))), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Nothing makes a stage panic, and whatever is accepted adds up.
    #[test]
    fn every_layout_adds_up(
        asked in suboptions(),
        data in prop_oneof![16u64 << 20..400 << 20, GIB..100 * GIB, 1u64 << 40..1 << 50],
        realtime in proptest::option::of(1u64 << 12..1 << 48),
        log in proptest::option::of(1u64 << 20..1 << 32),
    ) {
        let mut options = Options::default();
    options.unsupported = true;
        for (index, text) in &asked {
            let _ = options.add(&TABLE[*index], Some(text));
        }
        options.realtime_name = realtime.map(|_| "rt".into());
        if log.is_some() {
            (options.log_name, options.log_internal) = (Some("log".into()), false);
        }
        let devices = Devices {
            data: block_device("data", data),
            log: log.map(|bytes| block_device("log", bytes)),
            realtime: realtime.map(|bytes| block_device("rt", bytes)),
        };
        let environment = Environment {
            cpus: 64,
            time: Timestamp::default(),
            seed: None,
            uuid: Uuid::nil(),
            discard: false,
            force: true,
            dry_run: true,
            test_suite: false,
        };
        if let Ok(Resolved { layout, .. }) = resolve(&options, &devices, &Defaults::default(), &environment) {
            let (groups, block) = (layout.data, u64::from(layout.block.bytes()));
            let (agblocks, agcount) = (u64::from(groups.agblocks), u64::from(groups.agcount));
            prop_assert!(agblocks * (agcount - 1) < groups.blocks && groups.blocks <= agblocks * agcount);
            prop_assert!(groups.blocks * block <= groups.device_bytes && groups.device_bytes <= data);
            prop_assert!(layout.sector <= layout.block && layout.inode < layout.block);
            if let LogPlace::Internal { agno, agblock } = layout.log.place {
                prop_assert!(u64::from(agblock.0) + u64::from(layout.log.blocks) <= u64::from(groups.blocks_of(agno)));
            }
            prop_assert!(layout.realtime.extents * u64::from(layout.realtime.extent_blocks) <= layout.realtime.blocks);
        }
    }
}
