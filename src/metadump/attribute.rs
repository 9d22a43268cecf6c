//! Attributes: their names, values, and parent pointers.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::dump::Dumper;
use super::index::{self, IndexBlock};
use super::object::{Fork, Piece, is_metadata};
use super::order::Sink;
use super::stale;
use crate::error::{Check, Place, Result, Rule};
use crate::geometry::Daddr;
use crate::geometry::limits::BASIC_BLOCK;
use crate::ondisk::attr_leaf::{
    ATTR_LEAF_MAGIC, ATTR3_LEAF_MAGIC, AttrLeaf, AttrLeafValue, RawAttr3LeafHdr, RawAttrLeafEntry, RawAttrLeafHdr,
    RawAttrLeafMap, RawAttrLeafNameLocal, RawAttrLeafNameRemote, header_len, local_len, remote_len,
};
use crate::ondisk::attr_short::{ATTR_LOCAL, ATTR_PARENT, AttrShort, RawAttrSfEntry, RawAttrSfHdr};
use crate::ondisk::da_block::{DaNode, RawDa3Blkinfo, RawDaBlkinfo};
use crate::ondisk::name_hash::NameHash;
use crate::ondisk::parent::{RawParentRec, hash_parent};
use crate::ondisk::remote::{ATTR3_RMT_MAGIC, RawAttr3RmtHdr};
use crate::ondisk::{Be16, OnDisk, crc};

/// What values become.
const VALUE: u8 = b'v';
/// Bytes of the index of one fork that are kept in memory.
const MOST_BYTES: usize = 64 << 20;

/// The directory that a parent pointer names, if its value is one.
fn parent_of(flags: u8, value: &[u8]) -> Option<u64> {
    let (record, rest) = RawParentRec::prefix(value)?;
    (flags & ATTR_PARENT != 0 && rest.is_empty()).then(|| record.ino.get())
}

/// Replaces the name of an attribute, and its value; gives the hashes before and after.
fn obscure(dumper: &Dumper<'_>, fork: &Fork<'_>, flags: u8, name: &mut [u8], value: &mut [u8]) -> (u32, u32) {
    let ino = fork.ino.0;
    let Some(parent) = parent_of(flags, value) else {
        let before = NameHash::Bytes.hash(name);
        dumper.names.attribute(ino, name);
        value.fill(VALUE);
        return (before, NameHash::Bytes.hash(name));
    };
    let hash = dumper.names.hash();
    let before = hash_parent(hash, name, parent);
    if !dumper.keeps_name(parent, ino, name) {
        dumper.names.entry(parent, name);
    }
    (before, hash_parent(hash, name, parent))
}

/// Attributes that lie in their inode.
pub(super) fn clear_short(dumper: &Dumper<'_>, fork: &Fork<'_>, place: &Place, attr: &mut [u8]) {
    let hide = dumper.options.obscure && !is_metadata(dumper, fork.raw);
    let (mut entries, mut at, mut damaged) = (Vec::new(), 0, false);
    match AttrShort::decode(attr) {
        Ok(short) => {
            at = RawAttrSfHdr::SIZE;
            for entry in short.entries() {
                match entry {
                    Ok(entry) => {
                        let name = at + RawAttrSfEntry::SIZE;
                        entries.push((name, entry.name.len(), entry.value.len(), entry.flags));
                        at = name + entry.name.len() + entry.value.len();
                    }
                    Err(check) => {
                        damaged = true;
                        dumper.warn_check(check, place, "");
                    }
                }
            }
        }
        Err(check) => {
            damaged = true;
            dumper.warn_check(check, place, "");
        }
    }
    if hide {
        for (start, name, value, flags) in entries {
            let (name, value) = attr[start..start + name + value].split_at_mut(name);
            obscure(dumper, fork, flags, name, value);
        }
    }
    if damaged && hide || !damaged && dumper.options.zero_stale {
        stale::clear(&mut attr[at..]);
    }
}

