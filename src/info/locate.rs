//! The superblock that a description is taken from.

use crate::device::Device;
use crate::error::{Check, Corruption, Error, Place, Result, Rule, Verdict};
use crate::geometry::limits::{MAX_SECTSIZE, MIN_SECTSIZE};
use crate::geometry::{AgNumber, Geometry, SuperblockContext, check_superblock};
use crate::ondisk::{OnDisk, RawSuperblock, crc};

/// A superblock, where it was found, and what is wrong with the primary one.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) sb: RawSuperblock,
    pub(super) geometry: Geometry,
    pub(super) group: AgNumber,
    pub(super) offset: u64,
    pub(super) primary: Verdict,
}

/// Finds the superblock: the primary one, or if that is damaged, a sound copy of it.
///
/// A superblock whose only fault is that it names features unknown here counts as sound: what can be said about it is said.
///
/// # Errors
/// `Io`; `Corrupt` with the first check that the primary failed, when no copy is sound.
pub(super) fn locate(device: &dyn Device) -> Result<Located> {
    let (sb, primary) = read(device, 0, AgNumber(0))?;
    if only_unknown_features(&primary) {
        return Ok(Located {
            sb,
            geometry: Geometry::assume(&sb),
            group: AgNumber(0),
            offset: 0,
            primary: Verdict::new(),
        });
    }
    match sound_copy(device, &sb) {
        Some((sb, group, offset)) => Ok(Located { sb, geometry: Geometry::assume(&sb), group, offset, primary }),
        None => Err(primary.into_result().err().unwrap_or_else(|| not_xfs("no superblock"))),
    }
}

/// Whether nothing is wrong, or only that feature bits are set that nobody knows.
fn only_unknown_features(verdict: &Verdict) -> bool {
    let words = ["versionnum", "features2", "features_incompat"];
    verdict.failures().iter().all(|failure| failure.check.rule == Rule::Flags && words.contains(&failure.check.field))
}

fn not_xfs(detail: &str) -> Error {
    let check = Check::new("sb", "magicnum", Rule::Magic);
    Error::Corrupt(Box::new(Corruption { check, place: Place::at_offset(0), detail: detail.to_owned() }))
}

/// The superblock at `offset` as that of group `agno`, with every check it fails.
fn read(device: &dyn Device, offset: u64, agno: AgNumber) -> Result<(RawSuperblock, Verdict)> {
    let room = device.len().saturating_sub(offset).min(u64::from(MAX_SECTSIZE));
    let mut bytes = vec![0; usize::try_from(room).unwrap_or(0)];
    device.read_at(offset, &mut bytes)?;
    let Some((sb, _)) = RawSuperblock::prefix(&bytes) else {
        let detail = format!("the device has {} bytes", device.len());
        let check = Check::new("sb", "magicnum", Rule::Truncated);
        return Err(Error::Corrupt(Box::new(Corruption { check, place: Place::at_offset(offset), detail })));
    };
    let mut verdict = Verdict::new();
    if sb.magicnum.get() == RawSuperblock::MAGIC && sb.is_v5() {
        let sectsize = u32::from(sb.sectsize.get());
        let sectsize = if (MIN_SECTSIZE..=MAX_SECTSIZE).contains(&sectsize) { sectsize } else { MIN_SECTSIZE };
        if !bytes.get(..sectsize as usize).is_some_and(|sector| crc::matches(sector, RawSuperblock::CRC_OFFSET)) {
            let place = Place { agno: Some(agno.0), ..Place::default() };
            verdict.fail(Check::new("sb", "crc", Rule::Crc), place, "");
        }
    }
    verdict.append(check_superblock(sb, SuperblockContext { agno, external_log: None }));
    Ok((*sb, verdict))
}

/// A sound copy where the damaged primary says that its groups begin.
fn sound_copy(device: &dyn Device, primary: &RawSuperblock) -> Option<(RawSuperblock, AgNumber, u64)> {
    let claimed = Geometry::assume(primary);
    (1..claimed.agcount.min(5)).map(AgNumber).find_map(|agno| {
        let offset = claimed.daddr_offset(claimed.ag_header_daddr(agno, 0)?)?;
        let (sb, verdict) = read(device, offset, agno).ok()?;
        only_unknown_features(&verdict).then_some((sb, agno, offset))
    })
}
