//! The one request to a block device that no safe call makes: BLKDISCARD.
//!
//! `fallocate` on a block device zeroes, and since Linux 6.12 it has no mode that only discards; a thin volume or a
//! solid-state disk without zeroing discards is reached by the ioctl alone.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use rustix::ioctl::{Setter, ioctl, opcode};

/// BLKDISCARD of `linux/fs.h`: takes start and length in bytes, multiples of the logical sector.
const BLKDISCARD: rustix::ioctl::Opcode = opcode::none(0x12, 119);

/// Discards a range of a block device.
///
/// # Errors
/// The system's, `EOPNOTSUPP` where the device cannot discard.
pub(super) fn discard_block_range(file: &File, start: u64, len: u64) -> io::Result<()> {
    // SAFETY: BLKDISCARD reads two u64 at the pointer that it is given and writes nothing there.
    let request = unsafe { Setter::<BLKDISCARD, [u64; 2]>::new([start, len]) };
    // SAFETY: as above; the kernel refuses the request on anything but a block device opened for writing.
    unsafe { ioctl(file, request) }?;
    Ok(())
}
