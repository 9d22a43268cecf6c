//! A layout as text, the way mkfs.xfs and xfs_info print it, and as JSON.

use serde_json::{Value, json};

use super::layout::{Layout, LogPlace, RealtimePlace, quota};
use crate::geometry::GeometrySummary;

/// Version of the JSON form; it changes when a field goes away or changes its meaning.
pub const JSON_VERSION: u32 = 1;

/// Bytes that are zeroed at both ends of the data device.
const CLEARED: u64 = 128 << 10;

/// Names of the devices, as they were given.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The data device, or the mount point.
    pub data: &'a str,
    /// The device of an external log.
    pub log: Option<&'a str>,
    /// The realtime device.
    pub realtime: Option<&'a str>,
}

/// The geometry as mkfs.xfs prints it.
pub fn text(layout: &Layout, names: Names) -> String {
    let (data, log, realtime, features) = (&layout.data, &layout.log, &layout.realtime, layout.features);
    let groups = realtime.groups.map_or((0, 0), |groups| (groups.count, groups.extents));
    let summary = GeometrySummary {
        device: names.data,
        inode_bytes: layout.inode.bytes(),
        agcount: data.agcount,
        agblocks: data.agblocks,
        sector_bytes: layout.sector.bytes(),
        projid32: features.projid32,
        crc: features.crc,
        finobt: features.finobt,
        sparse: features.sparse_inodes,
        rmapbt: features.rmapbt,
        reflink: features.reflink,
        bigtime: features.bigtime,
        inobtcount: features.inobtcount,
        nrext64: features.nrext64,
        exchange: features.exchange,
        metadir: features.metadir,
        block_bytes: layout.block.bytes(),
        blocks: data.blocks,
        imax_pct: data.imax_pct,
        stripe_unit: data.stripe_unit,
        stripe_width: data.stripe_width,
        directory_block_bytes: layout.directory_block.bytes(),
        ascii_ci: features.ascii_ci,
        ftype: features.ftype,
        parent: features.parent,
        log_internal: matches!(log.place, LogPlace::Internal { .. }),
        log_device: names.log,
        log_blocks: log.blocks,
        log_version: u32::from(log.version),
        log_sector_bytes: log.sector.bytes(),
        log_stripe_unit: log.stripe_unit,
        lazy_count: features.lazy_counters,
        realtime_device: names.realtime,
        realtime_extent_bytes: u64::from(realtime.extent_blocks) * u64::from(layout.block.bytes()),
        realtime_blocks: realtime.blocks,
        realtime_extents: realtime.extents,
        realtime_groups: groups.0,
        realtime_group_extents: groups.1,
        zoned: features.zoned,
        realtime_start: if let RealtimePlace::Internal { start } = realtime.place { start } else { 0 },
        realtime_reserved: realtime.reserved_blocks,
    };
    summary.to_string()
}

/// The layout as JSON; sizes in bytes, everything else in blocks.
pub fn json(layout: &Layout, names: Names) -> Value {
    json!({
        "format": JSON_VERSION,
        "device": names.data,
        "uuid": layout.uuid.to_string(),
        "label": label(layout),
        "version": if layout.features.crc { 5 } else { 4 },
        "block_size": layout.block.bytes(),
        "sector_size": layout.sector.bytes(),
        "inode_size": layout.inode.bytes(),
        "directory_block_size": layout.directory_block.bytes(),
        "features": features(layout),
        "data": data(layout),
        "log": log(layout, names),
        "realtime": realtime(layout, names),
        "root": {
            "rtinherit": layout.root.rt_inherit,
            "project": layout.root.project,
            "extent_size": layout.root.extent_size,
            "cow_extent_size": layout.root.cow_extent_size,
            "dax": layout.root.dax,
        },
        "quota": quotas(layout.quota_flags),
        "autofsck": layout.autofsck.map(super::layout::Autofsck::word),
    })
}

/// The label without the zeroes behind it.
fn label(layout: &Layout) -> String {
    let end = layout.label.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    String::from_utf8_lossy(&layout.label[..end]).into_owned()
}

fn features(layout: &Layout) -> Value {
    let features = layout.features;
    json!({
        "crc": features.crc,
        "finobt": features.finobt,
        "sparse": features.sparse_inodes,
        "rmapbt": features.rmapbt,
        "reflink": features.reflink,
        "inobtcount": features.inobtcount,
        "bigtime": features.bigtime,
        "nrext64": features.nrext64,
        "metadir": features.metadir,
        "exchange": features.exchange,
        "parent": features.parent,
        "ftype": features.ftype,
        "attr2": features.attr2,
        "lazy-count": features.lazy_counters,
        "projid32bit": features.projid32,
        "align": features.inode_alignment,
        "ascii-ci": features.ascii_ci,
        "zoned": features.zoned,
    })
}

