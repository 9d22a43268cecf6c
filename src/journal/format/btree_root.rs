//! The root of a btree in an inode, in the form that Linux keeps in memory and logs: a block that is as long as its records
//! need (`xfs_bmap_btree.c`, `xfs_bmdr_to_bmbt`, and its like).

use zerocopy::IntoBytes;

use crate::btree::Layout;
use crate::geometry::{BtreeKind, Geometry, Ino};
use crate::journal::Regions;
use crate::ondisk::btree_block::{RawLongBlock, RawLongBlockV5};
use crate::ondisk::{NULLFSBLOCK, OnDisk, RawBmdrRoot, RawUuid};

/// Disk address of a block that has none.
const NO_ADDRESS: u64 = u64::MAX;

/// A root, taken apart.
pub(super) struct CoreRoot<'a> {
    header: RawLongBlockV5,
    /// Bytes of it that blocks have.
    header_len: usize,
    /// Records, or keys.
    entries: &'a [u8],
    pointers: &'a [u8],
}

impl<'a> CoreRoot<'a> {
    /// The root in `fork`, the whole fork of inode `ino`; `None` when there are more entries than it can hold.
    pub(super) fn new(geometry: &Geometry, kind: BtreeKind, ino: Ino, fork: &'a [u8]) -> Option<Self> {
        let (root, _) = RawBmdrRoot::prefix(fork)?;
        let (level, count) = (root.level.get(), usize::from(root.numrecs.get()));
        let layout = Layout::of_block(geometry, kind).in_inode(fork.len());
        if count > layout.most(u32::from(level)) {
            return None;
        }
        let (entries, pointers) = if level == 0 {
            (layout.record(0).start..layout.record(count).start, 0..0)
        } else {
            (layout.low_key(0).start..layout.low_key(count).start, layout.pointer(0).start..layout.pointer(count).start)
        };
        let crc = geometry.features.has_crc();
        let header = header(kind.magic(crc), root, ino, geometry.meta_uuid);
        let header_len = if crc { RawLongBlockV5::SIZE } else { RawLongBlock::SIZE };
        Some(CoreRoot { header, header_len, entries: fork.get(entries)?, pointers: fork.get(pointers)? })
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        self.header_len + self.entries.len() + self.pointers.len()
    }

    /// Adds it as a region.
    pub(super) fn push(&self, regions: &mut Regions) {
        regions.push_parts(&[&self.header.as_bytes()[..self.header_len], self.entries, self.pointers]);
    }
}

fn header(magic: u32, root: &RawBmdrRoot, ino: Ino, uuid: RawUuid) -> RawLongBlockV5 {
    RawLongBlockV5 {
        base: RawLongBlock {
            magic: magic.into(),
            level: root.level,
            numrecs: root.numrecs,
            leftsib: NULLFSBLOCK.into(),
            rightsib: NULLFSBLOCK.into(),
        },
        blkno: NO_ADDRESS.into(),
        lsn: 0.into(),
        uuid,
        owner: ino.0.into(),
        crc: 0.into(),
        pad: 0.into(),
    }
}
