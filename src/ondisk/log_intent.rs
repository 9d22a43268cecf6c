//! Log items of deferred operations: an intent says what is to be done, a done item that it was
//! (Linux `fs/xfs/libxfs/xfs_log_format.h`).
//!
//! The items of the realtime section have the same layouts under other numbers. Only the extent-free items differ
//! between 32- and 64-bit writers.

use crate::error::{Check, Rule};
use crate::ondisk::OnDisk;
use crate::ondisk::log_inode::Width;
use crate::ondisk::log_item::LogItemType;
use zerocopy::IntoBytes;
use zerocopy::byteorder::{ByteOrder, U16, U32, U64};

/// Operations and flags of a reverse mapping intent's extent.
pub mod rmap {
    /// Add a mapping.
    pub const MAP: u32 = 1;
    /// Add a mapping of shared blocks.
    pub const MAP_SHARED: u32 = 2;
    /// Remove a mapping.
    pub const UNMAP: u32 = 3;
    /// Remove a mapping of shared blocks.
    pub const UNMAP_SHARED: u32 = 4;
    /// Convert between written and unwritten.
    pub const CONVERT: u32 = 5;
    /// The same for shared blocks.
    pub const CONVERT_SHARED: u32 = 6;
    /// Add an owner that is no file.
    pub const ALLOC: u32 = 7;
    /// Remove an owner that is no file.
    pub const FREE: u32 = 8;
    /// The bits of the operation.
    pub const TYPE_MASK: u32 = 0xff;
    /// Attribute fork.
    pub const ATTR_FORK: u32 = 1 << 31;
    /// A block of the mapping btree.
    pub const BMBT_BLOCK: u32 = 1 << 30;
    /// Unwritten.
    pub const UNWRITTEN: u32 = 1 << 29;
}

/// Operations of a reference count intent's extent.
pub mod refcount {
    /// One owner more.
    pub const INCREASE: u32 = 1;
    /// One owner less.
    pub const DECREASE: u32 = 2;
    /// Blocks become a CoW reservation.
    pub const ALLOC_COW: u32 = 3;
    /// Blocks cease to be one.
    pub const FREE_COW: u32 = 4;
    /// The bits of the operation.
    pub const TYPE_MASK: u32 = 0xff;
}

/// Operations and flags of a mapping intent's extent.
pub mod bmap {
    /// Map the blocks.
    pub const MAP: u32 = 1;
    /// Unmap the blocks.
    pub const UNMAP: u32 = 2;
    /// The bits of the operation.
    pub const TYPE_MASK: u32 = 0xff;
    /// Attribute fork.
    pub const ATTR_FORK: u32 = 1 << 31;
    /// Unwritten.
    pub const UNWRITTEN: u32 = 1 << 30;
    /// The blocks are in the realtime section.
    pub const REALTIME: u32 = 1 << 29;
}

ondisk! {
    /// Head of EFI and EFD, RUI, CUI and BUI; their extents follow (`xfs_efi_log_format` and its like).
    pub struct RawIntentHead<O>("log_intent"): 16 {
        /// Type of the item.
        0 => type_: U16<O>,
        /// Regions: 1.
        2 => size: U16<O>,
        /// Number of extents.
        4 => nextents: U32<O>,
        /// What the done item refers to: an address in the writer's memory, which is used again.
        8 => id: U64<O>,
    }
}

ondisk! {
    /// RUD, CUD, BUD, ATTRD and XMD (`xfs_rud_log_format` and its like).
    pub struct RawDoneItem<O>("log_done"): 16 {
        /// Type of the item.
        0 => type_: U16<O>,
        /// Regions: 1.
        2 => size: U16<O>,
        /// Zero, except in what old kernels left there.
        4 => pad: U32<O>,
        /// The id of the intent.
        8 => intent_id: U64<O>,
    }
}

ondisk! {
    /// Extent of EFI and EFD, from a 64-bit writer (`xfs_extent_64`).
    pub struct RawExtent64<O>("log_extent_64"): 16 {
        /// First block.
        0 => start: U64<O>,
        /// Blocks.
        8 => len: U32<O>,
        /// Zero.
        12 => pad: U32<O>,
    }
}

