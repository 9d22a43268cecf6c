//! A layout as text, the way mkfs.xfs and xfs_info print it, and as JSON.

use serde_json::{Value, json};

use super::layout::{Layout, LogPlace, RealtimePlace, quota};

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
    let on = u8::from;
    let (block, features) = (layout.block.bytes(), layout.features);
    let log_name = match layout.log.place {
        LogPlace::Internal { .. } => "internal log",
        LogPlace::External => names.log.unwrap_or("external"),
    };
    let realtime = &layout.realtime;
    let (start, realtime_name) = match realtime.place {
        _ if realtime.blocks == 0 => (0, "none"),
        RealtimePlace::Internal { start } => (start, "internal"),
        _ => (0, names.realtime.unwrap_or("external")),
    };
    let groups = realtime.groups.map_or((0, 0), |groups| (groups.count, groups.extents));
    let lines = [
        format!(
            "meta-data={:<22} isize={:<6} agcount={}, agsize={} blks",
            names.data, layout.inode, layout.data.agcount, layout.data.agblocks
        ),
        // the kernel, and mkfs.xfs with it, no longer tells the versions of attributes apart
        format!("         ={:<22} sectsz={:<5} attr=2, projid32bit={}", "", layout.sector, on(features.projid32)),
        format!(
            "         ={:<22} crc={:<8} finobt={}, sparse={}, rmapbt={}",
            "",
            on(features.crc),
            on(features.finobt),
            on(features.sparse_inodes),
            on(features.rmapbt)
        ),
        format!(
            "         ={:<22} reflink={:<4} bigtime={} inobtcount={} nrext64={}",
            "",
            on(features.reflink),
            on(features.bigtime),
            on(features.inobtcount),
            on(features.nrext64)
        ),
        format!("         ={:<22} exchange={:<3} metadir={}", "", on(features.exchange), on(features.metadir)),
        format!(
            "data     ={:<22} bsize={block:<6} blocks={}, imaxpct={}",
            "", layout.data.blocks, layout.data.imax_pct
        ),
        format!("         ={:<22} sunit={:<6} swidth={} blks", "", layout.data.stripe_unit, layout.data.stripe_width),
        format!(
            "naming   =version {:<14} bsize={:<6} ascii-ci={}, ftype={}, parent={}",
            2,
            layout.directory_block,
            on(features.ascii_ci),
            on(features.ftype),
            on(features.parent)
        ),
        format!(
            "log      ={log_name:<22} bsize={block:<6} blocks={}, version={}",
            layout.log.blocks, layout.log.version
        ),
        format!(
            "         ={:<22} sectsz={:<5} sunit={} blks, lazy-count={}",
            "",
            layout.log.sector,
            layout.log.stripe_unit,
            on(features.lazy_counters)
        ),
        format!(
            "realtime ={realtime_name:<22} extsz={:<6} blocks={}, rtextents={}",
            u64::from(realtime.extent_blocks) * u64::from(block),
            realtime.blocks,
            realtime.extents
        ),
        format!("         ={:<22} rgcount={:<4} rgsize={} extents", "", groups.0, groups.1),
        format!(
            "         ={:<22} zoned={:<6} start={start} reserved={}",
            "",
            on(features.zoned),
            realtime.reserved_blocks
        ),
    ];
    lines.join("\n") + "\n"
}

/// The layout as JSON; sizes in bytes, everything else in blocks.
pub fn json(layout: &Layout, names: Names) -> Value {
    json!({
        "version": JSON_VERSION,
        "device": names.data,
        "uuid": layout.uuid.to_string(),
        "label": label(layout),
        "format": if layout.features.crc { 5 } else { 4 },
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
