//! xfskit-metadump; see `xfskit::cli::metadump`.

fn main() -> std::process::ExitCode {
    xfskit::cli::metadump::main()
}
