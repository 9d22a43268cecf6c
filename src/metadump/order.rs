//! Many threads make the pieces of a dump; they are written in the order of the tasks, whoever is first.
//!
//! A thread whose turn has not come keeps what it made, up to a bound for all of them, and goes on with the next task.
//! The oldest task that is not finished always has a thread, and may write: so the work never stands still.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::container::Container;
use super::segment::Segment;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ondisk::metadump::MetaDevice;

/// A segment is written when it has so many bytes.
const SEGMENT: usize = 1 << 20;
/// Bytes of finished segments that wait for their turn.
const MOST_WAITING: usize = 24 << 20;
/// More threads would only wait for the one that writes.
const MOST_THREADS: usize = 8;

/// Takes the pieces of one task.
pub(super) struct Sink<'o> {
    order: &'o Order<'o>,
    task: usize,
    segment: Segment,
}

impl Sink<'_> {
    /// Adds `bytes` that belong at `daddr` of the data device.
    pub(super) fn append(&mut self, daddr: u64, bytes: &[u8]) -> Result<()> {
        self.append_to(MetaDevice::Data, daddr, bytes)
    }

    /// Adds `bytes` that belong at `daddr` of `device`.
    pub(super) fn append_to(&mut self, device: MetaDevice, daddr: u64, bytes: &[u8]) -> Result<()> {
        self.make_room()?;
        self.segment.append(device, daddr, bytes);
        Ok(())
    }

    /// Adds `len` bytes as they stand at `daddr` of `from`, whose address 0 is at byte `start`. A failed read adds
    /// nothing: [`Added::Unreadable`].
    pub(super) fn copy(
        &mut self,
        from: &dyn Device,
        start: u64,
        device: MetaDevice,
        daddr: u64,
        len: usize,
    ) -> Result<Added> {
        self.make_room()?;
        Ok(match self.segment.read(from, start, device, daddr, len) {
            Ok(()) => Added::Whole,
            Err(error) => Added::Unreadable(error),
        })
    }

    fn make_room(&mut self) -> Result<()> {
        if self.segment.bytes().len() >= SEGMENT {
            self.order.flush(self.task, &mut self.segment)?;
        }
        Ok(())
    }
}

/// What came of [`Sink::copy`].
pub(super) enum Added {
    /// Everything is in the dump.
    Whole,
    /// Nothing is.
    Unreadable(Error),
}

struct Order<'c> {
    state: Mutex<State>,
    changed: Condvar,
    container: Mutex<&'c mut Container>,
}

#[derive(Default)]
struct State {
    /// The task that may write.
    turn: usize,
    finished: BTreeMap<usize, Segment>,
    waiting: usize,
    spare: Vec<Segment>,
    failure: Option<Error>,
    failed: bool,
}

/// What a thread is told when another one has failed; nobody sees it.
fn stopped() -> Error {
    Error::Internal("another thread has failed".to_owned())
}

/// The dump could not be written.
fn unwritten(error: &io::Error) -> Error {
    Error::Usage(format!("cannot write the dump: {error}"))
}

impl Order<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, segment: &Segment) -> Result<()> {
        let mut container = self.container.lock().unwrap_or_else(PoisonError::into_inner);
        container.write(segment).map_err(|error| unwritten(&error))
    }

    fn wait_for_turn(&self, task: usize) -> Result<()> {
        let mut state = self.lock();
        while state.turn != task && !state.failed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.failed { Err(stopped()) } else { Ok(()) }
    }

    /// Writes a full segment of a task that goes on.
    fn flush(&self, task: usize, segment: &mut Segment) -> Result<()> {
        self.wait_for_turn(task)?;
        self.write(segment)?;
        segment.clear();
        Ok(())
    }

    fn fail(&self, error: Error) {
        let mut state = self.lock();
        if !state.failed {
            state.failure = Some(error);
        }
        state.failed = true;
        self.changed.notify_all();
    }

    /// The end of a task: its last segment is written, or waits.
    fn finish(&self, task: usize, segment: Segment) -> Result<()> {
        let mut state = self.lock();
        while state.turn != task && state.waiting >= MOST_WAITING && !state.failed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.failed {
            return Err(stopped());
        }
        state.waiting += segment.bytes().len();
        state.finished.insert(task, segment);
        if state.turn != task {
            return Ok(());
        }
        // it is this thread's turn, and it goes on with what others have finished behind it
        while let Some(mut next) = {
            let turn = state.turn;
            state.finished.remove(&turn)
        } {
            drop(state);
            self.write(&next)?;
            state = self.lock();
            state.waiting -= next.bytes().len();
            next.clear();
            state.spare.push(next);
            state.turn += 1;
            self.changed.notify_all();
        }
        Ok(())
    }

    fn segment(&self) -> Segment {
        self.lock().spare.pop().unwrap_or_default()
    }
}

/// Does the tasks `0..count` with `work`, in as many threads as there are processors, and writes what they make in their
/// order. Gives what each of them returns.
///
/// # Errors
/// The first of a task, or of the output.
pub(super) fn in_order<T: Send>(
    container: &mut Container,
    count: usize,
    work: &(dyn Fn(usize, &mut Sink<'_>) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS).min(count.max(1));
    let order = Order { state: Mutex::default(), changed: Condvar::new(), container: Mutex::new(container) };
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(count));
    let worker = || loop {
        let task = next.fetch_add(1, Ordering::Relaxed);
        if task >= count || order.lock().failed {
            return;
        }
        let mut sink = Sink { order: &order, task, segment: order.segment() };
        let done = work(task, &mut sink).and_then(|value| {
            order.finish(task, sink.segment)?;
            results.lock().unwrap_or_else(PoisonError::into_inner).push((task, value));
            Ok(())
        });
        if let Err(error) = done {
            return order.fail(error);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(worker);
        }
        worker();
    });
    let mut state = order.lock();
    if state.failed {
        return Err(state.failure.take().unwrap_or_else(stopped));
    }
    drop(state);
    let mut results = std::mem::take(&mut *results.lock().unwrap_or_else(PoisonError::into_inner));
    results.sort_by_key(|result| result.0);
    Ok(results.into_iter().map(|result| result.1).collect())
}
