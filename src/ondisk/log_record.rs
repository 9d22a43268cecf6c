//! The frame of the journal: record headers, operation headers, transaction headers, unmount records
//! (Linux `fs/xfs/libxfs/xfs_log_format.h`, `fs/xfs/xfs_log.c`).
//!
//! Record and operation headers are big-endian, the CRC little-endian. What the operations carry is in the byte order
//! of the machine that wrote it, which the record header names.

use crate::error::{Check, Rule};
use crate::ondisk::{Be32, Be64, Le32, OnDisk, RawUuid};
use zerocopy::byteorder::{ByteOrder, U16, U32};

/// Unit of the journal's block numbers, in bytes.
pub const BBSIZE: usize = 512;
/// Magic number of a record header. No cycle has this number.
pub const HEADER_MAGIC: u32 = 0xfeed_babe;
/// Bytes of a record whose saved words fit one header; each further header is for as many.
pub const HEADER_CYCLE_SIZE: u32 = 32 * 1024;
/// Largest size of a record's payload in bytes (v2).
pub const MAX_RECORD_SIZE: u32 = 256 * 1024;
/// Largest size of a record's payload in bytes (v1).
pub const BIG_RECORD_SIZE: u32 = 32 * 1024;
/// Records that can be on their way to the disk at once.
pub const MAX_ICLOGS: u32 = 8;

/// Writers of a record, as `fmt` names them.
pub mod fmt {
    /// Not known.
    pub const UNKNOWN: u32 = 0;
    /// Linux, little-endian.
    pub const LINUX_LE: u32 = 1;
    /// Linux, big-endian.
    pub const LINUX_BE: u32 = 2;
    /// IRIX, big-endian.
    pub const IRIX_BE: u32 = 3;
}

/// Client of operations that belong to transactions.
pub const CLIENT_TRANSACTION: u8 = 0x69;
/// Client of operations of the log itself: unmount records.
pub const CLIENT_LOG: u8 = 0xaa;

/// Flags of operations.
pub mod op {
    /// First operation of a transaction; it has no contents.
    pub const START_TRANS: u8 = 0x01;
    /// Last operation of a transaction; it has no contents.
    pub const COMMIT_TRANS: u8 = 0x02;
    /// The region goes on in the next record.
    pub const CONTINUE_TRANS: u8 = 0x04;
    /// The region began in an earlier record.
    pub const WAS_CONT_TRANS: u8 = 0x08;
    /// The region ends here.
    pub const END_TRANS: u8 = 0x10;
    /// The filesystem was unmounted.
    pub const UNMOUNT_TRANS: u8 = 0x20;
}

/// Magic number of a transaction header: `TRAN`.
pub const TRANS_HEADER_MAGIC: u32 = 0x5452_414e;
/// The only type of transaction since checkpoints collect them.
pub const TRANS_CHECKPOINT: u32 = 40;
/// Magic number of an unmount record: `nU`.
pub const UNMOUNT_MAGIC: u16 = 0x556e;

ondisk! {
    /// Header of a record (`xlog_rec_header`).
    pub struct RawLogRecHeader("log_rec_header"): 512 {
        /// [`HEADER_MAGIC`].
        0 => magicno: Be32,
        /// Cycle of the log in which it was written.
        4 => cycle: Be32,
        /// Version of the log: 1 or 2.
        8 => version: Be32,
        /// Bytes of the payload.
        12 => len: Be32,
        /// LSN of this record.
        16 => lsn: Be64,
        /// LSN of the oldest record whose changes may not be in place yet.
        24 => tail_lsn: Be64,
        /// CRC of header and payload; 0 when there is none.
        32 => crc: Le32,
        /// Block of the record before it.
        36 => prev_block: Be32,
        /// Operations in the payload.
        40 => num_logops: Be32,
        /// The first word of each block of the payload, which the cycle has taken the place of.
        44 => cycle_data: [Be32; 64],
        /// Who wrote it, see [`fmt`].
        300 => fmt: Be32,
        /// UUID of the filesystem.
        304 => fs_uuid: RawUuid,
        /// Size of the writer's record buffer in bytes (v2).
        320 => size: Be32,
        /// Alignment that 32-bit x86 does not have, so that its CRC ends before.
        324 => pad0: Be32,
        /// Zero.
        328 => reserved: [u8; 184],
    }
}