ondisk! {
    /// Extent of EFI and EFD, from a 32-bit writer (`xfs_extent_32`).
    pub struct RawExtent32<O>("log_extent_32"): 12 {
        /// First block.
        0 => start: U64<O>,
        /// Blocks.
        8 => len: U32<O>,
    }
}

ondisk! {
    /// Extent of RUI and BUI (`xfs_map_extent`).
    pub struct RawMapExtent<O>("map_extent"): 32 {
        /// Inode number, or another owner.
        0 => owner: U64<O>,
        /// First block.
        8 => startblock: U64<O>,
        /// Block of the file.
        16 => startoff: U64<O>,
        /// Blocks.
        24 => len: U32<O>,
        /// Operation and flags, see [`rmap`] and [`bmap`].
        28 => flags: U32<O>,
    }
}

ondisk! {
    /// Extent of CUI (`xfs_phys_extent`).
    pub struct RawPhysExtent<O>("phys_extent"): 16 {
        /// First block.
        0 => startblock: U64<O>,
        /// Blocks.
        8 => len: U32<O>,
        /// Operation, see [`refcount`].
        12 => flags: U32<O>,
    }
}

impl<O: ByteOrder> RawDoneItem<O> {
    /// Decodes a done item that has no extents: which intent it answers, by type and id.
    ///
    /// # Errors
    /// When it is too short, or of another type.
    pub fn decode(region: &[u8]) -> Result<(LogItemType, u64), Check> {
        use LogItemType::{Attrd, Bud, Cud, CudRt, Rud, RudRt, Xmd};
        let (raw, _) = Self::prefix(region).ok_or(failed("id", Rule::Truncated))?;
        let kind = expect_kind(raw.type_.get(), &[Rud, RudRt, Cud, CudRt, Bud, Attrd, Xmd])?;
        Ok((kind, raw.intent_id.get()))
    }

    /// The bytes of a done item of this type that has no extents.
    pub fn encode(kind: LogItemType, intent_id: u64) -> Vec<u8> {
        let (type_, size) = (U16::new(kind.number()), U16::new(1));
        let raw = RawDoneItem::<O> { type_, size, pad: U32::ZERO, intent_id: U64::new(intent_id) };
        raw.as_bytes().to_vec()
    }
}

/// An extent to be freed or freed already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreedExtent {
    /// First block.
    pub start: u64,
    /// Blocks.
    pub len: u32,
}

/// EFI or EFD, of the data or the realtime section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeItem {
    /// One of the four types.
    pub kind: LogItemType,
    /// Id of the intent, in the done item too.
    pub id: u64,
    /// The extents.
    pub extents: Vec<FreedExtent>,
}

const fn failed(field: &'static str, rule: Rule) -> Check {
    Check::new("log_intent", field, rule)
}

/// Head and extents of an intent; the region must have exactly the extents that the head counts.
fn head_and_extents<O: ByteOrder, E: OnDisk>(region: &[u8]) -> Result<(&RawIntentHead<O>, &[E]), Check> {
    let (head, rest) = RawIntentHead::<O>::prefix(region).ok_or(failed("id", Rule::Truncated))?;
    let count = usize::try_from(head.nextents.get()).map_err(|_| failed("nextents", Rule::Count))?;
    match E::prefix_slice(rest, count) {
        Some((extents, [])) => Ok((head, extents)),
        Some(_) => Err(failed("nextents", Rule::Mismatch)),
        None => Err(failed("nextents", Rule::Count)),
    }
}

fn expect_kind(number: u16, allowed: &[LogItemType]) -> Result<LogItemType, Check> {
    let kind = LogItemType::from_number(number).filter(|kind| allowed.contains(kind));
    kind.ok_or(failed("type", Rule::Magic))
}

fn head_bytes<O: ByteOrder>(kind: LogItemType, id: u64, nextents: usize) -> Option<Vec<u8>> {
    let head = RawIntentHead::<O> {
        type_: U16::new(kind.number()),
        size: U16::new(1),
        nextents: U32::new(u32::try_from(nextents).ok()?),
        id: U64::new(id),
    };
    Some(head.as_bytes().to_vec())
}

