//! Conversions between kinds of address on the data and the log device (Linux `libxfs/xfs_format.h`, `xfs_types.c`).
//!
//! A conversion gives `None` for an address outside the filesystem.

use super::limits::BASIC_BLOCK_LOG;
use super::{AgBlock, AgIno, AgNumber, Daddr, FileBlock, FsBlock, Geometry, Ino};

/// An inode number taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InoParts {
    /// Its group.
    pub agno: AgNumber,
    /// Its number in the group.
    pub agino: AgIno,
    /// Its block in the group.
    pub agbno: AgBlock,
    /// Its place in the block, counted in inodes.
    pub index: u32,
}

fn low_bits(value: u64, bits: u32) -> u64 {
    value & 1_u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1)
}

/// Blocks of the data device.
impl Geometry {
    /// The filesystem block of block `agbno` of group `agno`.
    pub fn fsb(&self, agno: AgNumber, agbno: AgBlock) -> Option<FsBlock> {
        (agbno.0 < self.ag_blocks(agno)?).then(|| FsBlock(u64::from(agno.0) << self.agblklog | u64::from(agbno.0)))
    }

    /// Group of a filesystem block, and block in the group.
    pub fn fsb_parts(&self, fsb: FsBlock) -> Option<(AgNumber, AgBlock)> {
        let agno = AgNumber(u32::try_from(fsb.0 >> self.agblklog).ok()?);
        let agbno = AgBlock(u32::try_from(low_bits(fsb.0, self.agblklog)).ok()?);
        (agbno.0 < self.ag_blocks(agno)?).then_some((agno, agbno))
    }

    /// Disk address of block `agbno` of group `agno`.
    pub fn ag_daddr(&self, agno: AgNumber, agbno: AgBlock) -> Option<Daddr> {
        (agbno.0 < self.ag_blocks(agno)?).then_some(())?;
        let block = u64::from(agno.0) * u64::from(self.agblocks) + u64::from(agbno.0);
        self.blocks_to_basic_blocks(block).map(Daddr)
    }

    /// Disk address of a filesystem block.
    pub fn fsb_daddr(&self, fsb: FsBlock) -> Option<Daddr> {
        let (agno, agbno) = self.fsb_parts(fsb)?;
        self.ag_daddr(agno, agbno)
    }

    /// Group and block in which a disk address lies.
    pub fn daddr_parts(&self, daddr: Daddr) -> Option<(AgNumber, AgBlock)> {
        let block = daddr.0 >> (self.blocklog - BASIC_BLOCK_LOG);
        let agno = AgNumber(u32::try_from(block / u64::from(self.agblocks)).ok()?);
        let agbno = AgBlock(u32::try_from(block % u64::from(self.agblocks)).ok()?);
        (agbno.0 < self.ag_blocks(agno)?).then_some((agno, agbno))
    }

    /// Filesystem block in which a disk address lies.
    pub fn daddr_fsb(&self, daddr: Daddr) -> Option<FsBlock> {
        let (agno, agbno) = self.daddr_parts(daddr)?;
        self.fsb(agno, agbno)
    }

    /// Disk address of header number `sector` of group `agno`: superblock, AGF, AGI, AGFL.
    pub fn ag_header_daddr(&self, agno: AgNumber, sector: u32) -> Option<Daddr> {
        let within = u64::from(sector) << (self.sectlog - BASIC_BLOCK_LOG);
        self.ag_daddr(agno, AgBlock(0)).map(|start| Daddr(start.0 + within))
    }

    /// Whether `agbno` lies in group `agno` and behind its headers.
    pub fn is_usable_agbno(&self, agno: AgNumber, agbno: AgBlock) -> bool {
        self.ag_blocks(agno).is_some_and(|blocks| (self.ag_header_blocks()..blocks).contains(&agbno.0))
    }

