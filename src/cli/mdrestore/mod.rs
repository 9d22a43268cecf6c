//! xfskit-mdrestore: puts a metadata dump back onto a file or device.
//!
//! Exit codes: 0, done; 1, it could not be done; 2, wrong usage.

mod command;
mod run;

use std::process::ExitCode;

use super::output::{finish, not_parsed};

pub use command::command;

/// Name of the tool, with which its messages begin.
const TOOL: &str = "xfskit-mdrestore";

/// Runs the tool on the process's arguments.
pub fn main() -> ExitCode {
    match command().try_get_matches() {
        Ok(matches) => finish(TOOL, run::run(&command::Request::from_matches(&matches))),
        Err(error) => not_parsed(&error),
    }
}
