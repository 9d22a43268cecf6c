//! Progress bars and warnings on the terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::error::Error;
use crate::report::{Observer, Unit};

/// Warnings that are written out one by one; the rest is only counted.
const MOST_WARNINGS: u64 = 1000;

/// Shows progress on the standard error if that is a terminal, and warnings there in any case.
pub struct Terminal {
    tool: &'static str,
    bars: bool,
    bar: Mutex<Option<ProgressBar>>,
    warnings: AtomicU64,
}

impl Terminal {
    /// For the tool of this name. Without `bars` only warnings are written.
    pub fn new(tool: &'static str, bars: bool) -> Self {
        let bars = bars && io::stderr().is_terminal();
        Terminal { tool, bars, bar: Mutex::default(), warnings: AtomicU64::new(0) }
    }

    /// How many warnings there were.
    pub fn warnings(&self) -> u64 {
        self.warnings.load(Ordering::Relaxed)
    }

    fn bar(&self) -> MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Terminal {
    fn begin(&self, what: &str, total: u64, unit: Unit) {
        self.end();
        if !self.bars {
            return;
        }
        let template = match unit {
            Unit::Bytes => "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta}".to_owned(),
            Unit::Items(items) => format!("{{msg}} {{wide_bar}} {{pos}} of {{len}} {items}, {{per_sec}}, {{eta}}"),
        };
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr()).with_style(style);
        *self.bar() = Some(bar.with_message(what.to_owned()));
    }

    fn advance(&self, units: u64) {
        if self.bars
            && let Some(bar) = &*self.bar()
        {
            bar.inc(units);
        }
    }

    fn end(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    fn warn(&self, problem: &Error) {
        let line = match self.warnings.fetch_add(1, Ordering::Relaxed) {
            before if before < MOST_WARNINGS => format!("{}: {problem}", self.tool),
            MOST_WARNINGS => format!("{}: more warnings are not shown", self.tool),
            _ => return,
        };
        // where nobody reads the standard error, nothing can be done
        let write = || writeln!(io::stderr().lock(), "{line}");
        let _ = match &*self.bar() {
            Some(bar) => bar.suspend(write),
            None => write(),
        };
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.end();
    }
}
