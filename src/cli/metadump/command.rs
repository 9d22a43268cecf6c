//! The command line of xfskit-metadump.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::cli::image::{ImageArgs, Letters};
use crate::metadump::{DumpOptions, Format};
use crate::ondisk::extent::MAX_BLOCKCOUNT;

/// Letters of the options that name the other devices, as of xfs_metadump.
const LETTERS: Letters = Letters { log: 'l', realtime: Some('r') };

/// What the command line asks for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The image or device.
    pub source: PathBuf,
    /// Where the dump goes; `-` is the standard output.
    pub target: PathBuf,
    /// Which part of the source, and the other devices.
    pub image: ImageArgs,
    /// What goes into the dump.
    pub options: DumpOptions,
    /// Whether progress is shown.
    pub progress: bool,
    /// Whether each damaged structure is told of.
    pub warnings: bool,
    /// Whether a superblock is looked for everywhere.
    pub force: bool,
}

fn flag(name: &'static str, short: Option<char>, help: &'static str) -> Arg {
    let arg = Arg::new(name).long(name).action(ArgAction::SetTrue).overrides_with(name).help(help);
    if let Some(short) = short { arg.short(short) } else { arg }
}

/// The command line.
pub fn command() -> Command {
    let command = Command::new(super::TOOL)
        .version(env!("CARGO_PKG_VERSION"))
        .disable_version_flag(true)
        .about("Write the metadata of an XFS filesystem to a file, with names replaced")
        .arg(flag("full", Some('a'), "Copy metadata blocks whole, with what lies unused in them"))
        .arg(flag("stop", Some('e'), "Stop at the first block that cannot be read; else it is left out"))
        .arg(flag("file", Some('f'), "The source is a regular file; accepted, since this is seen by itself"))
        .arg(flag("force", Some('F'), "Look for a copy of the superblock if the primary one is damaged"))
        .arg(flag("progress", Some('g'), "Show progress, with rate and time left"))
        .arg(
            Arg::new("max-extent")
                .short('m')
                .long("max-extent")
                .value_name("BLOCKS")
                .value_parser(value_parser!(u32).range(1..))
                .overrides_with("max-extent")
                .help("Take longer extents of metadata for damage"),
        )
        .arg(flag("plain", Some('o'), "Keep names, attribute values and targets of symbolic links"))
        .arg(
            Arg::new("format")
                .short('v')
                .long("format")
                .value_name("VERSION")
                .value_parser(["1", "2"])
                .overrides_with("format")
                .help("Version of the format; 2 holds external logs and realtime devices"),
        )
        .arg(flag("warn", Some('w'), "Tell of each damaged structure; else only how many there were"))
        .arg(flag("zstd", None, "Compress the dump with zstd; xfskit-mdrestore reads it as it is"))
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_name("NUMBER")
                .value_parser(value_parser!(u64))
                .overrides_with("seed")
                .help(
                    "Replace names by this number, for dumps that are the same each time: who knows it can undo that",
                ),
        )
        .arg(Arg::new("version").short('V').long("version").action(ArgAction::Version).help("Print version"));
    ImageArgs::augment(command, LETTERS)
        .arg(
            Arg::new("source")
                .required(true)
                .value_name("SOURCE")
                .value_parser(value_parser!(PathBuf))
                .help("The image or device"),
        )
        .arg(
            Arg::new("target")
                .default_value("-")
                .hide_default_value(true)
                .value_name("TARGET")
                .value_parser(value_parser!(PathBuf))
                .help("The file that becomes the dump; - or nothing is the standard output"),
        )
}

impl Request {
    /// What the command line says.
    pub fn from_matches(matches: &ArgMatches) -> Self {
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned().unwrap_or_default();
        let format = match matches.get_one::<String>("format").map(String::as_str) {
            Some("1") => Some(Format::V1),
            Some(_) => Some(Format::V2),
            None => None,
        };
        let options = DumpOptions {
            format,
            obscure: !matches.get_flag("plain"),
            zero_stale: !matches.get_flag("full"),
            stop_on_error: matches.get_flag("stop"),
            compress: matches.get_flag("zstd"),
            max_extent: matches.get_one("max-extent").copied().unwrap_or(MAX_BLOCKCOUNT),
            seed: matches.get_one("seed").copied(),
        };
        Request {
            source: path("source"),
            target: path("target"),
            image: ImageArgs::from_matches(matches),
            options,
            progress: matches.get_flag("progress"),
            warnings: matches.get_flag("warn"),
            force: matches.get_flag("force"),
        }
    }
}
