//! The journal of a new filesystem: zeroes, and at its start the record of a clean unmount. Source: `libxfs_log_clear` and
//! `libxfs_log_header` of xfsprogs `libxfs/rdwr.c`.

use zerocopy::{FromZeros, IntoBytes};

use crate::device::Device;
use crate::error::Result;
use crate::geometry::Lsn;
use crate::mkfs::write::shape::{BASIC_BLOCK, Shape};
use crate::ondisk::log_record::{
    BBSIZE, BIG_RECORD_SIZE, CLIENT_LOG, HEADER_MAGIC, RawLogOpHeader, RawLogRecExtHeader, RawLogRecHeader,
    RawUnmountRecord, UNMOUNT_MAGIC, fmt, header_blocks, op,
};
use crate::ondisk::{Be32, LittleEndian, OnDisk};

/// The cycle that a log begins with.
const FIRST_CYCLE: u32 = 1;
/// Transaction number by which records from userspace are known.
const USERSPACE_TID: u32 = 0xb0c0_d0d0;
/// Shortest record, in bytes: a header and one block.
const SHORTEST: u32 = 1024;

/// Empties the log, which begins at byte `start` of `device`, and writes the unmount record.
pub(super) fn clear_log(shape: &Shape, device: &dyn Device, start: u64) -> Result<()> {
    let bytes = u64::from(shape.layout.log.blocks) * u64::from(shape.block);
    device.write_zeroes(start, bytes)?;
    device.write_at(start, &unmount_record(shape))
}

/// The record of a clean unmount at the start of the log.
fn unmount_record(shape: &Shape) -> Vec<u8> {
    let log = &shape.layout.log;
    let unit = record_unit(shape);
    let headers = header_blocks(u32::from(log.version), unit);
    let length = unit.max(SHORTEST);
    let mut bytes = vec![0; usize::try_from(length).expect("invariant: a record is 256 KiB at most")];
    let cycle = Be32::new(FIRST_CYCLE);
    let lsn = Lsn::new(FIRST_CYCLE, 0);

    let mut head = RawLogRecHeader::new_zeroed();
    head.magicno.set(HEADER_MAGIC);
    head.cycle = cycle;
    head.version.set(u32::from(log.version));
    head.len.set(length - headers * BASIC_BLOCK_SMALL);
    head.lsn.set(lsn.0);
    head.tail_lsn.set(lsn.0);
    head.prev_block.set(u32::MAX);
    head.num_logops.set(1);
    head.fmt.set(fmt::LINUX_LE);
    head.fs_uuid = *shape.layout.uuid.as_bytes();
    head.size.set(unit.max(BIG_RECORD_SIZE));
    // the first word of the block with the unmount record is kept in the header, where the cycle takes its place
    head.cycle_data[0].set(USERSPACE_TID);

    let headers = usize::try_from(headers).expect("invariant: 8 at most");
    for (index, block) in bytes.chunks_exact_mut(BBSIZE).enumerate() {
        match index {
            0 => block.copy_from_slice(head.as_bytes()),
            index if index < headers => {
                let mut ext = RawLogRecExtHeader::new_zeroed();
                ext.cycle = cycle;
                block.copy_from_slice(ext.as_bytes());
            }
            index => {
                if index == headers {
                    put_unmount(block);
                }
                block[..cycle.as_bytes().len()].copy_from_slice(cycle.as_bytes());
            }
        }
    }
    bytes
}

/// A basic block in the type of the record's fields.
const BASIC_BLOCK_SMALL: u32 = {
    assert!(BASIC_BLOCK == 512, "a basic block");
    512
};

/// Bytes of the unit that records are rounded up to; 0 if there is none.
fn record_unit(shape: &Shape) -> u32 {
    let log = &shape.layout.log;
    if log.version != 2 {
        return 0;
    }
    if log.stripe_unit != 0 {
        return log.stripe_unit * shape.block;
    }
    // the sector of the log counts where the superblock names it
    let sector = log.sector.bytes();
    if sector > BASIC_BLOCK_SMALL || shape.layout.sector.bytes() > BASIC_BLOCK_SMALL { sector } else { 0 }
}

/// The operation that says that the filesystem was unmounted.
fn put_unmount(block: &mut [u8]) {
    let mut record = RawUnmountRecord::<LittleEndian>::new_zeroed();
    record.magic.set(UNMOUNT_MAGIC);
    let mut head = RawLogOpHeader::new_zeroed();
    head.tid.set(USERSPACE_TID);
    head.len.set(u32::try_from(RawUnmountRecord::<LittleEndian>::SIZE).expect("invariant: 8 bytes"));
    head.clientid = CLIENT_LOG;
    head.flags = op::UNMOUNT_TRANS;
    let (op, rest) = block.split_at_mut(RawLogOpHeader::SIZE);
    op.copy_from_slice(head.as_bytes());
    rest[..record.as_bytes().len()].copy_from_slice(record.as_bytes());
}