/// Copies the blocks of an attribute fork: its index with the names, and the values that have blocks of their own.
pub(super) fn copy(
    dumper: &Dumper<'_>,
    sink: &mut Sink<'_>,
    fork: &Fork<'_>,
    place: &Place,
    pieces: &[Piece],
) -> Result<()> {
    let hide = dumper.options.obscure && !is_metadata(dumper, fork.raw);
    let work = AttrFork { dumper, fork, place, pieces, has_crc: dumper.geometry.features.has_crc() };
    let mut index = if hide { work.read_index()? } else { Vec::new() };
    if hide {
        work.obscure_index(&mut index);
        for block in &mut index {
            block.copy(sink)?;
        }
    }
    let held: HashSet<u64> = index.iter().map(|block| block.block).collect();
    drop(index);
    let sectors = u64::from(dumper.geometry.blocksize / BASIC_BLOCK);
    for piece in pieces {
        for step in 0..u64::from(piece.blocks) {
            if !held.contains(&(piece.start + step)) {
                work.copy_block(sink, Daddr(piece.daddr.0 + step * sectors), hide)?;
            }
        }
    }
    Ok(())
}

/// An attribute fork in blocks.
struct AttrFork<'a> {
    dumper: &'a Dumper<'a>,
    fork: &'a Fork<'a>,
    place: &'a Place,
    pieces: &'a [Piece],
    has_crc: bool,
}

/// An attribute on its way from one leaf to another.
struct Moved {
    hash: u32,
    flags: u8,
    bytes: Vec<u8>,
}