    /// Whether `fsb` lies in the filesystem, outside headers.
    pub fn is_usable_fsb(&self, fsb: FsBlock) -> bool {
        self.fsb_parts(fsb).is_some_and(|(agno, agbno)| self.is_usable_agbno(agno, agbno))
    }

    /// Whether the `len` blocks from `fsb` lie in one group, outside headers.
    pub fn is_usable_extent(&self, fsb: FsBlock, len: u64) -> bool {
        let Some(last) = len.checked_sub(1).and_then(|more| fsb.0.checked_add(more)) else { return false };
        self.is_usable_fsb(fsb) && self.is_usable_fsb(FsBlock(last)) && fsb.0 >> self.agblklog == last >> self.agblklog
    }

    /// Byte offset of a disk address; `None` when it overflows.
    pub fn daddr_offset(&self, daddr: Daddr) -> Option<u64> {
        daddr.0.checked_mul(1 << BASIC_BLOCK_LOG)
    }

    /// Units of 512 bytes in `blocks` blocks; `None` when it overflows.
    pub fn blocks_to_basic_blocks(&self, blocks: u64) -> Option<u64> {
        blocks.checked_mul(u64::from(self.basic_blocks_per_block()))
    }

    /// Bytes of `blocks` blocks; `None` when it overflows.
    pub fn blocks_to_bytes(&self, blocks: u64) -> Option<u64> {
        blocks.checked_mul(u64::from(self.blocksize))
    }

    /// Blocks that `bytes` bytes take, the last one perhaps in part.
    pub fn bytes_to_blocks(&self, bytes: u64) -> u64 {
        bytes.div_ceil(u64::from(self.blocksize))
    }

    /// Block of a file that holds byte `offset`.
    pub fn file_block(&self, offset: u64) -> FileBlock {
        FileBlock(offset >> self.blocklog)
    }
}

/// Inodes.
impl Geometry {
    /// Takes an inode number apart. The group and the block exist; whether inodes can lie there is another question:
    /// [`Geometry::is_valid_ino`].
    pub fn ino_parts(&self, ino: Ino) -> Option<InoParts> {
        let agno = AgNumber(u32::try_from(ino.0 >> self.inodes.agino_log).ok()?);
        let agino = AgIno(u32::try_from(low_bits(ino.0, self.inodes.agino_log)).ok()?);
        let (agbno, index) = self.agino_parts(agino);
        (agbno.0 < self.ag_blocks(agno)?).then_some(InoParts { agno, agino, agbno, index })
    }

    /// Block in its group of an inode, and place in the block.
    pub fn agino_parts(&self, agino: AgIno) -> (AgBlock, u32) {
        let index = agino.0 & (self.inodes.per_block - 1);
        (AgBlock(agino.0 >> self.inodes.per_block_log), index)
    }

    /// The inode number of inode `agino` of group `agno`.
    pub fn ino(&self, agno: AgNumber, agino: AgIno) -> Option<Ino> {
        let block = self.agino_parts(agino).0;
        (block.0 < self.ag_blocks(agno)?).then(|| Ino(u64::from(agno.0) << self.inodes.agino_log | u64::from(agino.0)))
    }

    /// First inode of block `agbno`, as a number in the group.
    pub fn agbno_agino(&self, agbno: AgBlock) -> Option<AgIno> {
        agbno.0.checked_mul(self.inodes.per_block).map(AgIno)
    }

    /// Filesystem block that holds an inode.
    pub fn ino_fsb(&self, ino: Ino) -> Option<FsBlock> {
        let parts = self.ino_parts(ino)?;
        self.fsb(parts.agno, parts.agbno)
    }

    /// First inode of a filesystem block.
    pub fn fsb_ino(&self, fsb: FsBlock) -> Option<Ino> {
        let (agno, agbno) = self.fsb_parts(fsb)?;
        self.ino(agno, self.agbno_agino(agbno)?)
    }

