//! Access control lists, as the attributes [`ACCESS_NAME`] and [`DEFAULT_NAME`] in the `trusted` namespace hold them
//! (Linux `fs/xfs/libxfs/xfs_format.h`, `struct xfs_acl`).

use super::{Be16, Be32};

/// Name of the attribute with the list that rules access.
pub const ACCESS_NAME: &[u8] = b"SGI_ACL_FILE";
/// Name of the attribute with the list that new files in a directory get.
pub const DEFAULT_NAME: &[u8] = b"SGI_ACL_DEFAULT";

ondisk! {
    /// Header of a list; its entries follow.
    pub struct RawAclHdr("acl"): 4 {
        /// Number of entries.
        0 => cnt: Be32,
    }
}

ondisk! {
    /// Entry of a list.
    pub struct RawAclEntry("acl_entry"): 12 {
        /// For whom it is: [`tag`].
        0 => tag: Be32,
        /// User or group, where the tag asks for one.
        4 => id: Be32,
        /// What they may: 4 read, 2 write, 1 execute.
        8 => perm: Be16,
        /// Unused.
        10 => pad: Be16,
    }
}

/// Values of `tag`.
pub mod tag {
    /// The owner.
    pub const USER_OBJ: u32 = 0x01;
    /// A user.
    pub const USER: u32 = 0x02;
    /// The group of the file.
    pub const GROUP_OBJ: u32 = 0x04;
    /// A group.
    pub const GROUP: u32 = 0x08;
    /// The most that users and groups can get.
    pub const MASK: u32 = 0x10;
    /// Everybody else.
    pub const OTHER: u32 = 0x20;
}
