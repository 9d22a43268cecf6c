//! The types of log items, and the small items: dquots, the end of quotas, inode clusters
//! (Linux `fs/xfs/libxfs/xfs_log_format.h`). Everything is in the writer's byte order unless said otherwise.

use crate::error::{Check, Rule};
use crate::ondisk::{Be32, BigEndian, OnDisk};
use zerocopy::IntoBytes;
use zerocopy::byteorder::{ByteOrder, U16, U32, U64};

/// Type of a log item: the first field of its first region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum LogItemType {
    /// Extents to be freed.
    Efi = 0x1236,
    /// They are freed.
    Efd = 0x1237,
    /// Never written; recovery refuses it.
    Iunlink = 0x1238,
    /// An inode.
    Inode = 0x123b,
    /// Parts of a buffer.
    Buf = 0x123c,
    /// A dquot.
    Dquot = 0x123d,
    /// Quotas are turned off (old kernels).
    Quotaoff = 0x123e,
    /// A chunk of new inodes.
    Icreate = 0x123f,
    /// Reverse mappings to be updated.
    Rui = 0x1240,
    /// They are updated.
    Rud = 0x1241,
    /// Reference counts to be updated.
    Cui = 0x1242,
    /// They are updated.
    Cud = 0x1243,
    /// A mapping to be changed.
    Bui = 0x1244,
    /// It is changed.
    Bud = 0x1245,
    /// An attribute to be changed.
    Attri = 0x1246,
    /// It is changed.
    Attrd = 0x1247,
    /// Mappings to be exchanged between two files.
    Xmi = 0x1248,
    /// They are exchanged.
    Xmd = 0x1249,
    /// [`LogItemType::Efi`] for the realtime section.
    EfiRt = 0x124a,
    /// [`LogItemType::Efd`] for the realtime section.
    EfdRt = 0x124b,
    /// [`LogItemType::Rui`] for the realtime section.
    RuiRt = 0x124c,
    /// [`LogItemType::Rud`] for the realtime section.
    RudRt = 0x124d,
    /// [`LogItemType::Cui`] for the realtime section.
    CuiRt = 0x124e,
    /// [`LogItemType::Cud`] for the realtime section.
    CudRt = 0x124f,
}

impl LogItemType {
    /// All of them, by number.
    pub const ALL: [LogItemType; 24] = {
        use LogItemType::{
            Attrd, Attri, Bud, Buf, Bui, Cud, CudRt, Cui, CuiRt, Dquot, Efd, EfdRt, Efi, EfiRt, Icreate, Inode,
            Iunlink, Quotaoff, Rud, RudRt, Rui, RuiRt, Xmd, Xmi,
        };
        [
            Efi, Efd, Iunlink, Inode, Buf, Dquot, Quotaoff, Icreate, Rui, Rud, Cui, Cud, Bui, Bud, Attri, Attrd, Xmi,
            Xmd, EfiRt, EfdRt, RuiRt, RudRt, CuiRt, CudRt,
        ]
    };

    /// The type with this number.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Its number.
    pub fn number(self) -> u16 {
        self as u16
    }

    /// The name that xfsprogs gives it in lists of items.
    pub fn name(self) -> &'static str {
        match self {
            LogItemType::Efi => "EFI",
            LogItemType::Efd => "EFD",
            LogItemType::Iunlink => "IUNLINK",
            LogItemType::Inode => "INODE",
            LogItemType::Buf => "BUF",
            LogItemType::Dquot => "DQUOT",
            LogItemType::Quotaoff => "QUOTAOFF",
            LogItemType::Icreate => "ICREATE",
            LogItemType::Rui => "RUI",
            LogItemType::Rud => "RUD",
            LogItemType::Cui => "CUI",
            LogItemType::Cud => "CUD",
            LogItemType::Bui => "BUI",
            LogItemType::Bud => "BUD",
            LogItemType::Attri => "ATTRI",
            LogItemType::Attrd => "ATTRD",
            LogItemType::Xmi => "XMI",
            LogItemType::Xmd => "XMD",
            LogItemType::EfiRt => "EFI_RT",
            LogItemType::EfdRt => "EFD_RT",
            LogItemType::RuiRt => "RUI_RT",
            LogItemType::RudRt => "RUD_RT",
            LogItemType::CuiRt => "CUI_RT",
            LogItemType::CudRt => "CUD_RT",
        }
    }

    /// For a done item, the type of the intent that it answers.
    pub fn intent(self) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.done() == Some(self))
    }

    /// For an intent, the type of the item that says it is done.
    pub fn done(self) -> Option<Self> {
        use LogItemType::{
            Attrd, Attri, Bud, Bui, Cud, CudRt, Cui, CuiRt, Efd, EfdRt, Efi, EfiRt, Rud, RudRt, Rui, RuiRt, Xmd, Xmi,
        };
        Some(match self {
            Efi => Efd,
            Rui => Rud,
            Cui => Cud,
            Bui => Bud,
            Attri => Attrd,
            Xmi => Xmd,
            EfiRt => EfdRt,
            RuiRt => RudRt,
            CuiRt => CudRt,
            _ => return None,
        })
    }
}

ondisk! {
    /// What every first region starts with. Recovery reads it before it knows what the item is.
    pub struct RawItemHead<O>("log_item"): 4 {
        /// Type, see [`LogItemType`].
        0 => type_: U16<O>,
        /// Regions of the item, this one included.
        2 => size: U16<O>,
    }
}

/// Type number and region count of the item whose first region is `region`.
pub fn item_head<O: ByteOrder>(region: &[u8]) -> Option<(u16, u16)> {
    RawItemHead::<O>::prefix(region).map(|(head, _)| (head.type_.get(), head.size.get()))
}

