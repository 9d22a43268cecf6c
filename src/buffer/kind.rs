//! What a reader expects of a block.

use crate::error::{DeviceRole, Place};
use crate::geometry::{AgNumber, BtreeKind, Daddr, Geometry, Ino};

/// The kinds of metadata blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// The superblock or one of its copies.
    Superblock,
    /// Free space of an allocation group.
    Agf,
    /// Inodes of an allocation group.
    Agi,
    /// Free list of an allocation group.
    Agfl,
    /// Block of a btree.
    Btree(BtreeKind),
    /// Inodes that are read together.
    InodeCluster,
    /// Block of a quota file.
    Dquots,
    /// The only block of a directory.
    DirBlock,
    /// Entries of a directory with more than one block.
    DirData,
    /// The only leaf of a directory.
    DirLeaf1,
    /// Node or leaf of a directory's hash btree.
    DirHash,
    /// Free index of a directory.
    DirFree,
    /// Node or leaf of an attribute fork.
    AttrHash,
    /// Blocks of an attribute value.
    AttrRemote,
    /// Target of a symbolic link.
    Symlink,
    /// The realtime superblock.
    RtSuperblock,
    /// Block of a realtime bitmap.
    RtBitmap,
    /// Block of a realtime summary.
    RtSummary,
}

impl BlockKind {
    /// Length in bytes of such a block; of those that may be longer, the least.
    pub fn len(self, geometry: &Geometry) -> u32 {
        match self {
            BlockKind::Superblock | BlockKind::Agf | BlockKind::Agi | BlockKind::Agfl => geometry.sectsize,
            BlockKind::InodeCluster => geometry.inodes.cluster_size,
            BlockKind::DirBlock
            | BlockKind::DirData
            | BlockKind::DirLeaf1
            | BlockKind::DirHash
            | BlockKind::DirFree => geometry.directory.blksize,
            _ => geometry.blocksize,
        }
    }

    /// The block belongs to an allocation group, not to an inode.
    pub fn is_of_group(self) -> bool {
        match self {
            BlockKind::Superblock | BlockKind::Agf | BlockKind::Agi | BlockKind::Agfl | BlockKind::InodeCluster => true,
            BlockKind::Btree(kind) => !kind.is_long(),
            _ => false,
        }
    }
}

/// To whom a block belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// The reader does not know. For blocks of an allocation group the address tells.
    #[default]
    Unknown,
    /// An allocation group.
    Group(AgNumber),
    /// An inode.
    Inode(Ino),
}

/// Contiguous bytes of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// Where they start.
    pub daddr: Daddr,
    /// How many.
    pub len: u32,
}

/// A block as its reader expects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The kind.
    pub kind: BlockKind,
    /// Where it lies; only directory blocks have more than one fragment.
    pub fragments: Vec<Fragment>,
    /// On which device.
    pub device: DeviceRole,
    /// To whom it belongs.
    pub owner: Owner,
    /// Level of a btree block.
    pub level: Option<u32>,
}

impl Request {
    /// A block of `kind` at `daddr` of the data device, of the length that this kind has.
    pub fn new(geometry: &Geometry, kind: BlockKind, daddr: Daddr) -> Self {
        Self::of_len(kind, daddr, kind.len(geometry))
    }

    /// A block of `kind` with `len` bytes at `daddr` of the data device.
    pub fn of_len(kind: BlockKind, daddr: Daddr, len: u32) -> Self {
        let device = if kind == BlockKind::RtSuperblock { DeviceRole::Realtime } else { DeviceRole::Data };
        Request { kind, fragments: vec![Fragment { daddr, len }], device, owner: Owner::Unknown, level: None }
    }

    /// A block made up of several fragments, in order.
    pub fn of_fragments(kind: BlockKind, fragments: Vec<Fragment>) -> Self {
        Request { kind, fragments, device: DeviceRole::Data, owner: Owner::Unknown, level: None }
    }

    /// The same, belonging to an inode.
    #[must_use]
    pub fn of_inode(mut self, ino: Ino) -> Self {
        self.owner = Owner::Inode(ino);
        self
    }

    /// The same, a btree block of this level.
    #[must_use]
    pub fn at_level(mut self, level: u32) -> Self {
        self.level = Some(level);
        self
    }

    /// Where it starts.
    pub fn daddr(&self) -> Daddr {
        self.fragments.first().map_or(Daddr(0), |fragment| fragment.daddr)
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.fragments.iter().map(|fragment| u64::from(fragment.len)).sum()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The group in which it lies, on the data device.
    pub fn group(&self, geometry: &Geometry) -> Option<AgNumber> {
        match (self.device, self.owner) {
            (_, Owner::Group(agno)) => Some(agno),
            (DeviceRole::Data, _) => geometry.daddr_parts(self.daddr()).map(|(agno, _)| agno),
            _ => None,
        }
    }

    /// Its place, for reports.
    pub fn place(&self, geometry: &Geometry) -> Place {
        let inode = if let Owner::Inode(ino) = self.owner { Some(ino.0) } else { None };
        Place {
            device: self.device,
            agno: self.group(geometry).map(|agno| agno.0),
            daddr: Some(self.daddr().0),
            inode,
            offset: None,
        }
    }
}
