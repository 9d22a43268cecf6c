//! Where the references and the binary under test lie, and how they are run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The seconds that one run of a tool may take; the slowest reference run of the matrix takes a sixth of it.
const PATIENCE: &str = "600";

/// The references on this machine.
#[derive(Debug)]
pub struct Reference {
    cache: PathBuf,
}

/// The references, or `None`, aloud, where they are not installed: on a machine of continuous integration that fails.
pub fn reference() -> Option<&'static Reference> {
    static FOUND: OnceLock<Option<Reference>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let cache = std::env::var_os("XFSKIT_ORACLE")
            .map(PathBuf::from)
            .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache/xfskit-oracle")))?;
        let found = Reference { cache };
        let version = found.tool("mkfs.xfs", ["-V"]).output().ok()?;
        String::from_utf8_lossy(&version.stdout).contains(" 7.2.").then_some(found)
    });
    if found.is_none() {
        missing("mkfs.xfs 7.2 (run tests/oracle/setup as root)");
    }
    found.as_ref()
}

/// Says that `what` is missing, and that the test is therefore skipped; fails where `CI=true`.
pub fn missing(what: &str) {
    let must = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(!must, "missing reference: {what}");
    println!("SKIPPED, missing reference: {what}");
}

impl Reference {
    /// The folder of all references.
    pub fn path(&self) -> &Path {
        &self.cache
    }

    /// A command that runs a tool of the reference xfsprogs.
    pub fn tool<S: AsRef<OsStr>>(&self, tool: &str, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.program(&self.cache.join("root/usr/sbin").join(tool));
        command.args(args);
        command
    }

    /// A command that runs a program with the libraries of the reference xfsprogs.
    pub fn program(&self, program: &Path) -> Command {
        let root = self.cache.join("root");
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        let path = format!("{0}:{0}/systemd", libraries.display());
        let mut command = patient(root.join("usr/lib64/ld-linux-x86-64.so.2"));
        command.args(["--library-path", &path]).arg(program);
        command
    }

    /// Whether the guest kernel `series` is installed.
    pub fn has_kernel(&self, series: &str) -> bool {
        self.cache.join("kernel").join(series).join("initrd").exists()
    }

    /// A command that runs a script in a guest; see `tests/oracle/vm`.
    pub fn guest(&self) -> Command {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/vm"));
        command.env("XFSKIT_ORACLE", &self.cache).stdin(Stdio::null());
        command
    }
}

/// The binary under test.
pub fn mkfs_path() -> PathBuf {
    std::env::var_os("XFSKIT_MKFS").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_xfskit-mkfs")), PathBuf::from)
}

/// A command that runs the binary under test.
pub fn mkfs<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = patient(mkfs_path());
    command.args(args);
    command
}

/// A command that is ended after [`PATIENCE`] seconds, in a fixed environment.
fn patient(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", PATIENCE]).arg(program).stdin(Stdio::null());
    for name in ["TEST_DIR", "TEST_DEV", "QA_CHECK_FS"] {
        command.env_remove(name);
    }
    command.envs([("LC_ALL", "C"), ("TZ", "UTC"), ("SOURCE_DATE_EPOCH", "1700000000"), ("DETERMINISTIC_SEED", "1")]);
    command
}

/// Runs a command of the machine; its output, or what went wrong.
pub fn run<S: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = S>) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!("{program}: {}", said(&output)))
}

/// Unmounts. A process that another thread is just starting holds all files of this one until it is another program, so
/// that a filesystem can be busy for a moment.
pub fn unmount(point: impl AsRef<OsStr>) -> Result<(), String> {
    let mut tries = 50;
    loop {
        match run("umount", [point.as_ref()]) {
            Err(said) if said.contains("busy") && tries > 0 => tries -= 1,
            result => return result.map(|_| ()),
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// The last lines that a failed command said.
pub fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    format!("{}: {}", output.status, lines[lines.len().saturating_sub(3)..].join(" / "))
}
