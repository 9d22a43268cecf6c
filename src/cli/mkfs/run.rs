//! What xfskit-mkfs does with a request.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::TOOL;
use super::devices::{Opened, check_contents, look};
use super::fill::Input;
use super::minimize::{Spooled, measure};
use super::request::Request;
use super::target::resolve_for;
use crate::cli::output::{complain, say};
use crate::device::random_uuid;
use crate::mkfs::devices::Devices;
use crate::mkfs::layout::{Layout, Timestamp};
use crate::mkfs::report::{self, Names};
use crate::mkfs::{self, Environment, config_file};
use crate::populate::{BuildOptions, Builder};

/// Every generation number of a filesystem that is to be the same each time; mkfs.xfs takes this one too.
const SEED: u32 = 0x5345_4544;

/// Allocation groups from which on a progress bar is shown; so many take a second or more.
const LONG_WORK: u32 = 10_000;

/// Does what was asked for.
pub(super) fn run(mut request: Request) -> anyhow::Result<()> {
    if request.version {
        return say(&format!("{TOOL} version {}\n", env!("CARGO_PKG_VERSION")));
    }
    let mut devices = look(&request)?;
    check_contents(&request, &devices)?;
    let environment = environment(&request);
    let mut spooled = None;
    if let Some((fill, headroom)) = request.fill.as_ref().and_then(|fill| Some((fill, fill.minimize?))) {
        let found = measure(&request, fill, headroom, &devices, &environment)?;
        request.size = Some(found.bytes);
        spooled = Some(found);
        devices = look(&request)?;
        check_contents(&request, &devices)?;
    }
    let resolved = resolve_for(request.target, &request.options, &devices, &environment)?;
    if !request.quiet {
        resolved.notes.iter().for_each(|note| complain(TOOL, note));
    }
    let layout = resolved.layout;
    if let Some(path) = &request.makecfg {
        return fs::write(path, config_file::text(&layout)).with_context(|| path.clone());
    }
    let files = match (&request.fill, spooled) {
        (_, Some(spooled)) => Files::Spooled(Box::new(spooled)),
        (Some(fill), None) if !request.dry_run => Files::Sources(Box::new(fill.open(&layout)?)),
        _ => Files::None,
    };
    // a device that is in use is refused before anything is said
    let was_there = Path::new(&devices.data.name).exists();
    let opened = if request.dry_run { None } else { Some(Opened::new(&request, &devices)?) };
    if !request.quiet || request.dry_run || request.json {
        say(&description(&request, &devices, &layout))?;
    }
    if let Some(opened) = opened {
        let made = make(&opened, &request, &devices, &layout, files);
        if made.is_err() && !was_there {
            // nothing of value is in a file that was not there; a failure to remove it changes nothing
            let _ = fs::remove_file(&devices.data.name);
        }
        made.with_context(|| format!("cannot format {}", devices.data.name))?;
    }
    Ok(())
}

/// What the filesystem is filled with.
enum Files {
    None,
    /// Sources that are read while it is made.
    Sources(Box<Input>),
    /// Files that were read, so that its size is known.
    Spooled(Box<Spooled>),
}

fn make(
    opened: &Opened,
    request: &Request,
    devices: &Devices,
    layout: &Layout,
    files: Files,
) -> crate::error::Result<()> {
    opened.prepare(request, devices, layout)?;
    let bar = progress_bar(layout.data.agcount);
    let data = opened.data();
    let unfinished = mkfs::prepare(layout, &**data, opened.log(), opened.realtime(), &mut || bar.inc(1))?;
    bar.finish_and_clear();
    let options = BuildOptions { seed: layout.seed, trial: false };
    let builder = || Builder::new(unfinished.superblock(), data, options);
    match files {
        Files::None => unfinished.finish(&**data).map(|_| ()),
        Files::Sources(input) => {
            let mut builder = builder()?;
            let content = input.read(devices, &mut builder)?;
            builder.finish(&content).map(|_| ())
        }
        Files::Spooled(spooled) => {
            let mut builder = builder()?;
            spooled.spool.copy_to(&mut builder)?;
            builder.finish(&spooled.content).map(|_| ())
        }
    }
}

/// A bar that counts allocation groups, on a terminal alone and where there are so many that it takes a while.
fn progress_bar(groups: u32) -> ProgressBar {
    if groups < LONG_WORK {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} groups, {eta}")
        .expect("invariant: the template is sound");
    ProgressBar::new(u64::from(groups)).with_style(style)
}

fn description(request: &Request, devices: &Devices, layout: &Layout) -> String {
    let names = Names {
        data: &devices.data.name,
        log: devices.log.as_ref().map(|log| log.name.as_str()),
        realtime: devices.realtime.as_ref().map(|realtime| realtime.name.as_str()),
    };
    if !request.json {
        return report::text(layout, names);
    }
    let mut value = report::json(layout, names);
    if request.dry_run {
        value["would_write"] = report::would_write(layout, names);
    }
    value["dry_run"] = json!(request.dry_run);
    format!("{value:#}\n")
}

/// What the surroundings say, by the variables that mkfs.xfs knows.
fn environment(request: &Request) -> Environment {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX));
    Environment {
        cpus,
        time: env::var_os("SOURCE_DATE_EPOCH").and_then(|text| epoch(&text)).unwrap_or_else(now),
        seed: (env::var("DETERMINISTIC_SEED").as_deref() == Ok("1")).then_some(SEED),
        uuid: random_uuid(),
        discard: request.discard,
        force: request.force,
        dry_run: request.dry_run,
        test_suite: ["TEST_DIR", "TEST_DEV", "QA_CHECK_FS"].iter().all(|name| env::var_os(name).is_some()),
    }
}

/// A time from SOURCE_DATE_EPOCH. As with mkfs.xfs, one that cannot be read is no error; but it is not passed over in silence.
fn epoch(text: &OsStr) -> Option<Timestamp> {
    let text = text.to_string_lossy();
    let sec = text.trim_start().parse().ok();
    if sec.is_none() && !text.is_empty() {
        complain(TOOL, &format!("SOURCE_DATE_EPOCH={text} is no number of seconds; the time of day is taken"));
    }
    sec.map(|sec| Timestamp { sec, nsec: 0 })
}

/// Now, to the microsecond, as mkfs.xfs has it.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { sec: i64::try_from(since.as_secs()).unwrap_or(0), nsec: since.subsec_micros() * 1000 }
}
