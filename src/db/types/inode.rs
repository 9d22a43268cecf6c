//! Inodes: core, the part of version 3, both forks in all their forms.

use super::{
    ATTR_EXTENT, ATTR_EXTENT_KEY, ATTR_SHORT, DATA_EXTENT, DATA_EXTENT_KEY, DIR2_SHORT, DIR3_SHORT, RT_REFCOUNT,
    RT_REFCOUNT_KEY, RT_RMAP, RT_RMAP_KEY,
};
use crate::db::field::at;
use crate::db::field::formats::{
    AG_INO, CHARACTERS, CRC, DATA_BLOCK, FLAG, FS_POINTER, I8, I64, INO, O16, U8, U16, U32, U64, UUID, X8, X16, X32,
    X64,
};
use crate::db::field::{Bits, Format, Object, Row, Shape};
use crate::db::types::TypeId;
use crate::geometry::{BtreeKind, inode_root_max};
use crate::ondisk::dinode::{flags, flags2, format, metatype};
use crate::ondisk::{
    Be64, OnDisk, RawBmbtKey, RawBmdrRoot, RawDinode, RawRefcountKey, RawRefcountRecord, RawRmapKey, RawRmapRecord,
};

/// An inode of versions 1 and 2.
pub(super) const INODE: Format = Format::structure_sized(
    &[
        Row::new("core", 0, CORE),
        Row::new("next_unlinked", at!(RawDinode, core.next_unlinked), AG_INO).leads_to(TypeId::Inode),
        Row::computed("u", data_fork, DATA_FORK),
        Row::computed("a", attribute_fork, ATTRIBUTE_FORK).counted(has_attribute_fork),
    ],
    inode_bits,
);

/// An inode of version 3.
pub(super) const INODE_V3: Format = Format::structure_sized(
    &[
        Row::new("core", 0, CORE),
        Row::new("next_unlinked", at!(RawDinode, core.next_unlinked), AG_INO).leads_to(TypeId::Inode),
        Row::new("v3", 0, V3),
        Row::computed("u3", data_fork, DATA_FORK),
        Row::computed("a", attribute_fork, ATTRIBUTE_FORK).counted(has_attribute_fork),
    ],
    inode_bits,
);

const FORMAT: Format = Format::shaped(Shape::Named(&["dev", "local", "extents", "btree", "uuid", "meta_btree"]), 8);
const METATYPE: Format = Format::shaped(
    Shape::Named(&[
        "unknown",
        "dir",
        "usrquota",
        "grpquota",
        "prjquota",
        "rtbitmap",
        "rtsummary",
        "rtrmap",
        "rtrefcount",
    ]),
    16,
);
const TIMESTAMP: Format = Format::structure(
    &[Row::new("sec", 0, Format::shaped(Shape::Time, 64)), Row::new("nsec", 0, Format::shaped(Shape::Nanoseconds, 64))],
    64,
);

