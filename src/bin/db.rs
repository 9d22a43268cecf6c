//! xfskit-db; see `xfskit::cli::db`.

fn main() -> std::process::ExitCode {
    xfskit::cli::db::main()
}