    /// First and last inode that group `agno` can have: those of whole clusters behind its headers. `None` when there is
    /// no such group, or no room in it.
    pub fn agino_range(&self, agno: AgNumber) -> Option<(AgIno, AgIno)> {
        let align = self.inodes.cluster_align;
        let first = self.ag_header_blocks().checked_next_multiple_of(align)?;
        let blocks = self.ag_blocks(agno)?;
        let end = u64::from(blocks / align * align) * u64::from(self.inodes.per_block);
        let last = AgIno(u32::try_from(end.checked_sub(1)?).ok()?);
        let first = self.agbno_agino(AgBlock(first))?;
        (first <= last).then_some((first, last))
    }

    /// Whether inode `agino` can exist in group `agno`.
    pub fn is_valid_agino(&self, agno: AgNumber, agino: AgIno) -> bool {
        self.agino_range(agno).is_some_and(|(first, last)| (first..=last).contains(&agino))
    }

    /// Whether an inode of this number can exist.
    pub fn is_valid_ino(&self, ino: Ino) -> bool {
        self.ino_parts(ino).is_some_and(|parts| self.is_valid_agino(parts.agno, parts.agino))
    }

    /// Whether `ino` is an inode that no directory entry may name: realtime bitmap, summary, quota files.
    pub fn is_internal_ino(&self, ino: Ino) -> bool {
        let realtime = [self.realtime.bitmap_ino, self.realtime.summary_ino];
        let quota = [self.quota.user, self.quota.group, self.quota.project];
        realtime.contains(&Some(ino)) || (self.features.has_quota() && quota.contains(&Some(ino)))
    }

    /// Byte offset of an inode on the data device.
    pub fn ino_offset(&self, ino: Ino) -> Option<u64> {
        let parts = self.ino_parts(ino)?;
        let block = self.daddr_offset(self.ag_daddr(parts.agno, parts.agbno)?)?;
        block.checked_add(u64::from(parts.index) << self.inodes.log)
    }

    /// The number that the root directory has in a filesystem as mkfs makes it (Linux `xfs_ialloc_calc_rootino`).
    pub fn expected_rootino(&self) -> Option<Ino> {
        let mut first = u64::from(self.ag_prealloc_blocks()) + u64::from(self.min_freelist(1, 1, 1));
        if self.ag_contains_log(AgNumber(0)) {
            first += u64::from(self.log.blocks);
        }
        let align = if self.features.has_dalign() && self.inodes.stripe_align > 0 {
            self.stripe_unit
        } else if self.features.has_align() && self.inodes.chunk_align > 1 {
            self.inodes.chunk_align
        } else {
            1
        };
        let first = u32::try_from(first.checked_next_multiple_of(u64::from(align))?).ok()?;
        self.ino(AgNumber(0), self.agbno_agino(AgBlock(first))?)
    }
}

/// The log.
impl Geometry {
    /// Disk address of the log's first block on its device.
    pub fn log_daddr(&self) -> Option<Daddr> {
        match self.log.start {
            Some(start) => self.fsb_daddr(start),
            None => Some(Daddr(0)),
        }
    }