const CORE: Format = Format::structure(
    &[
        Row::new("magic", at!(RawDinode, core.magic), X16),
        Row::new("mode", at!(RawDinode, core.mode), O16),
        Row::new("version", at!(RawDinode, core.version), I8),
        Row::new("format", at!(RawDinode, core.format), FORMAT),
        Row::new("nlinkv1", at!(RawDinode, core.metatype), U16).counted(|o, _| usize::from(version(o) == 1)),
        Row::new("onlink", at!(RawDinode, core.metatype), U16)
            .counted(|o, _| usize::from(version(o) >= 2 && !has_metadata_bit(o))),
        Row::new("metatype", at!(RawDinode, core.metatype), METATYPE)
            .counted(|o, _| usize::from(version(o) >= 3 && has_metadata_bit(o))),
        Row::new("uid", at!(RawDinode, core.uid), U32),
        Row::new("gid", at!(RawDinode, core.gid), U32),
        Row::new("nlinkv2", at!(RawDinode, core.nlink), U32).counted(|o, _| usize::from(version(o) >= 2)),
        Row::new("projid_lo", at!(RawDinode, core.projid_lo), U16).counted(|o, _| usize::from(version(o) >= 2)),
        Row::new("projid_hi", at!(RawDinode, core.projid_hi), U16).counted(|o, _| usize::from(version(o) >= 2)),
        Row::new("nextents", at!(RawDinode, core.big_nextents), U64).counted(|o, _| usize::from(is_large(o))),
        Row::new("v3_pad", at!(RawDinode, core.big_nextents), U64)
            .counted(|o, _| usize::from(version(o) == 3 && !is_large(o)))
            .hidden(),
        Row::new("v2_pad", at!(RawDinode, core.big_nextents), X8)
            .counted(|o, _| if version(o) == 3 { 0 } else { 6 })
            .array()
            .hidden(),
        Row::new("flushiter", FLUSHITER, U16).counted(|o, _| usize::from(version(o) != 3)),
        Row::new("atime", at!(RawDinode, core.atime), TIMESTAMP),
        Row::new("mtime", at!(RawDinode, core.mtime), TIMESTAMP),
        Row::new("ctime", at!(RawDinode, core.ctime), TIMESTAMP),
        Row::new("size", at!(RawDinode, core.size), I64),
        Row::new("nblocks", at!(RawDinode, core.nblocks), DATA_BLOCK),
        Row::new("extsize", at!(RawDinode, core.extsize), U32),
        Row::new("nextents", at!(RawDinode, core.nextents), U32).counted(|o, _| usize::from(!is_large(o))),
        Row::new("naextents", at!(RawDinode, core.anextents), U16).counted(|o, _| usize::from(!is_large(o))),
        Row::new("naextents", at!(RawDinode, core.nextents), U32).counted(|o, _| usize::from(is_large(o))),
        Row::new("nrext64_pad", at!(RawDinode, core.anextents), U16).counted(|o, _| usize::from(is_large(o))).hidden(),
        Row::new("forkoff", at!(RawDinode, core.forkoff), U8),
        Row::new("aformat", at!(RawDinode, core.aformat), FORMAT),
        Row::new("dmevmask", at!(RawDinode, core.dmevmask), X32),
        Row::new("dmstate", at!(RawDinode, core.dmstate), U16),
        Row::new("flags", at!(RawDinode, core.flags), X16).hidden(),
        Row::new("newrtbm", flag(flags::NEWRTBM), FLAG),
        Row::new("prealloc", flag(flags::PREALLOC), FLAG),
        Row::new("realtime", flag(flags::REALTIME), FLAG),
        Row::new("immutable", flag(flags::IMMUTABLE), FLAG),
        Row::new("append", flag(flags::APPEND), FLAG),
        Row::new("sync", flag(flags::SYNC), FLAG),
        Row::new("noatime", flag(flags::NOATIME), FLAG),
        Row::new("nodump", flag(flags::NODUMP), FLAG),
        Row::new("rtinherit", flag(flags::RTINHERIT), FLAG),
        Row::new("projinherit", flag(flags::PROJINHERIT), FLAG),
        Row::new("nosymlinks", flag(flags::NOSYMLINKS), FLAG),
        Row::new("extsz", flag(flags::EXTSIZE), FLAG),
        Row::new("extszinherit", flag(flags::EXTSZINHERIT), FLAG),
        Row::new("nodefrag", flag(flags::NODEFRAG), FLAG),
        Row::new("filestream", flag(flags::FILESTREAM), FLAG),
        Row::new("gen", at!(RawDinode, core.generation), U32),
    ],
    RawDinode::SIZE * 8,
);

