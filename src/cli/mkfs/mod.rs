//! xfskit-mkfs: makes an XFS filesystem, with the options of mkfs.xfs.

mod command;
mod devices;
mod fill;
mod minimize;
mod request;
mod run;
mod target;

use std::process::ExitCode;

pub use command::command;

use super::output::finish;

/// What the tool calls itself.
const TOOL: &str = "xfskit-mkfs";

/// Runs the tool on the process's arguments. Whatever goes wrong ends with exit code 1, as with mkfs.xfs.
pub fn main() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            let failed = error.use_stderr();
            return if error.print().is_err() || failed { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let done = request::Request::from_matches(&matches).map_err(Into::into).and_then(run::run);
    finish(TOOL, done.map(|()| ExitCode::SUCCESS))
}
