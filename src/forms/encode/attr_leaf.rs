//! Attribute leaves, filled in the order of hashes: entries from the header upwards, names and values from the end of the
//! block downwards (Linux `fs/xfs/libxfs/xfs_attr_leaf.c`).

use zerocopy::{FromZeros, IntoBytes};

use super::owner::{BlockOwner, Siblings, put};
use crate::geometry::Geometry;
use crate::ondisk::OnDisk;
use crate::ondisk::attr_leaf::{
    ATTR_LEAF_MAGIC, ATTR3_LEAF_MAGIC, AttrLeafName, AttrLeafValue, RawAttr3LeafHdr, RawAttrLeafEntry, RawAttrLeafHdr,
    RawAttrLeafMap, header_len, local_len, put_name, remote_len,
};
use crate::ondisk::attr_short::ATTR_LOCAL;

/// A leaf that is being filled.
#[derive(Clone, Debug)]
pub struct AttrLeafBuilder {
    block: Vec<u8>,
    header: usize,
    entries: Vec<RawAttrLeafEntry>,
    firstused: usize,
}

impl AttrLeafBuilder {
    /// An empty leaf.
    pub fn new(geometry: &Geometry) -> Self {
        let size = usize::try_from(geometry.blocksize).expect("invariant: 64 KiB at most");
        let header = header_len(geometry.features.has_crc());
        AttrLeafBuilder { block: vec![0; size], header, entries: Vec::new(), firstused: size }
    }

    /// How many attributes there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The hash of the last attribute.
    pub fn last_hash(&self) -> Option<u32> {
        self.entries.last().map(|entry| entry.hashval.get())
    }

    /// Adds an attribute whose hash is not below that of the last one. `false`, and nothing has changed, when it does not fit.
    pub fn push(&mut self, hash: u32, namespace: u8, name: &AttrLeafName<'_>) -> bool {
        let (len, local) = match name.value {
            AttrLeafValue::Local(value) => (local_len(name.name.len(), value.len()), ATTR_LOCAL),
            AttrLeafValue::Remote { .. } => (remote_len(name.name.len()), 0),
        };
        let end = self.header + (self.entries.len() + 1) * RawAttrLeafEntry::SIZE;
        let Some(at) = self.firstused.checked_sub(len).filter(|&at| at >= end) else { return false };
        let Ok(nameidx) = u16::try_from(at) else { return false };
        if put_name(&mut self.block, at, name).is_none() {
            return false;
        }
        self.firstused = at;
        self.entries.push(RawAttrLeafEntry {
            hashval: hash.into(),
            nameidx: nameidx.into(),
            flags: namespace | local,
            pad2: 0,
        });
        true
    }

    /// The leaf.
    pub fn into_leaf(mut self, owner: &BlockOwner, siblings: Siblings) -> Vec<u8> {
        let end = self.header + size_of_val(&self.entries[..]);
        let short = |bytes: usize| u16::try_from(bytes).unwrap_or(0);
        let mut freemap = [RawAttrLeafMap::new_zeroed(); 3];
        freemap[0] = RawAttrLeafMap { base: short(end).into(), size: short(self.firstused - end).into() };
        let count = short(self.entries.len()).into();
        let usedbytes = short(self.block.len() - self.firstused).into();
        // 0 stands for the end of a block of 64 KiB
        let firstused = short(self.firstused).into();
        let done = if owner.crc {
            let info = owner.da_header(ATTR3_LEAF_MAGIC, siblings);
            let head =
                RawAttr3LeafHdr { info, count, usedbytes, firstused, holes: 0, pad1: 0, freemap, pad2: 0.into() };
            put(&mut self.block, &head)
        } else {
            let info = siblings.header(ATTR_LEAF_MAGIC);
            put(&mut self.block, &RawAttrLeafHdr { info, count, usedbytes, firstused, holes: 0, pad1: 0, freemap })
        };
        done.expect("invariant: a block is longer than its header");
        self.block[self.header..end].copy_from_slice(self.entries.as_bytes());
        self.block
    }
}
