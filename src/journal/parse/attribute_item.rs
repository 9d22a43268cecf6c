//! Items of attributes to be changed (Linux `xfs_attr_item.c`).

use super::item::LogItem;
use super::order::in_order;
use crate::error::{Check, Rule};
use crate::ondisk::log_attri::AttriLogFormat;

/// An attribute to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeItem<'a> {
    /// Which inode, and what is to be done.
    pub format: AttriLogFormat,
    /// Name of the attribute, or the file's name in its parent.
    pub name: &'a [u8],
    /// What the name becomes, where a parent pointer is replaced.
    pub new_name: Option<&'a [u8]>,
    /// Value of the attribute, or the parent.
    pub value: Option<&'a [u8]>,
    /// What the value becomes, where a parent pointer is replaced.
    pub new_value: Option<&'a [u8]>,
}

impl<'a> AttributeItem<'a> {
    /// Decodes the item: format, name, new name, value, new value; what has no length has no region.
    pub(super) fn decode(item: LogItem<'a>) -> Result<Self, Check> {
        let format = in_order!(item.checkpoint().order, O => AttriLogFormat::decode::<O>(item.format()))?;
        let mut regions = item.all_regions().skip(1);
        let mut part = |field, len: u32| match len {
            0 => Ok(None),
            // regions are padded to whole words
            _ => {
                let bytes = regions.next().and_then(|region| region.get(..usize::try_from(len).ok()?));
                bytes.map(Some).ok_or(Check::new("attri_log_format", field, Rule::Truncated))
            }
        };
        let name = part("name_len", format.name_len)?.unwrap_or_default();
        let new_name = part("new_name_len", format.new_name_len.unwrap_or(0))?;
        let value = part("value_len", format.value_len)?;
        let new_value = part("value_len", if format.new_name_len.is_some() { format.value_len } else { 0 })?;
        match regions.next() {
            Some(_) => Err(Check::new("attri_log_format", "size", Rule::Mismatch)),
            None => Ok(AttributeItem { format, name, new_name, value, new_value }),
        }
    }
}
