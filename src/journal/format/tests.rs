#![allow(clippy::cast_possible_truncation)] // test inodes are small

use std::mem::offset_of;

use proptest::collection::vec;
use proptest::prelude::*;
use zerocopy::{FromZeros, IntoBytes};

use super::*;
use crate::buffer::Fragment;
use crate::geometry::{Daddr, Geometry, Ino, Lsn, samples};
use crate::journal::model::Ring;
use crate::journal::{
    AttributeItem, Checkpoint, Checkpoints, ItemBody, ItemSize, Order, Records, Regions, Step, WriterLayout,
};
use crate::ondisk::dinode::{flags2, format};
use crate::ondisk::log_attri::{AttriLogFormat, attri};
use crate::ondisk::log_buffer::{BufType, CHUNK, flag};
use crate::ondisk::log_inode::{RawLogDinode, field};
use crate::ondisk::log_intent::{FreeItem, FreedExtent, MapExtent, MapItem, PhysExtent, RefcountItem};
use crate::ondisk::log_item::{DquotLogFormat, LogItemType, RawIcreateLog};
use crate::ondisk::log_xmi::XmiLogFormat;
use crate::ondisk::{BigEndian, OnDisk, RawBmdrRoot, RawDinode, RawDiskDquot};

const LAYOUTS: [WriterLayout; 3] = [WriterLayout::USUAL, WriterLayout::BIG_ENDIAN, WriterLayout::I386];

/// The items read from a log that they were written to.
fn read_back(layout: WriterLayout, items: &[Vec<Vec<u8>>]) -> Checkpoint {
    let mut ring = Ring::new(1024, 2);
    ring.order = layout.order;
    ring.commit(1, items, Lsn::new(1, 0));
    ring.flush(Lsn::new(1, 0));
    let area = ring.area();
    let found = Checkpoints::new(&area, Records::between(&area, 0, ring.at)).find_map(|step| match step {
        Step::Checkpoint(checkpoint) => Some(*checkpoint),
        _ => None,
    });
    found.expect("a checkpoint")
}

fn contents(regions: &Regions) -> Vec<Vec<u8>> {
    (0..regions.len()).filter_map(|index| regions.contents(index)).map(<[u8]>::to_vec).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The runs of a buffer come back in the items of its fragments, at the places that they had.
    #[test]
    fn buffers_come_back(
        fragments in vec(1..=16u32, 1..4), chosen in vec(any::<bool>(), 0..64), layout in 0..3usize, cancel: bool,
    ) {
        let layout = LAYOUTS[layout];
        let places = || fragments.iter().zip(1..).map(|(blocks, n)| Fragment { daddr: Daddr(n * 1000), len: blocks * 512 });
        let fragments: Vec<Fragment> = places().collect();
        let len: usize = fragments.iter().map(|fragment| fragment.len as usize).sum();
        let bytes: Vec<u8> = (0..len).map(|at| (at / CHUNK + at) as u8).collect();
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (chunk, _) in (0..len / CHUNK).zip(chosen).filter(|(_, chosen)| *chosen) {
            match runs.last_mut() {
                Some((start, count)) if *start + *count == chunk => *count += 1,
                _ => runs.push((chunk, 1)),
            }
        }
        let flags = if cancel { flag::CANCEL } else { 0 };
        let change = BufferChange { fragments: &fragments, kind: BufType::DirBlock, flags, runs: &runs };
        let mut regions = Regions::new(layout);
        change.format(&bytes, &mut regions).expect("sound");
        prop_assert_eq!(regions.size(), change.size());
        if regions.is_empty() {
            return Ok(());
        }
        // the regions of all fragments make several items
        let checkpoint = read_back(layout, &[contents(&regions)]);
        let mut logged = Vec::new();
        for item in checkpoint.items() {
            let ItemBody::Buffer(buffer) = item.decode().expect("sound") else { panic!("not a buffer") };
            let index = fragments.iter().position(|place| place.daddr.0 == buffer.format.blkno).expect("a fragment");
            let before: usize = fragments[..index].iter().map(|place| place.len as usize).sum();
            prop_assert_eq!(buffer.len(), fragments[index].len as usize);
            prop_assert_eq!((buffer.format.kind, buffer.is_cancel()), (Some(BufType::DirBlock), cancel));
            for run in buffer.runs {
                prop_assert_eq!(run.bytes, &bytes[before + run.offset..][..run.bytes.len()]);
                logged.extend((before + run.offset) / CHUNK..(before + run.offset + run.bytes.len()) / CHUNK);
            }
        }
        let expected: Vec<usize> = runs.iter().flat_map(|(start, count)| *start..start + count).collect();
        prop_assert_eq!(logged, if cancel { Vec::new() } else { expected });
        prop_assert!(!cancel || checkpoint.items().len() == fragments.len());
    }

    /// The core on disk is what the reader makes of the log's, whoever writes.
    #[test]
    fn cores_come_back(bytes in vec(any::<u8>(), RawDinode::SIZE), version in 2..=3u8, layout in 0..3usize) {
        let layout = LAYOUTS[layout];
        let mut disk = *RawDinode::prefix(&bytes).expect("enough bytes").0;
        disk.core.version = version;
        (disk.core.forkoff, disk.core.format) = (0, format::EXTENTS);
        if version == 2 {
            disk.core.set_flushiter(disk.core.flushiter());
        }
        let mut whole = disk.as_bytes().to_vec();
        whole.resize(512, 0);
        let change = InodeChange {
            ino: Ino(131), daddr: Daddr(64), cluster_len: 16_384, offset: 1536, bytes: &whole, fields: field::CORE | field::DDATA,
        };
        let geometry = Geometry::assume(&samples::superblock("default"));
        let mut regions = Regions::new(layout);
        change.format(&geometry, &mut regions).expect("sound");
        prop_assert_eq!(regions.size(), change.size(&geometry, layout.width).expect("sound"));
        let checkpoint = read_back(layout, &[contents(&regions)]);
        let item = checkpoint.item(0).expect("an item");
        let ItemBody::Inode(inode) = item.decode().expect("sound") else { panic!("not an inode") };
        prop_assert_eq!((inode.width, inode.format.fields, inode.format.size), (layout.width, field::CORE, 2));
        prop_assert_eq!((inode.format.ino, inode.format.blkno, inode.format.len, inode.format.boffset), (131, 64, 32, 1536));
        let (mut expected, end) = (disk, if version == 2 { 96 } else { RawDinode::SIZE });
        expected.core.next_unlinked = u32::MAX.into();
        expected.crc = 0.into();
        if version == 2 {
            prop_assert_eq!(&inode.core.as_bytes()[..end], &expected.as_bytes()[..end]);
        } else {
            prop_assert_eq!(*inode.core, expected);
        }
    }
}

