//! The formats that many tables use.

use super::format::{Format, Radix, Shape, Target};

/// A bit.
pub const FLAG: Format = Format::decimal(1);
/// Decimal, 8 bits.
pub const U8: Format = Format::decimal(8);
/// Decimal, 16 bits.
pub const U16: Format = Format::decimal(16);
/// Decimal, 32 bits.
pub const U32: Format = Format::decimal(32);
/// Decimal, 64 bits.
pub const U64: Format = Format::decimal(64);
/// Hexadecimal, 8 bits.
pub const X8: Format = Format::hexadecimal(8);
/// Hexadecimal, 16 bits.
pub const X16: Format = Format::hexadecimal(16);
/// Hexadecimal, 32 bits.
pub const X32: Format = Format::hexadecimal(32);
/// Hexadecimal, 64 bits.
pub const X64: Format = Format::hexadecimal(64);
/// Octal, 16 bits.
pub const O16: Format = Format::number(16, Radix::Octal);
/// Decimal with a sign, 8 bits.
pub const I8: Format = Format::signed(8);
/// Decimal with a sign, 16 bits.
pub const I16: Format = Format::signed(16);
/// Decimal with a sign, 32 bits.
pub const I32: Format = Format::signed(32);
/// Decimal with a sign, 64 bits.
pub const I64: Format = Format::signed(64);
/// A byte of a string.
pub const CHARACTERS: Format = Format::shaped(Shape::Characters, 8);
/// A UUID.
pub const UUID: Format = Format::shaped(Shape::Uuid, 128);
/// A CRC.
pub const CRC: Format = Format::shaped(Shape::Crc, 32);
/// Block of an allocation group.
pub const AG_BLOCK: Format = Format::nullable(32).addressing(Target::AgBlock);
/// Inode of an allocation group.
pub const AG_INO: Format = Format::nullable(32).addressing(Target::AgIno);
/// Number of an allocation group, or another number of 32 bits that may be null.
pub const AG_NUMBER: Format = Format::nullable(32);
/// Block of a btree in an allocation group; null is no special value.
pub const AG_POINTER: Format = Format::decimal(32).addressing(Target::AgBlock);
/// Filesystem block.
pub const FS_BLOCK: Format = Format::nullable(64).addressing(Target::FsBlock);
/// Filesystem block of a btree; null is no special value.
pub const FS_POINTER: Format = Format::decimal(64).addressing(Target::FsBlock);
/// Block of the data device, counted from its start.
pub const DATA_BLOCK: Format = Format::nullable(64).addressing(Target::DataBlock);
/// Realtime block.
pub const RT_BLOCK: Format = Format::nullable(64).addressing(Target::RtBlock);
/// Inode number.
pub const INO: Format = Format::nullable(64).addressing(Target::Ino);
