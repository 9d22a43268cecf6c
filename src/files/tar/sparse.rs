//! Where the data of a file lie, and the map of a file with holes (GNU tar's manual, "Storing Sparse Files", PAX version 1.0).

use std::io::{self, Write};

use super::header::BLOCK;
use crate::error::{Check, Corruption, Error, Rule};
use crate::forms::{Inode, StoredData, StoredRange};
use crate::tree::Reader;

/// Most ranges of a file that are kept in memory (48 bytes each); a file of more is written with zeroes for its holes.
const MOST_RANGES: usize = 1 << 21;

/// The data of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Data {
    /// Ranges that hold data, in order.
    pub(super) ranges: Vec<StoredRange>,
    /// Bytes of the file, holes included.
    pub(super) size: u64,
    /// Bytes that `ranges` hold.
    pub(super) stored: u64,
    /// There are more ranges than are kept.
    pub(super) is_cut: bool,
}

impl Data {
    /// The data of the regular file `inode`; damage is reported, and costs what it is about. `None` when nothing of it can
    /// be told, not even the size.
    pub(super) fn read(reader: &Reader<'_>, inode: &Inode) -> Option<Self> {
        let stored = StoredData::open(reader.source(), inode).map_err(|error| reader.report(&error)).ok()?;
        let mut data = Data { size: inode.size(), ..Data::default() };
        for range in stored {
            match range {
                Ok(range) if range.unwritten => {}
                Ok(_) if data.ranges.len() == MOST_RANGES => {
                    data.is_cut = true;
                    break;
                }
                Ok(range) => {
                    data.stored += range.len;
                    data.ranges.push(range);
                }
                Err(error) => reader.report(&error),
            }
        }
        Some(data)
    }

    /// Whether there are holes.
    pub(super) fn is_sparse(&self) -> bool {
        self.stored < self.size
    }

    /// The map: how many ranges there are, and where each begins and how long it is, padded to whole blocks. A hole in the
    /// end is told by a range of no bytes.
    pub(super) fn map(&self) -> Vec<u8> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for range in &self.ranges {
            match runs.last_mut() {
                Some((start, len)) if *start + *len == range.offset => *len += range.len,
                _ => runs.push((range.offset, range.len)),
            }
        }
        if runs.last().is_none_or(|(start, len)| start + len < self.size) {
            runs.push((self.size, 0));
        }
        let mut map = format!("{}\n", runs.len()).into_bytes();
        for (start, len) in runs {
            write!(map, "{start}\n{len}\n").expect("invariant: memory takes all");
        }
        map.resize(map.len().next_multiple_of(BLOCK), 0);
        map
    }

    /// Writes the data without the holes.
    ///
    /// # Errors
    /// Those of `out`.
    pub(super) fn write(
        &self,
        reader: &Reader<'_>,
        inode: &Inode,
        buf: &mut Vec<u8>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        for range in &self.ranges {
            reader.copy(inode, range, buf, &mut |_, bytes| out.write_all(bytes))?;
        }
        Ok(())
    }
}

/// A file with more ranges than are kept is said so: its holes are not in the archive.
pub(super) fn too_many(inode: &Inode) -> Error {
    let check = Check::new("dinode", "nextents", Rule::Count);
    let detail = format!("more than {MOST_RANGES}; written without its holes");
    Error::Corrupt(Box::new(Corruption { check, place: inode.place.clone(), detail }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DeviceRole;

    fn data(ranges: &[(u64, u64)], size: u64) -> Data {
        let range =
            |&(offset, len)| StoredRange { offset, len, unwritten: false, device: DeviceRole::Data, at: 7 * offset };
        let ranges: Vec<_> = ranges.iter().map(range).collect();
        let stored = ranges.iter().map(|range| range.len).sum();
        Data { ranges, size, stored, is_cut: false }
    }

    fn text(data: &Data) -> String {
        let map = data.map();
        assert_eq!(map.len() % BLOCK, 0);
        String::from_utf8(map).expect("ASCII").trim_end_matches('\0').to_owned()
    }

    #[test]
    fn maps() {
        assert_eq!(text(&data(&[], 100)), "1\n100\n0\n");
        assert_eq!(text(&data(&[(0, 512), (4096, 10)], 4106)), "2\n0\n512\n4096\n10\n");
        assert_eq!(text(&data(&[(0, 512), (512, 512)], 8192)), "2\n0\n1024\n8192\n0\n");
        assert!(!data(&[(0, 100)], 100).is_sparse() && data(&[(50, 50)], 100).is_sparse());
    }
}
