//! Output that is written while the next is made.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{JoinHandle, spawn};

/// Bytes that go to the writer at once.
const PIECE: usize = 1 << 20;
/// Pieces that may wait for it.
const WAITING: usize = 2;

/// Output that a thread of its own writes. [`Background::finish`] must be called in the end.
pub(super) struct Background {
    buffer: Vec<u8>,
    full: Option<SyncSender<Vec<u8>>>,
    written: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Background {
    /// Writes to `out`.
    pub(super) fn new(mut out: Box<dyn Write + Send>) -> Self {
        let (full, pieces) = sync_channel::<Vec<u8>>(WAITING);
        let (back, written) = channel();
        let thread = spawn(move || {
            for mut piece in pieces {
                out.write_all(&piece)?;
                piece.clear();
                // the other side may have ended
                let _ = back.send(piece);
            }
            out.flush()
        });
        Background { buffer: Vec::with_capacity(PIECE), full: Some(full), written, thread: Some(thread) }
    }

    fn pass_on(&mut self) -> io::Result<()> {
        let spare = self.written.try_recv().unwrap_or_else(|_| Vec::with_capacity(PIECE));
        let piece = std::mem::replace(&mut self.buffer, spare);
        let gone = self.full.as_ref().is_none_or(|full| full.send(piece).is_err());
        // only an error ends the thread before the end
        if gone { self.join().and_then(|()| Err(io::Error::other("the output has ended"))) } else { Ok(()) }
    }

    fn join(&mut self) -> io::Result<()> {
        self.full = None;
        let ended = || Err(io::Error::other("the writer has ended"));
        self.thread.take().map_or_else(ended, |thread| thread.join().unwrap_or_else(|_| ended()))
    }

    /// Waits until everything is written.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.pass_on()?;
        self.join()
    }
}

impl Write for Background {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let taken = buf.len().min(PIECE - self.buffer.len());
        self.buffer.extend_from_slice(&buf[..taken]);
        if self.buffer.len() == PIECE {
            self.pass_on()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("invariant: nobody panics").extend_from_slice(buf);
            Ok(buf.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(buf.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(buf.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn all_that_is_written_arrives_in_order() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let mut out = Background::new(Box::new(Shared(Arc::clone(&written))));
        let mut expected = Vec::new();
        for at in 0..5_000_u32 {
            let piece = vec![at.to_le_bytes()[0]; usize::try_from(at).expect("small")];
            out.write_all(&piece).expect("room");
            expected.extend(piece);
        }
        out.finish().expect("room");
        assert!(*written.lock().expect("invariant: nobody panics") == expected);
    }

    #[test]
    fn an_output_that_is_full_is_an_error() {
        let mut out = Background::new(Box::new(Full(3 << 20)));
        let mut result = Ok(());
        for _ in 0..20 {
            result = result.and_then(|()| out.write_all(&[0; 1 << 19]));
        }
        assert_eq!(result.map_err(|error| error.kind()), Err(io::ErrorKind::StorageFull));
    }
}
