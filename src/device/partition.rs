//! Partition tables of whole-disk images: GPT with sectors of 512 or 4096 bytes, and MBR with logical partitions.
//!
//! The crates `gpt` and `mbrman` decode; what they trust and a stranger's image could abuse (the number and size of
//! GPT entries, the chain of extended boot records) is bounded here first.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use gpt::disk::LogicalBlockSize;
use gpt::header::{Header, read_header_from_arbitrary_device};
use gpt::partition::file_read_partitions;
use mbrman::{MBRHeader, MBRPartitionEntry};

use super::contract::{ByteRange, Device, length_of};
use crate::error::{Error, Result};

/// One partition of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, as the kernel counts: from 1; logical partitions of an MBR from 5.
    pub number: u32,
    /// Where it lies on the disk. A table can say anything: this may reach behind the disk's end.
    pub range: ByteRange,
}

/// Kind of a partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// GUID partition table.
    Gpt,
    /// The older table in the first sector, and its chain of extended boot records.
    Mbr,
}

/// A partition table as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionTable {
    /// Its kind.
    pub kind: TableKind,
    /// What it lists, by ascending number.
    pub partitions: Vec<Partition>,
}

/// The most GPT entries that are read; 128 are usual.
const MAX_GPT_ENTRIES: u32 = 4096;
/// The only size of GPT entries in use.
const GPT_ENTRY_SIZE: u32 = 128;
/// The longest chain of extended boot records that is followed; the kernel stops at 100.
const MAX_LOGICAL: u32 = 128;
/// Type of the MBR entry that protects a GPT.
const PROTECTIVE: u8 = 0xEE;
/// Length of a boot record, whatever the sector size.
const BOOT_RECORD: usize = 512;

impl PartitionTable {
    /// Reads the table of a whole disk.
    ///
    /// A GPT counts if the MBR protects it or there is no MBR; its backup is used where the primary is damaged.
    ///
    /// # Errors
    /// `Usage` if there is no partition table; `Unsupported` if it is damaged or strange; `Io`.
    pub fn read(device: &dyn Device) -> Result<Self> {
        let mbr = read_boot_record(device, 0)?;
        let protects = mbr.as_ref().is_some_and(|mbr| mbr.iter().any(|(_, entry)| entry.sys == PROTECTIVE));
        match mbr {
            Some(mbr) if !protects => Ok(PartitionTable { kind: TableKind::Mbr, partitions: read_mbr(device, &mbr)? }),
            _ => match read_gpt(device)? {
                Some(partitions) => Ok(PartitionTable { kind: TableKind::Gpt, partitions }),
                None if protects => Err(Error::Unsupported("a GPT of which both copies are damaged".to_owned())),
                None => Err(Error::Usage("there is no partition table".to_owned())),
            },
        }
    }

    /// Where partition `number` lies.
    ///
    /// # Errors
    /// `Usage` if the table has no such partition, or it does not lie on the device.
    pub fn find(&self, device: &dyn Device, number: u32) -> Result<ByteRange> {
        let Some(partition) = self.partitions.iter().find(|partition| partition.number == number) else {
            let numbers: Vec<String> = self.partitions.iter().map(|partition| partition.number.to_string()).collect();
            let known = if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") };
            return Err(Error::Usage(format!("there is no partition {number}; the table lists: {known}")));
        };
        match partition.range.start.checked_add(partition.range.len) {
            Some(end) if partition.range.len > 0 && end <= device.len() => Ok(partition.range),
            _ => Err(Error::Usage(format!("partition {number} reaches behind the end of the disk"))),
        }
    }
}

/// The boot record at `offset`: `None` if there is none.
fn read_boot_record(device: &dyn Device, offset: u64) -> Result<Option<MBRHeader>> {
    let mut record = [0; BOOT_RECORD];
    if offset.checked_add(length_of(&record)).is_none_or(|end| end > device.len()) {
        return Ok(None);
    }
    device.read_at(offset, &mut record)?;
    Ok(MBRHeader::read_from(&mut Cursor::new(record)).ok())
}

