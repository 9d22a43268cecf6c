//! xfskit-logprint: shows the journal of a filesystem.
//!
//! Exit codes: 0, shown; 1, it cannot be shown, or something in it that a replay needs cannot be understood; 2, wrong usage.

mod command;
mod run;

use std::process::ExitCode;

pub use command::command;

use super::output::{finish, not_parsed};

/// Name of the tool.
const TOOL: &str = "xfskit-logprint";

/// Runs the tool on the process's arguments.
pub fn main() -> ExitCode {
    let arguments = match command().try_get_matches() {
        Ok(matches) => command::Arguments::from_matches(&matches),
        Err(error) => return not_parsed(&error),
    };
    finish(TOOL, run::run(&arguments))
}
