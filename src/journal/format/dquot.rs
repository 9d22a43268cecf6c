//! Items of dquots (Linux `xfs_dquot_item.c`).

use zerocopy::IntoBytes;

use crate::journal::parse::in_order;
use crate::journal::{ItemSize, Regions};
use crate::ondisk::log_item::{DquotLogFormat, RawDquotLogFormat};
use crate::ondisk::{LittleEndian, OnDisk, RawDiskDquot};

/// How much each dquot logs.
pub const DQUOT_SIZE: ItemSize =
    ItemSize { regions: 2, bytes: (RawDquotLogFormat::<LittleEndian>::SIZE + RawDiskDquot::SIZE) as u64 };

/// Adds a dquot to `regions`. Linux states a length of 1, whatever that of the buffer is.
pub fn format_dquot(format: &DquotLogFormat, dquot: &RawDiskDquot, regions: &mut Regions) {
    let order = regions.layout().order;
    regions.push(&in_order!(order, O => format.encode::<O>()));
    regions.push(dquot.as_bytes());
}
