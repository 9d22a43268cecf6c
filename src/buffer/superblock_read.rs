//! Reading a superblock before there is a geometry: magic number, CRC, then ranges.

use crate::device::Device;
use crate::error::{Check, Corruption, Error, Place, Result, Rule, Verdict};
use crate::geometry::limits::{MAX_SECTSIZE, MIN_SECTSIZE};
use crate::geometry::{AgNumber, Geometry, SuperblockContext, check_superblock};
use crate::ondisk::{OnDisk, RawSuperblock, crc};

/// Fields that hold feature bits a kernel may not know.
const FEATURE_WORDS: [&str; 3] = ["versionnum", "features2", "features_incompat"];

/// A superblock as it stands on the device, with every check that it fails.
#[derive(Clone, Debug)]
pub struct SuperblockRead {
    /// The fields, sound or not.
    pub sb: RawSuperblock,
    /// Every check that they fail.
    pub verdict: Verdict,
}

impl SuperblockRead {
    /// Whether it is a superblock of XFS at all.
    pub fn has_magic(&self) -> bool {
        self.sb.magicnum.get() == RawSuperblock::MAGIC
    }

    /// Whether nothing is wrong, save that it may name features that are not known here: the filesystem cannot be
    /// opened then, but what its superblock says of sizes holds.
    pub fn is_plausible(&self) -> bool {
        self.verdict.failures().iter().all(is_unknown_feature)
    }

    /// The geometry of a superblock that fails no check.
    ///
    /// # Errors
    /// `Unsupported` when all that is wrong is that it names unknown features; else `Corrupt` with the first check that
    /// it fails.
    pub fn geometry(&self) -> Result<Geometry> {
        match self.verdict.failures().iter().find(|failure| !is_unknown_feature(failure)) {
            Some(failure) => Err(Error::Corrupt(Box::new(failure.clone()))),
            None if self.verdict.is_sound() => Ok(Geometry::assume(&self.sb)),
            None => Err(Error::Unsupported("the superblock has feature bits that are not known here".to_owned())),
        }
    }
}

fn is_unknown_feature(failure: &Corruption) -> bool {
    failure.check.rule == Rule::Flags && FEATURE_WORDS.contains(&failure.check.field)
}

/// Reads the superblock at byte `offset`, which is taken for that of group `agno`, and runs every check: magic number,
/// CRC, then ranges.
///
/// # Errors
/// `Io`; `Corrupt` when the device ends before the superblock does.
pub fn read_superblock(device: &dyn Device, offset: u64, agno: AgNumber) -> Result<SuperblockRead> {
    let room = device.len().saturating_sub(offset).min(u64::from(MAX_SECTSIZE));
    let mut bytes = vec![0; usize::try_from(room).unwrap_or(0).min(MIN_SECTSIZE as usize)];
    device.read_at(offset, &mut bytes)?;
    let Some((&sb, _)) = RawSuperblock::prefix(&bytes) else { return Err(too_short(device, offset, room)) };
    let mut verdict = Verdict::new();
    if sb.magicnum.get() == RawSuperblock::MAGIC && has_crc(&sb, agno) {
        let sectsize = u64::from(sector_size(&sb)).min(room);
        bytes.resize(usize::try_from(sectsize).unwrap_or(bytes.len()), 0);
        device.read_at(offset, &mut bytes)?;
        verdict.append(check_crc(&bytes, offset, agno));
    }
    verdict.append(check_superblock(&sb, SuperblockContext { agno, external_log: None }));
    Ok(SuperblockRead { sb, verdict })
}

/// Version 4 has no CRC; but where a primary superblock has something in its place, the bit of version 5 may have been
/// lost (Linux `xfs_sb_read_verify`).
fn has_crc(sb: &RawSuperblock, agno: AgNumber) -> bool {
    sb.is_v5() || (agno.0 == 0 && sb.crc.get() != 0)
}

/// The sector that the CRC covers; the smallest one when the field is nonsense.
fn sector_size(sb: &RawSuperblock) -> u32 {
    let size = u32::from(sb.sectsize.get());
    if size.is_power_of_two() && (MIN_SECTSIZE..=MAX_SECTSIZE).contains(&size) { size } else { MIN_SECTSIZE }
}

