//! How the records of each tree are ordered, and what key stands for them in a node.

use zerocopy::{FromBytes, IntoBytes};

use crate::geometry::BtreeKind;
use crate::ondisk::rmap_record::OFFSET_UNWRITTEN;
use crate::ondisk::{
    Be32, Be64, INODES_PER_CHUNK, RawAllocRecord, RawBmbtKey, RawExtent, RawInobtKey, RawRefcountKey,
    RawRefcountRecord, RawRmapKey, RawRmapRecord,
};

/// What records and keys of a tree are compared by: its parts in the order of their weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SortKey(pub [u64; 3]);

/// The longest key: that of a reverse mapping.
const LONGEST_KEY: usize = size_of::<RawRmapKey>();

/// A key as a node stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyBytes {
    bytes: [u8; LONGEST_KEY],
    len: usize,
}

impl KeyBytes {
    /// The key stored as `stored`; what exceeds the longest key is left out.
    pub fn new(stored: &[u8]) -> Self {
        let len = stored.len().min(LONGEST_KEY);
        let mut bytes = [0; LONGEST_KEY];
        bytes[..len].copy_from_slice(&stored[..len]);
        KeyBytes { bytes, len }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// `T` at the start of `bytes`; zeroes when they are too few, which a layout never lets happen.
fn read<T: FromBytes>(bytes: &[u8]) -> T {
    T::read_from_prefix(bytes).map_or_else(|_| T::new_zeroed(), |(value, _)| value)
}

fn alloc_key(kind: BtreeKind, raw: &RawAllocRecord) -> SortKey {
    let (start, count) = (u64::from(raw.startblock.get()), u64::from(raw.blockcount.get()));
    if kind == BtreeKind::Cntbt { SortKey([count, start, 0]) } else { SortKey([start, 0, 0]) }
}

fn rmap_key(raw: &RawRmapKey) -> SortKey {
    // whether an extent is unwritten does not tell it from others
    SortKey([u64::from(raw.startblock.get()), raw.owner.get(), raw.offset.get() & !OFFSET_UNWRITTEN])
}

impl SortKey {
    /// What a stored key of `kind` is compared by.
    pub fn of_key(kind: BtreeKind, key: &[u8]) -> Self {
        match kind {
            BtreeKind::Bnobt | BtreeKind::Cntbt => alloc_key(kind, &read(key)),
            BtreeKind::Inobt | BtreeKind::Finobt => SortKey([u64::from(read::<RawInobtKey>(key).startino.get()), 0, 0]),
            BtreeKind::Rmapbt | BtreeKind::Rtrmapbt => rmap_key(&read(key)),
            BtreeKind::Refcountbt | BtreeKind::Rtrefcountbt => {
                SortKey([u64::from(read::<RawRefcountKey>(key).startblock.get()), 0, 0])
            }
            BtreeKind::Bmbt => SortKey([read::<RawBmbtKey>(key).startoff.get(), 0, 0]),
        }
    }

    /// What a record of `kind` is compared by.
    pub fn of_record(kind: BtreeKind, record: &[u8]) -> Self {
        Self::of_key(kind, low_key(kind, record).as_bytes())
    }
}

/// The key of a record: the lowest that it covers.
pub(super) fn low_key(kind: BtreeKind, record: &[u8]) -> KeyBytes {
    match kind {
        BtreeKind::Rmapbt | BtreeKind::Rtrmapbt => KeyBytes::new(read::<RawRmapRecord>(record).low_key().as_bytes()),
        BtreeKind::Bmbt => {
            let startoff = read::<RawExtent>(record).decode().startoff;
            KeyBytes::new(RawBmbtKey { startoff: Be64::new(startoff) }.as_bytes())
        }
        // the other records start with their key
        BtreeKind::Bnobt | BtreeKind::Cntbt => KeyBytes::new(&record[..size_of::<RawAllocRecord>().min(record.len())]),
        BtreeKind::Inobt | BtreeKind::Finobt => KeyBytes::new(&record[..size_of::<RawInobtKey>().min(record.len())]),
        BtreeKind::Refcountbt | BtreeKind::Rtrefcountbt => {
            KeyBytes::new(&record[..size_of::<RawRefcountKey>().min(record.len())])
        }
    }
}

/// The highest key that a record covers. Sums wrap in a damaged record.
pub(super) fn high_key(kind: BtreeKind, record: &[u8]) -> KeyBytes {
    let last = |start: u32, len: u32| Be32::new(start.wrapping_add(len.wrapping_sub(1)));
    match kind {
        BtreeKind::Rmapbt | BtreeKind::Rtrmapbt => KeyBytes::new(read::<RawRmapRecord>(record).high_key().as_bytes()),
        BtreeKind::Bmbt => {
            let extent = read::<RawExtent>(record).decode();
            let last = extent.startoff.wrapping_add(u64::from(extent.blockcount)).wrapping_sub(1);
            KeyBytes::new(RawBmbtKey { startoff: Be64::new(last) }.as_bytes())
        }
        BtreeKind::Bnobt => {
            let raw: RawAllocRecord = read(record);
            let startblock = last(raw.startblock.get(), raw.blockcount.get());
            KeyBytes::new(RawAllocRecord { startblock, blockcount: Be32::new(0) }.as_bytes())
        }
        BtreeKind::Cntbt => KeyBytes::new(record),
        BtreeKind::Inobt | BtreeKind::Finobt => {
            let startino = last(read::<RawInobtKey>(record).startino.get(), INODES_PER_CHUNK);
            KeyBytes::new(RawInobtKey { startino }.as_bytes())
        }
        BtreeKind::Refcountbt | BtreeKind::Rtrefcountbt => {
            let raw: RawRefcountRecord = read(record);
            let startblock = last(raw.startblock.get(), raw.blockcount.get());
            KeyBytes::new(RawRefcountKey { startblock }.as_bytes())
        }
    }
}

/// Whether record `next` may follow `record`. In most trees it must begin behind it; reverse mappings overlap.
pub(super) fn in_order(kind: BtreeKind, record: &[u8], next: &[u8]) -> bool {
    let following = SortKey::of_record(kind, next);
    match kind {
        BtreeKind::Cntbt => SortKey::of_record(kind, record) < following,
        BtreeKind::Rmapbt | BtreeKind::Rtrmapbt => SortKey::of_record(kind, record) <= following,
        _ => SortKey::of_key(kind, high_key(kind, record).as_bytes()) < following,
    }
}
