//! Where the log lies and how it is written (Linux `xfs_log.c`, `xlog_alloc_log`).

use super::FsBlock;
use super::bounds::Bounds;
use super::features::Features;
use super::limits::BASIC_BLOCK_LOG;
use crate::ondisk::RawSuperblock;

/// Where the log lies and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogGeometry {
    /// First block of an internal log; `None` when it has a device of its own.
    pub start: Option<FsBlock>,
    /// Size in filesystem blocks.
    pub blocks: u32,
    /// Bytes of a sector.
    pub sectsize: u32,
    /// log2 of the same.
    pub sectlog: u32,
    /// Stripe unit in bytes; 0 when there is none.
    pub stripe_unit: u32,
    /// Version of the record headers: 1 or 2.
    pub version: u32,
}

impl LogGeometry {
    pub(super) fn of(sb: &RawSuperblock, bounds: &Bounds, features: &Features) -> Self {
        let sectlog = if features.has_sector() { bounds.logsectlog } else { BASIC_BLOCK_LOG };
        let start = sb.logstart.get();
        LogGeometry {
            start: (start != 0).then_some(FsBlock(start)),
            blocks: sb.logblocks.get(),
            sectsize: 1 << sectlog,
            sectlog,
            stripe_unit: if sb.logsunit.get() > 1 { sb.logsunit.get() } else { 0 },
            version: if features.has_logv2() { 2 } else { 1 },
        }
    }
}
