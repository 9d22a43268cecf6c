//! What one transaction logged.

use super::item::LogItem;
use super::order::Order;
use crate::geometry::Lsn;
use crate::ondisk::OnDisk;
use crate::ondisk::log_record::RawLogOpHeader;

/// The header of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionHeader {
    /// Type: [`TRANS_CHECKPOINT`](crate::ondisk::log_record::TRANS_CHECKPOINT) since Linux 2.6.39.
    pub kind: u32,
    /// Transaction, as it is named in memory.
    pub tid: u32,
    /// How many regions the writer announces.
    pub num_items: u32,
}

/// Where an item's regions begin, and how many it says it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct ItemSpan {
    pub(super) first_region: u32,
    pub(super) total: u16,
}

/// The items of one transaction. It counts once it is committed: see [`Checkpoint::commit_lsn`].
///
/// Since Linux 2.6.39 a transaction of the journal is a checkpoint: the sum of many transactions in memory.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The transaction's number in the journal.
    pub tid: u32,
    /// Byte order of the items.
    pub order: Order,
    /// The record in which it begins: what a replay compares with the LSNs of metadata, and stamps on what it writes.
    pub lsn: Lsn,
    /// The record with its commit; `None` while it is not committed.
    pub commit_lsn: Option<Lsn>,
    /// Records that hold parts of it.
    pub records: u32,
    /// Operations, with those of start and commit.
    pub ops: u32,
    /// The transaction header, once it is complete.
    pub header: Option<TransactionHeader>,
    /// Whether something that belongs to it could not be read.
    pub damaged: bool,
    pub(super) last_record: Lsn,
    pub(super) header_bytes: Vec<u8>,
    /// All regions, end to end.
    pub(super) bytes: Vec<u8>,
    /// Where each region ends in `bytes`.
    pub(super) region_ends: Vec<u32>,
    pub(super) items: Vec<ItemSpan>,
}

impl Checkpoint {
    pub(super) fn new(tid: u32, order: Order, lsn: Lsn) -> Self {
        Checkpoint {
            tid,
            order,
            lsn,
            commit_lsn: None,
            records: 0,
            ops: 0,
            header: None,
            damaged: false,
            last_record: Lsn(0),
            header_bytes: Vec::new(),
            bytes: Vec::new(),
            region_ends: Vec::new(),
            items: Vec::new(),
        }
    }

    /// Its items, in the order in which they were logged.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = LogItem<'_>> + ExactSizeIterator {
        (0..self.items.len()).map(move |index| LogItem { checkpoint: self, index })
    }

    /// One of its items.
    pub fn item(&self, index: usize) -> Option<LogItem<'_>> {
        (index < self.items.len()).then_some(LogItem { checkpoint: self, index })
    }

    /// A checkpoint of `item` alone, which holds what is needed to decode it later.
    pub(in crate::journal) fn of_item(item: LogItem<'_>) -> Self {
        let whole = item.checkpoint();
        let mut alone = Checkpoint::new(whole.tid, whole.order, whole.lsn);
        (alone.commit_lsn, alone.header) = (whole.commit_lsn, whole.header);
        let total = u16::try_from(item.regions_announced()).unwrap_or(u16::MAX);
        alone.items.push(ItemSpan { first_region: 0, total });
        for region in item.all_regions() {
            alone.bytes.extend_from_slice(region);
            alone.region_ends.push(u32::try_from(alone.bytes.len()).expect("invariant: the whole has no more bytes"));
        }
        alone
    }

    /// Number of regions.
    pub fn regions(&self) -> usize {
        self.region_ends.len()
    }

    /// Bytes that it takes in the payload of records: regions, transaction header and operation headers.
    pub fn log_bytes(&self) -> u64 {
        let headers = u64::from(self.ops) * RawLogOpHeader::SIZE as u64;
        headers + self.header_bytes.len() as u64 + self.bytes.len() as u64
    }

    /// Whether all items have all of their regions, and as many are there as the header announces.
    pub fn is_complete(&self) -> bool {
        let announced = self.header.map(|header| header.num_items as usize);
        announced == Some(self.region_ends.len()) && self.items().next_back().is_none_or(|item| item.is_complete())
    }

    /// The index of the region behind those of item `index`.
    pub(super) fn regions_end(&self, index: usize) -> usize {
        self.items.get(index + 1).map_or(self.region_ends.len(), |next| next.first_region as usize)
    }

    /// The bytes of a region.
    pub(super) fn region(&self, region: usize) -> &[u8] {
        let start =
            region.checked_sub(1).and_then(|before| self.region_ends.get(before)).map_or(0, |end| *end as usize);
        let end = self.region_ends.get(region).map_or(start, |end| *end as usize);
        &self.bytes[start..end]
    }

    /// Memory that it takes, about.
    pub(super) fn held(&self) -> usize {
        self.bytes.len() + self.region_ends.len() * size_of::<u32>() + self.items.len() * size_of::<ItemSpan>()
    }
}