impl FreeItem {
    /// Decodes an EFI or EFD; the length tells the width of the writer.
    ///
    /// # Errors
    /// The check that it fails: type, or a number of extents that does not agree with the length.
    pub fn decode<O: ByteOrder>(region: &[u8]) -> Result<(Self, Width), Check> {
        use LogItemType::{Efd, EfdRt, Efi, EfiRt};
        let (head, extents, width) = match head_and_extents::<O, RawExtent64<O>>(region) {
            Ok((head, list)) => {
                let extents = list.iter().map(|e| FreedExtent { start: e.start.get(), len: e.len.get() }).collect();
                (head, extents, Width::Bits64)
            }
            Err(_) => {
                let (head, list) = head_and_extents::<O, RawExtent32<O>>(region)?;
                let extents = list.iter().map(|e| FreedExtent { start: e.start.get(), len: e.len.get() }).collect();
                (head, extents, Width::Bits32)
            }
        };
        let kind = expect_kind(head.type_.get(), &[Efi, Efd, EfiRt, EfdRt])?;
        Ok((FreeItem { kind, id: head.id.get(), extents }, width))
    }

    /// The bytes of the item; `None` when there are more extents than it can count.
    pub fn encode<O: ByteOrder>(&self, width: Width) -> Option<Vec<u8>> {
        let mut bytes = head_bytes::<O>(self.kind, self.id, self.extents.len())?;
        for extent in &self.extents {
            let (start, len) = (U64::<O>::new(extent.start), U32::<O>::new(extent.len));
            match width {
                Width::Bits64 => bytes.extend_from_slice(RawExtent64 { start, len, pad: U32::ZERO }.as_bytes()),
                Width::Bits32 => bytes.extend_from_slice(RawExtent32 { start, len }.as_bytes()),
            }
        }
        Some(bytes)
    }
}

/// An extent of a reverse mapping or mapping intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapExtent {
    /// Inode number, or another owner.
    pub owner: u64,
    /// First block.
    pub startblock: u64,
    /// Block of the file.
    pub startoff: u64,
    /// Blocks.
    pub len: u32,
    /// Operation and flags.
    pub flags: u32,
}

/// RUI (of either section) or BUI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapItem {
    /// [`LogItemType::Rui`], [`LogItemType::RuiRt`] or [`LogItemType::Bui`].
    pub kind: LogItemType,
    /// What the done item refers to.
    pub id: u64,
    /// The extents.
    pub extents: Vec<MapExtent>,
}

impl MapItem {
    /// Decodes a RUI or BUI.
    ///
    /// # Errors
    /// The check that it fails: type, or a number of extents that does not agree with the length.
    pub fn decode<O: ByteOrder>(region: &[u8]) -> Result<Self, Check> {
        let (head, list) = head_and_extents::<O, RawMapExtent<O>>(region)?;
        let kind = expect_kind(head.type_.get(), &[LogItemType::Rui, LogItemType::RuiRt, LogItemType::Bui])?;
        let extent = |e: &RawMapExtent<O>| MapExtent {
            owner: e.owner.get(),
            startblock: e.startblock.get(),
            startoff: e.startoff.get(),
            len: e.len.get(),
            flags: e.flags.get(),
        };
        Ok(MapItem { kind, id: head.id.get(), extents: list.iter().map(extent).collect() })
    }

    /// The bytes of the item; `None` when there are more extents than it can count.
    pub fn encode<O: ByteOrder>(&self) -> Option<Vec<u8>> {
        let mut bytes = head_bytes::<O>(self.kind, self.id, self.extents.len())?;
        for extent in &self.extents {
            let raw = RawMapExtent::<O> {
                owner: U64::new(extent.owner),
                startblock: U64::new(extent.startblock),
                startoff: U64::new(extent.startoff),
                len: U32::new(extent.len),
                flags: U32::new(extent.flags),
            };
            bytes.extend_from_slice(raw.as_bytes());
        }
        Some(bytes)
    }
}

/// An extent of a reference count intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhysExtent {
    /// First block.
    pub startblock: u64,
    /// Blocks.
    pub len: u32,
    /// Operation.
    pub flags: u32,
}

/// CUI of either section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefcountItem {
    /// [`LogItemType::Cui`] or [`LogItemType::CuiRt`].
    pub kind: LogItemType,
    /// What the done item refers to.
    pub id: u64,
    /// The extents.
    pub extents: Vec<PhysExtent>,
}

