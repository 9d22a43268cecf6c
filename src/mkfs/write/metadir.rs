//! The metadata directory and the files of the realtime groups in it. Sources: `create_metadir`, `rtinit_groups` of xfsprogs
//! `mkfs/proto.c`, `xfs_metadir_create` and `xfs_rtginode_create` of Linux `fs/xfs/libxfs`.

use zerocopy::{FromZeros, IntoBytes};

use crate::error::Result;
use crate::geometry::Ino;
use crate::mkfs::layout::RealtimeGroups;
use crate::mkfs::write::attribute;
use crate::mkfs::write::chunk::Parent;
use crate::mkfs::write::directory::{Directory, NewEntry};
use crate::mkfs::write::inode::{Data, Inode, mode};
use crate::mkfs::write::maker::Maker;
use crate::mkfs::write::realtime::{BitmapShape, Free};
use crate::ondisk::dinode::{flags, flags2, metatype};
use crate::ondisk::rmap_record::owner;
use crate::ondisk::{RawRmapRecord, RawRtrefcountRoot, RawRtrmapRoot};

/// Flags of all files of metadata.
const FILE_FLAGS: u16 = flags::IMMUTABLE | flags::SYNC | flags::NOATIME | flags::NODUMP | flags::NODEFRAG;
/// Name of the directory of the realtime groups.
const GROUPS: &[u8] = b"rtgroups";

impl Maker<'_> {
    /// Makes the metadata directory, and in it what the realtime groups need.
    pub fn make_metadata_directory(&mut self, groups: RealtimeGroups) -> Result<()> {
        let ino = self.allocate_inode(Parent::None)?;
        let mut inode = self.metadata_inode(ino, mode::DIRECTORY, metatype::DIR);
        inode.flags |= flags::NOSYMLINKS;
        self.progress.metadirino = ino;
        let mut root = Directory::new(inode, ino)?;
        self.commit(&mut root.inode)?;

        let mut directory = self.make_groups_directory(&mut root)?;
        for group in 0..groups.count {
            self.make_group_files(&mut directory, groups, group)?;
            self.blocks.relieve()?;
        }
        Ok(())
    }

    fn make_groups_directory(&mut self, root: &mut Directory) -> Result<Directory> {
        let parent = root.inode.ino;
        let ino = self.allocate_inode(Parent::Metadata(parent))?;
        let mut inode = self.metadata_inode(ino, mode::DIRECTORY, metatype::DIR);
        inode.flags |= flags::NOSYMLINKS;
        self.link(root, &mut inode, GROUPS)?;
        root.inode.nlink += 1;
        let mut directory = Directory::new(inode, parent)?;
        self.commit(&mut root.inode)?;
        self.commit(&mut directory.inode)?;
        Ok(directory)
    }

    /// Makes the files of one realtime group.
    fn make_group_files(&mut self, directory: &mut Directory, groups: RealtimeGroups, group: u32) -> Result<()> {
        let layout = &self.shape.layout;
        let features = layout.features;
        let block = u64::from(self.shape.block);
        let bitmaps = BitmapShape::new(self.shape);
        let bitmap_size = u64::from(layout.realtime.bitmap_blocks) * block;
        // the realtime superblock takes the first extent, and the first record
        let superblock = u64::from(group == 0 && !features.zoned && layout.realtime.blocks > 0);
        let extent_blocks = layout.realtime.extent_blocks;
        let start = u64::from(group) * u64::from(groups.extents);
        let end = (layout.realtime.extents - start).min(u64::from(groups.extents));

        let mut files = None;
        if !features.zoned {
            let bitmap = self.make_group_file(directory, group, "bitmap", metatype::RTBITMAP, |inode| {
                inode.size = bitmap_size;
            })?;
            let summary = self.make_group_file(directory, group, "summary", metatype::RTSUMMARY, |inode| {
                inode.size = bitmaps.summary_blocks * block;
            })?;
            files = Some((bitmap, summary));
        }
        let mut rmap = None;
        if features.rmapbt {
            rmap = Some(self.make_group_file(directory, group, "rmap", metatype::RTRMAP, |inode| {
                inode.data = Data::MetaBtree(RawRtrmapRoot::new_zeroed().as_bytes().to_vec());
            })?);
        }
        if features.reflink {
            self.make_group_file(directory, group, "refcount", metatype::RTREFCOUNT, |inode| {
                inode.data = Data::MetaBtree(RawRtrefcountRoot::new_zeroed().as_bytes().to_vec());
            })?;
        }
        if let Some(mut rmap) = rmap.filter(|_| superblock > 0) {
            rmap.data = Data::MetaBtree(superblock_record(extent_blocks));
            self.commit(&mut rmap)?;
        }
        if let Some((mut bitmap, mut summary)) = files {
            self.fill_bitmap_files(&bitmaps, &mut bitmap, &mut summary, Free { start: superblock, end })?;
        }
        Ok(())
    }

    /// Makes one file of a realtime group.
    fn make_group_file(
        &mut self,
        directory: &mut Directory,
        group: u32,
        kind: &str,
        metatype: u16,
        set_up: impl FnOnce(&mut Inode),
    ) -> Result<Inode> {
        let ino = self.allocate_inode(Parent::Metadata(directory.inode.ino))?;
        let mut inode = self.metadata_inode(ino, mode::REGULAR, metatype);
        let name = format!("{group}.{kind}");
        self.link(directory, &mut inode, name.as_bytes())?;
        inode.projid = group;
        set_up(&mut inode);
        self.commit(&mut directory.inode)?;
        self.commit(&mut inode)?;
        Ok(inode)
    }

    /// A new inode of metadata.
    fn metadata_inode(&self, ino: Ino, mode: u16, metatype: u16) -> Inode {
        let generation = self.random();
        let mut inode = Inode::new(self.shape, ino, mode, generation);
        inode.flags = FILE_FLAGS;
        inode.flags2 |= flags2::METADATA;
        inode.metatype = metatype;
        inode
    }

    /// Enters `inode` into `directory`, and notes in the inode that it is there.
    fn link(&mut self, directory: &mut Directory, inode: &mut Inode, name: &[u8]) -> Result<()> {
        let entry = NewEntry { name, ino: inode.ino, is_directory: inode.is_directory() };
        self.add_entry(directory, &entry)?;
        if self.shape.layout.features.parent {
            let (parent, generation) = (directory.inode.ino, directory.inode.generation);
            attribute::reserve_fork(self.shape, inode);
            attribute::set_parent(self.shape, inode, name, parent, generation)?;
        }
        Ok(())
    }
}

/// The root of the reverse mappings of the first group: its one record is the realtime superblock.
fn superblock_record(blocks: u32) -> Vec<u8> {
    let mut root = RawRtrmapRoot::new_zeroed();
    root.numrecs.set(1);
    let record =
        RawRmapRecord { startblock: 0.into(), blockcount: blocks.into(), owner: owner::FS.into(), offset: 0.into() };
    [root.as_bytes(), record.as_bytes()].concat()
}
