//! Blocks for files. Source: `xfs_bmapi_write`, `xfs_bmap_btalloc` and `xfs_bmap_add_extent_hole_real` of Linux
//! `fs/xfs/libxfs/xfs_bmap.c`, for metadata.

use crate::error::{Error, Result};
use crate::geometry::FsBlock;
use crate::mkfs::write::inode::{Data, Inode};
use crate::mkfs::write::maker::Maker;
use crate::mkfs::write::space::{self, Owner, Request};
use crate::ondisk::Extent;
use crate::ondisk::extent::MAX_BLOCKCOUNT;

/// Bytes of a page of memory: smaller blocks are allocated in multiples of it, as on the machines where mkfs.xfs runs.
const PAGE: u32 = 4096;

impl Maker<'_> {
    /// Allocates up to `len` blocks for the file's blocks from `offset` on, where it has none. Gives what was allocated,
    /// which may be less.
    pub fn extend_file(&mut self, inode: &mut Inode, offset: u64, len: u64) -> Result<Extent> {
        self.extend(inode, offset, len, false)
    }

    /// Allocates `len` blocks in one piece for the file's blocks from `offset` on, where it has none.
    pub fn extend_file_contiguously(&mut self, inode: &mut Inode, offset: u64, len: u64) -> Result<Extent> {
        self.extend(inode, offset, len, true)
    }

    fn extend(&mut self, inode: &mut Inode, offset: u64, len: u64, contiguous: bool) -> Result<Extent> {
        let shape = self.shape;
        let Data::Extents(extents) = &inode.data else { return Err(not_extents()) };
        let last = extents.iter().rfind(|extent| extent.startoff < offset).copied();
        let (ino_agno, agino) = shape.split_ino(inode.ino);
        let target = match last {
            Some(last) => self.behind(last, offset),
            None => shape.fsblock(ino_agno, agino >> shape.inopblog),
        };
        let wanted = u32::try_from(len.min(u64::from(MAX_BLOCKCOUNT))).expect("invariant: bounded above");
        let mut request = Request::exactly(1);
        request.maxlen = wanted.min(shape.ag_max_usable);
        request.minleft = 1;
        if shape.block < PAGE {
            request.prod = PAGE / shape.block;
            let rest = u32::try_from(offset % u64::from(request.prod)).expect("invariant: a remainder");
            request.rest = if rest == 0 { 0 } else { request.prod - rest };
        }
        let shortest = if contiguous { wanted } else { 1 };
        let (agno, found) = self.allocate_for_file(&mut request, target, shortest)?;
        let new = Extent {
            startoff: offset,
            startblock: shape.fsblock(agno, found.start).0,
            blockcount: found.len,
            unwritten: false,
        };
        inode.nblocks += u64::from(found.len);
        self.progress.fdblocks = self.progress.fdblocks.saturating_sub(u64::from(found.len));
        append(inode, new)?;
        if shape.layout.features.rmapbt {
            let group = self.group(agno)?;
            group.fill_freelist(shape)?;
            group.map_owner(shape, found, Owner { owner: inode.ino.0, offset })?;
        }
        Ok(new)
    }

    /// The block behind `last` where the file's block `offset` would follow it.
    fn behind(&self, last: Extent, offset: u64) -> FsBlock {
        let shape = self.shape;
        let valid = |block: u64| {
            let (agno, agblock) = shape.split(FsBlock(block));
            let (last_agno, _) = shape.split(FsBlock(last.startblock));
            agno == last_agno && agblock < shape.layout.data.agblocks
        };
        let end = last.startblock + u64::from(last.blockcount);
        if !valid(end) {
            return FsBlock(last.startblock);
        }
        let gap = offset - (last.startoff + u64::from(last.blockcount));
        FsBlock(if valid(end + gap) { end + gap } else { end })
    }

    /// Allocates near `target`, else in another group, else anything that there is.
    fn allocate_for_file(
        &mut self,
        request: &mut Request,
        target: FsBlock,
        shortest: u32,
    ) -> Result<(u32, space::Extent)> {
        let (start, _) = self.shape.split(target);
        let mut longest = 0;
        for agno in self.groups_from(start) {
            let shape = self.shape;
            longest = longest.max(self.group(agno)?.longest_usable(shape));
            if longest >= request.maxlen {
                break;
            }
        }
        request.minlen = longest.min(request.maxlen).max(shortest);
        if let Some(found) = self.allocate_in_groups(request, target)? {
            return Ok(found);
        }
        request.minlen = shortest;
        if let Some(found) = self.allocate_in_groups(request, target)? {
            return Ok(found);
        }
        request.total = shortest;
        let first = self.shape.fsblock(0, 0);
        self.allocate_in_groups(request, first)?
            .ok_or_else(|| Error::Usage("no space is left for the metadata of the filesystem".to_string()))
    }

    fn allocate_in_groups(&mut self, request: &Request, target: FsBlock) -> Result<Option<(u32, space::Extent)>> {
        let shape = self.shape;
        let (start, agblock) = shape.split(target);
        for agno in self.groups_from(start) {
            let mut request = *request;
            let group = self.group(agno)?;
            if !group.prepare(shape, &mut request)? {
                continue;
            }
            let found = if agno == start && agblock != 0 {
                group.allocate_near(shape, &request, agblock, shape.layout.data.agblocks, None)?
            } else {
                group.allocate_by_size(shape, &request, None)?
            };
            return Ok(found.map(|found| (agno, found)));
        }
        Ok(None)
    }

    fn groups_from(&self, start: u32) -> impl Iterator<Item = u32> + use<> {
        (start..self.agcount()).chain(0..start)
    }
}

/// Adds an extent to the file; it joins the one before it if it continues that.
fn append(inode: &mut Inode, new: Extent) -> Result<()> {
    let Data::Extents(extents) = &mut inode.data else { return Err(not_extents()) };
    let at = extents.partition_point(|extent| extent.startoff < new.startoff);
    if let Some(before) = at.checked_sub(1).and_then(|before| extents.get_mut(before)) {
        let continues = before.startoff + u64::from(before.blockcount) == new.startoff
            && before.startblock + u64::from(before.blockcount) == new.startblock
            && before.blockcount + new.blockcount <= MAX_BLOCKCOUNT;
        if continues {
            before.blockcount += new.blockcount;
            return Ok(());
        }
    }
    extents.insert(at, new);
    Ok(())
}

fn not_extents() -> Error {
    Error::Internal("making a filesystem: blocks are added to a file that has no extents".to_string())
}
