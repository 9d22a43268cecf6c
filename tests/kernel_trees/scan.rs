//! Every metadata block of a filesystem, read through the cache, and the records of every btree.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use xfskit::btree::{ForkContents, Step, Tree, Visit, walk};
use xfskit::buffer::{BlockCache, BlockKind, Fragment, Owner, Request, Verifier};
use xfskit::device::{Device, FileDevice, OpenFile};
use xfskit::error::{Corruption, DeviceRole, Result};
use xfskit::geometry::{AgBlock, AgNumber, BtreeKind, Daddr, FsBlock, Geometry, Ino};
use xfskit::ondisk::attr_leaf::{AttrLeaf, AttrLeafValue};
use xfskit::ondisk::da_block::DaNode;
use xfskit::ondisk::dinode::{format, metatype};
use xfskit::ondisk::{
    Extent, InodeChunk, OnDisk, RawDinode, RawExtent, RawInobtRecord, RawSparseInobtRecord, RawSuperblock,
};

use crate::dump;

/// The records of one btree.
pub struct Records {
    /// How xfs_db gets there.
    pub commands: Vec<String>,
    pub records: Vec<String>,
}

/// What was found in a filesystem.
#[derive(Default)]
pub struct Found {
    pub blocks: u64,
    pub inodes: u64,
    pub trees: Vec<Records>,
    pub failures: Vec<Corruption>,
}

/// The first block of each kind, written to a folder: `KIND.bin`, and a line each in `index` with kind, address, owner
/// and level.
struct Keeper {
    folder: std::path::PathBuf,
    seen: Vec<String>,
}

impl Keeper {
    fn keep(&mut self, request: &Request, bytes: &[u8]) {
        let level = request.level.map_or("-".to_owned(), |level| level.to_string());
        let name = match request.kind {
            BlockKind::Btree(kind) => format!("{kind:?}-{level}"),
            // nodes and leaves
            BlockKind::DirHash | BlockKind::AttrHash => format!("{:?}-{:02x}{:02x}", request.kind, bytes[8], bytes[9]),
            kind => format!("{kind:?}"),
        };
        if self.seen.contains(&name) {
            return;
        }
        let owner = if let Owner::Inode(ino) = request.owner { ino.to_string() } else { "-".to_owned() };
        let line = format!("{name} {} {owner} {level}\n", request.daddr());
        std::fs::write(self.folder.join(format!("{name}.bin")), bytes).expect("a folder that can be written");
        let index = self.folder.join("index");
        let before = std::fs::read_to_string(&index).unwrap_or_default();
        std::fs::write(index, before + &line).expect("a folder that can be written");
        self.seen.push(name);
    }
}

struct Scan {
    keeper: Option<Keeper>,
    cache: BlockCache,
    geometry: Geometry,
    found: Found,
}

pub fn scan(data: &Path, realtime: Option<&Path>) -> Result<Found> {
    let device = FileDevice::open(data, OpenFile::READ)?;
    let mut sector = [0; 512];
    device.read_at(0, &mut sector)?;
    let (sb, _) = RawSuperblock::prefix(&sector).expect("512 bytes hold a superblock");
    let geometry = match Geometry::from_superblock(sb) {
        Ok(geometry) => geometry,
        Err(verdict) => return Ok(Found { failures: verdict.failures().to_vec(), ..Found::default() }),
    };
    let mut cache = BlockCache::new(Verifier::new(geometry.clone()), Arc::new(device), 8 << 20);
    if let Some(realtime) = realtime {
        cache = cache.with_realtime(Arc::new(FileDevice::open(realtime, OpenFile::READ.on(DeviceRole::Realtime))?));
    }
    let keeper =
        std::env::var_os("XFSKIT_KEEP_BLOCKS").map(|folder| Keeper { folder: folder.into(), seen: Vec::new() });
    let mut scan = Scan { keeper, cache, geometry, found: Found::default() };
    if scan.geometry.features.has_rtsb() && realtime.is_some() {
        scan.block(Request::new(&scan.geometry, BlockKind::RtSuperblock, Daddr(0)))?;
    }
    for agno in scan.geometry.ag_numbers() {
        scan.group(agno)?;
    }
    Ok(scan.found)
}

