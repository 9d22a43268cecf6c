//! xfskit-mkfs; see `xfskit::cli::mkfs`.

fn main() -> std::process::ExitCode {
    xfskit::cli::mkfs::main()
}
