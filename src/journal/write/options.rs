//! How the log is written.

use crate::error::{Error, Result};
use crate::geometry::LogGeometry;
use crate::journal::WriterLayout;
use crate::ondisk::log_record::{BIG_RECORD_SIZE, MAX_RECORD_SIZE};

/// Size of the smallest record in bytes (`XLOG_MIN_RECORD_BSIZE`).
const MIN_RECORD_SIZE: u32 = 16 * 1024;

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogWriterOptions {
    /// Bytes of a full record with its headers: a power of two from 16 KiB to 256 KiB, in logs of version 1 to 32 KiB, and
    /// not less than the stripe unit (the mount option `logbsize`).
    pub record_size: u32,
    /// Which machine writes. Anything but [`WriterLayout::USUAL`] is for tests.
    pub layout: WriterLayout,
}

impl LogWriterOptions {
    /// The largest records that the log takes.
    pub fn of(log: &LogGeometry) -> Self {
        let record_size = if log.version >= 2 { MAX_RECORD_SIZE } else { BIG_RECORD_SIZE };
        LogWriterOptions { record_size, layout: WriterLayout::USUAL }
    }

    /// Whether the log takes such records.
    ///
    /// # Errors
    /// `Usage`.
    pub(super) fn check(&self, log: &LogGeometry) -> Result<()> {
        let most = Self::of(log).record_size;
        let size = self.record_size;
        if !size.is_power_of_two() || !(MIN_RECORD_SIZE..=most).contains(&size) {
            return Err(Error::Usage(format!(
                "log records of {size} bytes: must be a power of two from {MIN_RECORD_SIZE} to {most}"
            )));
        }
        if size < log.stripe_unit {
            let unit = log.stripe_unit;
            return Err(Error::Usage(format!(
                "log records of {size} bytes are smaller than the log's stripe unit of {unit}"
            )));
        }
        Ok(())
    }
}
