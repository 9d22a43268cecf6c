//! Allocation of inodes: a chunk is made where none has a free inode, and the free inode closest to the directory is taken.
//! Source: `xfs_dialloc` and what it calls in Linux `fs/xfs/libxfs/xfs_ialloc.c`.

use zerocopy::{FromZeros, IntoBytes};

use crate::error::{Error, Result};
use crate::geometry::Ino;
use crate::mkfs::write::group::{Group, NULL};
use crate::mkfs::write::leaf::Leaf;
use crate::mkfs::write::maker::Maker;
use crate::mkfs::write::shape::{CHUNK_INODES, Shape};
use crate::mkfs::write::space::{Extent, Owner, Request};
use crate::ondisk::rmap_record::owner;
use crate::ondisk::{
    INODES_PER_CHUNK, InodeChunk, OnDisk, RawDinode, RawDinodeCore, RawInobtRecord, RawSparseInobtRecord, crc,
};

/// Inodes for which one bit of the hole mask stands.
const HOLEMASK_INODES: u32 = 4;

/// Which directory a new inode belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parent {
    /// None: a root or an inode that the superblock names.
    None,
    /// A directory of the metadata tree.
    Metadata(Ino),
}

impl Maker<'_> {
    /// Allocates an inode.
    pub fn allocate_inode(&mut self, parent: Parent) -> Result<Ino> {
        let start = match parent {
            Parent::None => 0,
            Parent::Metadata(_) => self.shape.internal_log().map_or(0, |(agno, _)| agno.0),
        };
        let near = match parent {
            Parent::None => Ino(0),
            Parent::Metadata(ino) => ino,
        };
        let limit = self.shape.maxicount;
        let may_make = limit == 0 || self.progress.icount + u64::from(self.shape.ialloc_inos) <= limit;
        for slack in [true, false] {
            for agno in (start..self.agcount()).chain(0..start) {
                if !self.has_room_for_inodes(agno, slack, may_make)? {
                    continue;
                }
                if self.group(agno)?.agi.freecount.get() == 0 && !self.make_chunk(agno)? {
                    continue;
                }
                return self.take_inode(agno, near);
            }
        }
        Err(Error::Usage("no space is left for the inodes of the filesystem".to_string()))
    }

    /// Whether group `agno` has a free inode, or space for new ones; `slack` counts what alignment may take.
    fn has_room_for_inodes(&mut self, agno: u32, slack: bool, may_make: bool) -> Result<bool> {
        let shape = self.shape;
        let group = self.group(agno)?;
        if group.agi.freecount.get() > 0 {
            return Ok(true);
        }
        let mut need = shape.ialloc_min_blks;
        if slack && need > 1 {
            need += shape.cluster_align;
        }
        let longest = match group.agf.longest.get() {
            0 => u32::from(group.agf.flcount.get() > 0),
            longest => longest,
        };
        Ok(may_make && group.agf.freeblks.get() > need && longest >= need)
    }

    /// Makes a chunk of inodes in group `agno`; `false` if there is no space for it.
    fn make_chunk(&mut self, agno: u32) -> Result<bool> {
        let shape = self.shape;
        let group = self.group(agno)?;
        let Some((extent, sparse)) = group.allocate_chunk(shape)? else { return Ok(false) };
        let inodes = extent.len << shape.inopblog;
        let first = extent.start << shape.inopblog;
        let mut chunk = InodeChunk { startino: first, holemask: 0, count: 64, freecount: CHUNK_INODES, free: u64::MAX };
        if sparse {
            let mask = (1u32 << (inodes / HOLEMASK_INODES)) - 1;
            let offset = (extent.start % shape.layout.data.inode_alignment) << shape.inopblog;
            let mask = mask << (offset / HOLEMASK_INODES);
            chunk.startino -= offset;
            chunk.holemask = !u16::try_from(mask).map_err(|_| misplaced())?;
            chunk.count = u8::try_from(inodes).map_err(|_| misplaced())?;
            chunk.freecount = inodes;
            group.insert_sparse(shape, chunk)?;
        } else {
            for startino in (first..first + inodes).step_by(64) {
                group.insert_full(shape, InodeChunk { startino, ..chunk })?;
            }
        }
        group.agi.count.set(group.agi.count.get() + inodes);
        group.agi.freecount.set(group.agi.freecount.get() + inodes);
        group.agi.newino.set(chunk.startino);
        self.progress.icount += u64::from(inodes);
        self.progress.ifree += u64::from(inodes);
        self.progress.fdblocks -= u64::from(extent.len);
        let generation = self.random();
        let bytes = free_inodes(shape, agno, first, inodes, generation);
        self.blocks.put(shape.offset(agno, extent.start), bytes);
        Ok(true)
    }

    /// Takes the free inode of group `agno` that is closest to `near`.
    fn take_inode(&mut self, agno: u32, near: Ino) -> Result<Ino> {
        let shape = self.shape;
        let (near_agno, near_agino) = shape.split_ino(near);
        let group = self.group(agno)?;
        let newino = group.agi.newino.get();
        let near = (near_agno == agno).then_some(if near_agino == 0 { newino } else { near_agino });
        let mut chunk = match (&group.fino, near) {
            (Some(free), Some(near)) => closest(shape, free, near),
            (Some(free), None) => newest_or_first(shape, free, newino),
            (None, Some(near)) => closest_of_all(shape, &group.ino, near),
            (None, None) => newest_or_first(shape, &group.ino, newino),
        }
        .ok_or_else(misplaced)?;
        let index = (chunk.free & chunk.allocated_mask()).trailing_zeros();
        if index >= INODES_PER_CHUNK {
            return Err(misplaced());
        }
        chunk.free &= !(1u64 << index);
        chunk.freecount -= 1;
        if let Some(free) = &mut group.fino {
            let at = position(shape, free, chunk.startino).ok_or_else(misplaced)?;
            if chunk.freecount == 0 {
                free.remove::<RawInobtRecord>(at);
            } else {
                set(shape, free, at, &chunk)?;
            }
        }
        let at = position(shape, &group.ino, chunk.startino).ok_or_else(misplaced)?;
        set(shape, &mut group.ino, at, &chunk)?;
        group.agi.freecount.set(group.agi.freecount.get() - 1);
        self.progress.ifree -= 1;
        Ok(shape.ino(agno, chunk.startino + index))
    }
}

