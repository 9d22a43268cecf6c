//! Requests to block devices that no safe call makes: discard, and the zones of zoned devices.
//!
//! `fallocate` on a block device zeroes, and since Linux 6.12 it has no mode that only discards; a thin volume or a
//! solid-state disk without zeroing discards is reached by the ioctl alone. Structures and numbers are those of the
//! kernel's `linux/fs.h` and `linux/blkzoned.h`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use rustix::ioctl::{Opcode, Setter, Updater, ioctl, opcode};

const BLKDISCARD: Opcode = opcode::none(0x12, 119);
/// Its number is that of the report's header alone, which has 16 bytes.
const BLKREPORTZONE: Opcode = opcode::read_write::<[u64; 2]>(0x12, 130);
const BLKRESETZONE: Opcode = opcode::write::<[u64; 2]>(0x12, 131);

/// Zones that are asked for at once.
const BATCH: usize = 1024;
const BATCH_COUNT: u32 = 1024;

/// Set in a report's flags where the zones' capacities are filled in.
const REPORTS_CAPACITY: u32 = 1;

/// A zone as the kernel reports it; units of 512 bytes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct ZoneReport {
    /// First unit.
    pub(super) start: u64,
    /// Length of the zone in the device's addresses.
    pub(super) len: u64,
    write_pointer: u64,
    /// 1: conventional; 2: writes must be sequential; 3: should be.
    pub(super) kind: u8,
    state: [u8; 7],
    /// How much of it can be written.
    pub(super) capacity: u64,
    reserved: [u8; 24],
}

#[repr(C)]
struct Report {
    sector: u64,
    nr_zones: u32,
    flags: u32,
    zones: [ZoneReport; BATCH],
}

const _: () = assert!(size_of::<ZoneReport>() == 64 && size_of::<Report>() == 16 + 64 * BATCH);

/// Discards `len` bytes at `start` of a block device, both multiples of the logical sector.
///
/// # Errors
/// The system's, `EOPNOTSUPP` where the device cannot discard.
pub(super) fn discard_range(file: &File, start: u64, len: u64) -> io::Result<()> {
    // SAFETY: BLKDISCARD reads two u64 at the pointer that it is given and writes nothing there.
    let request = unsafe { Setter::<BLKDISCARD, [u64; 2]>::new([start, len]) };
    // SAFETY: as above; the kernel refuses the request on anything but a block device opened for writing.
    unsafe { ioctl(file, request) }?;
    Ok(())
}

/// Empties all zones in a range of a zoned device; both numbers in units of 512 bytes.
///
/// # Errors
/// The system's.
pub(super) fn reset_zones(file: &File, sector: u64, sectors: u64) -> io::Result<()> {
    // SAFETY: BLKRESETZONE reads two u64 at the pointer that it is given and writes nothing there.
    let request = unsafe { Setter::<BLKRESETZONE, [u64; 2]>::new([sector, sectors]) };
    // SAFETY: as above; the kernel refuses the request on anything but a zoned block device opened for writing.
    unsafe { ioctl(file, request) }?;
    Ok(())
}

/// Calls `visit` for each zone in ascending order, until it errs or there are no more.
///
/// # Errors
/// The system's, and those of `visit`.
pub(super) fn visit_zones(file: &File, mut visit: impl FnMut(&ZoneReport) -> io::Result<()>) -> io::Result<()> {
    let mut report = Box::new(Report { sector: 0, nr_zones: 0, flags: 0, zones: [ZoneReport::default(); BATCH] });
    loop {
        report.nr_zones = BATCH_COUNT;
        report.flags = 0;
        // SAFETY: BLKREPORTZONE fills the header and as many zones behind it as the header asks for: `BATCH`, for
        // which there is room; any bytes are a valid `Report`.
        let request = unsafe { Updater::<BLKREPORTZONE, Report>::new(&mut report) };
        // SAFETY: as above.
        unsafe { ioctl(file, request) }?;
        let count = usize::try_from(report.nr_zones).unwrap_or(BATCH).min(BATCH);
        let Some(last) = report.zones[..count].last().copied() else { return Ok(()) };
        for zone in &mut report.zones[..count] {
            if report.flags & REPORTS_CAPACITY == 0 {
                zone.capacity = zone.len;
            }
            visit(zone)?;
        }
        match last.start.checked_add(last.len) {
            Some(next) if next > report.sector => report.sector = next,
            _ => return Err(io::Error::other("the device's zones do not ascend")),
        }
    }
}
