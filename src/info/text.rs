//! The geometry as xfs_info writes it.

use super::report::Report;
use crate::geometry::GeometrySummary;

/// The text of xfs_info for a filesystem.
pub fn geometry_text(report: &Report) -> String {
    let on = |name: &str| report.features.contains(&name);
    let (meta, data, log, rt) = (&report.metadata, &report.data, &report.log, &report.realtime);
    let summary = GeometrySummary {
        device: &report.name,
        inode_bytes: meta.inode_size,
        agcount: meta.groups,
        agblocks: meta.group_blocks,
        sector_bytes: meta.sector_size,
        projid32: on("projid32bit"),
        crc: on("crc"),
        finobt: on("finobt"),
        sparse: on("sparse"),
        rmapbt: on("rmapbt"),
        reflink: on("reflink"),
        bigtime: on("bigtime"),
        inobtcount: on("inobtcount"),
        nrext64: on("nrext64"),
        exchange: on("exchange"),
        metadir: on("metadir"),
        block_bytes: data.block_size,
        blocks: data.blocks,
        imax_pct: data.inode_percent,
        stripe_unit: data.stripe_unit,
        stripe_width: data.stripe_width,
        directory_block_bytes: report.naming.block_size,
        ascii_ci: report.naming.ascii_ci,
        ftype: on("ftype"),
        parent: on("parent"),
        log_internal: log.internal,
        log_device: log.device.as_deref(),
        log_blocks: log.blocks,
        log_version: log.version,
        log_sector_bytes: log.sector_size,
        log_stripe_unit: log.stripe_unit / data.block_size,
        lazy_count: on("lazy-count"),
        realtime_device: rt.device.as_deref(),
        realtime_extent_bytes: rt.extent_size,
        realtime_blocks: rt.blocks,
        realtime_extents: rt.extents,
        realtime_groups: rt.groups,
        realtime_group_extents: rt.group_extents,
        zoned: rt.zoned,
        realtime_start: rt.start,
        realtime_reserved: rt.reserved,
    };
    summary.to_string()
}
