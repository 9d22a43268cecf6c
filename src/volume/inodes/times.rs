//! The timestamps of an inode in the form that its flags ask for.

use crate::error::{Error, Result};
use crate::ondisk::dinode::flags2;
use crate::ondisk::timestamp::Timestamp;
use crate::ondisk::{Be64, RawDinode};

fn encode(time: Timestamp, bigtime: bool) -> Result<Be64> {
    let outside = || Error::Usage(format!("the time {} does not fit an inode", time.seconds));
    time.encode(bigtime).ok_or_else(outside)
}

/// Gives an inode other `flags2`; its timestamps take the form that they ask for.
pub(super) fn recode(raw: &mut RawDinode, flags: u64) -> Result<()> {
    if raw.core.version < 3 {
        return Ok(());
    }
    let times = [raw.core.atime, raw.core.mtime, raw.core.ctime, raw.crtime].map(|time| raw.timestamp(time));
    let big = flags & flags2::BIGTIME != 0;
    raw.flags2.set(flags);
    let [atime, mtime, ctime, crtime] = times;
    (raw.core.atime, raw.core.mtime) = (encode(atime, big)?, encode(mtime, big)?);
    (raw.core.ctime, raw.crtime) = (encode(ctime, big)?, encode(crtime, big)?);
    Ok(())
}

/// Sets all timestamps of a new inode.
pub(super) fn set_all(raw: &mut RawDinode, now: Timestamp) -> Result<()> {
    let time = encode(now, raw.has_bigtime())?;
    (raw.core.atime, raw.core.mtime, raw.core.ctime) = (time, time, time);
    if raw.core.version >= 3 {
        raw.crtime = time;
    }
    Ok(())
}
