//! The smallest log that a filesystem can work with.
//!
//! The kernel refuses to mount a filesystem whose log is smaller than this (Linux `xfs_log_rlimit.c`), and a formatter
//! makes no smaller one.

use super::limits::MAX_LOG_RECORD_BYTES;
use super::reservation::{DA_DEPTH, Formulas, OP_HEADER, Purpose, Reservation, ReservationInputs, Reservations};
use crate::ondisk::LittleEndian;
use crate::ondisk::dir_data::MAXNAMELEN;
use crate::ondisk::log_intent::{RawDoneItem, RawExtent64, RawIntentHead, RawMapExtent};
use crate::ondisk::log_record::RawTransHeader;

/// Bytes of a basic block, the unit of the log.
const BASIC_BLOCK: u64 = super::limits::BASIC_BLOCK as u64;
/// The log must hold this many of the largest transaction.
const MIN_LOG_FACTOR: u64 = 3;
/// Height of the reverse mapping tree that the early reflink code took for granted.
const EARLY_RMAP_LEVELS: u32 = 9;
/// Steps of a write and of a truncation in the early reflink code.
const EARLY_REFLINK_STEPS: u32 = 8;
/// Steps of a write and of a truncation without deferred operations.
const PLAIN_STEPS: u32 = 2;
/// Header of a transaction in the log.
const TRANS_HEADER: u64 = size_of::<RawTransHeader<LittleEndian>>() as u64;
/// Bytes of the longest name with its end.
const LONGEST_NAME: u64 = MAXNAMELEN as u64 + 1;
/// The largest log buffer of version 2.
const RECORD_V2: u64 = MAX_LOG_RECORD_BYTES as u64;
/// The largest log buffer of version 1.
const RECORD_V1: u64 = 32 * 1024;
/// Bytes of a log buffer for which one header block keeps the cycle numbers.
const HEADER_CYCLE: u64 = 32 * 1024;

/// The largest reservation of a filesystem as the minimum log size counts it: `xfs_log_get_max_trans_res`.
pub fn largest_reservation(inputs: &ReservationInputs) -> Reservation {
    largest_of(inputs, &Reservations::new(inputs))
}

/// The minimum size of the log in filesystem blocks: `xfs_log_calc_minimum_size`.
pub fn minimum_log_blocks(inputs: &ReservationInputs) -> u64 {
    blocks_for(inputs, largest_reservation(inputs))
}

/// The minimum size of the log in filesystem blocks for atomic writes of `blockcount` blocks, each of which may need an
/// out-of-place write of its own: `xfs_calc_atomic_write_log_geometry`. `None` if no log is large enough.
pub fn atomic_write_log_blocks(inputs: &ReservationInputs, blockcount: u32) -> Option<u64> {
    let formulas = Formulas::new(inputs, inputs.levels());
    let (step, intents) = (atomic_step(&formulas), atomic_intents());
    let logres = u64::from(blockcount) * intents + step;
    let mut resv = Reservations::with(&formulas);
    resv.atomic_ioend.logres = u32::try_from(logres).ok()?;
    Some(blocks_for(inputs, largest_of(inputs, &resv)))
}

/// Bytes of log that an atomic write takes which is done out of place: those of its largest step, and those that each
/// of its blocks adds (`xfs_calc_atomic_write_ioend_geometry`).
pub fn atomic_write_log_space(inputs: &ReservationInputs) -> (u64, u64) {
    (atomic_step(&Formulas::new(inputs, inputs.levels())), atomic_intents())
}

/// Log space of the largest step of an atomic write.
fn atomic_step(formulas: &Formulas<'_>) -> u64 {
    formulas.finish_efi(1).max(formulas.finish_rui(1)).max(formulas.finish_cui(1)).max(formulas.finish_bui())
}

/// Log space of the intents that one extent of an atomic write carries from step to step.
fn atomic_intents() -> u64 {
    // op header and length in memory beside each item; all are rounded up to 8 bytes
    let item = |format: usize, extent: usize| (format as u64 + extent as u64 + 8 + OP_HEADER).next_multiple_of(8);
    let (head, done) = (size_of::<RawIntentHead<LittleEndian>>(), item(size_of::<RawDoneItem<LittleEndian>>(), 0));
    let extents = item(head, size_of::<RawExtent64<LittleEndian>>());
    let mappings = item(head, size_of::<RawMapExtent<LittleEndian>>());
    let (bui, rui, cui, efi, efd) = (mappings, mappings, extents, extents, extents);
    let steps = [bui + cui, done + rui + cui + done, done + cui + done, done + efi, efd, bui + done + cui + done];
    steps.into_iter().max().unwrap_or(0)
}

