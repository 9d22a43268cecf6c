//! xfskit-logprint: shows the journal of a filesystem.
//!
//! Exit codes: 0, shown; 1, it cannot be shown, or something in it that a replay needs cannot be understood; 2, wrong usage.

mod command;
mod run;

use std::process::ExitCode;

pub use command::command;

use super::output::finish;

/// Name of the tool.
const TOOL: &str = "xfskit-logprint";

/// Runs the tool on the process's arguments.
pub fn main() -> ExitCode {
    let arguments = match command().try_get_matches() {
        Ok(matches) => command::Arguments::from_matches(&matches),
        Err(error) => {
            // help is an error of this kind, too, with another code
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            return match error.print() {
                Ok(()) => ExitCode::from(code),
                Err(_) => ExitCode::FAILURE,
            };
        }
    };
    finish(TOOL, run::run(&arguments))
}
