//! Directories.

use std::collections::{HashMap, HashSet};

use super::dump::Dumper;
use super::index::{self, IndexBlock};
use super::object::{Fork, Piece, is_metadata};
use super::order::Sink;
use super::stale;
use crate::error::{Check, Place, Result, Rule};
use crate::geometry::limits::BASIC_BLOCK;
use crate::geometry::{Daddr, Geometry};
use crate::ondisk::da_block::RawDaBlkinfo;
use crate::ondisk::dir_data::{
    DataKind, DirData, DirDataItem, RawDir3BlkHdr, RawDirBlockTail, RawDirDataEntry, RawDirDataUnused, entry_len,
};
use crate::ondisk::dir_leaf::{DirFree, NULL_DATAPTR, RawDir2FreeHdr, RawDir3FreeHdr, RawDirLeafEntry};
use crate::ondisk::dir_short::{DirShort, RawDirSfEntry};
use crate::ondisk::{OnDisk, crc};

/// Bytes of the tag at the end of entries and unused ranges.
const TAG: usize = size_of::<u16>();

/// A directory that lies in its inode.
pub(super) fn clear_short(dumper: &Dumper<'_>, fork: &Fork<'_>, place: &Place, data: &mut [u8]) {
    let obscure = dumper.options.obscure && !is_metadata(dumper, fork.raw);
    let size = usize::try_from(fork.raw.core.size.get()).unwrap_or(usize::MAX);
    if size > data.len() {
        dumper.warn_check(Check::new("dinode", "size", Rule::Range), place, size.to_string());
    }
    let end = size.min(data.len());
    let (mut names, mut at, mut damaged) = (Vec::new(), 0, false);
    match DirShort::decode(&data[..end], dumper.geometry.features.has_ftype()) {
        Ok(directory) => {
            let mut entries = directory.entries();
            at = end - entries.rest().len();
            while let Some(entry) = entries.next() {
                match entry {
                    Ok(entry) => names.push((at + RawDirSfEntry::SIZE, entry.name.len(), entry.inumber)),
                    Err(check) => {
                        damaged = true;
                        dumper.warn_check(check, place, "");
                        break;
                    }
                }
                at = end - entries.rest().len();
            }
        }
        Err(check) => {
            damaged = true;
            dumper.warn_check(check, place, "");
        }
    }
    if obscure {
        for (start, len, child) in names {
            let name = &mut data[start..start + len];
            if !dumper.keeps_name(fork.ino.0, child, name) {
                dumper.names.entry(fork.ino.0, name);
            }
        }
    }
    // what cannot be told apart from names must not be told; else only what lies behind them
    if damaged && obscure || !damaged && dumper.options.zero_stale {
        stale::clear(&mut data[at..]);
    }
}

/// A block of a directory, in the fragments that it consists of.
type Fragments = Vec<(Daddr, usize)>;

/// The directory blocks of a fork, one by one: first filesystem block of the file, and where they lie. What is no whole
/// block has fewer bytes.
struct DirectoryBlocks<'a> {
    geometry: &'a Geometry,
    pieces: std::slice::Iter<'a, Piece>,
    rest: Option<Piece>,
}

impl<'a> DirectoryBlocks<'a> {
    fn new(geometry: &'a Geometry, pieces: &'a [Piece]) -> Self {
        DirectoryBlocks { geometry, pieces: pieces.iter(), rest: None }
    }

    /// What comes next, up to the end of a directory block or of a piece, if it is for `wanted` to take.
    fn chunk(&mut self, wanted: impl FnOnce(u64) -> bool) -> Option<(u64, (Daddr, usize))> {
        let piece = self.rest.take().or_else(|| self.pieces.next().copied())?;
        if !wanted(piece.start) {
            self.rest = Some(piece);
            return None;
        }
        let geometry = self.geometry;
        let to_end = geometry.directory.fsbcount - u32::try_from(piece.start % self.per_block()).unwrap_or(0);
        let count = to_end.min(piece.blocks);
        let sectors = u64::from(count) * u64::from(geometry.blocksize / BASIC_BLOCK);
        self.rest = (count < piece.blocks).then(|| Piece {
            start: piece.start + u64::from(count),
            daddr: Daddr(piece.daddr.0 + sectors),
            blocks: piece.blocks - count,
        });
        Some((piece.start, (piece.daddr, count as usize * geometry.blocksize as usize)))
    }

    fn per_block(&self) -> u64 {
        u64::from(self.geometry.directory.fsbcount)
    }
}

