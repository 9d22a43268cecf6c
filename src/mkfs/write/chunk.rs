//! Allocation of inodes: a chunk is made where none has a free inode, and the free inode closest to the directory is taken.
//! Source: `xfs_dialloc` and what it calls in Linux `fs/xfs/libxfs/xfs_ialloc.c`.

use zerocopy::{FromZeros, IntoBytes};

use crate::error::{Error, Result};
use crate::geometry::Ino;
use crate::mkfs::write::group::{FromFreeSpace, Group, NULL};
use crate::mkfs::write::maker::Maker;
use crate::mkfs::write::shape::{CHUNK_INODES, Shape};
use crate::mkfs::write::space::{Extent, Owner, Request};
use crate::mkfs::write::tree::{Cursor, Sort, Tree};
use crate::ondisk::rmap_record::owner;
use crate::ondisk::{
    INODES_PER_CHUNK, InodeChunk, OnDisk, RawDinode, RawDinodeCore, RawInobtRecord, RawSparseInobtRecord, crc,
};

/// Inodes for which one bit of the hole mask stands.
const HOLEMASK_INODES: u32 = 4;
/// Chunks that are looked at beside the one that is full.
const SEARCH_DISTANCE: u32 = 9;

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
        let mut tree_blocks = 0;
        if sparse {
            let mask = (1u32 << (inodes / HOLEMASK_INODES)) - 1;
            let offset = (extent.start % shape.layout.data.inode_alignment) << shape.inopblog;
            let mask = mask << (offset / HOLEMASK_INODES);
            chunk.startino -= offset;
            chunk.holemask = !u16::try_from(mask).map_err(|_| misplaced())?;
            chunk.count = u8::try_from(inodes).map_err(|_| misplaced())?;
            chunk.freecount = inodes;
            tree_blocks += group.insert_sparse(shape, chunk)?;
        } else {
            for free in [false, true] {
                for startino in (first..first + inodes).step_by(64) {
                    tree_blocks += group.insert_chunk(shape, &InodeChunk { startino, ..chunk }, free)?;
                }
            }
        }
        group.agi.count.set(group.agi.count.get() + inodes);
        group.agi.freecount.set(group.agi.freecount.get() + inodes);
        group.agi.newino.set(chunk.startino);
        self.progress.icount += u64::from(inodes);
        self.progress.ifree += u64::from(inodes);
        self.progress.fdblocks -= u64::from(extent.len + tree_blocks);
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
            (Some(free), Some(near)) => closest(shape, free, near)?,
            (Some(free), None) => newest_or_first(shape, free, newino)?,
            (None, Some(near)) => match closest_of_all(shape, &group.ino, near)? {
                Some(chunk) => Some(chunk),
                None => newest_or_first(shape, &group.ino, newino)?,
            },
            (None, None) => newest_or_first(shape, &group.ino, newino)?,
        }
        .ok_or_else(misplaced)?;
        let index = (chunk.free & chunk.allocated_mask()).trailing_zeros();
        if index >= INODES_PER_CHUNK {
            return Err(misplaced());
        }
        chunk.free &= !(1u64 << index);
        chunk.freecount -= 1;
        if let Some(free) = &mut group.fino {
            let at = position(shape, free, chunk.startino)?.ok_or_else(misplaced)?;
            if chunk.freecount == 0 {
                free.remove(&at)?;
            } else {
                free.set(&at, &encode(shape, &chunk)?)?;
            }
        }
        let at = position(shape, &group.ino, chunk.startino)?.ok_or_else(misplaced)?;
        group.ino.set(&at, &encode(shape, &chunk)?)?;
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
            if self.prepare(shape, &mut exact)?
                && let Some(extent) = self.allocate_exact(shape, &exact, next, inodes)?
            {
                return Ok(Some((extent, false)));
            }
        }
        let root = self.agi.root.get();
        let alignments = match shape.ialloc_align {
            0 => [Some(shape.cluster_align), None],
            stripe => [Some(stripe), Some(shape.cluster_align)],
        };
        for alignment in alignments.into_iter().flatten() {
            let mut aligned = Request { alignment, ..request };
            if self.prepare(shape, &mut aligned)?
                && let Some(extent) = self.allocate_near(shape, &aligned, root, agblocks, inodes)?
            {
                return Ok(Some((extent, false)));
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
        Ok(self.allocate_near(shape, &sparse, root, agblocks, inodes)?.map(|extent| (extent, true)))
    }

    /// Enters a chunk into one of the inode trees; gives the blocks that the tree grew by.
    fn insert_chunk(&mut self, shape: &Shape, chunk: &InodeChunk, free: bool) -> Result<u32> {
        let Some(mut tree) = self.take_tree(free) else { return Ok(0) };
        let at = tree.seek(sort(chunk.startino))?;
        let mut supply = FromFreeSpace { group: self, shape, free, taken: 0 };
        tree.insert(at, &encode(shape, chunk)?, &mut supply)?;
        let taken = supply.taken;
        self.put_tree(tree, free);
        Ok(taken)
    }

    /// Enters a part of a chunk into both inode trees; it joins the parts that are there already.
    fn insert_sparse(&mut self, shape: &Shape, mut chunk: InodeChunk) -> Result<u32> {
        let mut taken = 0;
        match position(shape, &self.ino, chunk.startino)? {
            None => taken += self.insert_chunk(shape, &chunk, false)?,
            Some(at) => {
                let old = get(shape, &self.ino, &at)?.ok_or_else(misplaced)?;
                chunk.count += old.count;
                chunk.freecount += old.freecount;
                chunk.holemask &= old.holemask;
                chunk.free &= old.free;
                self.ino.set(&at, &encode(shape, &chunk)?)?;
            }
        }
        if let Some(free) = &mut self.fino {
            match position(shape, free, chunk.startino)? {
                None => taken += self.insert_chunk(shape, &chunk, true)?,
                Some(at) => free.set(&at, &encode(shape, &chunk)?)?,
            }
        }
        Ok(taken)
    }

    fn take_tree(&mut self, free: bool) -> Option<Tree> {
        if free { self.fino.take() } else { Some(std::mem::replace(&mut self.ino, Tree::nothing())) }
    }

    fn put_tree(&mut self, tree: Tree, free: bool) {
        if free {
            self.agi.free_root.set(tree.root);
            self.agi.free_level.set(tree.levels);
            self.fino = Some(tree);
        } else {
            self.agi.root.set(tree.root);
            self.agi.level.set(tree.levels);
            self.ino = tree;
        }
    }
}

