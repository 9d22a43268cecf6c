//! Blocks of directory entries: the data blocks of larger directories, and the single block that has entries and
//! leaf in one (Linux `fs/xfs/libxfs/xfs_da_format.h`, `xfs_dir2_data.c`, `xfs_dir2_block.c`).

use crate::error::{Check, Rule};
use crate::ondisk::dir_leaf::RawDirLeafEntry;
use crate::ondisk::{Be16, Be32, Be64, Le32, OnDisk, RawUuid};
use zerocopy::IntoBytes;

/// Magic number of a single-block directory, v4: `XD2B`.
pub const DIR2_BLOCK_MAGIC: u32 = 0x5844_3242;
/// Magic number of a data block, v4: `XD2D`.
pub const DIR2_DATA_MAGIC: u32 = 0x5844_3244;
/// Magic number of a single-block directory, v5: `XDB3`.
pub const DIR3_BLOCK_MAGIC: u32 = 0x5844_4233;
/// Magic number of a data block, v5: `XDD3`.
pub const DIR3_DATA_MAGIC: u32 = 0x5844_4433;
/// First field of an unused range.
pub const DATA_FREE_TAG: u16 = 0xffff;
/// Entries and unused ranges start at multiples of this many bytes.
pub const DATA_ALIGN: usize = 8;
/// Longest name in bytes.
pub const MAXNAMELEN: usize = 255;

/// File types of directory entries.
pub mod ftype {
    /// Not known.
    pub const UNKNOWN: u8 = 0;
    /// Regular file.
    pub const REG_FILE: u8 = 1;
    /// Directory.
    pub const DIR: u8 = 2;
    /// Character device.
    pub const CHRDEV: u8 = 3;
    /// Block device.
    pub const BLKDEV: u8 = 4;
    /// Named pipe.
    pub const FIFO: u8 = 5;
    /// Socket.
    pub const SOCK: u8 = 6;
    /// Symbolic link.
    pub const SYMLINK: u8 = 7;
    /// Whiteout of a union mount.
    pub const WHT: u8 = 8;
    /// First value that has no meaning.
    pub const MAX: u8 = 9;
}

ondisk! {
    /// One of the largest unused ranges of a data block (`xfs_dir2_data_free`).
    pub struct RawDirDataFree("dir2_data_free"): 4 {
        /// Where it starts in the block, in bytes.
        0 => offset: Be16,
        /// Its length in bytes.
        2 => length: Be16,
    }
}

ondisk! {
    /// Header of a data block, v4 (`xfs_dir2_data_hdr`).
    pub struct RawDir2DataHdr("dir2_data_hdr"): 16 {
        /// Magic number.
        0 => magic: Be32,
        /// The three largest unused ranges, longest first.
        4 => bestfree: [RawDirDataFree; 3],
    }
}

ondisk! {
    /// Magic number and identity of data and free blocks, v5 (`xfs_dir3_blk_hdr`).
    pub struct RawDir3BlkHdr("dir3_blk_hdr"): 48 {
        /// Magic number.
        0 => magic: Be32,
        /// CRC of the block.
        4 => crc: Le32,
        /// Own disk address, in 512-byte units.
        8 => blkno: Be64,
        /// LSN of the last write.
        16 => lsn: Be64,
        /// UUID of the filesystem.
        24 => uuid: RawUuid,
        /// Inode that owns the block.
        40 => owner: Be64,
    }
}

ondisk! {
    /// Header of a data block, v5 (`xfs_dir3_data_hdr`).
    pub struct RawDir3DataHdr("dir3_data_hdr"): 64 {
        /// Magic number and identity.
        0 => hdr: RawDir3BlkHdr,
        /// The three largest unused ranges, longest first.
        48 => best_free: [RawDirDataFree; 3],
        /// Unused.
        60 => pad: Be32,
    }
}

ondisk! {
    /// Start of an entry; name, file type byte (with the ftype feature), padding and the tag follow
    /// (`xfs_dir2_data_entry`).
    pub struct RawDirDataEntry("dir2_data_entry"): 9 {
        /// Inode number.
        0 => inumber: Be64,
        /// Bytes of the name.
        8 => namelen: u8,
    }
}

