//! Who owns a block.
//!
//! The structures of the block's group are looked through in any case. For files there are two ways: the reverse mapping
//! btree knows them; where there is none, or it is damaged, every inode is asked.
//!
//! | file | what it holds |
//! |---|---|
//! | `block` | which block is meant |
//! | `group` | headers, btrees, free space and inodes of a group |
//! | `mappings` | owners as the reverse mapping btree has them |
//! | `inodes` | owners among all inodes |
//! | `paths` | the names of an inode |

mod block;
mod group;
mod inodes;
mod mappings;
mod paths;

pub use block::BlockAddress;
pub use paths::{Named, paths_of};

use crate::error::Result;
use crate::geometry::{AgNumber, BtreeKind, Ino};
use crate::tree::Reader;

/// Who owns a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOwner {
    /// Nobody: it is free.
    Free,
    /// The free list of its group: free, and kept for the group's btrees.
    FreeList,
    /// The headers of its group.
    Headers,
    /// The journal.
    Journal,
    /// A btree of its group.
    Btree(BtreeKind),
    /// Inodes, of which this is the first in the chunk.
    Inodes(Ino),
    /// Nobody yet: it is held for copying on write.
    CopyOnWrite,
    /// The realtime superblock.
    RealtimeSuperblock,
    /// A file, or an inode of the filesystem itself.
    File(FileBlock),
    /// What the reverse mapping btree names by this number, and nothing else shows.
    Other(u64),
}

/// The place of a block in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileBlock {
    /// The inode.
    pub ino: Ino,
    /// It is of the attributes, not of the contents.
    pub is_attribute: bool,
    /// It is a block of the fork's btree, not of what the fork holds.
    pub is_btree: bool,
    /// Which block of the fork it is, where it is no block of a btree.
    pub offset: u64,
    /// It is allocated, and reads as zeroes.
    pub unwritten: bool,
}

/// The owners of `block`; none, where nothing claims it. What is damaged on the way is reported. With `every_inode` all
/// inodes are asked even if there is a reverse mapping btree.
///
/// # Errors
/// `Io`.
pub fn owners(reader: &Reader<'_>, block: BlockAddress, every_inode: bool) -> Result<Vec<BlockOwner>> {
    let mut owners = Vec::new();
    match block {
        BlockAddress::Data(agno, agbno) => group::owners(reader, agno, agbno, &mut owners)?,
        BlockAddress::Realtime(rtb) => {
            if reader.geometry().features.has_rtsb() && !reader.geometry().is_usable_rtb(rtb) {
                owners.push(BlockOwner::RealtimeSuperblock);
            }
        }
    }
    let mapped = if every_inode { None } else { mappings::owners(reader, block, &owners) };
    match mapped {
        Some(found) => owners.extend(found),
        None => inodes::owners(reader, block, &mut owners)?,
    }
    Ok(owners)
}

/// All groups of the data device.
fn groups(reader: &Reader<'_>) -> impl Iterator<Item = AgNumber> {
    (0..reader.geometry().agcount).map(AgNumber)
}
