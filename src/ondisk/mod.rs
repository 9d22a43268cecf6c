//! Every on-disk structure of XFS, each declared once; no I/O here.
//!
//! A structure is declared with [`ondisk!`](crate::ondisk), which gives a `repr(C)` type of big-endian integers that can be
//! laid over bytes, asserts its size and the offset of each field at compile time, and makes a table of its
//! fields ([`OnDisk::FIELDS`]). Offsets stand in that declaration and nowhere else.

#[macro_use]
mod declare;
pub mod crc;

pub use declare::{Field, FieldKind, FieldType, OnDisk};
pub use zerocopy::byteorder::{BigEndian, LittleEndian};

/// Big-endian 16-bit integer, as XFS stores it.
pub type Be16 = zerocopy::byteorder::U16<BigEndian>;
/// Big-endian 32-bit integer, as XFS stores it.
pub type Be32 = zerocopy::byteorder::U32<BigEndian>;
/// Big-endian 64-bit integer, as XFS stores it.
pub type Be64 = zerocopy::byteorder::U64<BigEndian>;
/// Little-endian 32-bit integer: CRCs alone are stored so.
pub type Le32 = zerocopy::byteorder::U32<LittleEndian>;
/// A UUID as stored: 16 bytes in network order.
pub type RawUuid = [u8; 16];
