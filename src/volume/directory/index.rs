//! The bytes of leaves and of blocks of the free index (Linux `libxfs/xfs_dir2_leaf.c`, `libxfs/xfs_dir2_node.c`).

use zerocopy::IntoBytes;

use super::data::table;
use crate::error::{Check, Error, Result, Rule};
use crate::ondisk::da_block::RawDaBlkinfo;
use crate::ondisk::dir_leaf::{
    DIR2_LEAF1_MAGIC, DIR2_LEAFN_MAGIC, DIR3_LEAF1_MAGIC, DIR3_LEAFN_MAGIC, DirFree, DirLeaf, NULL_DATAPTR,
    NULLDATAOFF, RawDir2FreeHdr, RawDir2LeafHdr, RawDir3FreeHdr, RawDir3LeafHdr, RawDirLeafEntry, RawDirLeafTail,
};
use crate::ondisk::{Be16, OnDisk};
use crate::volume::da_btree::Leaves;

/// Share of a leaf's bytes, in percent, below which it is looked at whether it can be merged with another.
const MERGE_BELOW: usize = 37;

fn full() -> Error {
    Error::Internal("a block of a directory's index is given more than it holds".to_owned())
}

/// The entries of a leaf, stale ones among them, as they are changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LeafEntries(pub(super) Vec<RawDirLeafEntry>);

impl LeafEntries {
    /// Entries that are not stale.
    pub(super) fn live(&self) -> usize {
        self.0.iter().filter(|entry| entry.address.get() != NULL_DATAPTR).count()
    }

    /// Entries that are.
    pub(super) fn stale(&self) -> usize {
        self.0.len() - self.live()
    }

    /// Drops all stale entries.
    pub(super) fn compact(&mut self) {
        self.0.retain(|entry| entry.address.get() != NULL_DATAPTR);
    }

    /// Adds an entry in its place; the nearest stale one gives way, so that little moves.
    pub(super) fn insert(&mut self, hash: u32, address: u32) {
        let entry = RawDirLeafEntry { hashval: hash.into(), address: address.into() };
        let at = self.0.partition_point(|entry| entry.hashval.get() < hash);
        let is_stale = |entry: &RawDirLeafEntry| entry.address.get() == NULL_DATAPTR;
        let low = self.0[..at].iter().rposition(is_stale);
        let high = self.0[at..].iter().position(is_stale).map(|found| at + found);
        match (low, high) {
            (Some(low), high) if high.is_none_or(|high| at - low - 1 <= high - at) => {
                self.0[low..at].rotate_left(1);
                self.0[at - 1] = entry;
            }
            (_, Some(high)) => {
                self.0[at..=high].rotate_right(1);
                self.0[at] = entry;
            }
            _ => self.0.insert(at, entry),
        }
    }

    /// Where the entry of this hash and address stands.
    pub(super) fn position(&self, hash: u32, address: u32) -> Option<usize> {
        let start = self.0.partition_point(|entry| entry.hashval.get() < hash);
        let same = self.0[start..].iter().take_while(|entry| entry.hashval.get() == hash);
        same.map(|entry| entry.address.get()).position(|found| found == address).map(|found| start + found)
    }

    /// Makes the entry stale. `false` when it is not there.
    pub(super) fn remove(&mut self, hash: u32, address: u32) -> bool {
        let Some(at) = self.position(hash, address) else { return false };
        self.0[at].address.set(NULL_DATAPTR);
        true
    }

    /// Addresses of the live entries of a hash.
    pub(super) fn addresses(&self, hash: u32) -> impl Iterator<Item = u32> + '_ {
        let start = self.0.partition_point(|entry| entry.hashval.get() < hash);
        let same = self.0[start..].iter().take_while(move |entry| entry.hashval.get() == hash);
        same.map(|entry| entry.address.get()).filter(|&address| address != NULL_DATAPTR)
    }

    /// The greatest hash.
    pub(super) fn last_hash(&self) -> u32 {
        self.0.last().map_or(0, |entry| entry.hashval.get())
    }
}

/// A leaf as it is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) entries: LeafEntries,
    /// Longest unused range of each data block, in the only leaf.
    pub(super) bests: Vec<u16>,
}

/// Bytes of a leaf's header.
pub(super) const fn leaf_header_len(crc: bool) -> usize {
    if crc { RawDir3LeafHdr::SIZE } else { RawDir2LeafHdr::SIZE }
}

