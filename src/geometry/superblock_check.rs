//! The checks of a superblock: those of the kernel's verifier (Linux `libxfs/xfs_sb.c`, `xfs_validate_sb_read` and
//! `xfs_validate_sb_common`) and those that mounting adds for every filesystem (`xfs_super.c`, `xfs_mount.c`): an
//! unfinished mkfs, sizes that overflow in bytes, the alignment of sparse inode chunks. Each runs whatever the others
//! say, save where a number it divides by is zero.

use super::inode_geometry::CLUSTER_BYTES;
use super::limits::*;
use super::{AgNumber, realtime_check};
use crate::error::{Check, Place, Rule, Verdict};
use crate::ondisk::RawSuperblock;
use crate::ondisk::feature_bits::{features2, incompat, qflags, versionnum};

/// What is known about a superblock from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuperblockContext {
    /// Group that the superblock heads: 0 is the primary.
    pub agno: AgNumber,
    /// Whether the caller has a log device of its own; `None` when it does not care.
    pub external_log: Option<bool>,
}

/// Verifies the contents of a superblock. Its CRC is the affair of who read the sector.
pub fn check_superblock(sb: &RawSuperblock, context: SuperblockContext) -> Verdict {
    let mut checks = SuperblockChecks::new(sb, context);
    checks.magic_and_version();
    if sb.is_v5() {
        checks.features_v5();
        checks.inode_alignment();
        if sb.features_incompat.get() & incompat::METADIR != 0 {
            realtime_check::groups(&mut checks);
        }
        if sb.features_incompat.get() & incompat::ZONED != 0 {
            realtime_check::zones(&mut checks);
        }
    }
    checks.quota_flags();
    checks.sizes();
    checks.groups();
    checks.log();
    realtime_check::section(&mut checks);
    checks.stripe();
    checks.state();
    checks.verdict
}

/// `log2` of the next power of two, as the kernel computes `agblklog` and `rgblklog`; 0 for 0.
pub(super) fn log2_ceil(value: u64) -> u32 {
    if value <= 1 { 0 } else { u64::BITS - (value - 1).leading_zeros() }
}

/// Blocks of an inode cluster, to which sparse chunks must be aligned (version 5).
fn sparse_alignment(sb: &RawSuperblock) -> u64 {
    let blocks = |bytes: u64| bytes.checked_shr(u32::from(sb.blocklog)).unwrap_or(0);
    let scaled = blocks(CLUSTER_BYTES * u64::from(sb.inodesize.get() / 256));
    if u64::from(sb.inoalignmt.get()) >= scaled { scaled } else { blocks(CLUSTER_BYTES) }
}

/// A superblock under test, and what has been found.
pub(super) struct SuperblockChecks<'a> {
    pub(super) sb: &'a RawSuperblock,
    context: SuperblockContext,
    place: Place,
    verdict: Verdict,
}

impl<'a> SuperblockChecks<'a> {
    fn new(sb: &'a RawSuperblock, context: SuperblockContext) -> Self {
        let place = Place { agno: Some(context.agno.0), ..Place::default() };
        SuperblockChecks { sb, context, place, verdict: Verdict::new() }
    }

    /// Notes a failure of `field` unless `holds`.
    pub(super) fn require(&mut self, holds: bool, field: &'static str, rule: Rule, detail: impl FnOnce() -> String) {
        if !holds {
            self.verdict.fail(Check::new("sb", field, rule), self.place.clone(), detail());
        }
    }

    fn range(&mut self, field: &'static str, value: u64, min: u64, max: u64) {
        let detail = || format!("{value}, not in {min} to {max}");
        self.require(value >= min && value <= max, field, Rule::Range, detail);
    }

    /// Notes a failure of `field` unless it has the value that others ask for.
    pub(super) fn equal(&mut self, field: &'static str, value: u64, expected: u64) {
        self.require(value == expected, field, Rule::Mismatch, || format!("{value}, expected {expected}"));
    }

    /// Notes a failure of `field` unless it is zero.
    pub(super) fn zero(&mut self, field: &'static str, value: u64) {
        self.require(value == 0, field, Rule::Padding, || format!("{value}"));
    }

