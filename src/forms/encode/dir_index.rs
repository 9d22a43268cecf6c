//! The hash index of a directory, and the index of the free space in its data blocks (Linux `fs/xfs/libxfs/xfs_dir2_leaf.c`,
//! `xfs_dir2_node.c`).

use zerocopy::IntoBytes;

use super::owner::{BlockOwner, Siblings, put};
use crate::geometry::Geometry;
use crate::ondisk::dir_leaf::{
    DIR2_FREE_MAGIC, DIR2_LEAF1_MAGIC, DIR2_LEAFN_MAGIC, DIR3_FREE_MAGIC, DIR3_LEAF1_MAGIC, DIR3_LEAFN_MAGIC,
    NULLDATAOFF, RawDir2FreeHdr, RawDir2LeafHdr, RawDir3FreeHdr, RawDir3LeafHdr, RawDirLeafEntry, RawDirLeafTail,
};
use crate::ondisk::{Be16, OnDisk};

fn block(geometry: &Geometry) -> Vec<u8> {
    vec![0; usize::try_from(geometry.directory.blksize).expect("invariant: 64 KiB at most")]
}

fn leaf_header_len(crc: bool) -> usize {
    if crc { RawDir3LeafHdr::SIZE } else { RawDir2LeafHdr::SIZE }
}

/// Writes the header and the entries of a leaf.
fn put_leaf(
    block: &mut [u8],
    owner: &BlockOwner,
    magic: [u16; 2],
    siblings: Siblings,
    entries: &[RawDirLeafEntry],
) -> Option<()> {
    let count = Be16::new(u16::try_from(entries.len()).ok()?);
    if owner.crc {
        let info = owner.da_header(magic[1], siblings);
        put(block, &RawDir3LeafHdr { info, count, stale: 0.into(), pad: 0.into() })?;
    } else {
        put(block, &RawDir2LeafHdr { info: siblings.header(magic[0]), count, stale: 0.into() })?;
    }
    let start = leaf_header_len(owner.crc);
    block.get_mut(start..start + size_of_val(entries))?.copy_from_slice(entries.as_bytes());
    Some(())
}

/// Whether one leaf holds `entries` entries and the table of `data_blocks` data blocks.
pub fn fits_only_leaf(geometry: &Geometry, entries: usize, data_blocks: usize) -> bool {
    let size = usize::try_from(geometry.directory.blksize).expect("invariant: 64 KiB at most");
    let table = data_blocks * size_of::<Be16>() + RawDirLeafTail::SIZE;
    leaf_header_len(geometry.features.has_crc()) + entries * RawDirLeafEntry::SIZE + table <= size
}

/// The only leaf of a directory: `entries` sorted by hash, and the longest unused range of each data block. `None` when they
/// do not fit.
pub fn encode_only_dir_leaf(
    geometry: &Geometry,
    owner: &BlockOwner,
    entries: &[RawDirLeafEntry],
    bests: &[u16],
) -> Option<Vec<u8>> {
    if !fits_only_leaf(geometry, entries.len(), bests.len()) {
        return None;
    }
    let mut block = block(geometry);
    put_leaf(&mut block, owner, [DIR2_LEAF1_MAGIC, DIR3_LEAF1_MAGIC], Siblings::default(), entries)?;
    let tail = block.len() - RawDirLeafTail::SIZE;
    put(&mut block[tail..], &RawDirLeafTail { bestcount: u32::try_from(bests.len()).ok()?.into() })?;
    let table: Vec<Be16> = bests.iter().map(|&best| best.into()).collect();
    block[tail - size_of_val(&table[..])..tail].copy_from_slice(table.as_bytes());
    Some(block)
}

/// One leaf of several: `entries` sorted by hash. `None` when they do not fit.
pub fn encode_dir_leaf(
    geometry: &Geometry,
    owner: &BlockOwner,
    siblings: Siblings,
    entries: &[RawDirLeafEntry],
) -> Option<Vec<u8>> {
    let mut block = block(geometry);
    put_leaf(&mut block, owner, [DIR2_LEAFN_MAGIC, DIR3_LEAFN_MAGIC], siblings, entries)?;
    Some(block)
}

/// A block of the index of free space: the longest unused range of each data block from `firstdb` on. `None` when they do
/// not fit.
pub fn encode_dir_free(geometry: &Geometry, owner: &BlockOwner, firstdb: u32, bests: &[u16]) -> Option<Vec<u8>> {
    let mut block = block(geometry);
    let nvalid = u32::try_from(bests.len()).ok()?.into();
    let nused = u32::try_from(bests.iter().filter(|&&best| best != NULLDATAOFF).count()).ok()?.into();
    let start = if owner.crc {
        let hdr = owner.dir_header(DIR3_FREE_MAGIC);
        put(&mut block, &RawDir3FreeHdr { hdr, firstdb: firstdb.into(), nvalid, nused, pad: 0.into() })?;
        RawDir3FreeHdr::SIZE
    } else {
        put(&mut block, &RawDir2FreeHdr { magic: DIR2_FREE_MAGIC.into(), firstdb: firstdb.into(), nvalid, nused })?;
        RawDir2FreeHdr::SIZE
    };
    let table: Vec<Be16> = bests.iter().map(|&best| best.into()).collect();
    block.get_mut(start..start + size_of_val(&table[..]))?.copy_from_slice(table.as_bytes());
    Some(block)
}
