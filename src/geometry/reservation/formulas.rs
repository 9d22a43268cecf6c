//! What operations change at most, in bytes of log: the formulas of Linux `xfs_trans_resv.c`.

use super::inputs::ReservationInputs;
use super::kinds::low_half;
use crate::geometry::btree_levels::{BtreeKind, BtreeLevels};
use crate::geometry::limits::MIN_INODESIZE;
use crate::ondisk::da_block::DA_NODE_MAXDEPTH;
use crate::ondisk::dir_data::MAXNAMELEN;
use crate::ondisk::extent::MAX_BLOCKCOUNT;
use crate::ondisk::log_attri::RawAttriLogFormat;
use crate::ondisk::log_inode::RawInodeLogFormat64;
use crate::ondisk::log_item::RawDquotLogFormat;
use crate::ondisk::log_record::RawLogOpHeader;
use crate::ondisk::parent::RawParentRec;
use crate::ondisk::remote::SYMLINK_MAXLEN;
use crate::ondisk::{INODES_PER_CHUNK, LittleEndian, RawDiskDquot, RawRtBlockHeader};

/// Space that a logged buffer needs beside its contents: op header and format structure, rounded up.
const BUFFER_OVERHEAD: u64 = 128;
/// Header of one operation in the log.
pub(in crate::geometry) const OP_HEADER: u64 = size_of::<RawLogOpHeader>() as u64;
/// Format structure of a logged inode.
const INODE_FORMAT: u64 = size_of::<RawInodeLogFormat64<LittleEndian>>() as u64;
/// A dquot as stored.
pub(super) const DISK_DQUOT: u64 = size_of::<RawDiskDquot>() as u64;
/// Six dquots (user, group and project, before and after), each with its format structure.
pub(super) const DQUOTS: u64 = (size_of::<RawDquotLogFormat<LittleEndian>>() as u64 + DISK_DQUOT) * 6;
/// Format structure of an attribute intent.
const ATTRI_FORMAT: u64 = size_of::<RawAttriLogFormat<LittleEndian>>() as u64;
/// A parent record.
const PARENT_REC: u64 = size_of::<RawParentRec>() as u64;
/// The longest name, rounded up to whole words.
const NAME_WORDS: u64 = (MAXNAMELEN as u64).next_multiple_of(4);
/// The longest target of a symbolic link.
pub(super) const SYMLINK_MAX: u64 = SYMLINK_MAXLEN as u64;
/// The deepest tree of directory or attribute blocks.
pub(in crate::geometry) const DA_DEPTH: u64 = DA_NODE_MAXDEPTH as u64;
/// The longest extent of a file, in blocks.
const MAX_EXTLEN: u64 = MAX_BLOCKCOUNT as u64;
/// Size of an inode cluster of 256-byte inodes, in bytes.
const CLUSTER_SIZE: u64 = 8192;
/// The smallest inode, in bytes.
const MIN_INODE: u64 = MIN_INODESIZE as u64;
/// Header of a block of the realtime bitmap in groups.
const RTBUF_HEADER: u64 = size_of::<RawRtBlockHeader>() as u64;

/// Whether the reservation is for a running filesystem, or for the minimum size of the log, where Linux keeps the
/// larger numbers of its early reflink code so that older kernels accept the log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::geometry) enum Purpose {
    Running,
    MinimumLog,
}

/// The inputs with what follows from them; every function is one formula of `xfs_trans_resv.c`.
pub(in crate::geometry) struct Formulas<'a> {
    pub(in crate::geometry) inputs: &'a ReservationInputs,
    pub(in crate::geometry) levels: BtreeLevels,
    pub(in crate::geometry) block: u64,
    sector: u64,
}

impl<'a> Formulas<'a> {
    pub(in crate::geometry) fn new(inputs: &'a ReservationInputs, levels: BtreeLevels) -> Self {
        Formulas { inputs, levels, block: u64::from(inputs.blocksize()), sector: u64::from(inputs.sectsize) }
    }

