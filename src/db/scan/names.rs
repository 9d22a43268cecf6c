//! Names of inodes, as `ncheck` and `blockuse -n` tell them.

/// What directories say about names, in the order of the scan.
#[derive(Debug, Default)]
pub(super) struct NameEvents {
    /// Entries other than `.` and `..`.
    pub entries: Vec<NameEvent>,
    /// The bytes of their names.
    pub bytes: Vec<u8>,
    /// The `..` entries of directories.
    pub parents: Vec<ParentEvent>,
    /// Which inodes there are.
    pub chunks: Vec<ChunkUse>,
}

/// A directory names an inode.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameEvent {
    pub ino: u64,
    pub directory: u64,
    /// Where the name starts among the bytes.
    pub start: u32,
    /// The place among the events of the directory.
    pub order: u32,
    pub len: u8,
}

/// A directory names its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParentEvent {
    pub directory: u64,
    pub parent: u64,
    /// The place among the events of the directory.
    pub order: u32,
    /// The entry is one that the directory's parent is taken from.
    pub holds: bool,
}

/// The inodes of a chunk: half a byte for each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChunkUse {
    /// The number of its first inode.
    pub first: u64,
    /// Which inodes are in use, the first one lowest.
    pub used: u64,
    /// Which are directories.
    pub directories: u64,
    /// Which are set-user or set-group files, or no files, directories and links at all.
    pub security: u64,
}

impl NameEvents {
    /// Notes an entry.
    pub fn entry(&mut self, directory: u64, ino: u64, order: u32, name: &[u8]) {
        let (Ok(start), Ok(len)) = (u32::try_from(self.bytes.len()), u8::try_from(name.len())) else { return };
        self.bytes.extend_from_slice(name);
        self.entries.push(NameEvent { ino, directory, start, order, len });
    }
}
