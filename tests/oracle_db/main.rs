//! xfskit-db against xfs_db 7.2: what both print to rows of commands on the same images must be equal to the byte.
//!
//! The rows stand in `rows/*.txt`. `= NAME...` says on which images the rows behind it are run; each other line is a row:
//! commands with `; ` between them, for one run of each program, which starts anew for each row. `#` begins a comment.
//! With `XFSKIT_DB_ROWS=WORD...` only rows of images or files with one of these names are run;
//! `XFSKIT_DB_IMAGES=FOLDER` keeps the images there.

#![allow(clippy::print_stdout, reason = "a test's report is its output")]
#![allow(clippy::cast_possible_truncation, reason = "sizes of test files")]

mod images;
#[allow(dead_code, reason = "shared with the other oracle tests")]
#[path = "../oracle/reference.rs"]
mod reference;
mod rows;

use std::collections::BTreeSet;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use images::{Image, RECIPES, Recipe, Source, Workshop};
use reference::{Reference, missing, reference};
use rows::{Row, rows};

/// The least number of rows.
const LEAST_ROWS: usize = 400;
/// The least number of images.
const LEAST_IMAGES: usize = 12;

/// Whether this machine can fill images through a mount; says so if it cannot.
fn can_mount() -> bool {
    let filesystems = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let able = rustix::process::geteuid().is_root()
        && Path::new("/dev/loop-control").exists()
        && filesystems.lines().any(|line| line.trim() == "xfs");
    if !able {
        missing("mounting through loop devices (root, and a kernel with XFS)");
    }
    able
}

fn needs_mount(recipe: &Recipe) -> bool {
    match recipe.source {
        Source::Made { fill, .. } => fill.is_some(),
        Source::Stored | Source::Damaged { .. } => false,
        Source::Crash => true,
    }
}

/// The most that a row may print, in bytes: xfs_db prints some things without an end.
const MOST: u64 = 64 << 20;

/// What a program has printed, and whether it was content.
struct Answer {
    stdout: Vec<u8>,
    stderr: String,
    success: bool,
}

fn ask(mut program: Command, image: &Image, row: &Row) -> Result<Answer, String> {
    for command in &row.commands {
        program.args(["-c", command]);
    }
    let mut said = tempfile::tempfile().map_err(|error| error.to_string())?;
    let stderr = said.try_clone().map_err(|error| error.to_string())?;
    program.args(["-r", "-x"]).args(image.arguments()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
    let mut child = program.spawn().map_err(|error| error.to_string())?;
    let mut stdout = Vec::new();
    // the pipe closes behind what is read, which ends a program that goes on
    let pipe = child.stdout.take().expect("invariant: the output is piped");
    let read = pipe.take(MOST + 1).read_to_end(&mut stdout);
    let status = child.wait().map_err(|error| error.to_string())?;
    read.map_err(|error| error.to_string())?;
    if stdout.len() as u64 > MOST {
        return Err(format!("{program:?} prints more than {MOST} bytes"));
    }
    let mut stderr = String::new();
    said.rewind().and_then(|()| said.take(1 << 16).read_to_string(&mut stderr)).map_err(|error| error.to_string())?;
    Ok(Answer { stdout, stderr: stderr.trim().to_owned(), success: status.success() })
}

fn ours() -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "120"]).arg(env!("CARGO_BIN_EXE_xfskit-db"));
    command.envs([("LC_ALL", "C"), ("TZ", "UTC")]);
    command
}

/// The first line in which the outputs differ.
fn difference(ours: &[u8], theirs: &[u8]) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let (ours, theirs) = (String::from_utf8_lossy(ours), String::from_utf8_lossy(theirs));
    let (ours, theirs): (Vec<&str>, Vec<&str>) = (ours.split('\n').collect(), theirs.split('\n').collect());
    let at = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
    let at = at.unwrap_or(ours.len().min(theirs.len()));
    let line = |lines: &[&str]| lines.get(at).map_or("(end)".to_owned(), |line| line.chars().take(300).collect());
    Some(format!("line {}: ours   {}\n      theirs {}", at + 1, line(&ours), line(&theirs)))
}

fn compare(image: &Image, row: &Row, reference: &Reference) -> Result<(), String> {
    let theirs = ask(reference.tool("xfs_db", [""; 0]), image, row)?;
    let ours = ask(ours(), image, row)?;
    if theirs.stdout.is_empty() {
        return Err("xfs_db has printed nothing".to_owned());
    }
    let said = &ours.stderr;
    match difference(&ours.stdout, &theirs.stdout) {
        Some(wrong) => Err(format!("{wrong}\n      {said}")),
        // what a block's checks find is said on the standard error
        None if ours.success => Ok(()),
        None => Err(format!("the same, but failed: {said}")),
    }
}

/// The rows to run: those that `XFSKIT_DB_ROWS` chooses.
fn chosen(rows: Vec<Row>) -> Vec<Row> {
    let Ok(words) = std::env::var("XFSKIT_DB_ROWS") else { return rows };
    let words: Vec<&str> = words.split_whitespace().collect();
    rows.into_iter().filter(|row| words.contains(&row.image.as_str()) || words.contains(&row.file.as_str())).collect()
}

/// Does `work` for each of `count` numbers, several at once.
fn each(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    work(at);
                }
            });
        }
    });
}

#[test]
fn what_is_printed_equals_what_xfs_db_prints() {
    let Some(reference) = reference() else { return };
    let mounts = can_mount();
    let recipe_of = |row: &Row| RECIPES.iter().find(|recipe| recipe.name == row.image);
    let rows: Vec<Row> =
        chosen(rows()).into_iter().filter(|row| mounts || !recipe_of(row).is_some_and(needs_mount)).collect();
    let workshop = Workshop::new();
    // the slow part first, all at once
    let used: BTreeSet<&str> = rows.iter().map(|row| row.image.as_str()).collect();
    std::thread::scope(|scope| {
        for name in &used {
            scope.spawn(|| workshop.image(name, reference));
        }
    });
    let wrong = Mutex::new(Vec::new());
    each(rows.len(), |at| {
        let row = &rows[at];
        let made = workshop.image(&row.image, reference);
        if let Err(why) = made.and_then(|image| compare(&image, row, reference)) {
            let text = format!("{} ({}:{}): {}\n   {why}", row.image, row.file, row.line, row.commands.join("; "));
            wrong.lock().expect("invariant: nothing panics while it holds the lock").push((at, text));
        }
    });
    let mut wrong = wrong.into_inner().expect("invariant: nothing panics while it holds the lock");
    wrong.sort();
    for (_, text) in &wrong {
        println!("DIFFERS {text}");
    }
    println!("{} of {} rows equal, on {} images", rows.len() - wrong.len(), rows.len(), used.len());
    assert!(wrong.is_empty(), "{} of {} rows differ", wrong.len(), rows.len());
}

#[test]
fn there_are_enough_rows_and_each_has_an_image() {
    let rows = rows();
    let images: BTreeSet<&str> = rows.iter().map(|row| row.image.as_str()).collect();
    for image in &images {
        assert!(RECIPES.iter().any(|recipe| recipe.name == *image), "there is no image {image}");
    }
    assert!(rows.len() >= LEAST_ROWS, "{} rows", rows.len());
    assert!(images.len() >= LEAST_IMAGES, "{} images", images.len());
}
