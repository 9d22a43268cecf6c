//! Head, tail, and whether the log is clean (Linux `xfs_log_recover.c`, `xlog_find_tail`).

use super::area::LogArea;
use super::head::{Head, find_head};
use super::record::LogRecord;
use crate::error::{Result, Rule};
use crate::geometry::Lsn;
use crate::ondisk::log_record::MAX_ICLOGS;

/// Whether the log holds changes that are not in place yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogState {
    /// Nothing was ever written: such a log is clean, but neither mkfs nor a kernel leaves one.
    Zeroed,
    /// It ends with an unmount record.
    Clean,
    /// It must be replayed before the filesystem is whole.
    Dirty,
}

/// A record at the end of the log that did not reach the disk in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornWrite {
    /// The block of its header, from which on the log is void.
    pub block: u32,
    /// Where the log would end if it were whole.
    pub head: u32,
}

/// What a scan found. Blocks are units of 512 bytes from the start of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogScan {
    /// Clean or dirty.
    pub state: LogState,
    /// The block behind the last record.
    pub head: u32,
    /// The block of the first record that must be replayed; the head in a clean log.
    pub tail: u32,
    /// Address of the last record; 0 in a zeroed log.
    pub last_record: Lsn,
    /// Byte order and alignment of the writer, as record headers name them ([`fmt`](crate::ondisk::log_record::fmt)).
    pub format: u32,
    /// A torn write at the end.
    pub torn: Option<TornWrite>,
}

/// Finds head and tail of a log. Reads at most some megabytes, whatever the log holds.
///
/// In a dirty log the last records, as many as can have been on their way, are verified by their CRCs; the log ends before
/// the first one that is torn. The records before them are not verified: that is for who replays them.
///
/// # Errors
/// `Io`; `Corrupt` when the log has no end that makes sense.
pub fn scan(area: &LogArea<'_>) -> Result<LogScan> {
    let head = match find_head(area)? {
        Head::Zeroed => {
            return Ok(LogScan {
                state: LogState::Zeroed,
                head: 0,
                tail: 0,
                last_record: Lsn(0),
                format: 0,
                torn: None,
            });
        }
        Head::At(head) => head,
    };
    let last = last_record(area, head)?;
    let found = ending_at(area, head, &last)?;
    if found.state == LogState::Clean {
        return Ok(found);
    }
    let Some((first_bad, good)) = first_torn_record(area, head, found.tail)? else { return Ok(found) };
    let Some(good) = good else {
        return Err(area.corrupt("head", Rule::Crc, first_bad, "no whole record before the torn one"));
    };
    let torn = Some(TornWrite { block: first_bad, head });
    Ok(LogScan { torn, ..ending_at(area, first_bad, &good)? })
}

/// The record before the head, and not further away than records in flight can lie.
fn last_record(area: &LogArea<'_>, head: u32) -> Result<LogRecord> {
    LogRecord::last_before(area, head, area.in_flight_blocks())?
        .ok_or_else(|| area.corrupt("head", Rule::Magic, head, "no record ends before it"))
}

/// The state of a log that ends at `head` with the record `last`.
fn ending_at(area: &LogArea<'_>, head: u32, last: &LogRecord) -> Result<LogScan> {
    let tail = Lsn(last.header.tail_lsn.get()).block();
    let clean = last.end(area) == Some(head) && last.is_unmount(area)?;
    if !clean && tail >= area.blocks() {
        return Err(area.corrupt("tail_lsn", Rule::Range, last.block, format!("block {tail} of {}", area.blocks())));
    }
    Ok(LogScan {
        state: if clean { LogState::Clean } else { LogState::Dirty },
        head,
        tail: if clean { head } else { tail },
        last_record: Lsn(last.header.lsn.get()),
        format: last.header.fmt.get(),
        torn: None,
    })
}

