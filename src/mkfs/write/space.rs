//! Allocation of space in a group, with the decisions and the order of changes of Linux `fs/xfs/libxfs/xfs_alloc.c`, so that
//! the same blocks are chosen and the same bytes stay behind. While a filesystem is made, no extent is busy, nothing is
//! reserved, and the trees of free space are single blocks.

use zerocopy::IntoBytes;

use crate::error::{Error, Result};
use crate::mkfs::write::group::{FromFreelist, Group, NULL};
use crate::mkfs::write::shape::Shape;
use crate::mkfs::write::tree::{Supply, Tree};
use crate::ondisk::rmap_record::{OFFSET_ATTR_FORK, OFFSET_BMBT_BLOCK, owner};
use crate::ondisk::{Be32, Be64, RawAllocRecord, RawRmapRecord};

/// Longest reverse mapping, in blocks.
const RMAP_LEN_MAX: u64 = 1 << 31;

/// Who space is allocated for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    /// Inode number, or one of [`owner`].
    pub owner: u64,
    /// Block of the file, with the flags of a reverse mapping; 0 for other owners.
    pub offset: u64,
}

impl Owner {
    /// An owner that is no inode.
    pub fn special(owner: u64) -> Self {
        Owner { owner, offset: 0 }
    }

    /// Whether offsets take no part in merging.
    fn ignores_offset(self) -> bool {
        owner::is_special(self.owner) || self.offset & OFFSET_BMBT_BLOCK != 0
    }

    fn flags(offset: u64) -> u64 {
        offset & (OFFSET_ATTR_FORK | OFFSET_BMBT_BLOCK)
    }
}

/// What is asked of the allocator. Lengths are in blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Shortest extent that will do.
    pub minlen: u32,
    /// Longest extent that is of use.
    pub maxlen: u32,
    /// Alignment; 1 for none.
    pub alignment: u32,
    /// Blocks more that alignment may need, counted in the test for space only.
    pub minalignslop: u32,
    /// Blocks that must stay free in the group afterwards.
    pub minleft: u32,
    /// Blocks that the whole operation needs.
    pub total: u32,
    /// Lengths are to be a multiple of this, ...
    pub prod: u32,
    /// ... plus this.
    pub rest: u32,
    /// First block that may be given.
    pub min_agbno: u32,
    /// Last block that may be given; 0 with `min_agbno` 0 for no limit.
    pub max_agbno: u32,
}

impl Request {
    /// Asks for exactly `len` blocks.
    pub fn exactly(len: u32) -> Self {
        Request {
            minlen: len,
            maxlen: len,
            alignment: 1,
            minalignslop: 0,
            minleft: 0,
            total: 0,
            prod: 1,
            rest: 0,
            min_agbno: 0,
            max_agbno: 0,
        }
    }

    /// Shortens `len` so that it is a multiple of `prod` plus `rest`, if that leaves enough.
    fn fixed(&self, len: u32) -> u32 {
        let unfit = self.prod <= 1 || len < self.rest || len == self.maxlen || (self.rest == 0 && len < self.prod);
        let k = if unfit { self.rest } else { len % self.prod };
        let fixed = match k {
            k if k == self.rest => return len,
            k if k > self.rest => i64::from(len) - i64::from(k - self.rest),
            k => i64::from(len) - i64::from(self.prod) + i64::from(self.rest - k),
        };
        if fixed < i64::from(self.minlen) { len } else { u32::try_from(fixed).expect("invariant: not above len") }
    }

    /// The part of a free extent that may be given: where it begins and how long it is.
    fn aligned(&self, mut start: u32, mut len: u32) -> (u32, u32) {
        if start < self.min_agbno && start + len > self.min_agbno {
            len -= self.min_agbno - start;
            start = self.min_agbno;
        }
        if self.alignment > 1 && len >= self.minlen {
            let aligned = start.next_multiple_of(self.alignment);
            return (aligned, len.saturating_sub(aligned - start));
        }
        (start, len)
    }
}

