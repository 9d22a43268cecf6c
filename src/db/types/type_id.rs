//! The types, and their names.

use crate::geometry::Features;

/// Which of the three sets of types a filesystem has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Version 4: no CRCs.
    Plain,
    /// Version 5.
    Crc,
    /// Version 5 with sparse inode chunks.
    Sparse,
}

impl Family {
    /// The set of a filesystem with these features.
    pub fn of(features: &Features) -> Self {
        match (features.has_sparseinodes(), features.has_crc()) {
            (true, _) => Family::Sparse,
            (false, true) => Family::Crc,
            (false, false) => Family::Plain,
        }
    }

    /// Whether blocks have CRCs.
    pub fn has_crc(self) -> bool {
        self != Family::Plain
    }
}

macro_rules! types {
    ($( $(#[$meta:meta])* $id:ident: $plain:expr, $crc:expr; )*) => {
        /// A type of blocks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum TypeId { $( $(#[$meta])* $id, )* }

        impl TypeId {
            /// All types in the order in which they are listed.
            pub const ALL: &[TypeId] = &[ $( TypeId::$id, )* ];

            /// Names without and with CRCs.
            fn names(self) -> [Option<&'static str>; 2] {
                match self { $( TypeId::$id => [$plain, $crc], )* }
            }
        }
    };
}

types! {
    /// Free space header of a group.
    Agf: Some("agf"), Some("agf");
    /// Free list of a group.
    Agfl: Some("agfl"), Some("agfl");
    /// Inode header of a group.
    Agi: Some("agi"), Some("agi");
    /// Block of an attribute fork.
    Attr: Some("attr"), Some("attr3");
    /// Extent btree of an attribute fork.
    Bmapbta: Some("bmapbta"), Some("bmapbta");
    /// Extent btree of a data fork.
    Bmapbtd: Some("bmapbtd"), Some("bmapbtd");
    /// Free space by block.
    Bnobt: Some("bnobt"), Some("bnobt");
    /// Free space by size.
    Cntbt: Some("cntbt"), Some("cntbt");
    /// Reverse mappings.
    Rmapbt: None, Some("rmapbt");
    /// Reverse mappings of a realtime group.
    Rtrmapbt: None, Some("rtrmapbt");
    /// Reference counts.
    Refcntbt: None, Some("refcntbt");
    /// Reference counts of a realtime group.
    Rtrefcntbt: None, Some("rtrefcntbt");
    /// Bytes.
    Data: Some("data"), Some("data");
    /// Block of a directory.
    Dir2: Some("dir2"), Some("dir3");
    /// Quota record.
    Dqblk: Some("dqblk"), Some("dqblk");
    /// Inode chunks.
    Inobt: Some("inobt"), Some("inobt");
    /// Contents of a file.
    Inodata: Some("inodata"), Some("inodata");
    /// Inode.
    Inode: Some("inode"), Some("inode");
    /// The log.
    Log: Some("log"), Some("log");
    /// Realtime bitmap without groups.
    Rtbitmap: Some("rtbitmap"), Some("rtbitmap");
    /// Realtime summary without groups.
    Rtsummary: Some("rtsummary"), Some("rtsummary");
    /// Realtime superblock.
    Rtsb: Some("rtsb"), Some("rtsb");
    /// Superblock.
    Sb: Some("sb"), Some("sb");
    /// Target of a symbolic link.
    Symlink: Some("symlink"), Some("symlink");
    /// Bytes, shown as characters too.
    Text: Some("text"), Some("text");
    /// Inode chunks with free inodes.
    Finobt: Some("finobt"), Some("finobt");
    /// Bitmap of a realtime group.
    Rgbitmap: None, Some("rgbitmap");
    /// Summary of a realtime group.
    Rgsummary: None, Some("rgsummary");
}

impl TypeId {
    /// Its name in such a filesystem; `None` when there is no such type in it.
    pub fn name(self, family: Family) -> Option<&'static str> {
        self.names()[usize::from(family.has_crc())]
    }

    /// The type with this name in such a filesystem.
    pub fn find(name: &str, family: Family) -> Option<Self> {
        TypeId::ALL.iter().copied().find(|ty| ty.name(family) == Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_types() {
        for family in [Family::Plain, Family::Crc, Family::Sparse] {
            for &ty in TypeId::ALL {
                if let Some(name) = ty.name(family) {
                    assert_eq!(TypeId::find(name, family), Some(ty));
                }
            }
        }
        assert_eq!(TypeId::find("dir2", Family::Plain), Some(TypeId::Dir2));
        assert_eq!(TypeId::find("dir2", Family::Crc), None);
        assert_eq!(TypeId::find("rmapbt", Family::Plain), None);
    }
}