ondisk! {
    /// Header that follows for each further 32 KiB of a record's payload (`xlog_rec_ext_header`).
    pub struct RawLogRecExtHeader("log_rec_ext_header"): 512 {
        /// Cycle of the log in which it was written.
        0 => cycle: Be32,
        /// The first words of the blocks that the headers before have no place for.
        4 => cycle_data: [Be32; 64],
        /// Zero.
        260 => reserved: [u8; 252],
    }
}

ondisk! {
    /// Header of an operation; its contents follow (`xlog_op_header`).
    pub struct RawLogOpHeader("log_op_header"): 12 {
        /// Transaction.
        0 => tid: Be32,
        /// Bytes of the contents.
        4 => len: Be32,
        /// Who wrote it.
        8 => clientid: u8,
        /// Flags, see [`op`].
        9 => flags: u8,
        /// Zero.
        10 => res2: [u8; 2],
    }
}

ondisk! {
    /// First region of each transaction (`xfs_trans_header`).
    pub struct RawTransHeader<O>("trans_header"): 16 {
        /// [`TRANS_HEADER_MAGIC`].
        0 => magic: U32<O>,
        /// [`TRANS_CHECKPOINT`].
        4 => type_: U32<O>,
        /// Transaction; unused.
        8 => tid: U32<O>,
        /// Regions that follow.
        12 => num_items: U32<O>,
    }
}

ondisk! {
    /// Contents of an unmount record (`xfs_unmount_log_format`).
    pub struct RawUnmountRecord<O>("unmount_record"): 8 {
        /// [`UNMOUNT_MAGIC`].
        0 => magic: U16<O>,
        /// Zero.
        2 => pad1: U16<O>,
        /// Zero.
        4 => pad2: U32<O>,
    }
}

/// Headers that a record of a log of `version` has, whose writer's buffer holds `size` bytes.
pub fn header_blocks(version: u32, size: u32) -> u32 {
    if version >= 2 && size > HEADER_CYCLE_SIZE { size.div_ceil(HEADER_CYCLE_SIZE) } else { 1 }
}

/// How far the CRC of a record header reaches: to the end of its declared fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrcReach {
    /// On all machines but one.
    Usual,
    /// On 32-bit x86, which leaves out the last four bytes.
    I386,
}

impl CrcReach {
    fn bytes(self) -> usize {
        match self {
            CrcReach::Usual => std::mem::offset_of!(RawLogRecHeader, reserved),
            CrcReach::I386 => std::mem::offset_of!(RawLogRecHeader, pad0),
        }
    }
}

/// The CRC of a record: `headers` are all its header blocks, `payload` is what follows, as it stands on disk (with
/// the cycle in the first word of each block). `None` when there is not even one header.
///
/// The header's own CRC counts as zero. Of each further header only the declared fields count, and only so many of
/// them as the payload needs.
pub fn record_crc(headers: &[u8], payload: &[u8], reach: CrcReach) -> Option<u32> {
    let crc_at = std::mem::offset_of!(RawLogRecHeader, crc);
    let mut blocks = headers.chunks_exact(BBSIZE);
    let first = blocks.next()?.get(..reach.bytes())?;
    let mut crc = crc32c::crc32c(&first[..crc_at]);
    crc = crc32c::crc32c_append(crc, &[0; size_of::<Le32>()]);
    crc = crc32c::crc32c_append(crc, &first[crc_at + size_of::<Le32>()..]);
    let further = payload.len().div_ceil(usize::try_from(HEADER_CYCLE_SIZE).ok()?).saturating_sub(1);
    for block in blocks.take(further) {
        crc = crc32c::crc32c_append(crc, &block[..std::mem::offset_of!(RawLogRecExtHeader, reserved)]);
    }
    Some(crc32c::crc32c_append(crc, payload))
}

/// Puts the saved first words back into the blocks of `payload`, of which `headers` are the record's header blocks.
///
/// # Errors
/// When the payload has more blocks than the headers have words.
pub fn unpack(headers: &[u8], payload: &mut [u8]) -> Result<(), Check> {
    let words = saved_words(headers).ok_or(Check::new("log_rec_header", "magicno", Rule::Truncated))?;
    let mut words = words.into_iter();
    for block in payload.chunks_mut(BBSIZE) {
        let word = words.next().ok_or(Check::new("log_rec_header", "len", Rule::Count))?;
        if let Some(start) = block.first_chunk_mut() {
            *start = word;
        }
    }
    Ok(())
}