/// An extent of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// First block.
    pub start: u32,
    /// Blocks.
    pub len: u32,
}

/// The best candidate of a search near a block.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    record: Extent,
    found: Extent,
    distance: u32,
}

impl Group {
    /// Makes sure that the group can serve `request`, shortens `request.maxlen` to what is free, and fills the freelist up.
    /// `false` if the group has not enough space.
    pub fn prepare(&mut self, shape: &Shape, request: &mut Request) -> Result<bool> {
        if !self.has_space(shape, request) {
            return Ok(false);
        }
        self.fill_freelist(shape)
    }

    /// Longest extent that an allocation can be given, the refill of the freelist taken off.
    pub fn longest_usable(&self, shape: &Shape) -> u32 {
        let need = self.freelist_need(shape);
        let delta = need.saturating_sub(self.agf.flcount.get());
        let longest = self.agf.longest.get();
        if longest > delta {
            return shape.ag_max_usable.min(longest - delta);
        }
        u32::from(self.agf.flcount.get() > 0 || longest > 0)
    }

    /// Whether `request` can be served; cuts `request.maxlen` to what is free.
    fn has_space(&self, shape: &Shape, request: &mut Request) -> bool {
        let need = self.freelist_need(shape);
        let len = request.minlen + (request.alignment - 1) + request.minalignslop;
        if self.longest_usable(shape) < len {
            return false;
        }
        let listed = self.agf.flcount.get().min(need);
        let available =
            i64::from(self.agf.freeblks.get()) + i64::from(listed) - i64::from(need) - i64::from(request.minleft);
        if available < i64::from(request.total.max(len)) {
            return false;
        }
        if available < i64::from(request.maxlen) {
            request.maxlen = u32::try_from(available).expect("invariant: not below the request");
        }
        true
    }

    /// Blocks that the freelist should have.
    fn freelist_need(&self, shape: &Shape) -> u32 {
        shape.min_freelist(self.agf.bno_level.get(), self.agf.cnt_level.get(), self.agf.rmap_level.get())
    }

    /// Fills the freelist up to what the heights of the trees ask for. `false` if space ran out.
    pub fn fill_freelist(&mut self, shape: &Shape) -> Result<bool> {
        let need = self.freelist_need(shape);
        while self.agf.flcount.get() < need {
            let mut request = Request::exactly(1);
            request.maxlen = need - self.agf.flcount.get();
            let Some(extent) = self.take_by_size(&request)? else {
                return Ok(false);
            };
            self.finish(shape, extent, Some(Owner::special(owner::AG)))?;
            for block in extent.start..extent.start + extent.len {
                let slot = (self.agf.fllast.get() + 1) % shape.agfl_size;
                self.agf.fllast.set(slot);
                self.agf.flcount.set(self.agf.flcount.get() + 1);
                self.agfl[usize::try_from(slot).expect("invariant: below agfl_size")] = block;
            }
        }
        Ok(true)
    }

    /// Allocates an extent anywhere in the group, the one that fits best.
    pub fn allocate_by_size(
        &mut self,
        shape: &Shape,
        request: &Request,
        owner: Option<Owner>,
    ) -> Result<Option<Extent>> {
        let extent = self.take_by_size(request)?;
        self.finish_found(shape, extent, owner)
    }

    /// Allocates at `target` exactly.
    pub fn allocate_exact(
        &mut self,
        shape: &Shape,
        request: &Request,
        target: u32,
        owner: Option<Owner>,
    ) -> Result<Option<Extent>> {
        let extent = self.take_exact(request, target)?;
        self.finish_found(shape, extent, owner)
    }

    /// Allocates as close to `target` as possible.
    pub fn allocate_near(
        &mut self,
        shape: &Shape,
        request: &Request,
        target: u32,
        agblocks: u32,
        owner: Option<Owner>,
    ) -> Result<Option<Extent>> {
        let extent = self.take_near(request, target, agblocks)?;
        self.finish_found(shape, extent, owner)
    }

