//! Journals that are written and then taken apart.

#![allow(clippy::cast_possible_truncation)] // test journals are small

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::device::Device;
use crate::geometry::Lsn;
use crate::geometry::limits::BASIC_BLOCK;
use crate::journal::model::Ring;
use crate::journal::{IntentEvent, Intents, LogArea, scan};
use crate::ondisk::log_record::{BBSIZE, CrcReach, op};

/// The type number of the items in tests of how they are put together.
const SOME_TYPE: u16 = 0x123c;

/// The regions of an item: the first begins with type and number of regions.
fn item(order: Order, bodies: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let number = |number: u16| if order == Order::Big { number.to_be_bytes() } else { number.to_le_bytes() };
    let mut regions: Vec<Vec<u8>> = bodies.iter().map(|body| body[..body.len() / 4 * 4].to_vec()).collect();
    let count = regions.len() as u16;
    let head = [number(SOME_TYPE), number(count)].concat();
    regions[0].splice(0..0, head);
    regions
}

fn items(order: Order, bodies: &[Vec<Vec<u8>>]) -> Vec<Vec<Vec<u8>>> {
    bodies.iter().map(|bodies| item(order, bodies)).collect()
}

/// Items of one to four regions, of which the later ones are not empty.
fn any_bodies(most: usize) -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    let first = vec(any::<u8>(), 0..most);
    let others = vec(vec(any::<u8>(), 4..most.max(5)), 0..4);
    let item = (first, others).prop_map(|(first, others)| [vec![first], others].concat());
    vec(item, 1..8)
}

fn regions_of(checkpoint: &Checkpoint) -> Vec<Vec<Vec<u8>>> {
    checkpoint.items().map(|item| item.all_regions().map(<[u8]>::to_vec).collect()).collect()
}

