//! The inodes of an allocation group: every chunk of its inode btree, with the bytes of its inodes
//! (Linux `fs/xfs/libxfs/xfs_ialloc.c`, `xfs_ialloc_btree.c`).

use super::source::{corrupt, damage_of};
use crate::btree::{Step, Tree, Visit, walk};
use crate::buffer::{BlockCache, BlockKind};
use crate::error::{Check, Error, Place, Result, Rule};
use crate::geometry::{AgBlock, AgIno, AgNumber, BtreeKind, Geometry, Ino};
use crate::ondisk::{INODES_PER_CHUNK, InodeChunk, OnDisk, RawAgi, RawInobtRecord, RawSparseInobtRecord};

/// A chunk of inodes as it stands on the device.
#[derive(Clone, Copy, Debug)]
pub struct ChunkInodes<'a> {
    /// Its group.
    pub agno: AgNumber,
    /// The record of the btree.
    pub chunk: InodeChunk,
    /// The number of its first inode.
    pub first: Ino,
    /// The bytes of all 64 inodes; those in holes are zero.
    pub bytes: &'a [u8],
    /// Which inodes have bytes, the first one lowest.
    present: u64,
}

/// An inode of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkInode<'a> {
    /// Its number.
    pub ino: Ino,
    /// The btree says that it is not in use.
    pub is_free: bool,
    /// Its bytes: the core and both forks.
    pub bytes: &'a [u8],
}

impl<'a> ChunkInodes<'a> {
    /// The inodes that have blocks, in order.
    pub fn inodes(&self) -> impl Iterator<Item = ChunkInode<'a>> + use<'a> {
        let ChunkInodes { chunk, first, present, .. } = *self;
        let size = (self.bytes.len() / ALL).max(1);
        (0u64..64).zip(self.bytes.chunks_exact(size)).filter(move |(index, _)| present >> index & 1 == 1).map(
            move |(index, bytes)| ChunkInode {
                ino: Ino(first.0 + index),
                is_free: chunk.free >> index & 1 == 1,
                bytes,
            },
        )
    }
}

/// Inodes of a chunk.
const ALL: usize = INODES_PER_CHUNK as usize;

/// Is given every chunk, or what is wrong in the place of one.
pub type VisitChunk<'v> = dyn FnMut(Result<ChunkInodes<'_>>) -> Result<Step> + 'v;

/// Visits the inode chunks of group `agno` in the order of its inode btree. Each run of blocks of a chunk is read from
/// the device at once, past the cache; the inodes are not verified.
///
/// Damage of the header, of the btree or of a record comes as an error, and the walk goes on with what can be read. It
/// ends at the latest when it has seen as many inodes as the group has room for. The memory taken is that of one chunk.
///
/// # Errors
/// Those of `visit`; `Io` when header or btree cannot be read. Chunks that cannot be read come as an error.
pub fn for_each_inode_chunk(cache: &BlockCache, agno: AgNumber, visit: &mut VisitChunk<'_>) -> Result<()> {
    let header = cache.read_header(BlockKind::Agi, agno)?;
    for error in damage_of(&header) {
        if visit(Err(error))? == Step::Stop {
            return Ok(());
        }
    }
    let Some((agi, _)) = RawAgi::prefix(header.bytes()) else { return Ok(()) };
    let tree = Tree::of_group(BtreeKind::Inobt, agno, AgBlock(agi.root.get()), agi.level.get());
    let geometry = cache.geometry();
    let blocks = geometry.ag_blocks(agno).unwrap_or(0);
    let mut chunks = Chunks {
        cache,
        agno,
        sparse: geometry.features.has_sparseinodes(),
        room: u64::from(blocks) << geometry.inodes.per_block_log,
        full: false,
        buffer: Vec::new(),
    };
    let mut stopped = false;
    let walked = walk(cache, &tree, u64::from(blocks), &mut |found| {
        let Visit::Record { record, place } = found else { return Ok(Step::Continue) };
        let step = visit(chunks.read(record, place))?;
        stopped |= step == Step::Stop || chunks.full;
        Ok(if stopped { Step::Stop } else { step })
    })?;
    if stopped {
        return Ok(());
    }
    for failure in walked.verdict.failures() {
        if visit(Err(Error::Corrupt(Box::new(failure.clone()))))? == Step::Stop {
            break;
        }
    }
    Ok(())
}

struct Chunks<'a> {
    cache: &'a BlockCache,
    agno: AgNumber,
    sparse: bool,
    /// Inodes that the group may still have.
    room: u64,
    /// There was a record too many.
    full: bool,
    buffer: Vec<u8>,
}