ondisk! {
    /// Start of an unused range; its last two bytes are the tag (`xfs_dir2_data_unused`).
    pub struct RawDirDataUnused("dir2_data_unused"): 4 {
        /// [`DATA_FREE_TAG`].
        0 => freetag: Be16,
        /// Length of the range in bytes, header and tag included.
        2 => length: Be16,
    }
}

ondisk! {
    /// Last bytes of a single-block directory; the leaf entries stand before them (`xfs_dir2_block_tail`).
    pub struct RawDirBlockTail("dir2_block_tail"): 8 {
        /// Leaf entries, stale ones included.
        0 => count: Be32,
        /// Leaf entries that are stale.
        4 => stale: Be32,
    }
}

impl RawDir3BlkHdr {
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = std::mem::offset_of!(RawDir3BlkHdr, crc);
}

/// Which kind of block holds the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// The only block of its directory: leaf entries and a tail at the end.
    Block,
    /// One of several.
    Data,
}

/// A block of entries.
#[derive(Clone, Copy, Debug)]
pub struct DirData<'a> {
    /// Its kind.
    pub kind: DataKind,
    /// The three largest unused ranges.
    pub bestfree: &'a [RawDirDataFree; 3],
    /// The leaf entries of a [`DataKind::Block`], sorted by hash; none for others.
    pub leaf: &'a [RawDirLeafEntry],
    /// How many of the leaf entries are stale, as the tail has it.
    pub stale: u32,
    block: &'a [u8],
    first: usize,
    end: usize,
    ftype: bool,
}

/// Bytes of the header of a data block, and so the offset of its first entry.
pub const fn header_len(crc: bool) -> usize {
    if crc { RawDir3DataHdr::SIZE } else { RawDir2DataHdr::SIZE }
}

/// Bytes that an entry with a name of `namelen` bytes takes.
pub const fn entry_len(namelen: usize, ftype: bool) -> usize {
    (RawDirDataEntry::SIZE + namelen + ftype as usize + TAG_LEN).next_multiple_of(DATA_ALIGN)
}

/// The tag at the end of entries and unused ranges: their own offset in 16 bits.
const TAG_LEN: usize = size_of::<Be16>();

const fn failed(field: &'static str, rule: Rule) -> Check {
    Check::new("dir2_data", field, rule)
}

impl<'a> DirData<'a> {
    /// Decodes the frame of the directory block in `block` (the whole directory block), which has the v5 header when
    /// `crc` is set, and whose entries have a file type byte when `ftype` is.
    ///
    /// # Errors
    /// The check that the frame fails: magic number, a block too short, or more leaf entries than fit.
    pub fn decode(block: &'a [u8], crc: bool, ftype: bool) -> Result<Self, Check> {
        let (magic, bestfree) = if crc {
            let (hdr, _) = RawDir3DataHdr::prefix(block).ok_or(failed("hdr", Rule::Truncated))?;
            (hdr.hdr.magic.get(), &hdr.best_free)
        } else {
            let (hdr, _) = RawDir2DataHdr::prefix(block).ok_or(failed("hdr", Rule::Truncated))?;
            (hdr.magic.get(), &hdr.bestfree)
        };
        let first = header_len(crc);
        let (kind, leaf, stale) = match (magic, crc) {
            (DIR2_DATA_MAGIC, false) | (DIR3_DATA_MAGIC, true) => (DataKind::Data, &[][..], 0),
            (DIR2_BLOCK_MAGIC, false) | (DIR3_BLOCK_MAGIC, true) => {
                let (leaf, stale) = block_leaf(block, first)?;
                (DataKind::Block, leaf, stale)
            }
            _ => return Err(failed("magic", Rule::Magic)),
        };
        let end = match kind {
            DataKind::Data => block.len(),
            DataKind::Block => block.len() - RawDirBlockTail::SIZE - size_of_val(leaf),
        };
        Ok(DirData { kind, bestfree, leaf, stale, block, first, end, ftype })
    }

