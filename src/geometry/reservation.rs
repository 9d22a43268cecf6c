//! How much log each kind of transaction reserves.
//!
//! Pure functions of the superblock's numbers, so that a formatter can ask before there is a superblock. The rules are
//! those of Linux `xfs_trans_resv.c`; what counts here is to get the very same numbers, since the kernel refuses a log
//! that is smaller than they ask for.

use super::Geometry;
use super::btree_levels::{BtreeKind, BtreeLevels, LevelInputs};
use super::limits::MIN_INODESIZE;
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

/// The numbers and features that reservations depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservationInputs {
    /// Logarithm of the block size in bytes.
    pub blocklog: u8,
    /// Sector size of the data device in bytes.
    pub sectsize: u32,
    /// Inode size in bytes.
    pub inodesize: u32,
    /// Logarithm of the directory block size in filesystem blocks.
    pub dirblklog: u8,
    /// Blocks of an allocation group.
    pub agblocks: u32,
    /// Logarithm of `agblocks`, rounded up.
    pub agblklog: u8,
    /// Blocks of the data device.
    pub dblocks: u64,
    /// Alignment of inode chunks in blocks (`sb.inoalignmt`).
    pub inoalignmt: u32,
    /// Version 5 (`crc=1`).
    pub crc: bool,
    /// There is a btree of free inodes.
    pub finobt: bool,
    /// There is a reverse mapping btree.
    pub rmapbt: bool,
    /// There is a reference count btree.
    pub reflink: bool,
    /// Large extent counts.
    pub nrext64: bool,
    /// Parent pointers.
    pub parent: bool,
    /// Metadata directory, and with it realtime groups.
    pub metadir: bool,
    /// The realtime device is zoned.
    pub zoned: bool,
    /// Blocks of the realtime device; 0 without.
    pub rblocks: u64,
    /// Blocks of a realtime extent.
    pub rextsize: u32,
    /// Extents of a realtime group; 0 without groups.
    pub rgextents: u32,
    /// Blocks of the realtime summary. The kernel counts them; xfsprogs computes its reservations with 0.
    pub rsumblocks: u64,
    /// Version 2 of the log.
    pub logv2: bool,
    /// Stripe unit of the log in bytes; 0 or 1 without.
    pub logsunit: u32,
}

impl ReservationInputs {
    /// Those of a filesystem. The realtime summary is left out, as in xfsprogs.
    pub fn of(geometry: &Geometry) -> Self {
        let features = &geometry.features;
        let log = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
        ReservationInputs {
            blocklog: log(geometry.blocklog),
            sectsize: geometry.sectsize,
            inodesize: geometry.inodes.size,
            dirblklog: log(geometry.directory.blklog - geometry.blocklog),
            agblocks: geometry.agblocks,
            agblklog: log(geometry.agblklog),
            dblocks: geometry.dblocks,
            inoalignmt: geometry.inodes.chunk_align,
            crc: features.has_crc(),
            finobt: features.has_finobt(),
            rmapbt: features.has_rmapbt(),
            reflink: features.has_reflink(),
            nrext64: features.has_nrext64(),
            parent: features.has_parent(),
            metadir: features.has_metadir(),
            zoned: features.has_zoned(),
            rblocks: geometry.realtime.blocks,
            rextsize: geometry.realtime.extent_blocks,
            rgextents: geometry.realtime.groups.map_or(0, |groups| groups.extents),
            rsumblocks: 0,
            logv2: features.has_logv2(),
            logsunit: geometry.log.stripe_unit,
        }
    }

    /// Block size in bytes.
    pub fn blocksize(&self) -> u32 {
        1u32.checked_shl(u32::from(self.blocklog)).unwrap_or(0)
    }

    /// There is a realtime section.
    fn realtime(&self) -> bool {
        self.rblocks > 0
    }

    /// The most levels that each btree can have.
    pub fn levels(&self) -> BtreeLevels {
        let inopblog = u32::from(self.blocklog).saturating_sub(self.inodesize.max(1).ilog2());
        BtreeLevels::new(&LevelInputs {
            blocksize: self.blocksize(),
            agblocks: self.agblocks,
            agino_log: inopblog + u32::from(self.agblklog),
            dblocks: self.dblocks,
            crc: self.crc,
            rmapbt: self.rmapbt,
            reflink: self.reflink,
            nrext64: self.nrext64,
            rtgroups: self.metadir && self.realtime(),
            rgblocks: u64::from(self.rgextents) * u64::from(self.rextsize),
            rgextents: u64::from(self.rgextents),
        })
    }
}

