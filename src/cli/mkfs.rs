//! xfskit-mkfs.

use std::process::ExitCode;

/// Runs the tool on the process's arguments.
pub fn main() -> ExitCode {
    ExitCode::FAILURE
}