impl Iterator for DirectoryBlocks<'_> {
    type Item = (u64, Fragments);

    fn next(&mut self) -> Option<Self::Item> {
        let (start, first) = self.chunk(|_| true)?;
        let whole = self.geometry.directory.blksize as usize;
        let (mut have, mut fragments) = (first.1, vec![first]);
        while start % self.per_block() == 0 && have < whole {
            let behind = start + (have / self.geometry.blocksize as usize) as u64;
            let Some((_, fragment)) = self.chunk(|at| at == behind) else { break };
            have += fragment.1;
            fragments.push(fragment);
        }
        Some((start, fragments))
    }
}

/// Copies a directory, block by block; its index comes last, since the names decide what it says.
pub(super) fn copy(
    dumper: &Dumper<'_>,
    sink: &mut Sink<'_>,
    fork: &Fork<'_>,
    place: &Place,
    pieces: &[Piece],
) -> Result<()> {
    let geometry = dumper.geometry;
    let has_crc = geometry.features.has_crc();
    let obscure = dumper.options.obscure && !is_metadata(dumper, fork.raw);
    let mut names = Names { dumper, fork, place, obscure, changed: HashMap::new() };
    // blocks that extents lie over twice count once, so that memory is bounded by what there is
    let (mut held, mut seen): (Vec<IndexBlock>, _) = (Vec::new(), HashSet::new());
    for (at, fragments) in DirectoryBlocks::new(geometry, pieces) {
        let Some(mut block) = index::read(dumper, at, fragments)? else { continue };
        let whole = block.bytes.len() == geometry.directory.blksize as usize;
        if !whole {
            dumper.warn_check(Check::new("bmbt_rec", "blockcount", Rule::Truncated), place, format!("block {at}"));
            if obscure {
                stale::clear(&mut block.bytes);
            }
            block.copy(sink)?;
        } else if at >= geometry.directory.free_start.0 {
            names.copy_free(sink, &mut block)?;
        } else if at >= geometry.directory.leaf_start.0 {
            if let Err(check) = index::check_directory(&block.bytes, has_crc) {
                names.damaged(check, &mut block, RawDaBlkinfo::SIZE);
                block.copy(sink)?;
                continue;
            }
            if dumper.options.zero_stale {
                index::clear_unused(&mut block.bytes, has_crc);
            }
            if !obscure {
                block.copy(sink)?;
            } else if seen.insert(block.fragments.first().map(|fragment| fragment.0)) {
                held.push(block);
            }
        } else {
            names.copy_data(sink, &mut block)?;
        }
    }
    if obscure {
        index::rehash_directory(&mut held, &names.changed, has_crc);
        for block in &mut held {
            block.copy(sink)?;
        }
    }
    Ok(())
}

/// The names of a directory.
struct Names<'a> {
    dumper: &'a Dumper<'a>,
    fork: &'a Fork<'a>,
    place: &'a Place,
    obscure: bool,
    /// The new hash of each entry that has another one now, by its address.
    changed: HashMap<u32, u32>,
}

/// What is to be done with a part of a data block.
enum Part {
    Unused { start: usize, end: usize },
    Entry { start: usize, name: usize, end: usize, child: u64 },
}