const V3: Format = Format::structure(
    &[
        Row::new("crc", at!(RawDinode, crc), CRC),
        Row::new("change_count", at!(RawDinode, changecount), U64),
        Row::new("lsn", at!(RawDinode, lsn), X64),
        Row::new("flags2", at!(RawDinode, flags2), X64),
        Row::new("cowextsize", at!(RawDinode, cowextsize), U32),
        Row::new("pad2", at!(RawDinode, pad2), X8).times(12).array().hidden(),
        Row::new("crtime", at!(RawDinode, crtime), TIMESTAMP),
        Row::new("inumber", at!(RawDinode, ino), INO),
        Row::new("uuid", at!(RawDinode, uuid), UUID),
        Row::new("reflink", flag2(flags2::REFLINK), FLAG),
        Row::new("cowextsz", flag2(flags2::COWEXTSIZE), FLAG),
        Row::new("dax", flag2(flags2::DAX), FLAG),
        Row::new("bigtime", flag2(flags2::BIGTIME), FLAG),
        Row::new("nrext64", flag2(flags2::NREXT64), FLAG),
        Row::new("metadata", flag2(flags2::METADATA), FLAG),
    ],
    RawDinode::SIZE * 8,
);

const DATA_FORK: Format = Format::structure_sized(
    &[
        Row::new("bmbt", 0, DATA_ROOT).counted(|o, _| usize::from(has_format(o, format::BTREE))),
        Row::new("bmx", 0, DATA_EXTENT).counted(data_extents).array(),
        Row::new("c", 0, CHARACTERS).counted(|o, _| local_size(o, S_IFREG)),
        Row::new("dev", 0, X32).counted(|o, _| usize::from(has_format(o, format::DEV))),
        Row::new("muuid", 0, UUID).counted(|o, _| usize::from(has_format(o, format::UUID))),
        Row::new("sfdir2", 0, DIR2_SHORT).counted(|o, _| short_directory(o, false)),
        Row::new("sfdir3", 0, DIR3_SHORT).counted(|o, _| short_directory(o, true)),
        Row::new("symlink", 0, CHARACTERS).counted(|o, _| local_size(o, S_IFLNK)),
        Row::new("rtrmapbt", 0, RT_RMAP_ROOT).counted(|o, _| metadata_root(o, metatype::RTRMAP)),
        Row::new("rtrefcbt", 0, RT_REFCOUNT_ROOT).counted(|o, _| metadata_root(o, metatype::RTREFCOUNT)),
    ],
    fork_bits,
)
.or_empty();

const ATTRIBUTE_FORK: Format = Format::structure_sized(
    &[
        Row::new("bmbt", 0, ATTRIBUTE_ROOT).counted(|o, _| usize::from(has_attribute_format(o, format::BTREE))),
        Row::new("bmx", 0, ATTR_EXTENT).counted(attribute_extents).array(),
        Row::new("sfattr", 0, ATTR_SHORT).counted(|o, _| usize::from(has_attribute_format(o, format::LOCAL))),
    ],
    fork_bits,
)
.or_empty();

const DATA_ROOT: Format = Format::structure_sized(
    &[
        Row::new("level", at!(RawBmdrRoot, level), U16),
        Row::new("numrecs", at!(RawBmdrRoot, numrecs), U16),
        Row::computed("keys", |_, _, index| after_root(0, index, RawBmbtKey::SIZE), DATA_EXTENT_KEY)
            .counted(records)
            .array_from_one(),
        Row::computed(
            "ptrs",
            |o, start, index| pointer(o, start, BtreeKind::Bmbt, RawBmbtKey::SIZE, index),
            FS_POINTER,
        )
        .counted(records)
        .array_from_one()
        .leads_to(TypeId::Bmapbtd),
    ],
    fork_bits,
);

const ATTRIBUTE_ROOT: Format = Format::structure_sized(
    &[
        Row::new("level", at!(RawBmdrRoot, level), U16),
        Row::new("numrecs", at!(RawBmdrRoot, numrecs), U16),
        Row::computed("keys", |_, _, index| after_root(0, index, RawBmbtKey::SIZE), ATTR_EXTENT_KEY)
            .counted(records)
            .array_from_one(),
        Row::computed(
            "ptrs",
            |o, start, index| pointer(o, start, BtreeKind::Bmbt, RawBmbtKey::SIZE, index),
            FS_POINTER,
        )
        .counted(records)
        .array_from_one()
        .leads_to(TypeId::Bmapbta),
    ],
    fork_bits,
);

