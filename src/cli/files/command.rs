//! The command line of xfskit-files; help, man page and completions are made from it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command, value_parser};

use super::edit_command::{Form, commands, script};
use crate::cli::image::{ImageArgs, Letters};

/// The command line.
pub fn command() -> Command {
    let letters = Letters { log: 'l', realtime: Some('r') };
    let command = Command::new(super::TOOL)
        .version(env!("CARGO_PKG_VERSION"))
        .about("List, read, extract, archive and change files of an XFS image that nothing mounts")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true);
    let mut command = ImageArgs::augment(command, letters);
    // the letters mean other things behind the name of a command
    for (name, letter) in [("log-device", 'l'), ("realtime-device", 'r')] {
        command = command.mut_arg(name, |arg| arg.short(None).global(true)).arg(
            Arg::new(letter.to_string())
                .short(letter)
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help(format!("The same as --{name}, before the name of the command")),
        );
    }
    for name in ["offset", "partition"] {
        command = command.mut_arg(name, |arg| arg.global(true));
    }
    command
        .arg(flag("json").long("json").global(true).help("Print JSON"))
        .subcommands([ls(), stat(), tree(), find(), cat(), get(), tar(), du(), xattr(), map(), owner()])
        .subcommands(commands(Form::Image))
        .subcommand(script())
}

pub(super) fn flag(name: &'static str) -> Arg {
    Arg::new(name).action(ArgAction::SetTrue)
}

/// A command that works on an image.
pub(super) fn of_image(name: &'static str, about: &'static str) -> Command {
    let image = Arg::new("image").value_name("IMAGE").required(true).value_parser(value_parser!(PathBuf));
    Command::new(name).about(about).arg(image.help("Image in a file, or block device"))
}

/// Paths in the image; the root where none is named.
fn paths() -> Arg {
    let arg = Arg::new("paths").value_name("PATH").value_parser(value_parser!(OsString)).action(ArgAction::Append);
    arg.num_args(0..).help("Path in the image, escaped as names are shown; <N> is inode N; / where there is none")
}

fn ls() -> Command {
    of_image("ls", "List files, and what folders hold")
        .arg(paths())
        .arg(flag("long").short('l').long("long").help("Mode, links, owner, group, size and time of change, too"))
        .arg(flag("recursive").short('R').long("recursive").help("List the folders in folders, too"))
        .arg(flag("directory").short('d').long("directory").help("List folders themselves, not what they hold"))
        .arg(flag("inode").short('i').long("inode").help("Inode numbers, too"))
}

fn stat() -> Command {
    of_image("stat", "Show all that inodes say of files")
        .arg(paths())
        .arg(flag("follow").short('L').long("follow").help("Follow symbolic links"))
}

fn tree() -> Command {
    of_image("tree", "Draw the tree of files below a folder").arg(paths()).arg(
        Arg::new("depth")
            .short('L')
            .long("depth")
            .value_name("N")
            .value_parser(value_parser!(u32).range(1..))
            .help("Draw no more than N levels"),
    )
}

fn cat() -> Command {
    of_image("cat", "Write the contents of files to the standard output").arg(paths().required(true).num_args(1..))
}

fn get() -> Command {
    of_image("get", "Extract files into a folder, with owners, modes, times, attributes, holes and hard links")
        .arg(paths().required(true).num_args(1..))
        .arg(
            Arg::new("folder")
                .value_name("FOLDER")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("Folder that gets the files; it is made if it is not there"),
        )
        .arg(flag("recursive").short('r').long("recursive").help("Extract folders with all that they hold"))
}

fn tar() -> Command {
    of_image("tar", "Write files as an archive, in the pax format").arg(paths()).arg(
        Arg::new("output")
            .short('o')
            .long("output")
            .value_name("FILE")
            .value_parser(value_parser!(OsString))
            .help("Write to FILE instead of the standard output"),
    )
}

/// An option with a value.
fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn find() -> Command {
    let name = option("name", "PATTERN", "Files whose name matches PATTERN (*, ?, [...]); given again, or that one");
    of_image("find", "List files below folders that fulfil all conditions")
        .arg(paths())
        .arg(name.value_parser(value_parser!(OsString)).action(ArgAction::Append))
        .arg(
            option("type", "TYPE", "Files of a type: f, d, l, b, c, p or s; more than one with commas between")
                .action(ArgAction::Append),
        )
        .arg(
            option(
                "size",
                "[+-]BYTES",
                "Files of more (+), fewer (-) or just so many bytes; suffixes k, m, g, t, p, e",
            )
            .allow_hyphen_values(true)
            .action(ArgAction::Append),
        )
        .arg(option("owner", "[UID][:GID]", "Files of this user, this group or both, as numbers"))
        .arg(option("newer", "TIME", "Files changed after TIME: @SECONDS or YYYY-MM-DD[ HH:MM[:SS]], in UTC"))
        .arg(option("older", "TIME", "Files changed before TIME"))
        .arg(flag("long").short('l').long("long").help("Mode, links, owner, group, size and time of change, too"))
}

fn du() -> Command {
    of_image("du", "Say how much space files take, in units of 1024 bytes")
        .arg(paths())
        .arg(flag("all").short('a').long("all").help("Say it of files, too, not of folders alone"))
        .arg(flag("summarize").short('s').long("summarize").conflicts_with("all").help("Say it of what is named alone"))
        .arg(flag("bytes").short('b').long("bytes").help("Say how many bytes the files have, not what they take"))
}

fn xattr() -> Command {
    of_image("xattr", "Show extended attributes and access control lists")
        .arg(paths())
        .arg(
            option("name", "NAME", "Show this attribute alone; with its namespace")
                .short('n')
                .value_parser(value_parser!(OsString)),
        )
        .arg(flag("raw").long("raw").requires("name").conflicts_with("json").help("Write the value as it is"))
}

fn map() -> Command {
    of_image("map", "Show where the blocks of files lie")
        .arg(paths())
        .arg(flag("attributes").short('a').long("attributes").help("The blocks of attributes, not of contents"))
}

fn owner() -> Command {
    of_image("owner", "Say which file or structure holds blocks")
        .arg(Arg::new("blocks").value_name("BLOCK").required(true).num_args(1..).help(
            "Filesystem block N, block GROUP/N, daddr:N (512 bytes each), byte:N, or of the realtime section rt:N",
        ))
        .arg(flag("walk").long("walk").help("Ask every inode even if there is a reverse mapping btree"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn the_letters_of_the_devices_come_before_the_command() {
        let words = ["xfskit-files", "-r", "rt", "ls", "-l", "image", "--log-device", "log", "/a"];
        let matches = command().try_get_matches_from(words).expect("correct usage");
        let (name, arguments) = matches.subcommand().expect("a command");
        assert_eq!((name, arguments.get_flag("long")), ("ls", true));
        assert_eq!(matches.get_one::<PathBuf>("r"), Some(&"rt".into()));
        assert_eq!(arguments.get_one::<PathBuf>("log-device"), Some(&"log".into()));
        assert_eq!(arguments.get_many::<OsString>("paths").map(Iterator::count), Some(1));
    }
}
