//! The hash index of directories: leaves, and the blocks that index the free space of the data blocks
//! (Linux `fs/xfs/libxfs/xfs_da_format.h`, `xfs_dir2_leaf.c`, `xfs_dir2_node.c`).

use crate::error::{Check, Rule};
use crate::ondisk::da_block::{RawDa3Blkinfo, RawDaBlkinfo};
use crate::ondisk::dir_data::RawDir3BlkHdr;
use crate::ondisk::{Be16, Be32, OnDisk};

/// Magic number of the only leaf of a directory, v4.
pub const DIR2_LEAF1_MAGIC: u16 = 0xd2f1;
/// Magic number of one leaf of several, v4.
pub const DIR2_LEAFN_MAGIC: u16 = 0xd2ff;
/// Magic number of the only leaf of a directory, v5.
pub const DIR3_LEAF1_MAGIC: u16 = 0x3df1;
/// Magic number of one leaf of several, v5.
pub const DIR3_LEAFN_MAGIC: u16 = 0x3dff;
/// Magic number of a free index block, v4: `XD2F`.
pub const DIR2_FREE_MAGIC: u32 = 0x5844_3246;
/// Magic number of a free index block, v5: `XDF3`.
pub const DIR3_FREE_MAGIC: u32 = 0x5844_4633;
/// Address of a stale leaf entry.
pub const NULL_DATAPTR: u32 = 0;
/// Best free length of a data block that does not exist.
pub const NULLDATAOFF: u16 = 0xffff;
/// A directory's file has three spaces of this many bytes: data blocks, leaves and nodes, free index blocks.
pub const SPACE_SIZE: u64 = 1 << 35;

ondisk! {
    /// Header of a leaf, v4 (`xfs_dir2_leaf_hdr`).
    pub struct RawDir2LeafHdr("dir2_leaf_hdr"): 16 {
        /// Links and magic number.
        0 => info: RawDaBlkinfo,
        /// Entries, stale ones included.
        12 => count: Be16,
        /// Entries that are stale.
        14 => stale: Be16,
    }
}

ondisk! {
    /// Header of a leaf, v5 (`xfs_dir3_leaf_hdr`).
    pub struct RawDir3LeafHdr("dir3_leaf_hdr"): 64 {
        /// Links, magic number, identity.
        0 => info: RawDa3Blkinfo,
        /// Entries, stale ones included.
        56 => count: Be16,
        /// Entries that are stale.
        58 => stale: Be16,
        /// Unused.
        60 => pad: Be32,
    }
}

ondisk! {
    /// Leaf entry (`xfs_dir2_leaf_entry`).
    pub struct RawDirLeafEntry("dir2_leaf_entry"): 8 {
        /// Hash of the name.
        0 => hashval: Be32,
        /// Where the entry stands in the directory's data space, in units of 8 bytes; 0 when stale.
        4 => address: Be32,
    }
}

ondisk! {
    /// Last bytes of the only leaf of a directory; the table of best free lengths stands before them
    /// (`xfs_dir2_leaf_tail`).
    pub struct RawDirLeafTail("dir2_leaf_tail"): 4 {
        /// Entries of the table, one for each data block.
        0 => bestcount: Be32,
    }
}

ondisk! {
    /// Header of a free index block, v4 (`xfs_dir2_free_hdr`).
    pub struct RawDir2FreeHdr("dir2_free_hdr"): 16 {
        /// Magic number.
        0 => magic: Be32,
        /// Data block (in directory blocks) of the first entry.
        4 => firstdb: Be32,
        /// Entries of the table.
        8 => nvalid: Be32,
        /// Entries whose data block exists.
        12 => nused: Be32,
    }
}

ondisk! {
    /// Header of a free index block, v5 (`xfs_dir3_free_hdr`).
    pub struct RawDir3FreeHdr("dir3_free_hdr"): 64 {
        /// Magic number and identity.
        0 => hdr: RawDir3BlkHdr,
        /// Data block (in directory blocks) of the first entry.
        48 => firstdb: Be32,
        /// Entries of the table.
        52 => nvalid: Be32,
        /// Entries whose data block exists.
        56 => nused: Be32,
        /// Unused.
        60 => pad: Be32,
    }
}

/// Whether a leaf is the only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// The only leaf, with the table of best free lengths at its end.
    Leaf1,
    /// One of several, below inner nodes.
    LeafN,
}

/// A directory leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirLeaf<'a> {
    /// Its kind.
    pub kind: LeafKind,
    /// The next leaf; 0 for none.
    pub forw: u32,
    /// The leaf before it; 0 for none.
    pub back: u32,
    /// How many entries are stale, as the header has it.
    pub stale: u16,
    /// The entries, sorted by hash.
    pub entries: &'a [RawDirLeafEntry],
    /// Longest unused range of each data block in bytes ([`LeafKind::Leaf1`] only).
    pub bests: &'a [Be16],
}

const fn failed(field: &'static str, rule: Rule) -> Check {
    Check::new("dir2_leaf", field, rule)
}

