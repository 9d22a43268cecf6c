//! What an item says, by its fields.

use super::entry::{Entry, Fields, Value};
use super::heading::Heading;
use super::intent_fields::{attribute, exchange, free, map, refcount, words};
use super::request::Detail;
use super::{buffer_contents, inode_contents};
use crate::geometry::{Daddr, Geometry};
use crate::journal::{BufferItem, DquotItem, InodeItem, ItemBody, LogItem};
use crate::ondisk::dquot::dqtype;
use crate::ondisk::feature_bits::qflags;
use crate::ondisk::log_buffer::{BufType, flag};
use crate::ondisk::log_inode::{Width, field};
use crate::ondisk::log_item::RawIcreateLog;
use crate::ondisk::{BigEndian, OnDisk, RawDiskDquot};

/// What an item says. One that cannot be decoded has a field `problem`.
pub(super) fn item_entry(item: LogItem<'_>, geometry: Option<&Geometry>, detail: Detail) -> Entry {
    let regions = item.all_regions().map(<[u8]>::len).collect();
    let heading = Heading::Item { kind: item.kind().map(|kind| kind.name()), number: item.number(), regions };
    let (fields, contents) = match item.decode() {
        Ok(body) => body_fields(&body, geometry, detail),
        Err(problem) => {
            let bytes = item.all_regions().filter(|_| detail.bytes).enumerate();
            let regions = bytes.map(|(index, region)| bytes_entry("region", index, region));
            (vec![("problem", Value::Text(problem.to_string()))], regions.collect())
        }
    };
    let entry = Entry::new("item", heading, fields);
    if contents.is_empty() { entry } else { entry.with("contents", contents) }
}

/// Bytes with a number that says which.
fn bytes_entry(what: &'static str, at: usize, bytes: &[u8]) -> Entry {
    let entry = Entry::new("bytes", format!("{what} {at}:"), vec![("bytes", Value::Bytes(bytes.to_vec()))]);
    entry.named(vec![("at", Value::from(at))])
}

/// The fields of an item, and what it holds as far as that is asked for.
fn body_fields(body: &ItemBody<'_>, geometry: Option<&Geometry>, detail: Detail) -> (Fields, Vec<Entry>) {
    let fields = match body {
        ItemBody::Buffer(item) => return buffer(item, geometry, detail),
        ItemBody::Inode(item) => {
            let contents = if detail.inodes { inode_contents::contents(item, detail) } else { Vec::new() };
            return (inode(item), contents);
        }
        ItemBody::Dquot(item) => return dquot(item, detail),
        ItemBody::Quotaoff(flags) => vec![("quotas", Value::Words(quotas(*flags)))],
        ItemBody::Icreate(item) => icreate(item),
        ItemBody::Free(item) => free(item, geometry),
        ItemBody::Map(item) => map(item, geometry),
        ItemBody::Refcount(item) => refcount(item, geometry),
        ItemBody::Attribute(item) => attribute(item, detail),
        ItemBody::Exchange(item) => exchange(item),
        ItemBody::Done { id, .. } => vec![("id", Value::Hex(*id))],
    };
    (fields, Vec::new())
}

/// The name of what a buffer holds.
pub(super) fn buffer_word(kind: Option<BufType>) -> &'static str {
    match kind {
        None => "?",
        Some(BufType::Unknown) => "unknown",
        Some(BufType::Udquot) => "user-dquots",
        Some(BufType::Pdquot) => "project-dquots",
        Some(BufType::Gdquot) => "group-dquots",
        Some(BufType::Btree) => "btree",
        Some(BufType::Agf) => "agf",
        Some(BufType::Agfl) => "agfl",
        Some(BufType::Agi) => "agi",
        Some(BufType::Dino) => "inodes",
        Some(BufType::Symlink) => "symlink",
        Some(BufType::DirBlock) => "dir-block",
        Some(BufType::DirData) => "dir-data",
        Some(BufType::DirFree) => "dir-free",
        Some(BufType::DirLeaf1) => "dir-leaf1",
        Some(BufType::DirLeafN) => "dir-leafn",
        Some(BufType::DaNode) => "da-node",
        Some(BufType::AttrLeaf) => "attr-leaf",
        Some(BufType::AttrRmt) => "attr-remote",
        Some(BufType::Sb) => "superblock",
        Some(BufType::RtBitmap) => "rtbitmap",
        Some(BufType::RtSummary) => "rtsummary",
    }
}

