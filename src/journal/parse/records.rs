//! The journal cut into records, and what lies between them.

use crate::error::Result;
use crate::geometry::Lsn;
use crate::journal::area::LogArea;
use crate::journal::record::LogRecord;
use crate::ondisk::RawUuid;
use crate::ondisk::log_record::{BBSIZE, CrcReach, LogOps, RawLogRecHeader, block_cycle, record_crc, unpack};

/// Blocks that are read ahead: more than the largest record has.
const WINDOW: u32 = 2048;

/// What the CRC of a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrcState {
    /// It is that of the contents.
    Matches,
    /// It is that of the contents, as 32-bit x86 counts.
    MatchesI386,
    /// There is none: mkfs writes none, nor do kernels before 3.8.
    Absent,
    /// It is not that of the contents.
    Wrong {
        /// What it should be.
        computed: u32,
    },
}

impl CrcState {
    /// Whether the contents may be believed.
    pub fn is_good(self) -> bool {
        !matches!(self, CrcState::Wrong { .. })
    }
}

/// A record with its contents.
#[derive(Clone, Debug)]
pub struct JournalRecord {
    /// Block of the header.
    pub block: u32,
    /// Blocks of headers and payload.
    pub blocks: u32,
    /// The header.
    pub header: RawLogRecHeader,
    /// What its CRC says.
    pub crc: CrcState,
    /// Blocks of the payload that were not written with it, as their cycles tell: the record is torn, or was overwritten.
    pub foreign_blocks: u32,
    headers: Vec<u8>,
    payload: Vec<u8>,
}

impl JournalRecord {
    /// Where it is in the log.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.header.lsn.get())
    }

    /// Where the log began when it was written.
    pub fn tail_lsn(&self) -> Lsn {
        Lsn(self.header.tail_lsn.get())
    }

    /// UUID of the filesystem that wrote it.
    pub fn uuid(&self) -> RawUuid {
        self.header.fs_uuid
    }

    /// The header and the further headers behind it, as they stand on disk.
    pub fn headers(&self) -> &[u8] {
        &self.headers
    }

    /// The payload, with the first words of its blocks where they belong.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The operations in the payload.
    pub fn ops(&self) -> LogOps<'_> {
        LogOps::new(&self.payload, self.header.num_logops.get())
    }

    /// Whether all of it reached the disk, as far as CRC and cycles tell.
    pub fn is_whole(&self) -> bool {
        self.crc.is_good() && self.foreign_blocks == 0
    }

    /// Makes a record of its blocks, of which there are as many as the header says.
    fn new(area: &LogArea<'_>, found: &LogRecord, bytes: &[u8]) -> Self {
        let (headers, payload) = bytes.split_at((found.header_blocks(area) as usize * BBSIZE).min(bytes.len()));
        let len = found.header.len.get() as usize;
        let crc = crc_state(&found.header, headers, payload.get(..len).unwrap_or(payload));
        let cycle = Lsn(found.header.lsn.get()).cycle();
        let first = bytes.len() - payload.len();
        let foreign = payload.chunks(BBSIZE).zip(first / BBSIZE..).filter(|(block, index)| {
            // behind the end of the log the next cycle begins
            let wrapped = u64::from(found.block) + *index as u64 >= u64::from(area.blocks());
            block_cycle(block) != Some(cycle.wrapping_add(u32::from(wrapped)))
        });
        let foreign_blocks = u32::try_from(foreign.count()).unwrap_or(u32::MAX);
        let mut payload = payload.to_vec();
        // the headers have words for all blocks, or the record is not plausible
        let _ = unpack(headers, &mut payload);
        payload.truncate(len);
        JournalRecord {
            block: found.block,
            blocks: u32::try_from(found.blocks(area)).unwrap_or(u32::MAX),
            header: found.header,
            crc,
            foreign_blocks,
            headers: headers.to_vec(),
            payload,
        }
    }
}

fn crc_state(header: &RawLogRecHeader, headers: &[u8], payload: &[u8]) -> CrcState {
    let stored = header.crc.get();
    let computed = |reach| record_crc(headers, payload, reach).unwrap_or(0);
    match computed(CrcReach::Usual) {
        _ if stored == 0 => CrcState::Absent,
        usual if usual == stored => CrcState::Matches,
        _ if computed(CrcReach::I386) == stored => CrcState::MatchesI386,
        usual => CrcState::Wrong { computed: usual },
    }
}

