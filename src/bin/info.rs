//! xfskit-info; see `xfskit::cli::info`.

fn main() -> std::process::ExitCode {
    xfskit::cli::info::main()
}
