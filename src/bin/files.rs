//! xfskit-files; see `xfskit::cli::files`.

fn main() -> std::process::ExitCode {
    xfskit::cli::files::main()
}
