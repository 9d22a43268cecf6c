//! xfskit-mdrestore; see `xfskit::cli::mdrestore`.

fn main() -> std::process::ExitCode {
    xfskit::cli::mdrestore::main()
}
