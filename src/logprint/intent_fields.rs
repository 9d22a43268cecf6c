//! What intents say, by their fields.

use super::entry::{Fields, Value};
use super::request::Detail;
use crate::geometry::{FsBlock, Geometry};
use crate::journal::AttributeItem;
use crate::ondisk::OnDisk;
use crate::ondisk::attr_short::{ATTR_PARENT, ATTR_ROOT, ATTR_SECURE};
use crate::ondisk::log_attri::attri;
use crate::ondisk::log_intent::{
    FreeItem, FreedExtent, MapExtent, MapItem, PhysExtent, RefcountItem, bmap, refcount, rmap,
};
use crate::ondisk::log_item::LogItemType;
use crate::ondisk::log_xmi::{XmiLogFormat, exchange};
use crate::ondisk::parent::RawParentRec;
use crate::ondisk::rmap_record::owner;

/// A block, with group and block in it if it is of the data section and the geometry is known.
fn block(geometry: Option<&Geometry>, realtime: bool, block: u64) -> Value {
    let parts = geometry.filter(|_| !realtime).and_then(|geometry| geometry.fsb_parts(FsBlock(block)));
    Value::Block(block, parts.map(|(agno, agbno)| (agno.0, agbno.0)))
}

/// EFI and EFD.
pub(super) fn free(item: &FreeItem, geometry: Option<&Geometry>) -> Fields {
    let realtime = [LogItemType::EfiRt, LogItemType::EfdRt].contains(&item.kind);
    let extent = |extent: &FreedExtent| {
        Value::Group(vec![("start", block(geometry, realtime, extent.start)), ("len", Value::from(extent.len))])
    };
    vec![("id", Value::Hex(item.id)), ("extents", Value::List(item.extents.iter().map(extent).collect()))]
}

/// RUI and BUI.
pub(super) fn map(item: &MapItem, geometry: Option<&Geometry>) -> Fields {
    let extent = |extent: &MapExtent| match item.kind {
        LogItemType::Bui => mapping(extent, geometry),
        kind => reverse_mapping(extent, geometry, kind == LogItemType::RuiRt),
    };
    vec![("id", Value::Hex(item.id)), ("extents", Value::List(item.extents.iter().map(extent).collect()))]
}

fn reverse_mapping(extent: &MapExtent, geometry: Option<&Geometry>, realtime: bool) -> Value {
    let operation = match extent.flags & rmap::TYPE_MASK {
        rmap::MAP => Value::Word("map"),
        rmap::MAP_SHARED => Value::Word("map-shared"),
        rmap::UNMAP => Value::Word("unmap"),
        rmap::UNMAP_SHARED => Value::Word("unmap-shared"),
        rmap::CONVERT => Value::Word("convert"),
        rmap::CONVERT_SHARED => Value::Word("convert-shared"),
        rmap::ALLOC => Value::Word("alloc"),
        rmap::FREE => Value::Word("free"),
        _ => Value::Hex(u64::from(extent.flags)),
    };
    let flags = words(
        u64::from(extent.flags),
        &[
            (u64::from(rmap::ATTR_FORK), "attr-fork"),
            (u64::from(rmap::BMBT_BLOCK), "bmbt-block"),
            (u64::from(rmap::UNWRITTEN), "unwritten"),
        ],
    );
    Value::Group(extent_fields(extent, operation, flags, block(geometry, realtime, extent.startblock)))
}

fn mapping(extent: &MapExtent, geometry: Option<&Geometry>) -> Value {
    let operation = match extent.flags & bmap::TYPE_MASK {
        bmap::MAP => Value::Word("map"),
        bmap::UNMAP => Value::Word("unmap"),
        _ => Value::Hex(u64::from(extent.flags)),
    };
    let flags = words(
        u64::from(extent.flags),
        &[
            (u64::from(bmap::ATTR_FORK), "attr-fork"),
            (u64::from(bmap::UNWRITTEN), "unwritten"),
            (u64::from(bmap::REALTIME), "realtime"),
        ],
    );
    let realtime = extent.flags & bmap::REALTIME != 0;
    Value::Group(extent_fields(extent, operation, flags, block(geometry, realtime, extent.startblock)))
}

fn extent_fields(extent: &MapExtent, operation: Value, flags: Vec<&'static str>, startblock: Value) -> Fields {
    let mut fields = vec![
        ("operation", operation),
        ("owner", owner_value(extent.owner)),
        ("startblock", startblock),
        ("startoff", Value::from(extent.startoff)),
        ("len", Value::from(extent.len)),
    ];
    if !flags.is_empty() {
        fields.push(("flags", Value::Words(flags)));
    }
    fields
}

