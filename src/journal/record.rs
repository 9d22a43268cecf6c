//! Records: found backwards from a block, and verified.

use super::area::LogArea;
use crate::error::Result;
use crate::geometry::limits::BASIC_BLOCK;
use crate::ondisk::OnDisk;
use crate::ondisk::log_record::{
    BBSIZE, CrcReach, HEADER_MAGIC, RawLogOpHeader, RawLogRecHeader, header_blocks, op, record_crc,
};

/// A record header and where it lies.
#[derive(Clone, Copy, Debug)]
pub struct LogRecord {
    /// Block of the header.
    pub block: u32,
    /// The header.
    pub header: RawLogRecHeader,
}

impl LogRecord {
    /// The last record header in the `within` blocks before `head`, around the ring.
    ///
    /// # Errors
    /// `Io`.
    pub fn last_before(area: &LogArea<'_>, head: u32, within: u32) -> Result<Option<LogRecord>> {
        let within = within.min(area.blocks());
        let start = area.before(head, within);
        let bytes = area.read(start, within)?;
        let steps = (0..within).rev();
        Ok(bytes
            .rchunks_exact(BBSIZE)
            .zip(steps)
            .find_map(|(bytes, steps)| Self::parse(bytes, area.behind(start, steps))))
    }

    /// The header in `bytes`, if it has the magic number.
    pub(super) fn parse(bytes: &[u8], block: u32) -> Option<LogRecord> {
        let (header, _) = RawLogRecHeader::prefix(bytes)?;
        (header.magicno.get() == HEADER_MAGIC).then_some(LogRecord { block, header: *header })
    }

    /// Blocks of its headers, in a log of this version (`xlog_logrec_hblks`).
    pub fn header_blocks(&self, area: &LogArea<'_>) -> u32 {
        let version = if area.version() >= 2 { self.header.version.get() & 2 } else { 1 };
        header_blocks(version, self.header.size.get())
    }

    /// Blocks of headers and payload, as the header states them.
    pub fn blocks(&self, area: &LogArea<'_>) -> u64 {
        u64::from(self.header_blocks(area)) + u64::from(self.header.len.get()).div_ceil(u64::from(BASIC_BLOCK))
    }

    /// The block behind it, around the ring; `None` when its length is nonsense.
    pub fn end(&self, area: &LogArea<'_>) -> Option<u32> {
        let blocks = u32::try_from(self.blocks(area)).ok().filter(|&blocks| blocks <= area.blocks())?;
        Some(area.behind(self.block, blocks))
    }

    /// Whether version, length and own address of the header make sense (`xlog_valid_rec_header`).
    pub fn is_plausible(&self, area: &LogArea<'_>) -> bool {
        let len = self.header.len.get();
        let own_block = self.header.lsn.get() & u64::from(u32::MAX);
        self.header.version.get() == area.version()
            && len > 0
            && len <= area.record_blocks() * BASIC_BLOCK
            && self.blocks(area) <= u64::from(area.record_blocks() + area.record_blocks() / 64)
            && own_block == u64::from(self.block)
    }

    /// Whether its CRC is that of its contents, or absent. The header must be plausible.
    ///
    /// # Errors
    /// `Io`.
    pub fn crc_matches(&self, area: &LogArea<'_>) -> Result<bool> {
        let stored = self.header.crc.get();
        if stored == 0 {
            return Ok(true);
        }
        let Ok(blocks) = u32::try_from(self.blocks(area)) else { return Ok(false) };
        let bytes = area.read(self.block, blocks)?;
        let Some((headers, payload)) = bytes.split_at_checked(self.header_blocks(area) as usize * BBSIZE) else {
            return Ok(false);
        };
        let payload = payload.get(..self.header.len.get() as usize).unwrap_or(payload);
        Ok([CrcReach::Usual, CrcReach::I386].iter().any(|&reach| record_crc(headers, payload, reach) == Some(stored)))
    }

    /// Whether it says that the filesystem was unmounted: one operation, with the flag of that.
    ///
    /// # Errors
    /// `Io`.
    pub fn is_unmount(&self, area: &LogArea<'_>) -> Result<bool> {
        if self.header.num_logops.get() != 1 {
            return Ok(false);
        }
        let payload = area.read(area.behind(self.block, self.header_blocks(area)), 1)?;
        Ok(RawLogOpHeader::prefix(&payload).is_some_and(|(header, _)| header.flags & op::UNMOUNT_TRANS != 0))
    }
}
