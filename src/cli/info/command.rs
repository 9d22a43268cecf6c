//! The command line of xfskit-info; help, man page and completions are made from it.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

use crate::cli::source::SourceArgs;

/// The command line.
pub fn command() -> Command {
    // options may be repeated, as with getopt
    let path = |name: &'static str| Arg::new(name).value_parser(value_parser!(PathBuf));
    let flag = |name: &'static str| Arg::new(name).action(ArgAction::SetTrue).overrides_with(name);
    let command = Command::new("xfskit-info")
        .about("Describe an XFS filesystem in a file, on a device or mounted, as xfs_info does")
        .disable_version_flag(true)
        .arg(
            path("filesystem")
                .value_name("FILESYSTEM")
                .required_unless_present("version")
                .help("File, block device or mount point"),
        )
        .arg(
            path("table")
                .short('t')
                .overrides_with("table")
                .value_name("MTAB")
                .help("Look for mounted filesystems in this table, in the form of /proc/mounts"),
        )
        .arg(flag("version").short('V').long("version").help("Print the version"))
        .arg(flag("json").long("json").help("Print all that is known as JSON"))
        .arg(
            flag("readable-by")
                .long("readable-by")
                .conflicts_with("json")
                .help("Print which kernels and GRUBs can use the filesystem, and which features decide it"),
        )
        .arg(
            flag("verbose")
                .short('v')
                .long("verbose")
                .conflicts_with_all(["json", "readable-by"])
                .help("Also print label, UUIDs, features, state of the log, copies of the superblock, quota"),
        )
        .arg(path("log-device").long("log-device").value_name("FILE").help("The external log device"))
        .arg(
            path("realtime-device")
                .long("realtime-device")
                .value_name("FILE")
                .help("The realtime device; it is named, not read"),
        );
    SourceArgs::augment_args(command)
}

/// What was asked for.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// File, device or mount point; there is one unless the version is asked for.
    pub(super) filesystem: Option<PathBuf>,
    pub(super) table: Option<PathBuf>,
    pub(super) version: bool,
    pub(super) json: bool,
    pub(super) readable_by: bool,
    pub(super) verbose: bool,
    pub(super) log_device: Option<PathBuf>,
    pub(super) realtime_device: Option<PathBuf>,
    pub(super) source: SourceArgs,
}

impl Request {
    pub(super) fn from_matches(matches: &ArgMatches) -> Self {
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        Request {
            filesystem: path("filesystem"),
            table: path("table"),
            version: matches.get_flag("version"),
            json: matches.get_flag("json"),
            readable_by: matches.get_flag("readable-by"),
            verbose: matches.get_flag("verbose"),
            log_device: path("log-device"),
            realtime_device: path("realtime-device"),
            source: SourceArgs::from_arg_matches(matches).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn a_filesystem_or_the_version_must_be_asked_for() {
        let parse =
            |words: &[&str]| command().try_get_matches_from(words).map(|matches| Request::from_matches(&matches));
        assert!(parse(&["xfskit-info"]).is_err_and(|error| error.exit_code() == 2));
        assert!(parse(&["xfskit-info", "a", "b"]).is_err_and(|error| error.exit_code() == 2));
        assert!(parse(&["xfskit-info", "--json", "--verbose", "a"]).is_err_and(|error| error.exit_code() == 2));
        assert!(parse(&["xfskit-info", "-V"]).is_ok_and(|request| request.version));
        let request = parse(&["xfskit-info", "-t", "table", "--offset", "1m", "a"]).expect("correct usage");
        assert_eq!((request.source.offset, request.table), (Some(1 << 20), Some("table".into())));
    }
}
