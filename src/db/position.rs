//! Where in the image one looks.

use std::sync::Arc;

use super::crc_state::CrcState;
use super::types::TypeId;
use crate::buffer::Fragment;
use crate::error::{DeviceRole, Verdict};
use crate::geometry::Daddr;

/// Where in the image one looks: bytes of a device, and what they are taken for.
#[derive(Clone, Debug)]
pub struct Position {
    /// What the bytes are taken for.
    pub ty: TypeId,
    /// The device that they lie on.
    pub device: DeviceRole,
    /// Where the buffer begins, in units of 512 bytes.
    pub daddr: Daddr,
    /// The buffer's length in units of 512 bytes.
    pub basic_blocks: u64,
    /// The parts of a buffer that does not lie in one piece, in order; empty where it does.
    pub fragments: Vec<Fragment>,
    /// The whole buffer.
    pub buffer: Arc<[u8]>,
    /// Where in the buffer the object begins, in bytes: not 0 for inodes and quota records.
    pub offset: usize,
    /// Length of the object in bytes.
    pub len: usize,
    /// What is known about the object's CRC.
    pub crc: CrcState,
    /// Every check that the block fails; none where blocks of the type have no checks.
    pub verdict: Arc<Verdict>,
}

impl Position {
    /// The bytes of the object.
    pub fn bytes(&self) -> &[u8] {
        let end = self.offset.saturating_add(self.len).min(self.buffer.len());
        self.buffer.get(self.offset..end).unwrap_or_default()
    }

    /// Where the object begins on its device, in bytes.
    pub fn byte_offset(&self) -> u64 {
        let offset = u64::try_from(self.offset).unwrap_or(u64::MAX);
        self.daddr.0.saturating_mul(512).saturating_add(offset)
    }
}
