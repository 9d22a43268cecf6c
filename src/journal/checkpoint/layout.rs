//! How the machine that writes a journal lays out what it writes.

use crate::journal::Order;
use crate::ondisk::log_inode::Width;
use crate::ondisk::log_record::{CrcReach, fmt};

/// How the machine that writes a journal lays out what it writes. A replay reads them all, but no other machine than the
/// usual one is ever needed to write: the others are for tests of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WriterLayout {
    /// Byte order of items and transaction headers.
    pub order: Order,
    /// Whether 64-bit fields are aligned.
    pub width: Width,
}

impl WriterLayout {
    /// Little-endian, 64 bits: x86-64, ARM, and what this program writes.
    pub const USUAL: Self = WriterLayout { order: Order::Little, width: Width::Bits64 };
    /// Big-endian, 64 bits: s390x.
    pub const BIG_ENDIAN: Self = WriterLayout { order: Order::Big, width: Width::Bits64 };
    /// 32-bit x86.
    pub const I386: Self = WriterLayout { order: Order::Little, width: Width::Bits32 };

    /// What record headers call the writer.
    pub fn format(self) -> u32 {
        match self.order {
            Order::Little => fmt::LINUX_LE,
            Order::Big => fmt::LINUX_BE,
        }
    }

    /// How far the CRC of a record header reaches.
    pub fn crc_reach(self) -> CrcReach {
        if self == Self::I386 { CrcReach::I386 } else { CrcReach::Usual }
    }
}

impl Default for WriterLayout {
    fn default() -> Self {
        Self::USUAL
    }
}
