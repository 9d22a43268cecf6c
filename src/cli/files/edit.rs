//! The commands that change files.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::{ArgMatches, Command};

use super::TOOL;
use super::context::path_of;
use super::edit_command::{Form, commands};
use super::parse::owner;
use crate::cli::image::ImageArgs;
use crate::cli::output::{complain, say};
use crate::device::{Device, OverlayDevice};
use crate::files::edit::{Change, Editor, ModeChange, TimeChange};
use crate::files::name::{escape, unescape};
use crate::files::time;
use crate::image::ImageDevices;
use crate::ondisk::timestamp::Timestamp;
use crate::transaction::StoreOptions;
use crate::volume::operation::Volume;

/// Longest script that is read, in bytes.
const LONGEST_SCRIPT: u64 = 64 << 20;

/// Whether a command changes files.
pub(super) fn is_edit(name: &str) -> bool {
    name == "script" || commands(Form::Line).iter().any(|command| command.get_name() == name)
}

/// Runs a command that changes files.
pub(super) fn run(name: &str, matches: &ArgMatches, arguments: &ArgMatches) -> anyhow::Result<ExitCode> {
    let path = arguments.get_one::<PathBuf>("image").context("no image was named")?;
    let mut source = ImageArgs::from_matches(arguments);
    source.log = source.log.or_else(|| matches.get_one("l").cloned());
    source.realtime = source.realtime.or_else(|| matches.get_one("r").cloned());
    let changes = match name {
        "script" => read_script(arguments)?,
        _ => vec![(0, String::new(), change_of(name, arguments)?)],
    };
    let devices = source.open_for_change(path)?;
    let script = name == "script";
    if script && arguments.get_flag("all-or-nothing") {
        carry_out(overlay(&devices), &changes, false).context("nothing was changed")?;
    }
    let verbose = script && arguments.get_flag("verbose");
    carry_out(devices, &changes, verbose).with_context(|| path.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// The same devices; what is written to them stays in memory.
fn overlay(devices: &ImageDevices) -> ImageDevices {
    let over = |device: &Arc<dyn Device>| Arc::new(OverlayDevice::new(device.clone())) as Arc<dyn Device>;
    ImageDevices {
        data: over(&devices.data),
        log: devices.log.as_ref().map(over),
        realtime: devices.realtime.as_ref().map(over),
    }
}

/// Carries out changes in order. If one fails, those before it stay, and the image is left clean.
fn carry_out(devices: ImageDevices, changes: &[(usize, String, Change)], verbose: bool) -> anyhow::Result<()> {
    let options = StoreOptions { now: now_of_environment(), ..StoreOptions::default() };
    let mut volume = Volume::open(devices, options)?;
    let mut result = Ok(());
    for (line, text, change) in changes {
        if let Err(failure) = Editor::new(&mut volume).apply(change) {
            let failure = anyhow::Error::msg(failure.to_string());
            result = Err(if *line > 0 { failure.context(format!("line {line}: {text}")) } else { failure });
            break;
        }
        if verbose {
            say(&format!("{text}\n"))?;
        }
    }
    match (result, volume.close()) {
        (Ok(()), closed) => Ok(closed?),
        (Err(failure), Ok(())) => Err(failure),
        (Err(failure), Err(error)) => {
            complain(TOOL, &error.to_string());
            Err(failure)
        }
    }
}

/// The time of SOURCE_DATE_EPOCH, if that is set.
fn now_of_environment() -> Option<Timestamp> {
    let seconds = std::env::var("SOURCE_DATE_EPOCH").ok()?.parse().ok()?;
    Some(Timestamp { seconds, nanoseconds: 0 })
}

/// The lines of a script: number, text and what it says.
fn read_script(arguments: &ArgMatches) -> anyhow::Result<Vec<(usize, String, Change)>> {
    let name = arguments.get_one::<OsString>("script").context("no script was named")?;
    let mut bytes = Vec::new();
    let read = if name == "-" {
        std::io::stdin().lock().take(LONGEST_SCRIPT + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(name).and_then(|file| file.take(LONGEST_SCRIPT + 1).read_to_end(&mut bytes))
    };
    read.with_context(|| name.to_string_lossy().into_owned())?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > LONGEST_SCRIPT {
        bail!("{}: a script of more than {LONGEST_SCRIPT} bytes", name.to_string_lossy());
    }
    let parser =
        Command::new("script").no_binary_name(true).subcommand_required(true).subcommands(commands(Form::Line));
    let mut changes = Vec::new();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if let Some(change) = parse_line(&parser, line).with_context(|| format!("line {number}"))? {
            changes.push((number, String::from_utf8_lossy(line).trim().to_owned(), change));
        }
    }
    Ok(changes)
}

/// What a line says; nothing if it is empty or begins with `#`.
fn parse_line(parser: &Command, line: &[u8]) -> anyhow::Result<Option<Change>> {
    let words: Vec<Vec<u8>> = shlex::bytes::Shlex::new(line).collect();
    if words.is_empty() {
        return Ok(None);
    }
    let balanced = shlex::bytes::split(line).is_some();
    if !balanced {
        bail!("a quotation mark is not closed");
    }
    let words = words.iter().map(|word| std::ffi::OsStr::from_bytes(word).to_owned());
    let matches = parser.clone().try_get_matches_from(words).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        anyhow::Error::msg(first)
    })?;
    let (name, arguments) = matches.subcommand().context("no command")?;
    change_of(name, arguments).map(Some)
}

