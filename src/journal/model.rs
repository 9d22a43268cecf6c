//! A log that is written as the kernel does, for tests.

#![allow(clippy::cast_possible_truncation)] // test logs are small

use super::area::LogArea;
use super::parse::Order;
use crate::device::{Device, MemoryDevice};
use crate::geometry::limits::BASIC_BLOCK;
use crate::geometry::{Geometry, Lsn};
use crate::ondisk::log_record::{
    BBSIZE, CLIENT_LOG, CLIENT_TRANSACTION, CrcReach, HEADER_MAGIC, RawLogOpHeader, RawLogRecHeader, RawTransHeader,
    TRANS_CHECKPOINT, TRANS_HEADER_MAGIC, UNMOUNT_MAGIC, fmt, header_blocks, op, pack, put_op, record_crc,
};
use crate::ondisk::{BigEndian, LittleEndian, OnDisk, RawSuperblock};
use zerocopy::byteorder::{ByteOrder, U32};
use zerocopy::{FromZeros, IntoBytes};

pub(super) const UUID: [u8; 16] = [7; 16];

/// A log on a device of its own.
pub(super) struct Ring {
    pub(super) device: MemoryDevice,
    pub(super) geometry: Geometry,
    pub(super) blocks: u32,
    /// Where the next record goes.
    pub(super) cycle: u32,
    pub(super) at: u32,
    pub(super) order: Order,
    /// Size of the record buffer.
    pub(super) size: u32,
    pub(super) reach: CrcReach,
    /// The record that is being filled.
    payload: Vec<u8>,
    ops: u32,
}

impl Ring {
    /// A log of so many blocks of 4096 bytes.
    pub(super) fn new(fs_blocks: u32, version: u16) -> Ring {
        let mut sb = RawSuperblock::new_zeroed();
        sb.versionnum = (4 | if version == 2 { 0x400 } else { 0 }).into();
        (sb.blocksize, sb.blocklog) = (4096.into(), 12);
        (sb.agblocks, sb.agcount, sb.dblocks) = (4096.into(), 1.into(), 4096.into());
        (sb.logblocks, sb.uuid) = (fs_blocks.into(), UUID);
        let blocks = fs_blocks * 8;
        let device = MemoryDevice::new(u64::from(blocks * BASIC_BLOCK));
        Ring {
            device,
            geometry: Geometry::assume(&sb),
            blocks,
            cycle: 1,
            at: 0,
            order: Order::Little,
            size: 32 * 1024,
            reach: CrcReach::Usual,
            payload: Vec::new(),
            ops: 0,
        }
    }

