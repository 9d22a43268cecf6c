//! xfskit-info: describes a filesystem.
//!
//! Exit codes: 0, described; 1, it cannot be described, or only from a copy of its superblock because the primary one is
//! damaged; 2, wrong usage.

mod command;
mod run;
mod words;

use std::process::ExitCode;

pub use command::command;

use super::output::{finish, not_parsed};

/// What the tool calls itself.
const TOOL: &str = "xfskit-info";

/// Runs the tool on the process's arguments.
pub fn main() -> ExitCode {
    let request = match command().try_get_matches() {
        Ok(matches) => command::Request::from_matches(&matches),
        Err(error) => return not_parsed(&error),
    };
    finish(TOOL, run::run(&request))
}
