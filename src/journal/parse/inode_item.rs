//! Items of inodes (Linux `xfs_inode_item_recover.c`).

use super::item::LogItem;
use super::order::in_order;
use crate::error::{Check, Rule};
use crate::ondisk::RawDinode;
use crate::ondisk::log_inode::{InodeLogFormat, RawLogDinode, Width, field};

/// An inode: its core, and those of its forks that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeItem<'a> {
    /// Which inode, where it is, and which parts of it follow.
    pub format: InodeLogFormat,
    /// Width of the machine that wrote it.
    pub width: Width,
    /// The core as it is to stand on disk, whatever the order of the writer. `lsn`, `crc` and `next_unlinked` mean nothing;
    /// what inodes of version 1 and 2 do not have is zero.
    pub core: Box<RawDinode>,
    /// The data fork: contents or extents as on disk, or the root of a btree as in memory.
    pub data: Option<&'a [u8]>,
    /// The attribute fork, likewise.
    pub attributes: Option<&'a [u8]>,
}

/// Parts that are the data fork.
const DATA_FORK: u32 = field::DDATA | field::DEXT | field::DBROOT;
/// Parts that are the attribute fork.
const ATTRIBUTE_FORK: u32 = field::ADATA | field::AEXT | field::ABROOT;

impl<'a> InodeItem<'a> {
    /// Decodes the item: format, core, and a region for each fork.
    pub(super) fn decode(item: LogItem<'a>) -> Result<Self, Check> {
        let order = item.checkpoint().order;
        let (format, width) = in_order!(order, O => InodeLogFormat::decode::<O>(item.format()))?;
        let mismatch = Check::new("inode_log_format", "fields", Rule::Mismatch);
        let mut regions = item.all_regions().skip(1);
        let core = regions.next().ok_or(mismatch)?;
        let core = in_order!(order, O => RawLogDinode::<O>::decode(core)?.to_disk());
        let mut fork = |parts: u32, len: u16| match format.fields & parts {
            0 => Ok(None),
            // regions are padded to whole words
            _ => regions.next().map(|fork| Some(fork.get(..usize::from(len)).unwrap_or(fork))).ok_or(mismatch),
        };
        let data = fork(DATA_FORK, format.dsize)?;
        let attributes = fork(ATTRIBUTE_FORK, format.asize)?;
        if regions.next().is_some() {
            return Err(mismatch);
        }
        Ok(InodeItem { format, width, core: Box::new(core), data, attributes })
    }
}
