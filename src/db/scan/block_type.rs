//! What a block is used for, by the names that `blockuse` prints.

/// What a block of the data device, or of the realtime section, is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum BlockType {
    /// Nothing is known to use it.
    #[default]
    Unknown,
    /// Free space header of a group.
    Agf,
    /// Free list header of a group.
    Agfl,
    /// Inode header of a group.
    Agi,
    /// Attribute fork.
    Attr,
    /// Free space btree by block.
    BtBno,
    /// Free space btree by size.
    BtCnt,
    /// Inode btree.
    BtIno,
    /// Contents of a file.
    Data,
    /// Directory.
    Dir,
    /// Free, by the btree by block.
    Free1,
    /// Free, by both free space btrees.
    Free2,
    /// On the free list.
    FreeList,
    /// Inodes.
    Inode,
    /// The log.
    Log,
    /// Behind the end of its group.
    Missing,
    /// Quota file.
    Quota,
    /// Realtime bitmap.
    RtBitmap,
    /// Contents of a realtime file.
    RtData,
    /// Free realtime space.
    RtFree,
    /// Realtime summary.
    RtSum,
    /// Superblock.
    Sb,
    /// Target of a symbolic link.
    Symlink,
    /// Free inode btree.
    BtFino,
    /// Reverse mapping btree.
    BtRmap,
    /// Reference count btree.
    BtRefcnt,
    /// Contents that files share.
    RlData,
    /// Left over from copy on write.
    CowData,
}

impl BlockType {
    /// All of them, in the order of their numbers.
    pub const ALL: [BlockType; 28] = [
        BlockType::Unknown,
        BlockType::Agf,
        BlockType::Agfl,
        BlockType::Agi,
        BlockType::Attr,
        BlockType::BtBno,
        BlockType::BtCnt,
        BlockType::BtIno,
        BlockType::Data,
        BlockType::Dir,
        BlockType::Free1,
        BlockType::Free2,
        BlockType::FreeList,
        BlockType::Inode,
        BlockType::Log,
        BlockType::Missing,
        BlockType::Quota,
        BlockType::RtBitmap,
        BlockType::RtData,
        BlockType::RtFree,
        BlockType::RtSum,
        BlockType::Sb,
        BlockType::Symlink,
        BlockType::BtFino,
        BlockType::BtRmap,
        BlockType::BtRefcnt,
        BlockType::RlData,
        BlockType::CowData,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            BlockType::Unknown => "unknown",
            BlockType::Agf => "agf",
            BlockType::Agfl => "agfl",
            BlockType::Agi => "agi",
            BlockType::Attr => "attr",
            BlockType::BtBno => "btbno",
            BlockType::BtCnt => "btcnt",
            BlockType::BtIno => "btino",
            BlockType::Data => "data",
            BlockType::Dir => "dir",
            BlockType::Free1 => "free1",
            BlockType::Free2 => "free2",
            BlockType::FreeList => "freelist",
            BlockType::Inode => "inode",
            BlockType::Log => "log",
            BlockType::Missing => "missing",
            BlockType::Quota => "quota",
            BlockType::RtBitmap => "rtbitmap",
            BlockType::RtData => "rtdata",
            BlockType::RtFree => "rtfree",
            BlockType::RtSum => "rtsum",
            BlockType::Sb => "sb",
            BlockType::Symlink => "symlink",
            BlockType::BtFino => "btfino",
            BlockType::BtRmap => "btrmap",
            BlockType::BtRefcnt => "btrefcnt",
            BlockType::RlData => "rldata",
            BlockType::CowData => "cowdata",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_in_the_list() {
        assert!(BlockType::ALL.iter().enumerate().all(|(at, kind)| *kind as usize == at));
    }
}