impl Leaf {
    pub(super) fn decode(block: &[u8], crc: bool) -> std::result::Result<Self, Check> {
        let leaf = DirLeaf::decode(block, crc)?;
        let bests = leaf.bests.iter().map(|best| best.get()).collect();
        Ok(Leaf { entries: LeafEntries(leaf.entries.to_vec()), bests })
    }

    /// Bytes that the only leaf needs for so many entries and data blocks.
    pub(super) fn only_len(crc: bool, entries: usize, bests: usize) -> usize {
        leaf_header_len(crc) + entries * RawDirLeafEntry::SIZE + bests * size_of::<Be16>() + RawDirLeafTail::SIZE
    }

    /// Stores it in its block. What lies between entries and table has no meaning.
    pub(super) fn store(&self, block: &mut [u8], crc: bool) -> Result<()> {
        let entries = &self.entries.0[..];
        let count = Be16::new(u16::try_from(entries.len()).map_err(|_| full())?);
        let stale = Be16::new(u16::try_from(self.entries.stale()).map_err(|_| full())?);
        let only = is_only(block);
        let rest = if crc {
            let (head, rest) = RawDir3LeafHdr::prefix_mut(block).ok_or_else(full)?;
            (head.count, head.stale) = (count, stale);
            rest
        } else {
            let (head, rest) = RawDir2LeafHdr::prefix_mut(block).ok_or_else(full)?;
            (head.count, head.stale) = (count, stale);
            rest
        };
        let place = rest.get_mut(..size_of_val(entries)).ok_or_else(full)?;
        place.copy_from_slice(entries.as_bytes());
        if only {
            if Self::only_len(crc, entries.len(), self.bests.len()) > block.len() {
                return Err(full());
            }
            self.store_bests(block)?;
        }
        Ok(())
    }

    fn store_bests(&self, block: &mut [u8]) -> Result<()> {
        let table = table(&self.bests);
        let tail = block.len().checked_sub(RawDirLeafTail::SIZE).ok_or_else(full)?;
        let start = tail.checked_sub(size_of_val(&table[..])).ok_or_else(full)?;
        block[start..tail].copy_from_slice(table.as_bytes());
        let bestcount = u32::try_from(table.len()).map_err(|_| full())?.into();
        block[tail..].copy_from_slice(RawDirLeafTail { bestcount }.as_bytes());
        Ok(())
    }
}

fn is_only(block: &[u8]) -> bool {
    RawDaBlkinfo::prefix(block).is_some_and(|(info, _)| matches!(info.magic.get(), DIR2_LEAF1_MAGIC | DIR3_LEAF1_MAGIC))
}

/// Makes a leaf the only one, or one of several.
pub(super) fn set_leaf_kind(block: &mut [u8], crc: bool, only: bool) {
    if let Some((info, _)) = RawDaBlkinfo::prefix_mut(block) {
        info.magic.set(match (only, crc) {
            (true, true) => DIR3_LEAF1_MAGIC,
            (true, false) => DIR2_LEAF1_MAGIC,
            (false, true) => DIR3_LEAFN_MAGIC,
            (false, false) => DIR2_LEAFN_MAGIC,
        });
    }
}

/// Leaves below nodes.
pub(super) struct DirLeaves {
    pub(super) crc: bool,
}

impl DirLeaves {
    fn entries(&self, leaf: &[u8]) -> Result<LeafEntries> {
        let leaf = Leaf::decode(leaf, self.crc).map_err(|check| Error::corrupt(check, Default::default()))?;
        Ok(leaf.entries)
    }

    /// Whether a leaf has so few entries that it may be merged with another.
    pub(super) fn is_small(&self, leaf: &LeafEntries, size: usize) -> bool {
        leaf_header_len(self.crc) + leaf.live() * RawDirLeafEntry::SIZE < size * MERGE_BELOW / 100
    }
}

impl Leaves for DirLeaves {
    fn is_empty(&self, leaf: &[u8]) -> Result<bool> {
        Ok(self.entries(leaf)?.live() == 0)
    }

    fn is_sparse(&self, leaf: &[u8]) -> Result<bool> {
        let used = leaf_header_len(self.crc) + self.entries(leaf)?.live() * RawDirLeafEntry::SIZE;
        Ok(used <= leaf.len() / 2)
    }

    fn fit_in_one(&self, a: &[u8], b: &[u8]) -> Result<bool> {
        let count = self.entries(a)?.live() + self.entries(b)?.live();
        Ok(count * RawDirLeafEntry::SIZE <= a.len() - a.len() / 4)
    }

    fn merge(&self, first: &[u8], second: &[u8], into: &mut Vec<u8>) -> Result<()> {
        let mut entries = self.entries(first)?;
        entries.0.extend(self.entries(second)?.0);
        entries.compact();
        Leaf { entries, bests: Vec::new() }.store(into, self.crc)
    }

