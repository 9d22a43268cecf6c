//! What transactions hand over to a checkpoint.

use super::regions::Regions;
use crate::buffer::Request;
use crate::error::{DeviceRole, Result};
use crate::geometry::{Daddr, Ino};
use crate::ondisk::OnDisk;
use crate::ondisk::log_item::LogItemType;
use crate::ondisk::log_record::RawLogOpHeader;

/// Bytes of the header before each region.
pub(crate) const OP_HEADER: usize = RawLogOpHeader::SIZE;

/// What one item of a checkpoint logs, where later transactions can change it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKey {
    /// A buffer.
    Buffer(BufferKey),
    /// An inode.
    Inode(Ino),
    /// A dquot.
    Dquot {
        /// Whose it is: one of the types of [`crate::ondisk::dquot`].
        kind: u8,
        /// User, group or project.
        id: u32,
    },
}

impl ItemKey {
    /// The type of the item.
    pub fn item_type(&self) -> LogItemType {
        match self {
            ItemKey::Buffer(_) => LogItemType::Buf,
            ItemKey::Inode(_) => LogItemType::Inode,
            ItemKey::Dquot { .. } => LogItemType::Dquot,
        }
    }
}

/// How much an item logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemSize {
    /// Regions.
    pub regions: u32,
    /// Bytes of them, each padded to whole words; without the headers of operations.
    pub bytes: u64,
}

impl ItemSize {
    /// The size of an item of these regions.
    pub fn of<R: AsRef<[u8]>>(regions: &[R]) -> Self {
        regions.iter().fold(ItemSize::default(), |size, region| size.with(region.as_ref().len()))
    }

    /// The size with one region more, of `len` bytes.
    #[must_use]
    pub fn with(self, len: usize) -> Self {
        ItemSize { regions: self.regions + 1, bytes: self.bytes + padded(len) as u64 }
    }

    /// Bytes that the item takes in the log as long as none of its regions is split (Linux `lv_bytes`).
    pub fn log_bytes(&self) -> u64 {
        self.bytes + u64::from(self.regions) * OP_HEADER as u64
    }
}

/// The length of a region in the log: whole words (`xlog_calc_iovec_len`).
pub(crate) fn padded(len: usize) -> usize {
    len.next_multiple_of(size_of::<u32>())
}

/// What tells one buffer from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferKey {
    /// The device.
    pub device: DeviceRole,
    /// Where it begins.
    pub daddr: Daddr,
    /// Bytes. A block that is freed, and one that takes its place with another length, are two items.
    pub len: u32,
}

impl BufferKey {
    /// Of the block that `request` asks for.
    pub fn of(request: &Request) -> Self {
        let len = u32::try_from(request.len()).unwrap_or(u32::MAX);
        BufferKey { device: request.device, daddr: request.daddr(), len }
    }
}

/// An intent that a transaction logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedIntent {
    /// What its done item will refer to, together with the type.
    pub id: u64,
    /// Its type.
    pub kind: LogItemType,
    /// The item as it is to stand in the log.
    pub regions: Vec<Vec<u8>>,
}

/// A done item that a transaction logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedDone {
    /// The id of the intent that it answers.
    pub intent_id: u64,
    /// Its type.
    pub kind: LogItemType,
    /// The item as it is to stand in the log.
    pub regions: Vec<Vec<u8>>,
}

/// What one transaction logs. In the log its done items come first, then new inodes, then buffers, inodes and dquots, then
/// intents: nothing is answered before it was asked for, since the answer to an intent comes in a later transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// Buffers, inodes and dquots, which replace their older copies; each once.
    pub relogged: Vec<(ItemKey, ItemSize)>,
    /// Items that make inodes, as they are to stand in the log.
    pub icreates: Vec<Vec<u8>>,
    /// Intents.
    pub intents: Vec<LoggedIntent>,
    /// Done items.
    pub dones: Vec<LoggedDone>,
}

impl Commit {
    /// Whether the transaction logs nothing.
    pub fn is_empty(&self) -> bool {
        self.relogged.is_empty() && self.icreates.is_empty() && self.intents.is_empty() && self.dones.is_empty()
    }
}

/// Gives buffers, inodes and dquots the form in which they stand in the log. Who owns their contents does it when the
/// checkpoint is written; the contents must be those of the last commit until then.
pub trait FormatItem {
    /// Adds the regions of the item to `regions`: as many bytes in as many regions as were announced when it was committed.
    ///
    /// # Errors
    /// `Io`, when the contents cannot be read; `Internal`, when nothing is known of the item.
    fn format(&self, key: &ItemKey, regions: &mut Regions) -> Result<()>;
}