    pub(super) fn buffers(&self, count: u64, size: u64) -> u64 {
        count.saturating_mul(size.saturating_add(BUFFER_OVERHEAD))
    }

    pub(super) fn blocks(&self, count: u64) -> u64 {
        self.buffers(count, self.block)
    }

    pub(super) fn sectors(&self, count: u64) -> u64 {
        self.buffers(count, self.sector)
    }

    /// Blocks of the space trees that change when `ops` extents are allocated or freed.
    pub(super) fn allocfree_blocks(&self, ops: u64) -> u64 {
        let alloc = ops * 2 * split(self.levels.alloc);
        if self.inputs.rmapbt { alloc + ops * split(self.levels.rmapbt) } else { alloc }
    }

    pub(super) fn allocfree(&self, ops: u64) -> u64 {
        self.blocks(self.allocfree_blocks(ops))
    }

    /// Inodes are logged with the longer header that btree roots have in memory.
    pub(super) fn inodes(&self, count: u64) -> u64 {
        let root = u64::from(BtreeKind::Bmbt.sizes(self.inputs.crc).header);
        count * (4 * OP_HEADER + INODE_FORMAT + u64::from(self.inputs.inodesize) + 2 * root)
    }

    pub(super) fn inobt(&self) -> u64 {
        self.blocks(u64::from(self.levels.inobt)) + self.allocfree(1)
    }

    pub(super) fn finobt(&self) -> u64 {
        if self.inputs.finobt { self.inobt() } else { 0 }
    }

    /// Blocks of an inode chunk.
    pub(super) fn chunk_blocks(&self) -> u64 {
        let per_block = self.block / u64::from(self.inputs.inodesize.max(1));
        u64::from(INODES_PER_CHUNK).max(per_block) / per_block.max(1)
    }

    /// On v5 a new chunk is logged as one item and not as buffers; a freed one needs the headers alone.
    pub(super) fn inode_chunk_alloc(&self) -> u64 {
        if self.inputs.crc { self.allocfree(1) } else { self.allocfree(1) + self.blocks(self.chunk_blocks()) }
    }

    pub(super) fn inode_chunk_free(&self) -> u64 {
        self.allocfree(1) + self.buffers(self.chunk_blocks(), 0)
    }

    /// Size of an inode cluster in bytes; v5 has larger ones for larger inodes where the alignment allows it.
    pub(super) fn cluster_size(&self) -> u64 {
        let scaled = CLUSTER_SIZE * (u64::from(self.inputs.inodesize) / MIN_INODE);
        let fits = u64::from(self.inputs.inoalignmt) >= scaled / self.block.max(1);
        let size = if self.inputs.crc && fits { scaled } else { CLUSTER_SIZE };
        if size > self.block { size / self.block.max(1) * self.block } else { self.block }
    }

    pub(super) fn rtalloc_blocks(&self, ops: u64) -> u64 {
        let extents = MAX_EXTLEN / u64::from(self.inputs.rextsize.max(1));
        let bytes = if self.inputs.metadir { self.block.saturating_sub(RTBUF_HEADER) } else { self.block };
        let bitmap = if self.inputs.zoned { 0 } else { extents.div_ceil((bytes * 8).max(1)) };
        let owners = if self.inputs.rmapbt { ops * split(self.levels.rtrmapbt) } else { 0 };
        ((bitmap + 1) * ops).max(owners)
    }

    pub(super) fn bmbt_data(&self) -> u64 {
        u64::from(self.levels.bmbt_data)
    }

    pub(super) fn bmbt_attr(&self) -> u64 {
        u64::from(self.levels.bmbt_attr)
    }

    pub(super) fn refcount_splits(&self, ops: u64) -> u64 {
        self.blocks(ops * split(self.levels.refcountbt))
    }

    pub(in crate::geometry) fn finish_cui(&self, ops: u64) -> u64 {
        if self.inputs.reflink { self.sectors(ops) + self.refcount_splits(ops) } else { 0 }
    }