/// An inode of 512 bytes with forks of these forms.
fn inode(data: (u8, &[u8]), attributes: Option<(u8, &[u8])>) -> Vec<u8> {
    let mut disk = RawDinode::new_zeroed();
    disk.core.magic = RawDinode::MAGIC.into();
    (disk.core.version, disk.flags2) = (3, flags2::NREXT64.into());
    (disk.core.format, disk.core.size) = (data.0, (data.1.len() as u64).into());
    let forkoff = attributes.map_or(0, |_| 168);
    (disk.core.forkoff, disk.core.aformat) = (forkoff / 8, attributes.map_or(2, |(form, _)| i8::from_ne_bytes([form])));
    let extents = |fork: Option<(u8, &[u8])>| match fork {
        Some((format::EXTENTS, bytes)) => bytes.len() as u64 / 16,
        _ => 0,
    };
    disk.set_extents(extents(Some(data)), extents(attributes) as u32).expect("few");
    let mut bytes = disk.as_bytes().to_vec();
    bytes.resize(512, 0xaa);
    bytes[176..176 + data.1.len()].copy_from_slice(data.1);
    if let Some((_, fork)) = attributes {
        bytes[176 + usize::from(forkoff)..][..fork.len()].copy_from_slice(fork);
    }
    bytes
}

/// Parts, data fork, attribute fork and device number of what is logged of an inode when these parts changed.
fn logged(bytes: &[u8], fields: u32) -> (u32, Option<Vec<u8>>, Option<Vec<u8>>, u32) {
    let geometry = Geometry::assume(&samples::superblock("default"));
    let mut regions = Regions::new(WriterLayout::USUAL);
    let change = InodeChange { ino: Ino(131), daddr: Daddr(64), cluster_len: 16_384, offset: 0, bytes, fields };
    change.format(&geometry, &mut regions).expect("sound");
    assert_eq!(regions.size(), change.size(&geometry, WriterLayout::USUAL.width).expect("sound"));
    let checkpoint = read_back(WriterLayout::USUAL, &[contents(&regions)]);
    let item = checkpoint.item(0).expect("an item");
    let ItemBody::Inode(inode) = item.decode().expect("sound") else { panic!("not an inode") };
    let fork = |fork: Option<&[u8]>| fork.map(<[u8]>::to_vec);
    (inode.format.fields, fork(inode.data), fork(inode.attributes), inode.format.rdev)
}

