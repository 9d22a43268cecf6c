//! Every on-disk structure of XFS, each declared once; no I/O here.
//!
//! A structure is declared with [`ondisk!`](macro@crate::ondisk), which gives a `repr(C)` type of big-endian integers that can be
//! laid over bytes, asserts its size and the offset of each field at compile time, and makes a table of its
//! fields ([`OnDisk::FIELDS`]). Offsets stand in that declaration and nowhere else.

#[macro_use]
mod declare;
pub mod acl;
pub mod agf;
pub mod agfl;
pub mod agi;
pub mod alloc_record;
pub mod attr_leaf;
pub mod attr_short;
pub mod btree_block;
pub mod crc;
pub mod da_block;
pub mod dinode;
pub mod dir_data;
pub mod dir_leaf;
pub mod dir_short;
pub mod dquot;
pub mod extent;
pub mod feature_bits;
pub mod inobt_record;
pub mod log_attri;
pub mod log_buffer;
pub mod log_inode;
pub mod log_intent;
pub mod log_item;
pub mod log_record;
pub mod log_xmi;
pub mod metadump;
pub mod name_hash;
pub mod null;
pub mod parent;
pub mod refcount_record;
pub mod remote;
pub mod rmap_record;
pub mod rt;
pub mod rt_superblock;
pub mod superblock;
pub mod timestamp;
pub mod undo;

pub use agf::RawAgf;
pub use agfl::RawAgfl;
pub use agi::RawAgi;
pub use alloc_record::{FreeExtent, RawAllocRecord};
pub use btree_block::{RawLongBlock, RawLongBlockV5, RawShortBlock, RawShortBlockV5};
pub use declare::{Field, FieldKind, FieldType, OnDisk};
pub use dinode::{RawDinode, RawDinodeCore};
pub use dquot::{RawDiskDquot, RawDquotBlock};
pub use extent::{Extent, RawBmbtKey, RawBmdrRoot, RawExtent};
pub use inobt_record::{INODES_PER_CHUNK, InodeChunk, RawInobtKey, RawInobtRecord, RawSparseInobtRecord};
pub use null::{NULLAGBLOCK, NULLAGINO, NULLFSBLOCK, NULLFSINO};
pub use refcount_record::{RawRefcountKey, RawRefcountRecord, RawRtrefcountRoot, Refcount};
pub use rmap_record::{RawRmapKey, RawRmapRecord, RawRtrmapRoot, Rmap};
pub use rt::{RawRtBlockHeader, RtWordForm};
pub use rt_superblock::RawRtSuperblock;
pub use superblock::RawSuperblock;
pub use timestamp::Timestamp;
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
