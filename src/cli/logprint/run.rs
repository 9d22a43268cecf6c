//! What xfskit-logprint does with its arguments.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use super::TOOL;
use super::command::Arguments;
use crate::buffer::SearchEffort;
use crate::cli::image::{Reading, open_file};
use crate::cli::observer::Terminal;
use crate::cli::output::{complain, standard_output};
use crate::error::DeviceRole;
use crate::image::Image;
use crate::journal::LogArea;
use crate::logprint::{Journal, Output, copy, print};

/// Does what was asked for.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.version {
        let mut out = standard_output();
        writeln!(out, "{TOOL} version {}", env!("CARGO_PKG_VERSION"))?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = arguments.filesystem.as_deref().context("no filesystem was named")?;
    let name = || path.display().to_string();
    if arguments.log_file {
        let device = open_file(path, DeviceRole::Log, Reading::Calls)?;
        let area = LogArea::of_copy(&*device).with_context(name)?;
        return show(arguments, &Journal::new(area, None, DeviceRole::Log));
    }
    let devices = arguments.image.open(path, Reading::Calls)?;
    let image = Image::open(devices, SearchEffort::Guesses).with_context(name)?;
    for damage in image.superblock().primary.damage() {
        complain(TOOL, &format!("{}: {damage}; a copy of the superblock is used", path.display()));
    }
    if image.geometry().log.start.is_some() && arguments.image.log.is_some() {
        complain(TOOL, &format!("{}: has its log inside; what -l names is not its log", path.display()));
    }
    let device = image.log().with_context(name)?;
    let area = LogArea::new(device, image.geometry()).with_context(name)?;
    show(arguments, &Journal::new(area, Some(image.geometry()), device.role()).with_data(image.data()))
}

fn show(arguments: &Arguments, journal: &Journal<'_>) -> anyhow::Result<ExitCode> {
    if let Some(path) = &arguments.copy {
        return copy_to(path, journal);
    }
    let mut out = standard_output();
    let outcome = print(journal, &arguments.request, &mut Output::new(&mut out, arguments.json))?;
    out.flush()?;
    if outcome.faults > 0 {
        let end = if outcome.stopped { "; the rest is not shown" } else { "" };
        complain(TOOL, &format!("{} faults in the part of the journal that a replay needs{end}", outcome.faults));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn copy_to(path: &Path, journal: &Journal<'_>) -> anyhow::Result<ExitCode> {
    let name = || path.display().to_string();
    let observer = Terminal::new(TOOL, true);
    let mut file = BufWriter::new(File::create_new(path).with_context(name)?);
    copy(journal, &mut file, &observer).with_context(name)?;
    file.flush().with_context(name)?;
    Ok(if observer.warnings() > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
