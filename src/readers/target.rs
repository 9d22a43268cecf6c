//! `--target`: which features a new filesystem must do without, so that a given kernel and GRUB read it.

use std::fmt;
use std::str::FromStr;

use super::feature::Feature;
use super::release::{GRUB_RELEASES, Grub, Linux};
use super::verdict::{Access, grub_reads, grub_row, kernel_row, kernel_takes, kernel_warns};
use crate::error::{Error, Result};

/// What a new filesystem is to be read by. `kernel=6.1,grub=2.06` on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The kernel that mounts it for writing, built with its default configuration.
    pub kernel: Option<Linux>,
    /// The GRUB that reads it.
    pub grub: Option<Grub>,
}

/// A feature that a new filesystem would have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The feature.
    pub feature: Feature,
    /// The option that asks for it, as the user wrote it (`-m bigtime=1`); `None` if it is on by default.
    pub option: Option<String>,
}

impl FromStr for Target {
    type Err = Error;

    /// Reads `kernel=RELEASE`, `grub=RELEASE` or both, separated by a comma.
    ///
    /// # Errors
    /// [`Error::Usage`] for anything else.
    fn from_str(text: &str) -> Result<Self> {
        let mut target = Target::default();
        for part in text.split(',') {
            let twice = || Error::Usage(format!("--target {text}: '{part}' is given twice over"));
            match part.split_once('=') {
                Some(("kernel", release)) if target.kernel.is_none() => target.kernel = Some(release.parse()?),
                Some(("grub", release)) if target.grub.is_none() => target.grub = Some(release.parse()?),
                Some(("kernel" | "grub", _)) => return Err(twice()),
                _ => {
                    return Err(Error::Usage(format!(
                        "--target {text}: expected kernel=RELEASE, grub=RELEASE or both"
                    )));
                }
            }
        }
        Ok(target)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kernel, self.grub) {
            (Some(kernel), Some(grub)) => write!(f, "kernel={kernel},grub={grub}"),
            (Some(kernel), None) => write!(f, "kernel={kernel}"),
            (None, Some(grub)) => write!(f, "grub={grub}"),
            (None, None) => Ok(()),
        }
    }
}

impl Target {
    /// Why the target cannot use a filesystem with the feature; `None` if it can.
    fn refuses(self, feature: Feature) -> Option<String> {
        if let Some(kernel) = self.kernel
            && kernel_takes(kernel, feature) < Access::ReadWrite
        {
            return Some(format!(
                "Linux {kernel} cannot {} it; {}",
                refusal(kernel, feature),
                kernels_that_do(feature)
            ));
        }
        if let Some(grub) = self.grub
            && !grub_reads(grub, feature)
        {
            return Some(format!("GRUB {grub} cannot read it; {}", grubs_that_do(feature)));
        }
        None
    }

    /// Whether a feature that is on by default stays on: not when the target refuses it, misreads it, or still calls it experimental.
    fn welcomes(self, feature: Feature) -> bool {
        let warned = self.kernel.is_some_and(|kernel| kernel_warns(kernel, feature));
        let flawed = self.grub.is_some_and(|grub| grub_row(feature).flawed.is_some_and(|(release, _)| release == grub));
        self.refuses(feature).is_none() && !warned && !flawed
    }

    /// Which of the features that are on by default must be off for this target.
    ///
    /// Features asked for by an option stay, even where the target calls them experimental. Turning a feature off may leave
    /// others without a base; the caller resolves its options again and asks again.
    ///
    /// # Errors
    /// [`Error::Usage`] when an option asks for a feature that the target cannot use; it names the option and who can use it.
    pub fn features_to_turn_off(self, wishes: &[Wish]) -> Result<Vec<Feature>> {
        let mut off = Vec::new();
        for Wish { feature, option } in wishes {
            match option {
                None if !self.welcomes(*feature) => off.push(*feature),
                None => {}
                Some(option) => {
                    if let Some(why) = self.refuses(*feature) {
                        return Err(Error::Usage(format!("{option} conflicts with --target {self}: {why}")));
                    }
                }
            }
        }
        Ok(off)
    }
}

/// What the kernel cannot do with the feature.
fn refusal(kernel: Linux, feature: Feature) -> &'static str {
    if kernel_takes(kernel, feature) == Access::ReadOnly { "write to" } else { "mount" }
}

/// Which kernels mount the feature for writing, as a clause.
fn kernels_that_do(feature: Feature) -> String {
    let row = kernel_row(feature);
    match (row.read_write, row.default_off) {
        (None, _) => "no kernel can".to_owned(),
        (Some(since), None) => format!("Linux {since} and later can"),
        (Some(since), Some((off, config))) => match off.before() {
            Some(last) => format!("Linux {since} to {last} can, later ones only if built with {config}"),
            None => format!("kernels can only if built with {config}"),
        },
    }
}

