//! Chunks of inodes: the buffers in which they are read, and what the scan does with each inode.

use super::block_type::BlockType;
use super::events::Sink;
use super::group::Scan;
use super::inode::InodeScan;
use super::names::ChunkUse;
use super::reader::Reader;
use crate::geometry::Geometry;
use crate::ondisk::{INODES_PER_CHUNK, InodeChunk};

/// Some chunks of an inode btree's leaf, in order.
pub(super) struct ChunkBatch {
    /// The group in which they lie.
    pub agno: u32,
    /// The leaf.
    pub by: u32,
    pub chunks: Vec<InodeChunk>,
}

/// Inodes of a chunk that are read at once.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    /// Its first block.
    pub agbno: u32,
    /// The place of its first inode in the chunk.
    pub first: u32,
    /// Inodes in it.
    pub inodes: u32,
    /// They have no blocks.
    pub sparse: bool,
}

impl ChunkBatch {
    /// Most chunks of a batch.
    pub const MOST: usize = 32;

    /// Blocks of a buffer.
    fn buffer_blocks(geometry: &Geometry) -> u32 {
        let inodes = &geometry.inodes;
        if geometry.features.has_sparseinodes() { inodes.cluster_blocks } else { inodes.alloc_blocks }
    }

    /// The buffers of a chunk.
    pub fn buffers(&self, geometry: &Geometry, chunk: &InodeChunk) -> impl Iterator<Item = Buffer> + use<> {
        let blocks = Self::buffer_blocks(geometry).max(1);
        let inodes = (blocks << geometry.inodes.per_block_log).clamp(1, INODES_PER_CHUNK);
        let start = chunk.startino >> geometry.inodes.per_block_log;
        let count = geometry.inodes.alloc_blocks.div_ceil(blocks).min(INODES_PER_CHUNK.div_ceil(inodes));
        let present = chunk.allocated_mask();
        (0..count).map(move |index| Buffer {
            agbno: start.saturating_add(index * blocks),
            first: index * inodes,
            inodes,
            sparse: present >> (index * inodes) & 1 == 0,
        })
    }

    /// Inodes that have blocks, and those that the records say are free.
    pub fn count(&self, geometry: &Geometry) -> (u32, u32) {
        self.chunks.iter().fold((0, 0), |(inodes, free), chunk| {
            let present = self.buffers(geometry, chunk).filter(|buffer| !buffer.sparse);
            let here: u32 = present.map(|buffer| buffer.inodes).sum();
            (u32::wrapping_add(inodes, here), u32::wrapping_add(free, chunk.freecount))
        })
    }

    /// Inodes that there is room for.
    pub fn inodes(&self) -> u64 {
        u64::from(INODES_PER_CHUNK) * u64::try_from(self.chunks.len()).unwrap_or(0)
    }

    /// Calls `visit` with the bytes of each buffer that can be read, and the place of its first inode in them.
    pub fn read(
        &self,
        reader: &Reader<'_>,
        chunk: &InodeChunk,
        bytes: &mut Vec<u8>,
        visit: &mut dyn FnMut(Buffer, Option<&[u8]>),
    ) {
        let geometry = reader.geometry();
        let len = Self::buffer_blocks(geometry) << geometry.blocklog;
        bytes.resize(usize::try_from(len).unwrap_or(0), 0);
        let offset = (chunk.startino & (geometry.inodes.per_block - 1)) << geometry.inodes.log;
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        for buffer in self.buffers(geometry, chunk) {
            if buffer.sparse {
                visit(buffer, Some(&[]));
                continue;
            }
            let daddr = reader.daddr(self.agno, u64::from(buffer.agbno));
            let read = daddr.and_then(|daddr| reader.fill(daddr, bytes));
            visit(buffer, read.and_then(|()| bytes.get(offset..)));
        }
    }

    /// Scans the inodes; `agno` is the group whose scan it is.
    pub fn scan(&self, scan: &Scan<'_>, agno: u32) -> Sink {
        let mut sink = Sink::of_group(agno, scan.board.clone());
        let mut bytes = Vec::new();
        for chunk in &self.chunks {
            self.scan_chunk(scan, chunk, &mut bytes, &mut sink);
        }
        sink
    }

    fn scan_chunk(&self, scan: &Scan<'_>, chunk: &InodeChunk, bytes: &mut Vec<u8>, sink: &mut Sink) {
        let geometry = scan.reader.geometry();
        let first_in_block = chunk.startino & (geometry.inodes.per_block - 1);
        let blocks = Self::buffer_blocks(geometry);
        let size = usize::try_from(geometry.inodes.size).unwrap_or(256);
        let first = u64::from(self.agno) << geometry.inodes.agino_log | u64::from(chunk.startino);
        let mut chunk_use = ChunkUse { first, ..ChunkUse::default() };
        let mut free = 0;
        self.read(&scan.reader, chunk, bytes, &mut |buffer, bytes| {
            if buffer.sparse {
                return;
            }
            if first_in_block < INODES_PER_CHUNK {
                sink.claim_for_group(self.agno, buffer.agbno, blocks, BlockType::Inode, self.by);
            }
            let Some(bytes) = bytes else {
                let at = format!("{}/{}", self.agno, buffer.agbno);
                return sink.error(scan.tells(), || format!("can't read inode block {at}"));
            };
            for (index, bytes) in (buffer.first..buffer.first + buffer.inodes).zip(bytes.chunks_exact(size)) {
                let is_free = chunk.free >> index & 1 == 1;
                free += u32::from(is_free);
                let inode = InodeScan::new(scan, sink, first.wrapping_add(u64::from(index)), bytes);
                let Some(inode) = inode else { continue };
                if is_free {
                    inode.check_free();
                } else {
                    chunk_use.used |= 1 << index;
                    let traits = inode.check();
                    chunk_use.directories |= u64::from(traits.directory) << index;
                    chunk_use.security |= u64::from(traits.security) << index;
                }
            }
        });
        if free != chunk.freecount {
            let (agno, start, stored) = (self.agno, chunk.startino, chunk.freecount.cast_signed());
            sink.error(scan.tells(), || {
                format!("ir_freecount/free mismatch, inode chunk {agno}/{start}, freecount {stored} nfree {free}")
            });
        }
        if scan.options.names {
            sink.names.chunks.push(chunk_use);
        }
    }
}
