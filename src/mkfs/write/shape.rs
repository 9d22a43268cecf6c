//! The numbers that follow from a layout: where the parts of a group lie, how high its trees may grow, in which pieces
//! inodes are made. Sources: `xfs_sb_mount_common`, `xfs_ialloc_setup_geometry`, `xfs_alloc_min_freelist` and the
//! `*_compute_maxlevels` of Linux `fs/xfs/libxfs`.

use crate::geometry::{AgBlock, AgNumber, Daddr, FsBlock, Ino};
use crate::mkfs::layout::{Layout, LogPlace};
use crate::ondisk::btree_block::{RawShortBlock, RawShortBlockV5};
use crate::ondisk::{OnDisk, RawAgfl};

/// Inodes of a chunk, the unit that one record of the inode btrees describes.
pub(super) const CHUNK_INODES: u32 = 64;
/// Bytes of the inode cluster for inodes of 256 bytes.
const BIG_CLUSTER: u32 = 8192;
/// Bytes of the smallest inode.
const SMALLEST_INODE: u32 = 256;
/// Blocks of a group that stay free for the refill of its freelist.
const AGFL_RESERVE: u32 = 4;
/// Bytes of a basic block, the unit of disk addresses.
pub(super) const BASIC_BLOCK: u64 = 512;

/// Numbers that follow from a layout.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// What they follow from.
    pub layout: Layout,
    /// Bytes of a block.
    pub block: u32,
    /// Bits of a block number within a group.
    pub agblklog: u8,
    /// Inodes of a block, as a logarithm.
    pub inopblog: u8,
    /// Blocks of a group that the headers and the roots of its trees take.
    pub prealloc: u32,
    /// Entries of the freelist.
    pub agfl_size: u32,
    /// Greatest height of the btrees of free space.
    pub alloc_maxlevels: u32,
    /// Greatest height of the btree of reverse mappings.
    pub rmap_maxlevels: u32,
    /// Greatest height of the inode btrees.
    pub inobt_maxlevels: u32,
    /// Inodes that are made at once.
    pub ialloc_inos: u32,
    /// Blocks that these take.
    pub ialloc_blks: u32,
    /// Blocks of the smallest piece that inodes are made in.
    pub ialloc_min_blks: u32,
    /// Alignment of inode chunks, in blocks.
    pub cluster_align: u32,
    /// Alignment of inode chunks to the stripe, in blocks; 0 for none.
    pub ialloc_align: u32,
    /// Most inodes of the filesystem; 0 for no limit.
    pub maxicount: u64,
    /// Most blocks that one allocation in a group can give.
    pub ag_max_usable: u32,
}

/// Where the first blocks of a group lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Roots {
    /// Free space by block.
    pub bno: u32,
    /// Free space by size.
    pub cnt: u32,
    /// Inodes.
    pub ino: u32,
    /// Free inodes.
    pub fino: Option<u32>,
    /// Reverse mappings.
    pub rmap: Option<u32>,
    /// Reference counts.
    pub refc: Option<u32>,
}

