//! From devices to a report.

use std::fmt::Write;

use super::copies;
use super::readable::{feature_names, readable_by};
use super::report::*;
use crate::buffer::{FoundSuperblock, SearchEffort, find_superblock};
use crate::device::Device;
use crate::error::Result;
use crate::geometry::{Geometry, QuotaGeometry};
use crate::journal::{LogArea, LogScan, LogState, scan};
use crate::ondisk::feature_bits::qflags;
use crate::ondisk::{RawSuperblock, RawUuid};

/// Bytes of a device that are searched at most for a copy of a damaged superblock: soon read.
const SEARCHED: u64 = 256 << 20;

/// What is to be described.
pub struct Subject<'a> {
    /// How it is to be named.
    pub name: String,
    /// The data device.
    pub data: &'a dyn Device,
    /// The external log device, if it is known.
    pub log: Option<&'a dyn Device>,
    /// The name of the external log device, if it is known.
    pub log_name: Option<String>,
    /// The name of the realtime device, if it is known.
    pub realtime_name: Option<String>,
    /// Where it is mounted.
    pub mounted_on: Option<String>,
}

/// Reads all there is to know, bounded in time and memory whatever the devices hold.
///
/// # Errors
/// `Io` when the superblock cannot be read; `Corrupt` when neither it nor a copy of it is sound. Damage elsewhere is part of
/// the report.
pub fn inspect(subject: &Subject<'_>) -> Result<Report> {
    let found = find_superblock(subject.data, SearchEffort::Everywhere { limit: SEARCHED })?;
    let FoundSuperblock { sb, geometry, agno: group, offset, primary, agreeing } = &found;
    let log = log_shape(subject, geometry, sb);
    let unknown = geometry.features.unknown();
    let features = feature_names(geometry);
    Ok(Report {
        format: Report::FORMAT,
        name: subject.name.clone(),
        mounted_on: subject.mounted_on.clone(),
        superblock: SuperblockSource { group: group.0, offset: *offset, agreeing: *agreeing, damage: primary.damage() },
        label: label_text(&geometry.label),
        uuid: uuid_text(&geometry.uuid),
        meta_uuid: uuid_text(&geometry.meta_uuid),
        version: sb.version(),
        features,
        unknown_features: UnknownFeatures {
            versionnum: unknown.versionnum,
            features2: unknown.features2,
            compat: unknown.compat,
            ro_compat: unknown.ro_compat,
            incompat: unknown.incompat,
            log_incompat: unknown.log_incompat,
        },
        metadata: MetadataShape {
            inode_size: u32::from(sb.inodesize.get()),
            groups: sb.agcount.get(),
            group_blocks: sb.agblocks.get(),
            sector_size: geometry.sectsize,
        },
        data: data_shape(subject.data, geometry, sb),
        naming: NamingShape {
            version: 2,
            block_size: geometry.blocksize << sb.dirblklog,
            ascii_ci: geometry.features.has_asciici(),
        },
        realtime: realtime_shape(subject, geometry, sb),
        counters: Counters {
            inodes: sb.icount.get(),
            free_inodes: sb.ifree.get(),
            free_blocks: sb.fdblocks.get(),
            free_realtime_extents: sb.frextents.get(),
        },
        quota: quotas(&geometry.quota),
        secondary_superblocks: copies::compare(subject.data, sb, geometry, *group),
        readable_by: readable_by(geometry, log.state),
        log,
    })
}

/// The label up to its first zero.
fn label_text(label: &[u8; 12]) -> String {
    let end = label.iter().position(|&byte| byte == 0).unwrap_or(label.len());
    String::from_utf8_lossy(&label[..end]).into_owned()
}

fn uuid_text(uuid: &RawUuid) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}").expect("invariant: a String takes all that is written");
    }
    text
}

fn data_shape(device: &dyn Device, geometry: &Geometry, sb: &RawSuperblock) -> DataShape {
    // an internal realtime section lies behind the data blocks, on the same device
    let internal = if geometry.realtime.start > 0 { geometry.realtime.blocks } else { 0 };
    let blocks = sb.dblocks.get().max(geometry.realtime.start.saturating_add(internal));
    let bytes = geometry.blocks_to_bytes(blocks).unwrap_or(u64::MAX);
    DataShape {
        block_size: geometry.blocksize,
        blocks: sb.dblocks.get(),
        bytes,
        device_bytes: device.len(),
        cut_short: device.len() < bytes,
        inode_percent: sb.imax_pct,
        stripe_unit: sb.unit.get(),
        stripe_width: sb.width.get(),
    }
}

