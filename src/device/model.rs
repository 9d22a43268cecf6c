//! Every device against a plain vector of bytes, under random operations.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// Length of the devices under test: a few pages, and no multiple of a page.
pub(super) const SIZE: u64 = 9 * 4096 + 1536;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Read { offset: u64, len: usize },
    Write { offset: u64, len: usize, byte: u8 },
    Zero { offset: u64, len: usize },
    Flush,
}

/// An operation that may also reach behind the end of the device.
pub(super) fn operation() -> impl Strategy<Value = Step> {
    let offset = prop_oneof![0..SIZE + 64, (0..SIZE / 512).prop_map(|sector| sector * 512), Just(SIZE), Just(u64::MAX)];
    let len = prop_oneof![0_usize..64, Just(512), Just(4096), 0_usize..20000];
    (0..4, offset, len, 1..=255_u8).prop_map(|(kind, offset, len, byte)| match kind {
        0 => Step::Read { offset, len },
        1 => Step::Write { offset, len, byte },
        2 => Step::Zero { offset, len },
        _ => Step::Flush,
    })
}

/// What `device` holds, read in one piece.
pub(super) fn contents(device: &dyn Device) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(device.len()).expect("invariant: test devices are small")];
    device.read_at(0, &mut bytes).expect("invariant: the device is readable");
    bytes
}

/// Bytes that differ from place to place.
pub(super) fn pattern(len: u64, seed: u8) -> Vec<u8> {
    (0..len).map(|at| seed.wrapping_add((at % 251) as u8).wrapping_mul(31)).collect()
}

/// Does an operation to both, and compares what they say.
pub(super) fn step(device: &dyn Device, model: &mut [u8], operation: &Step) {
    let place = |offset: u64, len: usize| {
        let start = usize::try_from(offset).ok()?;
        (start.checked_add(len)? <= model.len()).then(|| start..start + len)
    };
    match *operation {
        Step::Read { offset, len } => {
            let mut buf = vec![0xEE; len];
            let result = device.read_at(offset, &mut buf);
            assert_eq!(result.is_ok(), place(offset, len).is_some(), "{operation:?}: {result:?}");
            if let Some(range) = place(offset, len) {
                assert!(buf == model[range], "{operation:?} read something else");
            }
        }
        Step::Write { offset, len, byte } => {
            let buf = pattern(len as u64, byte);
            assert_eq!(device.write_at(offset, &buf).is_ok(), place(offset, len).is_some(), "{operation:?}");
            if let Some(range) = place(offset, len) {
                model[range].copy_from_slice(&buf);
            }
        }
        Step::Zero { offset, len } => {
            let result = device.write_zeroes(offset, len as u64);
            assert_eq!(result.is_ok(), place(offset, len).is_some(), "{operation:?}: {result:?}");
            if let Some(range) = place(offset, len) {
                model[range].fill(0);
            }
        }
        Step::Flush => device.flush().expect("invariant: flushing works"),
    }
}

/// The allocated ranges ascend, do not touch the outside, and cover every byte that is not zero.
fn check_allocated(device: &dyn Device, model: &[u8]) {
    let mut covered = vec![false; model.len()];
    let mut last = 0;
    for range in device.allocated_ranges() {
        let range = range.expect("invariant: ranges can be listed");
        assert!(range.len > 0 && range.start >= last && range.end() <= device.len(), "{range:?} behind {last}");
        last = range.end();
        covered[range.start as usize..range.end() as usize].fill(true);
    }
    assert!(model.iter().zip(&covered).all(|(byte, covered)| *byte == 0 || *covered));
}

/// Runs random operations on devices that `make` builds over the given contents.
pub(super) fn agrees_with_a_vector<D: Device>(make: impl Fn(&[u8]) -> D) {
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    let strategy = (any::<bool>(), prop::collection::vec(operation(), 1..60));
    runner
        .run(&strategy, |(filled, operations)| {
            let mut model = if filled { pattern(SIZE, 7) } else { vec![0; SIZE as usize] };
            let device = make(&model);
            assert_eq!(device.len(), SIZE);
            for operation in &operations {
                step(&device, &mut model, operation);
            }
            assert!(contents(&device) == model);
            check_allocated(&device, &model);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn memory() {
    agrees_with_a_vector(MemoryDevice::from_bytes);
}

#[test]
fn memory_behind_pointers() {
    agrees_with_a_vector(|bytes| -> Arc<dyn Device> { Arc::new(Box::new(MemoryDevice::from_bytes(bytes))) });
}

#[test]
fn file() {
    let folder = tempfile::tempdir().expect("invariant: a temporary folder can be made");
    let path = folder.path().join("image");
    agrees_with_a_vector(|bytes| {
        std::fs::write(&path, bytes).expect("invariant: the file can be written");
        FileDevice::open(&path, OpenFile::WRITE).expect("invariant: the file can be opened")
    });
}

#[test]
fn overlay() {
    agrees_with_a_vector(|bytes| OverlayDevice::new(MemoryDevice::from_bytes(bytes)));
}

#[test]
fn overlays_over_parts_behind_faults_that_do_not_come() {
    agrees_with_a_vector(|bytes| {
        let below: Arc<dyn Device> = Arc::new(FaultDevice::new(MemoryDevice::from_bytes(bytes)).recording());
        let range = ByteRange { start: 0, len: below.len() };
        let part = PartDevice::new(below, range).expect("invariant: the range is inside");
        OverlayDevice::new(OverlayDevice::new(part))
    });
}

#[test]
fn undo() {
    let folder = tempfile::tempdir().expect("invariant: a temporary folder can be made");
    let path = folder.path().join("undo");
    agrees_with_a_vector(|bytes| {
        let _ = std::fs::remove_file(&path);
        UndoDevice::create(MemoryDevice::from_bytes(bytes), &path, None).expect("invariant: the file can be made")
    });
}

#[test]
fn part() {
    agrees_with_a_vector(|bytes| {
        let mut disk = pattern(5000, 1);
        disk.extend(bytes);
        disk.extend(pattern(5000, 2));
        let range = ByteRange { start: 5000, len: SIZE };
        PartDevice::new(MemoryDevice::from_bytes(&disk), range).expect("invariant: the range is inside")
    });
}

#[test]
fn part_leaves_the_rest_alone() {
    let disk = pattern(3 * 4096, 1);
    let below = MemoryDevice::from_bytes(&disk);
    let part = PartDevice::new(&below, ByteRange { start: 4096, len: 4096 }).expect("invariant: inside");
    part.write_zeroes(0, 4096).expect("invariant: writable");
    assert!(part.write_at(4090, &[1; 7]).is_err());
    assert!(contents(&below) == [&disk[..4096], &[0; 4096], &disk[8192..]].concat());
    assert!(PartDevice::new(&below, ByteRange { start: 4096, len: 8193 }).is_err());
}