impl Shape {
    /// The numbers of `layout`.
    pub fn new(layout: &Layout) -> Self {
        let block = layout.block.bytes();
        let features = &layout.features;
        let header = short_header(features.crc);
        let usable = block - header;
        let inopblog = layout.block.log() - layout.inode.log();
        let agblklog = log2_roundup(layout.data.agblocks);
        let agino_log = u32::from(inopblog) + u32::from(agblklog);
        let agfl_header = if features.crc { size32::<RawAgfl>() } else { 0 };

        let alloc_limits = [usable / 8 / 2, usable / 12 / 2];
        let rmap_limits = [usable / 24 / 2, usable / 44 / 2];
        let inobt_limits = [usable / 16 / 2, usable / 8 / 2];
        let agblocks = u64::from(layout.data.agblocks);
        let rmap_maxlevels = match (features.rmapbt, features.reflink) {
            (false, _) => 0,
            (true, true) => height_of_space(rmap_limits, agblocks),
            (true, false) => height_of_records(rmap_limits, agblocks),
        };

        let ialloc_inos = CHUNK_INODES.max(1 << inopblog);
        let ialloc_blks = ialloc_inos >> inopblog;
        let maxicount = max_inodes(layout, ialloc_blks, inopblog);
        let mut cluster = BIG_CLUSTER;
        if features.crc {
            let scaled = cluster * (layout.inode.bytes() / SMALLEST_INODE);
            if layout.data.inode_alignment >= scaled / block {
                cluster = scaled;
            }
        }
        let cluster_blks = (cluster / block).max(1);
        let aligned = features.inode_alignment && layout.data.inode_alignment >= cluster_blks;
        let cluster_align = if aligned { layout.data.inode_alignment } else { 1 };
        let unit = layout.data.stripe_unit;
        let striped = unit != 0 && cluster_align > 1 && unit & (cluster_align - 1) == 0;

        let mut shape = Shape {
            layout: layout.clone(),
            block,
            agblklog,
            inopblog,
            prealloc: 0,
            agfl_size: (layout.sector.bytes() - agfl_header) / 4,
            alloc_maxlevels: height_of_records(alloc_limits, agblocks.div_ceil(2)),
            rmap_maxlevels,
            inobt_maxlevels: height_of_records(inobt_limits, (1u64 << agino_log) >> 6),
            ialloc_inos,
            ialloc_blks,
            ialloc_min_blks: match layout.data.sparse_alignment {
                0 => ialloc_blks,
                blocks => blocks,
            },
            cluster_align,
            ialloc_align: if striped { unit } else { 0 },
            maxicount,
            ag_max_usable: 0,
        };
        let roots = shape.roots();
        shape.prealloc = [roots.fino, roots.rmap, roots.refc].into_iter().flatten().fold(roots.ino, u32::max) + 1;
        let headers = (layout.sector.bytes() * 4).div_ceil(block);
        let optional = [features.finobt, features.rmapbt, features.reflink].into_iter().filter(|&on| on).count();
        let optional = u32::try_from(optional).expect("invariant: three at most");
        shape.ag_max_usable = layout.data.agblocks - (headers + AGFL_RESERVE + 3 + optional);
        shape
    }

    /// Where the roots of a new group lie.
    pub fn roots(&self) -> Roots {
        let features = &self.layout.features;
        let agfl = 3 * self.layout.sector.bytes() / self.block;
        let ino = agfl + 3;
        let mut next = ino + 1;
        let mut take = |present: bool| {
            present.then(|| {
                next += 1;
                next - 1
            })
        };
        let fino = take(features.finobt);
        let rmap = take(features.rmapbt);
        let refc = take(features.reflink);
        Roots { bno: agfl + 1, cnt: agfl + 2, ino, fino, rmap, refc }
    }

    /// The group and the block in it where an internal log begins.
    pub fn internal_log(&self) -> Option<(AgNumber, AgBlock)> {
        match self.layout.log.place {
            LogPlace::Internal { agno, agblock } => Some((agno, agblock)),
            LogPlace::External => None,
        }
    }

    /// The block of the data device, as the superblock and extents name it.
    pub fn fsblock(&self, agno: u32, agblock: u32) -> FsBlock {
        FsBlock(u64::from(agno) << self.agblklog | u64::from(agblock))
    }

    /// Group and block in it of `block`.
    pub fn split(&self, block: FsBlock) -> (u32, u32) {
        let agno = u32::try_from(block.0 >> self.agblklog).expect("invariant: made by fsblock()");
        let mask = (1u64 << self.agblklog) - 1;
        (agno, u32::try_from(block.0 & mask).expect("invariant: a group has less than 2^32 blocks"))
    }

    /// Byte on the data device where a block of a group begins.
    pub fn offset(&self, agno: u32, agblock: u32) -> u64 {
        (u64::from(agno) * u64::from(self.layout.data.agblocks) + u64::from(agblock)) * u64::from(self.block)
    }

