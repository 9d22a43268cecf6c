//! The files of the realtime section: bitmap and summary (Linux `fs/xfs/libxfs/xfs_rtbitmap.c`).

use super::file_blocks::MappedBlocks;
use super::fork::ForkKind;
use super::inode::Inode;
use super::source::{BlockSource, damage_of};
use crate::buffer::{Block, BlockKind};
use crate::error::Result;
use crate::geometry::FileBlock;
use crate::ondisk::rt::RtWordForm;
use std::ops::ControlFlow;

/// Which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RtFileKind {
    /// One bit for each extent: 1 when it is free.
    Bitmap,
    /// How many free extents of each size class start in each block of the bitmap.
    Summary,
}

/// Some words of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtWords {
    /// Number of the first word in the file.
    pub first: u64,
    /// The words.
    pub words: Vec<u32>,
}

/// Calls `visit` for the words of each block of the bitmap or summary file `inode`, in order, and for each damage.
/// The words of a damaged block are shown after its damage.
///
/// `form` says how the words are stored: without realtime groups in the byte order of the machine that wrote them,
/// which no field tells.
///
/// # Errors
/// `Corrupt` when the file's data fork cannot be decoded.
pub fn for_each_rt_words(
    source: &dyn BlockSource,
    inode: &Inode,
    kind: RtFileKind,
    form: RtWordForm,
    visit: &mut dyn FnMut(Result<RtWords>) -> ControlFlow<()>,
) -> Result<()> {
    let Some(fork) = inode.fork(ForkKind::Data)? else { return Ok(()) };
    let geometry = source.geometry();
    let (block_kind, length) = match kind {
        RtFileKind::Bitmap => (BlockKind::RtBitmap, geometry.realtime.bitmap_blocks),
        RtFileKind::Summary => (BlockKind::RtSummary, geometry.realtime.summary_blocks),
    };
    let mut blocks = MappedBlocks::new(source, fork, 1, FileBlock(length));
    while let Some(next) = blocks.next() {
        let read = next.and_then(|(at, pieces)| Ok((at, blocks.read(block_kind, &pieces)?)));
        let flow = match read {
            Ok((at, block)) => show_words(at, &block, form, visit),
            Err(error) => visit(Err(error)),
        };
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

fn show_words(
    at: FileBlock,
    block: &Block,
    form: RtWordForm,
    visit: &mut dyn FnMut(Result<RtWords>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for error in damage_of(block) {
        visit(Err(error))?;
    }
    let count = form.words_per_block(block.bytes().len());
    let words = (0..count).map_while(|index| form.word(block.bytes(), index)).collect();
    let first = at.0.saturating_mul(u64::try_from(count).unwrap_or(0));
    visit(Ok(RtWords { first, words }))
}