    pub(super) fn finish_rt_cui(&self, ops: u64) -> u64 {
        if self.inputs.metadir && self.inputs.realtime() && self.inputs.reflink {
            self.inodes(1) + self.blocks(ops * split(self.levels.rtrefcountbt))
        } else {
            0
        }
    }

    pub(super) fn refcountbt(&self, ops: u64) -> u64 {
        self.finish_cui(ops).max(self.finish_rt_cui(ops))
    }

    pub(in crate::geometry) fn finish_efi(&self, ops: u64) -> u64 {
        self.sectors(2 * ops + 1) + self.allocfree(ops)
    }

    pub(super) fn finish_rt_efi(&self, ops: u64) -> u64 {
        if !self.inputs.realtime() {
            return 0;
        }
        self.sectors(2 * ops + 1) + self.blocks(self.rtalloc_blocks(ops)) + self.allocfree(ops)
    }

    pub(in crate::geometry) fn finish_rui(&self, ops: u64) -> u64 {
        if self.inputs.rmapbt { self.finish_efi(ops) } else { 0 }
    }

    pub(in crate::geometry) fn finish_bui(&self) -> u64 {
        self.inodes(1) + DQUOTS + self.blocks(self.bmbt_data() + 1)
    }

    pub(in crate::geometry) fn write(&self, purpose: Purpose) -> u64 {
        let mapping = self.inodes(1) + self.blocks(self.bmbt_data()) + self.sectors(3);
        let data = mapping + self.allocfree(2);
        let realtime =
            if self.inputs.realtime() { mapping + self.blocks(self.rtalloc_blocks(1)) + self.allocfree(1) } else { 0 };
        let freeing = self.sectors(5) + self.allocfree(2);
        DQUOTS
            + match purpose {
                Purpose::Running => self.refcountbt(1).max(data).max(realtime).max(freeing),
                Purpose::MinimumLog => {
                    let early = if self.inputs.reflink { self.refcount_splits(2) } else { 0 };
                    (data + early).max(realtime).max(freeing + early)
                }
            }
    }

    pub(in crate::geometry) fn itruncate(&self, purpose: Purpose) -> u64 {
        let mapping = self.inodes(1) + self.blocks(self.bmbt_data() + 1);
        let data = self.finish_efi(4);
        let realtime = self.finish_rt_efi(2);
        DQUOTS
            + match purpose {
                Purpose::Running => self.refcountbt(2).max(mapping).max(data).max(realtime),
                Purpose::MinimumLog => {
                    let early = if self.inputs.reflink { self.refcount_splits(4) } else { 0 };
                    mapping.max(data + early).max(realtime)
                }
            }
    }

    pub(in crate::geometry) fn qm_dqalloc(&self, purpose: Purpose) -> u64 {
        self.write(purpose) + self.buffers(1, self.block.saturating_sub(1))
    }

    /// Blocks of a directory operation: the tree, data and free blocks, and the mappings of each.
    pub(super) fn dirop_blocks(&self) -> u64 {
        let per_block = 1u64 << self.inputs.dirblklog.min(31);
        let blocks = per_block * (DA_DEPTH + 2);
        let mappings = (DA_DEPTH + 2) * self.new_extents(per_block, self.bmbt_data());
        blocks + mappings + 1
    }

    /// Blocks of the extent tree that may split when `count` extents are added to a fork of `levels` levels.
    pub(in crate::geometry) fn new_extents(&self, count: u64, levels: u64) -> u64 {
        let most = BtreeKind::Bnobt.maxrecs(self.inputs.blocksize(), self.inputs.crc, true);
        let per_block = u64::from(most - most / 2).max(1);
        count.div_ceil(per_block) * (levels - 1)
    }

    pub(super) fn iunlink_add(&self) -> u64 {
        self.sectors(1) + self.cluster_size()
    }

    pub(super) fn iunlink_remove(&self) -> u64 {
        self.sectors(1) + 2 * self.cluster_size()
    }

