//! The bytes that fields are read from.

use super::row::Bits;
use crate::db::crc_state::CrcState;
use crate::geometry::Geometry;
use crate::ondisk::OnDisk;

/// The bytes that fields are read from, and what must be known to read them.
#[derive(Clone, Copy)]
pub struct Object<'a> {
    /// The bytes: a block, an inode, a quota record.
    pub bytes: &'a [u8],
    /// The filesystem's geometry.
    pub geometry: &'a Geometry,
    /// What is known about the block's CRC.
    pub crc: CrcState,
}

impl<'a> Object<'a> {
    /// Its length in bits.
    pub fn bits(&self) -> Bits {
        self.bytes.len().saturating_mul(8)
    }

    /// The structure at `start` (a whole byte); `None` when it does not fit.
    pub fn structure<T: OnDisk>(&self, start: Bits) -> Option<&'a T> {
        T::prefix(self.bytes.get(start / 8..)?).map(|(structure, _)| structure)
    }

    /// The bytes from `start` (a whole byte) on; none behind the end.
    pub fn from(&self, start: Bits) -> &'a [u8] {
        self.bytes.get(start / 8..).unwrap_or_default()
    }

    /// The number in the `width` (at most 64) bits at `start`, the first being the highest; `None` when they are not all
    /// there.
    pub fn number(&self, start: Bits, width: Bits) -> Option<u64> {
        let end = start.checked_add(width)?;
        let bytes = self.bytes.get(start / 8..end.div_ceil(8))?;
        let all = bytes.iter().fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
        let value = all >> (end.next_multiple_of(8) - end);
        let mask = if width >= 64 { u128::from(u64::MAX) } else { (1 << width) - 1 };
        u64::try_from(value & mask).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::samples;

    #[test]
    fn numbers_of_bits() {
        let geometry = Geometry::assume(&samples::superblock("default"));
        let bytes = [0x80, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf1];
        let object = Object { bytes: &bytes, geometry: &geometry, crc: CrcState::Unchecked };
        assert_eq!(object.number(0, 1), Some(1));
        assert_eq!(object.number(1, 7), Some(0));
        assert_eq!(object.number(8, 16), Some(0x1234));
        assert_eq!(object.number(8, 64), Some(0x1234_5678_9abc_def1));
        assert_eq!(object.number(4, 64), Some(0x0123_4567_89ab_cdef));
        assert_eq!(object.number(12, 4), Some(2));
        assert_eq!(object.number(71, 1), Some(1));
        assert_eq!(object.number(72, 1), None);
        assert_eq!(object.number(9, 64), None);
        assert_eq!(object.number(usize::MAX, 2), None);
    }
}
