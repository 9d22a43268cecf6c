//! From arguments to a request: options from three sources, and what is to be done with them.

use std::fs::File;
use std::io::Read;

use clap::{ArgMatches, FromArgMatches};

use super::command::id;
use super::fill::Fill;
use crate::cli::source::SourceArgs;
use crate::error::{Error, Result};
use crate::mkfs::Options;
use crate::mkfs::config_file;
use crate::mkfs::numbers::{self, Units};
use crate::mkfs::suboptions::{Group, Key};
use crate::readers::Target;

/// The longest configuration file that is read, in bytes.
const LONGEST_FILE: u64 = 1 << 20;

/// What the user asked for.
#[derive(Debug)]
pub(super) struct Request {
    pub options: Options,
    /// Write a configuration file to this path, and make no filesystem.
    pub makecfg: Option<String>,
    pub force: bool,
    pub discard: bool,
    pub dry_run: bool,
    pub quiet: bool,
    pub json: bool,
    pub version: bool,
    /// Length that the image file is to have, in bytes.
    pub size: Option<u64>,
    pub target: Option<Target>,
    pub source: SourceArgs,
    /// What the filesystem is to hold.
    pub fill: Option<Fill>,
}

impl Request {
    /// Reads the arguments and the configuration files that they name.
    ///
    /// # Errors
    /// `Usage`.
    pub fn from_matches(matches: &ArgMatches) -> Result<Self> {
        let set = |name| matches.get_flag(name);
        let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
        let version = set("version");
        let mut options = if version { Options::default() } else { options(matches)? };
        let fill = Fill::from_matches(matches, &options)?;
        if fill.as_ref().is_some_and(|fill| fill.minimize.is_some()) {
            options.unsupported = true;
            options.smallest_log = true;
        }
        let source = SourceArgs::from_arg_matches(matches).map_err(|error| Error::Usage(error.to_string()))?;
        Ok(Request {
            makecfg: options.text(Key::ConfigMakecfg).map(str::to_string),
            options,
            force: set("force"),
            discard: !set("keep"),
            dry_run: set("no-action") || set("dry-run"),
            quiet: set("quiet"),
            json: set("json"),
            version,
            size: text("size").map(image_size).transpose()?,
            target: text("target").map(target).transpose()?,
            source,
            fill,
        })
    }
}

fn target(text: &str) -> Result<Target> {
    text.parse().map_err(|error| match error {
        Error::Usage(what) if !what.starts_with("--target") => Error::Usage(format!("--target {text}: {what}")),
        other => other,
    })
}

fn image_size(text: &str) -> Result<u64> {
    let bytes = numbers::size(text, Units::default()).and_then(|bytes| u64::try_from(bytes).ok());
    bytes.filter(|bytes| *bytes >= 16 << 20).ok_or_else(|| {
        Error::Usage(format!("--size={text}: allowed: 16m or more, with a suffix of k, m, g, t, p or e"))
    })
}

/// Defaults first, then the command line, then the file of options.
fn options(matches: &ArgMatches) -> Result<Options> {
    let mut options = Options::default();
    for (_, list) in lists(matches, Group::Config) {
        options.add_list(Group::Config, list)?;
    }
    if let Some(path) = options.text(Key::ConfigDefaults).map(str::to_string) {
        config_file::read(&path, &contents("-c defaults", &path)?, &mut options)?;
        options.become_defaults();
    }
    let mut ordered: Vec<(usize, Group, &str)> = Vec::new();
    for group in Group::ALL.into_iter().filter(|group| *group != Group::Config) {
        ordered.extend(lists(matches, group).map(|(index, list)| (index, group, list)));
    }
    ordered.sort_by_key(|(index, ..)| *index);
    for (_, group, list) in ordered {
        options.add_list(group, list)?;
    }
    let mut devices = matches.get_many::<String>("device").into_iter().flatten();
    if let Some(device) = devices.next() {
        if let Some(other) = devices.next() {
            return Err(Error::Usage(format!("{other}: only one device can be formatted")));
        }
        options.add(Key::DataName.suboption(), Some(device))?;
    }
    if let Some(path) = options.text(Key::ConfigOptions).map(str::to_string) {
        config_file::read(&path, &contents("-c options", &path)?, &mut options)?;
    }
    if let Some(label) = matches.get_one::<String>("label") {
        let room = options
            .label
            .get_mut(..label.len())
            .ok_or_else(|| Error::Usage(format!("-L {label}: {} bytes; allowed: up to 12 bytes", label.len())))?;
        room.copy_from_slice(label.as_bytes());
    }
    options.unsupported = matches.get_flag("unsupported");
    Ok(options)
}

/// The lists of one letter, with their places on the command line.
fn lists(matches: &ArgMatches, group: Group) -> impl Iterator<Item = (usize, &str)> {
    let values = matches.get_many::<String>(id(group)).into_iter().flatten().map(String::as_str);
    matches.indices_of(id(group)).into_iter().flatten().zip(values)
}

fn contents(option: &str, path: &str) -> Result<String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST_FILE + 1).read_to_end(&mut bytes));
    read.map_err(|error| Error::Usage(format!("{option}={path}: cannot be read: {error}")))?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(Error::Usage(format!("{option}={path}: longer than {LONGEST_FILE} bytes, which are allowed")));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
