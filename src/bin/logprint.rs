//! xfskit-logprint; see `xfskit::cli::logprint`.

fn main() -> std::process::ExitCode {
    xfskit::cli::logprint::main()
}
