//! Items of every type, written by machines of both orders and widths, and decoded.

use super::*;
use crate::geometry::Lsn;
use crate::journal::model::Ring;
use crate::ondisk::log_attri::{RawAttriLogFormat, attri};
use crate::ondisk::log_buffer::{BufLogFormat, BufType, flag};
use crate::ondisk::log_inode::{InodeLogFormat, RawLogDinode, Width, field};
use crate::ondisk::log_intent::{
    FreeItem, FreedExtent, MapExtent, MapItem, PhysExtent, RawDoneItem, RefcountItem, rmap,
};
use crate::ondisk::log_item::{LogItemType, RawDquotLogFormat, RawIcreateLog, RawQuotaoffLogFormat};
use crate::ondisk::log_xmi::RawXmiLogFormat;
use crate::ondisk::{BigEndian, LittleEndian, RawDiskDquot};
use zerocopy::byteorder::{ByteOrder, U16};
use zerocopy::{FromZeros, IntoBytes};

/// The items' regions, as a machine of this order and width writes them.
fn items<O: ByteOrder>(width: Width) -> Vec<Vec<Vec<u8>>> {
    use LogItemType as T;
    let free = |kind| FreeItem { kind, id: 11, extents: vec![FreedExtent { start: 5, len: 6 }] };
    let map = |kind| {
        let extent = MapExtent { owner: 1, startblock: 2, startoff: 3, len: 4, flags: rmap::MAP };
        MapItem { kind, id: 12, extents: vec![extent; 2] }.encode::<O>().expect("two extents")
    };
    let refcount = |kind| {
        let extents = vec![PhysExtent { startblock: 2, len: 4, flags: 1 }];
        RefcountItem { kind, id: 13, extents }.encode::<O>().expect("one extent")
    };
    let done = |kind: T| {
        let (type_, intent_id) = (kind.number().into(), 14.into());
        vec![RawDoneItem::<O> { type_, size: 1.into(), pad: 0.into(), intent_id }.as_bytes().to_vec()]
    };
    let mut all = vec![buffer::<O>(), inode::<O>(width), attribute::<O>(), dquot::<O>()];
    for kind in [T::Efi, T::Efd, T::EfiRt, T::EfdRt] {
        all.push(vec![free(kind).encode::<O>(width).expect("one extent")]);
    }
    all.extend([T::Rui, T::RuiRt, T::Bui].map(|kind| vec![map(kind)]));
    all.extend([T::Cui, T::CuiRt].map(|kind| vec![refcount(kind)]));
    all.extend([T::Rud, T::RudRt, T::Cud, T::CudRt, T::Bud, T::Attrd, T::Xmd].map(done));
    let mut exchange = RawXmiLogFormat::<O>::new_zeroed();
    (exchange.type_, exchange.size, exchange.id) = (T::Xmi.number().into(), 1.into(), 15.into());
    all.push(vec![exchange.as_bytes().to_vec()]);
    let mut quotaoff = RawQuotaoffLogFormat::<O>::new_zeroed();
    (quotaoff.type_, quotaoff.size, quotaoff.flags) = (T::Quotaoff.number().into(), 1.into(), 8.into());
    all.push(vec![quotaoff.as_bytes().to_vec()]);
    let mut icreate = RawIcreateLog::<O>::new_zeroed();
    (icreate.type_, icreate.size, icreate.count) = (T::Icreate.number().into(), 1.into(), 64.into());
    all.push(vec![icreate.as_bytes().to_vec()]);
    all
}

/// Chunks 1, 2 and 5, of which the first two are in regions of their own.
fn buffer<O: ByteOrder>() -> Vec<Vec<u8>> {
    let map = vec![0b10_0110];
    let format = BufLogFormat { size: 4, flags: 0, kind: Some(BufType::Agi), len: 8, blkno: 99, map };
    let head = format.encode::<O>().expect("a short map");
    vec![head, vec![1; 128], vec![2; 128], vec![5; 128]]
}

fn inode<O: ByteOrder>(width: Width) -> Vec<Vec<u8>> {
    let fields = field::CORE | field::DDATA | field::AEXT;
    let format =
        InodeLogFormat { size: 4, fields, asize: 16, dsize: 5, ino: 77, rdev: 0, blkno: 64, len: 16, boffset: 512 };
    let mut core = RawLogDinode::<O>::new_zeroed();
    (core.version, core.size, core.uid) = (3, 1234.into(), 1000.into());
    vec![format.encode::<O>(width), core.as_bytes().to_vec(), b"local\0\0\0".to_vec(), vec![9; 16]]
}

fn attribute<O: ByteOrder>() -> Vec<Vec<u8>> {
    let mut format = RawAttriLogFormat::<O>::new_zeroed();
    (format.type_, format.size, format.id) = (LogItemType::Attri.number().into(), 5.into(), 16.into());
    (format.op_flags, format.value_len) = (attri::PPTR_REPLACE.into(), 12.into());
    let ([a, b], [c, d]) = (U16::<O>::new(3).to_bytes(), U16::<O>::new(5).to_bytes());
    format.name_len = [a, b, c, d];
    let regions: [&[u8]; 4] = [b"old\0", b"newer\0\0\0", &[1; 12], &[2; 12]];
    [format.as_bytes()].into_iter().chain(regions).map(<[u8]>::to_vec).collect()
}