impl<'a> DirLeaf<'a> {
    /// Decodes the leaf in `block` (the whole directory block), which has the v5 header when `crc` is set.
    ///
    /// # Errors
    /// The check that it fails: magic number, or counts that the block cannot hold.
    pub fn decode(block: &'a [u8], crc: bool) -> Result<Self, Check> {
        let truncated = failed("hdr", Rule::Truncated);
        let (info, count, stale, rest) = if crc {
            let (hdr, rest) = RawDir3LeafHdr::prefix(block).ok_or(truncated)?;
            (&hdr.info.hdr, hdr.count, hdr.stale.get(), rest)
        } else {
            let (hdr, rest) = RawDir2LeafHdr::prefix(block).ok_or(truncated)?;
            (&hdr.info, hdr.count, hdr.stale.get(), rest)
        };
        let kind = match (info.magic.get(), crc) {
            (DIR2_LEAF1_MAGIC, false) | (DIR3_LEAF1_MAGIC, true) => LeafKind::Leaf1,
            (DIR2_LEAFN_MAGIC, false) | (DIR3_LEAFN_MAGIC, true) => LeafKind::LeafN,
            _ => return Err(failed("magic", Rule::Magic)),
        };
        let (entries, rest) =
            RawDirLeafEntry::prefix_slice(rest, usize::from(count.get())).ok_or(failed("count", Rule::Count))?;
        let bests = match kind {
            LeafKind::Leaf1 => leaf_bests(rest)?,
            LeafKind::LeafN => &[],
        };
        Ok(DirLeaf { kind, forw: info.forw.get(), back: info.back.get(), stale, entries, bests })
    }

    /// The checks of Linux's verifier on the contents.
    pub fn verify(&self) -> Vec<Check> {
        check_leaf_entries(self.entries, u32::from(self.stale))
    }
}

/// Hashes must not descend, and the number of stale entries must be the one that is recorded.
pub fn check_leaf_entries(entries: &[RawDirLeafEntry], stale: u32) -> Vec<Check> {
    let mut failures = Vec::new();
    if entries.windows(2).any(|pair| pair[0].hashval.get() > pair[1].hashval.get()) {
        failures.push(failed("hashval", Rule::Order));
    }
    let found = entries.iter().filter(|entry| entry.address.get() == NULL_DATAPTR).count();
    if u32::try_from(found).ok() != Some(stale) {
        failures.push(failed("stale", Rule::Mismatch));
    }
    failures
}

/// The entries of `hash` in a sorted table, stale ones included.
pub fn with_hash(entries: &[RawDirLeafEntry], hash: u32) -> impl Iterator<Item = &RawDirLeafEntry> {
    let start = entries.partition_point(|entry| entry.hashval.get() < hash);
    entries[start..].iter().take_while(move |entry| entry.hashval.get() == hash)
}

/// The table of best free lengths at the end of `rest`, which is what follows the entries of the only leaf.
fn leaf_bests(rest: &[u8]) -> Result<&[Be16], Check> {
    let too_many = failed("bestcount", Rule::Count);
    let at = rest.len().checked_sub(RawDirLeafTail::SIZE).ok_or(failed("count", Rule::Count))?;
    let (tail, _) = RawDirLeafTail::prefix(&rest[at..]).ok_or(too_many)?;
    let count = usize::try_from(tail.bestcount.get()).map_err(|_| too_many)?;
    let start = count.checked_mul(size_of::<Be16>()).and_then(|bytes| at.checked_sub(bytes)).ok_or(too_many)?;
    bests(&rest[start..at], count).ok_or(too_many)
}

fn bests(bytes: &[u8], count: usize) -> Option<&[Be16]> {
    zerocopy::FromBytes::ref_from_prefix_with_elems(bytes, count).ok().map(|(table, _): (&[Be16], _)| table)
}

/// A block of the free index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirFree<'a> {
    /// Data block (in directory blocks) of the first entry.
    pub firstdb: u32,
    /// Entries whose data block exists, as the header has it.
    pub nused: u32,
    /// Longest unused range of each data block in bytes; [`NULLDATAOFF`] where there is no block.
    pub bests: &'a [Be16],
}

impl<'a> DirFree<'a> {
    /// Decodes the free index block in `block`, which has the v5 header when `crc` is set.
    ///
    /// # Errors
    /// The check that it fails: magic number, or a count that the block cannot hold.
    pub fn decode(block: &'a [u8], crc: bool) -> Result<Self, Check> {
        let truncated = Check::new("dir2_free", "hdr", Rule::Truncated);
        let (magic, firstdb, nvalid, nused, rest) = if crc {
            let (hdr, rest) = RawDir3FreeHdr::prefix(block).ok_or(truncated)?;
            (hdr.hdr.magic.get(), hdr.firstdb, hdr.nvalid, hdr.nused, rest)
        } else {
            let (hdr, rest) = RawDir2FreeHdr::prefix(block).ok_or(truncated)?;
            (hdr.magic.get(), hdr.firstdb, hdr.nvalid, hdr.nused, rest)
        };
        if magic != if crc { DIR3_FREE_MAGIC } else { DIR2_FREE_MAGIC } {
            return Err(Check::new("dir2_free", "magic", Rule::Magic));
        }
        let too_many = Check::new("dir2_free", "nvalid", Rule::Count);
        let count = usize::try_from(nvalid.get()).map_err(|_| too_many)?;
        let bests = bests(rest, count).ok_or(too_many)?;
        Ok(DirFree { firstdb: firstdb.get(), nused: nused.get(), bests })
    }

