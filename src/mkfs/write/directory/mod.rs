//! Directories of the new filesystem: they grow from the form in the inode to a block, to a leaf with data blocks, to a hash
//! btree, with the same bytes in every corner as those of Linux `fs/xfs/libxfs/xfs_dir2*.c`.

mod block;
mod data;
mod free;
mod leaf;
mod node;
mod short;
mod tree;

use crate::error::{Error, Result};
use crate::geometry::{FsBlock, Ino};
use crate::mkfs::write::inode::Inode;
use crate::mkfs::write::maker::Maker;
use crate::ondisk::dir_data::ftype;
use crate::ondisk::dir_leaf::SPACE_SIZE;
use crate::ondisk::name_hash::NameHash;

/// A directory while entries are added.
pub(super) struct Directory {
    /// Its inode.
    pub inode: Inode,
    /// The directory that holds it.
    parent: Ino,
    form: Form,
    /// Blocks of the index of free space.
    free_blocks: usize,
}

/// In which form a directory is stored.
enum Form {
    /// In the inode.
    Short(Vec<short::Entry>),
    /// In one directory block.
    Block,
    /// In data blocks, with one leaf.
    Leaf,
    /// In data blocks, with a hash btree.
    Node,
}

/// An entry that is added.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewEntry<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The inode that it names.
    pub ino: Ino,
    /// Whether that is a directory.
    pub is_directory: bool,
}

impl NewEntry<'_> {
    /// The byte that tells the type of the inode.
    fn ftype(&self) -> u8 {
        if self.is_directory { ftype::DIR } else { ftype::REG_FILE }
    }
}

impl Directory {
    /// An empty directory in `parent`.
    pub fn new(mut inode: Inode, parent: Ino) -> Result<Self> {
        short::store(&mut inode, parent, &[], false)?;
        Ok(Directory { inode, parent, form: Form::Short(Vec::new()), free_blocks: 0 })
    }
}

impl Maker<'_> {
    /// Adds an entry; the inode is not written.
    pub fn add_entry(&mut self, directory: &mut Directory, entry: &NewEntry<'_>) -> Result<()> {
        if let Form::Short(entries) = &mut directory.form {
            if short::add(self.shape, &mut directory.inode, directory.parent, entries, entry)? {
                return Ok(());
            }
            self.short_to_block(directory)?;
        }
        if matches!(directory.form, Form::Block) {
            if self.add_to_block(directory, entry)? {
                return Ok(());
            }
            self.block_to_leaf(directory)?;
        }
        if matches!(directory.form, Form::Leaf) {
            if self.add_to_leaf(directory, entry)? {
                return Ok(());
            }
            self.leaf_to_node(directory)?;
        }
        self.add_to_node(directory, entry)
    }

    /// Blocks of the filesystem in a directory block.
    fn directory_blocks(&self) -> u64 {
        u64::from(self.shape.layout.directory_block.bytes() / self.shape.block)
    }

    /// Bytes of a directory block.
    fn directory_bytes(&self) -> usize {
        usize::try_from(self.shape.layout.directory_block.bytes()).expect("invariant: 64 KiB at most")
    }

    /// First block of the file for the leaves and nodes.
    fn leaf_space(&self) -> u64 {
        SPACE_SIZE / u64::from(self.shape.block)
    }

    /// First block of the file for the index of free space.
    fn free_space(&self) -> u64 {
        2 * SPACE_SIZE / u64::from(self.shape.block)
    }

    /// Gives the directory a directory block at or behind block `lowest` of the file; says which.
    fn grow_directory(&mut self, directory: &mut Directory, lowest: u64) -> Result<u64> {
        let blocks = self.directory_blocks();
        let offset = first_unused(&directory.inode, lowest)?;
        let extent = self.extend_file_contiguously(&mut directory.inode, offset, blocks)?;
        if lowest < self.leaf_space() {
            let size = (offset + blocks) * u64::from(self.shape.block);
            directory.inode.size = directory.inode.size.max(size);
        }
        let (agno, agblock) = self.shape.split(FsBlock(extent.startblock));
        let bytes = vec![0; self.directory_bytes()];
        self.blocks.put(self.shape.offset(agno, agblock), bytes);
        Ok(offset)
    }

    /// Byte of the data device where block `offset` of a file lies.
    fn file_byte(&self, inode: &Inode, offset: u64) -> Result<u64> {
        let extents = inode.data.extents().ok_or_else(damaged)?;
        let extent = extents
            .iter()
            .find(|extent| extent.startoff <= offset && offset < extent.startoff + u64::from(extent.blockcount))
            .ok_or_else(damaged)?;
        let (agno, agblock) = self.shape.split(FsBlock(extent.startblock + (offset - extent.startoff)));
        Ok(self.shape.offset(agno, agblock))
    }

    /// The directory block at block `offset` of the file.
    fn directory_block(&mut self, directory: &Directory, offset: u64) -> Result<&mut [u8]> {
        let byte = self.file_byte(&directory.inode, offset)?;
        let len = self.directory_bytes();
        self.blocks.get(byte, len)
    }

    /// How names are hashed.
    fn name_hash(&self) -> NameHash {
        if self.shape.layout.features.ascii_ci { NameHash::AsciiCi } else { NameHash::Bytes }
    }
}

/// The first block at or behind `lowest` that has no block of the device, up to the next extent or the end.
fn first_unused(inode: &Inode, lowest: u64) -> Result<u64> {
    let extents = inode.data.extents().ok_or_else(damaged)?;
    let mut at = lowest;
    for extent in extents {
        if extent.startoff <= at && at < extent.startoff + u64::from(extent.blockcount) {
            at = extent.startoff + u64::from(extent.blockcount);
        }
    }
    Ok(at)
}

/// An invariant of the directory's own blocks does not hold.
fn damaged() -> Error {
    Error::Internal("making a filesystem: a directory is not what it was made to be".to_string())
}
