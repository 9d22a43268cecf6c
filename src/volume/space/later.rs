//! Changes of space that are put off to the transactions that follow (Linux `xfs_free_extent_later`,
//! `xfs_rmap_map_extent` and its like, `xfs_refcount_increase_extent` and its like).

use super::owner::RmapOwner;
use crate::forms::ForkKind;
use crate::geometry::{FsBlock, Ino};
use crate::ondisk::Extent;
use crate::ondisk::log_intent::{MapExtent, PhysExtent, refcount, rmap};
use crate::transaction::{Deferred, FreedExtent, Transaction};

/// Frees blocks, for anybody to use. `owner` says what their reverse mapping is, [`RmapOwner::SKIP`] that it is not to be touched.
pub fn free_later(tx: &mut Transaction<'_>, start: FsBlock, len: u32, owner: &RmapOwner) {
    free_to(tx, start, len, owner, false);
}

/// Frees blocks; with `held` the group takes them back for its reference count or free inode btree.
pub(super) fn free_to(tx: &mut Transaction<'_>, start: FsBlock, len: u32, owner: &RmapOwner, held: bool) {
    tx.defer(Deferred::Free(FreedExtent {
        start,
        len,
        owner: (!owner.is_skip()).then_some(owner.owner),
        offset: owner.offset,
        attr_fork: owner.attr_fork,
        bmbt_block: owner.bmbt_block,
        held,
    }));
}

/// Whose reverse mappings change: a fork of a file that is shared (`reflink` is set in the inode) or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingOwner {
    /// The file.
    pub ino: Ino,
    /// Its fork.
    pub fork: ForkKind,
    /// Its blocks may be shared with other files.
    pub shared: bool,
}

fn map_later(tx: &mut Transaction<'_>, owner: &MappingOwner, extent: &Extent, plain: u32, shared: u32) {
    if !tx.store().geometry().features.has_rmapbt() {
        return;
    }
    let mut flags = if owner.shared && owner.fork != ForkKind::Attr { shared } else { plain };
    if owner.fork == ForkKind::Attr {
        flags |= rmap::ATTR_FORK;
    }
    if extent.unwritten {
        flags |= rmap::UNWRITTEN;
    }
    tx.defer(Deferred::Rmap(MapExtent {
        owner: owner.ino.0,
        startblock: extent.startblock,
        startoff: extent.startoff,
        len: extent.blockcount,
        flags,
    }));
}

/// A file has got these blocks; nothing without reverse mappings.
pub fn rmap_map(tx: &mut Transaction<'_>, owner: &MappingOwner, extent: &Extent) {
    map_later(tx, owner, extent, rmap::MAP, rmap::MAP_SHARED);
}

/// A file has lost these blocks; nothing without reverse mappings.
pub fn rmap_unmap(tx: &mut Transaction<'_>, owner: &MappingOwner, extent: &Extent) {
    map_later(tx, owner, extent, rmap::UNMAP, rmap::UNMAP_SHARED);
}

/// Blocks of a file were unwritten and are written now, or the reverse; `extent` says what they are now. Nothing without
/// reverse mappings.
pub fn rmap_convert(tx: &mut Transaction<'_>, owner: &MappingOwner, extent: &Extent) {
    map_later(tx, owner, extent, rmap::CONVERT, rmap::CONVERT_SHARED);
}

fn special_later(tx: &mut Transaction<'_>, start: FsBlock, len: u32, owner: u64, flags: u32) {
    if tx.store().geometry().features.has_rmapbt() {
        tx.defer(Deferred::Rmap(MapExtent { owner, startblock: start.0, startoff: 0, len, flags }));
    }
}

/// Blocks have got an owner that is no file; nothing without reverse mappings.
pub fn rmap_alloc(tx: &mut Transaction<'_>, start: FsBlock, len: u32, owner: u64) {
    special_later(tx, start, len, owner, rmap::ALLOC);
}

/// An owner that is no file has lost blocks; nothing without reverse mappings.
pub fn rmap_free(tx: &mut Transaction<'_>, start: FsBlock, len: u32, owner: u64) {
    special_later(tx, start, len, owner, rmap::FREE);
}

fn count_later(tx: &mut Transaction<'_>, start: FsBlock, len: u32, flags: u32) {
    if tx.store().geometry().features.has_reflink() {
        tx.defer(Deferred::Refcount(PhysExtent { startblock: start.0, len, flags }));
    }
}

/// One file more has these blocks; nothing without reference counts.
pub fn refcount_increase(tx: &mut Transaction<'_>, start: FsBlock, len: u32) {
    count_later(tx, start, len, refcount::INCREASE);
}

/// One file less has these blocks: those that nobody has any more are freed. Nothing without reference counts.
pub fn refcount_decrease(tx: &mut Transaction<'_>, start: FsBlock, len: u32) {
    count_later(tx, start, len, refcount::DECREASE);
}

/// Blocks that were just allocated are held for copy on write; nothing without reference counts.
pub fn cow_alloc(tx: &mut Transaction<'_>, start: FsBlock, len: u32) {
    if tx.store().geometry().features.has_reflink() {
        count_later(tx, start, len, refcount::ALLOC_COW);
        rmap_alloc(tx, start, len, crate::ondisk::rmap_record::owner::COW);
    }
}

/// Blocks are no longer held for copy on write: the caller frees or maps them. Nothing without reference counts.
pub fn cow_free(tx: &mut Transaction<'_>, start: FsBlock, len: u32) {
    if tx.store().geometry().features.has_reflink() {
        rmap_free(tx, start, len, crate::ondisk::rmap_record::owner::COW);
        count_later(tx, start, len, refcount::FREE_COW);
    }
}
