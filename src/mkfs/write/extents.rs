//! Blocks for files. Source: `xfs_bmapi_write`, `xfs_bmap_btalloc` and `xfs_bmap_add_extent_hole_real` of Linux
//! `fs/xfs/libxfs/xfs_bmap.c`, for metadata.

use zerocopy::IntoBytes;

use crate::error::{Error, Result};
use crate::geometry::FsBlock;
use crate::mkfs::write::attribute::data_room;
use crate::mkfs::write::inode::{Data, Inode};
use crate::mkfs::write::maker::Maker;
use crate::mkfs::write::shape::BASIC_BLOCK;
use crate::mkfs::write::space::{self, Owner, Request};
use crate::ondisk::btree_block::magic;
use crate::ondisk::extent::MAX_BLOCKCOUNT;
use crate::ondisk::rmap_record::OFFSET_BMBT_BLOCK;
use crate::ondisk::{Extent, NULLFSBLOCK, OnDisk, RawExtent, RawLongBlock, RawLongBlockV5, crc};

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
        let extents = inode.data.extents().ok_or_else(not_extents)?;
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
        self.map_later(agno, found, Owner { owner: inode.ino.0, offset });
        self.keep_in_bounds(inode)?;
        Ok(new)
    }

    /// Moves the extents of a file out of its inode if they have become too many for it.
    fn keep_in_bounds(&mut self, inode: &mut Inode) -> Result<()> {
        let shape = self.shape;
        let Data::Extents(extents) = &mut inode.data else { return Ok(()) };
        let room = data_room(shape, inode.forkoff) / RawExtent::SIZE;
        if extents.len() <= room {
            return Ok(());
        }
        let extents = std::mem::take(extents);
        let (ino_agno, agino) = shape.split_ino(inode.ino);
        let target = shape.fsblock(ino_agno, agino >> shape.inopblog);
        let mut request = Request::exactly(1);
        request.minleft = 2;
        let owner = Owner { owner: inode.ino.0, offset: OFFSET_BMBT_BLOCK };
        let (agno, found) =
            self.allocate_in_groups(&request, target, Some(owner))?.ok_or_else(|| full("the extents of a file"))?;
        inode.nblocks += 1;
        self.progress.fdblocks = self.progress.fdblocks.saturating_sub(1);
        inode.data = Data::Btree { extents, leaf: shape.fsblock(agno, found.start) };
        Ok(())
    }

    /// Puts the block that lists the extents of a file, if there is one, where it belongs.
    pub fn put_extent_leaf(&mut self, inode: &Inode) -> Result<()> {
        let Data::Btree { extents, leaf } = &inode.data else { return Ok(()) };
        let shape = self.shape;
        let crcs = shape.layout.features.crc;
        let (agno, agblock) = shape.split(*leaf);
        let offset = shape.offset(agno, agblock);
        let mut bytes = vec![0; usize::try_from(shape.block).expect("invariant: 64 KiB at most")];
        let (head, _) = RawLongBlock::prefix_mut(&mut bytes).ok_or_else(not_extents)?;
        head.magic.set(if crcs { magic::BMBT_V5 } else { magic::BMBT });
        head.numrecs.set(u16::try_from(extents.len()).map_err(|_| full("one block of extents"))?);
        head.leftsib.set(NULLFSBLOCK);
        head.rightsib.set(NULLFSBLOCK);
        let mut header = RawLongBlock::SIZE;
        if crcs {
            let (head, _) = RawLongBlockV5::prefix_mut(&mut bytes).ok_or_else(not_extents)?;
            head.blkno.set(offset / BASIC_BLOCK);
            head.uuid = *shape.layout.uuid.as_bytes();
            head.owner.set(inode.ino.0);
            header = RawLongBlockV5::SIZE;
        }
        let mut slots = bytes.get_mut(header..).ok_or_else(not_extents)?.chunks_exact_mut(RawExtent::SIZE);
        for extent in extents {
            let raw = extent.encode().ok_or_else(not_extents)?;
            slots.next().ok_or_else(|| full("one block of extents"))?.copy_from_slice(raw.as_bytes());
        }
        if crcs {
            crc::stamp(&mut bytes, RawLongBlockV5::CRC_OFFSET);
        }
        self.blocks.put(offset, bytes);
        Ok(())
    }

    /// Notes an extent for the reverse mappings, which are changed at the next commit.
    fn map_later(&mut self, agno: u32, extent: space::Extent, owner: Owner) {
        if self.shape.layout.features.rmapbt {
            self.unmapped.push((agno, extent, owner));
        }
    }

    /// Enters the extents of this transaction into the reverse mappings. The freelist is filled up once for each group.
    pub fn map_extents(&mut self) -> Result<()> {
        let shape = self.shape;
        let mut filled = None;
        for (agno, extent, owner) in std::mem::take(&mut self.unmapped) {
            let group = self.group(agno)?;
            if filled != Some(agno) {
                group.fill_freelist(shape)?;
                filled = Some(agno);
            }
            group.map_owner(shape, extent, owner)?;
        }
        Ok(())
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
        if let Some(found) = self.allocate_in_groups(request, target, None)? {
            return Ok(found);
        }
        request.minlen = shortest;
        if let Some(found) = self.allocate_in_groups(request, target, None)? {
            return Ok(found);
        }
        request.total = shortest;
        let first = self.shape.fsblock(0, 0);
        self.allocate_in_groups(request, first, None)?.ok_or_else(|| full("the metadata of the filesystem"))
    }

    fn allocate_in_groups(
        &mut self,
        request: &Request,
        target: FsBlock,
        owner: Option<Owner>,
    ) -> Result<Option<(u32, space::Extent)>> {
        let shape = self.shape;
        let (start, agblock) = shape.split(target);
        for agno in self.groups_from(start) {
            let mut request = *request;
            let group = self.group(agno)?;
            if !group.prepare(shape, &mut request)? {
                continue;
            }
            let found = if agno == start && agblock != 0 {
                group.allocate_near(shape, &request, agblock, shape.layout.data.agblocks, owner)?
            } else {
                group.allocate_by_size(shape, &request, owner)?
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
    let (Data::Extents(extents) | Data::Btree { extents, .. }) = &mut inode.data else { return Err(not_extents()) };
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

fn full(what: &str) -> Error {
    Error::Usage(format!("no space is left for {what}"))
}

fn not_extents() -> Error {
    Error::Internal("making a filesystem: blocks are added to a file that has no extents".to_string())
}
