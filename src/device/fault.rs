//! Faults on command, and a record of what was written: for tests of what happens when a device fails.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;

use super::contract::{ByteRange, Device, SectorSize, io_error, length_of};
use crate::error::{DeviceRole, Result};

/// Kind of operation, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `read_at`.
    Read,
    /// `write_at`, `write_zeroes` and `discard`.
    Write,
    /// `flush`.
    Flush,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The operation fails and does nothing.
    Error,
    /// The write puts down this many bytes, counted from its start, and fails.
    Torn(u64),
    /// The operation reports success and does nothing: a device that lies.
    Lost,
}

/// When something goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Operations that count.
    pub operation: Operation,
    /// Number of the one that is hit, from 0.
    pub nth: u64,
    /// What happens to it.
    pub effect: Effect,
    /// Whether the device is gone from then on: everything fails.
    pub then_dead: bool,
}

/// Something that changed the device or made changes durable, in the order in which it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Bytes were written.
    Write {
        /// Where.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// A range was zeroed.
    Zero(ByteRange),
    /// A range was discarded.
    Discard(ByteRange),
    /// All before is durable.
    Flush,
}

impl Event {
    /// Does to `device` what the event did.
    ///
    /// # Errors
    /// Those of the device.
    pub fn replay(&self, device: &dyn Device) -> Result<()> {
        match self {
            Event::Write { offset, bytes } => device.write_at(*offset, bytes),
            Event::Zero(range) => device.write_zeroes(range.start, range.len),
            Event::Discard(range) => device.discard(range.start, range.len).map(|_| ()),
            Event::Flush => device.flush(),
        }
    }
}

/// A device that fails when it is told to, and can record what is written.
pub struct FaultDevice<D> {
    inner: D,
    faults: Vec<Fault>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reads: u64,
    writes: u64,
    flushes: u64,
    dead: bool,
    record: Option<Vec<Event>>,
}

impl<D: Device> FaultDevice<D> {
    /// A device without faults.
    pub fn new(inner: D) -> Self {
        FaultDevice { inner, faults: Vec::new(), state: Mutex::default() }
    }