    fn finish_found(&mut self, shape: &Shape, extent: Option<Extent>, owner: Option<Owner>) -> Result<Option<Extent>> {
        if let Some(extent) = extent {
            self.finish(shape, extent, owner)?;
        }
        Ok(extent)
    }

    /// Books an extent that was taken from the trees of free space.
    fn finish(&mut self, shape: &Shape, extent: Extent, owner: Option<Owner>) -> Result<()> {
        if let Some(owner) = owner {
            self.map_owner(shape, extent, owner)?;
        }
        let left = self.agf.freeblks.get().checked_sub(extent.len);
        self.agf.freeblks.set(left.ok_or_else(|| internal("more blocks taken than were free"))?);
        Ok(())
    }

    fn take_by_size(&mut self, request: &Request) -> Result<Option<Extent>> {
        let wanted = request.maxlen + request.alignment - 1;
        let mut index = self.cnt.partition::<RawAllocRecord>(|record| record.blockcount.get() < wanted);
        if index < self.cnt.len() {
            while index < self.cnt.len() {
                let record = free_extent(&self.cnt.get(index));
                let (start, len) = request.aligned(record.start, record.len);
                if len >= request.maxlen {
                    let found = Extent { start, len: request.fixed(request.maxlen) };
                    return self.take(record, found).map(Some);
                }
                index += 1;
            }
            return Err(internal("no extent of the size that was looked up"));
        }
        if index == 0 {
            return Ok(None);
        }
        self.take_largest(request, index - 1)
    }

    /// The last record of the tree by size is too small for the whole request: takes the best of those that there are.
    fn take_largest(&mut self, request: &Request, last: usize) -> Result<Option<Extent>> {
        let mut record = free_extent(&self.cnt.get(last));
        if record.len < request.minlen {
            return Ok(None);
        }
        let (mut start, mut len) = request.aligned(record.start, record.len);
        len = len.min(request.maxlen);
        if len < request.maxlen {
            for index in (0..last).rev() {
                let other = free_extent(&self.cnt.get(index));
                if other.len <= len {
                    break;
                }
                let (other_start, other_len) = request.aligned(other.start, other.len);
                let other_len = other_len.min(request.maxlen);
                if other_len > len {
                    (record, start, len) = (other, other_start, other_len);
                    if len == request.maxlen {
                        break;
                    }
                }
            }
        }
        if len < request.minlen {
            return Ok(None);
        }
        self.take(record, Extent { start, len: request.fixed(len) }).map(Some)
    }

    fn take_exact(&mut self, request: &Request, target: u32) -> Result<Option<Extent>> {
        let after = self.bno.partition::<RawAllocRecord>(|record| record.startblock.get() <= target);
        if after == 0 {
            return Ok(None);
        }
        let record = free_extent(&self.bno.get(after - 1));
        let end = record.start + record.len;
        if record.len < request.minlen || end < target + request.minlen {
            return Ok(None);
        }
        let len = request.fixed(end.min(target + request.maxlen) - target);
        self.take(record, Extent { start: target, len }).map(Some)
    }

    fn take_near(&mut self, request: &Request, target: u32, agblocks: u32) -> Result<Option<Extent>> {
        let mut request = *request;
        if request.min_agbno == 0 && request.max_agbno == 0 {
            request.max_agbno = agblocks - 1;
        }
        let target = target.clamp(request.min_agbno, request.max_agbno);
        let mut first = self.cnt.partition::<RawAllocRecord>(|record| record.blockcount.get() < request.maxlen);
        let all = first == self.cnt.len() || request.alignment > 1;
        if all {
            // nothing is as long as wanted, or alignment may spoil it: look at all that might do
            first = self.cnt.partition::<RawAllocRecord>(|record| record.blockcount.get() < request.minlen);
        }
        let mut best: Option<Candidate> = None;
        for index in first..self.cnt.len() {
            let record = free_extent(&self.cnt.get(index));
            if consider(&request, target, record, &mut best) {
                break;
            }
        }
        let Some(best) = best else { return Ok(None) };
        self.take(best.record, best.found).map(Some)
    }

