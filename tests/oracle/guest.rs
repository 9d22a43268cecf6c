//! Kernels that this machine does not have use what the matrix makes: Linux 7.3 realtime volumes and quota, with
//! `xfs_scrub -n`; Linux 6.12 the v4 format and names without case. Many images in one boot; `xfs_repair -n` judges them after it.

use crate::format::{Side, format};
use crate::host_kernel::{can_mount, is_for_host};
use crate::matrix::repair;
use crate::place::Files;
use crate::reference::{Reference, missing, reference, run, said, unmount};
use crate::sets::{Content, Set, accepted, chosen, share};
use crate::tally::{Outcome, report};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// One in so many sets that only a guest can mount belongs to the share that is always run: a guest is slow.
const SHARE: u64 = 16;
/// Of the sets that the machine's own kernel mounts, so many as xfs_scrub should see: always, and in a full run.
const SCRUBBED: (u64, u64) = (160, 8);
/// The images that one boot judges.
const PER_BOOT: usize = 60;
/// What a kernel has to do with a set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// The v4 format, and names without case: kernels of today leave both out.
    Old,
    /// What a machine's own kernel usually cannot mount, and a part of the rest for xfs_scrub.
    New,
    /// Not for a guest: nothing is made, or it takes too much memory or time there.
    None,
}

fn kind(set: &Set) -> Kind {
    let conf = set.conf.as_ref().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    let large = set.files.iter().any(|file| file.size > 1 << 40);
    let filled = set.files.iter().any(|file| file.content == Content::Filled);
    let realtime = set.file('r').is_some() || set.args.iter().chain([&conf]).any(|arg| arg.contains("metadir=1"));
    if set.is_dry() || set.writes_out || set.is_for_guest() || large || filled {
        Kind::None
    } else if set.has("crc=0") || conf.contains("crc=0") {
        // A v4 filesystem's blocks fit into a page.
        let large_blocks = ["size=8k", "size=16k", "size=32k", "size=64k"].iter().any(|size| {
            set.args.windows(2).any(|pair| pair[0] == "-b" && pair[1].split(',').any(|word| word == *size))
        });
        if large_blocks { Kind::None } else { Kind::Old }
    } else if set.has("version=ci") {
        if realtime { Kind::None } else { Kind::Old }
    } else {
        Kind::New
    }
}

/// Whether the superblock of a set asks for quota.
fn asks_for_quota(set: &Set) -> bool {
    set.args.iter().any(|arg| arg.contains("metadir=1") && arg.split(',').any(|word| word == "uquota"))
}

/// An XFS in a sparse file that carries images into a guest and back.
struct Carrier {
    folder: tempfile::TempDir,
}

