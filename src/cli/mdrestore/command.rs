//! The command line of xfskit-mdrestore.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

/// What the command line asks for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The dump; `-` is the standard input.
    pub source: PathBuf,
    /// The file or device that it is put onto.
    pub target: Option<PathBuf>,
    /// The file or device for an external log.
    pub log: Option<PathBuf>,
    /// The file or device for a realtime section.
    pub realtime: Option<PathBuf>,
    /// Whether progress is shown.
    pub progress: bool,
    /// Whether the head of the dump is shown.
    pub info: bool,
}

/// The command line.
pub fn command() -> Command {
    let path = |name: &'static str| Arg::new(name).value_parser(value_parser!(PathBuf));
    let flag = |name: &'static str, short: char, help: &'static str| {
        Arg::new(name).short(short).long(name).action(ArgAction::SetTrue).overrides_with(name).help(help)
    };
    Command::new(super::TOOL)
        .version(env!("CARGO_PKG_VERSION"))
        .disable_version_flag(true)
        .about("Put a metadata dump of an XFS filesystem back onto a file or device")
        .arg(flag("progress", 'g', "Show progress, with rate and time left"))
        .arg(flag("info", 'i', "Show what the head of the dump says; alone or before the restore"))
        .arg(
            path("log-device")
                .short('l')
                .long("log-device")
                .value_name("FILE")
                .overrides_with("log-device")
                .help("The file or device that an external log is put onto"),
        )
        .arg(
            path("realtime-device")
                .short('r')
                .long("realtime-device")
                .value_name("FILE")
                .overrides_with("realtime-device")
                .help("The file or device that the realtime section is put onto"),
        )
        .arg(Arg::new("version").short('V').long("version").action(ArgAction::Version).help("Print version"))
        .arg(path("source").required(true).value_name("SOURCE").help("The dump; - is the standard input"))
        .arg(
            path("target")
                .required_unless_present("info")
                .value_name("TARGET")
                .help("The file or device; what a file held before is gone"),
        )
}

impl Request {
    /// What the command line says.
    pub fn from_matches(matches: &ArgMatches) -> Self {
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        Request {
            source: path("source").unwrap_or_default(),
            target: path("target"),
            log: path("log-device"),
            realtime: path("realtime-device"),
            progress: matches.get_flag("progress"),
            info: matches.get_flag("info"),
        }
    }
}
