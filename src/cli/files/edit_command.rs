//! The command line of the commands that change files; lines of scripts have the same form, without the image.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command, value_parser};

use super::command::{flag, of_image};

/// Which form a command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// On the command line: the image comes first.
    Image,
    /// In a script.
    Line,
}

/// The commands that change files.
pub(super) fn commands(form: Form) -> Vec<Command> {
    let new = |name: &'static str, about: &'static str| match form {
        Form::Image => of_image(name, about),
        Form::Line => Command::new(name).about(about),
    };
    vec![
        put(new("put", "Copy files into the image, with owners, modes, times, attributes, holes and hard links")),
        mkdir(new("mkdir", "Make directories")),
        rm(new("rm", "Remove files")),
        new("mv", "Move files to a new name, or into a directory").arg(some("SOURCE... TARGET", 2)),
        ln(new("ln", "Add a link to a file")),
        chmod(new("chmod", "Change access modes")),
        chown(new("chown", "Change owners")),
        touch(new("touch", "Set times of files, and make those that are not there")),
        setfattr(new("setfattr", "Set or remove an extended attribute")),
        truncate(new("truncate", "Cut files, or extend them by a hole")),
        punch(new("punch", "Make a hole in a file")),
        new("reflink", "Let a file share the blocks of another").arg(some("SOURCE TARGET", 2).num_args(2)),
        new("label", "Set the label of the filesystem")
            .arg(text("label", "LABEL").required(true).help("Up to 12 bytes")),
    ]
}

/// A script of such commands.
pub(super) fn script() -> Command {
    of_image("script", "Carry out many changes, one a line")
        .arg(
            Arg::new("script")
                .value_name("FILE")
                .required(true)
                .value_parser(value_parser!(OsString))
                .help("Commands of this tool that change files, without the image; - is the standard input"),
        )
        .arg(
            flag("all-or-nothing")
                .long("all-or-nothing")
                .help("Carry them out in memory first, so that a change that fails leaves the image as it was"),
        )
        .arg(flag("verbose").short('v').long("verbose").help("Print each line that is carried out"))
}

/// Paths, at least `least` of them.
fn some(value: &'static str, least: usize) -> Arg {
    let arg = Arg::new("paths").value_name(value).value_parser(value_parser!(OsString)).action(ArgAction::Append);
    arg.required(true).num_args(least..).help("Paths, in the image escaped as names are shown")
}

fn text(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name).value_name(value).value_parser(value_parser!(OsString))
}

fn recursive(command: Command) -> Command {
    command.arg(flag("recursive").short('R').long("recursive").help("With all that directories hold"))
}

fn put(command: Command) -> Command {
    command
        .arg(
            some("SOURCE... TARGET", 2)
                .help("Files of this machine; then a directory of the image, or a new name in it"),
        )
        .arg(flag("recursive").short('r').long("recursive").help("Copy directories with all that they hold"))
}

fn mkdir(command: Command) -> Command {
    command
        .arg(some("PATH", 1))
        .arg(flag("parents").short('p').long("parents").help("Make those above, too; what is there is no error"))
        .arg(text("mode", "MODE").short('m').long("mode").help("Access mode, in octal: 755 if it is not given"))
}

fn rm(command: Command) -> Command {
    command
        .arg(some("PATH", 1))
        .arg(flag("recursive").short('r').long("recursive").help("Remove directories with all that they hold"))
        .arg(flag("force").short('f').long("force").help("What is not there is no error"))
}

fn ln(command: Command) -> Command {
    let paths = some("SOURCE TARGET", 2).num_args(2);
    command
        .arg(paths.help("The file, or what the symbolic link says; then the new name, or a directory"))
        .arg(flag("symbolic").short('s').long("symbolic").help("Make a symbolic link"))
}

fn chmod(command: Command) -> Command {
    let mode = text("mode", "MODE").required(true).allow_hyphen_values(true);
    recursive(command.arg(mode.help("Octal, or as u+rw,go-w")).arg(some("PATH", 1)))
}

fn chown(command: Command) -> Command {
    let owner = Arg::new("owner").value_name("[UID][:GID]").required(true);
    recursive(command.arg(owner.help("User, group or both, as numbers")).arg(some("PATH", 1)))
}

fn touch(command: Command) -> Command {
    let time = Arg::new("date").short('d').long("date").value_name("TIME");
    command
        .arg(some("PATH", 1))
        .arg(flag("access").short('a').help("The time of last access alone"))
        .arg(flag("modification").short('m').help("The time of last change alone"))
        .arg(flag("no-create").short('c').long("no-create").help("Make no files"))
        .arg(time.help("This time, not now: @SECONDS or YYYY-MM-DD[ HH:MM[:SS]], in UTC"))
}

fn setfattr(command: Command) -> Command {
    let named =
        |name: &'static str, letter: char, help: &'static str| text(name, "NAME").short(letter).long(name).help(help);
    command
        .arg(named("name", 'n', "Set this attribute; with its namespace").required_unless_present("remove"))
        .arg(
            text("value", "VALUE")
                .short('v')
                .long("value")
                .requires("name")
                .help("Its value, escaped as values are shown, or 0x and hexadecimal digits; empty if it is not given"),
        )
        .arg(named("remove", 'x', "Remove this attribute").conflicts_with("name"))
        .arg(some("PATH", 1))
}

fn size(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name).value_name(value).value_parser(crate::cli::source::parse_bytes).required(true)
}

fn truncate(command: Command) -> Command {
    let bytes = size("size", "BYTES").short('s').long("size").help("Their size; suffixes k, m, g, t, p, e");
    command.arg(bytes).arg(some("PATH", 1))
}

fn punch(command: Command) -> Command {
    command
        .arg(size("start", "START").help("Where the hole begins, in bytes; suffixes k, m, g, t, p, e"))
        .arg(size("length", "LENGTH").help("Its length in bytes"))
        .arg(some("PATH", 1).num_args(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_scripts_are_sound() {
        for command in commands(Form::Line) {
            command.debug_assert();
        }
    }
}
