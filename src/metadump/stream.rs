//! The bytes of a dump, in large chunks that a thread reads ahead.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender};

use crate::error::{Error, Result};

/// Bytes of a chunk: few enough to be in the cache of the processor still when they are written.
const CHUNK: usize = 1 << 16;
/// Chunks between the thread that reads and the one that writes.
pub(super) const CHUNKS_AHEAD: usize = 8;

/// Bytes that were read at once: as many as there is room for, or all that were left.
pub(super) struct Chunk {
    room: Box<[u8]>,
    len: usize,
}

impl Chunk {
    pub(super) fn read(input: &mut dyn Read) -> io::Result<Self> {
        let mut chunk = Chunk { room: vec![0; CHUNK].into_boxed_slice(), len: 0 };
        chunk.refill(input)?;
        Ok(chunk)
    }

    fn refill(&mut self, input: &mut dyn Read) -> io::Result<()> {
        self.len = 0;
        while self.len < CHUNK {
            match input.read(&mut self.room[self.len..]) {
                Ok(0) => break,
                Ok(count) => self.len += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.room[..self.len]
    }
}

/// Reads chunks until the end, which an empty one marks, or until nobody wants them any more. Those that come back are
/// filled again.
pub(super) fn read_ahead(input: &mut dyn Read, full: &SyncSender<io::Result<Chunk>>, spare: &Receiver<Chunk>) {
    loop {
        let chunk = match spare.try_recv() {
            Ok(mut chunk) => chunk.refill(input).map(|()| chunk),
            Err(_) => Chunk::read(input),
        };
        let ended = chunk.as_ref().map_or(true, |chunk| chunk.len == 0);
        if full.send(chunk).is_err() || ended {
            return;
        }
    }
}

/// The bytes of chunks, one after the other.
pub(super) struct Stream {
    chunk: Chunk,
    /// Bytes of the chunk that have been taken.
    taken: usize,
    full: Receiver<io::Result<Chunk>>,
    spare: Sender<Chunk>,
}

impl Stream {
    /// The bytes of `first`, then those of the chunks that come.
    pub(super) fn new(first: Chunk, full: Receiver<io::Result<Chunk>>, spare: Sender<Chunk>) -> Self {
        Stream { chunk: first, taken: 0, full, spare }
    }

    /// Whether all has been taken.
    pub(super) fn is_at_end(&mut self) -> Result<bool> {
        if self.taken < self.chunk.len {
            return Ok(false);
        }
        if self.chunk.len == 0 {
            return Ok(true);
        }
        let next = self.full.recv().map_err(|_| Error::Internal("the thread that reads has ended".to_owned()))?;
        let used = std::mem::replace(&mut self.chunk, next.map_err(|error| of_input(&error))?);
        self.taken = 0;
        // the other side has ended when all has been read
        let _ = self.spare.send(used);
        Ok(self.chunk.len == 0)
    }

    /// The next bytes: at least one, and at most so many.
    pub(super) fn take(&mut self, most: usize) -> Result<&[u8]> {
        if self.is_at_end()? {
            return Err(too_short());
        }
        let start = self.taken;
        self.taken = self.chunk.len.min(start.saturating_add(most));
        Ok(&self.chunk.room[start..self.taken])
    }

    /// Fills `bytes` with the next ones.
    pub(super) fn fill(&mut self, mut bytes: &mut [u8]) -> Result<()> {
        while !bytes.is_empty() {
            let part = self.take(bytes.len())?;
            let (now, later) = bytes.split_at_mut(part.len());
            now.copy_from_slice(part);
            bytes = later;
        }
        Ok(())
    }
}

/// A dump that is not what it should be.
pub(super) fn bad(what: impl Into<String>) -> Error {
    Error::Usage(format!("the dump is damaged: {}", what.into()))
}

/// A dump that is cut short.
pub(super) fn too_short() -> Error {
    bad("it ends too early")
}

/// A dump that cannot be read.
pub(super) fn of_input(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => too_short(),
        _ => Error::Usage(format!("cannot read the dump: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{channel, sync_channel};

    /// What `take` gives of `input`, in pieces of at most `most` bytes.
    fn taken(mut input: &[u8], most: usize) -> Vec<u8> {
        let first = Chunk::read(&mut input).expect("invariant: memory can be read");
        let (full, chunks) = sync_channel(CHUNKS_AHEAD);
        let (spare, used) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || read_ahead(&mut input, &full, &used));
            let mut stream = Stream::new(first, chunks, spare);
            let mut bytes = Vec::new();
            while !stream.is_at_end().expect("invariant: memory can be read") {
                bytes.extend_from_slice(stream.take(most).expect("not at the end"));
            }
            assert!(stream.take(1).is_err() && stream.fill(&mut [0]).is_err() && stream.fill(&mut []).is_ok());
            bytes
        })
    }

    #[test]
    fn all_bytes_come_in_order() {
        let bytes: Vec<u8> = (0..3 * CHUNK + 77).map(|at| ((at / 256) ^ at).to_le_bytes()[0]).collect();
        for (len, most) in
            [(0, 1), (1, 9), (CHUNK, 1000), (CHUNK + 1, CHUNK), (2 * CHUNK, usize::MAX), (bytes.len(), 7777)]
        {
            assert!(taken(&bytes[..len], most) == bytes[..len], "{len} bytes by {most}");
        }
    }

    #[test]
    fn an_error_of_the_input_is_told() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("gone"))
            }
        }
        assert!(Chunk::read(&mut Broken).is_err());
        let (full, chunks) = sync_channel(CHUNKS_AHEAD);
        let (spare, used) = channel();
        let first = Chunk::read(&mut &b"x"[..]).expect("invariant: memory can be read");
        read_ahead(&mut Broken, &full, &used);
        let mut stream = Stream::new(first, chunks, spare);
        assert_eq!(stream.take(5).expect("one byte is there"), b"x");
        let error = stream.take(5).expect_err("the rest cannot be read");
        assert!(error.to_string().contains("gone"), "{error}");
    }
}
