//! The order of the layers (docs/architecture.md), checked on the sources: no path points up, no tool knows another,
//! nothing below the command line prints, exits or uses `anyhow`, and `unsafe` stays in its two files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The layers from the bottom up. What stands in one line does not know each other.
const LAYERS: &[&[&str]] = &[
    &["error"],
    &["report"],
    &["ondisk"],
    &["device", "geometry"],
    &["readers"],
    &["buffer"],
    &["btree"],
    &["forms"],
    &["realtime", "journal"],
    &["image"],
    &["tree"],
    &["transaction"],
    &["volume"],
    &["replay"],
    &["mkfs", "info", "populate", "files", "db", "logprint", "metadump", "repair", "rt"],
    &["cli"],
    &["bin"],
];

/// The only files that may contain `unsafe`.
const UNSAFE: &[&str] = &["device/mmap.rs", "device/block_ioctl.rs"];

/// Words that mean output or the end of the process.
const CLI_ONLY: &[&str] = &["anyhow", "println!", "print!", "eprintln!", "eprint!", "dbg!", "process::exit"];

/// The longest file under `src/bin`, in lines.
const BIN_LINES: usize = 15;

fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&layer))
}

/// A source file: its path below `src`, its code without comments, and where its unit tests begin.
struct Source {
    path: String,
    code: String,
    tests_at: usize,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        let code = without_comments(text);
        let tests_at = code.find("#[cfg(test)]\nmod tests").or_else(|| code.find("#[cfg(test)]\n#[allow"));
        Source { path: path.to_owned(), tests_at: tests_at.unwrap_or(code.len()), code }
    }

    /// The first component of the module path: `device` for `device/file.rs` and for `device.rs`.
    fn layer(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// How many times `super` leads from the file's own module to the root of the crate.
    fn depth(&self) -> usize {
        let parts = self.path.split('/').count();
        if self.path.ends_with("/mod.rs") { parts - 1 } else { parts }
    }

    /// Modules at the root of the crate that the file names.
    fn used_layers(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        let root = if self.layer() == "bin" { "xfskit::" } else { "crate::" };
        for (at, _) in self.code.match_indices(root) {
            let before = self.code[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                used.extend(heads(&self.code[at + root.len()..]));
            }
        }
        for (at, climbs, rest) in self.supers() {
            let root_at = self.depth() + usize::from(at >= self.tests_at);
            if climbs >= root_at {
                used.extend(heads(rest));
            }
        }
        used
    }

    /// Chains of `super::`: where, how many, and what follows.
    fn supers(&self) -> Vec<(usize, usize, &str)> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(next) = self.code[at..].find("super::") {
            let start = at + next;
            let mut end = start;
            while self.code[end..].starts_with("super::") {
                end += "super::".len();
            }
            found.push((start, (end - start) / "super::".len(), &self.code[end..]));
            at = end;
        }
        found
    }

    fn contains_word(&self, word: &str, until: usize) -> bool {
        self.code[..until].match_indices(word).any(|(at, _)| {
            let before = self.code[..at].chars().next_back();
            let after = self.code[at + word.len()..].chars().next();
            let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
            !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
        })
    }

    /// What the file does that it must not.
    fn faults(&self) -> Vec<String> {
        if ["lib.rs", "main.rs"].contains(&self.path.as_str()) {
            return Vec::new();
        }
        let Some(own) = rank(self.layer()) else {
            return vec![format!("{}: `{}` has no place in the order of the layers", self.path, self.layer())];
        };
        let mut faults = Vec::new();
        for used in self.used_layers().iter().filter(|used| *used != self.layer()) {
            match rank(used) {
                Some(other) if other < own => {}
                Some(_) => faults.push(format!("{}: uses `{used}`, which is not below it", self.path)),
                // What is no layer is a macro of the crate, in the module of the same rank as its user or below.
                None if used == "ondisk" => {}
                None => faults.push(format!("{}: uses `{used}`, which has no place in the order", self.path)),
            }
        }
        if !["cli", "bin"].contains(&self.layer()) {
            let words = CLI_ONLY.iter().filter(|word| self.contains_word(word, self.tests_at));
            faults.extend(words.map(|word| format!("{}: `{word}` belongs to the command line", self.path)));
        }
        if self.contains_word("unsafe", self.code.len()) && !UNSAFE.contains(&self.path.as_str()) {
            faults.push(format!("{}: `unsafe`", self.path));
        }
        if self.layer() == "bin" && self.used_layers().iter().any(|used| used != "cli") {
            faults.push(format!("{}: a binary calls `cli` and nothing else", self.path));
        }
        if self.layer() == "bin" && self.code.split('\n').count() > BIN_LINES {
            faults.push(format!("{}: more than {BIN_LINES} lines", self.path));
        }
        faults
    }
}