/// Bytes of the keys of one child: a low and a high key.
const RMAP_KEYS: usize = 2 * RawRmapKey::SIZE;

const RT_RMAP_ROOT: Format = Format::structure_sized(
    &[
        Row::new("level", at!(RawBmdrRoot, level), U16),
        Row::new("numrecs", at!(RawBmdrRoot, numrecs), U16),
        Row::computed("recs", |_, _, index| after_root(0, index, RawRmapRecord::SIZE), RT_RMAP)
            .counted(leaf_records)
            .array_from_one(),
        Row::computed("keys", |_, _, index| after_root(0, index, RMAP_KEYS), RT_RMAP_KEY)
            .counted(node_records)
            .array_from_one(),
        Row::computed("ptrs", |o, start, index| pointer(o, start, BtreeKind::Rtrmapbt, RMAP_KEYS, index), FS_POINTER)
            .counted(node_records)
            .array_from_one()
            .leads_to(TypeId::Rtrmapbt),
    ],
    fork_bits,
);

const RT_REFCOUNT_ROOT: Format = Format::structure_sized(
    &[
        Row::new("level", at!(RawBmdrRoot, level), U16),
        Row::new("numrecs", at!(RawBmdrRoot, numrecs), U16),
        Row::computed("recs", |_, _, index| after_root(0, index, RawRefcountRecord::SIZE), RT_REFCOUNT)
            .counted(leaf_records)
            .array_from_one(),
        Row::computed("keys", |_, _, index| after_root(0, index, RawRefcountKey::SIZE), RT_REFCOUNT_KEY)
            .counted(node_records)
            .array_from_one(),
        Row::computed(
            "ptrs",
            |o, start, index| pointer(o, start, BtreeKind::Rtrefcountbt, RawRefcountKey::SIZE, index),
            FS_POINTER,
        )
        .counted(node_records)
        .array_from_one()
        .leads_to(TypeId::Rtrefcntbt),
    ],
    fork_bits,
);

/// Type bits of a mode.
const S_IFMT: u16 = 0o170_000;
const S_IFREG: u16 = 0o100_000;
const S_IFLNK: u16 = 0o120_000;
const S_IFDIR: u16 = 0o040_000;

/// The flush counter of old inodes: the last 16 bits of a word that became a counter of extents.
const FLUSHITER: Bits = at!(RawDinode, core.big_nextents) + 48;

/// Place of a bit of `flags`.
const fn flag(bit: u16) -> Bits {
    at!(RawDinode, core.flags) + bit.leading_zeros() as usize
}

/// Place of a bit of `flags2`.
const fn flag2(bit: u64) -> Bits {
    at!(RawDinode, flags2) + bit.leading_zeros() as usize
}

fn inode<'a>(object: &Object<'a>) -> Option<&'a RawDinode> {
    object.structure(0)
}

fn version(object: &Object<'_>) -> u8 {
    inode(object).map_or(0, |inode| inode.core.version)
}

/// Whether the bit of metadata files is set. Like xfs_db this looks at its place in inodes of all versions.
fn has_metadata_bit(object: &Object<'_>) -> bool {
    inode(object).is_some_and(|inode| inode.flags2.get() & flags2::METADATA != 0)
}

fn is_large(object: &Object<'_>) -> bool {
    inode(object).is_some_and(RawDinode::has_large_counters)
}

fn has_format(object: &Object<'_>, format: u8) -> bool {
    inode(object).is_some_and(|inode| inode.core.format == format)
}

fn has_type(object: &Object<'_>, mode: u16) -> bool {
    inode(object).is_some_and(|inode| inode.core.mode.get() & S_IFMT == mode)
}

fn has_attribute_format(object: &Object<'_>, format: u8) -> bool {
    inode(object).is_some_and(|inode| inode.core.forkoff != 0 && u8::try_from(inode.core.aformat) == Ok(format))
}