    pub(super) fn area(&self) -> LogArea<'_> {
        LogArea::new(&self.device, &self.geometry).expect("the log lies on its device")
    }

    /// LSN of the next record.
    pub(super) fn next_lsn(&self) -> Lsn {
        Lsn::new(self.cycle, self.at)
    }

    pub(super) fn put(&mut self, block: &[u8]) {
        self.device.write_at(u64::from(self.at * BASIC_BLOCK), block).expect("the log lies on the device");
        self.at += 1;
        if self.at == self.blocks {
            (self.at, self.cycle) = (0, self.cycle + 1);
        }
    }

    /// The bytes of a record with this payload, as it stands on disk.
    pub(super) fn record_of(&self, mut payload: Vec<u8>, ops: u32, tail: Lsn) -> Vec<u8> {
        let version = self.geometry.log.version;
        let mut header = RawLogRecHeader::new_zeroed();
        header.magicno = HEADER_MAGIC.into();
        header.cycle = self.cycle.into();
        header.version = version.into();
        header.lsn = self.next_lsn().0.into();
        header.tail_lsn = tail.0.into();
        header.num_logops = ops.into();
        header.fs_uuid = UUID;
        header.size = self.size.into();
        header.fmt = if self.order == Order::Big { fmt::LINUX_BE } else { fmt::LINUX_LE }.into();
        payload.resize(payload.len().next_multiple_of(BBSIZE), 0);
        header.len = (payload.len() as u32).into();
        let count = header_blocks(version, self.size);
        let mut headers = header.as_bytes().to_vec();
        headers.resize(count as usize * BBSIZE, 0);
        pack(&mut headers, &mut payload, self.cycle).expect("the headers suffice");
        // blocks behind the wrap carry the next cycle, which the CRC covers (xlog_split_iclog)
        let before_wrap = (self.blocks - self.at).saturating_sub(count) as usize;
        for block in payload.chunks_exact_mut(BBSIZE).skip(before_wrap) {
            block[..4].copy_from_slice(&(self.cycle + 1).to_be_bytes());
        }
        let crc = record_crc(&headers, &payload, self.reach).expect("a header");
        let (header, _) = RawLogRecHeader::prefix_mut(&mut headers).expect("a header");
        header.crc = crc.into();
        [headers, payload].concat()
    }

    /// The bytes of a record of one operation, whose payload is of `len` bytes at least.
    pub(super) fn record(&self, len: usize, tail: Lsn, unmount: bool) -> Vec<u8> {
        let mut payload = Vec::new();
        let unmount_body: Vec<u8> = UNMOUNT_MAGIC.to_le_bytes().into_iter().chain([0; 6]).collect();
        let (client, flags, body) = if unmount {
            (CLIENT_LOG, op::UNMOUNT_TRANS, unmount_body)
        } else {
            (CLIENT_TRANSACTION, 0, vec![0xee; len])
        };
        put_op(&mut payload, 1, client, flags, &body).expect("short contents");
        self.record_of(payload, 1, tail)
    }

    pub(super) fn write(&mut self, len: usize, tail: Lsn, unmount: bool) {
        for block in self.record(len, tail, unmount).chunks_exact(BBSIZE) {
            self.put(block);
        }
    }

    /// Writes the record that is being filled, if there is anything in it.
    pub(super) fn flush(&mut self, tail: Lsn) {
        if self.ops == 0 {
            return;
        }
        let (payload, ops) = (std::mem::take(&mut self.payload), std::mem::take(&mut self.ops));
        for block in self.record_of(payload, ops, tail).chunks_exact(BBSIZE) {
            self.put(block);
        }
    }

    /// Adds an operation, in as many records as it needs.
    pub(super) fn add_op(&mut self, tid: u32, flags: u8, mut contents: &[u8], tail: Lsn) {
        let mut flags = flags;
        loop {
            let room = (self.size as usize).saturating_sub(self.payload.len());
            // room for a header and a word, or a header alone where nothing follows it
            if room < RawLogOpHeader::SIZE + if contents.is_empty() { 0 } else { 4 } {
                self.flush(tail);
                continue;
            }
            let (now, later) = contents.split_at(contents.len().min((room - RawLogOpHeader::SIZE) / 4 * 4));
            let more = if later.is_empty() { 0 } else { op::CONTINUE_TRANS };
            let end = if later.is_empty() && flags & op::WAS_CONT_TRANS != 0 { op::END_TRANS } else { 0 };
            put_op(&mut self.payload, tid, CLIENT_TRANSACTION, flags | more | end, now).expect("short contents");
            self.ops += 1;
            if later.is_empty() {
                return;
            }
            (flags, contents) = (op::WAS_CONT_TRANS, later);
            self.flush(tail);
        }
    }

    /// The operations of a committed transaction with these items, each of some regions: flags and contents.
    pub(super) fn ops_of(&self, tid: u32, items: &[Vec<Vec<u8>>]) -> Vec<(u8, Vec<u8>)> {
        let regions: u32 = items.iter().map(|item| item.len() as u32).sum();
        let header = match self.order {
            Order::Little => transaction_header::<LittleEndian>(tid, regions),
            Order::Big => transaction_header::<BigEndian>(tid, regions),
        };
        let mut ops = vec![(op::START_TRANS, Vec::new()), (0, header)];
        ops.extend(items.iter().flatten().map(|region| (0, region.clone())));
        ops.push((op::COMMIT_TRANS, Vec::new()));
        ops
    }

    /// Writes a committed transaction.
    pub(super) fn commit(&mut self, tid: u32, items: &[Vec<Vec<u8>>], tail: Lsn) {
        for (flags, contents) in self.ops_of(tid, items) {
            self.add_op(tid, flags, &contents, tail);
        }
    }
}

fn transaction_header<O: ByteOrder>(tid: u32, regions: u32) -> Vec<u8> {
    let header = RawTransHeader::<O> {
        magic: U32::new(TRANS_HEADER_MAGIC),
        type_: U32::new(TRANS_CHECKPOINT),
        tid: U32::new(tid),
        num_items: U32::new(regions),
    };
    header.as_bytes().to_vec()
}