/// The range of an MBR entry that counts its sectors from `base`.
fn mbr_range(entry: &MBRPartitionEntry, base: u64, sector: u64) -> Option<ByteRange> {
    let start = base.checked_add(u64::from(entry.starting_lba))?.checked_mul(sector)?;
    let len = u64::from(entry.sectors).checked_mul(sector)?;
    (entry.is_used() && len > 0).then_some(ByteRange { start, len })
}

fn read_mbr(device: &dyn Device, mbr: &MBRHeader) -> Result<Vec<Partition>> {
    let sector = u64::from(device.sector_size().logical);
    let mut partitions = Vec::new();
    for (number, (_, entry)) in (1..).zip(mbr.iter()) {
        // an extended partition is a container: what lies in it has numbers of its own
        let plain = Some(entry).filter(|entry| !entry.is_extended());
        partitions.extend(plain.and_then(|entry| mbr_range(entry, 0, sector)).map(|range| Partition { number, range }));
    }
    let extended = mbr.iter().find(|(_, entry)| entry.is_extended());
    if let Some((_, extended)) = extended {
        let ranges = read_logical(device, u64::from(extended.starting_lba), sector)?;
        partitions.extend((5..).zip(ranges).map(|(number, range)| Partition { number, range }));
    }
    Ok(partitions)
}

/// Follows the chain of extended boot records from sector `first` on.
fn read_logical(device: &dyn Device, first: u64, sector: u64) -> Result<Vec<ByteRange>> {
    let mut ranges = Vec::new();
    let mut at = first;
    for _ in 0..MAX_LOGICAL {
        let Some(offset) = at.checked_mul(sector) else { break };
        let Some(record) = read_boot_record(device, offset)? else { break };
        let plain = record.iter().map(|(_, entry)| entry).filter(|entry| !entry.is_extended());
        ranges.extend(plain.filter_map(|entry| mbr_range(entry, at, sector)));
        let Some((_, link)) = record.iter().find(|(_, entry)| entry.is_extended() && entry.starting_lba > 0) else {
            break;
        };
        at = first + u64::from(link.starting_lba);
    }
    Ok(ranges)
}

fn read_gpt(device: &dyn Device) -> Result<Option<Vec<Partition>>> {
    let sizes = match device.sector_size().logical {
        4096 => [LogicalBlockSize::Lb4096, LogicalBlockSize::Lb512],
        _ => [LogicalBlockSize::Lb512, LogicalBlockSize::Lb4096],
    };
    for size in sizes {
        // The crate reads a header from the second sector only; the backup is in the last one.
        let copies = [Some(0), device.len().checked_sub(2 * size.as_u64())];
        for base in copies.into_iter().flatten() {
            let Ok(header) = read_header_from_arbitrary_device(&mut DiskReader { device, base, at: 0 }, size) else {
                continue;
            };
            if let Some(partitions) = read_gpt_entries(device, &header, size)? {
                return Ok(Some(partitions));
            }
        }
    }
    Ok(None)
}

/// The entries that a sound header points to; `None` if their checksum is wrong.
fn read_gpt_entries(device: &dyn Device, header: &Header, size: LogicalBlockSize) -> Result<Option<Vec<Partition>>> {
    if header.part_size != GPT_ENTRY_SIZE || header.num_parts > MAX_GPT_ENTRIES {
        let what = format!("a GPT of {} entries with {} bytes each", header.num_parts, header.part_size);
        return Err(Error::Unsupported(what));
    }
    let Ok(entries) = file_read_partitions(&mut DiskReader { device, base: 0, at: 0 }, header, size) else {
        return Ok(None);
    };
    let used = entries.iter().filter(|(_, entry)| entry.is_used());
    Ok(Some(
        used.filter_map(|(number, entry)| {
            let range = ByteRange { start: entry.bytes_start(size).ok()?, len: entry.bytes_len(size).ok()? };
            Some(Partition { number: *number, range })
        })
        .collect(),
    ))
}