#[test]
fn forks_are_logged_in_the_form_that_they_have() {
    use field::{ADATA, AEXT, CORE, DBROOT, DDATA, DEV, DEXT, DOWNER};
    let all = DDATA | DEXT | DEV | ADATA | AEXT;
    let (local, list) = (&b"target"[..], &[7; 48][..]);
    // a header of 4 bytes in 9, an attribute name
    let short = &[0, 9, 1, 0, 1, 1, 0, b'a', b'b'][..];
    let with = |parts: u32| CORE | parts;
    let some = |bytes: &[u8]| Some(bytes.to_vec());
    let attributes = Some((format::LOCAL, short));
    let symlink = inode((format::LOCAL, local), attributes);
    assert_eq!(logged(&symlink, all), (with(DDATA | ADATA), some(local), some(short), 0));
    assert_eq!(logged(&symlink, DDATA), (with(DDATA), some(local), None, 0));
    assert_eq!(logged(&symlink, DEXT | AEXT), (CORE, None, None, 0));
    assert_eq!(logged(&symlink, DOWNER), (with(DOWNER), None, None, 0));
    let file = inode((format::EXTENTS, list), Some((format::EXTENTS, &list[..16])));
    assert_eq!(logged(&file, all), (with(DEXT | AEXT), some(list), some(&list[..16]), 0));
    assert_eq!(logged(&inode((format::EXTENTS, &[]), None), all), (CORE, None, None, 0));
    let device = inode((format::DEV, &[0, 0, 1, 3]), attributes);
    assert_eq!(logged(&device, all), (with(DEV | ADATA), None, some(short), 0x103));
    // a root with two keys: level, count, keys, room for the keys of 168 bytes, pointers
    let mut root = vec![0; 168];
    root[..4].copy_from_slice(&[0, 1, 0, 2]);
    root[4..20].copy_from_slice(&[1; 16]);
    let pointers = RawBmdrRoot::SIZE + (168 - RawBmdrRoot::SIZE) / 16 * 8;
    root[pointers..pointers + 16].copy_from_slice(&[2; 16]);
    let (fields, data, ..) = logged(&inode((format::BTREE, &root), attributes), DBROOT);
    let data = data.expect("a root");
    assert_eq!((fields, data.len()), (with(DBROOT), 72 + 32));
    let uuid = Geometry::assume(&samples::superblock("default")).meta_uuid;
    let header = [&b"BMA3\0\x01\0\x02"[..], &[0xff; 24], &[0; 8], &uuid, &[0, 0, 0, 0, 0, 0, 0, 131], &[0; 8]].concat();
    assert_eq!(data, [&header[..], &[1; 16], &[2; 16]].concat());
}

#[test]
fn unsound_inodes_are_refused() {
    let geometry = Geometry::assume(&samples::superblock("default"));
    let refused = |bytes: &[u8]| {
        let fields = field::DDATA | field::DEXT | field::DBROOT | field::ADATA | field::AEXT;
        let change = InodeChange { ino: Ino(131), daddr: Daddr(64), cluster_len: 16_384, offset: 0, bytes, fields };
        change.format(&geometry, &mut Regions::new(WriterLayout::USUAL)).is_err()
    };
    let sound = inode((format::EXTENTS, &[7; 48]), None);
    assert!(!refused(&sound) && refused(&sound[..100]) && refused(&sound[..50]) && refused(&sound[..200]));
    let mut bytes = sound.clone();
    bytes[offset_of!(RawDinode, core) + 82] = 200;
    assert!(refused(&bytes));
    let mut root = sound;
    (root[5], root[176], root[178], root[179]) = (format::BTREE, 0, 1, 0);
    assert!(refused(&root));
}

#[test]
fn small_items_come_back() {
    for layout in LAYOUTS {
        let format = DquotLogFormat { id: 1000, blkno: 88, len: 1, boffset: 272 };
        let mut dquot = RawDiskDquot::new_zeroed();
        dquot.id = 1000.into();
        let mut regions = Regions::new(layout);
        format_dquot(&format, &dquot, &mut regions);
        assert_eq!(regions.size(), DQUOT_SIZE);
        let icreate = RawIcreateLog::<BigEndian> {
            type_: 0.into(),
            size: 0.into(),
            ag: 1.into(),
            agbno: 40.into(),
            count: 64.into(),
            isize: 512.into(),
            length: 8.into(),
            generation: 77.into(),
        };
        let checkpoint = read_back(layout, &[contents(&regions), vec![format_icreate(&icreate, layout)]]);
        let bodies: Vec<ItemBody<'_>> = checkpoint.items().map(|item| item.decode().expect("sound")).collect();
        let [ItemBody::Dquot(found), ItemBody::Icreate(new)] = &bodies[..] else { panic!("{bodies:?}") };
        assert_eq!((found.format, found.dquot), (format, &dquot));
        assert_eq!((new.ag, new.agbno, new.count, new.generation), (1.into(), 40.into(), 64.into(), 77.into()));
    }
}

