//! What directory and attribute blocks share: their headers and the inner nodes of the hash btree
//! (Linux `fs/xfs/libxfs/xfs_da_format.h`).

use crate::error::{Check, Rule};
use crate::ondisk::{Be16, Be32, Be64, Le32, OnDisk, RawUuid};

/// Magic number of an inner node (v4).
pub const DA_NODE_MAGIC: u16 = 0xfebe;
/// Magic number of an inner node (v5).
pub const DA3_NODE_MAGIC: u16 = 0x3ebe;
/// Greatest depth of a hash btree, leaves included.
pub const DA_NODE_MAXDEPTH: u16 = 5;

ondisk! {
    /// Links and magic number of a directory leaf, attribute leaf or inner node (`xfs_da_blkinfo`).
    pub struct RawDaBlkinfo("da_blkinfo"): 12 {
        /// The next block at this level, in filesystem blocks of the file; 0 for none.
        0 => forw: Be32,
        /// The block before it at this level; 0 for none.
        4 => back: Be32,
        /// Magic number of the kind of block.
        8 => magic: Be16,
        /// Unused.
        10 => pad: Be16,
    }
}

ondisk! {
    /// The same with the identity that v5 adds (`xfs_da3_blkinfo`).
    pub struct RawDa3Blkinfo("da3_blkinfo"): 56 {
        /// What v4 has.
        0 => hdr: RawDaBlkinfo,
        /// CRC of the block.
        12 => crc: Le32,
        /// Own disk address, in 512-byte units.
        16 => blkno: Be64,
        /// LSN of the last write.
        24 => lsn: Be64,
        /// UUID of the filesystem.
        32 => uuid: RawUuid,
        /// Inode that owns the block.
        48 => owner: Be64,
    }
}

ondisk! {
    /// Header of an inner node, v4 (`xfs_da_node_hdr`).
    pub struct RawDaNodeHdr("da_node_hdr"): 16 {
        /// Links and magic number.
        0 => info: RawDaBlkinfo,
        /// Entries in use.
        12 => count: Be16,
        /// Level above the leaves, which are 0.
        14 => level: Be16,
    }
}

ondisk! {
    /// Header of an inner node, v5 (`xfs_da3_node_hdr`).
    pub struct RawDa3NodeHdr("da3_node_hdr"): 64 {
        /// Links, magic number, identity.
        0 => info: RawDa3Blkinfo,
        /// Entries in use.
        56 => count: Be16,
        /// Level above the leaves, which are 0.
        58 => level: Be16,
        /// Unused.
        60 => pad32: Be32,
    }
}

ondisk! {
    /// Entry of an inner node (`xfs_da_node_entry`).
    pub struct RawDaNodeEntry("da_node_entry"): 8 {
        /// Greatest hash below the child.
        0 => hashval: Be32,
        /// The child, in filesystem blocks of the file.
        4 => before: Be32,
    }
}

impl RawDa3Blkinfo {
    /// Offset of the CRC in bytes.
    pub const CRC_OFFSET: usize = std::mem::offset_of!(RawDa3Blkinfo, crc);
}

/// An inner node: its header in both versions, and its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaNode<'a> {
    /// The next node at this level; 0 for none.
    pub forw: u32,
    /// The node before it at this level; 0 for none.
    pub back: u32,
    /// Level above the leaves.
    pub level: u16,
    /// The entries in use.
    pub entries: &'a [RawDaNodeEntry],
}

