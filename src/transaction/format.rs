//! Blocks and inodes in the form in which the journal holds them.

use super::buffer::Buffer;
use super::inode_item::InodeItem;
use super::store::Newer;
use crate::buffer::{BlockKind, Request};
use crate::error::{Error, Result};
use crate::geometry::{Geometry, Ino};
use crate::journal::{BufferChange, FormatItem, InodeChange, ItemKey, ItemSize, Regions, WriterLayout};
use crate::ondisk::OnDisk;
use crate::ondisk::da_block::{DA_NODE_MAGIC, DA3_NODE_MAGIC, RawDaBlkinfo};
use crate::ondisk::log_buffer::{BufType, CHUNK, flag};

/// Formats what is newer in memory.
pub(super) struct Formatter<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) newer: &'a Newer,
}

impl FormatItem for Formatter<'_> {
    fn format(&self, key: &ItemKey, regions: &mut Regions) -> Result<()> {
        match key {
            ItemKey::Buffer(buffer_key) => match self.newer.buffers.get(buffer_key) {
                Some(buffer) => {
                    let runs = runs_of(buffer);
                    change_of(buffer, &runs).format(&buffer.bytes, regions)
                }
                None => {
                    cancel_of(self.newer.cancelled.get(buffer_key).ok_or_else(|| unknown(key))?).format(&[], regions)
                }
            },
            ItemKey::Inode(ino) => self.newer.inode_change(*ino)?.format(self.geometry, regions),
            ItemKey::Dquot { .. } => Err(unknown(key)),
        }
    }
}

fn unknown(key: &ItemKey) -> Error {
    Error::Internal(format!("nothing is known of {key:?}"))
}

impl Newer {
    /// How much the journal will take for an item.
    pub(super) fn size_of(&self, geometry: &Geometry, key: &ItemKey, layout: WriterLayout) -> Result<ItemSize> {
        match key {
            ItemKey::Buffer(buffer_key) => match self.buffers.get(buffer_key) {
                Some(buffer) => Ok(change_of(buffer, &runs_of(buffer)).size()),
                None => Ok(cancel_of(self.cancelled.get(buffer_key).ok_or_else(|| unknown(key))?).size()),
            },
            ItemKey::Inode(ino) => self.inode_change(*ino)?.size(geometry, layout.width),
            ItemKey::Dquot { .. } => Err(unknown(key)),
        }
    }

    fn inode_change(&self, ino: Ino) -> Result<InodeChange<'_>> {
        let unknown = || unknown(&ItemKey::Inode(ino));
        let item: &InodeItem = self.inodes.get(&ino).ok_or_else(unknown)?;
        let cluster = self.buffers.get(&item.cluster).ok_or_else(unknown)?;
        let bytes = cluster.bytes.get(item.offset as usize..).ok_or_else(unknown)?;
        Ok(InodeChange {
            ino,
            daddr: item.cluster.daddr,
            cluster_len: item.cluster.len,
            offset: item.offset,
            bytes,
            fields: item.fields,
        })
    }
}

/// The runs of chunks that the journal must hold.
fn runs_of(buffer: &Buffer) -> Vec<(usize, usize)> {
    buffer.logged.runs(buffer.bytes.len().div_ceil(CHUNK)).collect()
}

fn change_of<'a>(buffer: &'a Buffer, runs: &'a [(usize, usize)]) -> BufferChange<'a> {
    // of inodes that exist, a replay takes the links of unlinked lists alone
    let links = buffer.request.kind == BlockKind::InodeCluster && !buffer.in_full;
    BufferChange {
        fragments: &buffer.request.fragments,
        kind: type_of(buffer.request.kind, &buffer.bytes),
        flags: if links { flag::INODE_BUF } else { 0 },
        runs,
    }
}

fn cancel_of(request: &Request) -> BufferChange<'_> {
    BufferChange { fragments: &request.fragments, kind: BufType::Unknown, flags: flag::CANCEL, runs: &[] }
}

/// What the journal calls a block (`xfs_trans_buf_set_type`): for a replay on version 5 it decides how the block is verified.
fn type_of(kind: BlockKind, bytes: &[u8]) -> BufType {
    let is_node = || {
        let magic = RawDaBlkinfo::prefix(bytes).map(|(info, _)| info.magic.get());
        matches!(magic, Some(DA_NODE_MAGIC | DA3_NODE_MAGIC))
    };
    match kind {
        BlockKind::Superblock => BufType::Sb,
        BlockKind::Agf => BufType::Agf,
        BlockKind::Agi => BufType::Agi,
        BlockKind::Agfl => BufType::Agfl,
        BlockKind::Btree(_) => BufType::Btree,
        BlockKind::InodeCluster => BufType::Dino,
        BlockKind::DirBlock => BufType::DirBlock,
        BlockKind::DirData => BufType::DirData,
        BlockKind::DirLeaf1 => BufType::DirLeaf1,
        BlockKind::DirHash | BlockKind::AttrHash if is_node() => BufType::DaNode,
        BlockKind::DirHash => BufType::DirLeafN,
        BlockKind::DirFree => BufType::DirFree,
        BlockKind::AttrHash => BufType::AttrLeaf,
        BlockKind::AttrRemote => BufType::AttrRmt,
        BlockKind::Symlink => BufType::Symlink,
        BlockKind::RtBitmap => BufType::RtBitmap,
        BlockKind::RtSummary => BufType::RtSummary,
        BlockKind::Dquots | BlockKind::RtSuperblock => BufType::Unknown,
    }
}