/// Saves the first word of each block of `payload` in `headers`, and puts `cycle` in their place.
///
/// # Errors
/// When the payload has more blocks than the headers have words.
pub fn pack(headers: &mut [u8], payload: &mut [u8], cycle: u32) -> Result<(), Check> {
    let missing = Check::new("log_rec_header", "len", Rule::Count);
    let mut blocks = payload.chunks_mut(BBSIZE);
    for (index, header) in headers.chunks_exact_mut(BBSIZE).enumerate() {
        let words = if index == 0 {
            &mut RawLogRecHeader::prefix_mut(header).ok_or(missing)?.0.cycle_data
        } else {
            let (ext, _) = RawLogRecExtHeader::prefix_mut(header).ok_or(missing)?;
            ext.cycle = cycle.into();
            &mut ext.cycle_data
        };
        for (word, block) in words.iter_mut().zip(blocks.by_ref().take(64)) {
            if let Some(start) = block.first_chunk_mut() {
                *word = Be32::from_bytes(*start);
                *start = cycle.to_be_bytes();
            }
        }
    }
    if blocks.next().is_some() { Err(missing) } else { Ok(()) }
}

fn saved_words(headers: &[u8]) -> Option<Vec<[u8; 4]>> {
    let (first, mut rest) = RawLogRecHeader::prefix(headers)?;
    let mut words: Vec<_> = first.cycle_data.iter().map(|word| word.to_bytes()).collect();
    while let Some((ext, after)) = RawLogRecExtHeader::prefix(rest) {
        words.extend(ext.cycle_data.iter().map(|word| word.to_bytes()));
        rest = after;
    }
    Some(words)
}

/// The cycle that a block of the log carries: its first word, or the second when the first is the magic number.
pub fn block_cycle(block: &[u8]) -> Option<u32> {
    let (head, rest) = block.split_first_chunk()?;
    match u32::from_be_bytes(*head) {
        HEADER_MAGIC => rest.first_chunk().map(|word| u32::from_be_bytes(*word)),
        cycle => Some(cycle),
    }
}

/// One operation of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOp<'a> {
    /// Its header.
    pub header: &'a RawLogOpHeader,
    /// Its contents.
    pub contents: &'a [u8],
}

/// The operations in an unpacked payload. One that cannot be decoded ends them with its check.
#[derive(Clone, Debug)]
pub struct LogOps<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> LogOps<'a> {
    /// The first `count` operations of `payload`.
    pub fn new(payload: &'a [u8], count: u32) -> Self {
        LogOps { rest: payload, left: count }
    }

    fn take(&mut self) -> Result<LogOp<'a>, Check> {
        let truncated = Check::new("log_op_header", "len", Rule::Truncated);
        let (header, rest) = RawLogOpHeader::prefix(self.rest).ok_or(truncated)?;
        let len = usize::try_from(header.len.get()).map_err(|_| truncated)?;
        let (contents, rest) = rest.split_at_checked(len).ok_or(truncated)?;
        self.rest = rest;
        Ok(LogOp { header, contents })
    }
}

impl<'a> Iterator for LogOps<'a> {
    type Item = Result<LogOp<'a>, Check>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let op = self.take();
        if op.is_err() {
            self.left = 0;
        }
        Some(op)
    }
}

/// Appends an operation to a payload.
///
/// Returns `None` when the contents are longer than its field can say.
pub fn put_op(payload: &mut Vec<u8>, tid: u32, clientid: u8, flags: u8, contents: &[u8]) -> Option<()> {
    let len = Be32::new(u32::try_from(contents.len()).ok()?);
    let header = RawLogOpHeader { tid: tid.into(), len, clientid, flags, res2: [0; 2] };
    payload.extend_from_slice(zerocopy::IntoBytes::as_bytes(&header));
    payload.extend_from_slice(contents);
    Some(())
}