/// Inode numbers that a chunk has blocks for.
fn inodes_of(chunk: &InodeChunk) -> impl Iterator<Item = u32> {
    let (mask, first) = (chunk.allocated_mask(), chunk.startino);
    (0..64).filter(move |bit| mask & 1 << bit != 0).map(move |bit| first + bit)
}

impl Scan {
    fn block(&mut self, request: Request) -> Result<Vec<u8>> {
        let block = self.cache.read(request)?;
        self.found.blocks += 1;
        if let Some(keeper) = &mut self.keeper {
            keeper.keep(block.request(), block.bytes());
        }
        self.found.failures.extend_from_slice(block.verdict().failures());
        Ok(block.bytes().to_vec())
    }

    fn group(&mut self, agno: AgNumber) -> Result<()> {
        for kind in [BlockKind::Superblock, BlockKind::Agf, BlockKind::Agi, BlockKind::Agfl] {
            let block = self.cache.read_header(kind, agno)?;
            self.found.blocks += 1;
            if let Some(keeper) = &mut self.keeper {
                keeper.keep(block.request(), block.bytes());
            }
            self.found.failures.extend_from_slice(block.verdict().failures());
        }
        let (Ok(agf), Ok(agi)) = (self.cache.agf(agno), self.cache.agi(agno)) else { return Ok(()) };
        let features = self.geometry.features;
        let mut inodes = Vec::new();
        let trees = [
            (BtreeKind::Bnobt, true, "agf", "bnoroot", agf.bno_root, agf.bno_level),
            (BtreeKind::Cntbt, true, "agf", "cntroot", agf.cnt_root, agf.cnt_level),
            (BtreeKind::Rmapbt, features.has_rmapbt(), "agf", "rmaproot", agf.rmap_root, agf.rmap_level),
            (BtreeKind::Refcountbt, features.has_reflink(), "agf", "refcntroot", agf.refcount_root, agf.refcount_level),
            (BtreeKind::Inobt, true, "agi", "root", agi.root, agi.level),
            (BtreeKind::Finobt, features.has_finobt(), "agi", "free_root", agi.free_root, agi.free_level),
        ];
        for (kind, _, header, field, root, level) in trees.into_iter().filter(|tree| tree.1) {
            let tree = Tree::of_group(kind, agno, AgBlock(root.get()), level.get());
            let commands = vec![format!("{header} {agno}"), format!("addr {field}")];
            let records = self.tree(&tree, commands)?;
            if kind == BtreeKind::Inobt {
                inodes = records;
            }
        }
        for record in inodes {
            let chunk = if features.has_sparseinodes() {
                RawSparseInobtRecord::prefix(&record).expect("16 bytes").0.decode()
            } else {
                RawInobtRecord::prefix(&record).expect("16 bytes").0.decode()
            };
            for agino in inodes_of(&chunk) {
                let ino = self.geometry.ino(agno, xfskit::geometry::AgIno(agino)).expect("inside");
                self.inode(ino)?;
            }
        }
        Ok(())
    }

    fn tree(&mut self, tree: &Tree<'_>, commands: Vec<String>) -> Result<Vec<Vec<u8>>> {
        let mut records = Vec::new();
        let keeper = &mut self.keeper;
        let walked = walk(&self.cache, tree, 1 << 20, &mut |visit| {
            match (visit, &mut *keeper) {
                (Visit::Record { record, .. }, _) => records.push(record.to_vec()),
                (Visit::Block { block, .. }, Some(keeper)) => keeper.keep(block.request(), block.bytes()),
                _ => {}
            }
            Ok(Step::Continue)
        })?;
        self.found.blocks += walked.blocks;
        self.found.failures.extend_from_slice(walked.verdict.failures());
        let records_printed = records.iter().map(|record| dump::print(&self.geometry, tree.kind, record)).collect();
        self.found.trees.push(Records { commands, records: records_printed });
        Ok(records)
    }

