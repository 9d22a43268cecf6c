//! The command line of xfskit-mkfs; help, man page and completions are made from it.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, Args, Command};

use crate::cli::source::SourceArgs;
use crate::mkfs::suboptions::{Group, Suboption};

/// The command line.
pub fn command() -> Command {
    let command = Command::new("xfskit-mkfs")
        .about("Make an XFS filesystem in a file or on a device, byte for byte as mkfs.xfs does")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_version_flag(true)
        .override_usage("xfskit-mkfs [OPTIONS] DEVICE")
        .arg(Arg::new("device").value_name("DEVICE").num_args(0..).help("File or block device to format"))
        .args(Group::ALL.map(suboptions))
        .args(flags());
    SourceArgs::augment_args(command)
}

/// The identifier of a group's argument.
pub(super) fn id(group: Group) -> &'static str {
    match group {
        Group::Block => "block",
        Group::Config => "config",
        Group::Data => "data",
        Group::Inode => "inode",
        Group::Log => "log",
        Group::Metadata => "metadata",
        Group::Naming => "naming",
        Group::Proto => "proto",
        Group::Realtime => "realtime",
        Group::Sector => "sector",
    }
}

fn suboptions(group: Group) -> Arg {
    let summary = match group {
        Group::Block => "Block size",
        Group::Config => "Configuration files",
        Group::Data => "Data section: size, allocation groups, stripes, what new files inherit",
        Group::Inode => "Inodes",
        Group::Log => "Log: size, place, stripes",
        Group::Metadata => "Metadata and quota",
        Group::Naming => "Directories",
        Group::Proto => "Files to fill the filesystem with: a folder or a prototype file",
        Group::Realtime => "Realtime section: device, extents, groups, zones",
        Group::Sector => "Sector size",
    };
    let mut long = format!("{summary}. A list of suboptions, separated by commas:\n");
    for suboption in group.suboptions() {
        let value = if suboption.if_empty.is_some() { "[=VALUE]" } else { "=VALUE" };
        long += &format!("\n  {}{value}: {} ({})", suboption.name, suboption.help, suboption.allowed());
    }
    Arg::new(id(group))
        .short(group.letter())
        .value_name("NAME=VALUE,...")
        .action(ArgAction::Append)
        .allow_hyphen_values(true)
        .value_parser(List(group))
        .hide_possible_values(true)
        .help(summary)
        .long_help(long)
}

/// Takes any text, and tells completions which suboption it may begin with.
#[derive(Clone)]
struct List(Group);

impl TypedValueParser for List {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value = |suboption: &Suboption| {
            let sign = if suboption.if_empty.is_some() { "" } else { "=" };
            PossibleValue::new(format!("{}{sign}", suboption.name)).help(suboption.help)
        };
        Some(Box::new(self.0.suboptions().map(value)))
    }
}

fn flags() -> Vec<Arg> {
    // each may be repeated, as with getopt
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).action(ArgAction::SetTrue).overrides_with(name).help(help)
    };
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).value_name(value).overrides_with(name).help(help)
    };
    let list = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).action(ArgAction::Append).help(help)
    };
    vec![
        text("label", "LABEL", "Label, of at most 12 bytes").short('L').allow_hyphen_values(true),
        flag("force", "Overwrite a known filesystem, partition table or volume").short('f').short_alias('C'),
        flag("keep", "Do not discard the contents of block devices first").short('K'),
        flag("no-action", "Print the geometry, and make no filesystem").short('N'),
        flag("quiet", "Print nothing but errors, and what --json asks for").short('q'),
        flag("version", "Print the version").short('V').long("version"),
        flag("unsupported", "Allow filesystems below 300 MiB, logs below 64 MiB, and a single allocation group")
            .long("unsupported")
            .visible_alias("allow-small"),
        text("size", "BYTES", "Make the image file, or an existing one, this long; suffixes k, m, g, t, p, e")
            .long("size"),
        list(
            "tar",
            "FILE",
            "Fill from an archive, plain or with gzip or zstd; - is the standard input; layers in their order",
        ),
        list("exclude", "GLOB", "Leave out files with such a name, or such a path if there is a slash in it"),
        text("owner", "UID:GID", "Let everything belong to this user and group").long("owner"),
        text("map", "FILE", "Set owners and modes, and make devices, as the lines of FILE say").long("map"),
        flag("minimize", "Make the image as small as its files allow").long("minimize"),
        text("headroom", "BYTES|N%", "With --minimize: leave so much space free")
            .long("headroom")
            .allow_hyphen_values(true),
        text("target", "kernel=X.Y[,grub=X.Y]", "Only use features that this kernel, and this GRUB, can use")
            .long("target"),
        flag("dry-run", "Say what would be made, and make nothing").long("dry-run"),
        flag("json", "Print as JSON").long("json"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_suboption_is_in_the_help() {
        let help = command().term_width(0).render_long_help().to_string();
        for suboption in crate::mkfs::suboptions::TABLE {
            assert!(help.contains(suboption.help), "{}", suboption.written());
        }
    }
}
