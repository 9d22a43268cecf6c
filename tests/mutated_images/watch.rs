//! Who sees to it that everything ends soon and takes little memory.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use xfskit::error::Error;
use xfskit::report::{Observer, Unit};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Most bytes that one image may take, whatever is done with it.
pub const MOST_MEMORY: usize = 512 << 20;

/// Memory that is in use now, and the most that was since [`forget_peak`].
pub fn memory() -> (usize, usize) {
    (MEMORY.current_usage(), MEMORY.peak_usage())
}

pub fn forget_peak() {
    MEMORY.reset_peak_usage();
}

/// The runs that are going on.
#[derive(Default)]
pub struct Watch {
    running: Mutex<BTreeMap<u64, (String, Instant)>>,
}

impl Watch {
    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, (String, Instant)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin(&self, run: u64, what: String) {
        self.running().insert(run, (what, Instant::now()));
    }

    /// How long the run took.
    pub fn end(&self, run: u64) -> Duration {
        self.running().remove(&run).map_or(Duration::ZERO, |(_, begin)| begin.elapsed())
    }

    /// Ends the process when a run hangs, or takes so much memory that the machine is in danger: neither can be undone.
    pub fn look(&self, longest: Duration, most: usize) {
        let running = self.running();
        let late = running.iter().find(|(_, (_, begin))| begin.elapsed() > longest);
        if let Some((run, (what, _))) = late {
            say_and_abort(&format!("run {run} hangs: {what}"));
        }
        if memory().0 > most {
            say_and_abort(&format!("{} MiB are in use: one of {running:?}", memory().0 >> 20));
        }
    }
}

fn say_and_abort(what: &str) -> ! {
    // the harness does not show what a test has printed when the process ends so
    let _ = writeln!(io::stderr(), "{what}");
    std::process::abort()
}

/// Takes so many bytes and no more.
pub struct Sink(u64);

impl Sink {
    /// Most bytes that are waited for: a file may be as long as its inode says.
    const MOST: u64 = 64 << 20;

    pub fn new() -> Self {
        Sink(Self::MOST)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len() as u64).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Problems that were told, by all runs.
static PROBLEMS: AtomicU64 = AtomicU64::new(0);

pub fn problems() -> u64 {
    PROBLEMS.load(Ordering::Relaxed)
}

/// An error may say anything but that the program is wrong.
pub fn usual(error: &Error) {
    PROBLEMS.fetch_add(1, Ordering::Relaxed);
    assert!(!matches!(error, Error::Internal(_)), "{error}");
    assert!(!error.to_string().is_empty());
}

/// Writes out what it is told, as a tool would.
#[derive(Default)]
pub struct Listener(AtomicU64);

impl Observer for Listener {
    fn begin(&self, _what: &str, _total: u64, _unit: Unit) {}
    fn advance(&self, _units: u64) {}
    fn end(&self) {}

    fn warn(&self, problem: &Error) {
        // as many as a tool shows
        if self.0.fetch_add(1, Ordering::Relaxed) < 1000 {
            usual(problem);
        }
    }
}