    fn inode(&mut self, ino: Ino) -> Result<()> {
        let (bytes, verdict) = self.cache.read_inode(ino)?;
        if let (Some(keeper), Some(daddr)) =
            (&mut self.keeper, self.geometry.ino_fsb(ino).and_then(|fsb| self.geometry.fsb_daddr(fsb)))
        {
            let block = self.cache.read(Request::of_len(BlockKind::InodeCluster, daddr, self.geometry.blocksize))?;
            keeper.keep(block.request(), block.bytes());
        }
        self.found.inodes += 1;
        self.found.failures.extend_from_slice(verdict.failures());
        let (raw, _) = RawDinode::prefix(&bytes).expect("256 bytes");
        let literal = raw.core.literal_offset();
        let split = match raw.core.fork_offset() {
            0 => bytes.len(),
            offset => literal + offset,
        };
        let (data_fork, attr_fork) = (&bytes[literal..split], &bytes[split..]);
        if raw.core.mode.get() == 0 {
            return Ok(());
        }
        let realtime = raw.core.flags.get() & 1 != 0;
        let fork = if realtime { ForkContents::Realtime } else { ForkContents::Data };
        let extents = self.extents(ino, raw.core.format, fork, data_fork, raw.data_extents())?;
        if raw.core.format == format::META_BTREE {
            let kind =
                if raw.core.metatype.get() == metatype::RTRMAP { BtreeKind::Rtrmapbt } else { BtreeKind::Rtrefcountbt };
            let tree = Tree::of_fork(kind, ino, ForkContents::Data, data_fork);
            self.tree(&tree, vec![format!("inode {ino}")])?;
        }
        match raw.core.mode.get() & 0o170_000 {
            0o040_000 => self.directory(ino, &extents)?,
            0o120_000 => self.pieces(ino, BlockKind::Symlink, &extents)?,
            _ => self.metadata_file(ino, raw, &extents)?,
        }
        if raw.core.forkoff != 0 {
            let aformat = u8::try_from(raw.core.aformat).unwrap_or(u8::MAX);
            let extents =
                self.extents(ino, aformat, ForkContents::Attributes, attr_fork, u64::from(raw.attr_extents()))?;
            self.attributes(ino, &extents)?;
        }
        Ok(())
    }

    fn extents(&mut self, ino: Ino, form: u8, fork: ForkContents, bytes: &[u8], count: u64) -> Result<Vec<Extent>> {
        let raw = match form {
            format::EXTENTS => bytes
                .chunks_exact(RawExtent::SIZE)
                .take(usize::try_from(count).expect("few"))
                .map(<[u8]>::to_vec)
                .collect(),
            format::BTREE => {
                let tree = Tree::of_fork(BtreeKind::Bmbt, ino, fork, bytes);
                let mut commands = vec![format!("inode {ino}")];
                if fork == ForkContents::Attributes {
                    // btdump prints the tree of the data fork alone
                    commands.clear();
                }
                let records = self.tree(&tree, commands)?;
                if fork == ForkContents::Attributes {
                    self.found.trees.pop();
                }
                records
            }
            _ => Vec::new(),
        };
        let extents: Vec<Extent> =
            raw.iter().map(|record| RawExtent::prefix(record).expect("16 bytes").0.decode()).collect();
        assert_eq!(extents.len() as u64 * u64::from(matches!(form, 2 | 3)), count * u64::from(matches!(form, 2 | 3)));
        Ok(extents)
    }

    fn daddr(&self, block: u64) -> Daddr {
        self.geometry.fsb_daddr(FsBlock(block)).expect("checked before")
    }

    /// Blocks of a file by their number.
    fn blocks_of(extents: &[Extent]) -> BTreeMap<u64, u64> {
        let blocks = |extent: &Extent| {
            let extent = *extent;
            (0..u64::from(extent.blockcount)).map(move |at| (extent.startoff + at, extent.startblock + at))
        };
        extents.iter().flat_map(blocks).collect()
    }

