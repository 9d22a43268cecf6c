//! Quota records.

use crate::db::field::at;
use crate::db::field::formats::{CRC, I32, U16, U64, UUID, X8, X16, X32, X64};
use crate::db::field::{Format, Row, Shape};
use crate::ondisk::{OnDisk, RawDiskDquot, RawDquotBlock};

/// End of a grace period.
const TIMER: Format = Format::shaped(Shape::QuotaTimer, 32);
/// A byte without meaning.
const FILL: Format = Format::shaped(Shape::Characters, 8);

const RECORD: Format = Format::structure(
    &[
        Row::new("magic", at!(RawDiskDquot, magic), X16),
        Row::new("version", at!(RawDiskDquot, version), X8),
        Row::new("type", at!(RawDiskDquot, dqtype), X8),
        Row::new("id", at!(RawDiskDquot, id), I32),
        Row::new("blk_hardlimit", at!(RawDiskDquot, blk_hardlimit), U64),
        Row::new("blk_softlimit", at!(RawDiskDquot, blk_softlimit), U64),
        Row::new("ino_hardlimit", at!(RawDiskDquot, ino_hardlimit), U64),
        Row::new("ino_softlimit", at!(RawDiskDquot, ino_softlimit), U64),
        Row::new("bcount", at!(RawDiskDquot, bcount), U64),
        Row::new("icount", at!(RawDiskDquot, icount), U64),
        Row::new("itimer", at!(RawDiskDquot, itimer), TIMER),
        Row::new("btimer", at!(RawDiskDquot, btimer), TIMER),
        Row::new("iwarns", at!(RawDiskDquot, iwarns), U16),
        Row::new("bwarns", at!(RawDiskDquot, bwarns), U16),
        Row::new("pad0", at!(RawDiskDquot, pad0), X32).hidden(),
        Row::new("rtb_hardlimit", at!(RawDiskDquot, rtb_hardlimit), U64),
        Row::new("rtb_softlimit", at!(RawDiskDquot, rtb_softlimit), U64),
        Row::new("rtbcount", at!(RawDiskDquot, rtbcount), U64),
        Row::new("rtbtimer", at!(RawDiskDquot, rtbtimer), TIMER),
        Row::new("rtbwarns", at!(RawDiskDquot, rtbwarns), U16),
        Row::new("pad", at!(RawDiskDquot, pad), X16).hidden(),
    ],
    RawDiskDquot::SIZE * 8,
);

/// A slot of a quota file.
pub static DQBLK: Format = Format::structure(
    &[
        Row::new("diskdq", at!(RawDquotBlock, diskdq), RECORD),
        Row::new("fill", at!(RawDquotBlock, fill), FILL).times(size_of::<[u8; 4]>()).hidden(),
        Row::new("crc", at!(RawDquotBlock, crc), CRC),
        Row::new("lsn", at!(RawDquotBlock, lsn), X64),
        Row::new("uuid", at!(RawDquotBlock, uuid), UUID),
    ],
    RawDquotBlock::SIZE * 8,
);
