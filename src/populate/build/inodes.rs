//! Inodes: chunks near the directories that name them, aligned as the filesystem wants it (Linux
//! `fs/xfs/libxfs/xfs_ialloc.c`).

use super::free_space::Run;
use super::group::Group;
use super::space::Space;
use crate::error::{Error, Result};
use crate::geometry::{AgBlock, AgIno, Geometry, Ino};
use crate::ondisk::rmap_record::owner;
use crate::ondisk::{INODES_PER_CHUNK, InodeChunk, Rmap};

/// Inodes that one bit of the hole mask stands for.
const HOLEMASK_INODES: u32 = 4;

/// How many inodes there are, and may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct InodeCount {
    /// Those that have a place.
    pub count: u64,
    /// The most; 0 for no limit.
    pub most: u64,
}

impl InodeCount {
    fn may_grow(&self, by: u32) -> bool {
        self.most == 0 || self.count + u64::from(by) <= self.most
    }
}

impl Space {
    /// Takes an inode: in group `first` if there is one or a chunk can be made, else in the next group; parts of chunks are made
    /// when no group has room for a whole one.
    ///
    /// # Errors
    /// `Usage` when there is no room for more inodes, or no more are allowed.
    pub fn take_inode(&mut self, geometry: &Geometry, count: &mut InodeCount, first: usize) -> Result<Ino> {
        let groups = self.groups.len();
        for sparse in [false, true] {
            if sparse && !may_be_sparse(geometry) {
                break;
            }
            for index in (first..groups).chain(0..first.min(groups)) {
                let group = &mut self.groups[index];
                if let Some(agino) = group.take_open() {
                    return geometry.ino(group.agno, agino).ok_or_else(outside);
                }
                let made =
                    if sparse { group.make_sparse_chunk(geometry, count) } else { group.make_chunk(geometry, count) };
                if let Some(agino) = made.then(|| group.take_open()).flatten() {
                    return geometry.ino(group.agno, agino).ok_or_else(outside);
                }
            }
        }
        if !count.may_grow(geometry.inodes.alloc_inodes) {
            return Err(Error::Usage(format!(
                "the image is full: inodes may take {} percent of it, which are {} inodes; -i maxpct= allows more",
                geometry.imax_pct, count.most
            )));
        }
        Err(Error::Usage("the image is full: there is no room for more inodes".into()))
    }
}

fn may_be_sparse(geometry: &Geometry) -> bool {
    geometry.features.has_sparseinodes() && geometry.inodes.alloc_min_blocks < geometry.inodes.alloc_blocks
}

fn outside() -> Error {
    Error::Internal("an inode outside of its group".into())
}

impl Group {
    /// The first free inode of the chunks.
    fn take_open(&mut self) -> Option<AgIno> {
        let first = *self.open_chunks.first()?;
        let chunk = self.chunks.get_mut(&first)?;
        let index = (chunk.free & chunk.allocated_mask()).trailing_zeros();
        if index >= INODES_PER_CHUNK {
            self.open_chunks.remove(&first);
            return self.take_open();
        }
        chunk.free &= !(1 << index);
        chunk.freecount -= 1;
        if chunk.freecount == 0 {
            self.open_chunks.remove(&first);
        }
        Some(AgIno(first + index))
    }

    /// Makes the chunks that are made at once; `false` when there is no room.
    fn make_chunk(&mut self, geometry: &Geometry, count: &mut InodeCount) -> bool {
        let inodes = &geometry.inodes;
        if !count.may_grow(inodes.alloc_inodes) || self.available() < inodes.alloc_blocks {
            return false;
        }
        let aligns = [inodes.stripe_align.max(inodes.cluster_align), inodes.cluster_align];
        let found = aligns.into_iter().find_map(|align| self.free.find(inodes.alloc_blocks, align, self.next_chunk));
        let Some(start) = found else { return false };
        let Some(first) = geometry.agbno_agino(AgBlock(start)) else { return false };
        self.take_for_inodes(geometry, Run { start, len: inodes.alloc_blocks });
        for startino in (first.0..first.0 + inodes.alloc_inodes).step_by(64) {
            let chunk = InodeChunk { startino, holemask: 0, count: 64, freecount: INODES_PER_CHUNK, free: u64::MAX };
            self.chunks.insert(startino, chunk);
            self.open_chunks.insert(startino);
        }
        count.count += u64::from(inodes.alloc_inodes);
        true
    }

    /// Makes a part of a chunk, which joins the parts of it that there are; `false` when there is no room.
    fn make_sparse_chunk(&mut self, geometry: &Geometry, count: &mut InodeCount) -> bool {
        let inodes = &geometry.inodes;
        let (len, align) = (inodes.alloc_min_blocks, inodes.chunk_align.max(1));
        let made = len << inodes.per_block_log;
        let end = self.blocks / align * align;
        if !count.may_grow(made) || self.available() < len {
            return false;
        }
        let fits = |run: Run| {
            let start = run.start.max(align).checked_next_multiple_of(inodes.sparse_align.max(1))?;
            (start + len <= (run.start + run.len).min(end)).then_some(start)
        };
        let Some(start) = self.free.runs().find_map(fits) else { return false };
        let base = start / align * align;
        let (Some(startino), Some(first)) = (geometry.agbno_agino(AgBlock(base)), geometry.agbno_agino(AgBlock(start)))
        else {
            return false;
        };
        self.take_for_inodes(geometry, Run { start, len });
        let bits = ((1_u32 << (made / HOLEMASK_INODES)) - 1) << ((first.0 - startino.0) / HOLEMASK_INODES);
        let empty = InodeChunk { startino: startino.0, holemask: u16::MAX, count: 0, freecount: 0, free: u64::MAX };
        let chunk = self.chunks.entry(startino.0).or_insert(empty);
        chunk.holemask &= !u16::try_from(bits).unwrap_or(u16::MAX);
        chunk.count += u8::try_from(made).unwrap_or(0);
        chunk.freecount += made;
        self.open_chunks.insert(startino.0);
        count.count += u64::from(made);
        true
    }

    fn take_for_inodes(&mut self, geometry: &Geometry, run: Run) {
        self.free.take(run);
        self.next_chunk = run.start + run.len;
        let rmap = Rmap { startblock: run.start, blockcount: run.len, owner: owner::INODES, ..Rmap::default() };
        self.note(geometry, rmap);
    }
}
