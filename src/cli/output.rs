//! What a tool writes to the standard output and the standard error.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::ExitCode;

/// The standard output with a buffer. Whoever gets it must flush it; see [`finish`].
pub fn standard_output() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Whether `error` means that nobody reads the standard output any more: no fault of the tool.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// The end of a tool: its exit code, after a complaint about what went wrong. A reader that has gone is a quiet end.
pub fn finish(tool: &str, result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(tool, &format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to the standard error; where nobody reads that, nothing can be done.
pub fn complain(tool: &str, text: &str) {
    let _ = writeln!(io::stderr().lock(), "{tool}: {text}");
}