/// The chunk of `near`, or else that of the closest chunk with a free inode; `tree` lists chunks with free inodes only.
fn closest(shape: &Shape, tree: &Tree, near: u32) -> Result<Option<InodeChunk>> {
    let behind = tree.seek(sort(near))?;
    let left = match tree.previous(&behind)? {
        Some(cursor) => get(shape, tree, &cursor)?,
        None => None,
    };
    if let Some(left) = left.filter(|left| near < left.startino + INODES_PER_CHUNK) {
        return Ok(Some(left));
    }
    let right = get(shape, tree, &tree.settle(behind)?)?;
    Ok(match (left, right) {
        (Some(left), Some(right)) => {
            let right_is_closer = near - left.startino + INODES_PER_CHUNK - 1 > right.startino - near;
            Some(if right_is_closer { right } else { left })
        }
        (left, right) => left.or(right),
    })
}

/// The same in a tree that lists all chunks: goes left and right from the chunk of `near`, ten chunks far, and then takes the
/// chunk that was made last.
fn closest_of_all(shape: &Shape, tree: &Tree, near: u32) -> Result<Option<InodeChunk>> {
    let behind = tree.seek(sort(near))?;
    let Some(own) = tree.previous(&behind)? else { return Ok(None) };
    let chunk = get(shape, tree, &own)?;
    if chunk.is_some_and(|chunk| chunk.freecount > 0) {
        return Ok(chunk);
    }
    let mut left = tree.previous(&own)?;
    let mut right = tree.next(&own)?;
    for _ in 0..SEARCH_DISTANCE {
        let at = |cursor: &Option<Cursor>| match cursor {
            Some(cursor) => get(shape, tree, cursor),
            None => Ok(None),
        };
        let (from_left, from_right) = (at(&left)?, at(&right)?);
        let (use_left, chunk) = match (from_left, from_right) {
            (None, None) => break,
            (Some(l), Some(r)) => {
                let use_left = near - (l.startino + INODES_PER_CHUNK - 1) < r.startino - near;
                (use_left, if use_left { l } else { r })
            }
            (Some(l), None) => (true, l),
            (None, Some(r)) => (false, r),
        };
        if chunk.freecount > 0 {
            return Ok(Some(chunk));
        }
        if use_left {
            left = left.map(|cursor| tree.previous(&cursor)).transpose()?.flatten();
        } else {
            right = right.map(|cursor| tree.next(&cursor)).transpose()?.flatten();
        }
    }
    Ok(None)
}

/// The chunk that was made last, or else the first one, of those with free inodes.
fn newest_or_first(shape: &Shape, tree: &Tree, newest: u32) -> Result<Option<InodeChunk>> {
    if let Some(at) = position(shape, tree, newest)? {
        let chunk = get(shape, tree, &at)?;
        if chunk.is_some_and(|chunk| chunk.freecount > 0) {
            return Ok(chunk);
        }
    }
    let mut at = Some(tree.seek(sort(0))?);
    while let Some(cursor) = at {
        match get(shape, tree, &cursor)? {
            Some(chunk) if chunk.freecount > 0 => return Ok(Some(chunk)),
            _ => at = tree.next(&cursor)?,
        }
    }
    Ok(None)
}

/// Order of the chunk that begins at `agino`.
fn sort(agino: u32) -> Sort {
    [u64::from(agino), 0, 0]
}

fn get(shape: &Shape, tree: &Tree, at: &Cursor) -> Result<Option<InodeChunk>> {
    if shape.layout.features.sparse_inodes {
        Ok(tree.record::<RawSparseInobtRecord>(at)?.map(|record| record.decode()))
    } else {
        Ok(tree.record::<RawInobtRecord>(at)?.map(|record| record.decode()))
    }
}

fn encode(shape: &Shape, chunk: &InodeChunk) -> Result<Vec<u8>> {
    if shape.layout.features.sparse_inodes {
        Ok(chunk.encode_sparse().ok_or_else(misplaced)?.as_bytes().to_vec())
    } else {
        Ok(chunk.encode_full().ok_or_else(misplaced)?.as_bytes().to_vec())
    }
}

/// Where the chunk that begins at `startino` is.
fn position(shape: &Shape, tree: &Tree, startino: u32) -> Result<Option<Cursor>> {
    let Some(at) = tree.previous(&tree.seek(sort(startino))?)? else { return Ok(None) };
    Ok(get(shape, tree, &at)?.filter(|chunk| chunk.startino == startino).map(|_| at))
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
