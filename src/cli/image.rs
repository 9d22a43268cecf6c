//! The devices of a filesystem that a tool only reads, and the arguments that name them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::source::SourceArgs;
use crate::device::{Device, FileDevice, MappedDevice, OpenFile};
use crate::error::DeviceRole;
use crate::image::ImageDevices;

/// The letters of the options that name the other devices; tools of xfsprogs differ in them.
#[derive(Clone, Copy, Debug)]
pub struct Letters {
    /// Of the external log device.
    pub log: char,
    /// Of the realtime device; `None` where there is only the long form.
    pub realtime: Option<char>,
}

/// How a tool reads a regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// By pread: an error in the file never becomes more than an error.
    Calls,
    /// Through a mapping, which is fast in many small reads; for tools that lose nothing when the file is cut under them.
    Mapped,
}

/// Which devices, and which part of the data device.
#[derive(Clone, Debug, Default)]
pub struct ImageArgs {
    /// The external log device.
    pub log: Option<PathBuf>,
    /// The realtime device.
    pub realtime: Option<PathBuf>,
    /// The part of the data device.
    pub source: SourceArgs,
}

impl ImageArgs {
    /// Adds the options to `command`.
    pub fn augment(command: Command, letters: Letters) -> Command {
        let device = |name: &'static str, letter: Option<char>, help: &'static str| {
            let arg = Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf));
            let arg = arg.overrides_with(name).help(help);
            if let Some(letter) = letter { arg.short(letter) } else { arg }
        };
        let command = command.arg(device("log-device", Some(letters.log), "The external log device")).arg(device(
            "realtime-device",
            letters.realtime,
            "The realtime device",
        ));
        SourceArgs::augment_args(command)
    }

    /// What the command line says.
    pub fn from_matches(matches: &ArgMatches) -> Self {
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        ImageArgs {
            log: path("log-device"),
            realtime: path("realtime-device"),
            source: SourceArgs::from_arg_matches(matches).unwrap_or_default(),
        }
    }

    /// Opens the devices for reading alone.
    ///
    /// # Errors
    /// What the system says, with the path.
    pub fn open(&self, data: &Path, reading: Reading) -> anyhow::Result<ImageDevices> {
        let part = self.source.open_as(data, reading)?;
        let other = |path: &Option<PathBuf>, role: DeviceRole| match path {
            Some(path) => open_file(path, role, reading).map(Some),
            None => Ok(None),
        };
        Ok(ImageDevices {
            data: part,
            log: other(&self.log, DeviceRole::Log)?,
            realtime: other(&self.realtime, DeviceRole::Realtime)?,
        })
    }
}

impl ImageArgs {
    /// Opens the devices for change: refused while one is mounted or otherwise in use, and locked for others.
    ///
    /// # Errors
    /// What the system says, with the path.
    pub fn open_for_change(&self, data: &Path) -> anyhow::Result<ImageDevices> {
        let other = |path: &Option<PathBuf>, role: DeviceRole| -> anyhow::Result<Option<Arc<dyn Device>>> {
            let Some(path) = path else { return Ok(None) };
            let file = FileDevice::open(path, OpenFile::WRITE.on(role)).map_err(super::source::of_system);
            let file = file.with_context(|| format!("cannot open {}", path.display()))?;
            Ok(Some(Arc::new(file)))
        };
        Ok(ImageDevices {
            data: self.source.open(data, OpenFile::WRITE)?.device,
            log: other(&self.log, DeviceRole::Log)?,
            realtime: other(&self.realtime, DeviceRole::Realtime)?,
        })
    }
}

/// Opens a file or device for reading.
pub(super) fn open_file(path: &Path, role: DeviceRole, reading: Reading) -> anyhow::Result<Arc<dyn Device>> {
    let file = FileDevice::open(path, OpenFile::READ.on(role)).map_err(super::source::of_system);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    Ok(match reading {
        Reading::Calls => Arc::new(file),
        Reading::Mapped => Arc::new(MappedDevice::new(file).with_context(|| format!("cannot map {}", path.display()))?),
    })
}