impl<'a> DaNode<'a> {
    /// Decodes the node in `block`, which has the v5 header when `crc` is set.
    ///
    /// # Errors
    /// The check that the block fails: magic number, level, or a count that the block cannot hold.
    pub fn decode(block: &'a [u8], crc: bool) -> Result<Self, Check> {
        let (info, count, level, rest) = if crc {
            let (hdr, rest) = RawDa3NodeHdr::prefix(block).ok_or(TRUNCATED)?;
            (&hdr.info.hdr, hdr.count, hdr.level, rest)
        } else {
            let (hdr, rest) = RawDaNodeHdr::prefix(block).ok_or(TRUNCATED)?;
            (&hdr.info, hdr.count, hdr.level, rest)
        };
        if info.magic.get() != if crc { DA3_NODE_MAGIC } else { DA_NODE_MAGIC } {
            return Err(Check::new("da_node", "magic", Rule::Magic));
        }
        if level.get() == 0 || level.get() >= DA_NODE_MAXDEPTH {
            return Err(Check::new("da_node", "level", Rule::Range));
        }
        if count.get() == 0 {
            return Err(Check::new("da_node", "count", Rule::Range));
        }
        let (entries, _) = RawDaNodeEntry::prefix_slice(rest, usize::from(count.get())).ok_or(Check::new(
            "da_node",
            "count",
            Rule::Count,
        ))?;
        Ok(DaNode { forw: info.forw.get(), back: info.back.get(), level: level.get(), entries })
    }

    /// Which of the order rules the entries break: hashes must not descend.
    pub fn check_order(&self) -> Option<Check> {
        let sorted = self.entries.windows(2).all(|pair| pair[0].hashval.get() <= pair[1].hashval.get());
        (!sorted).then_some(Check::new("da_node", "hashval", Rule::Order))
    }

    /// The child that holds the first entry of `hash`: the first whose greatest hash is not below it.
    pub fn child(&self, hash: u32) -> Option<u32> {
        let at = self.entries.partition_point(|entry| entry.hashval.get() < hash);
        self.entries.get(at).map(|entry| entry.before.get())
    }
}

const TRUNCATED: Check = Check::new("da_node", "hdr", Rule::Truncated);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::IntoBytes;

    fn node(crc: bool, hashes: &[u32]) -> Vec<u8> {
        let count = Be16::new(u16::try_from(hashes.len()).expect("invariant: few entries"));
        let magic = Be16::new(if crc { DA3_NODE_MAGIC } else { DA_NODE_MAGIC });
        let info = RawDaBlkinfo { forw: 7.into(), back: 0.into(), magic, pad: 0.into() };
        let mut block = if crc {
            let info = RawDa3Blkinfo {
                hdr: info,
                crc: 0.into(),
                blkno: 0.into(),
                lsn: 0.into(),
                uuid: [0; 16],
                owner: 0.into(),
            };
            RawDa3NodeHdr { info, count, level: 1.into(), pad32: 0.into() }.as_bytes().to_vec()
        } else {
            RawDaNodeHdr { info, count, level: 1.into() }.as_bytes().to_vec()
        };
        for (at, &hash) in (100..).zip(hashes) {
            block.extend_from_slice(RawDaNodeEntry { hashval: hash.into(), before: Be32::new(at) }.as_bytes());
        }
        block
    }

    #[test]
    fn a_node_finds_its_child() {
        for crc in [false, true] {
            let block = node(crc, &[10, 20, 20, 30]);
            let node = DaNode::decode(&block, crc).expect("a sound node");
            assert_eq!((node.forw, node.level, node.entries.len()), (7, 1, 4));
            assert_eq!([5, 10, 11, 20, 30].map(|hash| node.child(hash)), [100, 100, 101, 101, 103].map(Some));
            assert_eq!(node.child(31), None);
            assert_eq!(node.check_order(), None);
            assert!(DaNode::decode(&block, !crc).is_err());
            let cut = &block[..block.len() - 1];
            assert_eq!(DaNode::decode(cut, crc), Err(Check::new("da_node", "count", Rule::Count)));
        }
        let block = node(true, &[3, 2]);
        assert!(DaNode::decode(&block, true).expect("decodable").check_order().is_some());
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), crc: bool) {
            let _ = DaNode::decode(&bytes, crc).map(|node| (node.child(77), node.check_order()));
        }
    }
}
