//! Extents of a file: the 128-bit record of extent lists and of the extent btree, that btree's key and root (Linux
//! `xfs_format.h`, `struct xfs_bmbt_rec`, `struct xfs_bmdr_block`). Pointers are 64-bit filesystem blocks ([`Be64`]).

use super::{Be16, Be64};

ondisk! {
    /// A packed extent: from the top, 1 bit unwritten, 54 bits startoff, 52 bits startblock, 21 bits blockcount.
    pub struct RawExtent("bmbt_rec"): 16 {
        /// The upper half.
        0 => l0: Be64,
        /// The lower half.
        8 => l1: Be64,
    }
}

ondisk! {
    /// Key of the extent btree.
    pub struct RawBmbtKey("bmbt_key"): 8 {
        /// First block of the file.
        0 => startoff: Be64,
    }
}

ondisk! {
    /// Root of an extent btree, in a fork of its inode.
    pub struct RawBmdrRoot("bmdr"): 4 {
        /// Level: never 0.
        0 => level: Be16,
        /// Keys in the root.
        2 => numrecs: Be16,
    }
}

/// Largest `startoff` of a record.
pub const MAX_STARTOFF: u64 = (1 << 54) - 1;
/// Largest `startblock` of a record.
pub const MAX_STARTBLOCK: u64 = (1 << 52) - 1;
/// Largest `blockcount` of a record.
pub const MAX_BLOCKCOUNT: u32 = (1 << 21) - 1;

/// Where the numbers of a record begin, in bits from its start, the highest bit of the first byte being bit 0.
pub mod bit {
    use super::{MAX_STARTBLOCK, MAX_STARTOFF};

    /// Whether the blocks are unwritten: one bit.
    pub const UNWRITTEN: usize = 0;
    /// First block of the file.
    pub const STARTOFF: usize = UNWRITTEN + 1;
    /// First filesystem or realtime block.
    pub const STARTBLOCK: usize = STARTOFF + MAX_STARTOFF.count_ones() as usize;
    /// Length in blocks.
    pub const BLOCKCOUNT: usize = STARTBLOCK + MAX_STARTBLOCK.count_ones() as usize;
}

/// A mapping from blocks of a file to blocks of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// First block of the file: 54 bits.
    pub startoff: u64,
    /// First filesystem or realtime block: 52 bits.
    pub startblock: u64,
    /// Length in blocks: 21 bits.
    pub blockcount: u32,
    /// The blocks are allocated, and read as zeroes.
    pub unwritten: bool,
}

impl RawExtent {
    /// The record in native form.
    pub fn decode(&self) -> Extent {
        let (l0, l1) = (self.l0.get(), self.l1.get());
        Extent {
            startoff: l0 >> 9 & MAX_STARTOFF,
            startblock: (l0 & 0x1ff) << 43 | l1 >> 21,
            blockcount: (l1 & 0x1f_ffff) as u32,
            unwritten: l0 >> 63 != 0,
        }
    }
}

impl Extent {
    /// The record as stored; `None` when a number has too many bits.
    pub fn encode(&self) -> Option<RawExtent> {
        let fits =
            self.startoff <= MAX_STARTOFF && self.startblock <= MAX_STARTBLOCK && self.blockcount <= MAX_BLOCKCOUNT;
        fits.then(|| RawExtent {
            l0: Be64::new(u64::from(self.unwritten) << 63 | self.startoff << 9 | self.startblock >> 43),
            l1: Be64::new(self.startblock << 21 | u64::from(self.blockcount)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_round_trip(l0: u64, l1: u64) {
            let raw = RawExtent { l0: l0.into(), l1: l1.into() };
            prop_assert_eq!(raw.decode().encode(), Some(raw));
        }
    }

    #[test]
    fn each_number_lies_in_its_bits() {
        let extent = Extent { startoff: 1, startblock: MAX_STARTBLOCK, blockcount: 2, unwritten: true };
        let raw = extent.encode().expect("invariant: the numbers fit");
        assert_eq!(raw.l0.get(), 1 << 63 | 1 << 9 | 0x1ff);
        assert_eq!(raw.l1.get(), u64::MAX << 21 | 2);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(Extent { startoff: MAX_STARTOFF + 1, ..Extent::default() }.encode(), None);
        assert_eq!(Extent { startblock: MAX_STARTBLOCK + 1, ..Extent::default() }.encode(), None);
        assert_eq!(Extent { blockcount: MAX_BLOCKCOUNT + 1, ..Extent::default() }.encode(), None);
    }
}