    /// Takes `found` out of the free extent `record` in both trees.
    fn take(&mut self, record: Extent, found: Extent) -> Result<Extent> {
        let end = record.start + record.len;
        let found_end = found.start + found.len;
        let before = Extent { start: record.start, len: found.start - record.start };
        let after = Extent { start: found_end, len: end - found_end };
        let mut rests = [before, after].into_iter().filter(|rest| rest.len > 0);
        let (first, second) = (rests.next(), rests.next());

        let at = self.cnt.partition::<RawAllocRecord>(|other| by_size(&free_extent(other)) < by_size(&record));
        if at == self.cnt.len() || free_extent(&self.cnt.get(at)) != record {
            return Err(internal("the trees of free space disagree"));
        }
        self.cnt.remove::<RawAllocRecord>(at);
        for rest in [first, second].into_iter().flatten() {
            let at = self.cnt.partition::<RawAllocRecord>(|other| by_size(&free_extent(other)) < by_size(&rest));
            if self.cnt.len() == self.cnt.capacity::<RawAllocRecord>() {
                return Err(internal("free space in more pieces than a block holds"));
            }
            self.cnt.insert(at, &free_record(rest));
        }

        let at = self.bno.partition::<RawAllocRecord>(|other| other.startblock.get() < record.start);
        match first {
            None => self.bno.remove::<RawAllocRecord>(at),
            Some(rest) => self.bno.set(at, &free_record(rest)),
        }
        if let Some(rest) = second {
            self.bno.insert(at + 1, &free_record(rest));
        }
        let longest = match self.cnt.len() {
            0 => 0,
            len => self.cnt.get::<RawAllocRecord>(len - 1).blockcount.get(),
        };
        self.agf.longest.set(longest);
        Ok(found)
    }

    /// Enters an extent into the reverse mappings, where it merges with its neighbours.
    pub fn map_owner(&mut self, shape: &Shape, extent: Extent, owner: Owner) -> Result<()> {
        let Some(mut rmap) = self.rmap.take() else { return Ok(()) };
        map_extent(&mut rmap, extent, owner, &mut FromFreelist { group: self, shape })?;
        self.agf.rmap_root.set(rmap.root);
        self.agf.rmap_level.set(rmap.levels);
        self.rmap = Some(rmap);
        Ok(())
    }
}

fn map_extent(rmap: &mut Tree, extent: Extent, owner: Owner, supply: &mut dyn Supply) -> Result<()> {
    let key = [u64::from(extent.start), owner.owner, owner.offset];
    let behind = rmap.seek(key)?;
    let before = rmap.previous(&behind)?;
    // the kernel's cursor goes from the record before to the one behind, and inserts there
    let behind = rmap.settle(behind)?;
    let mergeable = |record: &RawRmapRecord| {
        record.owner.get() == owner.owner && Owner::flags(record.offset.get()) == Owner::flags(owner.offset)
    };
    let end = extent.start + extent.len;
    let ignore = owner.ignores_offset();
    let mut left = None;
    if let Some(cursor) = before {
        left = rmap.record::<RawRmapRecord>(&cursor)?.map(|record| (cursor, record)).filter(|(_, record)| {
            mergeable(record)
                && record.startblock.get() + record.blockcount.get() == extent.start
                && (ignore || record.offset.get() + u64::from(record.blockcount.get()) == owner.offset)
        });
    }
    let right = rmap.record::<RawRmapRecord>(&behind)?.filter(|record| {
        mergeable(record)
            && record.startblock.get() == end
            && (ignore || owner.offset + u64::from(extent.len) == record.offset.get())
    });
    if let Some((cursor, mut left)) = left {
        left.blockcount.set(left.blockcount.get() + extent.len);
        if let Some(right) = right {
            let joined = u64::from(left.blockcount.get()) + u64::from(right.blockcount.get());
            if joined + u64::from(extent.len) <= RMAP_LEN_MAX {
                left.blockcount.set(left.blockcount.get() + right.blockcount.get());
                rmap.remove(&behind)?;
            }
        }
        return rmap.set(&cursor, left.as_bytes());
    }
    if let Some(mut right) = right {
        right.startblock.set(extent.start);
        right.blockcount.set(right.blockcount.get() + extent.len);
        if !ignore {
            right.offset.set(owner.offset);
        }
        return rmap.set(&behind, right.as_bytes());
    }
    let record = RawRmapRecord {
        startblock: Be32::new(extent.start),
        blockcount: Be32::new(extent.len),
        owner: Be64::new(owner.owner),
        offset: Be64::new(owner.offset),
    };
    rmap.insert(behind, record.as_bytes(), supply)
}