fn inode_bits(object: &Object<'_>, _: Bits, _: usize) -> Bits {
    usize::try_from(object.geometry.inodes.size).unwrap_or(0) * 8
}

fn data_fork(object: &Object<'_>, _: Bits, _: usize) -> Bits {
    inode(object).map_or(0, |inode| inode.core.literal_offset() * 8)
}

fn attribute_fork(object: &Object<'_>, _: Bits, _: usize) -> Bits {
    inode(object).map_or(0, |inode| (inode.core.literal_offset() + inode.core.fork_offset()) * 8)
}

fn has_attribute_fork(object: &Object<'_>, _: Bits) -> usize {
    inode(object).map_or(0, |inode| usize::from(inode.core.forkoff != 0))
}

/// Bits of the fork that begins at `start`: to the attribute fork, or to the end of the inode.
fn fork_bits(object: &Object<'_>, start: Bits, _: usize) -> Bits {
    let attributes = attribute_fork(object, 0, 0);
    let data = data_fork(object, 0, 0);
    let end = if start < attributes && attributes > data { attributes } else { inode_bits(object, 0, 0) };
    end.saturating_sub(start)
}

fn data_extents(object: &Object<'_>, _: Bits) -> usize {
    let inode = inode(object).filter(|inode| inode.core.format == format::EXTENTS);
    inode.map_or(0, |inode| usize::try_from(inode.data_extents()).unwrap_or(usize::MAX))
}

fn attribute_extents(object: &Object<'_>, _: Bits) -> usize {
    let inode = inode(object).filter(|_| has_attribute_format(object, format::EXTENTS));
    inode.map_or(0, |inode| usize::try_from(inode.attr_extents()).unwrap_or(usize::MAX))
}

/// Bytes of the contents, if they lie in the inode and it is of this type.
fn local_size(object: &Object<'_>, mode: u16) -> usize {
    let inode = inode(object).filter(|_| has_format(object, format::LOCAL) && has_type(object, mode));
    inode.map_or(0, |inode| usize::try_from(inode.core.size.get()).unwrap_or(usize::MAX))
}

fn short_directory(object: &Object<'_>, ftype: bool) -> usize {
    let has_form = object.geometry.features.has_ftype() == ftype;
    usize::from(has_form && has_format(object, format::LOCAL) && has_type(object, S_IFDIR))
}

fn metadata_root(object: &Object<'_>, metatype: u16) -> usize {
    let is_root = has_format(object, format::META_BTREE);
    usize::from(is_root && inode(object).is_some_and(|inode| inode.core.metatype.get() == metatype))
}

/// The root of a btree at `start`; those of all kinds have the same header.
fn root<'a>(object: &Object<'a>, start: Bits) -> Option<&'a RawBmdrRoot> {
    object.structure(start)
}

fn records(object: &Object<'_>, start: Bits) -> usize {
    root(object, start).map_or(0, |root| usize::from(root.numrecs.get()))
}

fn leaf_records(object: &Object<'_>, start: Bits) -> usize {
    root(object, start).filter(|root| root.level.get() == 0).map_or(0, |_| records(object, start))
}

fn node_records(object: &Object<'_>, start: Bits) -> usize {
    root(object, start).filter(|root| root.level.get() > 0).map_or(0, |_| records(object, start))
}

/// Place of element `index` (from 1) of elements of `size` bytes that begin `before` bytes behind the root's header.
fn after_root(before: usize, index: usize, size: usize) -> Bits {
    (RawBmdrRoot::SIZE + before).saturating_add(index.saturating_sub(1).saturating_mul(size)).saturating_mul(8)
}

/// Place of pointer `index` of the root at `start`: behind the room for all the keys, of `keys` bytes each, that there
/// can be.
fn pointer(object: &Object<'_>, start: Bits, kind: BtreeKind, keys: usize, index: usize) -> Bits {
    let most = inode_root_max(kind, fork_bits(object, start, 0) / 8, false);
    let before = usize::try_from(most).unwrap_or(0) * keys;
    after_root(before, index, size_of::<Be64>())
}
