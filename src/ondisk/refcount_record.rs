//! Records of the reference count btrees, of allocation groups and of realtime groups (Linux `xfs_format.h`,
//! `struct xfs_refcount_rec`). Pointers are 32-bit blocks of the group ([`Be32`]), in realtime btrees 64-bit filesystem
//! blocks ([`Be64`](super::Be64)).

use super::{Be16, Be32};

ondisk! {
    /// How many files share an extent.
    pub struct RawRefcountRecord("refcount_rec"): 12 {
        /// First block, within the group, with [`COW_FLAG`] in the highest bit.
        0 => startblock: Be32,
        /// Length in blocks.
        4 => blockcount: Be32,
        /// Number of owners.
        8 => refcount: Be32,
    }
}

ondisk! {
    /// Key of the reference count btrees.
    pub struct RawRefcountKey("refcount_key"): 4 {
        /// First block, within the group, with [`COW_FLAG`] in the highest bit.
        0 => startblock: Be32,
    }
}

ondisk! {
    /// Root of a realtime reference count btree, in the data fork of its inode.
    pub struct RawRtrefcountRoot("rtrefcount_root"): 4 {
        /// Level: 0 is a leaf.
        0 => level: Be16,
        /// Records or keys in the root.
        2 => numrecs: Be16,
    }
}

/// Bit of `startblock`: the extent is held for copy on write. Such records come after all others.
pub const COW_FLAG: u32 = 1 << 31;

/// How many files share an extent of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refcount {
    /// First block, within the group: 31 bits.
    pub startblock: u32,
    /// Length in blocks.
    pub blockcount: u32,
    /// Number of owners: at least 2, and 1 in the copy-on-write domain.
    pub refcount: u32,
    /// The extent is held for copy on write, not shared.
    pub cow: bool,
}

impl RawRefcountRecord {
    /// The record in native form.
    pub fn decode(&self) -> Refcount {
        let start = self.startblock.get();
        Refcount {
            startblock: start & !COW_FLAG,
            blockcount: self.blockcount.get(),
            refcount: self.refcount.get(),
            cow: start & COW_FLAG != 0,
        }
    }
}

impl Refcount {
    /// The record as stored; `None` when `startblock` has more than 31 bits.
    pub fn encode(&self) -> Option<RawRefcountRecord> {
        (self.startblock & COW_FLAG == 0).then(|| RawRefcountRecord {
            startblock: Be32::new(self.startblock | if self.cow { COW_FLAG } else { 0 }),
            blockcount: Be32::new(self.blockcount),
            refcount: Be32::new(self.refcount),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_round_trip(startblock: u32, blockcount: u32, refcount: u32) {
            let raw = RawRefcountRecord {
                startblock: startblock.into(),
                blockcount: blockcount.into(),
                refcount: refcount.into(),
            };
            prop_assert_eq!(raw.decode().encode(), Some(raw));
        }
    }

    #[test]
    fn a_block_number_that_does_not_fit_is_refused() {
        assert_eq!(Refcount { startblock: COW_FLAG, ..Refcount::default() }.encode(), None);
    }
}
