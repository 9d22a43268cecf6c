//! Quota files: the dquots of users, groups and projects (Linux `fs/xfs/libxfs/xfs_dquot_buf.c`).

use super::file_blocks::MappedBlocks;
use super::fork::ForkKind;
use super::inode::Inode;
use super::source::{BlockSource, corrupt, place_of};
use crate::buffer::{Block, BlockKind};
use crate::error::{Check, Place, Result, Rule, Verdict};
use crate::geometry::FileBlock;
use crate::ondisk::dquot::dqtype;
use crate::ondisk::{OnDisk, RawDquotBlock};
use std::ops::ControlFlow;

/// Which quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaKind {
    /// Of users.
    User,
    /// Of groups.
    Group,
    /// Of projects.
    Project,
}

impl QuotaKind {
    /// The bit that dquots of this kind have.
    pub fn dqtype(self) -> u8 {
        match self {
            QuotaKind::User => dqtype::USER,
            QuotaKind::Group => dqtype::GROUP,
            QuotaKind::Project => dqtype::PROJ,
        }
    }

    /// Name of its file in the metadata directory `quota`.
    pub fn name(self) -> &'static str {
        match self {
            QuotaKind::User => "user",
            QuotaKind::Group => "group",
            QuotaKind::Project => "project",
        }
    }
}

/// A dquot as it stands in its slot, with the checks that it failed.
#[derive(Clone, Debug)]
pub struct Dquot {
    /// The user, group or project that the slot is for.
    pub id: u32,
    /// The slot.
    pub raw: RawDquotBlock,
    /// The checks that it failed.
    pub verdict: Verdict,
}

/// Calls `visit` for each dquot of the quota file `inode` in order of the ids, and for each damage in the file's
/// mappings. Ids whose blocks are not mapped do not exist.
///
/// # Errors
/// `Corrupt` when the file's data fork cannot be decoded.
pub fn for_each_dquot(
    source: &dyn BlockSource,
    inode: &Inode,
    kind: QuotaKind,
    visit: &mut dyn FnMut(Result<Dquot>) -> ControlFlow<()>,
) -> Result<()> {
    let Some(fork) = inode.fork(ForkKind::Data)? else { return Ok(()) };
    let per_block = u64::from(source.geometry().quota.dquots_per_block.max(1));
    let end = FileBlock((1_u64 << 32).div_ceil(per_block));
    let mut blocks = MappedBlocks::new(source, fork, 1, end);
    while let Some(next) = blocks.next() {
        let read = next.and_then(|(at, pieces)| Ok((at, blocks.read(BlockKind::Dquots, &pieces)?)));
        let flow = match read {
            Ok((at, block)) => block_of_dquots(source, kind, at, &block, visit),
            Err(error) => visit(Err(error)),
        };
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

fn block_of_dquots(
    source: &dyn BlockSource,
    kind: QuotaKind,
    at: FileBlock,
    block: &Block,
    visit: &mut dyn FnMut(Result<Dquot>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let count = source.geometry().quota.dquots_per_block;
    let slots = usize::try_from(count).ok().and_then(|count| RawDquotBlock::prefix_slice(block.bytes(), count));
    let block_place = place_of(source, block);
    let Some((slots, _)) = slots else {
        return visit(Err(corrupt(Check::new("dquot", "magic", Rule::Truncated), &block_place, "")));
    };
    let first = at.0.saturating_mul(u64::from(count));
    for (raw, (id, offset)) in slots.iter().zip((first..).zip((0u64..).step_by(RawDquotBlock::SIZE))) {
        let Ok(id) = u32::try_from(id) else { break };
        let place = Place { offset: Some(offset), ..block_place.clone() };
        let mut verdict = Verdict::new();
        for failure in block.verdict().failures().iter().filter(|failure| failure.place.offset == place.offset) {
            verdict.fail(failure.check, failure.place.clone(), failure.detail.clone());
        }
        // what only the place in the file tells
        if raw.diskdq.dqtype & dqtype::REC_MASK != kind.dqtype() {
            let detail = format!("{:#x}", raw.diskdq.dqtype);
            verdict.fail(Check::new("dquot", "type", Rule::Mismatch), place.clone(), detail);
        }
        if raw.diskdq.id.get() != id {
            verdict.fail(Check::new("dquot", "id", Rule::Address), place, raw.diskdq.id.to_string());
        }
        visit(Ok(Dquot { id, raw: *raw, verdict }))?;
    }
    ControlFlow::Continue(())
}
