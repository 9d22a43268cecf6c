//! xfskit-db: looks into a filesystem.
//!
//! Exit codes: 0, every command did its work; 1, one of them failed, or the image cannot be opened; 2, wrong usage of the
//! command line.

mod command;
mod driver;
mod one_shot;
mod prompt;
mod run;

use std::process::ExitCode;

pub use command::command;

use super::output::{finish, not_parsed};

/// Runs the tool on the process's arguments.
pub fn main() -> ExitCode {
    let request = match command().try_get_matches() {
        Ok(matches) => command::Request::from_matches(&matches),
        Err(error) => return not_parsed(&error),
    };
    finish(run::NAME, run::run(&request))
}