/// Blanks out comments and the contents of plain strings, so that words in them do not count. Lines stay.
fn without_comments(text: &str) -> String {
    let code = text.lines().map(|line| {
        let mut kept = String::new();
        let mut rest = line;
        loop {
            let (Some(quote), comment) = (rest.find('"'), rest.find("//")) else {
                kept.push_str(rest.find("//").map_or(rest, |at| &rest[..at]));
                return kept;
            };
            if comment.is_some_and(|at| at < quote) {
                kept.push_str(&rest[..comment.unwrap_or(quote)]);
                return kept;
            }
            kept.push_str(&rest[..=quote]);
            rest = &rest[quote + 1..];
            let Some(end) = string_end(rest) else { return kept };
            kept.push('"');
            rest = &rest[end + 1..];
        }
    });
    code.collect::<Vec<_>>().join("\n")
}

/// Where the string ends that `rest` is in.
fn string_end(rest: &str) -> Option<usize> {
    let mut escaped = false;
    rest.char_indices().find_map(|(at, c)| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at)
    })
}

/// First components of what follows `crate::`: one name, or those of a group in braces.
fn heads(rest: &str) -> Vec<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let mut heads = Vec::new();
    let (mut depth, mut start) = (1, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            heads.push(name(group[start..at].trim_start()));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    heads.retain(|head| !head.is_empty());
    heads
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("invariant: the sources are readable") {
        let path = entry.expect("invariant: the sources are readable").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_import_points_up() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    assert!(paths.len() > 50, "the sources were not found");
    let mut faults = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("invariant: the sources are readable");
        let name = path.strip_prefix(&root).expect("invariant: it was found below the root").to_string_lossy();
        faults.extend(Source::new(&name, &text).faults());
    }
    faults.sort();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn faults_are_found() {
    for (path, text, expected) in [
        ("device/file.rs", "use crate::mkfs::Plan;", "uses `mkfs`"),
        ("device/file.rs", "use crate::geometry::Ino;", "uses `geometry`"),
        ("mkfs/mod.rs", "use crate::{error::Result, info::{A, b::C}};", "uses `info`"),
        ("mkfs/mod.rs", "fn f() { let x = crate::cli::source::X; }", "uses `cli`"),
        ("device/file.rs", "use super::super::volume::V;", "uses `volume`"),
        ("device/mod.rs", "use super::volume::V;", "uses `volume`"),
        ("device/file.rs", "use crate::strange::Thing;", "no place"),
        ("strange/mod.rs", "", "no place"),
        ("forms/inode.rs", "fn f() {\n    println!(\"x\");\n}", "`println!`"),
        ("forms/inode.rs", "use std::process;\nfn f() { process::exit(1) }", "`process::exit`"),
        ("buffer/cache.rs", "fn f() -> anyhow::Result<()> { Ok(()) }", "`anyhow`"),
        ("buffer/cache.rs", "fn f() { unsafe { g() } }", "`unsafe`"),
        ("bin/mkfs.rs", "use xfskit::mkfs::X;", "`cli` and nothing else"),
        ("bin/mkfs.rs", "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", "more than 15 lines"),
    ] {
        let faults = Source::new(path, text).faults();
        assert!(faults.len() == 1 && faults[0].contains(expected), "{path}: {text}: {faults:?}");
    }
}

#[test]
fn sound_sources_pass() {
    for (path, text) in [
        ("lib.rs", "pub mod mkfs;"),
        ("device/file.rs", "//! Used by [`crate::mkfs`].\nuse crate::error::Result; // not crate::mkfs"),
        ("device/file.rs", "use super::contract::Device;\nconst X: &str = \"crate::mkfs println! \\\" unsafe\";"),
        (
            "device/file.rs",
            "#[cfg(test)]\nmod tests {\n    use super::super::contract::X;\n    // \n fn f() { println!() }\n}",
        ),
        ("cli/mkfs.rs", "use crate::mkfs::X; fn f() -> anyhow::Result<()> { println!(); Ok(()) }"),
        ("bin/mkfs.rs", "fn main() { xfskit::cli::mkfs::main() }"),
        ("mkfs/plan.rs", "use crate::{device::Device, error::{Error, Result}, ondisk::crc};"),
        ("device/mmap.rs", "fn f() { unsafe { g() } }"),
        ("forms/mod.rs", "fn blueprint() { fingerprint!() }"),
    ] {
        let faults = Source::new(path, text).faults();
        assert!(faults.is_empty(), "{path}: {faults:?}");
    }
}