impl AttrFork<'_> {
    fn warn(&self, check: Check, detail: impl Into<String>) {
        self.dumper.warn_check(check, self.place, detail);
    }

    fn daddr(&self, block: u64) -> Option<Daddr> {
        let behind = self.pieces.partition_point(|piece| piece.start <= block);
        let piece = self.pieces.get(behind.checked_sub(1)?)?;
        // leaves of a damaged btree need not be in order
        let step = block.checked_sub(piece.start)?;
        let sectors = u64::from(self.dumper.geometry.blocksize / BASIC_BLOCK);
        (step < u64::from(piece.blocks)).then(|| Daddr(piece.daddr.0 + step * sectors))
    }

    /// The nodes and leaves that can be reached from the root.
    fn read_index(&self) -> Result<Vec<IndexBlock>> {
        let size = self.dumper.geometry.blocksize as usize;
        let (mut found, mut seen, mut next) = (Vec::new(), HashSet::new(), vec![0]);
        while let Some(at) = next.pop() {
            // by its place on the disk: extents that lie over each other show a block many times
            let Some(daddr) = self.daddr(at).filter(|daddr| seen.insert(daddr.0)) else { continue };
            if found.len() * size >= MOST_BYTES {
                self.warn(Check::new("attr_leaf", "block", Rule::Count), "more blocks of names than a fork can have");
                break;
            }
            let Some(block) = index::read(self.dumper, at, vec![(daddr, size)])? else { continue };
            if let Ok(node) = DaNode::decode(&block.bytes, self.has_crc) {
                next.extend(node.entries.iter().map(|entry| u64::from(entry.before.get())));
            } else if let Err(check) = AttrLeaf::decode(&block.bytes, self.has_crc)
                && !self.has_leaf_magic(&block.bytes)
            {
                self.warn(check, format!("block {at}"));
                continue;
            }
            found.push(block);
        }
        found.sort_by_key(|block: &IndexBlock| block.block);
        Ok(found)
    }

    fn has_leaf_magic(&self, bytes: &[u8]) -> bool {
        let magic = if self.has_crc { ATTR3_LEAF_MAGIC } else { ATTR_LEAF_MAGIC };
        RawDaBlkinfo::prefix(bytes).is_some_and(|(info, _)| info.magic.get() == magic)
    }

    fn obscure_index(&self, blocks: &mut [IndexBlock]) {
        let mut changed = false;
        for block in blocks.iter_mut() {
            if DaNode::decode(&block.bytes, self.has_crc).is_ok() {
                if self.dumper.options.zero_stale {
                    index::clear_unused(&mut block.bytes, self.has_crc);
                }
                continue;
            }
            changed |= self.obscure_leaf(&mut block.bytes);
        }
        if changed {
            self.sort_leaves(blocks);
        }
    }

    /// Replaces names and values of a leaf; whether a hash has changed.
    fn obscure_leaf(&self, bytes: &mut [u8]) -> bool {
        let places = match leaf_places(bytes, self.has_crc) {
            Ok(places) => places,
            Err(check) => {
                // what cannot be told apart from names and values must not be told
                self.warn(check, "");
                let header = header_len(self.has_crc).min(bytes.len());
                stale::clear(&mut bytes[header..]);
                return false;
            }
        };
        let mut changed = Vec::new();
        for (index, place) in places.iter().enumerate() {
            let (names, values) = bytes.split_at_mut(place.value.start);
            let value = &mut values[..place.value.len()];
            let name = &mut names[place.name.clone()];
            let (before, after) = obscure(self.dumper, self.fork, place.flags, name, value);
            if before != after && place.hash == before {
                changed.push((index, after));
            }
        }
        if self.dumper.options.zero_stale {
            clear_gaps(bytes, self.has_crc, &places);
        }
        let count = places.len();
        let entries = entries_mut(bytes, self.has_crc, count);
        for (index, hash) in &changed {
            if let Some(entry) = entries.get_mut(*index) {
                entry.hashval = (*hash).into();
            }
        }
        if !changed.is_empty() {
            entries.sort_by_key(|entry| entry.hashval.get());
        }
        !changed.is_empty()
    }

    /// Brings the leaves in order among each other, after each is in order by itself.
    fn sort_leaves(&self, blocks: &mut [IndexBlock]) {
        let (mut links, mut first) = (HashMap::new(), None);
        for (at, block) in blocks.iter().enumerate() {
            if let Ok(leaf) = AttrLeaf::decode(&block.bytes, self.has_crc) {
                links.insert(block.block, (at, u64::from(leaf.forw)));
                if leaf.back == 0 {
                    first = Some(block.block);
                }
            }
        }
        let chain = index::follow(first, &links);
        if chain.len() != links.len() {
            self.warn(Check::new("attr_leaf", "forw", Rule::Mismatch), "the index cannot be brought in order");
            return;
        }
        if !self.is_in_order(blocks, &chain) && self.distribute(blocks, &chain).is_none() {
            self.warn(Check::new("attr_leaf", "hashval", Rule::Order), "the new names do not fit the old blocks");
        }
        let mut lasts = HashMap::new();
        for &at in &chain {
            if let Ok(leaf) = AttrLeaf::decode(&blocks[at].bytes, self.has_crc)
                && let Some(last) = leaf.entries.last()
            {
                lasts.insert(blocks[at].block, last.hashval.get());
            }
        }
        index::update_nodes(blocks, lasts, self.has_crc);
    }

    fn is_in_order(&self, blocks: &[IndexBlock], chain: &[usize]) -> bool {
        let mut last = 0;
        chain.iter().filter_map(|&at| AttrLeaf::decode(&blocks[at].bytes, self.has_crc).ok()).all(|leaf| {
            let sorted = leaf.entries.first().is_none_or(|entry| entry.hashval.get() >= last);
            last = leaf.entries.last().map_or(last, |entry| entry.hashval.get());
            sorted
        })
    }

    /// Divides all attributes among the leaves anew, as evenly as they can be; `None` when they do not fit.
    fn distribute(&self, blocks: &mut [IndexBlock], chain: &[usize]) -> Option<()> {
        let mut all = Vec::new();
        for &at in chain {
            let bytes = &blocks[at].bytes;
            for place in leaf_places(bytes, self.has_crc).ok()? {
                let blob = bytes.get(place.all)?.to_vec();
                all.push(Moved { hash: place.hash, flags: place.flags, bytes: blob });
            }
        }
        all.sort_by_key(|moved| moved.hash);
        let size = |moved: &Moved| moved.bytes.len() + RawAttrLeafEntry::SIZE;
        let room = self.dumper.geometry.blocksize as usize - header_len(self.has_crc);
        let mut left: usize = all.iter().map(size).sum();
        let mut rest = &all[..];
        let mut leaves = Vec::new();
        for number in 0..chain.len() {
            let share = left.div_ceil(chain.len() - number);
            let (mut count, mut used) = (0, 0);
            while let Some(moved) = rest.get(count)
                && used + size(moved) <= room
                && (used < share || number + 1 == chain.len())
                && rest.len() - count >= chain.len() - number
            {
                used += size(moved);
                count += 1;
            }
            let (taken, after) = rest.split_at(count);
            leaves.push(taken);
            (rest, left) = (after, left - used);
        }
        if !rest.is_empty() || leaves.iter().any(|leaf| leaf.is_empty()) {
            return None;
        }
        for (&at, leaf) in chain.iter().zip(leaves) {
            put_leaf(&mut blocks[at].bytes, self.has_crc, leaf)?;
        }
        Some(())
    }

    /// Copies a block of the fork that is not in memory: one of a value, or any if names are not replaced.
    fn copy_block(&self, sink: &mut Sink<'_>, daddr: Daddr, hide: bool) -> Result<()> {
        let mut bytes = vec![0; self.dumper.geometry.blocksize as usize];
        if !self.dumper.read(daddr, &mut bytes)? {
            return Ok(());
        }
        let remote = self.has_crc.then(|| RawAttr3RmtHdr::prefix(&bytes)).flatten();
        let remote = remote.filter(|(head, _)| head.magic.get() == ATTR3_RMT_MAGIC).map(|(head, _)| *head);
        let offset = if remote.is_some() { RawAttr3RmtHdr::CRC_OFFSET } else { RawDa3Blkinfo::CRC_OFFSET };
        let sound = self.has_crc && crc::matches(&bytes, offset);
        let zero = self.dumper.options.zero_stale;
        match remote {
            Some(head) => {
                let start = RawAttr3RmtHdr::SIZE;
                let end = start.saturating_add(head.bytes.get() as usize).min(bytes.len());
                if hide {
                    bytes[start..].fill(VALUE);
                }
                if zero {
                    stale::clear(&mut bytes[end..]);
                }
            }
            None if hide => {
                // in version 4 values have no header; in version 5 this is nothing that belongs here
                let start = if sound { RawDa3Blkinfo::SIZE } else { 0 };
                bytes[start..].fill(VALUE);
            }
            None => match leaf_places(&bytes, self.has_crc) {
                Ok(places) => clear_gaps(&mut bytes, self.has_crc, &places),
                Err(_) => index::clear_unused(&mut bytes, self.has_crc),
            },
        }
        if sound {
            crc::stamp(&mut bytes, offset);
        }
        sink.append(daddr.0, &bytes)
    }
}