impl Group {
    /// Allocates the blocks of a chunk, behind the last chunk if possible; says also whether it is but a part of one.
    fn allocate_chunk(&mut self, shape: &Shape) -> Result<Option<(Extent, bool)>> {
        let inodes = Some(Owner::special(owner::INODES));
        let agblocks = shape.layout.data.agblocks;
        let mut request = Request::exactly(shape.ialloc_blks);
        request.minleft = shape.inobt_maxlevels;

        let newino = self.agi.newino.get();
        let next = (newino >> shape.inopblog).wrapping_add(shape.ialloc_blks);
        if newino != NULL && next < self.agi.length.get() {
            let mut exact = request;
            exact.minalignslop = shape.cluster_align - 1;
            if self.prepare(shape, &mut exact)? {
                if let Some(extent) = self.allocate_exact(&exact, next, inodes)? {
                    return Ok(Some((extent, false)));
                }
            }
        }
        let root = self.agi.root.get();
        let alignments = match shape.ialloc_align {
            0 => [Some(shape.cluster_align), None],
            stripe => [Some(stripe), Some(shape.cluster_align)],
        };
        for alignment in alignments.into_iter().flatten() {
            let mut aligned = Request { alignment, ..request };
            if self.prepare(shape, &mut aligned)? {
                if let Some(extent) = self.allocate_near(&aligned, root, agblocks, inodes)? {
                    return Ok(Some((extent, false)));
                }
            }
        }
        if !shape.layout.features.sparse_inodes || shape.ialloc_min_blks >= shape.ialloc_blks {
            return Ok(None);
        }
        let alignment = shape.layout.data.inode_alignment;
        let length = self.agi.length.get();
        let mut sparse = Request {
            alignment: shape.layout.data.sparse_alignment,
            minlen: shape.ialloc_min_blks,
            maxlen: shape.ialloc_min_blks,
            min_agbno: alignment,
            max_agbno: (length - length % alignment).saturating_sub(1),
            ..request
        };
        if !self.prepare(shape, &mut sparse)? {
            return Ok(None);
        }
        Ok(self.allocate_near(&sparse, root, agblocks, inodes)?.map(|extent| (extent, true)))
    }

    /// Enters a whole chunk into both inode trees.
    fn insert_full(&mut self, shape: &Shape, chunk: InodeChunk) -> Result<()> {
        insert(shape, &mut self.ino, &chunk)?;
        if let Some(free) = &mut self.fino {
            insert(shape, free, &chunk)?;
        }
        Ok(())
    }

    /// Enters a part of a chunk into both inode trees; it joins the parts that are there already.
    fn insert_sparse(&mut self, shape: &Shape, mut chunk: InodeChunk) -> Result<()> {
        match position(shape, &self.ino, chunk.startino) {
            None => insert(shape, &mut self.ino, &chunk)?,
            Some(at) => {
                let old = get(shape, &self.ino, at);
                chunk.count += old.count;
                chunk.freecount += old.freecount;
                chunk.holemask &= old.holemask;
                chunk.free &= old.free;
                set(shape, &mut self.ino, at, &chunk)?;
            }
        }
        if let Some(free) = &mut self.fino {
            match position(shape, free, chunk.startino) {
                None => insert(shape, free, &chunk)?,
                Some(at) => set(shape, free, at, &chunk)?,
            }
        }
        Ok(())
    }
}

/// The chunk of `near`, or else that of the closest chunk with a free inode; `leaf` lists chunks with free inodes only.
fn closest(shape: &Shape, leaf: &Leaf, near: u32) -> Option<InodeChunk> {
    let after = partition(shape, leaf, near);
    let left = after.checked_sub(1).map(|at| get(shape, leaf, at));
    if let Some(left) = left.filter(|left| near < left.startino + INODES_PER_CHUNK) {
        return Some(left);
    }
    let right = (after < leaf.len()).then(|| get(shape, leaf, after));
    match (left, right) {
        (Some(left), Some(right)) => {
            let right_is_closer = near - left.startino + INODES_PER_CHUNK - 1 > right.startino - near;
            Some(if right_is_closer { right } else { left })
        }
        (left, right) => left.or(right),
    }
}