    fn directory(&mut self, ino: Ino, extents: &[Extent]) -> Result<()> {
        let blocks = Self::blocks_of(extents);
        let geometry = self.geometry.directory;
        let per_block = u64::from(geometry.fsbcount);
        let count = |range: std::ops::Range<u64>| blocks.range(range).count() as u64 / per_block;
        let (leaf, free, end) = (geometry.leaf_start.0, geometry.free_start.0, geometry.end.0);
        let (leaves, frees) = (count(leaf..free), count(free..end));
        for &start in blocks.keys().filter(|at| *at % per_block == 0) {
            let kind = match start {
                at if at >= free => BlockKind::DirFree,
                at if at >= leaf && frees == 0 && leaves == 1 => BlockKind::DirLeaf1,
                at if at >= leaf => BlockKind::DirHash,
                _ if leaves == 0 => BlockKind::DirBlock,
                _ => BlockKind::DirData,
            };
            let fragment = |at: u64| Fragment { daddr: self.daddr(blocks[&at]), len: self.geometry.blocksize };
            let fragments = (start..start + per_block).map(fragment).collect();
            self.block(Request::of_fragments(kind, fragments).of_inode(ino))?;
        }
        Ok(())
    }

    /// Files whose every block, or every extent of a link, is a structure.
    fn pieces(&mut self, ino: Ino, kind: BlockKind, extents: &[Extent]) -> Result<()> {
        for extent in extents {
            let step = if kind == BlockKind::Symlink { u64::from(extent.blockcount) } else { 1 };
            let len = u32::try_from(step).expect("short") * self.geometry.blocksize;
            for at in (0..u64::from(extent.blockcount)).step_by(usize::try_from(step).expect("short")) {
                let daddr = self.daddr(extent.startblock + at);
                self.block(Request::of_len(kind, daddr, len).of_inode(ino))?;
            }
        }
        Ok(())
    }

    fn metadata_file(&mut self, ino: Ino, raw: &RawDinode, extents: &[Extent]) -> Result<()> {
        let quota = [self.geometry.quota.user, self.geometry.quota.group, self.geometry.quota.project];
        let kind = match raw.core.metatype.get() {
            _ if quota.contains(&Some(ino)) => BlockKind::Dquots,
            _ if !raw.is_metadata() => return Ok(()),
            metatype::USRQUOTA | metatype::GRPQUOTA | metatype::PRJQUOTA => BlockKind::Dquots,
            metatype::RTBITMAP => BlockKind::RtBitmap,
            metatype::RTSUMMARY => BlockKind::RtSummary,
            _ => return Ok(()),
        };
        self.pieces(ino, kind, extents)
    }

    fn attributes(&mut self, ino: Ino, extents: &[Extent]) -> Result<()> {
        let blocks = Self::blocks_of(extents);
        let crc = self.geometry.features.has_crc();
        let mut left: Vec<u64> = blocks.keys().next().copied().filter(|first| *first == 0).into_iter().collect();
        while let Some(at) = left.pop() {
            let daddr = self.daddr(blocks[&at]);
            let bytes = self.block(Request::new(&self.geometry, BlockKind::AttrHash, daddr).of_inode(ino))?;
            if let Ok(node) = DaNode::decode(&bytes, crc) {
                left.extend(node.entries.iter().map(|entry| u64::from(entry.before.get())));
            } else if let Ok(leaf) = AttrLeaf::decode(&bytes, crc) {
                for entry in leaf.entries {
                    let Ok(name) = leaf.name(entry) else { continue };
                    let AttrLeafValue::Remote { valueblk, valuelen } = name.value else { continue };
                    for at in 0..u64::from(self.geometry.attr_remote_blocks(valuelen)) {
                        let daddr = self.daddr(blocks[&(u64::from(valueblk) + at)]);
                        self.block(Request::new(&self.geometry, BlockKind::AttrRemote, daddr).of_inode(ino))?;
                    }
                }
            }
        }
        Ok(())
    }
}