fn realtime_shape(subject: &Subject<'_>, geometry: &Geometry, sb: &RawSuperblock) -> RealtimeShape {
    let realtime = &geometry.realtime;
    let groups = realtime.groups.as_ref();
    RealtimeShape {
        internal: realtime.blocks > 0 && realtime.start > 0,
        device: subject.realtime_name.clone(),
        extent_size: u64::from(sb.rextsize.get()) * u64::from(geometry.blocksize),
        blocks: realtime.blocks,
        extents: realtime.extents,
        groups: groups.map_or(0, |groups| groups.count),
        group_extents: groups.map_or(0, |_| sb.rgextents.get()),
        zoned: geometry.features.has_zoned(),
        start: realtime.start,
        reserved: realtime.reserved,
    }
}

fn quotas(quota: &QuotaGeometry) -> Quotas {
    let kind = |accounting: u16, enforced: u16, checked: u16, inode: Option<crate::geometry::Ino>| Quota {
        accounting: quota.flags & accounting != 0,
        enforced: quota.flags & enforced != 0,
        checked: quota.flags & checked != 0,
        inode: inode.map(|inode| inode.0),
    };
    Quotas {
        user: kind(qflags::UQUOTA_ACCT, qflags::UQUOTA_ENFD, qflags::UQUOTA_CHKD, quota.user),
        group: kind(qflags::GQUOTA_ACCT, qflags::GQUOTA_ENFD, qflags::GQUOTA_CHKD, quota.group),
        project: kind(qflags::PQUOTA_ACCT, qflags::PQUOTA_ENFD, qflags::PQUOTA_CHKD, quota.project),
    }
}

fn log_shape(subject: &Subject<'_>, geometry: &Geometry, sb: &RawSuperblock) -> LogShape {
    let internal = geometry.log.start.is_some();
    let device = if internal { Some(subject.data) } else { subject.log };
    let found = match device {
        _ if subject.mounted_on.is_some() => Err((LogStateName::InUse, None)),
        None => Err((LogStateName::External, None)),
        Some(device) => LogArea::new(device, geometry)
            .and_then(|area| scan(&area))
            .map_err(|error| (LogStateName::Damaged, Some(error.to_string()))),
    };
    let shape = LogShape {
        internal,
        device: subject.log_name.clone(),
        start: geometry.log.start.map(|start| start.0),
        blocks: sb.logblocks.get(),
        version: geometry.log.version,
        sector_size: if geometry.features.has_sector() {
            u32::from(sb.logsectsize.get())
        } else {
            geometry.log.sectsize
        },
        stripe_unit: geometry.log.stripe_unit,
        state: LogStateName::External,
        problem: None,
        head: None,
        tail: None,
        cycle: None,
        torn_at: None,
    };
    match found {
        Ok(scan) => with_scan(shape, &scan),
        Err((state, problem)) => LogShape { state, problem, ..shape },
    }
}

fn with_scan(shape: LogShape, scan: &LogScan) -> LogShape {
    LogShape {
        state: match scan.state {
            LogState::Zeroed => LogStateName::Zeroed,
            LogState::Clean => LogStateName::Clean,
            LogState::Dirty => LogStateName::Dirty,
        },
        head: Some(scan.head),
        tail: Some(scan.tail),
        cycle: Some(scan.last_record.cycle()),
        torn_at: scan.torn.map(|torn| torn.block),
        ..shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_end_at_the_first_zero_and_never_fail() {
        assert_eq!(label_text(b"root\0\0\0\0\0\0\0\0"), "root");
        assert_eq!(label_text(b"twelve chars"), "twelve chars");
        assert_eq!(label_text(b"\xff\0abcdefghij"), "\u{fffd}");
        assert_eq!(label_text(&[0; 12]), "");
    }

    #[test]
    fn uuids_in_their_usual_form() {
        let bytes = [0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0x00];
        assert_eq!(uuid_text(&bytes), "123e4567-e89b-12d3-a456-426614174000");
    }
}
