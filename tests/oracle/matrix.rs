//! Every byte, the exit code and the printed geometry equal those of mkfs.xfs; `xfs_repair -n` finds nothing.

use crate::compare;
use crate::format::{Formatted, Side, format};
use crate::place::{Files, Places};
use crate::reference::{Reference, reference, said};
use crate::sets::{Content, FileSpec, Set, accepted, chosen};
use crate::tally::{Outcome, each};

/// One in so many sets belongs to the share that is always run.
const SHARE: u64 = 6;

/// Formats with both, compares, and lets xfs_repair judge ours.
fn check(set: &Set, places: &Places, reference: &Reference) -> Outcome {
    let run = || -> Result<Vec<String>, String> {
        let folder = places.folder(set, reference)?;
        let theirs = format(set, Side::Theirs, &folder.path().join("theirs"), reference)?;
        theirs.success().map_err(|said| format!("mkfs.xfs refuses it: {said}"))?;
        let ours = format(set, Side::Ours, &folder.path().join("ours"), reference)?;
        if let Err(said) = ours.success() {
            return Ok(vec![format!("refused: {said}")]);
        }
        let mut wrong = differences(set, &ours, &theirs)?;
        // With makecfg= mkfs.xfs writes the configuration file alone.
        if !set.is_dry() && !set.writes_out {
            wrong.extend(repair(set, &ours.files, reference).err());
        }
        Ok(wrong)
    };
    match run() {
        Ok(wrong) if wrong.is_empty() => Outcome::Passed,
        Ok(wrong) => Outcome::Failed(wrong),
        Err(why) => Outcome::Failed(vec![format!("could not be run: {why}")]),
    }
}

/// What differs between the two runs.
fn differences(set: &Set, ours: &Formatted, theirs: &Formatted) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    if ours.geometry != theirs.geometry {
        let line = ours.geometry.lines().zip(theirs.geometry.lines()).find(|(ours, theirs)| ours != theirs);
        let (ours, theirs) = line.unwrap_or((&ours.geometry, &theirs.geometry));
        wrong.push(format!("geometry: ours '{ours}', theirs '{theirs}'"));
    }
    let out = FileSpec { role: 'o', size: 0, content: Content::Absent, loop_sector: None, stripe: None };
    for spec in set.files.iter().chain(set.writes_out.then_some(&out)) {
        if set.is_dry() && spec.content == Content::Absent {
            continue;
        }
        let (ours, theirs) = (ours.files.image(spec.role), theirs.files.image(spec.role));
        wrong.extend(compare::files(&ours, &theirs)?.map(|difference| format!("{}: {difference}", spec.role)));
    }
    Ok(wrong)
}

/// What `xfs_repair -n` says of the files of a set, if it is not content.
pub fn repair(set: &Set, files: &Files, reference: &Reference) -> Result<(), String> {
    // A filesystem of one group has no second superblock to compare with.
    let mut args: Vec<String> = ["-n", "-f", "-o", "force_geometry"].map(str::to_owned).into();
    for (role, option) in [('l', "-l"), ('r', "-r")] {
        if set.file(role).is_some() {
            args.extend([option.to_owned(), role.to_string()]);
        }
    }
    args.push("d".to_owned());
    let mut command = reference.tool("xfs_repair", args);
    let output = command.current_dir(files.folder()).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(format!("xfs_repair -n: {}", said(&output))) }
}

#[test]
fn every_byte_equals_mkfs_xfs() {
    let Some(reference) = reference() else { return };
    let places = Places::new();
    let sets: Vec<Set> = chosen(accepted(), SHARE).into_iter().filter(|set| !set.is_for_guest()).collect();
    each("mkfs matrix", &sets, |set| check(set, &places, reference));
}
