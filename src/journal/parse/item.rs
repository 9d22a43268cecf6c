//! An item of a checkpoint.

use super::checkpoint::Checkpoint;
use super::order::in_order;
use crate::ondisk::OnDisk;
use crate::ondisk::log_intent::RawIntentHead;
use crate::ondisk::log_item::{LogItemType, item_head};
use crate::ondisk::log_record::RawLogOpHeader;

/// An item of a checkpoint: some regions, of which the first says what it is.
#[derive(Clone, Copy, Debug)]
pub struct LogItem<'a> {
    pub(super) checkpoint: &'a Checkpoint,
    pub(super) index: usize,
}

impl<'a> LogItem<'a> {
    /// Its place among the checkpoint's items.
    pub fn index(self) -> usize {
        self.index
    }

    /// The checkpoint.
    pub fn checkpoint(self) -> &'a Checkpoint {
        self.checkpoint
    }

    /// The number of its type.
    pub fn number(self) -> u16 {
        let (order, region) = (self.checkpoint.order, self.format());
        in_order!(order, O => item_head::<O>(region)).map_or(0, |(number, _)| number)
    }

    /// Its type; `None` when the number has no meaning, which a replay refuses.
    pub fn kind(self) -> Option<LogItemType> {
        LogItemType::from_number(self.number())
    }

    /// The id of an intent, or of the intent that a done item answers.
    ///
    /// It is an address in the writer's memory, which is used again: it means something only together with the type, and
    /// only until it is answered.
    pub fn intent_id(self) -> Option<u64> {
        let kind = self.kind()?;
        if kind.done().is_none() && kind.intent().is_none() {
            return None;
        }
        let region = self.format();
        in_order!(self.checkpoint.order, O => RawIntentHead::<O>::prefix(region).map(|(head, _)| head.id.get()))
    }

    /// The first region, with its format.
    pub fn format(self) -> &'a [u8] {
        self.region(0).unwrap_or_default()
    }

    /// A region, as far as it is there.
    pub fn region(self, region: usize) -> Option<&'a [u8]> {
        (region < self.regions()).then(|| self.checkpoint.region(self.first_region() + region))
    }

    /// Its regions, as far as they are there.
    pub fn all_regions(self) -> impl Iterator<Item = &'a [u8]> {
        (0..self.regions()).filter_map(move |region| self.region(region))
    }

    /// How many regions are there.
    pub fn regions(self) -> usize {
        self.checkpoint.regions_end(self.index) - self.first_region()
    }

    /// How many regions it says it has.
    pub fn regions_announced(self) -> usize {
        usize::from(self.checkpoint.items[self.index].total)
    }

    /// Whether all regions are there.
    pub fn is_complete(self) -> bool {
        self.regions() == self.regions_announced()
    }

    /// Bytes of its regions.
    pub fn bytes(self) -> u64 {
        self.all_regions().map(|region| region.len() as u64).sum()
    }

    /// Bytes that it takes in the payload of records, if none of its regions is split: each has an operation header.
    pub fn log_bytes(self) -> u64 {
        self.bytes() + self.regions() as u64 * RawLogOpHeader::SIZE as u64
    }

    fn first_region(self) -> usize {
        self.checkpoint.items[self.index].first_region as usize
    }
}
