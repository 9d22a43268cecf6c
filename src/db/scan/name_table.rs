//! The path of every inode.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::names::{ChunkUse, NameEvents};
use super::options::ScanOptions;
use crate::geometry::Geometry;
use crate::ondisk::RawSuperblock;

/// The path of every inode that a directory names.
#[derive(Debug, Default)]
pub struct NameTable {
    inodes: HashMap<u64, Named>,
    /// Names one after the other.
    bytes: Vec<u8>,
    /// Parents that directories name.
    parents: HashMap<u64, u64>,
    /// By first inode.
    chunks: Vec<ChunkUse>,
    agino_log: u32,
    /// Lists of xfs_db's table of inodes: they give the order in which all names are told.
    lists: u64,
}

/// When the scan comes upon an inode for the first time: the inode under scan, and the place among its events.
type Moment = (u64, u32);

#[derive(Clone, Copy, Debug)]
struct Named {
    first: Moment,
    /// The first directory that names it.
    directory: u64,
    start: usize,
    len: u8,
}

/// An inode and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedInode {
    /// The number.
    pub ino: u64,
    /// The path from the root directory, or from the lowest directory that has a name.
    pub path: Vec<u8>,
    /// It is a directory.
    pub directory: bool,
}

/// No path has more names; one that has leads in a circle.
const DEEPEST: usize = 10_000;

impl NameTable {
    pub(super) fn new(
        sb: &RawSuperblock,
        geometry: &Geometry,
        events: impl Iterator<Item = NameEvents>,
        options: &ScanOptions,
    ) -> Self {
        let share = sb.icount.get() / (8 * u64::from(geometry.agcount));
        let agino_log = geometry.inodes.agino_log;
        let mut table = NameTable { agino_log, lists: share.clamp(256, 65536), ..NameTable::default() };
        let mut mentions: Vec<(u64, Moment)> = Vec::new();
        for events in events {
            table.add(&events, &mut mentions);
            table.chunks.extend(events.chunks);
        }
        table.chunks.sort_by_key(|chunk| chunk.first);
        for (ino, moment) in mentions {
            if let Some(named) = table.inodes.get_mut(&ino) {
                named.first = named.first.min(moment);
            }
        }
        let chunks = &table.chunks;
        for (ino, named) in &mut table.inodes {
            if bit(chunks, *ino, |chunk| chunk.used) {
                named.first = named.first.min((*ino, 0));
            }
            if options.inodes.contains(ino) {
                named.first = (0, 0);
            }
        }
        table
    }

    fn add(&mut self, events: &NameEvents, mentions: &mut Vec<(u64, Moment)>) {
        for event in &events.entries {
            let moment = (event.directory, event.order);
            let start = usize::try_from(event.start).unwrap_or(usize::MAX);
            let name = events.bytes.get(start..start.saturating_add(usize::from(event.len))).unwrap_or(&[]);
            let bytes = &mut self.bytes;
            let named = self.inodes.entry(event.ino).or_insert_with(|| {
                let start = bytes.len();
                bytes.extend_from_slice(name);
                Named { first: moment, directory: event.directory, start, len: event.len }
            });
            named.first = named.first.min(moment);
        }
        for event in &events.parents {
            if event.holds {
                self.parents.insert(event.directory, event.parent);
            } else {
                mentions.push((event.parent, (event.directory, event.order)));
            }
        }
    }

    fn name(&self, named: &Named) -> &[u8] {
        let name = self.bytes.get(named.start..named.start + usize::from(named.len)).unwrap_or(&[]);
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        &name[..end]
    }

    /// The path of `ino`; `None` when no directory names it.
    pub fn path(&self, ino: u64) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        let mut next = Some(ino);
        while let Some(ino) = next.filter(|_| names.len() < DEEPEST) {
            let Some(named) = self.inodes.get(&ino) else { break };
            names.push(self.name(named));
            next = Some(self.parents.get(&ino).copied().unwrap_or(named.directory));
        }
        names.reverse();
        (!names.is_empty()).then(|| names.join(&b'/'))
    }

    /// `ino` with its path.
    pub fn named(&self, ino: u64) -> Option<NamedInode> {
        let path = self.path(ino)?;
        Some(NamedInode { ino, path, directory: bit(&self.chunks, ino, |chunk| chunk.directories) })
    }

    /// All inodes that have a name, or with `security` those of them that are set-user or set-group files, devices,
    /// pipes or sockets; in the order in which xfs_db tells them.
    pub fn all(&self, security: bool) -> Vec<u64> {
        let inodes = self.inodes.iter();
        let wanted = inodes.filter(|(ino, _)| !security || bit(&self.chunks, **ino, |chunk| chunk.security));
        let place = |ino: u64| {
            let agino = ino & ((1 << self.agino_log) - 1);
            (ino >> self.agino_log, agino % self.lists)
        };
        let mut all: Vec<_> = wanted.map(|(ino, named)| (place(*ino), Reverse(named.first), *ino)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, _, ino)| ino).collect()
    }
}

/// The bit of `ino` in a mask of its chunk.
fn bit(chunks: &[ChunkUse], ino: u64, mask: impl Fn(&ChunkUse) -> u64) -> bool {
    let behind = chunks.partition_point(|chunk| chunk.first <= ino);
    let chunk = behind.checked_sub(1).and_then(|index| chunks.get(index));
    chunk.is_some_and(|chunk| ino - chunk.first < 64 && mask(chunk) >> (ino - chunk.first) & 1 == 1)
}