/// Among the last records before `head`, and not before `tail`: the block of the oldest that is torn, and the record before it.
fn first_torn_record(area: &LogArea<'_>, head: u32, tail: u32) -> Result<Option<(u32, Option<LogRecord>)>> {
    let mut torn = None;
    let mut end = head;
    let mut room = if head == tail { area.blocks() } else { area.distance(tail, head) };
    for _ in 0..MAX_ICLOGS {
        let reach = room.min(area.in_flight_blocks());
        let Some(record) = LogRecord::last_before(area, end, reach)? else { break };
        if let Some((_, before @ None)) = &mut torn {
            *before = Some(record);
        }
        if !record.is_plausible(area) || !record.crc_matches(area)? {
            torn = Some((record.block, None));
        }
        let steps = area.distance(record.block, end);
        room -= if steps == 0 { room } else { steps.min(room) };
        end = record.block;
    }
    if let Some((block, before @ None)) = &mut torn {
        // the oldest record that was looked at is torn: the one before it counts, even from before the tail
        *before = LogRecord::last_before(area, *block, area.in_flight_blocks())?;
    }
    Ok(torn)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // test logs are small
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::geometry::limits::BASIC_BLOCK;
    use crate::journal::model::Ring;
    use crate::ondisk::log_record::BBSIZE;
    use proptest::prelude::*;

    fn found(ring: &Ring) -> Result<LogScan> {
        scan(&LogArea::new(&ring.device, &ring.geometry)?)
    }

    #[test]
    fn a_log_of_zeroes() {
        let ring = Ring::new(1024, 2);
        assert_eq!(found(&ring).expect("sound").state, LogState::Zeroed);
    }

    #[test]
    fn a_log_as_mkfs_leaves_it() {
        for version in [1, 2] {
            let mut ring = Ring::new(1024, version);
            ring.write(0, Lsn::new(1, 0), true);
            let found = found(&ring).expect("sound");
            assert_eq!((found.state, found.head, found.tail), (LogState::Clean, 2, 2), "version {version}");
        }
    }

    #[test]
    fn another_filesystems_log_is_refused() {
        let mut ring = Ring::new(1024, 2);
        ring.write(0, Lsn::new(1, 0), true);
        ring.geometry.uuid = [8; 16];
        assert!(found(&ring).is_err_and(|error| error.to_string().contains("UUID")));
    }

    #[test]
    fn a_log_outside_its_device_is_refused() {
        let mut ring = Ring::new(1024, 2);
        ring.geometry.log.blocks = 1025;
        assert!(found(&ring).is_err());
        ring.geometry.log.blocks = 0;
        assert!(found(&ring).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// However often the log went round: the head is behind the last record, the tail is what that record says.
        #[test]
        fn head_and_tail_of_any_history(
            version in 1..=2u16, sizes in proptest::collection::vec(1..32_000usize, 1..400), unmounted: bool,
        ) {
            let mut ring = Ring::new(if version == 2 { 600 } else { 100 }, version);
            let mut tail = Lsn::new(1, 0);
            for len in &sizes {
                tail = Lsn::new(ring.cycle, ring.at);
                ring.write(*len, tail, false);
            }
            if unmounted {
                ring.write(0, tail, true);
            }
            let found = found(&ring).expect("sound");
            let state = if unmounted { LogState::Clean } else { LogState::Dirty };
            prop_assert_eq!((found.state, found.head), (state, ring.at));
            prop_assert_eq!(found.tail, if unmounted { ring.at } else { tail.block() });
            prop_assert_eq!(found.torn, None);
        }

        /// A record of which blocks are missing does not count, nor do those behind it.
        #[test]
        fn a_torn_record_ends_the_log(
            sizes in proptest::collection::vec(1..32_000usize, 3..200), later in 0..4usize, damaged in 1..8u32,
        ) {
            let mut ring = Ring::new(600, 2);
            let mut start = Lsn::new(1, 0);
            for len in &sizes {
                start = Lsn::new(ring.cycle, ring.at);
                ring.write(*len, start, false);
            }
            let torn_at = (ring.at, ring.cycle);
            ring.write(8 * BBSIZE, start, false);
            for _ in 0..later {
                ring.write(5000, start, false);
            }
            // contents of a block that never arrived, though its cycle is right
            let block = (torn_at.0 + damaged) % ring.blocks;
            let offset = u64::from(block * BASIC_BLOCK) + 100;
            ring.device.write_at(offset, &[0x55; 8]).expect("on the device");
            let found = found(&ring).expect("sound");
            let head = ring.at;
            prop_assert_eq!(found.torn, Some(TornWrite { block: torn_at.0, head }));
            prop_assert_eq!((found.state, found.head, found.tail), (LogState::Dirty, torn_at.0, start.block()));
        }

        /// Blocks of the last records that did not arrive at all leave the head before them.
        #[test]
        fn a_hole_ends_the_log(sizes in proptest::collection::vec(1..32_000usize, 2..200), missing in 1..9u32) {
            let mut ring = Ring::new(600, 2);
            for len in &sizes {
                let tail = Lsn::new(ring.cycle, ring.at);
                ring.write(*len, tail, false);
            }
            let before = ring.at;
            let hole = (before + missing) % ring.blocks;
            let offset = u64::from(hole * BASIC_BLOCK);
            let mut old = [0; BBSIZE];
            ring.device.read_at(offset, &mut old).expect("on the device");
            let tail = Lsn::new(ring.cycle, ring.at);
            ring.write(8 * BBSIZE, tail, false);
            ring.device.write_at(offset, &old).expect("on the device");
            prop_assert_eq!(found(&ring).expect("sound").head, before);
        }

        /// Any bytes give an answer or an error, never a panic.
        #[test]
        fn random_logs(version in 1..=2u16, seed: u64, headers in 0..40usize) {
            let mut ring = Ring::new(64, version);
            let mut state = seed | 1;
            let mut next = move || { state ^= state << 13; state ^= state >> 7; state ^= state << 17; state };
            for block in 0..ring.blocks {
                let cycle = (next() % 4) as u32;
                ring.device.write_at(u64::from(block * BASIC_BLOCK), &cycle.to_be_bytes()).expect("on the device");
            }
            for _ in 0..headers {
                ring.at = (next() % u64::from(ring.blocks)) as u32;
                let mut record = ring.record(100, Lsn(next()), next() % 2 == 0);
                let garbage = (next() % 400) as usize;
                record[garbage] = next() as u8;
                ring.put(&record[..BBSIZE]);
            }
            let _ = found(&ring);
        }
    }
}
