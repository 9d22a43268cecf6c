//! Items of buffers: which bytes of a buffer become what (Linux `xfs_buf_item_recover.c`).

use super::item::LogItem;
use super::order::in_order;
use crate::error::{Check, Rule};
use crate::geometry::limits::BASIC_BLOCK;
use crate::ondisk::log_buffer::{BufLogFormat, CHUNK, flag};

/// Bytes of a buffer that changed, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRun<'a> {
    /// Where in the buffer.
    pub offset: usize,
    /// What they become.
    pub bytes: &'a [u8],
}

/// Parts of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferItem<'a> {
    /// Where the buffer is, and what it holds.
    pub format: BufLogFormat,
    /// What becomes of it, in ascending order; nothing when it is cancelled.
    pub runs: Vec<BufferRun<'a>>,
}

impl<'a> BufferItem<'a> {
    /// Decodes the item: each region goes with a run of the map, or with a part of one (a run is cut where a page of the
    /// writer's memory ends).
    pub(super) fn decode(item: LogItem<'a>) -> Result<Self, Check> {
        let format = in_order!(item.checkpoint().order, O => BufLogFormat::decode::<O>(item.format()))?;
        let mismatch = Check::new("buf_log_format", "data_map", Rule::Mismatch);
        let mut regions = item.all_regions().skip(1);
        let mut runs = Vec::new();
        if format.flags & flag::CANCEL != 0 {
            return Ok(BufferItem { format, runs });
        }
        for (start, count) in format.runs() {
            let (mut chunk, end) = (start, start + count);
            while chunk < end {
                let bytes = regions.next().ok_or(mismatch)?;
                let len = bytes.len().min((end - chunk) * CHUNK);
                if len < CHUNK {
                    return Err(mismatch);
                }
                let len = len - len % CHUNK;
                runs.push(BufferRun { offset: chunk * CHUNK, bytes: &bytes[..len] });
                chunk += len / CHUNK;
            }
        }
        let item = BufferItem { format, runs };
        let end = item.runs.last().map_or(0, |run| run.offset + run.bytes.len());
        if end > item.len() {
            return Err(Check::new("buf_log_format", "data_map", Rule::Range));
        }
        if regions.next().is_some() { Err(mismatch) } else { Ok(item) }
    }

    /// Whether the blocks are freed, so that earlier changes to them must not be replayed.
    pub fn is_cancel(&self) -> bool {
        self.format.flags & flag::CANCEL != 0
    }

    /// Whether they are inodes, of which only the links of the unlinked list are replayed.
    pub fn is_inodes(&self) -> bool {
        self.format.flags & flag::INODE_BUF != 0
    }

    /// Length of the buffer in bytes.
    pub fn len(&self) -> usize {
        usize::from(self.format.len) * BASIC_BLOCK as usize
    }

    /// Whether the buffer has no bytes.
    pub fn is_empty(&self) -> bool {
        self.format.len == 0
    }

    /// The bytes from `offset` on, `len` of them, when one run has them all.
    pub fn bytes_at(&self, offset: usize, len: usize) -> Option<&'a [u8]> {
        let run = self.runs.iter().rev().find(|run| run.offset <= offset)?;
        let start = offset - run.offset;
        run.bytes.get(start..start.checked_add(len)?)
    }
}