    /// Entries and unused ranges in order. One that cannot be decoded ends them with its check.
    pub fn items(&self) -> DirDataItems<'a> {
        DirDataItems { block: self.block, at: self.first, end: self.end, ftype: self.ftype }
    }

    /// The entry at `offset` of the block, as a leaf entry points to it.
    ///
    /// # Errors
    /// When nothing that could be an entry lies there.
    pub fn entry_at(&self, offset: usize) -> Result<DirDataEntry<'a>, Check> {
        if offset < self.first || offset % DATA_ALIGN != 0 {
            return Err(failed("address", Rule::Range));
        }
        let mut items = DirDataItems { block: self.block, at: offset, end: self.end, ftype: self.ftype };
        match items.next() {
            Some(Ok(DirDataItem::Entry(entry))) => Ok(entry),
            Some(Err(check)) => Err(check),
            Some(Ok(DirDataItem::Unused { .. })) => Err(failed("address", Rule::Mismatch)),
            None => Err(failed("address", Rule::Range)),
        }
    }

    /// The checks of Linux's verifier on the contents: every item, and the table of the largest unused ranges.
    pub fn verify(&self) -> Vec<Check> {
        let mut failures = Vec::new();
        let mut free = Vec::new();
        let mut after_unused = false;
        for item in self.items() {
            match item {
                Err(check) => {
                    failures.push(check);
                    return failures;
                }
                Ok(DirDataItem::Unused { offset, length, tag }) => {
                    if after_unused {
                        failures.push(failed("unused", Rule::Order));
                    }
                    if tag != offset {
                        failures.push(failed("unused.tag", Rule::Mismatch));
                    }
                    after_unused = true;
                    free.push((offset, length));
                }
                Ok(DirDataItem::Entry(entry)) => {
                    after_unused = false;
                    if entry.tag != entry.offset {
                        failures.push(failed("tag", Rule::Mismatch));
                    }
                }
            }
        }
        self.verify_bestfree(&free, &mut failures);
        failures
    }

    /// The table must name ranges that exist, longest first, and no range that it omits may be longer.
    fn verify_bestfree(&self, free: &[(u16, u16)], failures: &mut Vec<Check>) {
        let table = self.bestfree.map(|best| (best.offset.get(), best.length.get()));
        if table.windows(2).any(|pair| pair[0].1 < pair[1].1) {
            failures.push(failed("bestfree", Rule::Order));
        }
        if table.iter().any(|best| best.1 != 0 && !free.contains(best) || best.1 == 0 && best.0 != 0) {
            failures.push(failed("bestfree", Rule::Mismatch));
        }
        let shortest = table.map(|best| best.1).into_iter().min().unwrap_or(0);
        if free.iter().any(|range| range.1 > shortest && !table.contains(range)) {
            failures.push(failed("bestfree", Rule::Range));
        }
    }
}

/// Leaf entries and the number of stale ones of a single-block directory whose entries start at `first`.
fn block_leaf(block: &[u8], first: usize) -> Result<(&[RawDirLeafEntry], u32), Check> {
    let at = block.len().checked_sub(RawDirBlockTail::SIZE).ok_or(failed("tail", Rule::Truncated))?;
    let (tail, _) = RawDirBlockTail::prefix(&block[at..]).ok_or(failed("tail", Rule::Truncated))?;
    let too_many = failed("tail.count", Rule::Count);
    let count = usize::try_from(tail.count.get()).map_err(|_| too_many)?;
    let bytes = count.checked_mul(RawDirLeafEntry::SIZE).ok_or(too_many)?;
    let start = at.checked_sub(bytes).filter(|&start| start >= first).ok_or(too_many)?;
    let (leaf, _) = RawDirLeafEntry::prefix_slice(&block[start..at], count).ok_or(too_many)?;
    if tail.stale.get() > tail.count.get() {
        return Err(failed("tail.stale", Rule::Range));
    }
    Ok((leaf, tail.stale.get()))
}

/// An entry of a data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirDataEntry<'a> {
    /// Where it stands in the block, in bytes.
    pub offset: u16,
    /// Inode number.
    pub inumber: u64,
    /// The name.
    pub name: &'a [u8],
    /// The file type byte, with the ftype feature.
    pub ftype: Option<u8>,
    /// Its own offset, as its last two bytes have it.
    pub tag: u16,
}

/// What a data block holds after its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirDataItem<'a> {
    /// An entry.
    Entry(DirDataEntry<'a>),
    /// An unused range.
    Unused {
        /// Where it starts, in bytes.
        offset: u16,
        /// Its length in bytes.
        length: u16,
        /// Its own offset, as its last two bytes have it.
        tag: u16,
    },
}

/// Iterator of [`DirData::items`].
#[derive(Clone, Debug)]
pub struct DirDataItems<'a> {
    block: &'a [u8],
    at: usize,
    end: usize,
    ftype: bool,
}