/// The same in a tree that lists all chunks: goes left and right from the chunk of `near`, ten chunks far.
fn closest_of_all(shape: &Shape, leaf: &Leaf, near: u32) -> Option<InodeChunk> {
    let after = partition(shape, leaf, near);
    let own = get(shape, leaf, after.checked_sub(1)?);
    if own.freecount > 0 {
        return Some(own);
    }
    let mut left = after.checked_sub(2);
    let mut right = (after < leaf.len()).then_some(after);
    for _ in 0..9 {
        let (use_left, at) = match (left, right) {
            (None, None) => break,
            (Some(l), Some(r)) => {
                let from_left = near - (get(shape, leaf, l).startino + INODES_PER_CHUNK - 1);
                let use_left = from_left < get(shape, leaf, r).startino - near;
                (use_left, if use_left { l } else { r })
            }
            (Some(l), None) => (true, l),
            (None, Some(r)) => (false, r),
        };
        let chunk = get(shape, leaf, at);
        if chunk.freecount > 0 {
            return Some(chunk);
        }
        if use_left {
            left = at.checked_sub(1);
        } else {
            right = (at + 1 < leaf.len()).then_some(at + 1);
        }
    }
    None
}

/// The chunk that was made last, or else the first one, of those with free inodes.
fn newest_or_first(shape: &Shape, leaf: &Leaf, newest: u32) -> Option<InodeChunk> {
    let newest = position(shape, leaf, newest).map(|at| get(shape, leaf, at)).filter(|chunk| chunk.freecount > 0);
    newest.or_else(|| (0..leaf.len()).map(|at| get(shape, leaf, at)).find(|chunk| chunk.freecount > 0))
}

fn get(shape: &Shape, leaf: &Leaf, at: usize) -> InodeChunk {
    if shape.layout.features.sparse_inodes {
        leaf.get::<RawSparseInobtRecord>(at).decode()
    } else {
        leaf.get::<RawInobtRecord>(at).decode()
    }
}

fn set(shape: &Shape, leaf: &mut Leaf, at: usize, chunk: &InodeChunk) -> Result<()> {
    if shape.layout.features.sparse_inodes {
        leaf.set(at, &chunk.encode_sparse().ok_or_else(misplaced)?);
    } else {
        leaf.set(at, &chunk.encode_full().ok_or_else(misplaced)?);
    }
    Ok(())
}

/// Number of chunks that begin at `agino` or before.
fn partition(shape: &Shape, leaf: &Leaf, agino: u32) -> usize {
    (0..leaf.len()).find(|&at| get(shape, leaf, at).startino > agino).unwrap_or(leaf.len())
}

/// Where the chunk that begins at `startino` is.
fn position(shape: &Shape, leaf: &Leaf, startino: u32) -> Option<usize> {
    let at = partition(shape, leaf, startino).checked_sub(1)?;
    (get(shape, leaf, at).startino == startino).then_some(at)
}

fn insert(shape: &Shape, leaf: &mut Leaf, chunk: &InodeChunk) -> Result<()> {
    if leaf.len() == leaf.capacity::<RawInobtRecord>() {
        return Err(Error::Internal("making a filesystem: more inode chunks than a block lists".to_string()));
    }
    let at = partition(shape, leaf, chunk.startino);
    if shape.layout.features.sparse_inodes {
        leaf.insert(at, &chunk.encode_sparse().ok_or_else(misplaced)?);
    } else {
        leaf.insert(at, &chunk.encode_full().ok_or_else(misplaced)?);
    }
    Ok(())
}

/// The bytes of `count` free inodes of group `agno` from `first` on.
fn free_inodes(shape: &Shape, agno: u32, first: u32, count: u32, generation: u32) -> Vec<u8> {
    let size = usize::try_from(shape.layout.inode.bytes()).expect("invariant: 2 KiB at most");
    let v3 = shape.layout.features.crc;
    let mut core = RawDinodeCore::new_zeroed();
    core.magic.set(RawDinode::MAGIC);
    core.version = if v3 { 3 } else { 2 };
    core.generation.set(generation);
    core.next_unlinked.set(NULL);
    let mut bytes = vec![0; size * usize::try_from(count).expect("invariant: a chunk")];
    for (inode, agino) in bytes.chunks_exact_mut(size).zip(first..) {
        if v3 {
            let (dinode, _) = RawDinode::prefix_mut(inode).expect("invariant: larger than its header");
            dinode.core = core;
            dinode.ino.set(shape.ino(agno, agino).0);
            dinode.uuid = *shape.layout.uuid.as_bytes();
            crc::stamp(inode, RawDinode::CRC_OFFSET);
        } else {
            inode[..RawDinodeCore::SIZE].copy_from_slice(core.as_bytes());
        }
    }
    bytes
}

fn misplaced() -> Error {
    Error::Internal("making a filesystem: the inode trees contradict each other".to_string())
}
