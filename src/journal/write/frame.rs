//! Headers of records, and how their blocks are marked.

use zerocopy::byteorder::ByteOrder;
use zerocopy::{FromZeros, IntoBytes};

use super::position::next_cycle;
use crate::error::{Error, Result};
use crate::geometry::Lsn;
use crate::ondisk::log_record::{
    BBSIZE, CLIENT_LOG, CrcReach, HEADER_MAGIC, RawLogRecHeader, RawUnmountRecord, UNMOUNT_MAGIC, op, pack, put_op,
    record_crc,
};
use crate::ondisk::{OnDisk, RawUuid};

/// What all records of a writer have in common.
#[derive(Clone, Copy, Debug)]
pub(in crate::journal) struct Frame {
    /// Version of the log.
    pub version: u32,
    /// UUID of the filesystem.
    pub uuid: RawUuid,
    /// Who writes, see [`fmt`](crate::ondisk::log_record::fmt).
    pub format: u32,
    /// Size that the headers state for the writer's buffer.
    pub size: u32,
}

impl Frame {
    /// The header of a record with `ops` operations in `len` bytes, without its CRC.
    pub fn header(&self, lsn: Lsn, tail: Lsn, previous: u32, len: u32, ops: u32) -> RawLogRecHeader {
        let mut header = RawLogRecHeader::new_zeroed();
        header.magicno = HEADER_MAGIC.into();
        header.cycle = lsn.cycle().into();
        header.version = self.version.into();
        header.len = len.into();
        header.lsn = lsn.0.into();
        header.tail_lsn = tail.0.into();
        header.prev_block = previous.into();
        header.num_logops = ops.into();
        header.fmt = self.format.into();
        header.fs_uuid = self.uuid;
        header.size = self.size.into();
        header
    }
}

/// Gives a record with a header the marks of its cycle and its CRC. `record` has `header_len` bytes of headers, zero but for
/// the first; of the rest, `len` bytes count. Blocks from number `until_end` on lie behind the end of the log, at its start.
///
/// # Errors
/// `Internal` when the record has no place for all the words that the cycle takes the place of.
pub(super) fn seal(record: &mut [u8], header_len: usize, len: usize, until_end: usize, reach: CrcReach) -> Result<()> {
    let invalid = || Error::Internal("a log record does not fit its headers".to_owned());
    let (headers, payload) = record.split_at_mut_checked(header_len).ok_or_else(invalid)?;
    let cycle = RawLogRecHeader::prefix(headers).ok_or_else(invalid)?.0.cycle.get();
    pack(headers, payload, cycle).map_err(|_| invalid())?;
    let wrapped = next_cycle(cycle).to_be_bytes();
    for block in record.chunks_exact_mut(BBSIZE).skip(until_end) {
        block[..wrapped.len()].copy_from_slice(&wrapped);
    }
    let (headers, payload) = record.split_at_mut(header_len);
    let crc = record_crc(headers, payload.get(..len).ok_or_else(invalid)?, reach).ok_or_else(invalid)?;
    let (header, _) = RawLogRecHeader::prefix_mut(headers).ok_or_else(invalid)?;
    header.crc = crc.into();
    Ok(())
}

/// The operation that says that the filesystem was unmounted.
pub(in crate::journal) fn unmount_operation<O: ByteOrder>(tid: u32) -> Vec<u8> {
    let mut record = RawUnmountRecord::<O>::new_zeroed();
    record.magic.set(UNMOUNT_MAGIC);
    let mut bytes = Vec::new();
    put_op(&mut bytes, tid, CLIENT_LOG, op::UNMOUNT_TRANS, record.as_bytes()).expect("invariant: 8 bytes");
    bytes
}