/// A device as a stream, from byte `base` on.
struct DiskReader<'a> {
    device: &'a dyn Device,
    base: u64,
    at: u64,
}

impl Read for DiskReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let offset = self.base.saturating_add(self.at);
        let left = self.device.len().saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        self.device.read_at(offset, &mut buf[..len]).map_err(io::Error::other)?;
        self.at += length_of(&buf[..len]);
        Ok(len)
    }
}

impl Seek for DiskReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let size = self.device.len().saturating_sub(self.base);
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gpt::GptConfig;
    use gpt::mbr::ProtectiveMBR;
    use proptest::prelude::*;

    use super::*;
    use crate::device::MemoryDevice;

    /// What the test disks are cut into.
    const UNIT: u64 = 64 << 10;
    const DISK: usize = 16 << 16;

    fn gpt_disk(size: LogicalBlockSize) -> Vec<u8> {
        let bytes = vec![0; DISK];
        let mut disk = GptConfig::new()
            .writable(true)
            .logical_block_size(size)
            .create_from_device(Cursor::new(bytes), None)
            .expect("invariant: a table can be made");
        disk.update_partitions(BTreeMap::new()).expect("invariant: an empty table fits");
        for (id, units) in [(1, 2), (2, 3), (3, 1)] {
            disk.add_partition_at(
                "x",
                id,
                UNIT * u64::from(id) * 3 / size.as_u64(),
                units * UNIT / size.as_u64(),
                gpt::partition_types::LINUX_FS,
                0,
            )
            .expect("invariant: there is room");
        }
        let mut bytes = disk.write().expect("invariant: the table can be written");
        let sectors = u32::try_from(DISK / size.as_usize()).expect("invariant: a small disk has few sectors");
        ProtectiveMBR::with_lb_size(sectors - 1)
            .overwrite_lba0(&mut bytes)
            .expect("invariant: there is a first sector");
        bytes.into_inner()
    }

    fn read(bytes: &[u8]) -> Result<PartitionTable> {
        PartitionTable::read(&MemoryDevice::from_bytes(bytes))
    }

    fn ranges(table: &PartitionTable) -> Vec<(u32, u64, u64)> {
        table.partitions.iter().map(|found| (found.number, found.range.start, found.range.len)).collect()
    }

    #[test]
    fn gpt_with_both_sector_sizes_and_from_either_copy() {
        for size in [LogicalBlockSize::Lb512, LogicalBlockSize::Lb4096] {
            let mut bytes = gpt_disk(size);
            let expected = [(1, 3 * UNIT, 2 * UNIT), (2, 6 * UNIT, 3 * UNIT), (3, 9 * UNIT, UNIT)];
            let table = read(&bytes).expect("invariant: the table is sound");
            assert_eq!((table.kind, ranges(&table).as_slice()), (TableKind::Gpt, &expected[..]));
            bytes[size.as_usize()] ^= 1;
            assert_eq!(ranges(&read(&bytes).expect("the backup is sound")), expected);
            let last = bytes.len() - size.as_usize();
            bytes[last] ^= 1;
            assert!(matches!(read(&bytes), Err(Error::Unsupported(_))));
        }
    }

    #[test]
    fn find_names_what_there_is() {
        let device = MemoryDevice::from_bytes(&gpt_disk(LogicalBlockSize::Lb512));
        let table = PartitionTable::read(&device).expect("invariant: the table is sound");
        assert_eq!(table.find(&device, 2).expect("there is one"), ByteRange { start: 6 * UNIT, len: 3 * UNIT });
        let error = table.find(&device, 5).expect_err("there is none").to_string();
        assert_eq!(error, "there is no partition 5; the table lists: 1, 2, 3");
        let cut = MemoryDevice::new(7 * UNIT);
        assert!(table.find(&cut, 2).is_err());
    }

    fn entry(sys: u8, start: u32, sectors: u32) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[4] = sys;
        bytes[8..12].copy_from_slice(&start.to_le_bytes());
        bytes[12..16].copy_from_slice(&sectors.to_le_bytes());
        bytes
    }

    fn boot_record(bytes: &mut [u8], sector: u32, entries: &[[u8; 16]]) {
        let at = usize::try_from(sector).expect("invariant: sectors are few") * 512;
        for (slot, entry) in entries.iter().enumerate() {
            bytes[at + 446 + slot * 16..][..16].copy_from_slice(entry);
        }
        bytes[at + 510..][..2].copy_from_slice(&[0x55, 0xAA]);
    }

    fn mbr_disk() -> Vec<u8> {
        let mut bytes = vec![0; 1 << 20];
        boot_record(&mut bytes, 0, &[entry(0x83, 8, 16), entry(0, 0, 0), entry(0x0F, 100, 900)]);
        boot_record(&mut bytes, 100, &[entry(0x83, 10, 20), entry(0x05, 200, 50)]);
        boot_record(&mut bytes, 300, &[entry(0x83, 5, 7)]);
        bytes
    }

    #[test]
    fn mbr_with_logical_partitions() {
        let table = read(&mbr_disk()).expect("invariant: the table is sound");
        assert_eq!(table.kind, TableKind::Mbr);
        let expected = [(1, 8, 16), (5, 110, 20), (6, 305, 7)];
        assert_eq!(ranges(&table), expected.map(|(number, start, len)| (number, start * 512, len * 512)));
    }

    #[test]
    fn a_circle_of_boot_records_ends() {
        let mut bytes = mbr_disk();
        boot_record(&mut bytes, 300, &[entry(0x83, 5, 7), entry(0x05, 200, 50)]);
        assert_eq!(read(&bytes).expect("readable").partitions.len(), 1 + 128);
    }

    #[test]
    fn a_gpt_that_claims_too_many_entries_is_refused() {
        for (at, value) in [(80, u32::MAX), (80, 4097), (84, 256), (84, 0)] {
            let mut bytes = gpt_disk(LogicalBlockSize::Lb512);
            let header = &mut bytes[512..604];
            header[at..at + 4].copy_from_slice(&value.to_le_bytes());
            header[16..20].fill(0);
            let crc = crc32_ieee(header);
            header[16..20].copy_from_slice(&crc.to_le_bytes());
            assert!(matches!(read(&bytes), Err(Error::Unsupported(_))));
        }
    }

    /// The CRC that GPT uses, bit by bit.
    fn crc32_ieee(bytes: &[u8]) -> u32 {
        let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
    }

    #[test]
    fn nothing_there() {
        for len in [0, 511, 512, 1024, 8192, 100_000] {
            assert!(matches!(read(&vec![0; len]), Err(Error::Usage(_))));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_table_is_fatal(
            gpt in any::<bool>(),
            changes in prop::collection::vec((0_usize..2048, any::<u8>()), 1..40),
            fix in any::<bool>(),
        ) {
            let mut bytes = if gpt { gpt_disk(LogicalBlockSize::Lb512) } else { mbr_disk() };
            for (at, byte) in changes {
                let at = if gpt { at } else { 440 + at % 72 + (at / 72 % 3 * 100 * 512) };
                bytes[at] = byte;
            }
            if fix && gpt {
                bytes[528..532].fill(0);
                let crc = crc32_ieee(&bytes[512..604]);
                bytes[528..532].copy_from_slice(&crc.to_le_bytes());
            }
            let device = MemoryDevice::from_bytes(&bytes);
            if let Ok(table) = PartitionTable::read(&device) {
                for partition in &table.partitions {
                    if let Ok(range) = table.find(&device, partition.number) {
                        prop_assert!(range.end() <= device.len());
                    }
                }
            }
        }
    }
}
