//! What xfskit-mdrestore does.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};

use super::TOOL;
use super::command::Request;
use crate::cli::observer::Terminal;
use crate::cli::output::standard_output;
use crate::device::{Access, Device, FileDevice, FileKind, OpenFile};
use crate::error::{DeviceRole, Error};
use crate::metadump::{DumpInfo, DumpReader, Target, Targets};
use crate::report::{Observer, Unit};

pub(super) fn run(request: &Request) -> anyhow::Result<ExitCode> {
    let (input, total) = open_input(&request.source)?;
    let reader = DumpReader::open(input).with_context(|| request.source.display().to_string())?;
    if request.info {
        let mut output = standard_output();
        writeln!(output, "{}: {}", request.source.display(), describe(&reader.info()))?;
        output.flush()?;
    }
    let Some(target) = &request.target else { return Ok(ExitCode::SUCCESS) };
    let sizes = reader.sizes();
    if !reader.info().is_v2 && (request.log.is_some() || request.realtime.is_some()) {
        bail!("a dump of version 1 holds the data device alone");
    }
    let needed = |size: u64, has: bool| reader.info().is_v2 && size > 0 && has;
    if needed(sizes.log, true) && request.log.is_none() {
        bail!("the dump has an external log: -l must say where it goes");
    }
    if needed(sizes.realtime, reader.info().realtime) && request.realtime.is_none() {
        bail!("the dump has a realtime device: -r must say where it goes");
    }
    refuse_same(request)?;
    let data = open_target(target, DeviceRole::Data, sizes.data)?;
    let other = |path: &Option<std::path::PathBuf>, role, size| {
        path.as_deref().map(|path| open_target(path, role, size)).transpose()
    };
    let log = other(&request.log, DeviceRole::Log, sizes.log)?;
    let realtime = other(&request.realtime, DeviceRole::Realtime, sizes.realtime)?;
    let terminal = Terminal::new(TOOL, request.progress);
    terminal.begin("Restoring", total, Unit::Bytes);
    let targets = Targets {
        data: Some(as_target(&data)),
        log: log.as_ref().map(as_target),
        realtime: realtime.as_ref().map(as_target),
    };
    reader.restore(&targets, &terminal)?;
    terminal.end();
    Ok(ExitCode::SUCCESS)
}

/// The dump, and its length where that is known.
fn open_input(path: &Path) -> anyhow::Result<(Box<dyn Read + Send>, u64)> {
    if path == Path::new("-") {
        if io::stdin().is_terminal() {
            bail!("a dump is not read from a terminal");
        }
        return Ok((Box::new(io::stdin()), 0));
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let total = file.metadata().map_or(0, |metadata| metadata.len());
    Ok((Box::new(file), total))
}

/// A target that is the dump, or two that are one, would be lost.
fn refuse_same(request: &Request) -> anyhow::Result<()> {
    let targets = [request.target.as_ref(), request.log.as_ref(), request.realtime.as_ref()];
    let paths = [Some(&request.source)].into_iter().chain(targets).flatten();
    let paths: Vec<_> = paths.filter_map(|path| path.canonicalize().ok()).collect();
    for (index, path) in paths.iter().enumerate() {
        if paths[..index].contains(path) {
            bail!("{} is named twice", path.display());
        }
    }
    Ok(())
}

fn as_target(device: &FileDevice) -> Target<'_> {
    Target { device, is_new: device.kind() == FileKind::Regular }
}

/// A file of this size without contents, or a device that is large enough.
fn open_target(path: &Path, role: DeviceRole, size: u64) -> anyhow::Result<FileDevice> {
    let cannot = || format!("cannot restore to {}", path.display());
    let how = OpenFile { access: Access::Create, role };
    let device = FileDevice::open(path, how).map_err(of_system).with_context(cannot)?;
    if device.kind() == FileKind::Regular {
        let emptied = if device.is_empty() { Ok(()) } else { device.set_len(0) };
        emptied.and_then(|()| device.set_len(size)).map_err(of_system).with_context(cannot)?;
    } else if device.len() < size {
        bail!("{} has {} bytes, and the filesystem needs {size}", path.display(), device.len());
    }
    Ok(device)
}

/// The system's own error, without the place, which the path already is.
fn of_system(error: Error) -> anyhow::Error {
    match error {
        Error::Io { error, .. } => error.into(),
        other => other.into(),
    }
}

/// What the head of a dump says.
fn describe(info: &DumpInfo) -> String {
    if !info.has_flags {
        return "no informational flags present".to_owned();
    }
    let not = |flag: bool| if flag { "" } else { "not " };
    let (obscured, log) = (not(info.obscured), if info.dirty_log { "dirty" } else { "clean" });
    let blocks = if info.full_blocks { "full" } else { "zeroed" };
    if info.is_v2 {
        let (external, realtime) = (not(info.external_log), not(info.realtime));
        format!(
            "{obscured}obfuscated, {log} log, external log contents are {external}dumped, rt device contents are \
             {realtime}dumped, {blocks} metadata blocks,"
        )
    } else {
        format!("{obscured}obfuscated, {log} log, {blocks} metadata blocks")
    }
}
