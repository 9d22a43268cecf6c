//! The extents of a fork, and what they hold.

use super::dump::Dumper;
use super::order::{Added, Sink};
use super::tree::{TreeWalk, be_number};
use super::{attribute, directory, stale, symlink};
use crate::btree::Layout;
use crate::error::{Check, Place, Result, Rule};
use crate::forms::FileType;
use crate::geometry::limits::BASIC_BLOCK;
use crate::geometry::{BtreeKind, Daddr, FsBlock, Ino};
use crate::ondisk::dinode::{
    MAX_EXTCNT_ATTR_LARGE, MAX_EXTCNT_ATTR_SMALL, MAX_EXTCNT_DATA_LARGE, MAX_EXTCNT_DATA_SMALL, format, metatype,
};
use crate::ondisk::metadump::MetaDevice;
use crate::ondisk::{Extent, OnDisk, RawBmdrRoot, RawDinode, RawExtent};

/// What is copied at once from an extent, in bytes.
const PIECE: u64 = 1 << 18;

/// A fork of an inode.
pub(super) struct Fork<'a> {
    pub(super) ino: Ino,
    pub(super) raw: &'a RawDinode,
    /// How it is stored.
    pub(super) format: u8,
    /// How many extents the inode says that it has.
    pub(super) extents: u64,
    pub(super) is_attr: bool,
}

/// What the blocks of a fork hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Object {
    /// Entries of a directory, and their index.
    Directory,
    /// The target of a symbolic link.
    Symlink,
    /// Attributes.
    Attributes,
    /// A file whose contents are metadata.
    Metadata,
    /// A file whose contents are nobody's business; only its extents are metadata.
    Contents,
}

/// An extent in blocks of the data device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// First block of the fork.
    pub(super) start: u64,
    /// Where it lies.
    pub(super) daddr: Daddr,
    /// How many blocks.
    pub(super) blocks: u32,
}

/// What the blocks of a data fork hold.
pub(super) fn object_of(dumper: &Dumper<'_>, fork: &Fork<'_>) -> Object {
    match FileType::from_mode(fork.raw.core.mode.get()) {
        Some(FileType::Directory) => Object::Directory,
        Some(FileType::Symlink) => Object::Symlink,
        _ if is_metadata(dumper, fork.raw) || is_special(dumper, fork.ino) => Object::Metadata,
        _ => Object::Contents,
    }
}

/// Whether an inode is in the metadata directory.
pub(super) fn is_metadata(dumper: &Dumper<'_>, raw: &RawDinode) -> bool {
    dumper.geometry.features.has_metadir() && raw.is_metadata()
}

/// Whether the superblock names the inode.
fn is_special(dumper: &Dumper<'_>, ino: Ino) -> bool {
    let geometry = dumper.geometry;
    let (realtime, quota) = (&geometry.realtime, &geometry.quota);
    [realtime.bitmap_ino, realtime.summary_ino, quota.user, quota.group, quota.project].contains(&Some(ino))
}

/// Copies the blocks of a fork, and its btree; `bytes` is what of it lies in the inode.
pub(super) fn copy_fork(
    dumper: &Dumper<'_>,
    sink: &mut Sink<'_>,
    fork: &Fork<'_>,
    object: Object,
    bytes: &mut [u8],
) -> Result<()> {
    let place = Place { inode: Some(fork.ino.0), ..Place::default() };
    let mut found = Pieces { dumper, place: &place, object, pieces: Vec::new(), end: 0, stopped: false };
    match fork.format {
        format::EXTENTS => list_extents(dumper, fork, bytes, &mut found),
        format::BTREE => copy_extent_tree(dumper, sink, fork, bytes, &mut found)?,
        format::META_BTREE => copy_meta_tree(dumper, sink, fork, &place, bytes)?,
        _ => {}
    }
    let pieces = found.pieces;
    match object {
        Object::Contents => Ok(()),
        Object::Directory if !dumper.is_plain() => directory::copy(dumper, sink, fork, &place, &pieces),
        Object::Symlink if !dumper.is_plain() => symlink::copy(dumper, sink, fork, &place, &pieces),
        Object::Attributes if !dumper.is_plain() => attribute::copy(dumper, sink, fork, &place, &pieces),
        _ => copy_pieces(dumper, sink, &pieces),
    }
}

