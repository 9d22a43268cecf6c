//! What every block is used for, once it is known.

use std::collections::BTreeMap;

use super::block_type::BlockType;
use super::name_table::NameTable;
use super::replay::Cell;

/// What every block of the data device is used for.
#[derive(Debug, Default)]
pub struct BlockUsage {
    groups: BTreeMap<u32, Vec<UsedRun>>,
    pub(super) names: Option<NameTable>,
}

/// Blocks of a group with the same use.
#[derive(Clone, Copy, Debug)]
struct UsedRun {
    ino: u64,
    start: u32,
    len: u32,
    kind: BlockType,
}

/// What a block is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockUse {
    /// What for.
    pub kind: BlockType,
    /// The inode that it belongs to.
    pub ino: Option<u64>,
}

impl BlockUsage {
    pub(super) fn add_group(&mut self, agno: u32, runs: impl Iterator<Item = (u64, u64, Cell)>) {
        let mut group: Vec<UsedRun> = Vec::new();
        for (start, len, cell) in runs {
            let (Ok(start), Ok(len)) = (u32::try_from(start), u32::try_from(len)) else { continue };
            match group.last_mut() {
                Some(last) if (last.ino, last.kind) == (cell.ino, cell.kind) && last.start + last.len == start => {
                    last.len += len;
                }
                _ => group.push(UsedRun { ino: cell.ino, start, len, kind: cell.kind }),
            }
        }
        group.shrink_to_fit();
        self.groups.insert(agno, group);
    }

    /// What block `agbno` of group `agno` is used for.
    pub fn of_block(&self, agno: u32, agbno: u32) -> BlockUse {
        let Some(group) = self.groups.get(&agno) else { return BlockUse::default() };
        let behind = group.partition_point(|run| run.start <= agbno);
        let run = behind.checked_sub(1).and_then(|index| group.get(index));
        let Some(run) = run.filter(|run| agbno - run.start < run.len) else { return BlockUse::default() };
        BlockUse { kind: run.kind, ino: (run.ino != 0).then_some(run.ino) }
    }

    /// The names of inodes, if they were asked for.
    pub fn names(&self) -> Option<&NameTable> {
        self.names.as_ref()
    }
}