impl RefcountItem {
    /// Decodes a CUI.
    ///
    /// # Errors
    /// The check that it fails: type, or a number of extents that does not agree with the length.
    pub fn decode<O: ByteOrder>(region: &[u8]) -> Result<Self, Check> {
        let (head, list) = head_and_extents::<O, RawPhysExtent<O>>(region)?;
        let kind = expect_kind(head.type_.get(), &[LogItemType::Cui, LogItemType::CuiRt])?;
        let extent = |e: &RawPhysExtent<O>| PhysExtent {
            startblock: e.startblock.get(),
            len: e.len.get(),
            flags: e.flags.get(),
        };
        Ok(RefcountItem { kind, id: head.id.get(), extents: list.iter().map(extent).collect() })
    }

    /// The bytes of the item; `None` when there are more extents than it can count.
    pub fn encode<O: ByteOrder>(&self) -> Option<Vec<u8>> {
        let mut bytes = head_bytes::<O>(self.kind, self.id, self.extents.len())?;
        for extent in &self.extents {
            let raw = RawPhysExtent::<O> {
                startblock: U64::new(extent.startblock),
                len: U32::new(extent.len),
                flags: U32::new(extent.flags),
            };
            bytes.extend_from_slice(raw.as_bytes());
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::{BigEndian, LittleEndian};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn free_items_come_back(id: u64, kind in 0usize..4, list in proptest::collection::vec(any::<(u64, u32)>(), 1..20)) {
            use LogItemType::{Efd, EfdRt, Efi, EfiRt};
            let extents = list.into_iter().map(|(start, len)| FreedExtent { start, len }).collect();
            let item = FreeItem { kind: [Efi, Efd, EfiRt, EfdRt][kind], id, extents };
            for width in [Width::Bits32, Width::Bits64] {
                let bytes = item.encode::<LittleEndian>(width).expect("few extents");
                prop_assert_eq!(FreeItem::decode::<LittleEndian>(&bytes), Ok((item.clone(), width)));
                let bytes = item.encode::<BigEndian>(width).expect("few extents");
                prop_assert_eq!(FreeItem::decode::<BigEndian>(&bytes), Ok((item.clone(), width)));
                prop_assert!(FreeItem::decode::<BigEndian>(&bytes[..bytes.len() - 1]).is_err());
            }
        }

        #[test]
        fn map_and_refcount_items_come_back(
            id: u64, kind in 0usize..3, list in proptest::collection::vec(any::<(u64, u64, u64, u32, u32)>(), 0..20),
        ) {
            use LogItemType::{Bui, Cui, CuiRt, Rui, RuiRt};
            let extents = list.iter().map(|&(owner, startblock, startoff, len, flags)| {
                MapExtent { owner, startblock, startoff, len, flags }
            });
            let item = MapItem { kind: [Rui, RuiRt, Bui][kind], id, extents: extents.collect() };
            let bytes = item.encode::<BigEndian>().expect("few extents");
            prop_assert_eq!(MapItem::decode::<BigEndian>(&bytes), Ok(item.clone()));
            prop_assert!(RefcountItem::decode::<BigEndian>(&bytes).is_err());
            let extents = list.iter().map(|&(startblock, .., len, flags)| PhysExtent { startblock, len, flags });
            let item = RefcountItem { kind: [Cui, CuiRt, Cui][kind], id, extents: extents.collect() };
            let bytes = item.encode::<LittleEndian>().expect("few extents");
            prop_assert_eq!(RefcountItem::decode::<LittleEndian>(&bytes), Ok(item));
        }

        #[test]
        fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), kind in 0x36u8..0x50) {
            if let Some(head) = bytes.first_chunk_mut() {
                *head = [kind, 0x12, 1, 0];
            }
            let _ = FreeItem::decode::<LittleEndian>(&bytes);
            let _ = MapItem::decode::<LittleEndian>(&bytes);
            let _ = RefcountItem::decode::<LittleEndian>(&bytes);
        }
    }

    #[test]
    fn a_done_item_is_as_long_as_its_head() {
        assert_eq!(RawDoneItem::<BigEndian>::SIZE, RawIntentHead::<BigEndian>::SIZE);
    }
}