    /// Adds a fault.
    #[must_use]
    pub fn with(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Starts to record.
    #[must_use]
    pub fn recording(self) -> Self {
        self.state().record = Some(Vec::new());
        self
    }

    /// Takes what was recorded so far; recording goes on.
    pub fn take_events(&self) -> Vec<Event> {
        self.state().record.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// How many operations of a kind there have been.
    pub fn count(&self, operation: Operation) -> u64 {
        let state = self.state();
        match operation {
            Operation::Read => state.reads,
            Operation::Write => state.writes,
            Operation::Flush => state.flushes,
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation, and says what is to happen to it.
    fn arrive(&self, operation: Operation, offset: u64) -> Result<Option<Effect>> {
        let mut state = self.state();
        if state.dead {
            return Err(io_error(self.role(), offset, Errno::NODEV));
        }
        let counter = match operation {
            Operation::Read => &mut state.reads,
            Operation::Write => &mut state.writes,
            Operation::Flush => &mut state.flushes,
        };
        let number = *counter;
        *counter += 1;
        let hit = self.faults.iter().find(|fault| fault.operation == operation && fault.nth == number);
        state.dead = hit.is_some_and(|fault| fault.then_dead);
        Ok(hit.map(|fault| fault.effect))
    }

    fn failure<T>(&self, offset: u64) -> Result<T> {
        Err(io_error(self.role(), offset, io::Error::from(Errno::IO)))
    }

    fn note(&self, event: impl FnOnce() -> Event) {
        if let Some(record) = &mut self.state().record {
            record.push(event());
        }
    }

    /// Runs a write of `len` bytes; `put` writes the first bytes of it.
    fn write(&self, offset: u64, len: u64, put: impl Fn(u64) -> Result<()>) -> Result<()> {
        match self.arrive(Operation::Write, offset)? {
            None => put(len),
            Some(Effect::Error) => self.failure(offset),
            Some(Effect::Torn(kept)) => {
                put(kept.min(len))?;
                self.failure(offset)
            }
            Some(Effect::Lost) => Ok(()),
        }
    }
}

impl<D: Device> Device for FaultDevice<D> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn role(&self) -> DeviceRole {
        self.inner.role()
    }

    fn sector_size(&self) -> SectorSize {
        self.inner.sector_size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match self.arrive(Operation::Read, offset)? {
            None | Some(Effect::Lost) => self.inner.read_at(offset, buf),
            Some(Effect::Error | Effect::Torn(_)) => self.failure(offset),
        }
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.write(offset, length_of(buf), |kept| {
            let bytes = &buf[..usize::try_from(kept).unwrap_or(buf.len())];
            self.inner.write_at(offset, bytes)?;
            self.note(|| Event::Write { offset, bytes: bytes.to_vec() });
            Ok(())
        })
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> Result<()> {
        self.write(offset, len, |kept| {
            self.inner.write_zeroes(offset, kept)?;
            self.note(|| Event::Zero(ByteRange { start: offset, len: kept }));
            Ok(())
        })
    }

    fn flush(&self) -> Result<()> {
        match self.arrive(Operation::Flush, 0)? {
            None => {
                self.inner.flush()?;
                self.note(|| Event::Flush);
                Ok(())
            }
            Some(Effect::Lost) => Ok(()),
            Some(Effect::Error | Effect::Torn(_)) => self.failure(0),
        }
    }

    fn discard(&self, offset: u64, len: u64) -> Result<bool> {
        self.write(offset, len, |kept| {
            self.inner.discard(offset, kept)?;
            self.note(|| Event::Discard(ByteRange { start: offset, len: kept }));
            Ok(())
        })?;
        Ok(true)
    }

    fn next_allocated(&self, from: u64) -> Result<Option<ByteRange>> {
        self.inner.next_allocated(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::MemoryDevice;

    fn failing(nth: u64, effect: Effect, then_dead: bool) -> FaultDevice<MemoryDevice> {
        FaultDevice::new(MemoryDevice::new(64)).with(Fault { operation: Operation::Write, nth, effect, then_dead })
    }

    fn bytes(device: &dyn Device) -> [u8; 8] {
        let mut bytes = [0; 8];
        device.read_at(0, &mut bytes).expect("readable");
        bytes
    }

    #[test]
    fn the_nth_write_fails() {
        let device = failing(1, Effect::Error, false);
        device.write_at(0, &[1; 8]).expect("the first works");
        device.write_at(0, &[2; 8]).expect_err("the second does not");
        assert_eq!(bytes(&device), [1; 8]);
        device.write_at(0, &[3; 8]).expect("the third works");
        assert_eq!((device.count(Operation::Write), device.count(Operation::Read)), (3, 1));
    }

    #[test]
    fn a_torn_write_leaves_its_start() {
        for write in
            [|device: &dyn Device| device.write_at(0, &[2; 8]), |device: &dyn Device| device.write_zeroes(0, 8)]
        {
            let device = failing(1, Effect::Torn(3), true);
            device.write_at(0, &[1; 8]).expect("the first works");
            write(&device).expect_err("the second does not");
            assert!(device.read_at(0, &mut [0]).is_err() && device.flush().is_err(), "it is dead");
            let left = bytes(&device.inner);
            assert_ne!(left[..3], [1; 3]);
            assert_eq!(left[3..], [1; 5]);
        }
    }

    #[test]
    fn a_lost_write_is_not_noticed() {
        let device = failing(0, Effect::Lost, false);
        device.write_at(0, &[1; 8]).expect("it lies");
        assert_eq!(bytes(&device), [0; 8]);
    }

    #[test]
    fn the_record_replays() {
        let device = FaultDevice::new(MemoryDevice::from_bytes(&[5; 64])).recording();
        device.write_at(3, &[1; 10]).expect("writable");
        device.write_zeroes(5, 2).expect("writable");
        device.flush().expect("flushable");
        device.discard(20, 4).expect("discardable");
        let events = device.take_events();
        assert_eq!(events.len(), 4);
        assert_eq!(events[2], Event::Flush);
        let copy = MemoryDevice::from_bytes(&[5; 64]);
        events.iter().try_for_each(|event| event.replay(&copy)).expect("replayable");
        let (mut left, mut right) = ([0; 64], [0; 64]);
        device.read_at(0, &mut left).expect("readable");
        copy.read_at(0, &mut right).expect("readable");
        assert_eq!(left, right);
        assert!(device.take_events().is_empty());
    }
}