    /// Disk address of a block of a group.
    pub fn daddr(&self, agno: u32, agblock: u32) -> Daddr {
        Daddr(self.offset(agno, agblock) / BASIC_BLOCK)
    }

    /// The inode number of an inode of a group.
    pub fn ino(&self, agno: u32, agino: u32) -> Ino {
        Ino(u64::from(agno) << (self.agblklog + self.inopblog) | u64::from(agino))
    }

    /// Group and number in it of an inode.
    pub fn split_ino(&self, ino: Ino) -> (u32, u32) {
        let log = self.agblklog + self.inopblog;
        let agno = u32::try_from(ino.0 >> log).expect("invariant: made by ino()");
        (agno, u32::try_from(ino.0 & ((1u64 << log) - 1)).expect("invariant: 32 bits at most"))
    }

    /// Where programs that repair a filesystem look for the root directory: behind the headers, the roots, the freelist
    /// and a log in the first group, aligned. Source: `xfs_ialloc_calc_rootino`.
    pub fn expected_root(&self) -> Ino {
        let features = &self.layout.features;
        let headers = (4 * self.layout.sector.bytes()).div_ceil(self.block);
        let optional = [features.finobt, features.rmapbt, features.reflink].into_iter().map(u32::from).sum::<u32>();
        let log = self.internal_log().filter(|(agno, _)| agno.0 == 0).map_or(0, |_| self.layout.log.blocks);
        let first = headers + 3 + self.min_freelist(1, 1, 1) + optional + log;
        let alignment = if self.ialloc_align > 0 { self.ialloc_align } else { self.layout.data.inode_alignment.max(1) };
        self.ino(0, first.next_multiple_of(alignment) << self.inopblog)
    }

    /// Fewest blocks of the freelist of a group whose trees have these heights.
    pub fn min_freelist(&self, bno_level: u32, cnt_level: u32, rmap_level: u32) -> u32 {
        let share = |level: u32, max: u32| (level + 1).min(max) * 2 - 2;
        let mut blocks = share(bno_level, self.alloc_maxlevels) + share(cnt_level, self.alloc_maxlevels);
        if self.layout.features.rmapbt {
            blocks += share(rmap_level, self.rmap_maxlevels);
        }
        blocks
    }
}

/// Bytes of the header of a btree block of a group.
pub(super) fn short_header(crc: bool) -> u32 {
    if crc { size32::<RawShortBlockV5>() } else { size32::<RawShortBlock>() }
}

/// Size of a structure on disk, in bytes.
pub(super) fn size32<T: OnDisk>() -> u32 {
    u32::try_from(T::SIZE).expect("invariant: structures are small")
}

/// Smallest logarithm whose power of two is not less than `value`.
fn log2_roundup(value: u32) -> u8 {
    u8::try_from(u32::BITS - value.saturating_sub(1).leading_zeros()).expect("invariant: 32 at most")
}

/// Most inodes of the filesystem: whole chunks within the share of the space that they may take.
fn max_inodes(layout: &Layout, ialloc_blks: u32, inopblog: u8) -> u64 {
    if layout.data.imax_pct == 0 {
        return 0;
    }
    let chunk = u64::from(ialloc_blks);
    let blocks = layout.data.blocks * u64::from(layout.data.imax_pct) / 100;
    (blocks / chunk * chunk) << inopblog
}

/// Height of a btree of `records`, when its blocks hold no less than `limits` (records, pointers).
fn height_of_records(limits: [u32; 2], records: u64) -> u32 {
    let mut blocks = records.div_ceil(u64::from(limits[0]));
    let mut height = 1;
    while blocks > 1 {
        blocks = blocks.div_ceil(u64::from(limits[1]));
        height += 1;
    }
    height
}

/// Height of a btree that takes `blocks` blocks.
fn height_of_space(limits: [u32; 2], blocks: u64) -> u32 {
    let mut level = 2u64;
    let mut left = blocks - 1;
    let mut height = 1;
    while level < left {
        left -= level;
        level *= u64::from(limits[1]);
        height += 1;
    }
    height
}
