//! What `blockget` is asked for.

use std::collections::BTreeSet;

/// What `blockget` is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanOptions {
    /// Blocks of which everything is told (`-b`), by filesystem block.
    pub blocks: BTreeSet<u64>,
    /// Inodes of which everything is told (`-i`).
    pub inodes: BTreeSet<u64>,
    /// Names are kept, for `ncheck` and `blockuse -n` (`-n`).
    pub names: bool,
    /// Each line begins with this (`-p`).
    pub prefix: Vec<u8>,
    /// Only what is serious is told, and what the listed blocks and inodes ask for (`-s`).
    pub silent: bool,
    /// Everything is told (`-v`).
    pub verbose: bool,
}

impl ScanOptions {
    /// Whether everything about inode `ino` is told.
    pub fn tells_all(&self, ino: u64) -> bool {
        self.verbose || self.inodes.contains(&ino)
    }

    /// Whether block `fsb` is listed.
    pub fn lists(&self, fsb: u64) -> bool {
        !self.blocks.is_empty() && self.blocks.contains(&fsb)
    }

    /// Whether one of the `len` blocks from `fsb` on is listed.
    pub fn lists_any(&self, fsb: u64, len: u64) -> bool {
        !self.blocks.is_empty() && self.blocks.range(fsb..fsb.saturating_add(len)).next().is_some()
    }
}
