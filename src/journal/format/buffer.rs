//! Items of buffers (Linux `xfs_buf_item.c`, `xfs_buf_item_format`).

use crate::buffer::Fragment;
use crate::error::{Error, Result};
use crate::geometry::limits::BASIC_BLOCK;
use crate::journal::parse::in_order;
use crate::journal::{ItemSize, Regions};
use crate::ondisk::LittleEndian;
use crate::ondisk::OnDisk;
use crate::ondisk::log_buffer::{BufLogFormat, BufType, CHUNK, RawBufLogFormat, flag};

/// Chunks that one word of a map tells of.
const WORD: usize = u32::BITS as usize;

/// What changed in a buffer. A buffer of several fragments becomes an item for each, as if each were a buffer of its own;
/// fragments in which nothing changed are left out.
#[derive(Clone, Copy, Debug)]
pub struct BufferChange<'a> {
    /// Where it lies; each fragment is of at most 64 KiB.
    pub fragments: &'a [Fragment],
    /// What it holds.
    pub kind: BufType,
    /// [`flag::INODE_BUF`], [`flag::CANCEL`] and the flags of dquots; with `CANCEL`, no contents are logged.
    pub flags: u16,
    /// The runs of changed chunks of 128 bytes, in ascending order: first chunk, and how many. They count through all fragments.
    pub runs: &'a [(usize, usize)],
}

impl BufferChange<'_> {
    /// How much the item logs.
    pub fn size(&self) -> ItemSize {
        let mut size = ItemSize::default();
        self.each(|fragment, _, runs| {
            let words = map_words(fragment);
            size = size.with(RawBufLogFormat::<LittleEndian>::SIZE + words * size_of::<u32>());
            for (_, count) in runs {
                size = size.with(count * CHUNK);
            }
            Ok(())
        })
        .expect("invariant: counting does not fail");
        size
    }

    /// Adds the item to `regions`; `bytes` are the whole buffer.
    ///
    /// # Errors
    /// `Internal` when `bytes` end before a changed chunk, or the buffer cannot be described.
    pub fn format(&self, bytes: &[u8], regions: &mut Regions) -> Result<()> {
        let invalid = || Error::Internal(format!("a buffer of {} bytes does not fit {self:?}", bytes.len()));
        self.each(|fragment, first, runs| {
            let mut map = vec![0; map_words(fragment)];
            for (start, count) in runs.clone() {
                for chunk in start..start + count {
                    *map.get_mut(chunk / WORD).ok_or_else(invalid)? |= 1 << (chunk % WORD);
                }
            }
            let format = BufLogFormat {
                size: u16::try_from(1 + runs.clone().count()).map_err(|_| invalid())?,
                flags: self.flags,
                kind: Some(self.kind),
                len: u16::try_from(fragment.len / BASIC_BLOCK).map_err(|_| invalid())?,
                blkno: fragment.daddr.0,
                map,
            };
            let order = regions.layout().order;
            regions.push(&in_order!(order, O => format.encode::<O>()).ok_or_else(invalid)?);
            for (start, count) in runs {
                let start = (first + start) * CHUNK;
                regions.push(bytes.get(start..start + count * CHUNK).ok_or_else(invalid)?);
            }
            Ok(())
        })
    }

    /// Calls `visit` for each fragment that is logged, with its first chunk in the buffer, and the runs in it, which count
    /// from its own start.
    fn each(&self, mut visit: impl FnMut(&Fragment, usize, Runs<'_>) -> Result<()>) -> Result<()> {
        let mut first = 0;
        for fragment in self.fragments {
            let end = first + fragment.len as usize / CHUNK;
            let runs = if self.flags & flag::CANCEL != 0 { &[] } else { self.runs };
            let runs = Runs { runs, first, end };
            if self.flags & flag::CANCEL != 0 || runs.clone().next().is_some() {
                visit(fragment, first, runs)?;
            }
            first = end;
        }
        Ok(())
    }
}

/// Words of the map of a fragment.
fn map_words(fragment: &Fragment) -> usize {
    (fragment.len as usize).div_ceil(CHUNK).div_ceil(WORD)
}

/// The parts of runs that lie between two chunks, counted from the first of these.
#[derive(Clone)]
struct Runs<'a> {
    runs: &'a [(usize, usize)],
    first: usize,
    end: usize,
}

impl Iterator for Runs<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let ((start, count), rest) = self.runs.split_first()?;
            self.runs = rest;
            let (start, end) = ((*start).max(self.first), (start + count).min(self.end));
            if start < end {
                return Some((start - self.first, end - start));
            }
        }
    }
}
