//! Entries added to the bytes of a data block, taken out and changed (Linux `libxfs/xfs_dir2_data.c`). Neighbouring unused
//! ranges are always one, and the three longest stand in the header.

use crate::error::{Check, Rule};
use crate::ondisk::dir_data::{
    DATA_ALIGN, DATA_FREE_TAG, DIR2_BLOCK_MAGIC, DIR2_DATA_MAGIC, DIR3_BLOCK_MAGIC, DIR3_DATA_MAGIC, DirData,
    DirDataItem, RawDir2DataHdr, RawDir3DataHdr, RawDirDataEntry, RawDirDataFree, RawDirDataUnused, entry_len,
    header_len, put_entry, put_unused,
};
use crate::ondisk::{Be16, OnDisk};

type Checked<T> = Result<T, Check>;

/// How the entries of a filesystem look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Blocks of version 5.
    pub(super) crc: bool,
    /// Entries have a file type.
    pub(super) ftype: bool,
}

const fn failed(field: &'static str, rule: Rule) -> Check {
    Check::new("dir2_data", field, rule)
}

fn short(bytes: usize) -> Checked<u16> {
    u16::try_from(bytes).map_err(|_| failed("offset", Rule::Range))
}

impl Shape {
    pub(super) fn decode(self, block: &[u8]) -> Checked<DirData<'_>> {
        DirData::decode(block, self.crc, self.ftype)
    }

    /// Bytes of an entry.
    pub(super) fn entry_len(self, name: &[u8]) -> usize {
        entry_len(name.len(), self.ftype)
    }

    /// Length of the longest unused range.
    pub(super) fn longest(self, block: &[u8]) -> Checked<u16> {
        Ok(self.decode(block)?.bestfree[0].length.get())
    }

    /// Whether there is no entry in a block of several.
    pub(super) fn is_empty(self, block: &[u8]) -> Checked<bool> {
        Ok(usize::from(self.longest(block)?) == block.len() - header_len(self.crc))
    }

    /// Makes it a block of several, or the only one.
    pub(super) fn set_kind(self, block: &mut [u8], only: bool) -> Checked<()> {
        let truncated = failed("hdr", Rule::Truncated);
        if self.crc {
            let (head, _) = RawDir3DataHdr::prefix_mut(block).ok_or(truncated)?;
            head.hdr.magic.set(if only { DIR3_BLOCK_MAGIC } else { DIR3_DATA_MAGIC });
        } else {
            let (head, _) = RawDir2DataHdr::prefix_mut(block).ok_or(truncated)?;
            head.magic.set(if only { DIR2_BLOCK_MAGIC } else { DIR2_DATA_MAGIC });
        }
        Ok(())
    }

    /// Brings the table of the longest unused ranges up to date; of those that are equally long, the first come first.
    pub(super) fn rescan(self, block: &mut [u8]) -> Checked<()> {
        let mut best = [(0_u16, 0_u16); 3];
        for item in self.decode(block)?.items() {
            let DirDataItem::Unused { offset, length, .. } = item? else { continue };
            let Some(at) = best.iter().position(|&(_, longest)| length > longest) else { continue };
            best[at..].rotate_right(1);
            best[at] = (offset, length);
        }
        let table = best.map(|(offset, length)| RawDirDataFree { offset: offset.into(), length: length.into() });
        let truncated = failed("hdr", Rule::Truncated);
        if self.crc {
            RawDir3DataHdr::prefix_mut(block).ok_or(truncated)?.0.best_free = table;
        } else {
            RawDir2DataHdr::prefix_mut(block).ok_or(truncated)?.0.bestfree = table;
        }
        Ok(())
    }

    /// Adds an entry at the start of the longest unused range: where it stands. `None`, and nothing has changed, when it does
    /// not fit.
    pub(super) fn add(self, block: &mut [u8], ino: u64, name: &[u8], ftype: u8) -> Checked<Option<u16>> {
        let best = self.decode(block)?.bestfree[0];
        let (offset, room) = (best.offset.get(), usize::from(best.length.get()));
        let len = self.entry_len(name);
        if len > room {
            return Ok(None);
        }
        let outside = failed("bestfree", Rule::Range);
        self.check_unused(block, usize::from(offset), room)?;
        put_entry(block, offset, ino, name, self.ftype.then_some(ftype)).ok_or(outside)?;
        if room > len {
            put_unused(block, short(usize::from(offset) + len)?, short(room - len)?).ok_or(outside)?;
        }
        self.rescan(block)?;
        Ok(Some(offset))
    }

    /// The table of the longest ranges must not lead into entries.
    fn check_unused(self, block: &[u8], at: usize, len: usize) -> Checked<()> {
        let found = block.get(at..).and_then(RawDirDataUnused::prefix);
        let fine = found.is_some_and(|(unused, _)| {
            unused.freetag.get() == DATA_FREE_TAG && usize::from(unused.length.get()) == len
        });
        if fine && at >= header_len(self.crc) { Ok(()) } else { Err(failed("bestfree", Rule::Mismatch)) }
    }

    /// The unused range that ends at `at`, if there is one: where it starts.
    fn unused_before(self, block: &[u8], at: usize) -> Checked<Option<usize>> {
        if at <= header_len(self.crc) {
            return Ok(None);
        }
        let broken = failed("tag", Rule::Range);
        let tag: &[u8; 2] = block.get(..at).and_then(|before| before.last_chunk()).ok_or(broken)?;
        let start = usize::from(u16::from_be_bytes(*tag));
        if start < header_len(self.crc) || start % DATA_ALIGN != 0 || start >= at {
            return Err(broken);
        }
        let (head, _) = RawDirDataUnused::prefix(&block[start..]).ok_or(broken)?;
        if head.freetag.get() != DATA_FREE_TAG {
            return Ok(None);
        }
        if start + usize::from(head.length.get()) == at {
            Ok(Some(start))
        } else {
            Err(failed("unused.length", Rule::Mismatch))
        }
    }

    /// Makes the bytes from `start` to before `end` unused, together with unused ranges beside them; entries and ranges end
    /// at `limit`.
    fn release(self, block: &mut [u8], start: usize, end: usize, limit: usize) -> Checked<()> {
        let first = self.unused_before(block, start)?.unwrap_or(start);
        let after = block.get(end..limit).and_then(RawDirDataUnused::prefix);
        let last = match after {
            Some((head, _)) if head.freetag.get() == DATA_FREE_TAG => end + usize::from(head.length.get()),
            _ => end,
        };
        if last > limit {
            return Err(failed("unused.length", Rule::Range));
        }
        put_unused(block, short(first)?, short(last - first)?).ok_or(failed("unused", Rule::Range))?;
        self.rescan(block)
    }

    /// Takes out the entry at `offset`.
    pub(super) fn remove(self, block: &mut [u8], offset: usize) -> Checked<()> {
        let data = self.decode(block)?;
        let len = self.entry_len(data.entry_at(offset)?.name);
        let limit = block.len() - leaf_len(&data);
        self.release(block, offset, offset + len, limit)
    }

    /// Lets the entry at `offset` name another inode.
    pub(super) fn replace(self, block: &mut [u8], offset: usize, ino: u64, ftype: u8) -> Checked<()> {
        let len = self.decode(block)?.entry_at(offset)?.name.len();
        let entry = block.get_mut(offset..).ok_or(failed("address", Rule::Range))?;
        let (head, rest) = RawDirDataEntry::prefix_mut(entry).ok_or(failed("address", Rule::Range))?;
        head.inumber.set(ino);
        if self.ftype {
            *rest.get_mut(len).ok_or(failed("entry.namelen", Rule::Truncated))? = ftype;
        }
        Ok(())
    }

    /// Moves the end of entries and ranges from `from` to `to`, downwards into an unused range at the end or upwards.
    /// `false`, and nothing has changed, when there is no room for it.
    pub(super) fn move_end(self, block: &mut [u8], from: usize, to: usize) -> Checked<bool> {
        if to > from {
            // what stands behind the old end belongs to nobody any more
            let start = self.unused_before(block, from)?.unwrap_or(from);
            put_unused(block, short(start)?, short(to - start)?).ok_or(failed("unused", Rule::Range))?;
            return Ok(true);
        }
        let Some(start) = self.unused_before(block, from)?.filter(|&start| start <= to) else { return Ok(from == to) };
        if to > start {
            put_unused(block, short(start)?, short(to - start)?).ok_or(failed("unused", Rule::Range))?;
        }
        Ok(true)
    }
}