impl Chunks<'_> {
    fn read(&mut self, record: &[u8], place: &Place) -> Result<ChunkInodes<'_>> {
        let chunk = if self.sparse {
            RawSparseInobtRecord::prefix(record).map(|(raw, _)| raw.decode())
        } else {
            RawInobtRecord::prefix(record).map(|(raw, _)| raw.decode())
        };
        let failed = |field, rule, detail| corrupt(Check::new("inobt_rec", field, rule), place, detail);
        let chunk = chunk.ok_or_else(|| failed("startino", Rule::Truncated, String::new()))?;
        let present = chunk.allocated_mask();
        // a record without a single inode counts too, so that the walk ends
        let inodes = u64::from(present.count_ones().max(1));
        if inodes > self.room {
            self.full = true;
            return Err(failed("startino", Rule::Count, "more inodes than the group has room for".to_owned()));
        }
        self.room -= inodes;
        let size = usize::try_from(self.cache.geometry().inodes.size).unwrap_or(0);
        self.buffer.clear();
        self.buffer.resize(ALL * size, 0);
        let outside = || failed("startino", Rule::Range, format!("{chunk:?}"));
        let geometry = self.cache.geometry();
        let first = geometry.ino(self.agno, AgIno(chunk.startino)).ok_or_else(outside)?;
        for (start, count) in runs(present) {
            let at = run_offset(geometry, self.agno, chunk.startino, start, count).ok_or_else(outside)?;
            let bytes = self.buffer.get_mut(start * size..(start + count) * size).ok_or_else(outside)?;
            self.cache.read_raw(at, bytes)?;
        }
        Ok(ChunkInodes { agno: self.agno, chunk, first, bytes: &self.buffer, present })
    }
}

/// Byte offset of `count` inodes from inode `start` of a chunk; `None` outside of the group.
fn run_offset(geometry: &Geometry, agno: AgNumber, startino: u32, start: usize, count: usize) -> Option<u64> {
    let first = startino.checked_add(u32::try_from(start).ok()?)?;
    let last = first.checked_add(u32::try_from(count).ok()?.checked_sub(1)?)?;
    let usable = |agino: u32| geometry.is_usable_agbno(agno, geometry.agino_parts(AgIno(agino)).0);
    let first = geometry.ino(agno, AgIno(first)).filter(|_| usable(first) && usable(last))?;
    geometry.ino_offset(first)
}

