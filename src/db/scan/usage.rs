//! What every block is used for, once it is known.

use std::sync::Arc;

use super::block_type::BlockType;
use super::board::Board;
use super::name_table::NameTable;

/// What every block of the data device is used for.
#[derive(Debug)]
pub struct BlockUsage {
    pub(super) board: Arc<Board>,
    pub(super) names: Option<NameTable>,
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
    /// What block `agbno` of group `agno` is used for.
    pub fn of_block(&self, agno: u32, agbno: u32) -> BlockUse {
        let cell = self.board.get(agno, agbno);
        BlockUse { kind: cell.kind, ino: (cell.ino != 0).then_some(cell.ino) }
    }

    /// The names of inodes, if they were asked for.
    pub fn names(&self) -> Option<&NameTable> {
        self.names.as_ref()
    }
}
