//! Who reads a filesystem with given features.

use std::collections::BTreeSet;

use super::feature::Feature;
use super::grubs::{GRUBS, GrubRow};
use super::kernels::{KERNELS, KernelRow};
use super::release::{GRUB_RELEASES, Grub, Linux};

/// How a kernel takes a filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// The mount fails.
    Refused,
    /// Mounted read-only; for writing the mount fails.
    ReadOnly,
    /// Mounted for writing.
    ReadWrite,
}

/// The row of a feature in the table of kernels.
pub fn kernel_row(feature: Feature) -> &'static KernelRow {
    KERNELS.iter().find(|row| row.feature == feature).expect("invariant: the table has a row for each feature")
}

/// The row of a feature in the table of GRUBs.
pub fn grub_row(feature: Feature) -> &'static GrubRow {
    GRUBS.iter().find(|row| row.feature == feature).expect("invariant: the table has a row for each feature")
}

/// What `kernel`, built as its defaults are, does with one feature.
pub fn kernel_takes(kernel: Linux, feature: Feature) -> Access {
    let row = kernel_row(feature);
    if row.default_off.is_some_and(|(off, _)| kernel >= off) {
        Access::Refused
    } else if row.read_write.is_some_and(|since| kernel >= since) {
        Access::ReadWrite
    } else if row.read_only.is_some_and(|since| kernel >= since) {
        Access::ReadOnly
    } else {
        Access::Refused
    }
}

/// Whether `kernel` warns of the feature as experimental when it mounts it.
pub fn kernel_warns(kernel: Linux, feature: Feature) -> bool {
    kernel_row(feature).experimental.is_some_and(|(from, to)| kernel >= from && to.is_none_or(|to| kernel < to))
}

/// Whether `grub`, as upstream released it, reads a filesystem with the feature.
pub fn grub_reads(grub: Grub, feature: Feature) -> bool {
    let row = grub_row(feature);
    row.since.is_some_and(|since| grub >= since) && row.broken.is_none_or(|(broken, _)| broken != grub)
}

/// The answer to a question of the form "from which release on": the release, and the features that keep older ones out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oldest<R> {
    /// The first release that can; `None` if none can.
    pub release: Option<R>,
    /// The features that decide it: those that the release before refuses, or, when none can, those that the newest refuse.
    pub decided_by: Vec<Feature>,
    /// The last release that can, when later ones cannot, with the features that decide it.
    pub last: Option<(R, Vec<Feature>)>,
}

/// Who reads a filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readers {
    /// Kernels that mount it for writing.
    pub read_write: Oldest<Linux>,
    /// Kernels that mount it read-only.
    pub read_only: Oldest<Linux>,
    /// GRUBs that read it.
    pub grub: Oldest<Grub>,
}

fn oldest<R: Copy>(releases: &[R], features: &BTreeSet<Feature>, can: impl Fn(R, Feature) -> bool) -> Oldest<R> {
    let against =
        |release: R| -> Vec<Feature> { features.iter().copied().filter(|&feature| !can(release, feature)).collect() };
    let Some(first) = releases.iter().position(|&release| against(release).is_empty()) else {
        return Oldest { release: None, decided_by: blockers(releases, features, can), last: None };
    };
    let decided_by = first.checked_sub(1).map(|before| against(releases[before])).unwrap_or_default();
    let end = releases[first..].iter().position(|&release| !against(release).is_empty());
    let last = end.map(|steps| (releases[first + steps - 1], against(releases[first + steps])));
    Oldest { release: Some(releases[first]), decided_by, last }
}

/// The features that keep every release out: those that none takes, or else all that some release refuses.
fn blockers<R: Copy>(releases: &[R], features: &BTreeSet<Feature>, can: impl Fn(R, Feature) -> bool) -> Vec<Feature> {
    let none: Vec<_> =
        features.iter().copied().filter(|&feature| !releases.iter().any(|&release| can(release, feature))).collect();
    if !none.is_empty() {
        return none;
    }
    features.iter().copied().filter(|&feature| !releases.iter().all(|&release| can(release, feature))).collect()
}

/// Who reads a filesystem with these features.
pub fn readers(features: &BTreeSet<Feature>) -> Readers {
    let kernels: Vec<Linux> = Linux::all().collect();
    Readers {
        read_write: oldest(&kernels, features, |kernel, feature| kernel_takes(kernel, feature) == Access::ReadWrite),
        read_only: oldest(&kernels, features, |kernel, feature| kernel_takes(kernel, feature) >= Access::ReadOnly),
        grub: oldest(&GRUB_RELEASES, features, grub_reads),
    }
}

#[cfg(test)]
mod tests {
    use super::super::release::{NEWEST_LINUX, OLDEST_LINUX};
    use super::*;

    fn ask(features: &[Feature]) -> Readers {
        readers(&features.iter().copied().collect())
    }

    #[test]
    fn a_default_filesystem_of_xfsprogs_5_15() {
        let answer = ask(&[Feature::V5, Feature::Finobt, Feature::Reflink, Feature::Bigtime, Feature::Inobtcount]);
        assert_eq!(answer.read_write.release, Some(Linux::new(5, 10)));
        assert_eq!(answer.read_write.decided_by, [Feature::Inobtcount, Feature::Bigtime]);
        assert_eq!(answer.read_only.decided_by, [Feature::Bigtime]);
        assert_eq!(answer.grub, Oldest { release: Some(Grub::new(6)), decided_by: vec![Feature::Bigtime], last: None });
    }

    #[test]
    fn inobtcount_alone_is_read_only_to_older_kernels() {
        let answer = ask(&[Feature::V5, Feature::Inobtcount]);
        assert_eq!(answer.read_write.release, Some(Linux::new(5, 10)));
        assert_eq!(answer.read_only.release, Some(OLDEST_LINUX));
        assert_eq!(kernel_takes(Linux::new(5, 9), Feature::Inobtcount), Access::ReadOnly);
    }

    #[test]
    fn v4_ends_before_6_18() {
        let answer = ask(&[Feature::V4]);
        assert_eq!(answer.read_write.release, Some(OLDEST_LINUX));
        assert_eq!(answer.read_write.last, Some((Linux::new(6, 17), vec![Feature::V4])));
        assert_eq!(answer.grub.last, Some((Grub::new(4), vec![Feature::V4])));
    }

    #[test]
    fn nothing_reads_what_nobody_knows() {
        let answer = ask(&[Feature::V5, Feature::Reflink, Feature::UnknownIncompat]);
        assert_eq!(answer.read_only, Oldest { release: None, decided_by: vec![Feature::UnknownIncompat], last: None });
        assert_eq!(ask(&[Feature::NeedsRepair]).read_write.release, None);
        assert_eq!(ask(&[Feature::NeedsRepair]).read_only.release, Some(Linux::new(6, 12)));
    }

    #[test]
    fn releases_that_exclude_each_other() {
        // no real filesystem has both, but the answer must name the two
        let answer = ask(&[Feature::AsciiCi, Feature::V4, Feature::Zoned]);
        assert_eq!(answer.grub.release, None);
        assert_eq!(kernel_takes(NEWEST_LINUX, Feature::V4), Access::Refused);
    }
}
