//! Everything that follows from a superblock.

use super::bounds::Bounds;
use super::btree_geometry::{BtreeGeometries, BtreeGeometry};
use super::btree_levels::BtreeKind;
use super::directory_geometry::{AttributeGeometry, DirectoryGeometry};
use super::features::Features;
use super::inode_geometry::InodeGeometry;
use super::limits::{AG_HEADER_SECTORS, BASIC_BLOCK_LOG};
use super::log_geometry::LogGeometry;
use super::quota_geometry::QuotaGeometry;
use super::realtime_geometry::RealtimeGeometry;
use super::superblock_check::{SuperblockContext, check_superblock, log2_ceil};
use super::{AgBlock, AgNumber, Ino};
use crate::error::Verdict;
use crate::ondisk::{RawAgfl, RawSuperblock, RawUuid};

/// The shape of a filesystem: sizes, places and limits.
///
/// Made by [`Geometry::from_superblock`], it is that of a superblock that passed every check. Made by
/// [`Geometry::assume`], it may be wrong; its numbers are still so bounded that nothing computed from it overflows,
/// and conversions give `None` for what lies outside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// What the filesystem uses.
    pub features: Features,
    /// UUID that users see.
    pub uuid: RawUuid,
    /// UUID that metadata carry: the same unless the metauuid feature says otherwise.
    pub meta_uuid: RawUuid,
    /// Label, padded with zeroes.
    pub label: [u8; 12],
    /// Bytes of a block.
    pub blocksize: u32,
    /// log2 of the same.
    pub blocklog: u32,
    /// Bytes of a sector.
    pub sectsize: u32,
    /// log2 of the same.
    pub sectlog: u32,
    /// Blocks of the data device.
    pub dblocks: u64,
    /// Blocks of an allocation group; the last one may have fewer.
    pub agblocks: u32,
    /// Bits of a filesystem block number that lie within its group.
    pub agblklog: u32,
    /// Number of allocation groups.
    pub agcount: u32,
    /// Bits that a group number needs.
    pub agno_log: u32,
    /// Entries of a group's free list.
    pub agfl_capacity: u32,
    /// Stripe unit in blocks; 0 when there is none.
    pub stripe_unit: u32,
    /// Stripe width in blocks; 0 when there is none.
    pub stripe_width: u32,
    /// Largest percentage of the data device that inodes may take; 0 is no limit.
    pub imax_pct: u8,
    /// Inode of the root directory.
    pub rootino: Ino,
    /// Inode of the metadata directory tree's root.
    pub metadirino: Option<Ino>,
    /// Inodes.
    pub inodes: InodeGeometry,
    /// The log.
    pub log: LogGeometry,
    /// The realtime section.
    pub realtime: RealtimeGeometry,
    /// Quota files.
    pub quota: QuotaGeometry,
    /// Directories.
    pub directory: DirectoryGeometry,
    /// Attribute forks.
    pub attributes: AttributeGeometry,
    /// Sizes of the btrees.
    pub btrees: BtreeGeometries,
}

impl Geometry {
    /// The geometry of a primary superblock that passes every check.
    ///
    /// # Errors
    /// The checks that failed.
    pub fn from_superblock(sb: &RawSuperblock) -> Result<Self, Verdict> {
        Self::from_superblock_in(sb, SuperblockContext::default())
    }

    /// The geometry of a superblock that passes every check, in the light of what is known about it.
    ///
    /// # Errors
    /// The checks that failed.
    pub fn from_superblock_in(sb: &RawSuperblock, context: SuperblockContext) -> Result<Self, Verdict> {
        let verdict = check_superblock(sb, context);
        if verdict.is_sound() { Ok(Self::assume(sb)) } else { Err(verdict) }
    }

