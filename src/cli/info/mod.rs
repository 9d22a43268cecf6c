//! xfskit-info: describes a filesystem.
//!
//! Exit codes: 0, described; 1, it cannot be described, or only from a copy of its superblock because the primary one is
//! damaged; 2, wrong usage.

mod command;
mod run;
mod words;

use std::process::ExitCode;

pub use command::command;

use super::output::finish;

/// What the tool calls itself.
const TOOL: &str = "xfskit-info";

/// Runs the tool on the process's arguments.
pub fn main() -> ExitCode {
    let request = match command().try_get_matches() {
        Ok(matches) => command::Request::from_matches(&matches),
        Err(error) => {
            // help and version are errors of this kind, too, with another code
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            return match error.print() {
                Ok(()) => ExitCode::from(code),
                Err(_) => ExitCode::FAILURE,
            };
        }
    };
    finish(TOOL, run::run(&request))
}