/// Only filesystems with parent pointers are new enough to be spared the early over-estimates.
fn largest_of(inputs: &ReservationInputs, running: &Reservations) -> Reservation {
    let resv = if inputs.crc && inputs.parent { *running } else { early_reservations(inputs, running) };
    let mut largest = Reservation::default();
    let mut space = 0;
    for (_, candidate) in resv.all() {
        let needed = u64::from(candidate.logres) * u64::from(candidate.logcount.max(1));
        if needed > space {
            (space, largest) = (needed, candidate);
        }
    }
    let attr = largest_attribute(inputs, running);
    if attr > space {
        let logres = u32::try_from(attr).unwrap_or(u32::MAX);
        largest = Reservation { logres, ..resv.attrsetm };
    }
    largest
}

/// The reservations as the early code for rmap and reflink computed them.
fn early_reservations(inputs: &ReservationInputs, running: &Reservations) -> Reservations {
    let mut levels = inputs.levels();
    if inputs.rmapbt && inputs.reflink {
        levels.rmapbt = EARLY_RMAP_LEVELS;
    }
    let formulas = Formulas::new(inputs, levels);
    let mut resv = Reservations::with(&formulas);
    resv.atomic_ioend = running.atomic_ioend;
    if inputs.reflink || inputs.rmapbt {
        let steps = if inputs.reflink { EARLY_REFLINK_STEPS } else { PLAIN_STEPS };
        resv.write.logcount = steps;
        resv.itruncate.logcount = steps;
        resv.qm_dqalloc.logcount = steps;
    }
    let low = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    resv.write.logres = low(formulas.write(Purpose::MinimumLog));
    resv.itruncate.logres = low(formulas.itruncate(Purpose::MinimumLog));
    resv.qm_dqalloc.logres = low(formulas.qm_dqalloc(Purpose::MinimumLog));
    resv
}

/// Setting the largest attribute that is logged itself.
fn largest_attribute(inputs: &ReservationInputs, running: &Reservations) -> u64 {
    let formulas = Formulas::new(inputs, inputs.levels());
    let block = formulas.block;
    let levels = u64::from(formulas.levels.bmbt_attr);
    // three quarters of a block, less the name and its end
    let size = (block / 2 + block / 4).saturating_sub(LONGEST_NAME + 1);
    let value_blocks = size.div_ceil(block.max(1));
    let tree = DA_DEPTH + DA_DEPTH * formulas.new_extents(1, levels);
    // Linux counts an extent for each byte of the value, not for each block, unless parent pointers say that no
    // older kernel will see the filesystem
    let extents = if inputs.crc && inputs.parent { value_blocks } else { size };
    let blocks = tree + value_blocks + formulas.new_extents(extents, levels);
    u64::from(running.attrsetm.logres) + u64::from(running.attrsetrt.logres) * blocks
}

/// A transaction of `bytes` with everything that the log adds to it: `xfs_log_calc_unit_res`.
fn unit_bytes(inputs: &ReservationInputs, bytes: u64) -> u64 {
    let (record, header) =
        if inputs.logv2 { (RECORD_V2, RECORD_V2 / HEADER_CYCLE * BASIC_BLOCK) } else { (RECORD_V1, BASIC_BLOCK) };
    let room = record - header;
    let mut bytes = bytes + OP_HEADER + TRANS_HEADER + OP_HEADER;
    let mut headers = bytes.div_ceil(room);
    bytes += OP_HEADER * headers;
    while headers == 0 || bytes.div_ceil(room) > headers {
        bytes += OP_HEADER;
        headers += 1;
    }
    // one header more for the commit record, which may come in a log buffer of its own
    bytes += header * (headers + 1);
    bytes + 2 * log_stripe(inputs).unwrap_or(BASIC_BLOCK)
}

/// Stripe unit of the log in bytes.
fn log_stripe(inputs: &ReservationInputs) -> Option<u64> {
    (inputs.logv2 && inputs.logsunit > 1).then_some(u64::from(inputs.logsunit))
}

