//! What mkfs.xfs refuses is refused, with an error that names the option, and nothing is written.

use crate::format::{Side, format};
use crate::place::Places;
use crate::reference::{Reference, reference};
use crate::sets::{Content, Set, chosen, refused};
use crate::tally::{Outcome, each};
use std::os::unix::process::ExitStatusExt;

/// One in so many sets belongs to the share that is always run; they are quick.
const SHARE: u64 = 1;

fn check(set: &Set, places: &Places, reference: &Reference) -> Outcome {
    let run = || -> Result<Vec<String>, String> {
        let folder = places.folder(set, reference)?;
        let theirs = format(set, Side::Theirs, &folder.path().join("theirs"), reference)?;
        if theirs.success().is_ok() {
            return Err("mkfs.xfs accepts it".to_owned());
        }
        let ours = format(set, Side::Ours, &folder.path().join("ours"), reference)?;
        let mut wrong = Vec::new();
        if ours.success().is_ok() {
            wrong.push("accepted".to_owned());
        }
        let stderr = String::from_utf8_lossy(&ours.output.stderr);
        if ours.output.status.signal().is_some() || stderr.contains("panicked") {
            wrong.push(format!("died: {}: {}", ours.output.status, stderr.trim()));
        }
        let name = set.names.as_deref().unwrap_or_default();
        if !stderr.contains(name) {
            wrong.push(format!("the message does not name '{name}': {}", stderr.trim().replace('\n', " / ")));
        }
        for spec in set.files.iter().filter(|spec| spec.content == Content::Sparse) {
            let written = std::fs::metadata(ours.files.image(spec.role)).map(|meta| meta.len() != spec.size);
            if written.map_err(|error| error.to_string())? {
                wrong.push(format!("{}: its length has changed", spec.role));
            }
        }
        Ok(wrong)
    };
    match run() {
        Ok(wrong) if wrong.is_empty() => Outcome::Passed,
        Ok(wrong) => Outcome::Failed(wrong),
        Err(why) => Outcome::Failed(vec![format!("could not be run: {why}")]),
    }
}

#[test]
fn what_mkfs_xfs_refuses_is_refused() {
    let Some(reference) = reference() else { return };
    let places = Places::new();
    let sets = chosen(refused(), SHARE);
    each("mkfs refusals", &sets, |set| check(set, &places, reference));
}
