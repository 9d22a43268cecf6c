//! Formats the files of a set with one or the other mkfs.

use crate::place::Files;
use crate::reference::{Reference, mkfs, said};
use crate::sets::Set;
use std::path::Path;
use std::process::{Command, Output};

/// Which of the two formats.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The binary under test.
    Ours,
    /// mkfs.xfs of the reference.
    Theirs,
}

/// A finished run.
#[derive(Debug)]
pub struct Formatted {
    /// The files, without loop devices in front of them.
    pub files: Files,
    /// What the tool said.
    pub output: Output,
    /// The geometry that it printed.
    pub geometry: String,
}

impl Formatted {
    /// Whether the tool has accepted the arguments, or what it said.
    pub fn success(&self) -> Result<(), String> {
        if self.output.status.success() { Ok(()) } else { Err(said(&self.output)) }
    }
}

/// Makes the files of `set` in `folder` and formats them.
pub fn format(set: &Set, side: Side, folder: &Path, reference: &Reference) -> Result<Formatted, String> {
    let mut files = Files::make(set, folder, reference)?;
    let output = command(set, side, &files, reference).output().map_err(|error| format!("{side:?}: {error}"))?;
    let geometry = files.plain(&geometry(&String::from_utf8_lossy(&output.stdout)));
    files.detach()?;
    Ok(Formatted { files, output, geometry })
}

/// The command that formats `files`.
fn command(set: &Set, side: Side, files: &Files, reference: &Reference) -> Command {
    let args = set.arguments(|role| match role {
        'c' => set.conf.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
        'o' => "o".to_owned(),
        role => files.name(role),
    });
    let mut command = match side {
        Side::Ours => mkfs(args),
        Side::Theirs => reference.tool("mkfs.xfs", args),
    };
    if set.fstests {
        command.envs([("TEST_DIR", "/test"), ("TEST_DEV", "/dev/test"), ("QA_CHECK_FS", "1")]);
    }
    command.current_dir(files.folder());
    command
}

/// The geometry among what a tool printed; warnings may stand in front of it, and news of discarded blocks behind it.
fn geometry(stdout: &str) -> String {
    let lines = stdout.lines().skip_while(|line| !line.starts_with("meta-data="));
    lines.filter(|line| !line.starts_with("Discarding")).collect::<Vec<_>>().join("\n")
}
