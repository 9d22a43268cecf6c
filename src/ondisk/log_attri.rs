//! Log items of attributes to be changed (Linux `fs/xfs/libxfs/xfs_log_format.h`, `fs/xfs/xfs_attr_item.c`).

use crate::error::Check;
use crate::ondisk::log_item::{LogItemType, prefix_of_type};
use zerocopy::IntoBytes;
use zerocopy::byteorder::{ByteOrder, U16, U32, U64};

/// Operations of an attribute intent.
pub mod attri {
    /// Set an attribute.
    pub const SET: u32 = 1;
    /// Remove it.
    pub const REMOVE: u32 = 2;
    /// Replace it.
    pub const REPLACE: u32 = 3;
    /// Set a parent pointer.
    pub const PPTR_SET: u32 = 4;
    /// Remove it.
    pub const PPTR_REMOVE: u32 = 5;
    /// Replace it by another.
    pub const PPTR_REPLACE: u32 = 6;
    /// The bits of the operation.
    pub const TYPE_MASK: u32 = 0xff;
}

ondisk! {
    /// Attribute intent; regions with names and values follow (`xfs_attri_log_format`).
    pub struct RawAttriLogFormat<O>("attri_log_format"): 40 {
        /// [`LogItemType::Attri`].
        0 => type_: U16<O>,
        /// Regions.
        2 => size: U16<O>,
        /// Generation of the inode, for parent pointers.
        4 => igen: U32<O>,
        /// What the done item refers to.
        8 => id: U64<O>,
        /// Inode number.
        16 => ino: U64<O>,
        /// Operation, see [`attri`].
        24 => op_flags: U32<O>,
        /// Bytes of the name; for [`attri::PPTR_REPLACE`] two 16-bit lengths, of the old and of the new name.
        28 => name_len: [u8; 4],
        /// Bytes of the value.
        32 => value_len: U32<O>,
        /// Namespace flags.
        36 => attr_filter: U32<O>,
    }
}

/// What is to be done to an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttriLogFormat {
    /// Regions that the item says it has.
    pub size: u16,
    /// Generation of the inode, for parent pointers.
    pub igen: u32,
    /// What the done item refers to.
    pub id: u64,
    /// Inode number.
    pub ino: u64,
    /// Operation, see [`attri`].
    pub op_flags: u32,
    /// Bytes of the name.
    pub name_len: u32,
    /// Bytes of the new name, where the operation has one.
    pub new_name_len: Option<u32>,
    /// Bytes of the value, and of the new value.
    pub value_len: u32,
    /// Namespace flags.
    pub attr_filter: u32,
}

impl AttriLogFormat {
    /// Decodes the first region of an attribute intent.
    ///
    /// # Errors
    /// When it is too short, or of another type.
    pub fn decode<O: ByteOrder>(region: &[u8]) -> Result<Self, Check> {
        let raw: &RawAttriLogFormat<O> = prefix_of_type::<O, _>(region, LogItemType::Attri)?;
        let (name_len, new_name_len) = raw.name_lens();
        Ok(AttriLogFormat {
            size: raw.size.get(),
            igen: raw.igen.get(),
            id: raw.id.get(),
            ino: raw.ino.get(),
            op_flags: raw.op_flags.get(),
            name_len,
            new_name_len,
            value_len: raw.value_len.get(),
            attr_filter: raw.attr_filter.get(),
        })
    }

    /// The bytes of the first region; `None` when names are longer than the operation can say.
    pub fn encode<O: ByteOrder>(&self) -> Option<Vec<u8>> {
        let name_len = match self.new_name_len {
            None => U32::<O>::new(self.name_len).to_bytes(),
            Some(new) => {
                let [a, b] = U16::<O>::new(u16::try_from(self.name_len).ok()?).to_bytes();
                let [c, d] = U16::<O>::new(u16::try_from(new).ok()?).to_bytes();
                [a, b, c, d]
            }
        };
        let raw = RawAttriLogFormat::<O> {
            type_: U16::new(LogItemType::Attri.number()),
            size: U16::new(self.size),
            igen: U32::new(self.igen),
            id: U64::new(self.id),
            ino: U64::new(self.ino),
            op_flags: U32::new(self.op_flags),
            name_len,
            value_len: U32::new(self.value_len),
            attr_filter: U32::new(self.attr_filter),
        };
        Some(raw.as_bytes().to_vec())
    }

    /// The operation without other bits.
    pub fn operation(&self) -> u32 {
        self.op_flags & attri::TYPE_MASK
    }
}

impl<O: ByteOrder> RawAttriLogFormat<O> {
    /// Bytes of the name, and of the new name where the operation has one.
    pub fn name_lens(&self) -> (u32, Option<u32>) {
        let [a, b, c, d] = self.name_len;
        if self.op_flags.get() & attri::TYPE_MASK == attri::PPTR_REPLACE {
            let half = |bytes| u32::from(U16::<O>::from_bytes(bytes).get());
            (half([a, b]), Some(half([c, d])))
        } else {
            (U32::<O>::from_bytes([a, b, c, d]).get(), None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::{BigEndian, LittleEndian};

    #[test]
    fn a_replaced_parent_pointer_has_two_names() {
        let mut raw: RawAttriLogFormat<LittleEndian> = zerocopy::FromZeros::new_zeroed();
        raw.name_len = [4, 0, 1, 0];
        assert_eq!(raw.name_lens(), (0x1_0004, None));
        raw.op_flags = attri::PPTR_REPLACE.into();
        assert_eq!(raw.name_lens(), (4, Some(1)));
    }

    #[test]
    fn both_orders_are_decoded() {
        let mut raw: RawAttriLogFormat<BigEndian> = zerocopy::FromZeros::new_zeroed();
        raw.type_ = LogItemType::Attri.number().into();
        (raw.size, raw.id, raw.op_flags) = (3.into(), 7.into(), attri::PPTR_SET.into());
        let item = AttriLogFormat::decode::<BigEndian>(raw.as_bytes()).expect("sound");
        assert_eq!((item.size, item.id, item.operation()), (3, 7, attri::PPTR_SET));
        assert!(AttriLogFormat::decode::<LittleEndian>(raw.as_bytes()).is_err());
        assert!(AttriLogFormat::decode::<BigEndian>(&raw.as_bytes()[1..]).is_err());
    }
}
