//! An allocation group while it is made: its headers, the roots of its trees, its freelist, kept as the bytes that will
//! stand on disk. Source: `xfs_ag_init_headers` of Linux `fs/xfs/libxfs/xfs_ag.c`.

use crate::error::{Error, Result};
use crate::geometry::AgNumber;
use crate::mkfs::write::leaf::Leaf;
use crate::mkfs::write::shape::{Shape, short_header};
use crate::mkfs::write::space::{Owner, Request};
use crate::mkfs::write::tree::{Kind, Supply, Tree};
use crate::ondisk::btree_block::magic;
use crate::ondisk::rmap_record::owner;
use crate::ondisk::{
    Be32, OnDisk, RawAgf, RawAgfl, RawAgi, RawAllocRecord, RawRmapRecord, RawShortBlock, RawShortBlockV5, crc,
};
use zerocopy::{FromZeros, IntoBytes};

/// No block, no inode.
pub(super) const NULL: u32 = u32::MAX;

/// Magic numbers of the trees of a group, with and without CRC.
struct TreeMagic {
    crc: u32,
    plain: u32,
}

const BNO: TreeMagic = TreeMagic { crc: magic::BNOBT_V5, plain: magic::BNOBT };
const CNT: TreeMagic = TreeMagic { crc: magic::CNTBT_V5, plain: magic::CNTBT };
const INO: TreeMagic = TreeMagic { crc: magic::INOBT_V5, plain: magic::INOBT };
const FINO: TreeMagic = TreeMagic { crc: magic::FINOBT_V5, plain: magic::FINOBT };
const RMAP: TreeMagic = TreeMagic { crc: magic::RMAPBT_V5, plain: 0 };
const REFC: TreeMagic = TreeMagic { crc: magic::REFCOUNTBT_V5, plain: 0 };

/// An allocation group while it is made.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Its number.
    pub agno: u32,
    /// Header of the free space.
    pub agf: RawAgf,
    /// Header of the inodes.
    pub agi: RawAgi,
    /// Slots of the freelist; what is taken out stays in its slot.
    pub agfl: Vec<u32>,
    /// Free space by block.
    pub bno: Leaf,
    /// Free space by size.
    pub cnt: Leaf,
    /// Inodes.
    pub ino: Tree,
    /// Free inodes.
    pub fino: Option<Tree>,
    /// Reverse mappings.
    pub rmap: Option<Tree>,
    /// Reference counts.
    pub refc: Option<Leaf>,
}

impl Group {
    /// Group `agno` as it is first written, before its freelist is filled.
    pub fn new(shape: &Shape, agno: u32) -> Self {
        let roots = shape.roots();
        let root = |magic: &TreeMagic, at: u32| new_root(shape, agno, magic, at);
        let mut group = Group {
            agno,
            agf: new_agf(shape, agno),
            agi: new_agi(shape, agno),
            agfl: vec![NULL; usize::try_from(shape.agfl_size).expect("invariant: a sector's worth")],
            bno: root(&BNO, roots.bno),
            cnt: root(&CNT, roots.cnt),
            ino: tree(shape, Kind::Inode, roots.ino, root(&INO, roots.ino)),
            fino: roots.fino.map(|at| tree(shape, Kind::Inode, at, root(&FINO, at))),
            rmap: roots.rmap.map(|at| {
                let mut leaf = root(&RMAP, at);
                fill_rmap(shape, agno, &mut leaf);
                tree(shape, Kind::Rmap, at, leaf)
            }),
            refc: roots.refc.map(|at| root(&REFC, at)),
        };
        let length = group.agf.length.get();
        fill_free(shape, agno, length, &mut group.bno);
        fill_free(shape, agno, length, &mut group.cnt);
        group
    }

    /// The four headers as they follow each other on disk, one sector each; the first is left zero for the superblock.
    pub fn header_sectors(&mut self, shape: &Shape) -> Vec<u8> {
        let sector = usize::try_from(shape.layout.sector.bytes()).expect("invariant: 32 KiB at most");
        let crcs = shape.layout.features.crc;
        let mut bytes = vec![0; 4 * sector];
        let (_, rest) = bytes.split_at_mut(sector);
        let (agf, rest) = rest.split_at_mut(sector);
        let (agi, agfl) = rest.split_at_mut(sector);
        agf[..RawAgf::SIZE].copy_from_slice(self.agf.as_bytes());
        agi[..RawAgi::SIZE].copy_from_slice(self.agi.as_bytes());
        for (slot, block) in RawAgfl::entries_mut(agfl, crcs).iter_mut().zip(&self.agfl) {
            slot.set(*block);
        }
        if crcs {
            let (head, _) = RawAgfl::prefix_mut(agfl).expect("invariant: a sector is larger than the header");
            head.magicnum.set(RawAgfl::MAGIC);
            head.seqno.set(self.agno);
            head.uuid = *shape.layout.uuid.as_bytes();
            crc::stamp(agf, RawAgf::CRC_OFFSET);
            crc::stamp(agi, RawAgi::CRC_OFFSET);
            crc::stamp(agfl, RawAgfl::CRC_OFFSET);
        }
        bytes
    }