    /// The number of entries in use must be the one that the header has.
    pub fn verify(&self) -> Vec<Check> {
        let used = self.bests.iter().filter(|best| best.get() != NULLDATAOFF).count();
        let wrong = u32::try_from(used).ok() != Some(self.nused);
        wrong.then_some(Check::new("dir2_free", "nused", Rule::Mismatch)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::IntoBytes;

    fn leaf(magic: u16, entries: &[(u32, u32)], bests: &[u16]) -> Vec<u8> {
        let info = RawDaBlkinfo { forw: 5.into(), back: 6.into(), magic: magic.into(), pad: 0.into() };
        let stale = entries.iter().filter(|entry| entry.1 == NULL_DATAPTR).count();
        let few = |n: usize| Be16::new(u16::try_from(n).expect("invariant: few entries"));
        let mut block = RawDir2LeafHdr { info, count: few(entries.len()), stale: few(stale) }.as_bytes().to_vec();
        for &(hash, address) in entries {
            let entry = RawDirLeafEntry { hashval: hash.into(), address: address.into() };
            block.extend_from_slice(entry.as_bytes());
        }
        if magic == DIR2_LEAF1_MAGIC {
            block.extend(bests.iter().flat_map(|best| best.to_be_bytes()));
            let tail = RawDirLeafTail { bestcount: u32::try_from(bests.len()).expect("invariant: few").into() };
            block.extend_from_slice(tail.as_bytes());
        }
        block
    }

    proptest! {
        #[test]
        fn decode_inverts_encode(
            mut entries in proptest::collection::vec((0u32..20, 0u32..5), 0..30),
            bests in proptest::collection::vec(any::<u16>(), 0..10),
            only: bool,
        ) {
            entries.sort_unstable();
            let block = leaf(if only { DIR2_LEAF1_MAGIC } else { DIR2_LEAFN_MAGIC }, &entries, &bests);
            let leaf = DirLeaf::decode(&block, false).expect("decodable");
            prop_assert_eq!(leaf.kind == LeafKind::Leaf1, only);
            prop_assert_eq!((leaf.forw, leaf.back), (5, 6));
            let read: Vec<_> = leaf.entries.iter().map(|e| (e.hashval.get(), e.address.get())).collect();
            prop_assert_eq!(&read, &entries);
            prop_assert!(leaf.verify().is_empty());
            let read: Vec<_> = leaf.bests.iter().map(|best| best.get()).collect();
            prop_assert_eq!(read, if only { bests } else { vec![] });
            let found = with_hash(leaf.entries, 7).count();
            prop_assert_eq!(found, entries.iter().filter(|entry| entry.0 == 7).count());
        }

        #[test]
        fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0usize..6) {
            let (magic, crc) = [
                (DIR2_LEAF1_MAGIC, false), (DIR2_LEAFN_MAGIC, false), (DIR3_LEAF1_MAGIC, true), (DIR3_LEAFN_MAGIC, true),
                (0, false), (0, true),
            ][kind];
            if let Some(field) = bytes.get_mut(8..10).filter(|_| magic != 0) {
                field.copy_from_slice(&magic.to_be_bytes());
            }
            let _ = DirLeaf::decode(&bytes, crc).map(|leaf| leaf.verify());
            if let Some(field) = bytes.get_mut(..4).filter(|_| magic == 0) {
                field.copy_from_slice(&if crc { DIR3_FREE_MAGIC } else { DIR2_FREE_MAGIC }.to_be_bytes());
            }
            let _ = DirFree::decode(&bytes, crc).map(|free| free.verify());
        }
    }

    #[test]
    fn disorder_and_a_wrong_number_of_stale_entries_are_found() {
        let mut block = leaf(DIR2_LEAFN_MAGIC, &[(1, 9), (3, 0), (2, 9)], &[]);
        let order = failed("hashval", Rule::Order);
        assert_eq!(DirLeaf::decode(&block, false).expect("decodable").verify(), [order]);
        block[15] = 2;
        let stale = failed("stale", Rule::Mismatch);
        assert_eq!(DirLeaf::decode(&block, false).expect("decodable").verify(), [order, stale]);
    }

    #[test]
    fn a_free_block_counts_its_entries() {
        let hdr =
            RawDir2FreeHdr { magic: DIR2_FREE_MAGIC.into(), firstdb: 0.into(), nvalid: 3.into(), nused: 2.into() };
        let mut block = hdr.as_bytes().to_vec();
        block.extend([0x00, 0x10, 0xff, 0xff, 0x00, 0x00]);
        let free = DirFree::decode(&block, false).expect("decodable");
        assert_eq!(free.bests.iter().map(|best| best.get()).collect::<Vec<_>>(), [16, NULLDATAOFF, 0]);
        assert!(free.verify().is_empty());
        assert!(DirFree::decode(&block[..20], false).is_err());
    }
}