fn dquot<O: ByteOrder>() -> Vec<Vec<u8>> {
    let mut format = RawDquotLogFormat::<O>::new_zeroed();
    (format.type_, format.size, format.id) = (LogItemType::Dquot.number().into(), 2.into(), 1000.into());
    let mut dquot = RawDiskDquot::new_zeroed();
    dquot.icount = 3.into();
    vec![format.as_bytes().to_vec(), dquot.as_bytes().to_vec()]
}

fn check(body: &ItemBody<'_>, width: Width) {
    match body {
        ItemBody::Buffer(item) => {
            let runs: Vec<_> = item.runs.iter().map(|run| (run.offset, run.bytes.len(), run.bytes[0])).collect();
            assert_eq!(runs, [(128, 128, 1), (256, 128, 2), (640, 128, 5)]);
            assert_eq!((item.format.kind, item.len(), item.is_cancel()), (Some(BufType::Agi), 4096, false));
            assert_eq!((item.bytes_at(700, 4), item.bytes_at(766, 4)), (Some(&[5; 4][..]), None));
        }
        ItemBody::Inode(item) => {
            assert_eq!((item.width, item.format.ino, item.core.core.size.get()), (width, 77, 1234));
            assert_eq!((item.core.core.uid.get(), item.data), (1000, Some(&b"local"[..])));
            assert_eq!(item.attributes, Some(&[9; 16][..]));
        }
        ItemBody::Attribute(item) => {
            assert_eq!((item.name, item.new_name), (&b"old"[..], Some(&b"newer"[..])));
            assert_eq!((item.value, item.new_value), (Some(&[1; 12][..]), Some(&[2; 12][..])));
        }
        ItemBody::Dquot(item) => assert_eq!((item.format.id, item.dquot.icount.get()), (1000, 3)),
        ItemBody::Free(item) => assert_eq!((item.id, item.extents[0]), (11, FreedExtent { start: 5, len: 6 })),
        ItemBody::Map(item) => assert_eq!((item.id, item.extents.len(), item.extents[1].startoff), (12, 2, 3)),
        ItemBody::Refcount(item) => assert_eq!((item.id, item.extents[0].len), (13, 4)),
        ItemBody::Done { id, .. } => assert_eq!(*id, 14),
        ItemBody::Exchange(item) => assert_eq!(item.id, 15),
        ItemBody::Quotaoff(flags) => assert_eq!(*flags, 8),
        ItemBody::Icreate(item) => assert_eq!(item.count.get(), 64),
    }
}

#[test]
fn items_of_every_type_are_decoded() {
    for (order, width) in [Order::Little, Order::Big]
        .into_iter()
        .flat_map(|order| [Width::Bits32, Width::Bits64].map(|width| (order, width)))
    {
        let mut ring = Ring::new(100, 2);
        ring.order = order;
        let written = match order {
            Order::Little => items::<LittleEndian>(width),
            Order::Big => items::<BigEndian>(width),
        };
        ring.commit(1, &written, Lsn::new(1, 0));
        ring.flush(Lsn::new(1, 0));
        let area = ring.area();
        let mut kinds = std::collections::BTreeSet::new();
        for step in Checkpoints::new(&area, Records::between(&area, 0, ring.at)) {
            let Step::Checkpoint(checkpoint) = step else { continue };
            for item in checkpoint.items() {
                let body = item.decode().unwrap_or_else(|check| panic!("{:?}: {check}", item.kind()));
                check(&body, width);
                kinds.insert(item.kind().expect("a known type"));
            }
        }
        // all but the one that nobody writes
        assert_eq!(kinds.len(), LogItemType::ALL.len() - 1, "{order:?} {width:?}");
    }
}

#[test]
fn items_that_contradict_themselves_are_refused() {
    let mut cancel = buffer::<LittleEndian>();
    cancel[0][4] |= u8::try_from(flag::CANCEL).expect("a low bit");
    let mut short = buffer::<LittleEndian>();
    short.pop();
    short[0][2] -= 1;
    let mut outside = buffer::<LittleEndian>();
    // a buffer of one block has four chunks
    outside[0][6] = 1;
    let mut name = attribute::<LittleEndian>();
    name[1].truncate(2);
    let mut core = inode::<LittleEndian>(Width::Bits64);
    core[1].truncate(100);
    let unknown = vec![vec![0x39, 0x12, 1, 0]];
    let reserved = vec![vec![0x38, 0x12, 1, 0]];
    for (regions, expected) in [
        (cancel, None),
        (short, Some("buf_log_format.data_map: contradicts another field")),
        (outside, Some("buf_log_format.data_map: out of range")),
        (name, Some("attri_log_format.name_len: cut short")),
        (core, Some("log_dinode.version: cut short")),
        (unknown, Some("log_item.type: wrong magic number")),
        (reserved, Some("log_item.type: out of range")),
    ] {
        let mut ring = Ring::new(100, 2);
        ring.commit(1, std::slice::from_ref(&regions), Lsn::new(1, 0));
        ring.flush(Lsn::new(1, 0));
        let area = ring.area();
        let mut steps = Checkpoints::new(&area, Records::between(&area, 0, ring.at));
        let found = steps.find_map(|step| if let Step::Checkpoint(found) = step { Some(found) } else { None });
        let found = found.expect("it is committed");
        let problem = found.item(0).expect("one item").decode().err().map(|check| check.to_string());
        assert_eq!(problem.as_deref(), expected, "{regions:?}");
    }
}