/// Extents as they are found.
struct Pieces<'a> {
    dumper: &'a Dumper<'a>,
    place: &'a Place,
    object: Object,
    pieces: Vec<Piece>,
    end: u64,
    /// Behind an extent that cannot be, none is believed.
    stopped: bool,
}

impl Pieces<'_> {
    /// A new list of extents begins.
    fn restart(&mut self) {
        (self.end, self.stopped) = (0, false);
    }

    fn add(&mut self, extent: Extent) {
        if self.object == Object::Contents || self.stopped {
            return;
        }
        let problem = match self.piece_of(&extent) {
            Ok(piece) => {
                self.end = extent.startoff + u64::from(extent.blockcount);
                return self.pieces.push(piece);
            }
            Err(problem) => problem,
        };
        self.stopped = true;
        let check = Check::new("bmbt_rec", problem.0, problem.1);
        self.dumper.warn_check(check, self.place, format!("{extent:?}"));
    }

    fn piece_of(&self, extent: &Extent) -> std::result::Result<Piece, (&'static str, Rule)> {
        let geometry = self.dumper.geometry;
        if extent.startoff < self.end {
            return Err(("startoff", Rule::Order));
        }
        if extent.blockcount == 0 || extent.blockcount > self.dumper.options.max_extent {
            return Err(("blockcount", Rule::Range));
        }
        let last = FsBlock(extent.startblock + u64::from(extent.blockcount) - 1);
        let parts = geometry.fsb_parts(FsBlock(extent.startblock)).zip(geometry.fsb_parts(last));
        let inside = parts.is_some_and(|(first, last)| first.0 == last.0 && first.1.0 > 0);
        let daddr = geometry.fsb_daddr(FsBlock(extent.startblock)).filter(|_| inside);
        let daddr = daddr.ok_or(("startblock", Rule::Range))?;
        Ok(Piece { start: extent.startoff, daddr, blocks: extent.blockcount })
    }
}

fn list_extents(dumper: &Dumper<'_>, fork: &Fork<'_>, bytes: &mut [u8], found: &mut Pieces<'_>) {
    let most = match (fork.raw.has_large_counters(), fork.is_attr) {
        (true, true) => MAX_EXTCNT_ATTR_LARGE,
        (true, false) => MAX_EXTCNT_DATA_LARGE,
        (false, true) => MAX_EXTCNT_ATTR_SMALL,
        (false, false) => MAX_EXTCNT_DATA_SMALL,
    };
    let count = usize::try_from(fork.extents.min(most + 1)).unwrap_or(usize::MAX);
    let list = if fork.extents <= most { RawExtent::prefix_slice(bytes, count) } else { None };
    let Some((list, _)) = list else {
        let check = Check::new("dinode", "nextents", Rule::Count);
        return dumper.warn_check(check, found.place, fork.extents.to_string());
    };
    list.iter().for_each(|raw| found.add(raw.decode()));
    if dumper.options.zero_stale {
        stale::clear(&mut bytes[count * RawExtent::SIZE..]);
    }
}