fn buffer(item: &BufferItem<'_>, geometry: Option<&Geometry>, detail: Detail) -> (Fields, Vec<Entry>) {
    let format = &item.format;
    let flags = words(
        u64::from(format.flags),
        &[
            (u64::from(flag::INODE_BUF), "inode-buf"),
            (u64::from(flag::CANCEL), "cancel"),
            (u64::from(flag::UDQUOT_BUF), "user-dquots"),
            (u64::from(flag::PDQUOT_BUF), "project-dquots"),
            (u64::from(flag::GDQUOT_BUF), "group-dquots"),
        ],
    );
    let mut fields = vec![("holds", Value::Word(buffer_word(format.kind)))];
    if !flags.is_empty() {
        fields.push(("flags", Value::Words(flags)));
    }
    fields.extend([("daddr", Value::from(format.blkno)), ("len", Value::from(format.len))]);
    if let Some((agno, _)) = geometry.and_then(|geometry| geometry.daddr_parts(Daddr(format.blkno))) {
        fields.push(("group", Value::from(agno.0)));
    }
    let runs = item.runs.iter().map(|run| Value::Range(run.offset, run.bytes.len())).collect();
    fields.push(("changed", Value::List(runs)));
    let inode_size = geometry.and_then(|geometry| usize::try_from(geometry.inodes.size).ok());
    let mut contents = if detail.buffers { buffer_contents::contents(item, inode_size) } else { Vec::new() };
    if detail.bytes {
        contents.extend(item.runs.iter().map(|run| bytes_entry("bytes at", run.offset, run.bytes)));
    }
    (fields, contents)
}

fn inode(item: &InodeItem<'_>) -> Fields {
    let format = &item.format;
    let parts = words(
        u64::from(format.fields),
        &[
            (u64::from(field::CORE), "core"),
            (u64::from(field::DDATA), "data-local"),
            (u64::from(field::DEXT), "data-extents"),
            (u64::from(field::DBROOT), "data-btree"),
            (u64::from(field::DEV), "device"),
            (u64::from(field::UUID), "uuid"),
            (u64::from(field::ADATA), "attr-local"),
            (u64::from(field::AEXT), "attr-extents"),
            (u64::from(field::ABROOT), "attr-btree"),
            (u64::from(field::DOWNER), "data-owner"),
            (u64::from(field::AOWNER), "attr-owner"),
        ],
    );
    let mut fields = vec![
        ("ino", Value::from(format.ino)),
        ("parts", Value::Words(parts)),
        ("daddr", Value::from(format.blkno)),
        ("len", Value::from(format.len)),
        ("boffset", Value::from(format.boffset)),
        ("dsize", Value::from(format.dsize)),
        ("asize", Value::from(format.asize)),
    ];
    if format.fields & field::DEV != 0 {
        fields.push(("rdev", Value::Hex(u64::from(format.rdev))));
    }
    if item.width == Width::Bits32 {
        fields.push(("writer", Value::Word("32-bit")));
    }
    fields
}

fn dquot(item: &DquotItem<'_>, detail: Detail) -> (Fields, Vec<Entry>) {
    use zerocopy::IntoBytes;
    let kind = match item.dquot.dqtype & dqtype::REC_MASK {
        dqtype::USER => Value::Word("user"),
        dqtype::GROUP => Value::Word("group"),
        dqtype::PROJ => Value::Word("project"),
        _ => Value::Null,
    };
    let fields = vec![
        ("quota", kind),
        ("id", Value::from(item.format.id)),
        ("daddr", Value::from(item.format.blkno)),
        ("len", Value::from(item.format.len)),
        ("boffset", Value::from(item.format.boffset)),
    ];
    let mut contents = Vec::new();
    if detail.quotas {
        let all = buffer_contents::all_fields(item.dquot.as_bytes(), RawDiskDquot::FIELDS);
        contents.push(Entry::new("contents", Heading::Structure("dquot"), all));
    }
    (fields, contents)
}

fn quotas(flags: u32) -> Vec<&'static str> {
    words(
        u64::from(flags),
        &[
            (u64::from(qflags::UQUOTA_ACCT), "user"),
            (u64::from(qflags::GQUOTA_ACCT), "group"),
            (u64::from(qflags::PQUOTA_ACCT), "project"),
        ],
    )
}

fn icreate(item: &RawIcreateLog<BigEndian>) -> Fields {
    vec![
        ("ag", Value::from(item.ag.get())),
        ("agbno", Value::from(item.agbno.get())),
        ("length", Value::from(item.length.get())),
        ("count", Value::from(item.count.get())),
        ("isize", Value::from(item.isize.get())),
        ("generation", Value::Hex(u64::from(item.generation.get()))),
    ]
}
