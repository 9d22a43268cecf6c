//! The command line of xfskit-logprint; help, man page and completions are made from it.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};

use crate::cli::image::{ImageArgs, Letters};
use crate::logprint::{Detail, Request, View};

/// Options that say how the journal is looked at, of which there can be one, with the view.
const VIEWS: &[(&str, View)] = &[
    ("transactions", View::Checkpoints),
    ("dump", View::Headers),
    ("data", View::Blocks),
    ("intents", View::Intents),
    ("summary", View::Summary),
];

/// The command line.
pub fn command() -> Command {
    // options may be repeated, as with getopt
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).overrides_with(name);
    let letter = |name: &'static str, letter: char| flag(name).short(letter);
    let views = VIEWS.iter().map(|(name, _)| *name).chain(["copy"]);
    let command = Command::new("xfskit-logprint")
        .about("Show the journal of an XFS filesystem: its records, checkpoints and items, and what a replay would do")
        .disable_version_flag(true)
        .arg(
            Arg::new("filesystem")
                .value_name("FILE")
                .required_unless_present("version")
                .value_parser(value_parser!(PathBuf))
                .help("Image or block device with the filesystem; with -f, a copy of a log"),
        )
        .arg(
            letter("transactions", 't').help("Show checkpoints and their items, from tail to head, instead of records"),
        )
        .arg(flag("intents").help("Show each intent, and whether a checkpoint finished it"))
        .arg(
            flag("summary")
                .help("Show sums: by type, by checkpoint, what whiteouts would have saved, what a replay would touch"),
        )
        .arg(letter("dump", 'd').help("Show where records begin and where cycles change, block by block"))
        .arg(letter("data", 'D').help("Show the bytes of all blocks, and decode nothing"))
        .arg(
            Arg::new("copy")
                .short('C')
                .long("copy")
                .value_name("COPY")
                .value_parser(value_parser!(PathBuf))
                .overrides_with("copy")
                .conflicts_with("json")
                .help("Copy the log to a file, which must not exist, and show nothing"),
        )
        .group(ArgGroup::new("view").args(views).multiple(false))
        .group(ArgGroup::new("walks").args(["transactions", "intents", "summary"]))
        .arg(letter("buffers", 'b').help("Show what buffers hold, by fields"))
        .arg(letter("inodes", 'i').help("Show inodes by fields, and their forks"))
        .arg(letter("quotas", 'q').help("Show dquots by fields"))
        .arg(letter("bytes", 'o').help("Show the bytes of buffers and forks, too"))
        .arg(letter("no-contents", 'n').help("Do not look into records and checkpoints"))
        .arg(letter("saved-words", 'v').help("Show the words that cycles took the place of, which record headers keep"))
        .arg(
            Arg::new("start")
                .short('s')
                .long("start")
                .value_name("BLOCK")
                .value_parser(value_parser!(u32))
                .overrides_with("start")
                .help("Begin at this block of 512 bytes of the log"),
        )
        .arg(
            flag("all")
                .requires("walks")
                .help("With -t, --intents and --summary: begin at the oldest record, not at the tail"),
        )
        .arg(
            letter("exit-on-error", 'e')
                .overrides_with("continue")
                .help("End at the first thing that cannot be understood"),
        )
        .arg(
            letter("continue", 'c')
                .overrides_with("exit-on-error")
                .help("Go on behind what cannot be understood; the default"),
        )
        .arg(
            letter("log-file", 'f')
                .conflicts_with_all(["log-device", "offset", "partition"])
                .help("FILE is a copy of a log, as -C makes it"),
        )
        .arg(flag("json").help("Write JSON"))
        .arg(letter("version", 'V').help("Print the version"));
    ImageArgs::augment(command, Letters { log: 'l', realtime: Some('r') })
}

/// What was asked for.
#[derive(Clone, Debug)]
pub(super) struct Arguments {
    /// There is one unless the version is asked for.
    pub(super) filesystem: Option<PathBuf>,
    pub(super) copy: Option<PathBuf>,
    pub(super) log_file: bool,
    pub(super) json: bool,
    pub(super) version: bool,
    pub(super) image: ImageArgs,
    pub(super) request: Request,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Self {
        let on = |name: &str| matches.get_flag(name);
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        let view = VIEWS.iter().find(|(name, _)| on(name)).map(|(_, view)| *view).unwrap_or_default();
        let chosen = Detail { buffers: on("buffers"), inodes: on("inodes"), quotas: on("quotas"), bytes: false };
        // records are shown in full unless something is picked; checkpoints only as far as it is picked
        let detail = if view == View::Records && chosen == Detail::default() { Detail::FIELDS } else { chosen };
        let request = Request {
            view,
            detail: Detail { bytes: on("bytes"), ..detail },
            start: matches.get_one("start").copied(),
            all: on("all"),
            stop: on("exit-on-error"),
            saved_words: on("saved-words"),
            headers_only: on("no-contents"),
        };
        Arguments {
            filesystem: path("filesystem"),
            copy: path("copy"),
            log_file: on("log-file"),
            json: on("json"),
            version: on("version"),
            image: ImageArgs::from_matches(matches),
            request,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Arguments, clap::Error> {
        let words = ["xfskit-logprint"].iter().chain(words);
        command().try_get_matches_from(words).map(|matches| Arguments::from_matches(&matches))
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn one_view_and_one_file() {
        for wrong in [&["-t", "-d", "a"][..], &["--summary", "-C", "b", "a"], &[], &["a", "b"], &["-f", "-l", "b", "a"]]
        {
            assert!(parse(wrong).is_err_and(|error| error.exit_code() == 2), "{wrong:?}");
        }
        assert_eq!(parse(&["-t", "-t", "a"]).expect("correct usage").request.view, View::Checkpoints);
        assert!(parse(&["-V"]).expect("correct usage").version);
    }

    #[test]
    fn records_are_shown_in_full_unless_something_is_picked() {
        let detail = |words: &[&str]| parse(words).expect("correct usage").request.detail;
        assert_eq!(detail(&["a"]), Detail::FIELDS);
        assert_eq!(detail(&["-o", "a"]), Detail { bytes: true, ..Detail::FIELDS });
        assert_eq!(detail(&["-i", "a"]), Detail { inodes: true, ..Detail::default() });
        assert_eq!(detail(&["-t", "a"]), Detail::default());
        assert_eq!(detail(&["-tbq", "a"]), Detail { buffers: true, quotas: true, ..Detail::default() });
    }

    #[test]
    fn the_last_of_contrary_options_counts() {
        assert!(parse(&["-c", "-e", "a"]).expect("correct usage").request.stop);
        assert!(!parse(&["-e", "-c", "a"]).expect("correct usage").request.stop);
    }
}