fn check_crc(sector: &[u8], offset: u64, agno: AgNumber) -> Verdict {
    let mut verdict = Verdict::new();
    if !crc::matches(sector, RawSuperblock::CRC_OFFSET) {
        let place = Place { agno: Some(agno.0), ..Place::at_offset(offset) };
        let (stored, right) =
            (crc::stored(sector, RawSuperblock::CRC_OFFSET), crc::checksum(sector, RawSuperblock::CRC_OFFSET));
        let detail = format!("{stored:#010x}, contents have {right:#010x}");
        verdict.fail(Check::new("sb", "crc", Rule::Crc), place, detail);
    }
    verdict
}

fn too_short(device: &dyn Device, offset: u64, room: u64) -> Error {
    let check = Check::new("sb", "block", Rule::Truncated);
    let place = Place::at_offset(offset).on(device.role());
    Error::Corrupt(Box::new(Corruption { check, place, detail: format!("{room} bytes are left of the device") }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zerocopy::IntoBytes;

    use super::*;
    use crate::device::MemoryDevice;
    use crate::geometry::samples::{damaged_superblock, superblock};

    fn device(sb: &RawSuperblock, stamped: bool) -> MemoryDevice {
        let mut sector = vec![0; 4096];
        sector[..RawSuperblock::SIZE].copy_from_slice(sb.as_bytes());
        if stamped {
            crc::stamp(&mut sector[..sector_size(sb) as usize], RawSuperblock::CRC_OFFSET);
        }
        MemoryDevice::from_bytes(&sector)
    }

    fn failed(read: &SuperblockRead, field: &'static str, rule: Rule) -> bool {
        read.verdict.has_failed(Check::new("sb", field, rule))
    }

    #[test]
    fn a_sound_superblock_has_a_geometry() {
        for name in ["default", "v4-old", "sector-stripe"] {
            let read = read_superblock(&device(&superblock(name), false), 0, AgNumber(0)).expect("readable");
            assert!(read.geometry().is_ok(), "{name}: {:?}", read.verdict);
        }
    }

    #[test]
    fn the_crc_is_checked_before_ranges() {
        let mut sb = superblock("default");
        sb.imax_pct = 200;
        let read = read_superblock(&device(&sb, false), 0, AgNumber(0)).expect("readable");
        let rules: Vec<_> = read.verdict.failures().iter().map(|failure| failure.check.rule).collect();
        assert_eq!(rules, [Rule::Crc, Rule::Range]);
        assert!(matches!(read.geometry(), Err(Error::Corrupt(_))));
    }

    #[test]
    fn a_crc_in_version_4_is_a_lost_version_bit() {
        let mut sb = superblock("v4-old");
        sb.crc = 1.into();
        let primary = read_superblock(&device(&sb, false), 0, AgNumber(0)).expect("readable");
        assert!(failed(&primary, "crc", Rule::Crc));
        let copy = read_superblock(&device(&sb, false), 0, AgNumber(1)).expect("readable");
        assert!(copy.verdict.is_sound());
    }

    #[test]
    fn unknown_features_are_not_damage() {
        let mut sb = superblock("default");
        sb.features_incompat = (sb.features_incompat.get() | 1 << 30).into();
        let read = read_superblock(&device(&sb, true), 0, AgNumber(0)).expect("readable");
        assert!(read.is_plausible() && failed(&read, "features_incompat", Rule::Flags));
        assert!(matches!(read.geometry(), Err(Error::Unsupported(_))));
    }

    #[test]
    fn a_device_that_is_too_short_is_said_so() {
        for len in [0, 100, 303] {
            let error = read_superblock(&MemoryDevice::new(len), 0, AgNumber(0)).expect_err("too short");
            assert!(error.to_string().contains("cut short"), "{error}");
        }
        let read = read_superblock(&MemoryDevice::new(512), 0, AgNumber(0)).expect("readable");
        assert!(!read.has_magic() && failed(&read, "magicnum", Rule::Magic) && !failed(&read, "crc", Rule::Crc));
    }

    proptest! {
        #[test]
        fn no_damage_makes_reading_panic(sb in damaged_superblock(), stamped: bool, len in 304_usize..4096) {
            let mut sector = vec![0; 4096];
            device(&sb, stamped).read_at(0, &mut sector).expect("in range");
            let cut = MemoryDevice::from_bytes(&sector[..len]);
            if let Ok(read) = read_superblock(&cut, 0, AgNumber(0)) {
                let _ = read.geometry();
            }
        }
    }
}