fn blocks_for(inputs: &ReservationInputs, largest: Reservation) -> u64 {
    let bytes = unit_bytes(inputs, u64::from(largest.logres)) * u64::from(largest.logcount.max(1));
    let basic = bytes.div_ceil(BASIC_BLOCK);
    let basic = match log_stripe(inputs) {
        Some(stripe) => {
            let stripe = stripe.div_ceil(BASIC_BLOCK);
            basic.next_multiple_of(stripe) + 2 * stripe
        }
        // Linux adds bytes to blocks here; the sum is part of the format by now
        None => basic + 2 * BASIC_BLOCK,
    };
    (basic * MIN_LOG_FACTOR).div_ceil(u64::from(inputs.blocksize()).div_ceil(BASIC_BLOCK).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// What mkfs.xfs and xfs_db 7.2 say of filesystems that mkfs.xfs made; `tests/oracle/logres-table` prints it.
    const TABLE: &str = include_str!("../../testdata/geometry/logres.txt");

    fn number(text: &str) -> u64 {
        match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).expect("invariant: the table holds numbers"),
            None => text.parse().expect("invariant: the table holds numbers"),
        }
    }

    fn small<T: TryFrom<u64>>(value: u64) -> T {
        T::try_from(value).ok().expect("invariant: the field fits")
    }

    fn inputs(line: &str) -> ReservationInputs {
        let sb: HashMap<&str, u64> =
            line.split(' ').filter_map(|pair| pair.split_once('=')).map(|(key, value)| (key, number(value))).collect();
        let field = |name: &str| sb.get(name).copied().unwrap_or(0);
        let (ro_compat, incompat) = (field("features_ro_compat"), field("features_incompat"));
        ReservationInputs {
            blocklog: small(field("blocklog")),
            sectsize: small(field("sectsize")),
            inodesize: small(field("inodesize")),
            dirblklog: small(field("dirblklog")),
            agblocks: small(field("agblocks")),
            agblklog: small(field("agblklog")),
            dblocks: field("dblocks"),
            inoalignmt: small(field("inoalignmt")),
            crc: field("versionnum") & 0xf == 5,
            finobt: ro_compat & 1 != 0,
            rmapbt: ro_compat & 2 != 0,
            reflink: ro_compat & 4 != 0,
            nrext64: incompat & 0x20 != 0,
            parent: incompat & 0x80 != 0,
            metadir: incompat & 0x100 != 0,
            zoned: incompat & 0x200 != 0,
            rblocks: field("rblocks"),
            rextsize: small(field("rextsize")),
            rgextents: small(field("rgextents")),
            rsumblocks: 0,
            logv2: field("versionnum") & 0x400 != 0,
            logsunit: small(field("logsunit")),
        }
    }

    fn check_reservations(args: &str, inputs: &ReservationInputs, line: &str) {
        let resv = Reservations::new(inputs).all();
        let expected: Vec<&str> = line.split(' ').collect();
        assert_eq!(resv.len(), expected.len(), "{args}");
        for ((name, found), expected) in resv.iter().zip(expected) {
            let found = format!("{}/{}/{}", found.logres, found.logcount, u8::from(found.permanent));
            assert_eq!(found, expected, "{name} of {args}");
        }
    }

    #[test]
    fn reservations_and_minimum_logs_equal_the_reference() {
        let (mut args, mut current, mut seen, mut minima) = ("", ReservationInputs::default(), 0, 0);
        for line in TABLE.lines() {
            let (key, rest) = line.split_once(' ').expect("invariant: every line has a key");
            match key {
                "args" => args = rest,
                "sb" => current = inputs(rest),
                "logres" => {
                    check_reservations(args, &current, rest);
                    seen += 1;
                }
                "largest" => {
                    let found = largest_reservation(&current);
                    assert_eq!(format!("{}/{}", found.logres, found.logcount), rest, "largest of {args}");
                }
                "minimum" | "smallest" => {
                    // a log has at least 512 blocks, whatever the transactions need
                    assert_eq!(minimum_log_blocks(&current).max(512), number(rest), "{key} of {args}");
                    minima += 1;
                }
                _ => unreachable!("invariant: the table has no other keys"),
            }
        }
        assert!(seen >= 90 && minima >= 60, "{seen} filesystems, {minima} minima");
    }

    #[test]
    fn atomic_writes_need_a_larger_log() {
        // 100 GiB with the features of today: mkfs.xfs -i max_atomic_write=256m, and 1g
        let inputs = ReservationInputs {
            blocklog: 12,
            sectsize: 512,
            inodesize: 512,
            agblocks: 6553600,
            agblklog: 23,
            dblocks: 26214400,
            inoalignmt: 8,
            crc: true,
            finobt: true,
            rmapbt: true,
            reflink: true,
            nrext64: true,
            parent: true,
            rextsize: 1,
            logv2: true,
            logsunit: 1,
            ..ReservationInputs::default()
        };
        assert_eq!(atomic_write_log_blocks(&inputs, 65536), Some(51437));
        assert_eq!(atomic_write_log_blocks(&inputs, 262144), Some(203574));
        assert_eq!(atomic_write_log_blocks(&inputs, u32::MAX), None);
    }
}
