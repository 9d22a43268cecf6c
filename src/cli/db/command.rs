//! The command line of xfskit-db; help, man page and completions are made from it.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::cli::image::{ImageArgs, Letters};

/// The letters are those of xfs_db.
const LETTERS: Letters = Letters { log: 'l', realtime: Some('R') };

/// The command line.
pub fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).action(ArgAction::SetTrue).overrides_with(name).help(help)
    };
    let command = Command::new("xfskit-db")
        .about("Look into an XFS filesystem, as xfs_db does")
        .disable_version_flag(true)
        .arg(
            Arg::new("image")
                .value_name("IMAGE")
                .value_parser(value_parser!(PathBuf))
                .required_unless_present("version")
                .help("The file or block device with the filesystem"),
        )
        .arg(
            Arg::new("words")
                .value_name("COMMAND")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .help("A command to run, with its arguments; `print agf 3` goes to `agf 3` before it prints"),
        )
        .arg(
            Arg::new("command")
                .short('c')
                .long("command")
                .value_name("LINE")
                .action(ArgAction::Append)
                .conflicts_with("words")
                .help("Run this command; may be given several times"),
        )
        .arg(
            Arg::new("program")
                .short('p')
                .value_name("NAME")
                .overrides_with("program")
                .help("The name of the program in the prompt and in errors"),
        )
        .arg(flag("force", "Go on with a primary superblock that is no sound one, and look for no copy").short('F'))
        .arg(flag("json", "Print one JSON object for each command").long("json"))
        .arg(flag("file", "Taken for compatibility: files and devices are told apart").short('f'))
        .arg(flag("inactive", "Taken for compatibility: nothing is ever written").short('i'))
        .arg(flag("read-only", "Taken for compatibility: nothing is ever written").short('r'))
        .arg(flag("expert", "Taken for compatibility: there is no command that writes").short('x'))
        .arg(flag("version", "Print the version").short('V').long("version"));
    ImageArgs::augment(command, LETTERS)
}

/// What was asked for.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// The image; there is one unless the version is asked for.
    pub(super) image: Option<PathBuf>,
    /// Which devices.
    pub(super) devices: ImageArgs,
    /// A command as separate words.
    pub(super) words: Vec<String>,
    /// Commands as lines.
    pub(super) lines: Vec<String>,
    pub(super) program: Option<String>,
    pub(super) force: bool,
    pub(super) json: bool,
    pub(super) version: bool,
}

impl Request {
    pub(super) fn from_matches(matches: &ArgMatches) -> Self {
        let many = |name: &str| matches.get_many::<String>(name).unwrap_or_default().cloned().collect();
        Request {
            image: matches.get_one("image").cloned(),
            devices: ImageArgs::from_matches(matches),
            words: many("words"),
            lines: many("command"),
            program: matches.get_one("program").cloned(),
            force: matches.get_flag("force"),
            json: matches.get_flag("json"),
            version: matches.get_flag("version"),
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
    fn commands_come_as_lines_or_as_words() {
        let parse =
            |words: &[&str]| command().try_get_matches_from(words).map(|matches| Request::from_matches(&matches));
        assert!(parse(&["xfskit-db"]).is_err_and(|error| error.exit_code() == 2));
        assert!(parse(&["xfskit-db", "-c", "sb", "a", "p"]).is_err_and(|error| error.exit_code() == 2));
        let request = parse(&["xfskit-db", "-rfx", "-c", "sb 0", "-c", "p", "a"]).expect("correct usage");
        assert_eq!(request.lines, ["sb 0", "p"]);
        let request = parse(&["xfskit-db", "--json", "a", "freesp", "-s", "-a", "0"]).expect("correct usage");
        assert_eq!(request.words, ["freesp", "-s", "-a", "0"]);
        assert!(request.json);
    }
}
