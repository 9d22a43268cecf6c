//! The hash index of directories and attributes, when the hashes of some names have changed.

use std::collections::{HashMap, HashSet};

use super::dump::Dumper;
use super::order::Sink;
use super::stale;
use crate::error::{Check, Result, Rule};
use crate::geometry::Daddr;
use crate::geometry::limits::BASIC_BLOCK;
use crate::ondisk::da_block::{DA_NODE_MAXDEPTH, DaNode, RawDa3Blkinfo, RawDa3NodeHdr, RawDaNodeEntry, RawDaNodeHdr};
use crate::ondisk::dir_leaf::{
    DirLeaf, LeafKind, NULL_DATAPTR, RawDir2LeafHdr, RawDir3LeafHdr, RawDirLeafEntry, RawDirLeafTail,
};
use crate::ondisk::{Be16, OnDisk, crc};

/// A block of the index in memory.
pub(super) struct IndexBlock {
    /// First filesystem block of the file.
    pub(super) block: u64,
    /// Where it lies, with lengths in bytes.
    pub(super) fragments: Vec<(Daddr, usize)>,
    /// Its contents.
    pub(super) bytes: Vec<u8>,
    /// Its CRC was right.
    sound: bool,
}

impl IndexBlock {
    pub(super) fn new(block: u64, fragments: Vec<(Daddr, usize)>, bytes: Vec<u8>, has_crc: bool) -> Self {
        let sound = has_crc && crc::matches(&bytes, RawDa3Blkinfo::CRC_OFFSET);
        IndexBlock { block, fragments, bytes, sound }
    }

    /// Puts the CRC right, if it was, and copies the block.
    pub(super) fn copy(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        if self.sound {
            crc::stamp(&mut self.bytes, RawDa3Blkinfo::CRC_OFFSET);
        }
        let mut rest = &self.bytes[..];
        for (daddr, len) in &self.fragments {
            let (part, after) = rest.split_at((*len).min(rest.len()));
            sink.append(daddr.0, part)?;
            rest = after;
        }
        debug_assert!(rest.len() % BASIC_BLOCK as usize == 0);
        Ok(())
    }
}

fn entries_mut<T: OnDisk>(bytes: &mut [u8], start: usize, count: usize) -> &mut [T] {
    let rest = bytes.get_mut(start..).unwrap_or(&mut []);
    <[T]>::mut_from_prefix_with_elems(rest, count).map_or(&mut [], |(entries, _)| entries)
}

use zerocopy::FromBytes;

/// Bytes before the entries of a directory leaf.
const fn leaf_header(crc: bool) -> usize {
    if crc { RawDir3LeafHdr::SIZE } else { RawDir2LeafHdr::SIZE }
}

const fn node_header(crc: bool) -> usize {
    if crc { RawDa3NodeHdr::SIZE } else { RawDaNodeHdr::SIZE }
}

/// Whether `bytes` are a leaf or node of a directory's index.
pub(super) fn check_directory(bytes: &[u8], crc: bool) -> std::result::Result<(), Check> {
    match DirLeaf::decode(bytes, crc) {
        Ok(_) => Ok(()),
        Err(check) if check.rule == Rule::Magic => DaNode::decode(bytes, crc).map(|_| ()),
        Err(check) => Err(check),
    }
}

/// Makes zero what of a leaf or node of a directory's or attribute fork's index is not in use.
pub(super) fn clear_unused(bytes: &mut [u8], crc: bool) {
    let range = if let Ok(leaf) = DirLeaf::decode(bytes, crc) {
        let start = leaf_header(crc) + size_of_val(leaf.entries);
        let end = match leaf.kind {
            LeafKind::Leaf1 => bytes.len() - RawDirLeafTail::SIZE - size_of_val(leaf.bests),
            LeafKind::LeafN => bytes.len(),
        };
        start..end
    } else if let Ok(node) = DaNode::decode(bytes, crc) {
        node_header(crc) + size_of_val(node.entries)..bytes.len()
    } else {
        return;
    };
    if let Some(rest) = bytes.get_mut(range) {
        stale::clear(rest);
    }
}

