//! Quota files: the dquots of users, groups and projects (Linux `fs/xfs/libxfs/xfs_dquot_buf.c`).

use super::file_blocks::MappedBlocks;
use super::fork::ForkKind;
use super::inode::Inode;
use super::source::{Block, BlockKind, BlockSource, corrupt};
use crate::error::{Check, Place, Result, Rule, Verdict};
use crate::geometry::{FileBlock, Geometry};
use crate::ondisk::dquot::dqtype;
use crate::ondisk::{OnDisk, RawDiskDquot, RawDquotBlock, crc};
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
/// mappings. Slots of zeroes, and ids whose blocks are not mapped, do not exist.
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
            Ok((at, block)) => block_of_dquots(source.geometry(), kind, at, &block, visit),
            Err(error) => visit(Err(error)),
        };
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

fn block_of_dquots(
    geometry: &Geometry,
    kind: QuotaKind,
    at: FileBlock,
    block: &Block,
    visit: &mut dyn FnMut(Result<Dquot>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let per_block = usize::try_from(geometry.quota.dquots_per_block).unwrap_or(0);
    let Some((slots, _)) = RawDquotBlock::prefix_slice(&block.bytes, per_block) else {
        return visit(Err(corrupt(Check::new("dqblk", "magic", Rule::Truncated), &block.place, "")));
    };
    let first = at.0.saturating_mul(u64::from(geometry.quota.dquots_per_block));
    for (raw, (id, offset)) in slots.iter().zip((first..).zip((0u64..).step_by(RawDquotBlock::SIZE))) {
        let Ok(id) = u32::try_from(id) else { break };
        if zerocopy::IntoBytes::as_bytes(raw).iter().all(|&byte| byte == 0) {
            continue;
        }
        let place = Place { offset: Some(offset), ..block.place.clone() };
        let verdict = check_dquot(geometry, kind, id, raw, &place);
        visit(Ok(Dquot { id, raw: *raw, verdict }))?;
    }
    ControlFlow::Continue(())
}

/// The checks of a slot (Linux `xfs_dquot_verify`, `xfs_dqblk_verify`).
fn check_dquot(geometry: &Geometry, kind: QuotaKind, id: u32, raw: &RawDquotBlock, place: &Place) -> Verdict {
    let mut verdict = Verdict::new();
    let mut require = |holds: bool, field, rule, found: u64| {
        if !holds {
            verdict.fail(Check::new("dquot", field, rule), place.clone(), format!("{found:#x}"));
        }
    };
    let dq = &raw.diskdq;
    let features = &geometry.features;
    require(dq.magic.get() == RawDiskDquot::MAGIC, "magic", Rule::Magic, u64::from(dq.magic.get()));
    require(dq.version == RawDiskDquot::VERSION, "version", Rule::Version, u64::from(dq.version));
    if features.has_crc() {
        let bytes = zerocopy::IntoBytes::as_bytes(raw);
        require(crc::matches(bytes, RawDquotBlock::CRC_OFFSET), "crc", Rule::Crc, u64::from(raw.crc.get()));
        require(raw.uuid == geometry.meta_uuid, "uuid", Rule::Uuid, 0);
    }
    let found = u64::from(dq.dqtype);
    require(dq.dqtype & !(dqtype::REC_MASK | dqtype::BIGTIME) == 0, "dqtype", Rule::Flags, found);
    require(dq.dqtype & dqtype::REC_MASK == kind.dqtype(), "dqtype", Rule::Mismatch, found);
    // the defaults of id 0 have no timers
    let bigtime = dq.dqtype & dqtype::BIGTIME == 0 || features.has_bigtime() && id != 0;
    require(bigtime, "dqtype", Rule::Flags, found);
    require(dq.id.get() == id, "id", Rule::Address, u64::from(dq.id.get()));
    if id != 0 {
        let over = |soft: u64, count: u64, timer: u32| soft == 0 || count <= soft || timer != 0;
        let pairs = [
            ("btimer", over(dq.blk_softlimit.get(), dq.bcount.get(), dq.btimer.get())),
            ("itimer", over(dq.ino_softlimit.get(), dq.icount.get(), dq.itimer.get())),
            ("rtbtimer", over(dq.rtb_softlimit.get(), dq.rtbcount.get(), dq.rtbtimer.get())),
        ];
        for (field, holds) in pairs {
            require(holds, field, Rule::Mismatch, 0);
        }
    }
    verdict
}
