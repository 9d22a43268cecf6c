//! The free list of an allocation group: its fourth sector (Linux `xfs_format.h`, `struct xfs_agfl`).

use std::mem::offset_of;

use zerocopy::FromBytes;

use super::{Be32, Be64, Le32, OnDisk, RawUuid};

ondisk! {
    /// Header of the free list in version 5. In version 4 the list fills the sector without a header.
    pub struct RawAgfl("agfl"): 36 {
        /// [`RawAgfl::MAGIC`].
        0 => magicnum: Be32,
        /// Number of the group.
        4 => seqno: Be32,
        /// UUID of the metadata.
        8 => uuid: RawUuid,
        /// Point of the log at which the sector was last written.
        24 => lsn: Be64,
        /// CRC of the sector.
        32 => crc: Le32,
    }
}

impl RawAgfl {
    /// `XAFL`.
    pub const MAGIC: u32 = 0x5841_464c;
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = offset_of!(RawAgfl, crc);
    /// Which sector of its group it is.
    pub const SECTOR: u32 = 3;

    /// Entries that a sector of `sectsize` bytes holds, with (`v5`) or without the header.
    pub const fn capacity(sectsize: usize, v5: bool) -> usize {
        sectsize.saturating_sub(Self::header_size(v5)) / size_of::<Be32>()
    }

    /// Bytes before the first entry.
    pub const fn header_size(v5: bool) -> usize {
        if v5 { Self::SIZE } else { 0 }
    }

    /// The entries in `sector`: block numbers within the group.
    pub fn entries(sector: &[u8], v5: bool) -> &[Be32] {
        let count = Self::capacity(sector.len(), v5);
        sector
            .get(Self::header_size(v5)..)
            .and_then(|list| <[Be32]>::ref_from_prefix_with_elems(list, count).ok())
            .map_or(&[], |(entries, _)| entries)
    }

    /// The entries in `sector`, to be changed.
    pub fn entries_mut(sector: &mut [u8], v5: bool) -> &mut [Be32] {
        let count = Self::capacity(sector.len(), v5);
        sector
            .get_mut(Self::header_size(v5)..)
            .and_then(|list| <[Be32]>::mut_from_prefix_with_elems(list, count).ok())
            .map_or(&mut [], |(entries, _)| entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_those_of_the_kernel() {
        assert_eq!(RawAgfl::capacity(512, false), 128);
        assert_eq!(RawAgfl::capacity(512, true), 119);
        assert_eq!(RawAgfl::capacity(4096, true), 1015);
        assert_eq!(RawAgfl::capacity(10, true), 0);
    }

    #[test]
    fn entries_follow_the_header() {
        let mut sector = vec![0; 512];
        RawAgfl::entries_mut(&mut sector, true)[0] = Be32::new(0x0102_0304);
        assert_eq!(sector[36..40], [1, 2, 3, 4]);
        assert_eq!(RawAgfl::entries(&sector, true).len(), 119);
        assert_eq!(RawAgfl::entries(&sector, false)[9].get(), 0x0102_0304);
        assert!(RawAgfl::entries(&sector[..20], true).is_empty());
    }
}
