//! Realtime bitmap and summary files (Linux `xfs_format.h`, `struct xfs_rtbuf_blkinfo`, `union xfs_rtword_raw`).
//!
//! Both are arrays of 32-bit words. In the legacy form they fill their blocks, in the byte order of the machine that
//! wrote them; with realtime groups each block starts with a header, and the words are big-endian.

use std::mem::offset_of;

use super::{Be32, Be64, Le32, OnDisk, RawUuid};

ondisk! {
    /// Header of a bitmap or summary block, with realtime groups.
    pub struct RawRtBlockHeader("rtbuf_blkinfo"): 48 {
        /// [`RawRtBlockHeader::BITMAP_MAGIC`] or [`RawRtBlockHeader::SUMMARY_MAGIC`].
        0 => magic: Be32,
        /// CRC of the block.
        4 => crc: Le32,
        /// Inode that the block belongs to.
        8 => owner: Be64,
        /// Own disk address in 512-byte units.
        16 => blkno: Be64,
        /// Point of the log at which the block was last written.
        24 => lsn: Be64,
        /// UUID of the metadata.
        32 => uuid: RawUuid,
    }
}

impl RawRtBlockHeader {
    /// `BMPZ`.
    pub const BITMAP_MAGIC: u32 = 0x424d_505a;
    /// `SUMY`.
    pub const SUMMARY_MAGIC: u32 = 0x5355_4d59;
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = offset_of!(RawRtBlockHeader, crc);
}

/// How the words of bitmap and summary are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtWordForm {
    /// Without groups, written by a little-endian machine.
    LegacyLittle,
    /// Without groups, written by a big-endian machine.
    LegacyBig,
    /// With groups: a header, and big-endian words.
    Groups,
}

impl RtWordForm {
    /// Bytes before the first word of a block.
    pub const fn header_size(self) -> usize {
        match self {
            RtWordForm::LegacyLittle | RtWordForm::LegacyBig => 0,
            RtWordForm::Groups => RawRtBlockHeader::SIZE,
        }
    }

    /// Words that a block of `blocksize` bytes holds.
    pub const fn words_per_block(self, blocksize: usize) -> usize {
        blocksize.saturating_sub(self.header_size()) / 4
    }

    /// Word number `index` of `block`; `None` behind its end.
    pub fn word(self, block: &[u8], index: usize) -> Option<u32> {
        let bytes = self.slot(block.len(), index).and_then(|range| block.get(range)?.try_into().ok())?;
        Some(match self {
            RtWordForm::LegacyLittle => u32::from_le_bytes(bytes),
            RtWordForm::LegacyBig | RtWordForm::Groups => u32::from_be_bytes(bytes),
        })
    }

    /// Sets word number `index` of `block`; `None` behind its end.
    #[must_use]
    pub fn set_word(self, block: &mut [u8], index: usize, word: u32) -> Option<()> {
        let range = self.slot(block.len(), index)?;
        block.get_mut(range)?.copy_from_slice(&match self {
            RtWordForm::LegacyLittle => word.to_le_bytes(),
            RtWordForm::LegacyBig | RtWordForm::Groups => word.to_be_bytes(),
        });
        Some(())
    }

    fn slot(self, blocksize: usize, index: usize) -> Option<std::ops::Range<usize>> {
        let start = index.checked_mul(4)?.checked_add(self.header_size())?;
        (index < self.words_per_block(blocksize)).then_some(start..start + 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMS: [RtWordForm; 3] = [RtWordForm::LegacyLittle, RtWordForm::LegacyBig, RtWordForm::Groups];

    proptest! {
        #[test]
        fn words_round_trip(form in proptest::sample::select(&FORMS[..]), index in 0usize..2000, word: u32) {
            let mut block = vec![0; 4096];
            let set = form.set_word(&mut block, index, word);
            prop_assert_eq!(set.is_some(), index < form.words_per_block(4096));
            prop_assert_eq!(form.word(&block, index), set.map(|()| word));
        }
    }

    #[test]
    fn words_lie_where_the_form_says() {
        let mut block = vec![0; 4096];
        assert!(RtWordForm::Groups.set_word(&mut block, 0, 1).is_some());
        assert_eq!(block[51], 1);
        assert!(RtWordForm::LegacyLittle.set_word(&mut block, 0, 1).is_some());
        assert_eq!(block[..4], [1, 0, 0, 0]);
        assert_eq!(RtWordForm::Groups.word(&block, usize::MAX), None);
        assert_eq!(RtWordForm::Groups.words_per_block(4096), 1012);
    }
}
