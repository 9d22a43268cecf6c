//! Parent pointers: attributes whose name is the name of a directory entry, and whose value says which directory
//! has it (Linux `fs/xfs/libxfs/xfs_parent.c`).

use crate::ondisk::name_hash::NameHash;
use crate::ondisk::{Be32, Be64};

ondisk! {
    /// Value of a parent pointer (`xfs_parent_rec`).
    pub struct RawParentRec("parent_rec"): 12 {
        /// Inode number of the directory.
        0 => ino: Be64,
        /// Its generation.
        8 => generation: Be32,
    }
}

/// The hash under which a parent pointer is filed: that of the name in the directory, mixed with the directory's
/// inode number, so that equal names in many directories do not collide.
#[allow(clippy::cast_possible_truncation)] // both halves of the number are mixed in, one after the other
pub fn hash_parent(hash: NameHash, name: &[u8], parent: u64) -> u32 {
    hash.hash(name) ^ (parent >> 32) as u32 ^ parent as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_of_the_inode_number_count() {
        let plain = NameHash::Bytes.hash(b"name");
        assert_eq!(hash_parent(NameHash::Bytes, b"name", 0x80), plain ^ 0x80);
        assert_eq!(hash_parent(NameHash::Bytes, b"name", 0x12_0000_0080), plain ^ 0x92);
        assert_eq!(hash_parent(NameHash::AsciiCi, b"NAME", 0), plain);
    }
}
