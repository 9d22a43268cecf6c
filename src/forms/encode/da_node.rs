//! Nodes of the hash btree over the leaves of directories and attributes (Linux `fs/xfs/libxfs/xfs_da_btree.c`).

use zerocopy::IntoBytes;

use super::owner::{BlockOwner, Siblings, put};
use crate::ondisk::OnDisk;
use crate::ondisk::da_block::{DA_NODE_MAGIC, DA3_NODE_MAGIC, RawDa3NodeHdr, RawDaNodeEntry, RawDaNodeHdr};

/// A node of `size` bytes, `level` levels above the leaves: for each child its greatest hash and its block of the file. `None`
/// when the entries do not fit.
pub fn encode_da_node(
    size: u32,
    owner: &BlockOwner,
    siblings: Siblings,
    level: u16,
    entries: &[RawDaNodeEntry],
) -> Option<Vec<u8>> {
    let mut block = vec![0; usize::try_from(size).ok()?];
    let (count, level) = (u16::try_from(entries.len()).ok()?.into(), level.into());
    let start = if owner.crc {
        let info = owner.da_header(DA3_NODE_MAGIC, siblings);
        put(&mut block, &RawDa3NodeHdr { info, count, level, pad32: 0.into() })?;
        RawDa3NodeHdr::SIZE
    } else {
        put(&mut block, &RawDaNodeHdr { info: siblings.header(DA_NODE_MAGIC), count, level })?;
        RawDaNodeHdr::SIZE
    };
    block.get_mut(start..start + size_of_val(entries))?.copy_from_slice(entries.as_bytes());
    Some(block)
}