    fn last_hash(&self, leaf: &[u8]) -> Result<u32> {
        Ok(self.entries(leaf)?.last_hash())
    }
}

/// A block of the free index as it is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Free {
    pub(super) firstdb: u32,
    pub(super) bests: Vec<u16>,
}

impl Free {
    pub(super) fn decode(block: &[u8], crc: bool) -> std::result::Result<Self, Check> {
        let free = DirFree::decode(block, crc)?;
        Ok(Free { firstdb: free.firstdb, bests: free.bests.iter().map(|best| best.get()).collect() })
    }

    /// How many of its data blocks there are.
    pub(super) fn used(&self) -> usize {
        self.bests.iter().filter(|&&best| best != NULLDATAOFF).count()
    }

    /// Where a data block stands in the table.
    pub(super) fn index_of(&self, db: u32) -> std::result::Result<usize, Check> {
        let index = db.checked_sub(self.firstdb).and_then(|index| usize::try_from(index).ok());
        index.ok_or(Check::new("dir2_free", "firstdb", Rule::Mismatch))
    }

    /// Notes the longest unused range of a data block, or that it has gone.
    pub(super) fn set(&mut self, db: u32, best: u16) -> std::result::Result<(), Check> {
        let index = self.index_of(db)?;
        if index >= self.bests.len() && best != NULLDATAOFF {
            self.bests.resize(index + 1, NULLDATAOFF);
        }
        if let Some(slot) = self.bests.get_mut(index) {
            *slot = best;
        }
        trim(&mut self.bests);
        Ok(())
    }

    /// Stores it in its block.
    pub(super) fn store(&self, block: &mut [u8], crc: bool) -> Result<()> {
        let nvalid = u32::try_from(self.bests.len()).map_err(|_| full())?.into();
        let nused = u32::try_from(self.used()).map_err(|_| full())?.into();
        let rest = if crc {
            let (head, rest) = RawDir3FreeHdr::prefix_mut(block).ok_or_else(full)?;
            (head.nvalid, head.nused) = (nvalid, nused);
            rest
        } else {
            let (head, rest) = RawDir2FreeHdr::prefix_mut(block).ok_or_else(full)?;
            (head.nvalid, head.nused) = (nvalid, nused);
            rest
        };
        let table = table(&self.bests);
        rest.get_mut(..size_of_val(&table[..])).ok_or_else(full)?.copy_from_slice(table.as_bytes());
        Ok(())
    }
}

/// A table of data blocks ends with one that exists.
pub(super) fn trim(bests: &mut Vec<u16>) {
    let end = bests.iter().rposition(|&best| best != NULLDATAOFF).map_or(0, |last| last + 1);
    bests.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_are_a_sorted_multiset(steps in prop::collection::vec((0_u32..4, 0_u32..30, 1_u32..30), 1..200)) {
            let mut entries = LeafEntries::default();
            let mut model = std::collections::BTreeSet::new();
            for (action, hash, address) in steps {
                match action {
                    0 | 1 => {
                        let before = entries.0.len();
                        let stale = entries.stale();
                        if model.insert((hash, address)) {
                            entries.insert(hash, address);
                            prop_assert_eq!(entries.0.len(), before + usize::from(stale == 0));
                        }
                    }
                    2 => prop_assert_eq!(entries.remove(hash, address), model.remove(&(hash, address))),
                    _ if address == 1 => entries.compact(),
                    _ => {}
                }
                prop_assert!(entries.0.windows(2).all(|pair| pair[0].hashval.get() <= pair[1].hashval.get()));
                let mut live: Vec<_> = (entries.0.iter())
                    .map(|entry| (entry.hashval.get(), entry.address.get()))
                    .filter(|entry| entry.1 != NULL_DATAPTR)
                    .collect();
                live.sort_unstable();
                prop_assert_eq!(live, model.iter().copied().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_free_index_ends_with_a_block_that_exists() {
        let mut free = Free { firstdb: 10, bests: vec![8, NULLDATAOFF, 16] };
        free.set(14, 24).expect("in the table");
        assert_eq!(free.bests, [8, NULLDATAOFF, 16, NULLDATAOFF, 24]);
        free.set(14, NULLDATAOFF).expect("in the table");
        free.set(12, NULLDATAOFF).expect("in the table");
        assert_eq!((free.used(), &free.bests[..]), (1, &[8][..]));
        assert!(free.set(9, 8).is_err());
    }
}
