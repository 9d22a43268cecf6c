//! What a tool writes to the standard output and the standard error.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::ExitCode;

use anyhow::Context;

/// The standard output with a buffer. Whoever gets it must flush it; see [`finish`].
pub fn standard_output() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Writes `text` to the standard output. A reader that has gone is no error: the work itself goes on.
///
/// # Errors
/// When it cannot be written.
pub fn say(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to the standard output")
        }
        _ => Ok(()),
    }
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
            complain(tool, &message(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes in a line; a cause that is part of its message already is not said twice.
pub fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// The end of a tool whose command line asks for help or the version, or is wrong: what clap prints, and its exit code.
pub fn not_parsed(error: &clap::Error) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    if error.print().is_ok() { ExitCode::from(code) } else { ExitCode::FAILURE }
}

/// Writes a line to the standard error; where nobody reads that, nothing can be done.
pub fn complain(tool: &str, text: &str) {
    let _ = writeln!(io::stderr().lock(), "{tool}: {text}");
}