/// Where an attribute lies in its leaf.
struct LeafPlace {
    hash: u32,
    flags: u8,
    name: Range<usize>,
    /// The value, if it lies here.
    value: Range<usize>,
    /// Everything, with the padding.
    all: Range<usize>,
}

/// Where the attributes of a leaf lie, none over another.
fn leaf_places(bytes: &[u8], has_crc: bool) -> std::result::Result<Vec<LeafPlace>, Check> {
    let leaf = AttrLeaf::decode(bytes, has_crc)?;
    let mut places = Vec::with_capacity(leaf.entries.len());
    for entry in leaf.entries {
        let found = leaf.name(entry)?;
        let (start, namelen) = (usize::from(entry.nameidx.get()), found.name.len());
        let (head, value, len) = match found.value {
            AttrLeafValue::Local(value) => (RawAttrLeafNameLocal::SIZE, value.len(), local_len(namelen, value.len())),
            AttrLeafValue::Remote { .. } => (RawAttrLeafNameRemote::SIZE, 0, remote_len(namelen)),
        };
        let name = start + head..start + head + namelen;
        let value = name.end..name.end + value;
        let all = start..(start + len).min(bytes.len());
        places.push(LeafPlace { hash: entry.hashval.get(), flags: entry.flags, name, value, all });
    }
    let mut sorted: Vec<_> = places.iter().map(|place| (place.all.start, place.all.end)).collect();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return Err(Check::new("attr_leaf", "nameidx", Rule::Mismatch));
    }
    Ok(places)
}

