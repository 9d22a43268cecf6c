//! What an inode item changes: the core by its fields, and the forks.

use super::buffer_contents::core_fields;
use super::entry::{Entry, Fields, Value};
use super::heading::Heading;
use super::request::Detail;
use crate::journal::InodeItem;
use crate::ondisk::log_inode::field;
use crate::ondisk::{OnDisk, RawDinode, RawExtent};

/// Core and forks of an inode.
pub(super) fn contents(item: &InodeItem<'_>, detail: Detail) -> Vec<Entry> {
    let mut entries = vec![entry("core", with_times(core_fields(&item.core), &item.core))];
    let fields = item.format.fields;
    for (name, bytes, local, extents) in
        [("data", item.data, field::DDATA, field::DEXT), ("attributes", item.attributes, field::ADATA, field::AEXT)]
    {
        let Some(bytes) = bytes else { continue };
        let mut fork = match fields {
            bits if bits & extents != 0 => vec![("form", Value::Word("extents")), ("extents", extent_list(bytes))],
            bits if bits & local != 0 => vec![("form", Value::Word("local")), ("bytes", Value::from(bytes.len()))],
            _ => vec![("form", Value::Word("btree root")), ("bytes", Value::from(bytes.len()))],
        };
        if detail.bytes {
            fork.push(("contents", Value::Bytes(bytes.to_vec())));
        }
        entries.push(entry(name, fork));
    }
    entries
}

fn entry(name: &'static str, fields: Fields) -> Entry {
    Entry::new("contents", Heading::Structure(name), fields)
}

/// The same fields with points in time as such, and with the extent counters that count.
fn with_times(mut fields: Fields, core: &RawDinode) -> Fields {
    let time = |raw| {
        let time = core.timestamp(raw);
        Value::Time(time.seconds, time.nanoseconds)
    };
    fields.retain(|(name, _)| *name != "next_unlinked");
    for (name, value) in &mut fields {
        match *name {
            "atime" => *value = time(core.core.atime),
            "mtime" => *value = time(core.core.mtime),
            "ctime" => *value = time(core.core.ctime),
            "crtime" => *value = time(core.crtime),
            "mode" => *value = Value::Mode(core.core.mode.get()),
            "flags" | "flags2" | "generation" => {
                if let Value::Number(number) = *value {
                    *value = Value::Hex(number);
                }
            }
            "aformat" => *value = Value::Signed(i64::from(core.core.aformat)),
            _ => {}
        }
    }
    fields.push(("data_extents", Value::from(core.data_extents())));
    fields.push(("attribute_extents", Value::from(core.attr_extents())));
    fields
}

/// The extents of a fork.
fn extent_list(bytes: &[u8]) -> Value {
    let (extents, _) = RawExtent::prefix_slice(bytes, bytes.len() / RawExtent::SIZE).unwrap_or_default();
    let group = |raw: &RawExtent| {
        let extent = raw.decode();
        let mut fields = vec![
            ("startoff", Value::from(extent.startoff)),
            ("startblock", Value::from(extent.startblock)),
            ("blockcount", Value::from(extent.blockcount)),
        ];
        if extent.unwritten {
            fields.push(("unwritten", Value::Bool(true)));
        }
        Value::Group(fields)
    };
    Value::List(extents.iter().map(group).collect())
}