fn attribute<'a>(op: u32, name: &'a [u8], value: Option<&'a [u8]>) -> AttributeItem<'a> {
    let format = AttriLogFormat {
        size: 0,
        igen: 5,
        id: 6,
        ino: 131,
        op_flags: op,
        name_len: 0,
        new_name_len: None,
        value_len: 0,
        attr_filter: 2,
    };
    AttributeItem { format, name, new_name: None, value, new_value: None }
}

fn intents() -> Vec<(IntentBody<'static>, usize)> {
    let (id, list) = (6, vec![FreedExtent { start: 5, len: 3 }, FreedExtent { start: 90, len: 1 }]);
    let mapping = MapExtent { owner: 131, startblock: 5, startoff: 0, len: 3, flags: 1 };
    let renamed = AttributeItem {
        new_name: Some(b"newer"),
        new_value: Some(&[9; 12]),
        ..attribute(attri::PPTR_REPLACE, b"old", Some(&[8; 12]))
    };
    let exchange = XmiLogFormat {
        id,
        inodes: [131, 132],
        generations: [1, 2],
        startoffs: [0, 4],
        blockcount: 9,
        flags: 2,
        isizes: [100, 200],
    };
    vec![
        (IntentBody::Free(FreeItem { kind: LogItemType::EfiRt, id, extents: list }), 1),
        (IntentBody::Map(MapItem { kind: LogItemType::Bui, id, extents: vec![mapping] }), 1),
        (IntentBody::Map(MapItem { kind: LogItemType::Rui, id, extents: vec![mapping; 16] }), 1),
        (
            IntentBody::Refcount(RefcountItem {
                kind: LogItemType::Cui,
                id,
                extents: vec![PhysExtent { startblock: 5, len: 3, flags: 1 }],
            }),
            1,
        ),
        (IntentBody::Exchange(exchange), 1),
        (IntentBody::Attribute(attribute(attri::SET, b"name", Some(&[1; 65_535]))), 3),
        (IntentBody::Attribute(attribute(attri::SET, b"name", Some(b""))), 2),
        (IntentBody::Attribute(attribute(attri::REMOVE, b"name", None)), 2),
        (IntentBody::Attribute(renamed), 5),
    ]
}

#[test]
fn intents_and_their_answers_come_back() {
    for layout in LAYOUTS {
        for (body, regions) in intents() {
            let intent = body.format(layout).expect("it fits");
            let done = DoneBody::of(&body).format(layout).expect("it fits");
            assert_eq!((intent.kind, intent.id, intent.regions.len()), (body.kind(), 6, regions));
            assert_eq!((Some(done.kind), done.intent_id), (intent.kind.done(), 6));
            let checkpoint = read_back(layout, &[intent.regions, done.regions]);
            let items: Vec<_> = checkpoint.items().collect();
            assert_eq!((items[0].kind(), items[0].intent_id()), (Some(body.kind()), Some(6)));
            assert_eq!((items[1].kind(), items[1].intent_id()), (body.kind().done(), Some(6)));
            match (body, items[0].decode().expect("sound")) {
                (IntentBody::Free(item), ItemBody::Free(found)) => {
                    let ItemBody::Free(done) = items[1].decode().expect("sound") else { panic!("not an EFD") };
                    assert_eq!(done.extents, item.extents);
                    assert_eq!(found, item);
                }
                (IntentBody::Map(item), ItemBody::Map(found)) => assert_eq!(found, item),
                (IntentBody::Refcount(item), ItemBody::Refcount(found)) => assert_eq!(found, item),
                (IntentBody::Exchange(item), ItemBody::Exchange(found)) => assert_eq!(found, item),
                (IntentBody::Attribute(item), ItemBody::Attribute(found)) => {
                    assert_eq!((found.name, found.new_name), (item.name, item.new_name));
                    assert_eq!(found.value.unwrap_or_default(), item.value.unwrap_or_default());
                    assert_eq!((found.new_value, found.format.ino, found.format.igen), (item.new_value, 131, 5));
                    assert_eq!(found.format.attr_filter, 2);
                }
                (body, found) => panic!("{found:?} of {body:?}"),
            }
        }
    }
}

#[test]
fn names_that_are_too_long_are_refused() {
    let long = vec![b'x'; 70_000];
    let item = AttributeItem { new_name: Some(&long), ..attribute(attri::PPTR_REPLACE, b"old", Some(&[8; 12])) };
    assert!(IntentBody::Attribute(item).format(WriterLayout::USUAL).is_err());
    let order = WriterLayout::BIG_ENDIAN.order;
    assert_eq!((order, size_of::<RawLogDinode<BigEndian>>()), (Order::Big, 176));
    assert_eq!(ItemSize::of(&[[0; 5]]).log_bytes(), 20);
}
