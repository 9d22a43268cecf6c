//! xfskit-metadump: writes the metadata of a filesystem to a stream.
//!
//! Exit codes: 0, done; 1, it could not be done; 2, wrong usage. Damage that was left out is told, and is no failure.

mod command;
mod run;

use std::process::ExitCode;

use super::output::{complain, not_parsed};

pub use command::command;

/// Name of the tool, with which its messages begin.
const TOOL: &str = "xfskit-metadump";

/// Runs the tool on the process's arguments.
pub fn main() -> ExitCode {
    let request = match command().try_get_matches() {
        Ok(matches) => command::Request::from_matches(&matches),
        Err(error) => return not_parsed(&error),
    };
    match run::run(&request) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(TOOL, &format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