/// What one kind of transaction reserves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    /// Bytes of log for one step.
    pub logres: u32,
    /// Steps that are reserved together; 0 and 1 both mean one.
    pub logcount: u32,
    /// The reservation can be renewed between steps.
    pub permanent: bool,
}

impl Reservation {
    fn once(logres: u64) -> Self {
        Reservation { logres: low_half(logres), logcount: 0, permanent: false }
    }

    fn counted(logres: u64, logcount: u32) -> Self {
        Reservation { logres: low_half(logres), logcount, permanent: false }
    }

    fn permanent(logres: u64, logcount: u32) -> Self {
        Reservation { logres: low_half(logres), logcount, permanent: true }
    }
}

/// The kernel computes in 32 bits and wraps.
#[allow(clippy::cast_possible_truncation)] // the lower half is what is asked for
fn low_half(value: u64) -> u32 {
    value as u32
}

macro_rules! reservations {
    ($( $(#[$meta:meta])* $name:ident, )*) => {
        /// The reservation of every kind of transaction, in the kernel's order.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Reservations {
            $( $(#[$meta])* pub $name: Reservation, )*
        }

        impl Reservations {
            /// Every kind by its name, in the kernel's order.
            pub fn all(&self) -> Vec<(&'static str, Reservation)> {
                vec![$( (stringify!($name), self.$name), )*]
            }
        }
    };
}

reservations! {
    /// Allocation of extents for a write.
    write,
    /// Truncation.
    itruncate,
    /// Rename.
    rename,
    /// Link.
    link,
    /// Removal of a name.
    remove,
    /// Creation of a symbolic link.
    symlink,
    /// Creation of a file.
    create,
    /// Creation of a file without a name.
    create_tmpfile,
    /// Creation of a directory.
    mkdir,
    /// Freeing of an inode.
    ifree,
    /// Change of an inode.
    ichange,
    /// Growth of the data section.
    growdata,
    /// Addition of an attribute fork.
    addafork,
    /// Clearing of the set-id bits after a write.
    writeid,
    /// Removal of an attribute fork.
    attrinval,
    /// Setting of an attribute: the part known at mount.
    attrsetm,
    /// Setting of an attribute: the part for each block.
    attrsetrt,
    /// Removal of an attribute.
    attrrm,
    /// Clearing of a bucket of unlinked inodes.
    clearagi,
    /// Growth of the realtime section: allocation.
    growrtalloc,
    /// Growth of the realtime section: zeroing.
    growrtzero,
    /// Growth of the realtime section: freeing.
    growrtfree,
    /// Change of quota limits.
    qm_setqlim,
    /// Allocation of a quota block.
    qm_dqalloc,
    /// Change of the superblock.
    sb,
    /// Timestamps at a sync.
    fsyncts,
    /// End of an atomic write.
    atomic_ioend,
}

/// Space that a logged buffer needs beside its contents: op header and format structure, rounded up.
const BUFFER_OVERHEAD: u64 = 128;
/// Header of one operation in the log.
pub(super) const OP_HEADER: u64 = size_of::<RawLogOpHeader>() as u64;
/// Format structure of a logged inode.
const INODE_FORMAT: u64 = size_of::<RawInodeLogFormat64<LittleEndian>>() as u64;
/// A dquot as stored.
const DISK_DQUOT: u64 = size_of::<RawDiskDquot>() as u64;
/// Six dquots (user, group and project, before and after), each with its format structure.
const DQUOTS: u64 = (size_of::<RawDquotLogFormat<LittleEndian>>() as u64 + DISK_DQUOT) * 6;
/// Format structure of an attribute intent.
const ATTRI_FORMAT: u64 = size_of::<RawAttriLogFormat<LittleEndian>>() as u64;
/// A parent record.
const PARENT_REC: u64 = size_of::<RawParentRec>() as u64;
/// The longest name, rounded up to whole words.
const NAME_WORDS: u64 = (MAXNAMELEN as u64).next_multiple_of(4);
/// The longest target of a symbolic link.
const SYMLINK_MAX: u64 = SYMLINK_MAXLEN as u64;
/// The deepest tree of directory or attribute blocks.
pub(super) const DA_DEPTH: u64 = DA_NODE_MAXDEPTH as u64;
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
pub(super) enum Purpose {
    Running,
    MinimumLog,
}

/// The inputs with what follows from them; every function is one formula of `xfs_trans_resv.c`.
pub(super) struct Formulas<'a> {
    pub(super) inputs: &'a ReservationInputs,
    pub(super) levels: BtreeLevels,
    pub(super) block: u64,
    sector: u64,
}

impl<'a> Formulas<'a> {
    pub(super) fn new(inputs: &'a ReservationInputs, levels: BtreeLevels) -> Self {
        Formulas { inputs, levels, block: u64::from(inputs.blocksize()), sector: u64::from(inputs.sectsize) }
    }

    fn buffers(&self, count: u64, size: u64) -> u64 {
        count.saturating_mul(size.saturating_add(BUFFER_OVERHEAD))
    }

    fn blocks(&self, count: u64) -> u64 {
        self.buffers(count, self.block)
    }

    fn sectors(&self, count: u64) -> u64 {
        self.buffers(count, self.sector)
    }

    /// Blocks of the space trees that change when `ops` extents are allocated or freed.
    fn allocfree_blocks(&self, ops: u64) -> u64 {
        let alloc = ops * 2 * split(self.levels.alloc);
        if self.inputs.rmapbt { alloc + ops * split(self.levels.rmapbt) } else { alloc }
    }

    fn allocfree(&self, ops: u64) -> u64 {
        self.blocks(self.allocfree_blocks(ops))
    }

    /// Inodes are logged with the longer header that btree roots have in memory.
    fn inodes(&self, count: u64) -> u64 {
        let root = u64::from(BtreeKind::Bmbt.sizes(self.inputs.crc).header);
        count * (4 * OP_HEADER + INODE_FORMAT + u64::from(self.inputs.inodesize) + 2 * root)
    }

    fn inobt(&self) -> u64 {
        self.blocks(u64::from(self.levels.inobt)) + self.allocfree(1)
    }

    fn finobt(&self) -> u64 {
        if self.inputs.finobt { self.inobt() } else { 0 }
    }

    /// Blocks of an inode chunk.
    fn chunk_blocks(&self) -> u64 {
        let per_block = self.block / u64::from(self.inputs.inodesize.max(1));
        u64::from(INODES_PER_CHUNK).max(per_block) / per_block.max(1)
    }

    /// On v5 a new chunk is logged as one item and not as buffers; a freed one needs the headers alone.
    fn inode_chunk_alloc(&self) -> u64 {
        if self.inputs.crc { self.allocfree(1) } else { self.allocfree(1) + self.blocks(self.chunk_blocks()) }
    }

    fn inode_chunk_free(&self) -> u64 {
        self.allocfree(1) + self.buffers(self.chunk_blocks(), 0)
    }

    /// Size of an inode cluster in bytes; v5 has larger ones for larger inodes where the alignment allows it.
    fn cluster_size(&self) -> u64 {
        let scaled = CLUSTER_SIZE * (u64::from(self.inputs.inodesize) / MIN_INODE);
        let fits = u64::from(self.inputs.inoalignmt) >= scaled / self.block.max(1);
        let size = if self.inputs.crc && fits { scaled } else { CLUSTER_SIZE };
        if size > self.block { size / self.block.max(1) * self.block } else { self.block }
    }

    fn rtalloc_blocks(&self, ops: u64) -> u64 {
        let extents = MAX_EXTLEN / u64::from(self.inputs.rextsize.max(1));
        let bytes = if self.inputs.metadir { self.block.saturating_sub(RTBUF_HEADER) } else { self.block };
        let bitmap = if self.inputs.zoned { 0 } else { extents.div_ceil((bytes * 8).max(1)) };
        let owners = if self.inputs.rmapbt { ops * split(self.levels.rtrmapbt) } else { 0 };
        ((bitmap + 1) * ops).max(owners)
    }

    fn bmbt_data(&self) -> u64 {
        u64::from(self.levels.bmbt_data)
    }

    fn bmbt_attr(&self) -> u64 {
        u64::from(self.levels.bmbt_attr)
    }

    fn refcount_splits(&self, ops: u64) -> u64 {
        self.blocks(ops * split(self.levels.refcountbt))
    }

    pub(super) fn finish_cui(&self, ops: u64) -> u64 {
        if self.inputs.reflink { self.sectors(ops) + self.refcount_splits(ops) } else { 0 }
    }

    fn finish_rt_cui(&self, ops: u64) -> u64 {
        if self.inputs.metadir && self.inputs.realtime() && self.inputs.reflink {
            self.inodes(1) + self.blocks(ops * split(self.levels.rtrefcountbt))
        } else {
            0
        }
    }

    fn refcountbt(&self, ops: u64) -> u64 {
        self.finish_cui(ops).max(self.finish_rt_cui(ops))
    }

    pub(super) fn finish_efi(&self, ops: u64) -> u64 {
        self.sectors(2 * ops + 1) + self.allocfree(ops)
    }

    fn finish_rt_efi(&self, ops: u64) -> u64 {
        if !self.inputs.realtime() {
            return 0;
        }
        self.sectors(2 * ops + 1) + self.blocks(self.rtalloc_blocks(ops)) + self.allocfree(ops)
    }

    pub(super) fn finish_rui(&self, ops: u64) -> u64 {
        if self.inputs.rmapbt { self.finish_efi(ops) } else { 0 }
    }

    pub(super) fn finish_bui(&self) -> u64 {
        self.inodes(1) + DQUOTS + self.blocks(self.bmbt_data() + 1)
    }

    pub(super) fn write(&self, purpose: Purpose) -> u64 {
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

    pub(super) fn itruncate(&self, purpose: Purpose) -> u64 {
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

    pub(super) fn qm_dqalloc(&self, purpose: Purpose) -> u64 {
        self.write(purpose) + self.buffers(1, self.block.saturating_sub(1))
    }

    /// Blocks of a directory operation: the tree, data and free blocks, and the mappings of each.
    fn dirop_blocks(&self) -> u64 {
        let per_block = 1u64 << self.inputs.dirblklog.min(31);
        let blocks = per_block * (DA_DEPTH + 2);
        let mappings = (DA_DEPTH + 2) * self.new_extents(per_block, self.bmbt_data());
        blocks + mappings + 1
    }

    /// Blocks of the extent tree that may split when `count` extents are added to a fork of `levels` levels.
    pub(super) fn new_extents(&self, count: u64, levels: u64) -> u64 {
        let most = BtreeKind::Bnobt.maxrecs(self.inputs.blocksize(), self.inputs.crc, true);
        let per_block = u64::from(most - most / 2).max(1);
        count.div_ceil(per_block) * (levels - 1)
    }

    fn iunlink_add(&self) -> u64 {
        self.sectors(1) + self.cluster_size()
    }

    fn iunlink_remove(&self) -> u64 {
        self.sectors(1) + 2 * self.cluster_size()
    }

    fn rename(&self, attr: u64) -> u64 {
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
    fn with_parent(&self, overhead: u64, steps: u64, attr: u64) -> u64 {
        if self.inputs.parent { overhead + pointer_change() + steps.max(attr) } else { overhead + steps }
    }

    fn link(&self, attr: u64) -> u64 {
        let inodes = self.inodes(2) + self.blocks(self.dirop_blocks());
        self.with_parent(DQUOTS + self.iunlink_remove(), inodes.max(self.finish_efi(1)), attr)
    }

    fn remove(&self, attr: u64) -> u64 {
        let inodes = self.inodes(2) + self.blocks(self.dirop_blocks());
        self.with_parent(DQUOTS + self.iunlink_add(), inodes.max(self.finish_efi(2)), attr)
    }

    fn icreate_alloc(&self) -> u64 {
        self.sectors(2) + self.sector + self.inode_chunk_alloc() + self.inobt() + self.finobt()
    }

    fn icreate(&self, attr: u64) -> u64 {
        let modify = self.inodes(2) + self.sectors(1) + self.block + self.blocks(self.dirop_blocks()) + self.finobt();
        self.with_parent(DQUOTS, self.icreate_alloc().max(modify), attr)
    }

    fn ifree(&self) -> u64 {
        DQUOTS
            + self.inodes(1)
            + self.sectors(3)
            + self.iunlink_remove()
            + self.inode_chunk_free()
            + self.inobt()
            + self.finobt()
    }

    fn growrtalloc(&self) -> u64 {
        self.sectors(2) + self.blocks(self.bmbt_data()) + self.inodes(1) + self.allocfree(1)
    }

    fn growrtfree(&self) -> u64 {
        let summary = low_half(self.inputs.rsumblocks.saturating_mul(self.block));
        self.sectors(1) + self.inodes(2) + self.blocks(1) + self.buffers(1, u64::from(summary))
    }

    fn addafork(&self) -> u64 {
        let dir_blocks = 1u64 << self.inputs.dirblklog.min(31);
        DQUOTS
            + self.inodes(1)
            + self.sectors(2)
            + self.buffers(1, self.block * dir_blocks)
            + self.blocks(self.new_extents(dir_blocks, self.bmbt_data()) + 1)
            + self.allocfree(1)
    }

    fn attrinval(&self) -> u64 {
        let mapping = self.inodes(1) + self.blocks(self.bmbt_attr());
        mapping.max(self.sectors(9) + self.allocfree(4))
    }

    fn attrsetm(&self) -> u64 {
        DQUOTS + self.inodes(1) + self.sectors(1) + self.blocks(DA_DEPTH)
    }

    fn attrsetrt(&self) -> u64 {
        self.sectors(1) + self.blocks(self.bmbt_attr())
    }

    fn attrrm(&self) -> u64 {
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

impl Reservations {
    /// The reservations of a filesystem of these numbers.
    pub fn new(inputs: &ReservationInputs) -> Self {
        Self::with(&Formulas::new(inputs, inputs.levels()))
    }

    pub(super) fn with(formulas: &Formulas<'_>) -> Self {
        let mut resv = Self::base(formulas);
        resv.namespace(formulas);
        let inputs = formulas.inputs;
        // one more step for each kind of deferred operation
        let deferred =
            u32::from(inputs.reflink || inputs.rmapbt) + u32::from(inputs.reflink) + u32::from(inputs.rmapbt);
        resv.itruncate.logcount += deferred;
        resv.write.logcount += deferred;
        resv.qm_dqalloc.logcount += deferred;
        resv.atomic_ioend = resv.itruncate;
        resv
    }

    fn base(formulas: &Formulas<'_>) -> Self {
        let permanent = Reservation::permanent;
        Reservations {
            write: permanent(formulas.write(Purpose::Running), 2),
            itruncate: permanent(formulas.itruncate(Purpose::Running), 2),
            create_tmpfile: permanent(DQUOTS + formulas.icreate_alloc() + formulas.iunlink_add(), 2),
            ifree: permanent(formulas.ifree(), 2),
            addafork: permanent(formulas.addafork(), 2),
            attrinval: permanent(formulas.attrinval(), 1),
            attrsetm: permanent(formulas.attrsetm(), 3),
            attrrm: permanent(formulas.attrrm(), 3),
            growrtalloc: permanent(formulas.growrtalloc(), 2),
            qm_dqalloc: permanent(formulas.qm_dqalloc(Purpose::Running), 2),
            growdata: permanent(formulas.sectors(3) + formulas.allocfree(1), 2),
            qm_setqlim: Reservation::counted(formulas.buffers(1, DISK_DQUOT), 1),
            sb: Reservation::counted(formulas.sectors(1), 1),
            ichange: Reservation::once(DQUOTS + formulas.inodes(1) + formulas.sectors(1)),
            fsyncts: Reservation::once(formulas.inodes(1)),
            writeid: Reservation::once(formulas.inodes(1)),
            attrsetrt: Reservation::once(formulas.attrsetrt()),
            clearagi: Reservation::once(formulas.sectors(1)),
            growrtzero: Reservation::once(formulas.blocks(1)),
            growrtfree: Reservation::once(formulas.growrtfree()),
            ..Reservations::default()
        }
    }

    /// Changes of directories; with parent pointers they carry a change of attributes.
    fn namespace(&mut self, formulas: &Formulas<'_>) {
        let (set, remove) = (u64::from(self.attrsetm.logres), u64::from(self.attrrm.logres));
        let (mut set_steps, mut remove_steps) = (self.attrsetm.logcount, self.attrrm.logcount);
        if !formulas.inputs.parent {
            (set_steps, remove_steps) = (0, 0);
        }
        let permanent = Reservation::permanent;
        self.rename = permanent(formulas.rename(set.max(remove)), 2 + set_steps.max(remove_steps));
        self.link = permanent(formulas.link(set), 2 + set_steps);
        self.remove = permanent(formulas.remove(remove), 2 + remove_steps);
        self.create = permanent(formulas.icreate(set), 2 + set_steps);
        self.mkdir = permanent(formulas.icreate(set), 3 + set_steps);
        self.symlink = permanent(formulas.icreate(set) + formulas.buffers(1, SYMLINK_MAX), 3 + set_steps);
    }
}
