//! xfskit-files: files of an image that nothing mounts.
//!
//! Exit codes: 0, done; 1, it could not be done; 2, wrong usage; 3, done, but something was damaged and left out, or is
//! shown as it was found; 4, done, but not all properties of the files could be kept.

mod background;
mod command;
mod context;
mod copy;
mod edit;
mod edit_command;
mod json;
mod list;
mod parse;
mod search;
mod words;

use std::process::ExitCode;

use clap::ArgMatches;

use crate::cli::output::{finish, not_parsed};

pub use command::command;
use context::Context;

/// Name of the tool, with which its messages begin.
const TOOL: &str = "xfskit-files";

/// Runs the tool on the process's arguments.
pub fn main() -> ExitCode {
    match command().try_get_matches() {
        Ok(matches) => finish(TOOL, run(&matches)),
        Err(error) => not_parsed(&error),
    }
}

fn run(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let Some((name, arguments)) = matches.subcommand() else { anyhow::bail!("no command was given") };
    if edit::is_edit(name) {
        return edit::run(name, matches, arguments);
    }
    let context = Context::open(matches, arguments)?;
    match name {
        "ls" => list::ls(&context, arguments),
        "stat" => list::stat(&context, arguments),
        "tree" => list::tree(&context, arguments),
        "cat" => copy::cat(&context, arguments),
        "get" => copy::get(&context, arguments),
        "tar" => copy::tar(&context, arguments),
        "find" => search::find(&context, arguments),
        "du" => search::du(&context, arguments),
        "xattr" => search::xattr(&context, arguments),
        "map" => search::map(&context, arguments),
        "owner" => search::owner(&context, arguments),
        _ => anyhow::bail!("there is no command {name}"),
    }
}