/// Looks at a free extent in a search near `target`; `true` if nothing can be better.
fn consider(request: &Request, target: u32, record: Extent, best: &mut Option<Candidate>) -> bool {
    if record.len < request.minlen {
        return false;
    }
    let (start, usable) = request.aligned(record.start, record.len);
    if start < request.min_agbno || start > request.max_agbno || usable < request.minlen {
        return false;
    }
    let len = request.fixed(usable.min(request.maxlen));
    if best.is_some_and(|best| len < best.found.len) {
        return false;
    }
    let from = nearest(target, len, request.alignment, Extent { start, len: usable });
    if from == NULL {
        return false;
    }
    let distance = from.abs_diff(target);
    if best.is_some_and(|best| distance > best.distance) {
        return false;
    }
    *best = Some(Candidate { record, found: Extent { start: from, len }, distance });
    distance == 0 && len == request.maxlen
}

/// Where in the free extent `free` an allocation of `len` blocks is best for one that wants `target`; [`NULL`] if nowhere.
fn nearest(target: u32, len: u32, alignment: u32, free: Extent) -> u32 {
    let end = free.start + free.len;
    let wanted_end = target + len;
    if free.start >= target {
        let from = free.start.next_multiple_of(alignment);
        return if from >= end { NULL } else { from };
    }
    if end >= wanted_end && alignment > 1 {
        return nearest_aligned(target, len, alignment, free);
    }
    if end >= wanted_end {
        return target;
    }
    if alignment > 1 {
        let from = (end - len).next_multiple_of(alignment);
        return match from {
            from if from > end - len && from - alignment >= free.start => from - alignment,
            from if from >= end => NULL,
            from => from,
        };
    }
    end - len
}

/// The aligned block before or behind `target`, which lies in `free`.
fn nearest_aligned(target: u32, len: u32, alignment: u32, free: Extent) -> u32 {
    let end = free.start + free.len;
    let behind = target.next_multiple_of(alignment);
    let before = behind.wrapping_sub(alignment);
    let behind_fits = behind < end;
    // a wrapped `before` is large, and counts as one that fits, as it does in the kernel's 32-bit arithmetic
    let before_fits = before >= free.start;
    let room = |from: u32| len.min(end.wrapping_sub(from));
    match (behind_fits, before_fits) {
        (true, true) => {
            let closer = room(behind) < room(before)
                || (room(behind) == room(before) && behind.abs_diff(target) > before.abs_diff(target));
            if closer { before } else { behind }
        }
        (true, false) => behind,
        (false, true) => before,
        (false, false) => NULL,
    }
}

fn free_extent(record: &RawAllocRecord) -> Extent {
    Extent { start: record.startblock.get(), len: record.blockcount.get() }
}

fn free_record(extent: Extent) -> RawAllocRecord {
    RawAllocRecord { startblock: Be32::new(extent.start), blockcount: Be32::new(extent.len) }
}

/// Order of the tree by size.
fn by_size(extent: &Extent) -> (u32, u32) {
    (extent.len, extent.start)
}

fn internal(text: &str) -> Error {
    Error::Internal(format!("making a filesystem: {text}"))
}