impl<'a> DirDataItems<'a> {
    fn take(&mut self) -> Result<DirDataItem<'a>, Check> {
        let rest = &self.block[self.at..self.end];
        let offset = u16::try_from(self.at).map_err(|_| failed("hdr", Rule::Range))?;
        let (unused, _) = RawDirDataUnused::prefix(rest).ok_or(failed("unused", Rule::Truncated))?;
        if unused.freetag.get() == DATA_FREE_TAG {
            let length = unused.length.get();
            let len = usize::from(length);
            if len == 0 || len % DATA_ALIGN != 0 {
                return Err(failed("unused.length", Rule::Range));
            }
            let range = rest.get(..len).ok_or(failed("unused.length", Rule::Truncated))?;
            self.at += len;
            return Ok(DirDataItem::Unused { offset, length, tag: tag_of(range) });
        }
        let (head, _) = RawDirDataEntry::prefix(rest).ok_or(failed("entry", Rule::Truncated))?;
        if head.namelen == 0 {
            return Err(failed("entry.namelen", Rule::Range));
        }
        let namelen = usize::from(head.namelen);
        let len = entry_len(namelen, self.ftype);
        let entry = rest.get(..len).ok_or(failed("entry.namelen", Rule::Truncated))?;
        let (name, after) = entry[RawDirDataEntry::SIZE..].split_at(namelen);
        self.at += len;
        Ok(DirDataItem::Entry(DirDataEntry {
            offset,
            inumber: head.inumber.get(),
            name,
            ftype: self.ftype.then_some(after[0]),
            tag: tag_of(entry),
        }))
    }
}

/// The tag at the end of `item`, which is at least 8 bytes long.
fn tag_of(item: &[u8]) -> u16 {
    item.last_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

impl<'a> Iterator for DirDataItems<'a> {
    type Item = Result<DirDataItem<'a>, Check>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let item = self.take();
        if item.is_err() {
            self.at = self.end;
        }
        Some(item)
    }
}

/// Writes an entry at `offset` of `block`, its tag included; the padding becomes zero. Returns the bytes that it takes.
///
/// Returns `None`, and writes nothing, when it does not fit or the name has not 1 to 255 bytes.
pub fn put_entry(block: &mut [u8], offset: u16, inumber: u64, name: &[u8], ftype: Option<u8>) -> Option<usize> {
    let namelen = u8::try_from(name.len()).ok().filter(|&len| len > 0)?;
    let len = entry_len(name.len(), ftype.is_some());
    let entry = block.get_mut(usize::from(offset)..)?.get_mut(..len)?;
    entry.fill(0);
    let (head, rest) = RawDirDataEntry::prefix_mut(entry)?;
    *head = RawDirDataEntry { inumber: inumber.into(), namelen };
    rest[..name.len()].copy_from_slice(name);
    if let Some(byte) = ftype {
        rest[name.len()] = byte;
    }
    *entry.last_chunk_mut()? = offset.to_be_bytes();
    Some(len)
}