/// An inode number, or the name of another owner.
fn owner_value(number: u64) -> Value {
    Value::Word(match number {
        owner::NULL => "null",
        owner::UNKNOWN => "unknown",
        owner::FS => "fs",
        owner::LOG => "log",
        owner::AG => "ag",
        owner::INOBT => "inobt",
        owner::INODES => "inodes",
        owner::REFC => "refc",
        owner::COW => "cow",
        _ => return Value::Number(number),
    })
}

/// CUI.
pub(super) fn refcount(item: &RefcountItem, geometry: Option<&Geometry>) -> Fields {
    let realtime = item.kind == LogItemType::CuiRt;
    let extent = |extent: &PhysExtent| {
        let operation = match extent.flags & refcount::TYPE_MASK {
            refcount::INCREASE => Value::Word("increase"),
            refcount::DECREASE => Value::Word("decrease"),
            refcount::ALLOC_COW => Value::Word("alloc-cow"),
            refcount::FREE_COW => Value::Word("free-cow"),
            _ => Value::Hex(u64::from(extent.flags)),
        };
        let start = block(geometry, realtime, extent.startblock);
        Value::Group(vec![("operation", operation), ("startblock", start), ("len", Value::from(extent.len))])
    };
    vec![("id", Value::Hex(item.id)), ("extents", Value::List(item.extents.iter().map(extent).collect()))]
}

/// ATTRI.
pub(super) fn attribute(item: &AttributeItem<'_>, detail: Detail) -> Fields {
    let format = &item.format;
    let operation = match format.operation() {
        attri::SET => Value::Word("set"),
        attri::REMOVE => Value::Word("remove"),
        attri::REPLACE => Value::Word("replace"),
        attri::PPTR_SET => Value::Word("parent-set"),
        attri::PPTR_REMOVE => Value::Word("parent-remove"),
        attri::PPTR_REPLACE => Value::Word("parent-replace"),
        _ => Value::Hex(u64::from(format.op_flags)),
    };
    let namespace = words(
        u64::from(format.attr_filter),
        &[(u64::from(ATTR_ROOT), "root"), (u64::from(ATTR_SECURE), "secure"), (u64::from(ATTR_PARENT), "parent")],
    );
    let mut fields = vec![
        ("id", Value::Hex(format.id)),
        ("operation", operation),
        ("ino", Value::from(format.ino)),
        ("igen", Value::Hex(u64::from(format.igen))),
        ("namespace", Value::Words(namespace)),
        ("name", Value::Name(item.name.to_vec())),
    ];
    fields.extend(item.new_name.map(|name| ("new_name", Value::Name(name.to_vec()))));
    let is_parent = format.attr_filter & u32::from(ATTR_PARENT) != 0;
    let parts = [
        (item.value, "parent", "value", "value_bytes"),
        (item.new_value, "new_parent", "new_value", "new_value_bytes"),
    ];
    for (bytes, parent, value, count) in parts {
        let Some(bytes) = bytes else { continue };
        match RawParentRec::prefix(bytes) {
            Some((record, [])) if is_parent => {
                let record = vec![
                    ("ino", Value::from(record.ino.get())),
                    ("generation", Value::Hex(u64::from(record.generation.get()))),
                ];
                fields.push((parent, Value::Group(record)));
            }
            _ => {
                fields.push((count, Value::from(bytes.len())));
                if detail.bytes {
                    fields.push((value, Value::Bytes(bytes.to_vec())));
                }
            }
        }
    }
    fields
}

/// XMI.
pub(super) fn exchange(item: &XmiLogFormat) -> Fields {
    let flags = words(
        item.flags,
        &[
            (exchange::ATTR_FORK, "attr-fork"),
            (exchange::SET_SIZES, "set-sizes"),
            (exchange::INO1_WRITTEN, "ino1-written"),
            (exchange::CLEAR_INO1_REFLINK, "clear-ino1-reflink"),
            (exchange::CLEAR_INO2_REFLINK, "clear-ino2-reflink"),
        ],
    );
    let [inode1, inode2] = item.inodes.map(Value::from);
    let [igen1, igen2] = item.generations.map(|generation| Value::Hex(u64::from(generation)));
    let [startoff1, startoff2] = item.startoffs.map(Value::from);
    let [isize1, isize2] = item.isizes.map(Value::from);
    vec![
        ("id", Value::Hex(item.id)),
        ("inode1", inode1),
        ("igen1", igen1),
        ("startoff1", startoff1),
        ("inode2", inode2),
        ("igen2", igen2),
        ("startoff2", startoff2),
        ("blockcount", Value::from(item.blockcount)),
        ("flags", Value::Words(flags)),
        ("isize1", isize1),
        ("isize2", isize2),
    ]
}

/// The words of the bits that are set.
pub(super) fn words(bits: u64, names: &[(u64, &'static str)]) -> Vec<&'static str> {
    names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect()
}
