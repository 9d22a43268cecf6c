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

use super::output::finish;

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
    finish(run::NAME, run::run(&request))
}