    /// Size of the log in units of 512 bytes.
    pub fn log_basic_blocks(&self) -> u64 {
        u64::from(self.log.blocks) * u64::from(self.basic_blocks_per_block())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples::{any_agno, any_superblock, damaged_superblock};
    use super::*;
    use crate::geometry::BtreeKind;

    fn any_geometry() -> impl Strategy<Value = Geometry> {
        prop_oneof![any_superblock(), damaged_superblock()].prop_map(|sb| Geometry::assume(&sb))
    }

    proptest! {
        #[test]
        fn blocks_round_trip(geometry in any_geometry(), agno in any_agno(), agbno: u32) {
            let agbno = AgBlock(agbno % geometry.agblocks);
            let Some(fsb) = geometry.fsb(agno, agbno) else {
                prop_assert!(geometry.ag_blocks(agno).is_none_or(|blocks| agbno.0 >= blocks));
                return Ok(());
            };
            prop_assert_eq!(geometry.fsb_parts(fsb), Some((agno, agbno)));
            let Some(daddr) = geometry.fsb_daddr(fsb) else { return Ok(()) };
            prop_assert_eq!(geometry.ag_daddr(agno, agbno), Some(daddr));
            prop_assert_eq!(geometry.daddr_parts(daddr), Some((agno, agbno)));
            prop_assert_eq!(geometry.daddr_fsb(daddr), Some(fsb));
        }

        #[test]
        fn inodes_round_trip(geometry in any_geometry(), agno in any_agno(), agino: u32) {
            if let Some(ino) = geometry.ino(agno, AgIno(agino)) {
                let parts = geometry.ino_parts(ino).expect("invariant: what is made can be taken apart");
                prop_assert_eq!((parts.agno, parts.agino), (agno, AgIno(agino)));
                let first = geometry.agbno_agino(parts.agbno).expect("invariant: the block exists");
                prop_assert_eq!(first.0 + parts.index, agino);
                let fsb = geometry.ino_fsb(ino).expect("invariant: the block exists");
                prop_assert_eq!(geometry.fsb_ino(fsb).map(|first| first.0 + u64::from(parts.index)), Some(ino.0));
            }
        }

        #[test]
        fn valid_inodes_lie_behind_headers(geometry in any_geometry(), agno in any_agno(), agino: u32) {
            if geometry.is_valid_agino(agno, AgIno(agino)) {
                let (agbno, _) = geometry.agino_parts(AgIno(agino));
                prop_assert!(geometry.is_usable_agbno(agno, agbno));
                let ino = geometry.ino(agno, AgIno(agino)).expect("invariant: the block exists");
                prop_assert!(geometry.is_valid_ino(ino));
            }
        }

        #[test]
        fn no_address_makes_conversions_panic(geometry in any_geometry(), number: u64, len: u64, agno in any_agno()) {
            let _ = geometry.fsb_parts(FsBlock(number));
            let _ = geometry.fsb_daddr(FsBlock(number));
            let _ = geometry.daddr_parts(Daddr(number));
            let _ = geometry.daddr_offset(Daddr(number));
            let _ = geometry.ino_parts(Ino(number));
            let _ = geometry.ino_offset(Ino(number));
            let _ = geometry.is_internal_ino(Ino(number));
            let _ = geometry.is_usable_extent(FsBlock(number), len);
            let _ = geometry.agino_range(agno);
            let _ = geometry.ag_header_daddr(agno, 3);
            let _ = geometry.blocks_to_bytes(number);
            let _ = geometry.bytes_to_blocks(number);
            let _ = geometry.file_block(number);
            let _ = geometry.log_daddr();
            let _ = geometry.log_basic_blocks();
        }

        #[test]
        fn nothing_derived_panics(geometry in any_geometry()) {
            let _ = geometry.expected_rootino();
            let _ = geometry.min_freelist(9, u32::MAX, 0);
            for kind in BtreeKind::ALL {
                let btree = geometry.btree(kind);
                prop_assert!(btree.leaf_min >= 2 && btree.node_min >= 2 && btree.max_levels < 64, "{kind:?} {btree:?}");
                let _ = geometry.initial_root(kind);
            }
            prop_assert!(geometry.blocksize >= 512 && geometry.inodes.literal_size > 0 && geometry.agblocks > 0);
            prop_assert!(geometry.ag_header_blocks() > 0 && geometry.inodes.cluster_align > 0);
        }
    }

    #[test]
    fn an_extent_must_not_leave_its_group() {
        let geometry = Geometry::assume(&super::super::samples::superblock("default"));
        assert!(geometry.is_usable_extent(FsBlock(32760), 8));
        assert!(!geometry.is_usable_extent(FsBlock(32760), 9));
        assert!(!geometry.is_usable_extent(FsBlock(0), 4));
        assert!(!geometry.is_usable_extent(FsBlock(32760), 0));
        assert!(!geometry.is_usable_extent(FsBlock(u64::MAX), 2));
    }
}