    fn magic_and_version(&mut self) {
        let sb = self.sb;
        let (bits, bits2) = (sb.versionnum.get(), sb.features2.get());
        self.require(sb.magicnum.get() == RawSuperblock::MAGIC, "magicnum", Rule::Magic, || {
            format!("{:#x}", sb.magicnum)
        });
        let version = sb.version();
        self.require(matches!(version, 4 | 5), "versionnum", Rule::Version, || format!("version {version}"));
        let unknown = bits & !versionnum::KNOWN;
        self.require(unknown == 0, "versionnum", Rule::Flags, || format!("unknown bits {unknown:#x}"));
        let known2 = if sb.is_v5() { features2::KNOWN | features2::CRC } else { features2::KNOWN };
        let in_use = sb.is_v5() || bits & versionnum::MOREBITS != 0;
        let unknown = if in_use { bits2 & !known2 } else { 0 };
        self.require(unknown == 0, "features2", Rule::Flags, || format!("unknown bits {unknown:#x}"));
        let (needed, needed2) = if sb.is_v5() {
            (versionnum::V5_REQUIRED, features2::V5_REQUIRED)
        } else {
            (versionnum::DIRV2 | versionnum::EXTFLG, 0)
        };
        let (missing, missing2) = (needed & !bits, needed2 & !bits2);
        self.require(missing == 0, "versionnum", Rule::Mismatch, || format!("needed bits {missing:#x} are not set"));
        self.require(missing2 == 0, "features2", Rule::Mismatch, || format!("needed bits {missing2:#x} are not set"));
    }

    fn features_v5(&mut self) {
        let unknown = self.sb.features_incompat.get() & !incompat::KNOWN;
        self.require(unknown == 0, "features_incompat", Rule::Flags, || format!("unknown bits {unknown:#x}"));
    }

    fn quota_flags(&mut self) {
        let bad = if self.sb.is_v5() {
            qflags::OQUOTA_ENFD | qflags::OQUOTA_CHKD
        } else {
            qflags::PQUOTA_ENFD | qflags::GQUOTA_ENFD | qflags::PQUOTA_CHKD | qflags::GQUOTA_CHKD
        };
        let found = self.sb.qflags.get() & bad;
        self.require(found == 0, "qflags", Rule::Flags, || format!("bits {found:#x} are of the other version"));
    }

    fn inode_alignment(&mut self) {
        let sb = self.sb;
        let (full, sparse) = (sb.inoalignmt.get(), sb.spino_align.get());
        if sb.features_incompat.get() & incompat::SPINODES == 0 {
            self.zero("spino_align", u64::from(sparse));
            return;
        }
        let chunk = (u64::from(sb.inodesize.get()) * 64).checked_shr(u32::from(sb.blocklog)).unwrap_or(0);
        self.equal("inoalignmt", u64::from(full), chunk);
        self.equal("spino_align", u64::from(sparse), sparse_alignment(sb));
        let divides = sparse == 0 || (sparse <= full && full % sparse == 0);
        self.require(divides, "spino_align", Rule::Range, || format!("{sparse} does not divide {full}"));
    }

    fn size_and_log(&mut self, size: (&'static str, u64), log: (&'static str, u8), min_log: u32, max_log: u32) {
        self.range(size.0, size.1, 1 << min_log, 1 << max_log);
        self.range(log.0, u64::from(log.1), u64::from(min_log), u64::from(max_log));
        let matches = 1_u64.checked_shl(u32::from(log.1)) == Some(size.1);
        self.require(matches, log.0, Rule::Mismatch, || format!("{} is not the log2 of {}", log.1, size.1));
    }

    fn sizes(&mut self) {
        let sb = self.sb;
        let min_blocklog = if sb.is_v5() { MIN_BLOCKSIZE_V5.ilog2() } else { MIN_BLOCKLOG };
        self.size_and_log(
            ("sectsize", u64::from(sb.sectsize.get())),
            ("sectlog", sb.sectlog),
            MIN_SECTLOG,
            MAX_SECTLOG,
        );
        let blocksize = u64::from(sb.blocksize.get());
        self.size_and_log(("blocksize", blocksize), ("blocklog", sb.blocklog), min_blocklog, MAX_BLOCKLOG);
        let inodesize = u64::from(sb.inodesize.get());
        self.size_and_log(("inodesize", inodesize), ("inodelog", sb.inodelog), MIN_INODELOG, MAX_INODELOG);
        let dirblock = u64::from(sb.dirblklog) + u64::from(sb.blocklog);
        self.require(dirblock <= u64::from(MAX_BLOCKLOG), "dirblklog", Rule::Range, || format!("{}", sb.dirblklog));
        if inodesize > 0 {
            self.equal("inopblock", u64::from(sb.inopblock.get()), blocksize.div_ceil(inodesize));
        }
        let inopblog = i32::from(sb.blocklog) - i32::from(sb.inodelog);
        self.require(i32::from(sb.inopblog) == inopblog, "inopblog", Rule::Mismatch, || {
            format!("{}, expected {inopblog}", sb.inopblog)
        });
        self.range("imax_pct", u64::from(sb.imax_pct), 0, 100);
        self.zero("shared_vn", u64::from(sb.shared_vn));
    }

