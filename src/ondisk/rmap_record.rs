//! Records of the reverse mapping btrees, of allocation groups and of realtime groups (Linux `xfs_format.h`,
//! `struct xfs_rmap_rec`). Pointers are 32-bit blocks of the group ([`Be32`]), in realtime btrees 64-bit filesystem
//! blocks ([`Be64`]). Nodes hold two keys for each child: its lowest and its highest.

use super::{Be16, Be32, Be64};

ondisk! {
    /// Who owns an extent.
    pub struct RawRmapRecord("rmap_rec"): 24 {
        /// First block, within the group.
        0 => startblock: Be32,
        /// Length in blocks.
        4 => blockcount: Be32,
        /// Inode, or one of [`owner`].
        8 => owner: Be64,
        /// Block in the owner's fork, with flags in the upper bits.
        16 => offset: Be64,
    }
}

ondisk! {
    /// Key of the reverse mapping btrees.
    pub struct RawRmapKey("rmap_key"): 20 {
        /// First block, within the group.
        0 => startblock: Be32,
        /// Inode, or one of [`owner`].
        4 => owner: Be64,
        /// Block in the owner's fork, with flags in the upper bits. The unwritten flag is no part of a key.
        12 => offset: Be64,
    }
}

ondisk! {
    /// Root of a realtime reverse mapping btree, in the data fork of its inode.
    pub struct RawRtrmapRoot("rtrmap_root"): 4 {
        /// Level: 0 is a leaf.
        0 => level: Be16,
        /// Records or keys in the root.
        2 => numrecs: Be16,
    }
}

/// Owners that are not inodes; the highest bit is set in all of them.
pub mod owner {
    /// None: used while a filesystem grows.
    pub const NULL: u64 = 0_u64.wrapping_sub(1);
    /// Not known: used by recovery.
    pub const UNKNOWN: u64 = 0_u64.wrapping_sub(2);
    /// Headers of the group.
    pub const FS: u64 = 0_u64.wrapping_sub(3);
    /// The log.
    pub const LOG: u64 = 0_u64.wrapping_sub(4);
    /// Free space and reverse mapping btrees, free list.
    pub const AG: u64 = 0_u64.wrapping_sub(5);
    /// Inode btrees.
    pub const INOBT: u64 = 0_u64.wrapping_sub(6);
    /// Inodes.
    pub const INODES: u64 = 0_u64.wrapping_sub(7);
    /// Reference count btree.
    pub const REFC: u64 = 0_u64.wrapping_sub(8);
    /// Blocks held for copy on write.
    pub const COW: u64 = 0_u64.wrapping_sub(9);
    /// The lowest owner that is defined.
    pub const MIN_DEFINED: u64 = COW;

    /// Whether `owner` is no inode.
    pub const fn is_special(owner: u64) -> bool {
        owner >> 63 == 1
    }
}

/// Bit of `offset`: the extent is of the attribute fork.
pub const OFFSET_ATTR_FORK: u64 = 1 << 63;
/// Bit of `offset`: the extent is a block of the fork's btree.
pub const OFFSET_BMBT_BLOCK: u64 = 1 << 62;
/// Bit of `offset`: the extent is unwritten.
pub const OFFSET_UNWRITTEN: u64 = 1 << 61;
/// The bits of `offset` that hold the block.
pub const OFFSET_MASK: u64 = (1 << 54) - 1;
const OFFSET_UNUSED: u64 = !(OFFSET_ATTR_FORK | OFFSET_BMBT_BLOCK | OFFSET_UNWRITTEN | OFFSET_MASK);

/// Who owns an extent of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rmap {
    /// First block, within the group.
    pub startblock: u32,
    /// Length in blocks.
    pub blockcount: u32,
    /// Inode, or one of [`owner`].
    pub owner: u64,
    /// Block in the owner's fork: 54 bits.
    pub offset: u64,
    /// The extent is of the attribute fork.
    pub attr_fork: bool,
    /// The extent is a block of the fork's btree.
    pub bmbt_block: bool,
    /// The extent is unwritten.
    pub unwritten: bool,
}

