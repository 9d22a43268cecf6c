//! Chunks of inodes, with everything that hangs from them.

use super::dump::Dumper;
use super::inode;
use super::order::Sink;
use crate::error::Result;
use crate::geometry::limits::BASIC_BLOCK;
use crate::geometry::{AgIno, AgNumber, Daddr, Ino};
use crate::ondisk::{INODES_PER_CHUNK, InodeChunk};

/// Chunks that are one task: half a mebibyte of inodes of the usual size.
const CHUNKS: usize = 16;

/// Some chunks of a group.
pub(super) struct Batch {
    agno: AgNumber,
    chunks: Vec<InodeChunk>,
}

impl Batch {
    /// Inodes of all chunks.
    pub(super) fn inodes(&self) -> u64 {
        self.chunks.len() as u64 * u64::from(INODES_PER_CHUNK)
    }
}

/// The chunks of a group, divided.
pub(super) fn batches(agno: AgNumber, chunks: &[InodeChunk]) -> Vec<Batch> {
    chunks.chunks(CHUNKS).map(|chunks| Batch { agno, chunks: chunks.to_vec() }).collect()
}

/// Copies the inodes of a batch, after what hangs from them.
pub(super) fn copy_batch(dumper: &Dumper<'_>, sink: &mut Sink<'_>, batch: &Batch) -> Result<()> {
    let mut bytes = Vec::new();
    for chunk in &batch.chunks {
        for (start, count) in runs_of_blocks(dumper, chunk) {
            copy_run(dumper, sink, batch.agno, chunk, (start, count), &mut bytes)?;
        }
        dumper.observer.advance(u64::from(INODES_PER_CHUNK));
    }
    Ok(())
}

/// Copies `run.1` inodes from inode `run.0` of a chunk on.
fn copy_run(
    dumper: &Dumper<'_>,
    sink: &mut Sink<'_>,
    agno: AgNumber,
    chunk: &InodeChunk,
    run: (u32, u32),
    bytes: &mut Vec<u8>,
) -> Result<()> {
    let geometry = dumper.geometry;
    let size = geometry.inodes.size as usize;
    let first = geometry.ino(agno, AgIno(chunk.startino.saturating_add(run.0)));
    let Some((first, offset)) = first.and_then(|first| Some((first, geometry.ino_offset(first)?))) else {
        return Ok(());
    };
    bytes.clear();
    bytes.resize(run.1 as usize * size, 0);
    let daddr = Daddr(offset / u64::from(BASIC_BLOCK));
    if !dumper.read(daddr, bytes)? {
        return Ok(());
    }
    for (index, inode) in (0u32..).zip(bytes.chunks_exact_mut(size)) {
        let is_free = chunk.free >> (run.0 + index) & 1 == 1;
        inode::copy_inode(dumper, sink, Ino(first.0 + u64::from(index)), is_free, inode)?;
    }
    sink.append(daddr.0, bytes)
}

/// The runs of inodes that have blocks: the first of each and how many. Holes count where a whole cluster begins with
/// one.
fn runs_of_blocks(dumper: &Dumper<'_>, chunk: &InodeChunk) -> Vec<(u32, u32)> {
    let inodes = &dumper.geometry.inodes;
    if !dumper.geometry.features.has_sparseinodes() || chunk.holemask == 0 {
        return vec![(0, INODES_PER_CHUNK)];
    }
    let step = inodes.cluster_inodes.clamp(4, INODES_PER_CHUNK);
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for start in (0..INODES_PER_CHUNK).step_by(step as usize) {
        if chunk.holemask >> (start / 4) & 1 == 1 {
            continue;
        }
        match runs.last_mut() {
            Some(last) if last.0 + last.1 == start => last.1 += step,
            _ => runs.push((start, step)),
        }
    }
    runs
}