    fn groups(&mut self) {
        let sb = self.sb;
        let (dblocks, agblocks, agcount) =
            (sb.dblocks.get(), u64::from(sb.agblocks.get()), u64::from(sb.agcount.get()));
        let ag_bytes = agblocks.checked_shl(u32::from(sb.blocklog)).filter(|bytes| bytes >> sb.blocklog == agblocks);
        let fits = ag_bytes.is_some_and(|bytes| (MIN_AG_BYTES..=MAX_AG_BYTES).contains(&bytes));
        self.require(fits, "agblocks", Rule::Range, || format!("{agblocks} blocks"));
        self.equal("agblklog", u64::from(sb.agblklog), u64::from(log2_ceil(agblocks)));
        self.range("agcount", agcount, 1, u64::from(u32::MAX));
        if agblocks > 0 {
            self.equal("agcount", agcount, dblocks.div_ceil(agblocks));
        }
        let min = agcount.saturating_sub(1) * agblocks + u64::from(MIN_AG_BLOCKS);
        self.range("dblocks", dblocks, min, agcount * agblocks);
        self.fits_in_bytes("dblocks", dblocks);
        self.fits_in_bytes("rblocks", sb.rblocks.get());
    }

    fn fits_in_bytes(&mut self, field: &'static str, blocks: u64) {
        let bits = u64::BITS - blocks.leading_zeros() + u32::from(self.sb.blocklog);
        self.require(bits <= u64::BITS, field, Rule::Count, || format!("{blocks} blocks have no size in bytes"));
    }

    fn log(&mut self) {
        let sb = self.sb;
        let (start, blocks) = (sb.logstart.get(), u64::from(sb.logblocks.get()));
        if let Some(external) = self.context.external_log {
            self.require((start == 0) == external, "logstart", Rule::Mismatch, || match external {
                true => format!("{start}: the log is internal"),
                false => "0: the log is on a device of its own".to_owned(),
            });
        }
        let bytes = blocks << u32::from(sb.blocklog).min(MAX_BLOCKLOG);
        let fits = blocks <= u64::from(MAX_LOG_BLOCKS) && bytes <= MAX_LOG_BYTES;
        self.require(fits, "logblocks", Rule::Range, || format!("{blocks} blocks"));
        let sectsize = u64::from(sb.logsectsize.get());
        if sb.versionnum.get() & versionnum::SECTOR != 0 {
            let matches = 1_u64.checked_shl(u32::from(sb.logsectlog)) == Some(sectsize);
            let detail = || format!("{} is not the log2 of {sectsize}", sb.logsectlog);
            self.require(matches, "logsectlog", Rule::Mismatch, detail);
        } else {
            self.zero("logsectsize", sectsize);
            self.zero("logsectlog", u64::from(sb.logsectlog));
        }
        let unit = sb.logsunit.get();
        if unit > 1 {
            self.range("logsunit", u64::from(unit), 0, u64::from(MAX_LOG_RECORD_BYTES));
            let whole = sb.blocksize.get() != 0 && unit % sb.blocksize.get() == 0;
            self.require(whole, "logsunit", Rule::Mismatch, || format!("{unit} bytes are no whole blocks"));
        }
    }

    fn stripe(&mut self) {
        let sb = self.sb;
        let (unit, width) = (u64::from(sb.unit.get()), u64::from(sb.width.get()));
        let has_bit = sb.versionnum.get() & versionnum::DALIGN != 0;
        self.require((unit != 0) == has_bit, "unit", Rule::Flags, || format!("unit {unit}, bit set: {has_bit}"));
        let width_bytes = width << u32::from(sb.blocklog).min(MAX_BLOCKLOG);
        self.range("width", width_bytes, 0, i32::MAX as u64);
        self.require(unit <= width || width == 0, "unit", Rule::Range, || format!("{unit}, width {width}"));
        let pair = (unit == 0) == (width == 0) && (unit == 0 || width % unit == 0);
        self.require(pair, "width", Rule::Mismatch, || format!("{width}, unit {unit}"));
    }