    /// The blocks of the trees with the block of the group where each run of them begins; the first run begins with the root of
    /// free space by block.
    pub fn tree_blocks(&mut self, shape: &Shape) -> Vec<(u32, Vec<u8>)> {
        let roots = shape.roots();
        let mut blocks = vec![(roots.bno, &mut self.bno.block), (roots.cnt, &mut self.cnt.block)];
        for tree in [Some(&mut self.ino), self.fino.as_mut(), self.rmap.as_mut()].into_iter().flatten() {
            blocks.extend(tree.blocks.iter_mut().map(|(&at, block)| (at, block)));
        }
        blocks.extend(roots.refc.zip(self.refc.as_mut().map(|leaf| &mut leaf.block)));
        blocks.sort_unstable_by_key(|&(at, _)| at);
        let mut runs: Vec<(u32, Vec<u8>)> = Vec::new();
        let mut end = None;
        for (at, block) in blocks {
            if shape.layout.features.crc {
                crc::stamp(block, RawShortBlockV5::CRC_OFFSET);
            }
            match runs.last_mut().filter(|_| end == Some(at)) {
                Some((_, run)) => run.extend_from_slice(block),
                None => runs.push((at, block.clone())),
            }
            end = Some(at + 1);
        }
        runs
    }

    /// The next block of the freelist, for a btree.
    pub fn take_from_freelist(&mut self) -> Option<u32> {
        if self.agf.flcount.get() == 0 {
            return None;
        }
        let first = usize::try_from(self.agf.flfirst.get()).ok()?;
        let block = self.agfl.get(first).copied()?;
        let next = if first + 1 == self.agfl.len() { 0 } else { self.agf.flfirst.get() + 1 };
        self.agf.flfirst.set(next);
        self.agf.flcount.set(self.agf.flcount.get() - 1);
        self.agf.btreeblks.set(self.agf.btreeblks.get() + 1);
        Some(block)
    }
}

/// The supply of the btree of reverse mappings: the freelist.
pub(super) struct FromFreelist<'a> {
    /// The group.
    pub group: &'a mut Group,
    /// What it is to be.
    pub shape: &'a Shape,
}

impl Supply for FromFreelist<'_> {
    fn block(&mut self, _near: u32) -> Result<u32> {
        let block = self.group.take_from_freelist();
        let agf = &mut self.group.agf;
        agf.rmap_blocks.set(agf.rmap_blocks.get() + 1);
        block.ok_or_else(|| Error::Internal("making a filesystem: the freelist ran out of blocks".to_string()))
    }

    fn empty(&self, at: u32) -> Vec<u8> {
        new_root(self.shape, self.group.agno, &RMAP, at).block
    }
}

/// The supply of the inode btrees: free space near by.
pub(super) struct FromFreeSpace<'a> {
    /// The group.
    pub group: &'a mut Group,
    /// What it is to be.
    pub shape: &'a Shape,
    /// The btree is that of the free inodes.
    pub free: bool,
    /// Blocks taken so far.
    pub taken: u32,
}

impl Supply for FromFreeSpace<'_> {
    fn block(&mut self, near: u32) -> Result<u32> {
        let mut request = Request::exactly(1);
        let agblocks = self.shape.layout.data.agblocks;
        let owner = Some(Owner::special(owner::INOBT));
        let mut found = None;
        if self.group.prepare(self.shape, &mut request)? {
            found = self.group.allocate_near(self.shape, &request, near, agblocks, owner)?;
        }
        let extent = found.ok_or_else(|| Error::Usage("no space is left for the inode btrees".to_string()))?;
        if self.shape.layout.features.inobtcount {
            let agi = &mut self.group.agi;
            let count = if self.free { &mut agi.fblocks } else { &mut agi.iblocks };
            count.set(count.get() + 1);
        }
        self.taken += 1;
        Ok(extent.start)
    }

    fn empty(&self, at: u32) -> Vec<u8> {
        let magic = if self.free { &FINO } else { &INO };
        new_root(self.shape, self.group.agno, magic, at).block
    }
}

/// A tree whose only block is `leaf`.
fn tree(shape: &Shape, kind: Kind, at: u32, leaf: Leaf) -> Tree {
    let header = usize::try_from(short_header(shape.layout.features.crc)).expect("invariant: small");
    Tree::new(kind, header, at, leaf.block)
}

