//! Records of the two free space btrees (Linux `xfs_format.h`, `struct xfs_alloc_rec`). Records and keys have the same
//! form; pointers are 32-bit blocks of the group ([`Be32`]).

use super::Be32;

ondisk! {
    /// A free extent, as record and as key.
    pub struct RawAllocRecord("alloc_rec"): 8 {
        /// First block, within the group.
        0 => startblock: Be32,
        /// Length in blocks.
        4 => blockcount: Be32,
    }
}

/// A free extent of an allocation group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeExtent {
    /// First block, within the group.
    pub startblock: u32,
    /// Length in blocks.
    pub blockcount: u32,
}

impl RawAllocRecord {
    /// The record in native form.
    pub fn decode(&self) -> FreeExtent {
        FreeExtent { startblock: self.startblock.get(), blockcount: self.blockcount.get() }
    }
}

impl FreeExtent {
    /// The record as stored.
    pub fn encode(&self) -> RawAllocRecord {
        RawAllocRecord { startblock: Be32::new(self.startblock), blockcount: Be32::new(self.blockcount) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::IntoBytes;

    proptest! {
        #[test]
        fn encoding_is_the_inverse_of_decoding(startblock: u32, blockcount: u32) {
            let extent = FreeExtent { startblock, blockcount };
            prop_assert_eq!(extent.encode().decode(), extent);
        }
    }

    #[test]
    fn integers_are_big_endian() {
        let raw = FreeExtent { startblock: 1, blockcount: 0x0203 }.encode();
        assert_eq!(raw.as_bytes(), [0, 0, 0, 1, 0, 0, 2, 3]);
    }
}
