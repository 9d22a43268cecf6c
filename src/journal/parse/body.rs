//! What an item says, by its type.

use super::attribute_item::AttributeItem;
use super::buffer_item::BufferItem;
use super::inode_item::InodeItem;
use super::item::LogItem;
use super::order::in_order;
use crate::error::{Check, Rule};
use crate::ondisk::log_intent::{FreeItem, MapItem, RawDoneItem, RefcountItem};
use crate::ondisk::log_item::{DquotLogFormat, LogItemType, RawIcreateLog, RawQuotaoffLogFormat};
use crate::ondisk::log_xmi::XmiLogFormat;
use crate::ondisk::{BigEndian, OnDisk, RawDiskDquot};

/// A changed dquot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DquotItem<'a> {
    /// Which dquot, and where it is.
    pub format: DquotLogFormat,
    /// The dquot, as it is to stand on disk.
    pub dquot: &'a RawDiskDquot,
}

/// What an item says, by its type.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemBody<'a> {
    /// Parts of a buffer.
    Buffer(BufferItem<'a>),
    /// An inode.
    Inode(Box<InodeItem<'a>>),
    /// A dquot.
    Dquot(DquotItem<'a>),
    /// Quotas are turned off: flags as in the superblock's `qflags`.
    Quotaoff(u32),
    /// New inodes.
    Icreate(&'a RawIcreateLog<BigEndian>),
    /// EFI or EFD, of either section: extents to be freed, or freed already.
    Free(FreeItem),
    /// RUI of either section, or BUI: mappings to be changed.
    Map(MapItem),
    /// CUI of either section: reference counts to be changed.
    Refcount(RefcountItem),
    /// ATTRI: an attribute to be changed.
    Attribute(AttributeItem<'a>),
    /// XMI: mappings to be exchanged.
    Exchange(XmiLogFormat),
    /// A done item other than EFD: the intent with this id is done.
    Done {
        /// Type of the done item.
        kind: LogItemType,
        /// Id of the intent.
        id: u64,
    },
}

impl<'a> LogItem<'a> {
    /// Decodes the item.
    ///
    /// # Errors
    /// The check that it fails: a type without a meaning, a region that is missing or too short, counts that contradict each
    /// other.
    pub fn decode(self) -> Result<ItemBody<'a>, Check> {
        use LogItemType as T;
        let kind = self.kind().ok_or(Check::new("log_item", "type", Rule::Magic))?;
        if !self.is_complete() {
            return Err(Check::new("log_item", "size", Rule::Truncated));
        }
        let (order, format) = (self.checkpoint().order, self.format());
        Ok(match kind {
            T::Buf => ItemBody::Buffer(BufferItem::decode(self)?),
            T::Inode => ItemBody::Inode(Box::new(InodeItem::decode(self)?)),
            T::Dquot => {
                let truncated = Check::new("dq_logformat", "size", Rule::Truncated);
                let region = self.region(1).ok_or(truncated)?;
                let dquot = RawDiskDquot::prefix(region).map(|(dquot, _)| dquot).ok_or(truncated)?;
                ItemBody::Dquot(DquotItem {
                    format: in_order!(order, O => DquotLogFormat::decode::<O>(format))?,
                    dquot,
                })
            }
            T::Quotaoff => {
                ItemBody::Quotaoff(in_order!(order, O => RawQuotaoffLogFormat::<O>::decode(format)?.flags.get()))
            }
            T::Icreate => ItemBody::Icreate(in_order!(order, O => RawIcreateLog::decode::<O>(format))?),
            T::Efi | T::Efd | T::EfiRt | T::EfdRt => {
                ItemBody::Free(in_order!(order, O => FreeItem::decode::<O>(format))?.0)
            }
            T::Rui | T::RuiRt | T::Bui => ItemBody::Map(in_order!(order, O => MapItem::decode::<O>(format))?),
            T::Cui | T::CuiRt => ItemBody::Refcount(in_order!(order, O => RefcountItem::decode::<O>(format))?),
            T::Attri => ItemBody::Attribute(AttributeItem::decode(self)?),
            T::Xmi => ItemBody::Exchange(in_order!(order, O => XmiLogFormat::decode::<O>(format))?),
            T::Rud | T::RudRt | T::Cud | T::CudRt | T::Bud | T::Attrd | T::Xmd => {
                let (kind, id) = in_order!(order, O => RawDoneItem::<O>::decode(format))?;
                ItemBody::Done { kind, id }
            }
            T::Iunlink => return Err(Check::new("log_item", "type", Rule::Range)),
        })
    }
}