/// Brings the index of a directory in order: `changed` has the new hash of each entry, by its address, whose hash is
/// another one now. The hashes of entries that are gone are taken out.
pub(super) fn rehash_directory(blocks: &mut [IndexBlock], changed: &HashMap<u32, u32>, crc: bool) {
    let order = leaves_in_order(blocks, crc);
    let mut lasts = HashMap::new();
    let mut entries: Vec<(u32, u32)> = Vec::new();
    let mut shares = Vec::new();
    for &at in &order {
        let Ok(leaf) = DirLeaf::decode(&blocks[at].bytes, crc) else { continue };
        let live = leaf.entries.iter().filter(|entry| entry.address.get() != NULL_DATAPTR);
        let before = entries.len();
        entries.extend(live.map(|entry| {
            let address = entry.address.get();
            (changed.get(&address).copied().unwrap_or(entry.hashval.get()), address)
        }));
        shares.push((at, leaf.entries.len(), entries.len() - before));
    }
    if !changed.is_empty() {
        entries.sort_by_key(|entry| entry.0);
    }
    let mut rest = entries.into_iter();
    let mut last = 0;
    for (at, count, live) in shares {
        let places = entries_mut::<RawDirLeafEntry>(&mut blocks[at].bytes, leaf_header(crc), count);
        for (index, place) in places.iter_mut().enumerate() {
            let next = if index < live { rest.next() } else { None };
            let (hash, address) = next.unwrap_or((last, NULL_DATAPTR));
            *place = RawDirLeafEntry { hashval: hash.into(), address: address.into() };
            last = hash;
        }
        lasts.insert(blocks[at].block, last);
    }
    update_nodes(blocks, lasts, crc);
}

/// The leaves from left to right: along their links, where these reach all of them, else as they lie in the file.
fn leaves_in_order(blocks: &[IndexBlock], crc: bool) -> Vec<usize> {
    let mut links = HashMap::new();
    let mut leaves = Vec::new();
    let mut first = None;
    for (at, block) in blocks.iter().enumerate() {
        if let Ok(leaf) = DirLeaf::decode(&block.bytes, crc) {
            leaves.push(at);
            links.insert(block.block, (at, u64::from(leaf.forw)));
            if leaf.back == 0 {
                first = Some(block.block);
            }
        }
    }
    let chain = follow(first, &links);
    if chain.len() == leaves.len() { chain } else { leaves }
}

/// The blocks along their links, each once.
pub(super) fn follow(first: Option<u64>, links: &HashMap<u64, (usize, u64)>) -> Vec<usize> {
    let (mut chain, mut seen) = (Vec::new(), HashSet::new());
    let mut next = first;
    while let Some(&(at, forw)) = next.and_then(|next| links.get(&next)) {
        if !seen.insert(at) {
            break;
        }
        chain.push(at);
        next = (forw != 0).then_some(forw);
    }
    chain
}

/// Sets the hash of each entry of the inner nodes to the greatest below it: `lasts` has those of the leaves.
pub(super) fn update_nodes(blocks: &mut [IndexBlock], mut lasts: HashMap<u64, u32>, crc: bool) {
    for level in 1..DA_NODE_MAXDEPTH {
        for block in blocks.iter_mut() {
            let Ok(node) = DaNode::decode(&block.bytes, crc) else { continue };
            if node.level != level {
                continue;
            }
            let count = node.entries.len();
            let entries = entries_mut::<RawDaNodeEntry>(&mut block.bytes, node_header(crc), count);
            for entry in entries.iter_mut() {
                if let Some(last) = lasts.get(&u64::from(entry.before.get())) {
                    entry.hashval = (*last).into();
                }
            }
            if let Some(last) = entries.last() {
                lasts.insert(block.block, last.hashval.get());
            }
        }
    }
}

/// Reads the blocks of an index; those that cannot be read are left out.
pub(super) fn read(dumper: &Dumper<'_>, block: u64, fragments: Vec<(Daddr, usize)>) -> Result<Option<IndexBlock>> {
    let mut bytes = vec![0; fragments.iter().map(|fragment| fragment.1).sum()];
    let mut rest = &mut bytes[..];
    for (daddr, len) in &fragments {
        let (part, after) = rest.split_at_mut(*len);
        if !dumper.read(*daddr, part)? {
            return Ok(None);
        }
        rest = after;
    }
    Ok(Some(IndexBlock::new(block, fragments, bytes, dumper.geometry.features.has_crc())))
}

/// Entries of a table of best free lengths.
pub(super) const BEST: usize = size_of::<Be16>();