fn copy_extent_tree(
    dumper: &Dumper<'_>,
    sink: &mut Sink<'_>,
    fork: &Fork<'_>,
    bytes: &mut [u8],
    found: &mut Pieces<'_>,
) -> Result<()> {
    let most = if fork.is_attr {
        dumper.geometry.btrees.attr_bmbt_max_levels
    } else {
        dumper.geometry.btree(BtreeKind::Bmbt).max_levels
    };
    let Some((level, pointers)) = root_of(dumper, BtreeKind::Bmbt, most, found.place, bytes) else { return Ok(()) };
    let place = found.place.clone();
    let mut walk = TreeWalk::new(dumper, BtreeKind::Bmbt, None, place);
    for pointer in pointers {
        walk.copy(sink, pointer, level, &mut |index, record| {
            // each leaf is a list of its own
            if index == 0 {
                found.restart();
            }
            if let Some((raw, _)) = RawExtent::prefix(record) {
                found.add(raw.decode());
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The level of a root in an inode and its children; what is not in use becomes zero. `None` when nothing hangs there.
fn root_of(
    dumper: &Dumper<'_>,
    kind: BtreeKind,
    most: u32,
    place: &Place,
    bytes: &mut [u8],
) -> Option<(u32, Vec<u64>)> {
    let layout = Layout::of_block(dumper.geometry, kind).in_inode(bytes.len());
    let (root, _) = RawBmdrRoot::prefix(bytes)?;
    let (level, count) = (u32::from(root.level.get()), usize::from(root.numrecs.get()));
    if level > most || count > layout.most(level) {
        let check = Check::new(kind.name(), "root", Rule::Range);
        dumper.warn_check(check, place, format!("level {level}, {count} entries"));
        return None;
    }
    if dumper.options.zero_stale {
        stale::clear_btree_entries(bytes, &layout, level, count);
    }
    if level == 0 {
        return None;
    }
    let pointer = |index| be_number(bytes.get(layout.pointer(index)).unwrap_or(&[]));
    Some((level, (0..count).map(pointer).collect()))
}

/// Copies the btree of a realtime group.
fn copy_meta_tree(
    dumper: &Dumper<'_>,
    sink: &mut Sink<'_>,
    fork: &Fork<'_>,
    place: &Place,
    bytes: &mut [u8],
) -> Result<()> {
    let kind = match fork.raw.core.metatype.get() {
        metatype::RTRMAP => BtreeKind::Rtrmapbt,
        metatype::RTREFCOUNT => BtreeKind::Rtrefcountbt,
        _ => return Ok(()),
    };
    let most = dumper.geometry.btree(kind).max_levels;
    let Some((level, pointers)) = root_of(dumper, kind, most, place, bytes) else { return Ok(()) };
    let mut walk = TreeWalk::new(dumper, kind, None, place.clone());
    for pointer in pointers {
        walk.copy(sink, pointer, level, &mut |_, _| Ok(()))?;
    }
    Ok(())
}

/// Copies blocks as they are; those that cannot be read are left out one by one.
pub(super) fn copy_pieces(dumper: &Dumper<'_>, sink: &mut Sink<'_>, pieces: &[Piece]) -> Result<()> {
    let block = u64::from(dumper.geometry.blocksize);
    for piece in pieces {
        let (mut daddr, mut left) = (piece.daddr.0, u64::from(piece.blocks) * block);
        while left > 0 {
            let len = left.min(PIECE.max(block));
            copy_run(dumper, sink, daddr, len, block)?;
            daddr += len / u64::from(BASIC_BLOCK);
            left -= len;
        }
    }
    Ok(())
}

fn copy_run(dumper: &Dumper<'_>, sink: &mut Sink<'_>, daddr: u64, len: u64, block: u64) -> Result<()> {
    let bytes = |len: u64| usize::try_from(len).unwrap_or(0);
    let Added::Unreadable(error) = sink.copy(dumper.data, 0, MetaDevice::Data, daddr, bytes(len))? else {
        return Ok(());
    };
    if len <= block {
        return dumper.unreadable(error);
    }
    for at in (0..len / block).map(|index| daddr + index * block / u64::from(BASIC_BLOCK)) {
        if let Added::Unreadable(error) = sink.copy(dumper.data, 0, MetaDevice::Data, at, bytes(block))? {
            dumper.unreadable(error)?;
        }
    }
    Ok(())
}