/// What a command says.
fn change_of(name: &str, arguments: &ArgMatches) -> anyhow::Result<Change> {
    Ok(match name {
        "put" => {
            let mut sources = words(arguments);
            let target = path_of(&sources.pop().context("no target")?)?;
            let sources = sources.into_iter().map(PathBuf::from).collect();
            Change::Put { sources, target, recursive: arguments.get_flag("recursive") }
        }
        "mkdir" => {
            let permissions = match arguments.get_one::<OsString>("mode") {
                Some(text) => mode_of(text)?.apply(0o755, true),
                None => 0o755,
            };
            Change::Mkdir { paths: paths(arguments)?, parents: arguments.get_flag("parents"), permissions }
        }
        "rm" => Change::Remove {
            paths: paths(arguments)?,
            recursive: arguments.get_flag("recursive"),
            force: arguments.get_flag("force"),
        },
        "mv" => {
            let mut sources = paths(arguments)?;
            let target = sources.pop().context("no target")?;
            Change::Move { sources, target }
        }
        "ln" => {
            let [source, target] = two(arguments)?;
            Change::Link { source, target, symbolic: arguments.get_flag("symbolic") }
        }
        "chmod" => {
            let mode = mode_of(arguments.get_one::<OsString>("mode").context("no mode")?)?;
            Change::Chmod { mode, paths: paths(arguments)?, recursive: arguments.get_flag("recursive") }
        }
        "chown" => {
            let text = arguments.get_one::<String>("owner").context("no owner")?;
            let (uid, gid) = owner(text).with_context(|| format!("{text}: is no owner"))?;
            Change::Chown { uid, gid, paths: paths(arguments)?, recursive: arguments.get_flag("recursive") }
        }
        "touch" => Change::Touch {
            times: times_of(arguments)?,
            paths: paths(arguments)?,
            no_create: arguments.get_flag("no-create"),
        },
        "setfattr" => attribute_of(arguments)?,
        "truncate" => {
            Change::Truncate { size: *arguments.get_one("size").context("no size")?, paths: paths(arguments)? }
        }
        "punch" => Change::Punch {
            offset: *arguments.get_one("start").context("no start")?,
            len: *arguments.get_one("length").context("no length")?,
            path: paths(arguments)?.pop().context("no path")?,
        },
        "reflink" => {
            let [source, target] = two(arguments)?;
            Change::Reflink { source, target }
        }
        "label" => Change::Label(path_of(arguments.get_one("label").context("no label")?)?),
        _ => bail!("{name}: is no command that changes files"),
    })
}

fn words(arguments: &ArgMatches) -> Vec<OsString> {
    arguments.get_many::<OsString>("paths").into_iter().flatten().cloned().collect()
}

fn paths(arguments: &ArgMatches) -> anyhow::Result<Vec<Vec<u8>>> {
    words(arguments).iter().map(path_of).collect()
}

fn two(arguments: &ArgMatches) -> anyhow::Result<[Vec<u8>; 2]> {
    paths(arguments)?.try_into().map_err(|_| anyhow::Error::msg("two paths are needed"))
}

fn mode_of(text: &OsString) -> anyhow::Result<ModeChange> {
    let wrong = || format!("{}: is no access mode", text.to_string_lossy());
    text.to_str().and_then(ModeChange::parse).with_context(wrong)
}

fn times_of(arguments: &ArgMatches) -> anyhow::Result<TimeChange> {
    let text = arguments.get_one::<String>("date");
    let time = text.map(|text| time::parse(text).with_context(|| format!("{text}: is no time"))).transpose()?;
    let (access, modification) = (arguments.get_flag("access"), arguments.get_flag("modification"));
    let both = access == modification;
    Ok(TimeChange { time, access: access || both, modification: modification || both })
}

fn attribute_of(arguments: &ArgMatches) -> anyhow::Result<Change> {
    let paths = paths(arguments)?;
    if let Some(name) = arguments.get_one::<OsString>("remove") {
        return Ok(Change::SetAttribute { name: path_of(name)?, value: None, paths });
    }
    let name = path_of(arguments.get_one::<OsString>("name").context("no attribute was named")?)?;
    let value = match arguments.get_one::<OsString>("value") {
        Some(text) => value_of(text.as_bytes())?,
        None => Vec::new(),
    };
    Ok(Change::SetAttribute { name, value: Some(value), paths })
}

/// A value: hexadecimal digits behind `0x`, or text in the form in which values are shown.
fn value_of(text: &[u8]) -> anyhow::Result<Vec<u8>> {
    let wrong = || format!("{}: is no value", escape(text));
    let Some(digits) = text.strip_prefix(b"0x") else { return unescape(text).with_context(wrong) };
    let digits = std::str::from_utf8(digits).with_context(wrong)?;
    if !digits.len().is_multiple_of(2) {
        bail!("{}: half a byte is left", escape(text));
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2).unwrap_or_default(), 16).with_context(wrong))
        .collect()
}
