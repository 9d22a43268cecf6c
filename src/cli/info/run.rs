//! What xfskit-info does with a request.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use super::command::Request;
use super::{TOOL, words};
use crate::cli::output::{complain, say};
use crate::cli::source::{SourceArgs, of_system};
use crate::device::{Contents, Device, FileDevice, OpenFile, PartitionTable, Signature};
use crate::error::DeviceRole;
use crate::info::mounts::{self, Mount};
use crate::info::{Report, Subject, geometry_text, inspect};

/// Does what was asked for.
pub(super) fn run(request: &Request) -> anyhow::Result<ExitCode> {
    if request.version {
        say(&format!("{TOOL} version {}\n", env!("CARGO_PKG_VERSION")))?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = request.filesystem.as_deref().context("no filesystem was named")?;
    let report = describe(request, path)?;
    warn(request, &report);
    let text = if request.json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else if request.readable_by {
        words::readers_words(&report)
    } else if request.verbose {
        geometry_text(&report) + &words::details(&report)
    } else {
        geometry_text(&report)
    };
    say(&text)?;
    let damaged = !report.superblock.damage.is_empty();
    Ok(if damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The files behind a name.
struct Target {
    name: String,
    data: PathBuf,
    mount: Option<Mount>,
}

/// What `path` means: a part of a file; a mount point or a mounted device; a file, under the name of the loop device over it
/// if there is one, as xfs_info has it; a device.
fn resolve(request: &Request, path: &Path) -> anyhow::Result<Target> {
    let plain = |path: &Path| Target { name: path.display().to_string(), data: path.to_owned(), mount: None };
    if request.source.is_part() {
        return Ok(plain(path));
    }
    let over = mounts::loop_device_over(path).filter(|device| File::open(device).is_ok());
    let path = over.as_deref().unwrap_or(path);
    let table = mounts::mounted(request.table.as_deref()).map_err(of_system).with_context(|| match &request.table {
        Some(table) => format!("cannot read {}", table.display()),
        None => "cannot read the table of mounts".to_owned(),
    })?;
    Ok(match mounts::find(&table, path) {
        Some(mount) => {
            Target { name: mount.source.display().to_string(), data: mount.source.clone(), mount: Some(mount.clone()) }
        }
        None => plain(path),
    })
}

fn describe(request: &Request, path: &Path) -> anyhow::Result<Report> {
    let target = resolve(request, path)?;
    let part = if target.mount.is_some() { SourceArgs::default() } else { request.source };
    let source = part.open(&target.data, OpenFile::READ)?;
    let of_mount = |device: fn(&Mount) -> Option<PathBuf>| target.mount.as_ref().and_then(device);
    let log_path = request.log_device.clone().or_else(|| of_mount(|mount| mount.log.clone()));
    let realtime = request.realtime_device.clone().or_else(|| of_mount(|mount| mount.realtime.clone()));
    let log = match (&log_path, &target.mount) {
        (Some(path), None) => {
            let opened = FileDevice::open(path, OpenFile::READ.on(DeviceRole::Log));
            Some(opened.with_context(|| format!("cannot open {}", path.display()))?)
        }
        _ => None,
    };
    let subject = Subject {
        name: target.name.clone(),
        data: &*source.device,
        log: log.as_ref().map(|log| log as &dyn Device),
        log_name: log_path.map(|path| path.display().to_string()),
        realtime_name: realtime.map(|path| path.display().to_string()),
        mounted_on: target.mount.as_ref().map(|mount| mount.point.display().to_string()),
    };
    inspect(&subject).map_err(|error| match other_contents(&*source.device) {
        Some(words) => anyhow::anyhow!("{}: no XFS filesystem: {words}", target.name),
        None => anyhow::Error::new(error).context(target.name),
    })
}

/// What else than XFS a device that does not begin with a superblock holds, as far as it can be told.
fn other_contents(device: &dyn Device) -> Option<String> {
    let found = Signature::all_on(device).ok()?;
    let found = found.first().filter(|found| found.name != "xfs")?;
    Some(match found.contents {
        Contents::PartitionTable => {
            let numbers = PartitionTable::read(device).map(|table| table.partitions).unwrap_or_default();
            let numbers: Vec<String> = numbers.iter().map(|partition| partition.number.to_string()).collect();
            format!("it has a partition table ({}); --partition picks one of {}", found.name, numbers.join(", "))
        }
        Contents::Filesystem => format!("it holds {}", found.name),
    })
}

/// Says on the standard error what the geometry does not tell.
fn warn(request: &Request, report: &Report) {
    let name = &report.name;
    if request.log_device.is_some() && report.log.internal {
        complain(TOOL, &format!("{name}: has its log inside; what --log-device names is not its log"));
    }
    if request.realtime_device.is_some() && report.realtime.blocks == 0 {
        complain(TOOL, &format!("{name}: has no realtime section; what --realtime-device names is none of it"));
    }
    if !report.superblock.damage.is_empty() {
        let group = report.superblock.group;
        complain(TOOL, &format!("{name}: the primary superblock is damaged; this is from the copy in group {group}"));
        report.superblock.damage.iter().for_each(|damage| complain(TOOL, &format!("{name}: {damage}")));
    }
    if report.unknown_features.incompat != 0 {
        complain(TOOL, &format!("{name}: has features that are not known here; what is said of it may be wrong"));
    }
    if report.data.cut_short {
        let (has, needs) = (report.data.device_bytes, report.data.bytes);
        complain(TOOL, &format!("{name}: is cut short: it has {has} bytes, and the filesystem needs {needs}"));
    }
}