    fn state(&mut self) {
        let unfinished = self.context.agno.0 == 0 && self.sb.inprogress != 0;
        self.require(!unfinished, "inprogress", Rule::Flags, || "mkfs has not finished".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples::{any_superblock, damaged_superblock, superblock};
    use super::*;

    type Damage = fn(&mut RawSuperblock);

    /// What is done to the sample of a name, and the one check that must fail.
    const CASES: &[(&str, Damage, &str, Rule)] = &[
        ("default", |sb| sb.magicnum = 1.into(), "magicnum", Rule::Magic),
        ("default", |sb| sb.versionnum = 0xb4b6.into(), "versionnum", Rule::Version),
        ("default", |sb| sb.versionnum = 0xb6b5.into(), "versionnum", Rule::Flags),
        ("default", |sb| sb.versionnum = 0x94b5.into(), "versionnum", Rule::Mismatch),
        ("v4-old", |sb| sb.versionnum = (sb.versionnum.get() & !0x2000).into(), "versionnum", Rule::Mismatch),
        ("default", |sb| sb.features2 = 0x1018a.into(), "features2", Rule::Flags),
        ("default", |sb| sb.features2 = 0x10a.into(), "features2", Rule::Mismatch),
        (
            "default",
            |sb| sb.features_incompat = (sb.features_incompat.get() | 1 << 20).into(),
            "features_incompat",
            Rule::Flags,
        ),
        (
            "groups",
            |sb| sb.features_incompat = (sb.features_incompat.get() & !0x40).into(),
            "features_incompat",
            Rule::Mismatch,
        ),
        ("default", |sb| sb.qflags = 0x10.into(), "qflags", Rule::Flags),
        ("v4-old", |sb| sb.qflags = 0x80.into(), "qflags", Rule::Flags),
        ("default", |sb| sb.inoalignmt = 4.into(), "inoalignmt", Rule::Mismatch),
        ("default", |sb| sb.spino_align = 2.into(), "spino_align", Rule::Mismatch),
        ("default", |sb| sb.spino_align = 3.into(), "spino_align", Rule::Range),
        ("groups", |sb| sb.pad[6] = 1, "pad", Rule::Padding),
        ("groups", |sb| sb.rgextents = 1.into(), "rgextents", Rule::Range),
        ("groups", |sb| sb.rgextents = (1 << 30).into(), "rgextents", Rule::Range),
        ("groups", |sb| sb.rgcount = 6.into(), "rgcount", Rule::Mismatch),
        ("groups", |sb| sb.rgblklog = 17, "rgblklog", Rule::Mismatch),
        ("zoned-internal", |sb| sb.frextents = 1.into(), "frextents", Rule::Padding),
        ("zoned-internal", |sb| sb.rtstart = 131_071.into(), "rtstart", Rule::Range),
        ("zoned-internal", |sb| sb.rtreserved = sb.rblocks, "rtreserved", Rule::Range),
        ("zoned-internal", |sb| sb.rextents = (sb.rextents.get() - 1).into(), "rgextents", Rule::Mismatch),
        ("zoned-internal", |sb| sb.rextsize = 2.into(), "rextsize", Rule::Mismatch),
        ("zoned-internal", |sb| sb.rbmblocks = 1.into(), "rbmblocks", Rule::Mismatch),
        ("default", |sb| sb.agcount = 0.into(), "agcount", Rule::Range),
        ("default", |sb| sb.agcount = 5.into(), "agcount", Rule::Mismatch),
        ("default", |sb| sb.sectsize = 256.into(), "sectsize", Rule::Range),
        ("default", |sb| sb.sectlog = 16, "sectlog", Rule::Range),
        ("default", |sb| sb.sectlog = 10, "sectlog", Rule::Mismatch),
        ("default", |sb| sb.blocksize = 512.into(), "blocksize", Rule::Range),
        ("default", |sb| sb.blocklog = 255, "blocklog", Rule::Range),
        ("default", |sb| sb.blocklog = 13, "blocklog", Rule::Mismatch),
        ("default", |sb| sb.dirblklog = 5, "dirblklog", Rule::Range),
        ("default", |sb| sb.inodesize = 4096.into(), "inodesize", Rule::Range),
        ("default", |sb| sb.inodelog = 12, "inodelog", Rule::Range),
        ("default", |sb| sb.inodelog = 10, "inodelog", Rule::Mismatch),
        ("default", |sb| sb.inopblock = 9.into(), "inopblock", Rule::Mismatch),
        ("default", |sb| sb.inopblog = 4, "inopblog", Rule::Mismatch),
        ("default", |sb| sb.agblocks = 4095.into(), "agblocks", Rule::Range),
        ("default", |sb| sb.agblocks = u32::MAX.into(), "agblocks", Rule::Range),
        ("default", |sb| sb.agblklog = 16, "agblklog", Rule::Mismatch),
        ("default", |sb| sb.rextsize = 0.into(), "rextsize", Rule::Range),
        ("default", |sb| sb.rextsize = (1 << 20).into(), "rextsize", Rule::Range),
        ("default", |sb| sb.imax_pct = 101, "imax_pct", Rule::Range),
        ("default", |sb| sb.dblocks = 0.into(), "dblocks", Rule::Range),
        ("default", |sb| sb.dblocks = (3 * 32768 + 63).into(), "dblocks", Rule::Range),
        ("default", |sb| sb.dblocks = u64::MAX.into(), "dblocks", Rule::Count),
        ("realtime", |sb| sb.rblocks = u64::MAX.into(), "rblocks", Rule::Count),
        ("default", |sb| sb.shared_vn = 1, "shared_vn", Rule::Padding),
        ("default", |sb| sb.logblocks = (1 << 21).into(), "logblocks", Rule::Range),
        ("sector-stripe", |sb| sb.logsectlog = 200, "logsectlog", Rule::Mismatch),
        ("default", |sb| sb.logsectlog = 9, "logsectlog", Rule::Padding),
        ("default", |sb| sb.logsectsize = 512.into(), "logsectsize", Rule::Padding),
        ("default", |sb| sb.logsunit = 4097.into(), "logsunit", Rule::Mismatch),
        ("default", |sb| sb.logsunit = (512 * 1024).into(), "logsunit", Rule::Range),
        ("default", |sb| sb.rextents = 1.into(), "rextents", Rule::Padding),
        ("default", |sb| sb.rbmblocks = 1.into(), "rbmblocks", Rule::Padding),
        ("default", |sb| sb.rextslog = 1, "rextslog", Rule::Padding),
        ("default", |sb| sb.frextents = 1.into(), "frextents", Rule::Padding),
        ("realtime", |sb| sb.rextents = 0.into(), "rextents", Rule::Range),
        ("realtime", |sb| sb.rextents = (sb.rextents.get() + 1).into(), "rextents", Rule::Mismatch),
        ("realtime", |sb| sb.rextslog += 1, "rextslog", Rule::Mismatch),
        ("realtime", |sb| sb.rbmblocks = (sb.rbmblocks.get() + 1).into(), "rbmblocks", Rule::Mismatch),
        ("default", |sb| sb.unit = 16.into(), "unit", Rule::Flags),
        ("sector-stripe", |sb| sb.unit = 0.into(), "unit", Rule::Flags),
        ("sector-stripe", |sb| sb.unit = 65.into(), "unit", Rule::Range),
        ("sector-stripe", |sb| sb.width = (1 << 20).into(), "width", Rule::Range),
        ("sector-stripe", |sb| sb.width = 65.into(), "width", Rule::Mismatch),
        ("sector-stripe", |sb| sb.width = 0.into(), "width", Rule::Mismatch),
        ("default", |sb| sb.inprogress = 1, "inprogress", Rule::Flags),
    ];

    #[test]
    fn each_check_finds_what_it_is_for() {
        for (name, damage, field, rule) in CASES {
            let mut sb = superblock(name);
            assert!(check_superblock(&sb, SuperblockContext::default()).is_sound(), "{name}");
            damage(&mut sb);
            let verdict = check_superblock(&sb, SuperblockContext::default());
            assert!(verdict.has_failed(Check::new("sb", field, *rule)), "{name} {field} {rule}: {verdict:?}");
        }
    }

    #[test]
    fn all_failures_are_listed() {
        let mut sb = superblock("default");
        (sb.imax_pct, sb.shared_vn, sb.inprogress) = (101, 1, 1);
        assert_eq!(check_superblock(&sb, SuperblockContext::default()).failures().len(), 3);
        let secondary = SuperblockContext { agno: AgNumber(1), ..SuperblockContext::default() };
        assert_eq!(check_superblock(&sb, secondary).failures().len(), 2);
    }

    #[test]
    fn logs_are_rounded_up() {
        assert_eq!([0, 1, 2, 3, 4, 5, 1 << 40].map(log2_ceil), [0, 0, 1, 2, 2, 3, 40]);
    }

    proptest! {
        #[test]
        fn samples_are_sound(sb in any_superblock()) {
            prop_assert!(check_superblock(&sb, SuperblockContext::default()).is_sound());
        }

        #[test]
        fn no_damage_makes_the_checks_panic(sb in damaged_superblock(), agno: u32, log: Option<bool>) {
            let _ = check_superblock(&sb, SuperblockContext { agno: AgNumber(agno), external_log: log });
        }

        #[test]
        fn no_noise_makes_the_checks_panic(bytes: [[u8; 16]; 19]) {
            let sb: RawSuperblock = zerocopy::transmute!(bytes);
            prop_assert!(!check_superblock(&sb, SuperblockContext::default()).is_sound());
        }
    }
}