fn data(layout: &Layout) -> Value {
    let data = layout.data;
    json!({
        "blocks": data.blocks,
        "groups": data.agcount,
        "group_blocks": data.agblocks,
        "stripe_unit": data.stripe_unit,
        "stripe_width": data.stripe_width,
        "inode_alignment": data.inode_alignment,
        "sparse_alignment": data.sparse_alignment,
        "inode_percent": data.imax_pct,
    })
}

fn log(layout: &Layout, names: Names) -> Value {
    let log = layout.log;
    let (device, group, start) = match log.place {
        LogPlace::Internal { agno, agblock } => (None, Some(agno.0), Some(agblock.0)),
        LogPlace::External => (names.log, None, None),
    };
    json!({
        "internal": device.is_none(),
        "device": device,
        "group": group,
        "group_block": start,
        "blocks": log.blocks,
        "version": log.version,
        "sector_size": log.sector.bytes(),
        "stripe_unit": log.stripe_unit,
    })
}

fn realtime(layout: &Layout, names: Names) -> Value {
    let realtime = layout.realtime;
    let (device, start) = match realtime.place {
        RealtimePlace::None => return Value::Null,
        RealtimePlace::Device => (names.realtime, None),
        RealtimePlace::Internal { start } => (None, Some(start)),
    };
    json!({
        "device": device,
        "start": start,
        "extent_blocks": realtime.extent_blocks,
        "blocks": realtime.blocks,
        "extents": realtime.extents,
        "bitmap_blocks": realtime.bitmap_blocks,
        "groups": realtime.groups.map(|groups| groups.count),
        "group_extents": realtime.groups.map(|groups| groups.extents),
        "reserved_blocks": realtime.reserved_blocks,
    })
}

fn quotas(flags: u16) -> Value {
    let kind = |counted, enforced| {
        let word = match (flags & counted != 0, flags & enforced != 0) {
            (false, _) => "off",
            (true, false) => "counted",
            (true, true) => "enforced",
        };
        Value::from(word)
    };
    json!({
        "user": kind(quota::USER_COUNTED, quota::USER_ENFORCED),
        "group": kind(quota::GROUP_COUNTED, quota::GROUP_ENFORCED),
        "project": kind(quota::PROJECT_COUNTED, quota::PROJECT_ENFORCED),
    })
}

/// What a formatter would do to the devices, in its order; offsets and lengths in bytes.
pub fn would_write(layout: &Layout, names: Names) -> Value {
    let block = |blocks: u64| blocks << layout.block.log();
    let (data, whole) = (names.data, layout.data.device_bytes);
    let cleared = whole.min(CLEARED);
    let entry = |device: &str, what: &str, offset: u64, bytes: u64| json!({ "device": device, "what": what, "offset": offset, "bytes": bytes });
    let mut entries = Vec::new();
    if layout.discard {
        entries.push(json!({ "device": data, "what": "discarded, if it is a block device" }));
    }
    entries.push(entry(data, "zeroed: end of the device", whole - cleared, cleared));
    entries.push(entry(data, "zeroed: start of the device", 0, cleared));
    let agblocks = u64::from(layout.data.agblocks);
    let log_bytes = block(u64::from(layout.log.blocks));
    entries.push(match layout.log.place {
        LogPlace::Internal { agno, agblock } => {
            entry(data, "log", block(u64::from(agno.0) * agblocks + u64::from(agblock.0)), log_bytes)
        }
        LogPlace::External => entry(names.log.unwrap_or("external"), "log", 0, log_bytes),
    });
    entries.push(json!({
        "device": data,
        "what": "headers of the allocation groups",
        "offset": 0,
        "bytes": 4 * layout.sector.bytes(),
        "count": layout.data.agcount,
        "distance": block(agblocks),
    }));
    if layout.realtime.place == RealtimePlace::Device && layout.features.metadir && !layout.features.zoned {
        let name = names.realtime.unwrap_or("external");
        entries.push(entry(name, "realtime superblock", 0, u64::from(layout.block.bytes())));
    }
    entries.push(json!({ "device": data, "what": "root directory and metadata files, in the first groups" }));
    entries.push(entry(data, "superblock", 0, u64::from(layout.sector.bytes())));
    Value::from(entries)
}