/// Marks `length` bytes at `offset` of `block` as unused: tag and length at the start, the offset at the end.
///
/// Returns `None`, and writes nothing, when the range is not in the block or not a multiple of 8 bytes.
pub fn put_unused(block: &mut [u8], offset: u16, length: u16) -> Option<()> {
    let range = block.get_mut(usize::from(offset)..)?.get_mut(..usize::from(length))?;
    if range.is_empty() || range.len() % DATA_ALIGN != 0 {
        return None;
    }
    let head = RawDirDataUnused { freetag: DATA_FREE_TAG.into(), length: length.into() };
    range[..RawDirDataUnused::SIZE].copy_from_slice(head.as_bytes());
    *range.last_chunk_mut()? = offset.to_be_bytes();
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(crc: bool, size: usize) -> Vec<u8> {
        let mut block = vec![0; size];
        let magic = if crc { DIR3_DATA_MAGIC } else { DIR2_DATA_MAGIC };
        block[..4].copy_from_slice(&magic.to_be_bytes());
        block
    }

    #[derive(Clone, Debug)]
    enum Put {
        Entry(u64, Vec<u8>, u8),
        Unused(u16),
    }

    fn puts() -> impl Strategy<Value = Vec<Put>> {
        let entry =
            (any::<u64>().prop_map(|ino| ino >> 8), proptest::collection::vec(any::<u8>(), 1..256), any::<u8>())
                .prop_map(|(ino, name, ftype)| Put::Entry(ino, name, ftype));
        proptest::collection::vec(prop_oneof![entry, (1u16..40).prop_map(|n| Put::Unused(n * 8))], 1..12)
    }

    proptest! {
        #[test]
        fn decode_inverts_encode(puts in puts(), crc: bool, ftype: bool) {
            let mut block = frame(crc, 8192);
            let mut at = header_len(crc);
            for put in &puts {
                let offset = u16::try_from(at).expect("invariant: small block");
                at += match put {
                    Put::Entry(ino, name, byte) => {
                        put_entry(&mut block, offset, *ino, name, ftype.then_some(*byte)).expect("fits")
                    }
                    Put::Unused(length) => {
                        put_unused(&mut block, offset, *length).expect("fits");
                        usize::from(*length)
                    }
                };
            }
            block.truncate(at);
            let data = DirData::decode(&block, crc, ftype).expect("decodable");
            let items: Result<Vec<_>, _> = data.items().collect();
            let items = items.expect("sound items");
            prop_assert_eq!(items.len(), puts.len());
            for (item, put) in items.iter().zip(&puts) {
                match (item, put) {
                    (DirDataItem::Entry(entry), Put::Entry(ino, name, byte)) => {
                        prop_assert_eq!((entry.inumber, entry.name), (*ino, name.as_slice()));
                        prop_assert_eq!((entry.ftype, entry.tag), (ftype.then_some(*byte), entry.offset));
                        prop_assert_eq!(data.entry_at(usize::from(entry.offset)), Ok(*entry));
                    }
                    (DirDataItem::Unused { offset, length, tag }, Put::Unused(put)) => {
                        prop_assert_eq!((length, tag), (put, offset));
                        prop_assert!(data.entry_at(usize::from(*offset)).is_err());
                    }
                    _ => prop_assert!(false, "{item:?} is not {put:?}"),
                }
            }
        }

        #[test]
        fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..600), kind in 0u8..4, ftype: bool, at in 0usize..700) {
            let (magic, crc) = [
                (DIR2_DATA_MAGIC, false), (DIR3_DATA_MAGIC, true), (DIR2_BLOCK_MAGIC, false), (DIR3_BLOCK_MAGIC, true),
            ][usize::from(kind)];
            if let Some(start) = bytes.first_chunk_mut() {
                *start = magic.to_be_bytes();
            }
            if let Some(tail) = bytes.last_chunk_mut::<8>() {
                *tail = [0, 0, 0, tail[3] % 80, 0, 0, 0, 0];
            }
            if let Ok(data) = DirData::decode(&bytes, crc, ftype) {
                let _ = (data.items().count(), data.verify(), data.entry_at(at));
            }
        }
    }

    #[test]
    fn the_best_free_table_is_checked() {
        let mut block = frame(true, 512);
        put_entry(&mut block, 64, 128, b".", Some(ftype::DIR)).expect("fits");
        put_unused(&mut block, 80, 432).expect("fits");
        let broken = |block: &[u8]| DirData::decode(block, true, true).expect("decodable").verify();
        assert_eq!(broken(&block), [failed("bestfree", Rule::Range)]);
        let (hdr, _) = RawDir3DataHdr::prefix_mut(&mut block).expect("long enough");
        hdr.best_free[0] = RawDirDataFree { offset: 80.into(), length: 432.into() };
        assert_eq!(broken(&block), []);
        let (hdr, _) = RawDir3DataHdr::prefix_mut(&mut block).expect("long enough");
        hdr.best_free[1] = RawDirDataFree { offset: 88.into(), length: 400.into() };
        assert_eq!(broken(&block), [failed("bestfree", Rule::Mismatch)]);
    }

    #[test]
    fn more_leaf_entries_than_fit_are_refused() {
        let mut block = frame(false, 256);
        block[..4].copy_from_slice(&DIR2_BLOCK_MAGIC.to_be_bytes());
        for (count, fits) in [(0u32, true), (29, true), (30, false), (u32::MAX, false)] {
            let at = block.len() - RawDirBlockTail::SIZE;
            block[at..].copy_from_slice(RawDirBlockTail { count: count.into(), stale: 0.into() }.as_bytes());
            assert_eq!(DirData::decode(&block, false, false).is_ok(), fits, "{count}");
        }
    }
}
