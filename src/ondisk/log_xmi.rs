//! Log items of mappings to be exchanged between two files (Linux `fs/xfs/libxfs/xfs_log_format.h`,
//! `fs/xfs/xfs_exchmaps_item.c`).

use crate::error::Check;
use crate::ondisk::log_item::{LogItemType, prefix_of_type};
use zerocopy::IntoBytes;
use zerocopy::byteorder::{ByteOrder, U16, U32, U64};

/// Flags of an exchange intent.
pub mod exchange {
    /// Attribute forks instead of data forks.
    pub const ATTR_FORK: u64 = 1 << 0;
    /// Set the sizes at the end.
    pub const SET_SIZES: u64 = 1 << 1;
    /// Only what is written in the first file.
    pub const INO1_WRITTEN: u64 = 1 << 2;
    /// Clear the first file's reflink flag; no longer written.
    pub const CLEAR_INO1_REFLINK: u64 = 1 << 3;
    /// Clear the second file's reflink flag; no longer written.
    pub const CLEAR_INO2_REFLINK: u64 = 1 << 4;
    /// All of them.
    pub const ALL: u64 = ATTR_FORK | SET_SIZES | INO1_WRITTEN | CLEAR_INO1_REFLINK | CLEAR_INO2_REFLINK;
}

ondisk! {
    /// Exchange intent (`xfs_xmi_log_format`).
    pub struct RawXmiLogFormat<O>("xmi_log_format"): 88 {
        /// [`LogItemType::Xmi`].
        0 => type_: U16<O>,
        /// Regions: 1.
        2 => size: U16<O>,
        /// Zero.
        4 => pad: U32<O>,
        /// What the done item refers to.
        8 => id: U64<O>,
        /// First file.
        16 => inode1: U64<O>,
        /// Second file.
        24 => inode2: U64<O>,
        /// Generation of the first file.
        32 => igen1: U32<O>,
        /// Generation of the second file.
        36 => igen2: U32<O>,
        /// Block of the first file.
        40 => startoff1: U64<O>,
        /// Block of the second file.
        48 => startoff2: U64<O>,
        /// Blocks.
        56 => blockcount: U64<O>,
        /// Flags, see [`exchange`].
        64 => flags: U64<O>,
        /// Size of the first file in the end, in bytes.
        72 => isize1: U64<O>,
        /// Size of the second file in the end, in bytes.
        80 => isize2: U64<O>,
    }
}

/// Mappings that are to be exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XmiLogFormat {
    /// What the done item refers to.
    pub id: u64,
    /// The two files.
    pub inodes: [u64; 2],
    /// Their generations.
    pub generations: [u32; 2],
    /// Where the mappings begin in each, in blocks.
    pub startoffs: [u64; 2],
    /// Blocks.
    pub blockcount: u64,
    /// Flags, see [`exchange`].
    pub flags: u64,
    /// Sizes of the files in the end, in bytes.
    pub isizes: [u64; 2],
}

impl XmiLogFormat {
    /// Decodes an exchange intent.
    ///
    /// # Errors
    /// When it is too short, or of another type.
    pub fn decode<O: ByteOrder>(region: &[u8]) -> Result<Self, Check> {
        let raw: &RawXmiLogFormat<O> = prefix_of_type::<O, _>(region, LogItemType::Xmi)?;
        Ok(XmiLogFormat {
            id: raw.id.get(),
            inodes: [raw.inode1.get(), raw.inode2.get()],
            generations: [raw.igen1.get(), raw.igen2.get()],
            startoffs: [raw.startoff1.get(), raw.startoff2.get()],
            blockcount: raw.blockcount.get(),
            flags: raw.flags.get(),
            isizes: [raw.isize1.get(), raw.isize2.get()],
        })
    }

    /// The bytes of the item.
    pub fn encode<O: ByteOrder>(&self) -> Vec<u8> {
        let raw = RawXmiLogFormat::<O> {
            type_: U16::new(LogItemType::Xmi.number()),
            size: U16::new(1),
            pad: U32::ZERO,
            id: U64::new(self.id),
            inode1: U64::new(self.inodes[0]),
            inode2: U64::new(self.inodes[1]),
            igen1: U32::new(self.generations[0]),
            igen2: U32::new(self.generations[1]),
            startoff1: U64::new(self.startoffs[0]),
            startoff2: U64::new(self.startoffs[1]),
            blockcount: U64::new(self.blockcount),
            flags: U64::new(self.flags),
            isize1: U64::new(self.isizes[0]),
            isize2: U64::new(self.isizes[1]),
        };
        raw.as_bytes().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::{BigEndian, LittleEndian};

    #[test]
    fn both_orders_are_decoded() {
        let mut raw: RawXmiLogFormat<LittleEndian> = zerocopy::FromZeros::new_zeroed();
        raw.type_ = LogItemType::Xmi.number().into();
        (raw.inode2, raw.startoff1, raw.isize2) = (5.into(), 6.into(), 7.into());
        let item = XmiLogFormat::decode::<LittleEndian>(raw.as_bytes()).expect("sound");
        assert_eq!((item.inodes, item.startoffs, item.isizes), ([0, 5], [6, 0], [0, 7]));
        assert!(XmiLogFormat::decode::<BigEndian>(raw.as_bytes()).is_err());
        assert!(XmiLogFormat::decode::<LittleEndian>(&raw.as_bytes()[1..]).is_err());
    }
}
