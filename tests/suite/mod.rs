//! Checks that every tool must pass; `common_checks!` makes tests of them for one tool.

use std::fs;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What the checks need to know of a tool.
pub struct Tool {
    /// The binary that Cargo has built.
    pub binary: &'static str,
    /// Its name, with which error messages begin.
    pub name: &'static str,
    /// Exit code for wrong usage.
    pub usage_error: i32,
    /// Arguments with which it only reads what it is given.
    pub reading: &'static [&'static str],
}

/// What a run gave.
pub struct Outcome {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its output.
    pub stdout: String,
    /// Its error output.
    pub stderr: String,
}

/// Longer than any of these runs takes, on a machine that does other things, too.
const LIMIT: Duration = Duration::from_secs(60);

impl Tool {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.binary);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the tool, which must end by itself and must not panic.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        let child = self.command(arguments).spawn().expect("the tool can be started");
        finish(child)
    }

    /// Runs it on a path, with the arguments with which it only reads.
    fn read(&self, path: &Path) -> Outcome {
        let mut arguments = self.reading.to_vec();
        arguments.push(path.to_str().expect("invariant: temporary folders have plain names"));
        self.run(&arguments)
    }
}

fn finish(mut child: Child) -> Outcome {
    // The tools print little in these runs: less than a pipe holds, so waiting first is safe.
    let start = Instant::now();
    let status = loop {
        match child.try_wait().expect("invariant: the child is ours") {
            Some(status) => break status,
            None if start.elapsed() > LIMIT => {
                child.kill().expect("invariant: the child is ours");
                panic!("the tool hangs");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let text = |pipe: Option<&mut dyn Read>| {
        let mut bytes = Vec::new();
        pipe.map_or(Ok(0), |pipe| pipe.read_to_end(&mut bytes)).expect("invariant: pipes are readable");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let stdout = text(child.stdout.as_mut().map(|pipe| pipe as &mut dyn Read));
    let stderr = text(child.stderr.as_mut().map(|pipe| pipe as &mut dyn Read));
    assert!(!stderr.contains("panicked"), "{stderr}");
    Outcome { code: status.code(), stdout, stderr }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("invariant: a temporary folder can be made")
}

/// `-h` and `--help` go to the output, and say what the tool is called.
pub fn help(tool: &Tool) {
    for option in ["-h", "--help"] {
        let outcome = tool.run(&[option]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{option}");
        assert!(outcome.stdout.contains("Usage") && outcome.stdout.contains(tool.name), "{}", outcome.stdout);
    }
}

/// `-V` and `--version` print the version.
pub fn version(tool: &Tool) {
    for option in ["-V", "--version"] {
        let outcome = tool.run(&[option]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{option}");
        assert!(outcome.stdout.contains(env!("CARGO_PKG_VERSION")), "{}", outcome.stdout);
    }
}

/// An option that is not there is named in the error, and nothing is printed.
pub fn bad_option(tool: &Tool) {
    for option in ["--no-such-option", "-@"] {
        let outcome = tool.run(&[option]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(tool.usage_error), ""), "{option}");
        assert!(outcome.stderr.contains(option), "{}", outcome.stderr);
    }
}

/// A tool that is given nothing to work on says so.
pub fn no_arguments(tool: &Tool) {
    let outcome = tool.run(&[]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(tool.usage_error), ""));
    assert!(!outcome.stderr.is_empty());
}

/// A file that is not there is an error with its name, and is not made.
pub fn missing_file(tool: &Tool) {
    let folder = folder();
    let path = folder.path().join("missing.img");
    let outcome = tool.read(&path);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""));
    assert!(outcome.stderr.starts_with(tool.name) && outcome.stderr.contains("missing.img"), "{}", outcome.stderr);
    assert!(outcome.stderr.to_lowercase().contains("no such file"), "{}", outcome.stderr);
    assert!(!path.exists());
}

/// Files too small for anything are an error, and stay as they are.
pub fn tiny_file(tool: &Tool) {
    let folder = folder();
    let path = folder.path().join("tiny.img");
    for len in [0, 1, 511, 512, 4096] {
        let contents = vec![0x5A; len];
        fs::write(&path, &contents).expect("invariant: writable");
        let outcome = tool.read(&path);
        assert_eq!(outcome.code, Some(1), "{len} bytes: {}", outcome.stdout);
        assert!(outcome.stderr.starts_with(tool.name), "{len} bytes: {}", outcome.stderr);
        assert!(fs::read(&path).expect("invariant: readable") == contents, "{len} bytes");
    }
}

/// A folder and other things that are no files are an error, at once.
pub fn no_file(tool: &Tool) {
    let folder = folder();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().is_ok_and(|status| status.success()));
    assert!(fs::metadata(&fifo).is_ok_and(|metadata| metadata.file_type().is_fifo()));
    for path in [folder.path(), &fifo, Path::new("/dev/null")] {
        let outcome = tool.read(path);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{}", path.display());
        assert!(outcome.stderr.starts_with(tool.name), "{}: {}", path.display(), outcome.stderr);
    }
}

/// A part of a file that is not there is an error.
pub fn missing_part(tool: &Tool) {
    let folder = folder();
    let path = folder.path().join("image");
    fs::write(&path, vec![0; 1 << 20]).expect("invariant: writable");
    for part in [["--offset", "2m"], ["--partition", "1"]] {
        let mut arguments = part.to_vec();
        arguments.extend(tool.reading);
        arguments.push(path.to_str().expect("invariant: temporary folders have plain names"));
        let outcome = tool.run(&arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{part:?}");
        assert!(outcome.stderr.starts_with(tool.name), "{part:?}: {}", outcome.stderr);
    }
    for part in [["--offset", "12x"], ["--partition", "0"]] {
        let outcome = tool.run(&[part[0], part[1], "image"]);
        assert_eq!(outcome.code, Some(tool.usage_error), "{part:?}");
    }
}

/// A tool that only reads leaves the file alone, its times included.
pub fn input_is_untouched(tool: &Tool, image: &dyn Fn(&Path)) {
    let folder = folder();
    let path = folder.path().join("image");
    image(&path);
    let state = || {
        let metadata = fs::metadata(&path).expect("invariant: it is there");
        (fs::read(&path).expect("invariant: readable"), metadata.modified().expect("invariant: files have times"))
    };
    let before = state();
    let outcome = tool.read(&path);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(!outcome.stdout.is_empty());
    assert!(state() == before);
    let names: Vec<_> = fs::read_dir(folder.path()).expect("invariant: readable").flatten().collect();
    assert_eq!(names.len(), 1, "the tool left something behind: {names:?}");
}

/// An output that nobody reads is no reason to panic.
pub fn closed_output(tool: &Tool) {
    let mut child = tool.command(&["--help"]).spawn().expect("the tool can be started");
    drop(child.stdout.take());
    finish(child);
}

/// Tests of all common checks for the tool that the expression gives, and an image that it can read.
#[macro_export]
macro_rules! common_checks {
    ($tool:expr, $image:expr) => {
        #[test]
        fn help() {
            $crate::suite::help(&$tool);
        }
        #[test]
        fn version() {
            $crate::suite::version(&$tool);
        }
        #[test]
        fn bad_option() {
            $crate::suite::bad_option(&$tool);
        }
        #[test]
        fn no_arguments() {
            $crate::suite::no_arguments(&$tool);
        }
        #[test]
        fn missing_file() {
            $crate::suite::missing_file(&$tool);
        }
        #[test]
        fn tiny_file() {
            $crate::suite::tiny_file(&$tool);
        }
        #[test]
        fn no_file() {
            $crate::suite::no_file(&$tool);
        }
        #[test]
        fn missing_part() {
            $crate::suite::missing_part(&$tool);
        }
        #[test]
        fn input_is_untouched() {
            $crate::suite::input_is_untouched(&$tool, &$image);
        }
        #[test]
        fn closed_output() {
            $crate::suite::closed_output(&$tool);
        }
    };
}