impl Carrier {
    fn new(reference: &Reference) -> Result<Self, String> {
        let parent = std::env::var_os("XFSKIT_WORK").map_or_else(std::env::temp_dir, PathBuf::from);
        let folder = tempfile::Builder::new().prefix("xfskit-guest.").tempdir_in(parent);
        let new = Self { folder: folder.map_err(|error| error.to_string())? };
        fs::create_dir(new.point()).map_err(|error| error.to_string())?;
        File::create(new.image()).and_then(|file| file.set_len(256 << 30)).map_err(|error| error.to_string())?;
        // Only features that every guest's kernel reads.
        let features = ["-q", "-m", "rmapbt=0,autofsck=0", "-i", "exchange=0", "-n", "parent=0"];
        let made = reference.tool("mkfs.xfs", features).arg(new.image()).output().map_err(|error| error.to_string())?;
        if !made.status.success() {
            return Err(said(&made));
        }
        new.mount()?;
        Ok(new)
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn point(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }

    fn mount(&self) -> Result<(), String> {
        run("mount", ["-o".as_ref(), "loop".as_ref(), self.image().as_os_str(), self.point().as_os_str()]).map(|_| ())
    }

    fn unmount(&self) -> Result<(), String> {
        unmount(self.point())
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        // Fails where an error came while it was not mounted.
        let _ = self.unmount();
    }
}

/// Formats the sets, has a guest of `kernel` use them, and xfs_repair judge what it leaves.
fn judge(sets: &[Set], kernel: &str, reference: &Reference) -> Vec<(String, Outcome)> {
    let failed = |set: &Set, why: String| (set.name.clone(), Outcome::Failed(vec![why]));
    match judge_batch(sets, kernel, reference) {
        Ok(outcomes) => outcomes,
        Err(why) => sets.iter().map(|set| failed(set, format!("could not be run: {why}"))).collect(),
    }
}

fn judge_batch(sets: &[Set], kernel: &str, reference: &Reference) -> Result<Vec<(String, Outcome)>, String> {
    let carrier = Carrier::new(reference)?;
    let mut outcomes = Vec::new();
    let mut carried: Vec<(&Set, Files)> = Vec::new();
    let mut manifest = String::new();
    for set in sets {
        let made = format(set, Side::Ours, &carrier.point().join(&set.name), reference)?;
        if let Err(said) = made.success() {
            outcomes.push((set.name.clone(), Outcome::Failed(vec![format!("refused: {said}")])));
            continue;
        }
        let sector = set.files.iter().find_map(|file| file.loop_sector).unwrap_or(512);
        let options = match kind(set) {
            Kind::Old => "uquota,gquota",
            _ if asks_for_quota(set) => "defaults",
            _ if set.args.iter().any(|arg| arg.contains("metadir=1") || arg.contains("quota")) => "noatime",
            _ if set.file('r').is_some() || set.has("zoned=1") || set.has("zoned") => "noatime",
            _ => "uquota,gquota,pquota",
        };
        let scrub = match kind(set) {
            _ if set.is_refused_by_linux() => "refused",
            Kind::New => "scrub",
            _ => "-",
        };
        let quota = if asks_for_quota(set) { "quota" } else { "-" };
        writeln!(manifest, "{} {options} {sector} {scrub} {quota}", set.name)
            .expect("invariant: a string can be written to");
        carried.push((set, made.files));
    }
    fs::write(carrier.point().join("manifest"), manifest).map_err(|error| error.to_string())?;
    carrier.unmount()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/guest-judge");
    let mut guest = reference.guest();
    guest.args(["-k", kernel, "-t", "1500"]).arg(script).arg(carrier.image());
    let output = guest.output().map_err(|error| format!("vm: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    carrier.mount()?;
    for (set, files) in &carried {
        let bad = format!("BAD {}: ", set.name);
        let mut wrong: Vec<String> = text
            .lines()
            .filter_map(|line| line.strip_prefix(&bad))
            .map(|why| format!("Linux {kernel}: {why}"))
            .collect();
        if wrong.is_empty() && !text.lines().any(|line| line.strip_prefix("OK ") == Some(&set.name)) {
            wrong.push(format!("Linux {kernel} has not come to it: {}", said(&output)));
        }
        if wrong.is_empty() {
            wrong.extend(repair(set, files, reference).err().map(|said| format!("after use: {said}")));
        }
        let outcome = if wrong.is_empty() { Outcome::Passed } else { Outcome::Failed(wrong) };
        outcomes.push((set.name.clone(), outcome));
    }
    Ok(outcomes)
}

/// The references that a guest test needs, or `None`, aloud.
pub fn with_kernel(series: &str) -> Option<&'static Reference> {
    let reference = reference()?;
    if !reference.has_kernel(series) {
        missing(&format!("Linux {series} for the guest (run tests/oracle/setup as root)"));
        return None;
    }
    can_mount().then_some(reference)
}

fn judged_by(series: &str, title: &str, wanted: Kind) {
    let Some(reference) = with_kernel(series) else { return };
    let (often, seldom): (Vec<Set>, Vec<Set>) =
        accepted().into_iter().filter(|set| kind(set) == wanted).partition(|set| !is_for_host(set));
    let mut sets = chosen(often, SHARE);
    sets.extend(chosen(share(seldom, SCRUBBED.1), SCRUBBED.0));
    report(title, sets.chunks(PER_BOOT).flat_map(|sets| judge(sets, series, reference)).collect());
}

#[test]
fn linux_7_3_uses_and_scrubs() {
    judged_by("7.3", "guest 7.3", Kind::New);
}

#[test]
fn linux_6_12_uses_old_formats() {
    judged_by("6.12", "guest 6.12", Kind::Old);
}