/// Makes zero what of a leaf is neither header, entry, name nor value.
fn clear_gaps(bytes: &mut [u8], has_crc: bool, places: &[LeafPlace]) {
    let mut used: Vec<_> = places.iter().map(|place| (place.all.start, place.value.end, place.all.end)).collect();
    used.sort_unstable();
    let mut at = header_len(has_crc) + places.len() * RawAttrLeafEntry::SIZE;
    for (start, end, padded) in used.into_iter().chain([(bytes.len(), bytes.len(), bytes.len())]) {
        if let Some(gap) = bytes.get_mut(at..start) {
            stale::clear(gap);
        }
        if let Some(padding) = bytes.get_mut(end..padded) {
            stale::clear(padding);
        }
        at = padded;
    }
}

fn entries_mut(bytes: &mut [u8], has_crc: bool, count: usize) -> &mut [RawAttrLeafEntry] {
    use zerocopy::FromBytes;
    let rest = bytes.get_mut(header_len(has_crc)..).unwrap_or(&mut []);
    <[RawAttrLeafEntry]>::mut_from_prefix_with_elems(rest, count).map_or(&mut [], |(entries, _)| entries)
}

/// Fills a leaf with attributes; its links and identity stay.
fn put_leaf(bytes: &mut [u8], has_crc: bool, attributes: &[Moved]) -> Option<()> {
    let header = header_len(has_crc);
    let mut at = bytes.len();
    let mut entries = Vec::with_capacity(attributes.len());
    stale::clear(bytes.get_mut(header..)?);
    for moved in attributes {
        at = at.checked_sub(moved.bytes.len())?;
        bytes.get_mut(at..at + moved.bytes.len())?.copy_from_slice(&moved.bytes);
        let nameidx = u16::try_from(at).ok()?.into();
        entries.push(RawAttrLeafEntry { hashval: moved.hash.into(), nameidx, flags: moved.flags, pad2: 0 });
    }
    entries_mut(bytes, has_crc, entries.len()).copy_from_slice(&entries);
    let base = header + entries.len() * RawAttrLeafEntry::SIZE;
    let small = |value: usize| u16::try_from(value).ok().map(Be16::new);
    let none = RawAttrLeafMap { base: 0.into(), size: 0.into() };
    let free = RawAttrLeafMap { base: small(base)?, size: small(at.checked_sub(base)?)? };
    let (count, usedbytes, firstused) = (small(entries.len())?, small(bytes.len() - at)?, small(at)?);
    if has_crc {
        let (head, _) = RawAttr3LeafHdr::prefix_mut(bytes)?;
        (head.count, head.usedbytes, head.firstused, head.holes) = (count, usedbytes, firstused, 0);
        head.freemap = [free, none, none];
    } else {
        let (head, _) = RawAttrLeafHdr::prefix_mut(bytes)?;
        (head.count, head.usedbytes, head.firstused, head.holes) = (count, usedbytes, firstused, 0);
        head.freemap = [free, none, none];
    }
    Some(())
}

/// The flag without which a value has blocks of its own.
const _: () = assert!(ATTR_LOCAL == 1);