/// Which GRUBs read the feature, as a clause.
fn grubs_that_do(feature: Feature) -> String {
    let able: Vec<String> =
        GRUB_RELEASES.iter().filter(|&&grub| grub_reads(grub, feature)).map(Grub::to_string).collect();
    let broken = grub_row(feature).broken.map(|(release, why)| format!(" ({release} {why})")).unwrap_or_default();
    match able.as_slice() {
        [] => "no release of GRUB can".to_owned(),
        able => format!("GRUB {} can{broken}", able.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(feature: Feature) -> Wish {
        Wish { feature, option: None }
    }

    fn asked(feature: Feature, option: &str) -> Wish {
        Wish { feature, option: Some(option.to_owned()) }
    }

    /// What mkfs.xfs 7.2 turns on without being asked.
    fn defaults() -> Vec<Wish> {
        use Feature as F;
        [
            F::V5,
            F::Ftype,
            F::Finobt,
            F::SparseInodes,
            F::Rmapbt,
            F::Reflink,
            F::Inobtcount,
            F::Bigtime,
            F::Nrext64,
            F::Exchange,
            F::Parent,
        ]
        .map(on)
        .to_vec()
    }

    fn off(target: &str) -> Vec<&'static str> {
        target.parse::<Target>().unwrap().features_to_turn_off(&defaults()).unwrap().iter().map(|f| f.name()).collect()
    }

    #[test]
    fn defaults_shrink_to_what_the_target_reads() {
        assert_eq!(off("kernel=7.3"), [""; 0]);
        assert_eq!(off("kernel=6.12"), ["exchange", "parent"]); // mounted, but experimental there
        assert_eq!(off("kernel=6.1"), ["nrext64", "exchange", "parent"]);
        assert_eq!(off("kernel=5.4"), ["inobtcount", "bigtime", "nrext64", "exchange", "parent"]);
        assert_eq!(off("kernel=7.3,grub=2.02"), ["sparse", "bigtime", "nrext64", "exchange", "parent"]);
        assert_eq!(off("grub=2.12"), ["nrext64", "exchange", "parent"]);
        assert_eq!(off("grub=2.14,kernel=7.0"), [""; 0]);
    }

    #[test]
    fn a_conflict_names_the_option_and_who_can() {
        let conflict = |target: &str, wish| {
            target.parse::<Target>().unwrap().features_to_turn_off(&[wish]).unwrap_err().to_string()
        };
        assert_eq!(
            conflict("kernel=5.4", asked(Feature::Bigtime, "-m bigtime=1")),
            "-m bigtime=1 conflicts with --target kernel=5.4: Linux 5.4 cannot mount it; Linux 5.10 and later can"
        );
        assert_eq!(
            conflict("kernel=5.4", asked(Feature::Inobtcount, "-m inobtcount=1")),
            "-m inobtcount=1 conflicts with --target kernel=5.4: Linux 5.4 cannot write to it; Linux 5.10 and later can"
        );
        assert_eq!(
            conflict("kernel=7.3", asked(Feature::V4, "-m crc=0")),
            "-m crc=0 conflicts with --target kernel=7.3: Linux 7.3 cannot mount it; Linux 4.19 to 6.17 can, later ones only if \
             built with CONFIG_XFS_SUPPORT_V4"
        );
        assert!(
            conflict("grub=2.06", asked(Feature::Nrext64, "-i nrext64=1"))
                .ends_with("GRUB 2.06 cannot read it; GRUB 2.12, 2.14 can")
        );
        assert!(conflict("grub=2.14", asked(Feature::Zoned, "-r zoned=1")).ends_with("no release of GRUB can"));
        assert!(
            conflict("grub=2.06", asked(Feature::V4, "-m crc=0"))
                .contains("GRUB 2.02, 2.04, 2.12, 2.14 can (2.06 reads")
        );
    }

    #[test]
    fn experimental_features_may_be_asked_for() {
        let target: Target = "kernel=6.12".parse().unwrap();
        assert!(target.features_to_turn_off(&[asked(Feature::Parent, "-n parent=1")]).unwrap().is_empty());
    }

    #[test]
    fn targets_are_read_as_users_write_them() {
        let both = Target { kernel: Some(Linux::new(6, 1)), grub: Some(Grub::new(6)) };
        assert_eq!("kernel=6.1,grub=2.06".parse::<Target>().unwrap(), both);
        assert_eq!("grub=2.06,kernel=6.1".parse::<Target>().unwrap(), both);
        assert_eq!(both.to_string(), "kernel=6.1,grub=2.06");
        for bad in ["", "6.1", "kernel", "kernel=", "kernel=6.1,", "kernel=6.1,kernel=6.2", "lilo=24", "grub=2.11"] {
            assert!(bad.parse::<Target>().is_err(), "{bad}");
        }
    }
}