    pub(super) fn rename(&self, attr: u64) -> u64 {
        let inodes = self.inodes(5) + self.blocks(2 * self.dirop_blocks());
        let steps = inodes.max(self.finish_efi(3));
        if !self.inputs.parent {
            return DQUOTS + steps;
        }
        // replace the source's parent, remove the target's, add the whiteout's; or replace both
        let intents = (pointer_replace() + 2 * pointer_change()).max(2 * pointer_replace());
        DQUOTS + intents + steps.max(attr)
    }

    /// A step that may have to carry the intent of one parent pointer.
    pub(super) fn with_parent(&self, overhead: u64, steps: u64, attr: u64) -> u64 {
        if self.inputs.parent { overhead + pointer_change() + steps.max(attr) } else { overhead + steps }
    }

    pub(super) fn link(&self, attr: u64) -> u64 {
        let inodes = self.inodes(2) + self.blocks(self.dirop_blocks());
        self.with_parent(DQUOTS + self.iunlink_remove(), inodes.max(self.finish_efi(1)), attr)
    }

    pub(super) fn remove(&self, attr: u64) -> u64 {
        let inodes = self.inodes(2) + self.blocks(self.dirop_blocks());
        self.with_parent(DQUOTS + self.iunlink_add(), inodes.max(self.finish_efi(2)), attr)
    }

    pub(super) fn icreate_alloc(&self) -> u64 {
        self.sectors(2) + self.sector + self.inode_chunk_alloc() + self.inobt() + self.finobt()
    }

    pub(super) fn icreate(&self, attr: u64) -> u64 {
        let modify = self.inodes(2) + self.sectors(1) + self.block + self.blocks(self.dirop_blocks()) + self.finobt();
        self.with_parent(DQUOTS, self.icreate_alloc().max(modify), attr)
    }

    pub(super) fn ifree(&self) -> u64 {
        DQUOTS
            + self.inodes(1)
            + self.sectors(3)
            + self.iunlink_remove()
            + self.inode_chunk_free()
            + self.inobt()
            + self.finobt()
    }

    pub(super) fn growrtalloc(&self) -> u64 {
        self.sectors(2) + self.blocks(self.bmbt_data()) + self.inodes(1) + self.allocfree(1)
    }

    pub(super) fn growrtfree(&self) -> u64 {
        let summary = low_half(self.inputs.rsumblocks.saturating_mul(self.block));
        self.sectors(1) + self.inodes(2) + self.blocks(1) + self.buffers(1, u64::from(summary))
    }

    pub(super) fn addafork(&self) -> u64 {
        let dir_blocks = 1u64 << self.inputs.dirblklog.min(31);
        DQUOTS
            + self.inodes(1)
            + self.sectors(2)
            + self.buffers(1, self.block * dir_blocks)
            + self.blocks(self.new_extents(dir_blocks, self.bmbt_data()) + 1)
            + self.allocfree(1)
    }

    pub(super) fn attrinval(&self) -> u64 {
        let mapping = self.inodes(1) + self.blocks(self.bmbt_attr());
        mapping.max(self.sectors(9) + self.allocfree(4))
    }

    pub(super) fn attrsetm(&self) -> u64 {
        DQUOTS + self.inodes(1) + self.sectors(1) + self.blocks(DA_DEPTH)
    }

    pub(super) fn attrsetrt(&self) -> u64 {
        self.sectors(1) + self.blocks(self.bmbt_attr())
    }

    pub(super) fn attrrm(&self) -> u64 {
        let joining =
            self.inodes(1) + self.blocks(DA_DEPTH) + self.block * self.bmbt_attr() + self.buffers(self.bmbt_data(), 0);
        DQUOTS + joining.max(self.sectors(5) + self.allocfree(2))
    }
}

/// Blocks that change when a tree of `levels` levels splits to the top.
fn split(levels: u32) -> u64 {
    (2 * u64::from(levels)).saturating_sub(1)
}

/// Intent to add or remove one parent pointer.
fn pointer_change() -> u64 {
    ATTRI_FORMAT + PARENT_REC + NAME_WORDS
}

/// Intent to replace one parent pointer.
fn pointer_replace() -> u64 {
    ATTRI_FORMAT + 2 * (PARENT_REC + NAME_WORDS)
}
