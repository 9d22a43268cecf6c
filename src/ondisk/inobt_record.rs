//! Records of the inode and the free inode btree (Linux `xfs_format.h`, `struct xfs_inobt_rec`). Pointers are 32-bit
//! blocks of the group ([`Be32`]).

use super::{Be16, Be32, Be64};

ondisk! {
    /// A chunk of 64 inodes, in the form without the sparse inodes feature.
    pub struct RawInobtRecord("inobt_rec"): 16 {
        /// First inode, within the group.
        0 => startino: Be32,
        /// Inodes not in use.
        4 => freecount: Be32,
        /// A bit for each inode not in use, the first one lowest.
        8 => free: Be64,
    }
}

ondisk! {
    /// A chunk of 64 inodes, in the form with the sparse inodes feature.
    pub struct RawSparseInobtRecord("sparse_inobt_rec"): 16 {
        /// First inode, within the group.
        0 => startino: Be32,
        /// A bit for each four inodes that have no blocks, the first ones lowest.
        4 => holemask: Be16,
        /// Inodes that have blocks.
        6 => count: u8,
        /// Inodes not in use.
        7 => freecount: u8,
        /// A bit for each inode not in use or without blocks, the first one lowest.
        8 => free: Be64,
    }
}

ondisk! {
    /// Key of the inode btrees.
    pub struct RawInobtKey("inobt_key"): 4 {
        /// First inode, within the group.
        0 => startino: Be32,
    }
}

/// Inodes that one record describes.
pub const INODES_PER_CHUNK: u32 = 64;
/// Inodes that one bit of a hole mask stands for.
pub const INODES_PER_HOLEMASK_BIT: u32 = 4;

/// A chunk of 64 inodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InodeChunk {
    /// First inode, within the group.
    pub startino: u32,
    /// A bit for each four inodes that have no blocks; 0 in a full chunk.
    pub holemask: u16,
    /// Inodes that have blocks: 64 in a full chunk.
    pub count: u8,
    /// Inodes not in use. More than 64 only in a damaged record.
    pub freecount: u32,
    /// A bit for each inode not in use or without blocks.
    pub free: u64,
}

impl RawInobtRecord {
    /// The record in native form.
    pub fn decode(&self) -> InodeChunk {
        InodeChunk {
            startino: self.startino.get(),
            holemask: 0,
            count: 64,
            freecount: self.freecount.get(),
            free: self.free.get(),
        }
    }
}

impl RawSparseInobtRecord {
    /// The record in native form.
    pub fn decode(&self) -> InodeChunk {
        InodeChunk {
            startino: self.startino.get(),
            holemask: self.holemask.get(),
            count: self.count,
            freecount: u32::from(self.freecount),
            free: self.free.get(),
        }
    }
}

impl InodeChunk {
    /// The record as stored without the sparse inodes feature; `None` when the chunk has holes.
    pub fn encode_full(&self) -> Option<RawInobtRecord> {
        (self.holemask == 0 && self.count == 64).then(|| RawInobtRecord {
            startino: Be32::new(self.startino),
            freecount: Be32::new(self.freecount),
            free: Be64::new(self.free),
        })
    }

    /// The record as stored with the sparse inodes feature; `None` when `freecount` does not fit its byte.
    pub fn encode_sparse(&self) -> Option<RawSparseInobtRecord> {
        Some(RawSparseInobtRecord {
            startino: Be32::new(self.startino),
            holemask: Be16::new(self.holemask),
            count: self.count,
            freecount: u8::try_from(self.freecount).ok()?,
            free: Be64::new(self.free),
        })
    }

    /// A bit for each inode that has blocks, the first one lowest.
    pub fn allocated_mask(&self) -> u64 {
        (0..16).filter(|bit| self.holemask & (1 << bit) == 0).fold(0, |mask, bit| mask | 0xf << (bit * 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn full_form_round_trip(startino: u32, freecount: u32, free: u64) {
            let chunk = InodeChunk { startino, holemask: 0, count: 64, freecount, free };
            prop_assert_eq!(chunk.encode_full().map(|raw| raw.decode()), Some(chunk));
        }

        #[test]
        fn sparse_form_round_trip(startino: u32, holemask: u16, count: u8, freecount in 0u32..256, free: u64) {
            let chunk = InodeChunk { startino, holemask, count, freecount, free };
            prop_assert_eq!(chunk.encode_sparse().map(|raw| raw.decode()), Some(chunk));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let holes = InodeChunk { holemask: 0xff00, count: 32, ..InodeChunk::default() };
        assert_eq!(holes.encode_full(), None);
        let many = InodeChunk { count: 64, freecount: 256, ..InodeChunk::default() };
        assert_eq!(many.encode_sparse(), None);
    }

    #[test]
    fn holes_take_four_inodes_each() {
        let chunk = InodeChunk { holemask: 0xff00, count: 32, ..InodeChunk::default() };
        assert_eq!(chunk.allocated_mask(), 0xffff_ffff);
        assert_eq!(InodeChunk::default().allocated_mask(), u64::MAX);
    }
}