/// Bytes of the leaf and the tail at the end of the only block; 0 in others.
pub(super) fn leaf_len(data: &DirData<'_>) -> usize {
    use crate::ondisk::dir_data::{DataKind, RawDirBlockTail};
    match data.kind {
        DataKind::Data => 0,
        DataKind::Block => RawDirBlockTail::SIZE + size_of_val(data.leaf),
    }
}

/// The unit of addresses in leaf entries.
pub(super) fn address_of(db: u32, offset: u16, blklog: u32) -> Option<u32> {
    let at = (u64::from(db) << blklog) + u64::from(offset);
    u32::try_from(at / DATA_ALIGN as u64).ok()
}

/// Lengths as tables have them.
pub(super) fn table(values: &[u16]) -> Vec<Be16> {
    values.iter().map(|&value| value.into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::encode::{BlockOwner, DirDataBuilder};
    use crate::geometry::samples::superblock;
    use crate::geometry::{Geometry, Ino};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const SHAPE: Shape = Shape { crc: true, ftype: true };

    fn empty() -> Vec<u8> {
        let geometry = Geometry::assume(&superblock("default"));
        DirDataBuilder::new(&geometry).into_data(&BlockOwner::new(&geometry, Ino(131))).0
    }

    proptest! {
        #[test]
        fn a_block_is_a_map_of_names(steps in prop::collection::vec((any::<bool>(), 0_usize..200, 1_usize..255), 1..300)) {
            let mut block = empty();
            let mut model = BTreeMap::new();
            for (add, pick, len) in steps {
                let name = vec![b'a'; len];
                if add {
                    let longest = SHAPE.longest(&block).expect("sound");
                    let added = SHAPE.add(&mut block, 128 + pick as u64, &name, 1).expect("sound");
                    prop_assert_eq!(added.is_some(), SHAPE.entry_len(&name) <= usize::from(longest));
                    if let Some(offset) = added {
                        prop_assert!(model.insert(offset, (128 + pick as u64, name)).is_none());
                    }
                } else if let Some(offset) = model.keys().nth(pick % model.len().max(1)).copied() {
                    SHAPE.replace(&mut block, usize::from(offset), 99, 2).expect("sound");
                    SHAPE.remove(&mut block, usize::from(offset)).expect("sound");
                    model.remove(&offset);
                }
                let data = SHAPE.decode(&block).expect("decodes");
                prop_assert_eq!(data.verify(), vec![]);
                let found: BTreeMap<_, _> = data.items().filter_map(|item| match item.expect("sound") {
                    DirDataItem::Entry(entry) => Some((entry.offset, (entry.inumber, entry.name.to_vec()))),
                    DirDataItem::Unused { .. } => None,
                }).collect();
                prop_assert_eq!(&found, &model);
                prop_assert_eq!(SHAPE.is_empty(&block).expect("sound"), model.is_empty());
            }
        }
    }
}
