//! Disks that report a stripe, which this machine may have no way to make: a guest's are what the emulator says.

use crate::compare;
use crate::guest::with_kernel;
use crate::reference::{Reference, mkfs_path};
use crate::sets::{FileSpec, Set, accepted, chosen};
use crate::tally::{Outcome, report};
use std::fmt::Write as _;
use std::fs::{self, File};

/// The disks that one boot can have.
const DISKS: usize = 20;

/// A disk of the guest.
struct Disk {
    /// The number of its set in the batch.
    set: usize,
    /// Who formats it.
    side: &'static str,
    /// The file that it stands for.
    spec: FileSpec,
}

/// The script that formats disks of the guest: with mkfs.xfs and with the binary under test, each on disks of its own.
fn script(sets: &[&Set]) -> (String, Vec<Disk>) {
    let mut script = "export SOURCE_DATE_EPOCH=1700000000 DETERMINISTIC_SEED=1 TZ=UTC LC_ALL=C\n".to_owned();
    let mut disks = Vec::new();
    for (index, set) in sets.iter().enumerate() {
        for side in ["theirs", "ours"] {
            let first = disks.len();
            for spec in &set.files {
                disks.push(Disk { set: index, side, spec: spec.clone() });
            }
            let device = |role: char| {
                let place = set.files.iter().position(|spec| spec.role == role).unwrap_or(0);
                format!("/dev/vd{}", char::from(b'a' + u8::try_from(first + place).unwrap_or(0)))
            };
            let tool = if side == "ours" { "/host/xfskit-mkfs" } else { "mkfs.xfs" };
            let args = set.arguments(device).join(" ");
            // The names of the devices differ, and with them the padding behind them.
            let mut plain = String::new();
            for spec in &set.files {
                write!(plain, "; s#{} *#{} #", device(spec.role), spec.role).expect("invariant: a string");
            }
            writeln!(script, "{tool} {args} >/tmp/o 2>/tmp/e; echo \"{index} {side} exit $?\"")
                .expect("invariant: a string can be written to");
            writeln!(script, "sed -n 's/^/{index} {side} /; /meta-data=/,$p' /tmp/o | sed '/Discarding/d{plain}'")
                .expect("invariant: a string can be written to");
            writeln!(script, "sed 's/^/{index} {side} said /' /tmp/e").expect("invariant: a string can be written to");
        }
    }
    (script, disks)
}

/// Formats the disks of a guest that report a stripe, and compares what came of them.
fn format_batch(sets: &[&Set], reference: &Reference) -> Result<Vec<(String, Outcome)>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (script, disks) = script(sets);
    let path = |disk: usize| folder.path().join(format!("disk{disk}"));
    fs::write(folder.path().join("script"), script).map_err(|error| error.to_string())?;
    let binary = folder.path().join("xfskit-mkfs");
    fs::copy(mkfs_path(), &binary).map_err(|error| error.to_string())?;
    let mut guest = reference.guest();
    guest.args(["-t", "600", "-f"]).arg(binary).arg(folder.path().join("script"));
    for (number, Disk { spec, .. }) in disks.iter().enumerate() {
        File::create(path(number)).and_then(|file| file.set_len(spec.size)).map_err(|error| error.to_string())?;
        let mut image = path(number).display().to_string();
        if let Some((least, best)) = spec.stripe {
            write!(image, ",min_io_size={least},opt_io_size={best}").expect("invariant: a string can be written to");
        }
        guest.arg(image);
    }
    let output = guest.output().map_err(|error| format!("vm: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut outcomes = Vec::new();
    for (index, set) in sets.iter().enumerate() {
        let lines = |side: &str| {
            let start = format!("{index} {side} ");
            let lines = text.lines().filter_map(|line| line.strip_prefix(&start));
            lines.filter(|line| !line.starts_with("said ")).map(str::to_owned).collect::<Vec<_>>()
        };
        let (ours, theirs) = (lines("ours"), lines("theirs"));
        let mut wrong = Vec::new();
        if theirs.first().map(String::as_str) != Some("exit 0") {
            wrong.push(format!("mkfs.xfs refuses it: {text}"));
        } else if ours != theirs {
            let said = format!("{index} ours said ");
            let said: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(&said)).collect();
            wrong.push(format!("ours {ours:?}, theirs {theirs:?}; ours said {said:?}"));
        }
        for spec in &set.files {
            let disk = |side: &str| {
                let is = |disk: &Disk| disk.set == index && disk.side == side && disk.spec.role == spec.role;
                disks.iter().position(is).map(path)
            };
            if let (Some(ours), Some(theirs)) = (disk("ours"), disk("theirs")) {
                wrong.extend(compare::files(&ours, &theirs)?.map(|found| format!("{}: {found}", spec.role)));
            }
        }
        outcomes.push((set.name.clone(), if wrong.is_empty() { Outcome::Passed } else { Outcome::Failed(wrong) }));
    }
    Ok(outcomes)
}

#[test]
fn striped_disks_of_a_guest() {
    let Some(reference) = with_kernel("7.3") else { return };
    let sets: Vec<Set> = chosen(accepted(), 1).into_iter().filter(Set::is_for_guest).collect();
    let mut outcomes = Vec::new();
    let mut rest: &[Set] = &sets;
    while !rest.is_empty() {
        let mut disks = 0;
        let fits = rest.iter().take_while(|set| {
            disks += 2 * set.files.len();
            disks <= DISKS
        });
        let batch: Vec<&Set> = fits.collect();
        rest = &rest[batch.len()..];
        match format_batch(&batch, reference) {
            Ok(more) => outcomes.extend(more),
            Err(why) => outcomes.extend(batch.iter().map(|set| (set.name.clone(), Err(why.clone()).into()))),
        }
    }
    report("guest stripes", outcomes);
}