/// The runs of set bits of `mask`: the first of each and how many.
fn runs(mask: u64) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = mask.checked_shr(at).filter(|rest| *rest != 0)?;
        let start = at + rest.trailing_zeros();
        let count = (mask >> start).trailing_ones();
        at = start + count;
        Some((start as usize, count as usize))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use zerocopy::IntoBytes;

    use super::*;
    use crate::btree::{EditRoot, Fill, Layout, MemoryStore, TreeIdentity, TreeOwner, bulk_load};
    use crate::buffer::Verifier;
    use crate::device::{Device, MemoryDevice};
    use crate::geometry::samples;
    use crate::ondisk::NULLAGINO;

    const BLOCKS: u32 = 8192;
    /// Inodes before the btree, which start with their number.
    const MARKED: u64 = 4096 * 8;

    /// The chunks that a walk finds in a group whose btree holds `records`, and the checks that failed.
    fn walk_over(records: &[InodeChunk]) -> (Vec<(InodeChunk, Vec<u64>)>, Vec<Check>) {
        let mut sb = samples::superblock("default");
        (sb.dblocks, sb.agblocks, sb.agcount) = (u64::from(BLOCKS).into(), BLOCKS.into(), 1.into());
        let geometry = Geometry::assume(&sb);
        let device = Arc::new(MemoryDevice::new(u64::from(BLOCKS) * u64::from(geometry.blocksize)));
        let identity = TreeIdentity::new(&geometry, TreeOwner::Group(AgNumber(0)));
        let mut store = MemoryStore::new(4096, u64::from(geometry.basic_blocks_per_block()));
        let layout = Layout::of_block(&geometry, BtreeKind::Inobt);
        let mut encoded = records.iter().map(|chunk| chunk.encode_sparse().expect("small").as_bytes().to_vec());
        let tree = bulk_load(&mut store, layout, identity, None, Fill::Full, records.len(), &mut encoded);
        let root = match tree.expect("in order").root() {
            EditRoot::Block { pointer, levels } => (*pointer, *levels),
            EditRoot::Inode { .. } => panic!("a root in a block"),
        };
        for (at, bytes) in store.blocks() {
            device.write_at(at * u64::from(geometry.blocksize), bytes).expect("inside");
        }
        let mut agi: RawAgi = zerocopy::FromZeros::new_zeroed();
        (agi.magicnum, agi.versionnum, agi.length) = (RawAgi::MAGIC.into(), RawAgi::VERSION.into(), BLOCKS.into());
        (agi.root, agi.level) = (u32::try_from(root.0).expect("small").into(), root.1.into());
        (agi.free_root, agi.free_level) = (5.into(), 1.into());
        (agi.unlinked, agi.uuid) = ([NULLAGINO.into(); 64], geometry.meta_uuid);
        (agi.newino, agi.dirino) = (NULLAGINO.into(), NULLAGINO.into());
        let mut sector = agi.as_bytes().to_vec();
        sector.resize(usize::try_from(geometry.sectsize).expect("small"), 0);
        let verifier = Verifier::new(geometry.clone());
        verifier.stamp(BlockKind::Agi, &mut sector, None);
        device.write_at(u64::from(RawAgi::SECTOR * geometry.sectsize), &sector).expect("inside");
        for ino in 64..MARKED {
            device.write_at(ino << geometry.inodes.log, &ino.to_be_bytes()).expect("inside");
        }
        let cache = BlockCache::new(verifier, device, 1 << 20);
        let (mut chunks, mut failed) = (Vec::new(), Vec::new());
        let walked = for_each_inode_chunk(&cache, AgNumber(0), &mut |chunk| {
            match chunk {
                Ok(chunk) => {
                    for inode in chunk.inodes() {
                        assert!(inode.ino.0 >= MARKED || inode.bytes[..8] == inode.ino.0.to_be_bytes());
                        assert_eq!(inode.is_free, chunk.chunk.free >> (inode.ino.0 - chunk.first.0) & 1 == 1);
                    }
                    chunks.push((chunk.chunk, chunk.inodes().map(|inode| inode.ino.0).collect()));
                }
                Err(Error::Corrupt(damage)) => failed.push(damage.check),
                Err(error) => panic!("{error}"),
            }
            Ok(Step::Continue)
        });
        walked.expect("readable");
        (chunks, failed)
    }

    fn chunk(startino: u32, holemask: u16) -> InodeChunk {
        let holes = !InodeChunk { holemask, ..InodeChunk::default() }.allocated_mask();
        let count = u8::try_from(64 - holes.count_ones()).expect("at most 64");
        InodeChunk { startino, holemask, count, freecount: 1, free: holes | 1 }
    }

    #[test]
    fn inodes_in_holes_are_left_out() {
        let (chunks, failed) = walk_over(&[chunk(128, 0), chunk(192, 0xff00), chunk(320, 0x00f0)]);
        assert_eq!(failed, []);
        assert_eq!(chunks.len(), 3);
        assert_eq!(chunks[0].1, (128..192).collect::<Vec<_>>());
        assert_eq!(chunks[1].1, (192..224).collect::<Vec<_>>());
        assert_eq!(chunks[2].1, (320..336).chain(352..384).collect::<Vec<_>>());
    }

    #[test]
    fn damage_is_told_and_the_walk_goes_on() {
        let (chunks, failed) = walk_over(&[chunk(0, 0), chunk(192, 0), chunk(u32::MAX - 70, 0)]);
        assert_eq!(chunks.iter().map(|found| found.0.startino).collect::<Vec<_>>(), [192]);
        let outside = Check::new("inobt_rec", "startino", Rule::Range);
        assert!(failed.iter().filter(|check| **check == outside).count() >= 2, "{failed:?}");
    }

    #[test]
    fn more_inodes_than_there_is_room_for_end_the_walk() {
        let many: Vec<_> = (0..40_000).map(|index| chunk(128 + index * 64, 0)).collect();
        let (chunks, failed) = walk_over(&many);
        assert!(chunks.len() <= 8 * BLOCKS as usize / 64, "{}", chunks.len());
        assert_eq!(failed.last(), Some(&Check::new("inobt_rec", "startino", Rule::Count)));
        assert!(failed.len() < 2000, "{}", failed.len());
    }

    #[test]
    fn runs_of_bits() {
        assert_eq!(runs(0).count(), 0);
        assert_eq!(runs(u64::MAX).collect::<Vec<_>>(), [(0, 64)]);
        assert_eq!(runs(1 << 63 | 0b0110).collect::<Vec<_>>(), [(1, 2), (63, 1)]);
    }
}