impl Rmap {
    fn packed_offset(&self) -> Option<u64> {
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        (self.offset <= OFFSET_MASK).then_some(
            self.offset
                | flag(self.attr_fork, OFFSET_ATTR_FORK)
                | flag(self.bmbt_block, OFFSET_BMBT_BLOCK)
                | flag(self.unwritten, OFFSET_UNWRITTEN),
        )
    }

    /// The record as stored; `None` when `offset` has more than 54 bits.
    pub fn encode(&self) -> Option<RawRmapRecord> {
        Some(RawRmapRecord {
            startblock: Be32::new(self.startblock),
            blockcount: Be32::new(self.blockcount),
            owner: Be64::new(self.owner),
            offset: Be64::new(self.packed_offset()?),
        })
    }
}

impl RawRmapRecord {
    /// The record in native form; `None` when bits of `offset` are set that have no meaning.
    pub fn decode(&self) -> Option<Rmap> {
        let offset = self.offset.get();
        (offset & OFFSET_UNUSED == 0).then(|| Rmap {
            startblock: self.startblock.get(),
            blockcount: self.blockcount.get(),
            owner: self.owner.get(),
            offset: offset & OFFSET_MASK,
            attr_fork: offset & OFFSET_ATTR_FORK != 0,
            bmbt_block: offset & OFFSET_BMBT_BLOCK != 0,
            unwritten: offset & OFFSET_UNWRITTEN != 0,
        })
    }

    /// The lowest key of the record.
    pub fn low_key(&self) -> RawRmapKey {
        RawRmapKey {
            startblock: self.startblock,
            owner: self.owner,
            offset: Be64::new(self.offset.get() & !OFFSET_UNWRITTEN),
        }
    }

    /// The highest key of the record: its last block, and for a mapping of a file's own blocks the last block of the
    /// fork. Sums wrap in a damaged record.
    pub fn high_key(&self) -> RawRmapKey {
        let last = self.blockcount.get().wrapping_sub(1);
        let low = self.low_key();
        let offset = low.offset.get();
        let moves = !owner::is_special(self.owner.get()) && offset & OFFSET_BMBT_BLOCK == 0;
        let block = (offset & OFFSET_MASK).wrapping_add(if moves { u64::from(last) } else { 0 });
        RawRmapKey {
            startblock: Be32::new(self.startblock.get().wrapping_add(last)),
            owner: self.owner,
            offset: Be64::new(block | offset & !OFFSET_MASK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trip(
            (startblock, blockcount, owner) in any::<(u32, u32, u64)>(),
            offset in 0..=OFFSET_MASK,
            (attr_fork, bmbt_block, unwritten) in any::<(bool, bool, bool)>(),
        ) {
            let rmap = Rmap { startblock, blockcount, owner, offset, attr_fork, bmbt_block, unwritten };
            prop_assert_eq!(rmap.encode().and_then(|raw| raw.decode()), Some(rmap));
        }

        #[test]
        fn whatever_decodes_encodes_to_the_same_bytes(startblock: u32, blockcount: u32, owner: u64, offset: u64) {
            let raw = RawRmapRecord {
                startblock: startblock.into(),
                blockcount: blockcount.into(),
                owner: owner.into(),
                offset: offset.into(),
            };
            match raw.decode() {
                Some(rmap) => prop_assert_eq!(rmap.encode(), Some(raw)),
                None => prop_assert_ne!(offset & OFFSET_UNUSED, 0),
            }
            let _ = (raw.low_key(), raw.high_key());
        }
    }

    #[test]
    fn an_offset_that_does_not_fit_is_refused() {
        assert_eq!(Rmap { offset: 1 << 54, ..Rmap::default() }.encode(), None);
    }

    #[test]
    fn keys_of_a_file_extent_span_it_and_those_of_metadata_do_not() {
        let file = Rmap { startblock: 100, blockcount: 8, owner: 128, offset: 16, unwritten: true, ..Rmap::default() };
        let raw = file.encode().expect("invariant: a small offset fits");
        assert_eq!(raw.low_key().offset.get(), 16);
        assert_eq!((raw.high_key().startblock.get(), raw.high_key().offset.get()), (107, 23));
        let meta = Rmap { startblock: 0, blockcount: 4, owner: owner::FS, ..Rmap::default() };
        let raw = meta.encode().expect("invariant: a small offset fits");
        assert_eq!((raw.high_key().startblock.get(), raw.high_key().offset.get()), (3, 0));
    }
}