/// Whether `contents` are those of an unmount record in byte order `O`.
pub fn is_unmount<O: ByteOrder>(contents: &[u8]) -> bool {
    RawUnmountRecord::<O>::prefix(contents).is_some_and(|(record, _)| record.magic.get() == UNMOUNT_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::{BigEndian, LittleEndian};
    use proptest::prelude::*;
    use zerocopy::{FromZeros, IntoBytes};

    proptest! {
        #[test]
        fn unpack_inverts_pack(payload in proptest::collection::vec(any::<u8>(), 0..66_000), cycle: u32) {
            let mut headers = vec![0u8; 3 * BBSIZE];
            let mut packed = payload.clone();
            pack(&mut headers, &mut packed, cycle).expect("three headers suffice");
            for block in packed.chunks_exact(BBSIZE) {
                prop_assert_eq!(&block[..4], &cycle.to_be_bytes()[..]);
            }
            unpack(&headers, &mut packed).expect("three headers suffice");
            prop_assert_eq!(packed, payload);
        }

        #[test]
        fn operations_come_back(list in proptest::collection::vec(
            (any::<u32>(), any::<u8>(), any::<u8>(), proptest::collection::vec(any::<u8>(), 0..100)), 0..20,
        )) {
            let mut payload = Vec::new();
            for (tid, client, flags, contents) in &list {
                put_op(&mut payload, *tid, *client, *flags, contents).expect("short contents");
            }
            let count = u32::try_from(list.len()).expect("invariant: few operations");
            let ops: Result<Vec<_>, _> = LogOps::new(&payload, count).collect();
            let read: Vec<_> = ops.expect("sound operations").into_iter()
                .map(|op| (op.header.tid.get(), op.header.clientid, op.header.flags, op.contents.to_vec()))
                .collect();
            prop_assert_eq!(read, list);
            prop_assert!(LogOps::new(&payload, count + 1).last().is_some_and(|op| op.is_err()));
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1600), count: u32) {
            let _ = LogOps::new(&bytes, count).take(200).count();
            let _ = (block_cycle(&bytes), record_crc(&bytes, &bytes, CrcReach::Usual), is_unmount::<BigEndian>(&bytes));
            let _ = unpack(&bytes, &mut bytes.clone());
        }
    }

    #[test]
    fn too_long_a_payload_is_refused() {
        let mut payload = vec![0u8; 65 * BBSIZE];
        assert!(pack(&mut [0; BBSIZE], &mut payload, 1).is_err());
        assert!(unpack(&[0; BBSIZE], &mut payload).is_err());
        assert!(unpack(&[0; BBSIZE], &mut payload[..64 * BBSIZE]).is_ok());
    }

    #[test]
    fn the_crc_covers_the_declared_fields() {
        let mut header = RawLogRecHeader::new_zeroed();
        header.magicno = HEADER_MAGIC.into();
        let payload = [7u8; 40_000];
        let mut headers = [header.as_bytes(), &[0; BBSIZE]].concat();
        let crc = |headers: &[u8], reach| record_crc(headers, &payload, reach).expect("a header");
        let (usual, short) = (crc(&headers, CrcReach::Usual), crc(&headers, CrcReach::I386));
        assert_ne!(usual, short);
        for (at, in_usual, in_short) in [
            (32, false, false),
            (300, true, true),
            (325, true, false),
            (328, false, false),
            (771, true, true),
            (772, false, false),
        ] {
            headers[at] ^= 1;
            assert_eq!(crc(&headers, CrcReach::Usual) != usual, in_usual, "byte {at}");
            assert_eq!(crc(&headers, CrcReach::I386) != short, in_short, "byte {at} on i386");
            headers[at] ^= 1;
        }
        let none = record_crc(&headers, &payload[..32_768], CrcReach::Usual);
        headers[512] ^= 1;
        assert_eq!(record_crc(&headers, &payload[..32_768], CrcReach::Usual), none);
        assert_eq!(record_crc(&headers[..500], &payload, CrcReach::Usual), None);
    }

    #[test]
    fn unmount_records_are_known_in_both_orders() {
        assert!(is_unmount::<LittleEndian>(&[0x6e, 0x55, 0, 0, 0, 0, 0, 0]));
        assert!(is_unmount::<BigEndian>(&[0x55, 0x6e, 0, 0, 0, 0, 0, 0]));
        assert!(!is_unmount::<LittleEndian>(&[0x55, 0x6e, 0, 0, 0, 0, 0, 0]));
        assert_eq!([header_blocks(1, 1 << 18), header_blocks(2, 1 << 15), header_blocks(2, 1 << 18)], [1, 1, 8]);
    }
}