    /// The geometry of a superblock that may be damaged: the most plausible one.
    pub fn assume(sb: &RawSuperblock) -> Self {
        let features = Features::from_superblock(sb);
        let bounds = Bounds::of(sb);
        let blocksize = 1_u32 << bounds.blocklog;
        let dblocks = sb.dblocks.get();
        let inodes = InodeGeometry::of(sb, &bounds, &features);
        Geometry {
            features,
            uuid: sb.uuid,
            meta_uuid: if features.has_metauuid() { sb.meta_uuid } else { sb.uuid },
            label: sb.fname,
            blocksize,
            blocklog: bounds.blocklog,
            sectsize: 1 << bounds.sectlog,
            sectlog: bounds.sectlog,
            dblocks,
            agblocks: bounds.agblocks,
            agblklog: bounds.agblklog,
            agcount: bounds.agcount,
            agno_log: log2_ceil(u64::from(bounds.agcount)),
            agfl_capacity: u32::try_from(RawAgfl::capacity(1 << bounds.sectlog, features.has_crc()))
                .expect("invariant: a sector holds fewer than 2^32 entries"),
            stripe_unit: if features.has_dalign() { sb.unit.get() } else { 0 },
            stripe_width: if features.has_dalign() { sb.width.get() } else { 0 },
            imax_pct: sb.imax_pct,
            rootino: Ino(sb.rootino.get()),
            metadirino: features.has_metadir().then(|| Ino(sb.metadirino.get())),
            inodes,
            log: LogGeometry::of(sb, &bounds, &features),
            realtime: RealtimeGeometry::of(sb, &bounds, &features),
            quota: QuotaGeometry::of(sb, &features, blocksize),
            directory: DirectoryGeometry::of(&bounds, &features),
            attributes: AttributeGeometry::of(&bounds, &features, &inodes),
            btrees: BtreeGeometries::of(&bounds, &features, dblocks),
        }
    }

    /// Sizes of one kind of btree.
    pub fn btree(&self, kind: BtreeKind) -> &BtreeGeometry {
        self.btrees.get(kind)
    }

    /// Blocks of group `agno`; `None` when there is no such group.
    pub fn ag_blocks(&self, agno: AgNumber) -> Option<u32> {
        let before = u64::from(agno.0) * u64::from(self.agblocks);
        let blocks = self.dblocks.saturating_sub(before).min(u64::from(self.agblocks));
        (agno.0 < self.agcount).then_some(u32::try_from(blocks).unwrap_or(self.agblocks))
    }

    /// The numbers of all groups.
    pub fn ag_numbers(&self) -> impl DoubleEndedIterator<Item = AgNumber> + use<> {
        (0..self.agcount).map(AgNumber)
    }

    /// Blocks that the headers of a group take: the first block behind that of the free list.
    pub fn ag_header_blocks(&self) -> u32 {
        (((AG_HEADER_SECTORS - 1) << self.sectlog) >> self.blocklog) + 1
    }

    /// Whether the log lies in group `agno`.
    pub fn ag_contains_log(&self, agno: AgNumber) -> bool {
        self.log.start.is_some_and(|start| start.0 >> self.agblklog == u64::from(agno.0))
    }

    /// Where the root of `kind` lies in a group that was just made; `None` when groups have no such btree.
    pub fn initial_root(&self, kind: BtreeKind) -> Option<AgBlock> {
        let order = [
            (BtreeKind::Bnobt, true),
            (BtreeKind::Cntbt, true),
            (BtreeKind::Inobt, true),
            (BtreeKind::Finobt, self.features.has_finobt()),
            (BtreeKind::Rmapbt, self.features.has_rmapbt()),
            (BtreeKind::Refcountbt, self.features.has_reflink()),
        ];
        let present = order.into_iter().filter(|(_, present)| *present).map(|(kind, _)| kind);
        let index = present.zip(0..).find(|(other, _)| *other == kind)?.1;
        Some(AgBlock(self.ag_header_blocks() + index))
    }

    /// Blocks that headers and btree roots take in a group that was just made.
    pub fn ag_prealloc_blocks(&self) -> u32 {
        let optional = [self.features.has_finobt(), self.features.has_rmapbt(), self.features.has_reflink()];
        let count = optional.into_iter().map(u32::from).sum::<u32>();
        self.ag_header_blocks() + 3 + count
    }

    /// Blocks that the free list of a group must have, given the levels of its btrees by block, by size and of reverse
    /// mappings; those of a new group are 1 (Linux `xfs_alloc_min_freelist`).
    pub fn min_freelist(&self, bno_level: u32, cnt_level: u32, rmap_level: u32) -> u32 {
        let need = |level: u32, kind| (level.saturating_add(1).min(self.btree(kind).max_levels) * 2).saturating_sub(2);
        let rmap = if self.features.has_rmapbt() { need(rmap_level, BtreeKind::Rmapbt) } else { 0 };
        need(bno_level, BtreeKind::Bnobt) + need(cnt_level, BtreeKind::Cntbt) + rmap
    }

    /// Units of 512 bytes in a block.
    pub fn basic_blocks_per_block(&self) -> u32 {
        1 << (self.blocklog - BASIC_BLOCK_LOG)
    }
}
