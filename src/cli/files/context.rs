//! What all commands have in common: the image, the paths, the exit code.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ArgMatches;

use super::TOOL;
use crate::buffer::SearchEffort;
use crate::cli::image::{ImageArgs, Reading};
use crate::cli::observer::Terminal;
use crate::cli::output::complain;
use crate::files::{Reader, name};
use crate::image::Image;
use crate::journal::LogState;

/// Exit code where something was damaged.
const DAMAGED: u8 = 3;
/// Exit code where not everything could be kept.
const NOT_KEPT: u8 = 4;

/// Bytes that are searched for a copy of a superblock that is damaged.
const SEARCHED: u64 = 256 << 20;

/// An opened image, and who is told of what is damaged.
pub(super) struct Context {
    pub(super) image: Image,
    pub(super) terminal: Terminal,
    pub(super) json: bool,
}

impl Context {
    /// Opens the image that `arguments`, those of the command, name; `matches` are those before it.
    pub(super) fn open(matches: &ArgMatches, arguments: &ArgMatches) -> anyhow::Result<Self> {
        let path = arguments.get_one::<PathBuf>("image").context("no image was named")?;
        let mut devices = ImageArgs::from_matches(arguments);
        devices.log = devices.log.or_else(|| matches.get_one("l").cloned());
        devices.realtime = devices.realtime.or_else(|| matches.get_one("r").cloned());
        let opened = devices.open(path, Reading::Calls)?;
        let image = Image::open(opened, SearchEffort::Everywhere { limit: SEARCHED })
            .with_context(|| path.display().to_string())?;
        let damage = image.superblock().primary.damage();
        if !damage.is_empty() {
            let agno = image.superblock().agno;
            complain(
                TOOL,
                &format!("the primary superblock is damaged ({}); the copy in group {agno} is used", damage.join("; ")),
            );
        }
        say_journal(&image);
        Ok(Context { image, terminal: Terminal::new(TOOL, true), json: arguments.get_flag("json") })
    }

    /// Reads files of the image.
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader::new(&self.image, &self.terminal)
    }
}

/// What the journal holds is not in the image yet.
fn say_journal(image: &Image) {
    match image.journal() {
        Ok(scan) if scan.state == LogState::Dirty => {
            complain(TOOL, "the journal is dirty: files are shown as they are without what it holds");
        }
        Ok(_) => {}
        Err(error) => complain(TOOL, &format!("the journal cannot be read, and may be dirty: {error}")),
    }
}

/// The paths that were named; the root where none was.
pub(super) fn paths(arguments: &ArgMatches) -> anyhow::Result<Vec<Vec<u8>>> {
    let named = arguments.get_many::<OsString>("paths").into_iter().flatten();
    let paths: Vec<Vec<u8>> = named.map(path_of).collect::<anyhow::Result<_>>()?;
    Ok(if paths.is_empty() { vec![b"/".to_vec()] } else { paths })
}

/// The bytes that a path on the command line stands for.
pub(super) fn path_of(text: &OsString) -> anyhow::Result<Vec<u8>> {
    let wrong = || format!("{}: a backslash must be written as \\\\", text.to_string_lossy());
    name::unescape(text.as_bytes()).with_context(wrong)
}

/// The exit code of what `reader` has read.
pub(super) fn exit_code(reader: &Reader<'_>) -> ExitCode {
    if reader.problems() > 0 { ExitCode::from(DAMAGED) } else { ExitCode::SUCCESS }
}

/// The exit code of files that were copied, with all that they had or not.
pub(super) fn kept_code(reader: &Reader<'_>, all_kept: bool) -> ExitCode {
    if reader.problems() == 0 && !all_kept { ExitCode::from(NOT_KEPT) } else { exit_code(reader) }
}