/// All checkpoints from `from` to `to`; anything that is wrong is an error.
fn read(area: &LogArea<'_>, from: u32, to: u32) -> Vec<Checkpoint> {
    let mut found = Vec::new();
    for step in Checkpoints::new(area, Records::between(area, from, to)) {
        match step {
            Step::Checkpoint(checkpoint) => found.push(*checkpoint),
            Step::Record(record) => assert!(record.is_whole(), "record at {}", record.block),
            other => panic!("{other:?}"),
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// What is written comes back: in both orders and versions, over records of any size, through the end of the ring, and
    /// with transactions between each other.
    #[test]
    fn checkpoints_come_back(
        version in 1..=2u16, big: bool, i386: bool, size in 0..4u32, skip in 0..4000u32,
        checkpoints in vec(any_bodies(6000), 1..8), turns in vec(any::<proptest::sample::Index>(), 40),
    ) {
        let mut ring = Ring::new(600, version);
        ring.order = if big { Order::Big } else { Order::Little };
        ring.reach = if i386 { CrcReach::I386 } else { CrcReach::Usual };
        ring.size = if version == 1 { 32 * 1024 } else { (16 * 1024) << (2 * size.min(2)) };
        // the log went round to here before
        (ring.at, ring.cycle) = (skip, 5);
        let (start, tail) = (ring.at, ring.next_lsn());
        let expected: Vec<_> = checkpoints.iter().map(|bodies| items(ring.order, bodies)).collect();
        let mut ops: Vec<_> = expected.iter().zip(1..)
            .map(|(items, tid)| (tid, ring.ops_of(tid, items).into_iter().collect::<std::collections::VecDeque<_>>()))
            .collect();
        let mut committed = Vec::new();
        for turn in (0..).map(|turn: usize| turns[turn % turns.len()]) {
            if ops.is_empty() {
                break;
            }
            let which = turn.index(ops.len());
            let (tid, left) = &mut ops[which];
            if let Some((flags, contents)) = left.pop_front() {
                ring.add_op(*tid, flags, &contents, tail);
            } else {
                committed.push(ops.remove(which).0);
            }
        }
        ring.flush(tail);
        let area = ring.area();
        let mut found = read(&area, start, ring.at);
        prop_assert_eq!(found.len(), expected.len());
        found.sort_by_key(|checkpoint| checkpoint.tid);
        for (checkpoint, items) in found.iter().zip(&expected) {
            prop_assert_eq!(&regions_of(checkpoint), items);
            prop_assert!(checkpoint.is_complete() && !checkpoint.damaged && checkpoint.order == ring.order);
            let bytes: u64 = checkpoint.items().map(|item| item.log_bytes()).sum();
            prop_assert!(checkpoint.log_bytes() >= bytes + 16 + 3 * 12);
            prop_assert!(checkpoint.lsn <= checkpoint.commit_lsn.expect("it is committed"));
        }
    }

    /// Whatever is damaged: nothing panics, no more memory is taken than there is log, and what is not touched is found.
    #[test]
    fn damage_costs_only_itself(
        version in 1..=2u16, big: bool, checkpoints in vec(any_bodies(800), 1..20),
        damage in vec((any::<u32>(), any::<u8>()), 0..12), reseal: bool,
    ) {
        let mut ring = Ring::new(100, version);
        ring.order = if big { Order::Big } else { Order::Little };
        let tail = ring.next_lsn();
        for (bodies, tid) in checkpoints.iter().zip(1..) {
            let items = items(ring.order, bodies);
            ring.commit(tid, &items, tail);
            ring.flush(tail);
        }
        let written = ring.at * BASIC_BLOCK;
        for (at, value) in &damage {
            let at = u64::from(at % written);
            ring.device.write_at(at, &[*value]).expect("on the device");
        }
        if reseal {
            reseal_records(&ring);
        }
        let area = ring.area();
        let _ = scan(&area);
        let (mut found, mut faults) = (0, 0);
        for step in Checkpoints::new(&area, Records::new(&area, 0, area.blocks())) {
            match step {
                Step::Checkpoint(checkpoint) => {
                    found += 1;
                    for item in checkpoint.items() {
                        let _ = (item.decode(), item.intent_id());
                    }
                }
                Step::Fault(_) | Step::Gap(_) => faults += 1,
                _ => {}
            }
        }
        prop_assert!(found + damage.len() >= checkpoints.len(), "{found} of {} with {faults} faults", checkpoints.len());
    }
}

/// Makes the CRCs of all records right that still look like records, so that the damage gets past them.
fn reseal_records(ring: &Ring) {
    let area = ring.area();
    let mut crcs = Vec::new();
    for piece in Records::new(&area, 0, area.blocks()) {
        let Piece::Record(record) = piece else { continue };
        if let CrcState::Wrong { computed } = record.crc {
            crcs.push((record.block, computed));
        }
    }
    for (block, crc) in crcs {
        let offset = std::mem::offset_of!(crate::ondisk::log_record::RawLogRecHeader, crc) as u64;
        let at = u64::from(block * BASIC_BLOCK) + offset;
        ring.device.write_at(at, &crc.to_le_bytes()).expect("on the device");
    }
}

/// Flags and contents of an operation.
type Op<'a> = (u8, &'a [u8]);

/// A log with these operations of transaction 9 in one record.
fn with_ops(ops: &[Op<'_>]) -> Ring {
    let mut ring = Ring::new(100, 2);
    let tail = ring.next_lsn();
    for (flags, contents) in ops {
        ring.add_op(9, *flags, contents, tail);
    }
    ring.flush(tail);
    ring
}

/// What the first record of a log gives, in words.
fn outcomes(ring: &Ring) -> Vec<String> {
    let area = ring.area();
    let steps = Checkpoints::new(&area, Records::between(&area, 0, ring.at));
    let words = steps.filter_map(|step| match step {
        Step::Record(_) => None,
        Step::Gap(gap) => Some(format!("{:?}", gap.kind)),
        Step::Checkpoint(found) => Some(format!("{} items", found.items().len())),
        Step::Unmount => Some("unmount".to_owned()),
        Step::Fault(fault) => Some(fault.check.to_string()),
        Step::Uncommitted(found) => Some(format!("{} items, never committed", found.items().len())),
    });
    words.collect()
}

/// A transaction header in two pieces, and an item that has one region.
const HEADER: &[u8] = &[0x4e, 0x41, 0x52, 0x54, 40, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0];
const ITEM: &[u8] = &[0x3c, 0x12, 1, 0, 1, 2, 3, 4];

#[test]
fn headers_and_regions_in_pieces() {
    let pieces = [
        (op::START_TRANS, &[][..]),
        (op::CONTINUE_TRANS, &HEADER[..8]),
        (op::WAS_CONT_TRANS | op::END_TRANS, &HEADER[8..]),
        (op::CONTINUE_TRANS, &ITEM[..4]),
        (op::WAS_CONT_TRANS | op::CONTINUE_TRANS, &ITEM[4..6]),
        (op::WAS_CONT_TRANS | op::END_TRANS, &ITEM[6..]),
        (op::COMMIT_TRANS, &[]),
    ];
    let ring = with_ops(&pieces);
    let found = read(&ring.area(), 0, ring.at);
    assert_eq!(regions_of(&found[0]), [[ITEM.to_vec()]]);
    assert_eq!(found[0].header, Some(TransactionHeader { kind: 40, tid: 9, num_items: 1 }));
}

#[test]
fn what_makes_no_sense_is_a_fault() {
    let start = (op::START_TRANS, &[][..]);
    let commit = (op::COMMIT_TRANS, &[][..]);
    let cases: &[(&[Op], &[&str])] = &[
        (&[start, (0, HEADER), (0, ITEM), commit], &["1 items"]),
        (&[start, (0, HEADER), (0, ITEM)], &["1 items, never committed"]),
        // the beginning was before the tail
        (&[(0, ITEM), commit], &[]),
        (
            &[start, (0, ITEM), (0, HEADER)],
            &["trans_header.magic: more than the block can hold", "0 items, never committed"],
        ),
        (&[start, (0, &[0; 16])], &["trans_header.magic: wrong magic number", "0 items, never committed"]),
        (&[start, (0, HEADER), (op::WAS_CONT_TRANS, ITEM), commit], &["log_op_header.flags: unknown flags", "0 items"]),
        (
            &[start, (0, HEADER), (0, &[0x3c, 0x12, 0, 0]), commit],
            &["log_item.size: more than the block can hold", "0 items"],
        ),
        (
            &[start, (0, HEADER), (0, &[0x3c, 0x12, 2, 1]), commit],
            &["log_item.size: more than the block can hold", "0 items"],
        ),
        (&[start, (0, HEADER), start, (0, HEADER), commit], &["log_op_header.flags: unknown flags", "0 items"]),
        (&[start, (0x80, HEADER), commit], &["log_op_header.flags: unknown flags", "0 items"]),
        (&[start, (0, HEADER), (op::UNMOUNT_TRANS, &[]), commit], &["unmount"]),
        (&[start, (0, HEADER), (0, &[]), (0, ITEM), commit], &["1 items"]),
    ];
    for (ops, expected) in cases {
        assert_eq!(&outcomes(&with_ops(ops)), expected, "{ops:?}");
    }
}

#[test]
fn an_operation_that_is_cut_short_ends_its_record_alone() {
    let start = (op::START_TRANS, &[][..]);
    let mut ring = with_ops(&[start, (0, HEADER), (0, ITEM), (op::COMMIT_TRANS, &[])]);
    let second = ring.at;
    ring.commit(10, &[vec![ITEM.to_vec()]], Lsn::new(1, 0));
    ring.flush(Lsn::new(1, 0));
    // the length of the second operation: block 1 begins with the cycle, and operation 1 is 12 bytes into it
    ring.device.write_at(u64::from(BASIC_BLOCK) + 16, &[0, 1, 0, 0]).expect("on the device");
    assert_eq!(
        outcomes(&ring),
        [
            "log_rec_header.crc: CRC does not match",
            "log_op_header.len: cut short",
            "1 items",
            "0 items, never committed"
        ]
    );
    assert!(second > 0);
}

#[test]
fn too_much_for_one_transaction_is_refused() {
    let mut assembler = Assembler::new(1000);
    let start = (op::START_TRANS, &[][..]);
    let ring = with_ops(&[start, (0, HEADER), (0, ITEM), (op::CONTINUE_TRANS, &[1; 900]), (0, &[1; 200]), (0, ITEM)]);
    let area = ring.area();
    let Some(Piece::Record(record)) = Records::new(&area, 0, 10).next() else { panic!("no record") };
    let results: Vec<bool> = record.ops().map(|op| assembler.feed(&record, &op.expect("sound")).is_ok()).collect();
    // it is dropped with what was there, and what follows is nobody's
    assert_eq!(results, [true, true, true, true, false, true]);
    assert!(assembler.into_open().is_empty());
}

#[test]
fn blocks_between_records() {
    let mut ring = Ring::new(100, 2);
    let tail = ring.next_lsn();
    ring.commit(1, &[vec![ITEM.to_vec()]], tail);
    ring.flush(tail);
    let first = ring.at;
    ring.put(&[0x55; BBSIZE]);
    ring.put(&[0x55; BBSIZE]);
    // a header that lies elsewhere than it says
    let mut stray = ring.record(100, tail, false)[..BBSIZE].to_vec();
    stray[23] ^= 1;
    ring.put(&stray);
    let last = ring.at;
    ring.commit(2, &[vec![ITEM.to_vec()]], tail);
    ring.flush(tail);
    let area = ring.area();
    let kinds: Vec<_> = Records::new(&area, 0, area.blocks())
        .map(|piece| match piece {
            Piece::Record(record) => (record.block, None),
            Piece::Gap(gap) => (gap.block, Some((gap.blocks, gap.kind))),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            (0, None),
            (first, Some((2, GapKind::Leftover { cycle: 0x5555_5555 }))),
            (first + 2, Some((1, GapKind::BadHeader))),
            (last, None),
            (ring.at, Some((area.blocks() - ring.at, GapKind::Zeroed))),
        ]
    );
}

#[test]
fn ids_are_used_again() {
    use crate::ondisk::LittleEndian;
    use crate::ondisk::log_inode::Width;
    use crate::ondisk::log_intent::{FreeItem, FreedExtent, RawDoneItem, RefcountItem};
    use crate::ondisk::log_item::LogItemType::{Cud, Cui, Efd, Efi};
    use zerocopy::IntoBytes;
    let efi = |kind, id, start| {
        let item = FreeItem { kind, id, extents: vec![FreedExtent { start, len: 1 }] };
        vec![item.encode::<LittleEndian>(Width::Bits64).expect("one extent")]
    };
    let cui = |id| vec![RefcountItem { kind: Cui, id, extents: Vec::new() }.encode::<LittleEndian>().expect("few")];
    let cud = |id: u64| {
        let (type_, size) = (Cud.number().into(), 1.into());
        vec![RawDoneItem::<LittleEndian> { type_, size, pad: 0.into(), intent_id: id.into() }.as_bytes().to_vec()]
    };
    let mut ring = Ring::new(100, 2);
    let tail = ring.next_lsn();
    // the same id: for two types at once, twice in a row, and once more at the end
    ring.commit(1, &[efi(Efi, 7, 1), cui(7), efi(Efd, 7, 1), efi(Efi, 7, 2)], tail);
    ring.commit(2, &[efi(Efd, 7, 2), cud(7), cud(8), efi(Efi, 7, 3)], tail);
    ring.flush(tail);
    let mut intents = Intents::new();
    let mut answers = Vec::new();
    for (checkpoint, number) in read(&ring.area(), 0, ring.at).iter().zip(1..) {
        for item in checkpoint.items() {
            match intents.take(number, item) {
                IntentEvent::Answered(intent) => answers.push((intent.kind, intent.checkpoint, intent.index, number)),
                IntentEvent::Unmatched => assert_eq!((item.intent_id(), number), (Some(8), 2)),
                _ => {}
            }
        }
    }
    assert_eq!(answers, [(Efi, 1, 0, 1), (Efi, 1, 3, 2), (Cui, 1, 1, 2)]);
    let pending = intents.into_pending();
    assert_eq!(pending.len(), 1);
    let ItemBody::Free(free) = pending[0].item().decode().expect("sound") else { panic!("not an EFI") };
    assert_eq!((free.id, free.extents[0].start, pending[0].index), (7, 3, 3));
}