/// What blocks are that no record begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// Never written to.
    Zeroed,
    /// Headers without contents, with which the kernel cleared what a crash had left (`xlog_clear_stale_blocks`).
    Cleared,
    /// A record header that makes no sense: version, length or own address.
    BadHeader,
    /// A record that is longer than what is left of the blocks that are walked.
    Overlong,
    /// Parts of a record of which the header is gone, or any other bytes.
    Leftover {
        /// The cycle that the first word names.
        cycle: u32,
    },
    /// The device does not give them.
    Unreadable,
}

/// A run of blocks without a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// First block.
    pub block: u32,
    /// Number of blocks, around the ring.
    pub blocks: u32,
    /// What they are.
    pub kind: GapKind,
}

/// A record or a gap.
#[derive(Clone, Debug)]
pub enum Piece {
    /// A record.
    Record(Box<JournalRecord>),
    /// A gap.
    Gap(Gap),
}

/// Walks blocks of a log. Behind whatever makes no sense it looks for the next record header.
pub struct Records<'a> {
    area: &'a LogArea<'a>,
    start: u32,
    blocks: u32,
    /// Blocks that are done.
    done: u32,
    window: Vec<u8>,
    /// Which block of the walk the window begins with.
    window_at: u32,
}

impl<'a> Records<'a> {
    /// Walks `blocks` blocks from `start` on, around the ring.
    pub fn new(area: &'a LogArea<'a>, start: u32, blocks: u32) -> Self {
        let (start, blocks) = (start % area.blocks(), blocks.min(area.blocks()));
        Records { area, start, blocks, done: 0, window: Vec::new(), window_at: 0 }
    }

    /// Walks from `from` to `to`, around the ring; nothing when they are the same.
    pub fn between(area: &'a LogArea<'a>, from: u32, to: u32) -> Self {
        Self::new(area, from, area.distance(from, to))
    }

    /// Blocks from the start of the log at which the walk is.
    pub fn block(&self) -> u32 {
        self.area.behind(self.start, self.done)
    }

    /// `count` blocks from where the walk is, which must not be more than are left.
    fn bytes(&mut self, count: u32) -> Result<&[u8]> {
        let have = self.window.len() / BBSIZE;
        let skip = (self.done - self.window_at) as usize;
        if skip + count as usize > have {
            let block = self.area.behind(self.start, self.done);
            let ahead = WINDOW.max(count).min(self.blocks - self.done);
            self.window = self.area.read(block, ahead).or_else(|_| self.area.read(block, count))?;
            self.window_at = self.done;
        }
        let skip = (self.done - self.window_at) as usize * BBSIZE;
        Ok(&self.window[skip..skip + count as usize * BBSIZE])
    }

    /// The kind of the block at the walk's position, or the record that begins there.
    fn look(&mut self) -> std::result::Result<LogRecord, GapKind> {
        let block = self.area.behind(self.start, self.done);
        let left = self.blocks - self.done;
        let area = self.area;
        let bytes = self.bytes(1).map_err(|_| GapKind::Unreadable)?;
        let cycle = block_cycle(bytes).unwrap_or(0);
        let record = match LogRecord::parse(bytes, block) {
            Some(record) => record,
            None if cycle == 0 => return Err(GapKind::Zeroed),
            None => return Err(GapKind::Leftover { cycle }),
        };
        if record.header.len.get() == 0 && record.header.num_logops.get() == 0 {
            return Err(GapKind::Cleared);
        }
        match record.is_plausible(area) {
            false => Err(GapKind::BadHeader),
            true if record.blocks(area) > u64::from(left) => Err(GapKind::Overlong),
            true => Ok(record),
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let mut gap: Option<Gap> = None;
        while self.done < self.blocks {
            let block = self.block();
            let (kind, blocks) = match (self.look(), gap) {
                (Ok(_), Some(gap)) => return Some(Piece::Gap(gap)),
                (Ok(found), None) => {
                    let blocks = u32::try_from(found.blocks(self.area)).expect("invariant: not more than are left");
                    let area = self.area;
                    match self.bytes(blocks) {
                        Ok(bytes) => {
                            let record = JournalRecord::new(area, &found, bytes);
                            self.done += blocks;
                            return Some(Piece::Record(Box::new(record)));
                        }
                        Err(_) => (GapKind::Unreadable, blocks),
                    }
                }
                (Err(kind), _) => (kind, 1),
            };
            match &mut gap {
                None => gap = Some(Gap { block, blocks, kind }),
                Some(gap) if gap.kind == kind && kind != GapKind::BadHeader => gap.blocks += blocks,
                Some(gap) => return Some(Piece::Gap(*gap)),
            }
            self.done += blocks;
        }
        gap.map(Piece::Gap)
    }
}