impl Names<'_> {
    /// Blocks that have their CRC in the other place: data and free index.
    fn copy_stamped(&self, sink: &mut Sink<'_>, block: &mut IndexBlock, sound: bool) -> Result<()> {
        if sound {
            crc::stamp(&mut block.bytes, RawDir3BlkHdr::CRC_OFFSET);
        }
        block.copy(sink)
    }

    fn is_sound(&self, block: &IndexBlock) -> bool {
        self.dumper.geometry.features.has_crc() && crc::matches(&block.bytes, RawDir3BlkHdr::CRC_OFFSET)
    }

    fn copy_free(&self, sink: &mut Sink<'_>, block: &mut IndexBlock) -> Result<()> {
        let (sound, has_crc) = (self.is_sound(block), self.dumper.geometry.features.has_crc());
        match DirFree::decode(&block.bytes, has_crc) {
            Ok(free) => {
                let header = if has_crc { RawDir3FreeHdr::SIZE } else { RawDir2FreeHdr::SIZE };
                let used = header + free.bests.len() * index::BEST;
                if self.dumper.options.zero_stale {
                    stale::clear(&mut block.bytes[used..]);
                }
            }
            Err(check) => self.damaged(check, block, 0),
        }
        self.copy_stamped(sink, block, sound)
    }

    /// Tells of damage. What lies behind it may be names: without them, the block has to go without its contents.
    fn damaged(&self, check: Check, block: &mut IndexBlock, from: usize) {
        let daddr = block.fragments.first().map(|fragment| fragment.0.0);
        self.dumper.warn_check(check, &Place { daddr, ..self.place.clone() }, "");
        if self.obscure {
            stale::clear(&mut block.bytes[from..]);
        }
    }

    fn copy_data(&mut self, sink: &mut Sink<'_>, block: &mut IndexBlock) -> Result<()> {
        let features = &self.dumper.geometry.features;
        let (has_crc, ftype, sound) = (features.has_crc(), features.has_ftype(), self.is_sound(block));
        let (mut parts, mut end, mut problem) = (Vec::new(), 0, None);
        let mut leaf = None;
        match DirData::decode(&block.bytes, has_crc, ftype) {
            Ok(data) => {
                end = crate::ondisk::dir_data::header_len(has_crc);
                if data.kind == DataKind::Block {
                    let start = block.bytes.len() - RawDirBlockTail::SIZE - size_of_val(data.leaf);
                    leaf = Some((start, data.leaf.len()));
                }
                for item in data.items() {
                    let part = match item {
                        Ok(DirDataItem::Unused { offset, length, .. }) => {
                            let start = usize::from(offset);
                            Part::Unused { start, end: start + usize::from(length) }
                        }
                        Ok(DirDataItem::Entry(entry)) => {
                            let (start, name) = (usize::from(entry.offset), entry.name.len());
                            Part::Entry { start, name, end: start + entry_len(name, ftype), child: entry.inumber }
                        }
                        Err(check) => {
                            problem = Some(check);
                            break;
                        }
                    };
                    end = match part {
                        Part::Unused { end, .. } | Part::Entry { end, .. } => end,
                    };
                    parts.push(part);
                }
            }
            Err(check) => problem = Some(check),
        }
        for part in parts {
            self.clear_part(block, &part, usize::from(ftype));
        }
        if let Some(check) = problem {
            // a header that is none is not worth keeping either
            self.damaged(check, block, end);
        } else if let Some((start, count)) = leaf.filter(|_| self.obscure) {
            self.sort_leaf(block, start, count);
        }
        self.copy_stamped(sink, block, sound)
    }

    fn clear_part(&mut self, block: &mut IndexBlock, part: &Part, ftype: usize) {
        match *part {
            Part::Unused { start, end } => {
                if self.dumper.options.zero_stale {
                    stale::clear(&mut block.bytes[start + RawDirDataUnused::SIZE..end - TAG]);
                }
            }
            Part::Entry { start, name: len, end, child } => {
                let at = start + RawDirDataEntry::SIZE;
                if self.dumper.options.zero_stale {
                    stale::clear(&mut block.bytes[at + len + ftype..end - TAG]);
                }
                let name = &mut block.bytes[at..at + len];
                if !self.obscure || self.dumper.keeps_name(self.fork.ino.0, child, name) {
                    return;
                }
                let hash = self.dumper.names.hash();
                let before = hash.hash(name);
                self.dumper.names.entry(self.fork.ino.0, name);
                let after = hash.hash(name);
                if before != after {
                    let offset = (block.block << self.dumper.geometry.blocklog) + start as u64;
                    if let Ok(address) = u32::try_from(offset / crate::ondisk::dir_data::DATA_ALIGN as u64) {
                        self.changed.insert(address, after);
                    }
                }
            }
        }
    }

    /// Brings the index at the end of a directory of one block in order.
    fn sort_leaf(&self, block: &mut IndexBlock, start: usize, count: usize) {
        use zerocopy::FromBytes;
        let rest = &mut block.bytes[start..];
        let Ok((entries, _)) = <[RawDirLeafEntry]>::mut_from_prefix_with_elems(rest, count) else { return };
        for entry in entries.iter_mut() {
            if let Some(hash) = self.changed.get(&entry.address.get()) {
                entry.hashval = (*hash).into();
            }
        }
        // entries that are gone stand last, with a hash that says nothing
        let is_gone = |entry: &RawDirLeafEntry| entry.address.get() == NULL_DATAPTR;
        entries.sort_by_key(|entry| (is_gone(entry), entry.hashval.get()));
        let mut last = 0.into();
        for entry in entries {
            if is_gone(entry) {
                entry.hashval = last;
            }
            last = entry.hashval;
        }
    }
}
