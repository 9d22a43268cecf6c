//! The bytes of nodes, and the links that nodes and leaves start with.

use zerocopy::IntoBytes;

use super::file::DaFile;
use crate::buffer::BlockKind;
use crate::error::{Check, Error, Result, Rule};
use crate::forms::encode::Siblings;
use crate::geometry::FileBlock;
use crate::ondisk::da_block::{
    DA_NODE_MAGIC, DA3_NODE_MAGIC, DaNode, RawDa3NodeHdr, RawDaBlkinfo, RawDaNodeEntry, RawDaNodeHdr,
};
use crate::ondisk::{Be16, OnDisk};

/// A node as it is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) level: u16,
    pub(super) entries: Vec<RawDaNodeEntry>,
}

impl Node {
    pub(super) fn decode(bytes: &[u8], crc: bool) -> std::result::Result<Self, Check> {
        let node = DaNode::decode(bytes, crc)?;
        Ok(Node { level: node.level, entries: node.entries.to_vec() })
    }

    /// The greatest hash below it.
    pub(super) fn last_hash(&self) -> u32 {
        self.entries.last().map_or(0, |entry| entry.hashval.get())
    }
}

/// Stores the entries of a node in its block. What stands behind them has no meaning.
pub(super) fn store_entries(block: &mut [u8], crc: bool, entries: &[RawDaNodeEntry]) -> Result<()> {
    let full = || Error::Internal("a node is given more entries than it holds".to_owned());
    let count = Be16::new(u16::try_from(entries.len()).map_err(|_| full())?);
    let rest = if crc {
        let (head, rest) = RawDa3NodeHdr::prefix_mut(block).ok_or_else(full)?;
        head.count = count;
        rest
    } else {
        let (head, rest) = RawDaNodeHdr::prefix_mut(block).ok_or_else(full)?;
        head.count = count;
        rest
    };
    rest.get_mut(..size_of_val(entries)).ok_or_else(full)?.copy_from_slice(entries.as_bytes());
    Ok(())
}

/// Whether a block of the tree is a node.
pub(in crate::volume) fn is_node(block: &[u8]) -> bool {
    RawDaBlkinfo::prefix(block).is_some_and(|(info, _)| matches!(info.magic.get(), DA_NODE_MAGIC | DA3_NODE_MAGIC))
}

/// The neighbours of a node or leaf.
pub(in crate::volume) fn links(block: &[u8]) -> Siblings {
    RawDaBlkinfo::prefix(block)
        .map_or_else(Siblings::default, |(info, _)| Siblings { forw: info.forw.get(), back: info.back.get() })
}

pub(super) fn set_links(block: &mut [u8], links: Siblings) {
    if let Some((info, _)) = RawDaBlkinfo::prefix_mut(block) {
        info.forw.set(links.forw);
        info.back.set(links.back);
    }
}

/// A block of the tree by the number that entries and links have.
pub(super) fn block(at: u32) -> FileBlock {
    FileBlock(u64::from(at))
}

/// The number of a block of the tree.
pub(super) fn number(at: FileBlock) -> Result<u32> {
    u32::try_from(at.0).map_err(|_| Error::Internal("a tree's blocks have 32-bit numbers".to_owned()))
}

/// Nodes of the tree in the file.
impl DaFile<'_, '_> {
    pub(super) fn node(&mut self, at: FileBlock) -> Result<Node> {
        let bytes = self.read(self.hash_kind(), at)?;
        Node::decode(&bytes, self.crc()).map_err(|check| self.corrupt(check))
    }

    pub(super) fn store_node(&mut self, at: FileBlock, entries: &[RawDaNodeEntry]) -> Result<()> {
        let (kind, crc) = (self.hash_kind(), self.crc());
        let mut bytes = self.read(kind, at)?.to_vec();
        store_entries(&mut bytes, crc, entries)?;
        self.write(kind, at, bytes)
    }

    pub(super) fn relink(&mut self, at: u32, change: impl FnOnce(&mut Siblings)) -> Result<()> {
        if at == 0 {
            return Ok(());
        }
        let kind = self.hash_kind();
        let mut bytes = self.read(kind, block(at))?.to_vec();
        let mut links = links(&bytes);
        change(&mut links);
        set_links(&mut bytes, links);
        self.write(kind, block(at), bytes)
    }

    /// Takes a block out of the chain of its level.
    pub(super) fn unlink(&mut self, kind: BlockKind, at: FileBlock) -> Result<()> {
        let Siblings { forw, back } = links(&self.read(kind, at)?);
        let here = number(at)?;
        let broken = Check::new("da_blkinfo", "forw", Rule::Mismatch);
        for (neighbour, is_forw) in [(forw, true), (back, false)] {
            if neighbour != 0 {
                let theirs = links(&self.read(kind, block(neighbour))?);
                if here != if is_forw { theirs.back } else { theirs.forw } {
                    return Err(self.corrupt(broken));
                }
            }
        }
        self.relink(forw, |links| links.back = back)?;
        self.relink(back, |links| links.forw = forw)
    }
}