ondisk! {
    /// A dquot; the disk dquot follows in the second region, big-endian as on disk (`xfs_dq_logformat`).
    pub struct RawDquotLogFormat<O>("dq_logformat"): 24 {
        /// [`LogItemType::Dquot`].
        0 => type_: U16<O>,
        /// Regions: 2.
        2 => size: U16<O>,
        /// User, group or project.
        4 => id: U32<O>,
        /// Disk address of the buffer, in 512-byte units.
        8 => blkno: U64<O>,
        /// Length of the buffer, in 512-byte units.
        16 => len: U32<O>,
        /// Where the dquot stands in the buffer, in bytes.
        20 => boffset: U32<O>,
    }
}

ondisk! {
    /// Quotas are turned off; written twice, before and after (`xfs_qoff_logformat`).
    pub struct RawQuotaoffLogFormat<O>("qoff_logformat"): 20 {
        /// [`LogItemType::Quotaoff`].
        0 => type_: U16<O>,
        /// Regions: 1.
        2 => size: U16<O>,
        /// Which quotas, as in the superblock's `qflags`.
        4 => flags: U32<O>,
        /// Zero.
        8 => pad: [u8; 12],
    }
}

ondisk! {
    /// A chunk of new inodes. All fields but the first two are big-endian (`xfs_icreate_log`).
    pub struct RawIcreateLog<O>("icreate_log"): 28 {
        /// [`LogItemType::Icreate`].
        0 => type_: U16<O>,
        /// Regions: 1.
        2 => size: U16<O>,
        /// Allocation group.
        4 => ag: Be32,
        /// First block in the group.
        8 => agbno: Be32,
        /// Number of inodes.
        12 => count: Be32,
        /// Size of an inode in bytes.
        16 => isize: Be32,
        /// Length in blocks.
        20 => length: Be32,
        /// Generation of the new inodes.
        24 => generation: Be32,
    }
}

/// What a dquot item says of its dquot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DquotLogFormat {
    /// User, group or project.
    pub id: u32,
    /// Disk address of the buffer, in 512-byte units.
    pub blkno: u64,
    /// Length of the buffer, in 512-byte units.
    pub len: u32,
    /// Where the dquot stands in the buffer, in bytes.
    pub boffset: u32,
}

impl DquotLogFormat {
    /// Decodes the first region of a dquot item.
    ///
    /// # Errors
    /// When it is too short, or of another type.
    pub fn decode<O: ByteOrder>(region: &[u8]) -> Result<Self, Check> {
        let raw: &RawDquotLogFormat<O> = prefix_of_type::<O, _>(region, LogItemType::Dquot)?;
        Ok(DquotLogFormat { id: raw.id.get(), blkno: raw.blkno.get(), len: raw.len.get(), boffset: raw.boffset.get() })
    }

    /// The bytes of the first region.
    pub fn encode<O: ByteOrder>(&self) -> Vec<u8> {
        let raw = RawDquotLogFormat::<O> {
            type_: U16::new(LogItemType::Dquot.number()),
            size: U16::new(2),
            id: U32::new(self.id),
            blkno: U64::new(self.blkno),
            len: U32::new(self.len),
            boffset: U32::new(self.boffset),
        };
        raw.as_bytes().to_vec()
    }
}

impl<O: ByteOrder> RawQuotaoffLogFormat<O> {
    /// The region of a quotaoff item.
    ///
    /// # Errors
    /// When it is too short, or of another type.
    pub fn decode(region: &[u8]) -> Result<&Self, Check> {
        prefix_of_type::<O, _>(region, LogItemType::Quotaoff)
    }
}

impl RawIcreateLog<BigEndian> {
    /// The region of an item that makes inodes; type and size are in the writer's order, and everything else is
    /// big-endian whatever that is.
    ///
    /// # Errors
    /// When it is too short, or of another type.
    pub fn decode<O: ByteOrder>(region: &[u8]) -> Result<&Self, Check> {
        prefix_of_type::<O, RawIcreateLog<O>>(region, LogItemType::Icreate)?;
        Self::prefix(region).map(|(raw, _)| raw).ok_or(Check::new(Self::NAME, "size", Rule::Truncated))
    }
}

/// The structure at the start of `region`, which must be of this type.
pub(super) fn prefix_of_type<O: ByteOrder, T: OnDisk>(region: &[u8], kind: LogItemType) -> Result<&T, Check> {
    let (raw, _) = T::prefix(region).ok_or(Check::new(T::NAME, "size", Rule::Truncated))?;
    match item_head::<O>(region) {
        Some((number, _)) if number == kind.number() => Ok(raw),
        _ => Err(Check::new(T::NAME, "type", Rule::Magic)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::{BigEndian, LittleEndian};

    #[test]
    fn numbers_and_types_are_inverse() {
        for kind in LogItemType::ALL {
            assert_eq!(LogItemType::from_number(kind.number()), Some(kind));
            // a done item has the number after its intent's
            assert!(kind.done().is_none_or(|done| done.number() == kind.number() + 1 && done.intent() == Some(kind)));
        }
        assert_eq!(LogItemType::from_number(0x1239), None);
        assert_eq!(LogItemType::ALL.iter().filter(|kind| kind.done().is_some()).count(), 9);
    }

    #[test]
    fn the_head_is_read_in_both_orders() {
        assert_eq!(item_head::<LittleEndian>(&[0x3c, 0x12, 2, 0, 9]), Some((0x123c, 2)));
        assert_eq!(item_head::<BigEndian>(&[0x12, 0x3c, 0, 2]), Some((0x123c, 2)));
        assert_eq!(item_head::<BigEndian>(&[0x12, 0x3c, 0]), None);
    }
}
