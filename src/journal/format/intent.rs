//! Intents, done items, and items that make inodes.

use zerocopy::IntoBytes;

use crate::error::{Error, Result};
use crate::journal::parse::in_order;
use crate::journal::{AttributeItem, LoggedDone, LoggedIntent, WriterLayout};
use crate::ondisk::log_intent::{FreeItem, MapItem, RawDoneItem, RefcountItem};
use crate::ondisk::log_item::{LogItemType, RawIcreateLog};
use crate::ondisk::log_xmi::XmiLogFormat;
use crate::ondisk::{BigEndian, OnDisk};

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum IntentBody<'a> {
    /// EFI, of either section.
    Free(FreeItem),
    /// RUI of either section, or BUI.
    Map(MapItem),
    /// CUI of either section.
    Refcount(RefcountItem),
    /// ATTRI. The lengths and the number of regions in its format are set as they are.
    Attribute(AttributeItem<'a>),
    /// XMI.
    Exchange(XmiLogFormat),
}

impl IntentBody<'_> {
    /// Its type.
    pub fn kind(&self) -> LogItemType {
        match self {
            IntentBody::Free(item) => item.kind,
            IntentBody::Map(item) => item.kind,
            IntentBody::Refcount(item) => item.kind,
            IntentBody::Attribute(_) => LogItemType::Attri,
            IntentBody::Exchange(_) => LogItemType::Xmi,
        }
    }

    /// What the done item will refer to.
    pub fn id(&self) -> u64 {
        match self {
            IntentBody::Free(item) => item.id,
            IntentBody::Map(item) => item.id,
            IntentBody::Refcount(item) => item.id,
            IntentBody::Attribute(item) => item.format.id,
            IntentBody::Exchange(item) => item.id,
        }
    }

    /// The item for the log.
    ///
    /// # Errors
    /// `Internal` when there are more extents, or longer names and values, than an item can have.
    pub fn format(&self, layout: WriterLayout) -> Result<LoggedIntent> {
        let (kind, id) = (self.kind(), self.id());
        let regions = in_order!(layout.order, O => match self {
            IntentBody::Free(item) => item.encode::<O>(layout.width).map(|bytes| vec![bytes]),
            IntentBody::Map(item) => item.encode::<O>().map(|bytes| vec![bytes]),
            IntentBody::Refcount(item) => item.encode::<O>().map(|bytes| vec![bytes]),
            IntentBody::Attribute(item) => attribute_regions(item, |format| format.encode::<O>()),
            IntentBody::Exchange(item) => Some(vec![item.encode::<O>()]),
        });
        let regions = regions.ok_or_else(|| Error::Internal(format!("an intent {} does not fit", kind.name())))?;
        Ok(LoggedIntent { id, kind, regions })
    }
}

/// Format, name, new name, value, new value; what is empty has no region.
fn attribute_regions(
    item: &AttributeItem<'_>,
    encode: impl FnOnce(&crate::ondisk::log_attri::AttriLogFormat) -> Option<Vec<u8>>,
) -> Option<Vec<Vec<u8>>> {
    let parts = [Some(item.name), item.new_name, item.value, item.new_value];
    let parts: Vec<Vec<u8>> = parts.into_iter().flatten().filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect();
    let len = |part: &[u8]| u32::try_from(part.len()).ok();
    let mut format = item.format;
    format.size = u16::try_from(1 + parts.len()).ok()?;
    format.name_len = len(item.name)?;
    format.new_name_len = item.new_name.map_or(Some(None), |name| len(name).map(Some))?;
    format.value_len = len(item.value.or(item.new_value).unwrap_or_default())?;
    let mut regions = vec![encode(&format)?];
    regions.extend(parts);
    Some(regions)
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoneBody {
    /// EFD, of either section, with the extents of the intent.
    Free(FreeItem),
    /// Any other.
    Other {
        /// Its type.
        kind: LogItemType,
        /// The id of the intent.
        id: u64,
    },
}

impl DoneBody {
    /// The answer to an intent.
    ///
    /// # Panics
    /// Never: each type of intent has an answer.
    pub fn of(intent: &IntentBody<'_>) -> Self {
        let kind = intent.kind().done().expect("invariant: intents have done items");
        match intent {
            IntentBody::Free(item) => DoneBody::Free(FreeItem { kind, ..item.clone() }),
            _ => DoneBody::Other { kind, id: intent.id() },
        }
    }

    /// The item for the log.
    ///
    /// # Errors
    /// `Internal` when there are more extents than an item can have.
    pub fn format(&self, layout: WriterLayout) -> Result<LoggedDone> {
        let (kind, intent_id, bytes) = match self {
            DoneBody::Free(item) => {
                let bytes = in_order!(layout.order, O => item.encode::<O>(layout.width));
                (item.kind, item.id, bytes.ok_or_else(|| Error::Internal("an EFD does not fit".to_owned()))?)
            }
            DoneBody::Other { kind, id } => {
                (*kind, *id, in_order!(layout.order, O => RawDoneItem::<O>::encode(*kind, *id)))
            }
        };
        Ok(LoggedDone { intent_id, kind, regions: vec![bytes] })
    }
}

/// An item that makes inodes. Type and size of `item` are set as they are; all else is big-endian on any machine.
pub fn format_icreate(item: &RawIcreateLog<BigEndian>, layout: WriterLayout) -> Vec<u8> {
    let mut bytes = item.as_bytes().to_vec();
    in_order!(layout.order, O => {
        let (raw, _) = RawIcreateLog::<O>::prefix_mut(&mut bytes).expect("invariant: the same size in both orders");
        (raw.type_, raw.size) = (LogItemType::Icreate.number().into(), 1.into());
    });
    bytes
}