/// An empty root block.
fn new_root(shape: &Shape, agno: u32, magic: &TreeMagic, at: u32) -> Leaf {
    let crcs = shape.layout.features.crc;
    let size = usize::try_from(shape.block).expect("invariant: 64 KiB at most");
    let mut leaf = Leaf::new(size, usize::try_from(short_header(crcs)).expect("invariant: small"));
    let head = leaf.head_mut();
    *head = RawShortBlock::new_zeroed();
    head.magic.set(if crcs { magic.crc } else { magic.plain });
    head.leftsib.set(NULL);
    head.rightsib.set(NULL);
    if crcs {
        let (head, _) = RawShortBlockV5::prefix_mut(&mut leaf.block).expect("invariant: larger than its header");
        head.blkno.set(shape.daddr(agno, at).0);
        head.uuid = *shape.layout.uuid.as_bytes();
        head.owner.set(agno);
    }
    leaf
}

fn new_agf(shape: &Shape, agno: u32) -> RawAgf {
    let features = &shape.layout.features;
    let roots = shape.roots();
    let length = shape.layout.data.blocks_of(AgNumber(agno));
    let mut agf = RawAgf::new_zeroed();
    agf.magicnum.set(RawAgf::MAGIC);
    agf.versionnum.set(RawAgf::VERSION);
    agf.seqno.set(agno);
    agf.length.set(length);
    agf.bno_root.set(roots.bno);
    agf.cnt_root.set(roots.cnt);
    agf.bno_level.set(1);
    agf.cnt_level.set(1);
    if let Some(at) = roots.rmap {
        agf.rmap_root.set(at);
        agf.rmap_level.set(1);
        agf.rmap_blocks.set(1);
    }
    agf.flfirst.set(1);
    agf.freeblks.set(length - shape.prealloc);
    agf.longest.set(length - shape.prealloc);
    if features.crc {
        agf.uuid = *shape.layout.uuid.as_bytes();
    }
    if let Some(at) = roots.refc {
        agf.refcount_root.set(at);
        agf.refcount_level.set(1);
        agf.refcount_blocks.set(1);
    }
    if let Some(start) = log_start(shape, agno) {
        let blocks = shape.layout.log.blocks;
        agf.freeblks.set(length - shape.prealloc - blocks);
        agf.longest.set(length - start - blocks);
    }
    agf
}

fn new_agi(shape: &Shape, agno: u32) -> RawAgi {
    let features = &shape.layout.features;
    let roots = shape.roots();
    let mut agi = RawAgi::new_zeroed();
    agi.magicnum.set(RawAgi::MAGIC);
    agi.versionnum.set(RawAgi::VERSION);
    agi.seqno.set(agno);
    agi.length.set(shape.layout.data.blocks_of(AgNumber(agno)));
    agi.root.set(roots.ino);
    agi.level.set(1);
    agi.newino.set(NULL);
    agi.dirino.set(NULL);
    if features.crc {
        agi.uuid = *shape.layout.uuid.as_bytes();
    }
    if let Some(at) = roots.fino {
        agi.free_root.set(at);
        agi.free_level.set(1);
    }
    agi.unlinked = [Be32::new(NULL); 64];
    if features.inobtcount {
        agi.iblocks.set(1);
        agi.fblocks.set(u32::from(features.finobt));
    }
    agi
}

/// The block of the group where the log begins, if it lies there.
fn log_start(shape: &Shape, agno: u32) -> Option<u32> {
    shape.internal_log().filter(|(log, _)| log.0 == agno).map(|(_, start)| start.0)
}

/// Free space of a new group: all behind the roots, around an internal log.
fn fill_free(shape: &Shape, agno: u32, length: u32, leaf: &mut Leaf) {
    let record =
        |start: u32, blocks: u32| RawAllocRecord { startblock: Be32::new(start), blockcount: Be32::new(blocks) };
    let mut start = shape.prealloc;
    let mut count = 0;
    if let Some(log) = log_start(shape, agno) {
        if log != start {
            leaf.set(0, &record(start, log - start));
            count = 1;
        }
        start = log + shape.layout.log.blocks;
    }
    // a record of no blocks is written, but does not count
    leaf.set(count, &record(start, length - start));
    leaf.set_len(count + usize::from(length > start));
}

/// Reverse mappings of a new group.
fn fill_rmap(shape: &Shape, agno: u32, leaf: &mut Leaf) {
    let roots = shape.roots();
    let rmap = roots.rmap.expect("invariant: called for groups with reverse mappings");
    let mut add = |start: u32, blocks: u32, owner: u64| {
        let record = RawRmapRecord {
            startblock: Be32::new(start),
            blockcount: Be32::new(blocks),
            owner: owner.into(),
            offset: 0.into(),
        };
        leaf.insert(leaf.len(), &record);
    };
    add(0, roots.bno, owner::FS);
    add(roots.bno, 2, owner::AG);
    add(roots.ino, rmap - roots.ino, owner::INOBT);
    add(rmap, 1, owner::AG);
    if let Some(at) = roots.refc {
        add(at, 1, owner::REFC);
    }
    if let Some(start) = log_start(shape, agno) {
        add(start, shape.layout.log.blocks, owner::LOG);
    }
}
