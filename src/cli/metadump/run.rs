//! What xfskit-metadump does.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};

use super::TOOL;
use super::command::Request;
use crate::buffer::{Primary, SearchEffort};
use crate::cli::image::Reading;
use crate::cli::observer::Terminal;
use crate::cli::output::complain;
use crate::error::{Error, Rule};
use crate::image::Image;
use crate::metadump::dump;
use crate::report::{Observer, Unit};

/// Bytes that are searched for a copy of the superblock.
const MOST_SEARCHED: u64 = 64 << 30;

/// Shows progress; of damaged structures it tells one by one only when that is asked for.
struct Watcher {
    terminal: Terminal,
    each: bool,
    damaged: AtomicU64,
}

impl Observer for Watcher {
    fn begin(&self, what: &str, total: u64, unit: Unit) {
        self.terminal.begin(what, total, unit);
    }

    fn advance(&self, units: u64) {
        self.terminal.advance(units);
    }

    fn end(&self) {
        self.terminal.end();
    }

    fn warn(&self, problem: &Error) {
        if self.each || !matches!(problem, Error::Corrupt(_)) {
            self.terminal.warn(problem);
        } else {
            self.damaged.fetch_add(1, Ordering::Relaxed);
        }
    }
}

pub(super) fn run(request: &Request) -> anyhow::Result<()> {
    let devices = request.image.open(&request.source, Reading::Calls)?;
    let effort = if request.force { SearchEffort::Everywhere { limit: MOST_SEARCHED } } else { SearchEffort::Guesses };
    let image = Image::open(devices, effort).with_context(|| request.source.display().to_string())?;
    let damage = image.superblock().primary.damage();
    if !damage.is_empty() {
        let is_none = match &image.superblock().primary {
            Primary::Damaged(verdict) => verdict.failures().iter().any(|failure| failure.check.rule == Rule::Magic),
            _ => true,
        };
        if is_none && !request.force {
            bail!("there is no primary superblock; -F goes on with a copy ({})", damage.join("; "));
        }
        complain(
            TOOL,
            &format!("the primary superblock is damaged, a copy says where things lie: {}", damage.join("; ")),
        );
    }
    let terminal = Terminal::new(TOOL, request.progress);
    let watcher = Watcher { terminal, each: request.warnings, damaged: AtomicU64::new(0) };
    let output = open_output(&request.target, &request.source)?;
    let dumped = dump(&image, &request.options, output, &watcher)?;
    watcher.end();
    if dumped.log_not_obscured {
        complain(
            TOOL,
            "the log is dirty and was copied as it is: names and contents in it are not replaced, and its replay would \
             mix them with those that are. Mount the filesystem to clean it, or use -o",
        );
    }
    match watcher.damaged.into_inner() {
        0 => {}
        count => {
            complain(TOOL, &format!("{count} structures are damaged, and lack what hangs from them; -w lists them"))
        }
    }
    Ok(())
}

fn open_output(target: &Path, source: &Path) -> anyhow::Result<Box<dyn Write + Send>> {
    if target == Path::new("-") {
        if io::stdout().is_terminal() {
            bail!("a dump is not written to a terminal");
        }
        return Ok(Box::new(io::stdout()));
    }
    if let (Ok(target), Ok(source)) = (target.canonicalize(), source.canonicalize())
        && target == source
    {
        bail!("the dump would replace its source");
    }
    let file = File::create(target).with_context(|| format!("cannot create {}", target.display()))?;
    Ok(Box::new(file))
}
