//! The bytes of an archive, decompressed.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use zstd::stream::read::Decoder;

use crate::error::{Error, Result};
use crate::populate::data::Bytes;

/// Bytes of a block of an archive.
pub(super) const BLOCK: usize = 512;
/// Bytes that are read at once.
const BUFFER: usize = 256 << 10;

/// The bytes of an archive.
pub(super) struct Stream<'a> {
    reader: Box<dyn BufRead + 'a>,
    name: String,
}

/// Beginnings of compressed files that are not decompressed here.
const UNKNOWN: &[(&[u8], &str)] = &[
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh", "bzip2"),
    (b"LZIP", "lzip"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\x1f\x9d", "compress"),
    (b"PK\x03\x04", "zip"),
];
const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

impl<'a> Stream<'a> {
    /// An archive, which its first bytes say the compression of. `name` is its name in errors.
    pub fn new(reader: Box<dyn Read + 'a>, name: String) -> Result<Self> {
        let failed = |error: io::Error| Error::source(&name, error);
        let mut first = Vec::new();
        let mut reader = reader;
        (&mut reader).take(8).read_to_end(&mut first).map_err(failed)?;
        if first.is_empty() {
            return Err(Error::source(name, "is empty, and no archive"));
        }
        if let Some((_, program)) = UNKNOWN.iter().find(|(magic, _)| first.starts_with(magic)) {
            let problem =
                format!("is compressed with {program}; it must be decompressed first: gzip and zstd are known here");
            return Err(Error::source(name, problem));
        }
        // the frame of zstd that others skip is one of 16 magic numbers
        let is_skippable = first.len() >= 4 && first[0] & 0xf0 == 0x50 && first[1..4] == [0x2a, 0x4d, 0x18];
        let is_zstd = first.starts_with(ZSTD) || is_skippable;
        let is_gzip = first.starts_with(GZIP);
        let whole = BufReader::with_capacity(BUFFER, io::Cursor::new(first).chain(reader));
        let reader: Box<dyn BufRead + 'a> = if is_gzip {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(whole)))
        } else if is_zstd {
            Box::new(BufReader::with_capacity(BUFFER, Decoder::with_buffer(whole).map_err(failed)?))
        } else {
            Box::new(whole)
        };
        Ok(Stream { reader, name })
    }

    /// An error of the archive.
    pub fn error(&self, problem: impl std::fmt::Display) -> Error {
        Error::source(&self.name, problem)
    }

    fn failed(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.error("ends too early: it is cut off"),
            _ => self.error(error),
        }
    }

    /// The next block; `None` at the end of the archive's bytes.
    pub fn block(&mut self) -> Result<Option<[u8; BLOCK]>> {
        let mut block = [0; BLOCK];
        let ended = self.reader.fill_buf().map(<[u8]>::is_empty);
        if ended.map_err(|error| self.failed(error))? {
            return Ok(None);
        }
        self.fill(&mut block)?;
        Ok(Some(block))
    }

    /// Passes over `len` bytes.
    pub fn skip(&mut self, len: u64) -> Result<()> {
        let mut left = len;
        while left > 0 {
            let available = self.reader.fill_buf().map(<[u8]>::len);
            let available = available.map_err(|error| self.failed(error))?;
            if available == 0 {
                return Err(self.failed(io::ErrorKind::UnexpectedEof.into()));
            }
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(available);
            self.reader.consume(now);
            left -= u64::try_from(now).unwrap_or(left);
        }
        Ok(())
    }

    /// Reads to the end, so that a sum at the end is checked and a program that writes into a pipe can end. Whether all is
    /// zero.
    pub fn drain(&mut self) -> Result<bool> {
        let mut zero = true;
        loop {
            let read = self.reader.fill_buf().map(|bytes| (bytes.len(), bytes.iter().all(|byte| *byte == 0)));
            let (len, is_zero) = read.map_err(|error| self.failed(error))?;
            if len == 0 {
                return Ok(zero);
            }
            zero &= is_zero;
            self.reader.consume(len);
        }
    }
}

impl Bytes for Stream<'_> {
    fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
        self.reader.read_exact(buf).map_err(|error| self.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("in memory");
        encoder.finish().expect("in memory")
    }

    fn all(bytes: &[u8]) -> Result<Vec<u8>> {
        let mut stream = Stream::new(Box::new(bytes), "a.tar".into())?;
        let mut blocks = Vec::new();
        while let Some(block) = stream.block()? {
            blocks.extend(block);
        }
        Ok(blocks)
    }

    #[test]
    fn compression_is_found_out() {
        let bytes: Vec<u8> = (0..5 * BLOCK).map(|at| u8::try_from(at % 251).expect("small")).collect();
        let (first, second) = bytes.split_at(700);
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).expect("in memory");
        let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd(&bytes)].concat();
        for packed in [
            bytes.clone(),
            gzip(&bytes),
            [gzip(first), gzip(second)].concat(),
            zstd(&bytes),
            [zstd(first), zstd(second)].concat(),
            skippable,
        ] {
            assert_eq!(all(&packed).expect("an archive"), bytes);
        }
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let bytes = [7; 3 * BLOCK];
        for packed in [bytes.to_vec(), gzip(&bytes), zstd::encode_all(&bytes[..], 1).expect("in memory")] {
            for len in [packed.len() - 1, packed.len() - 5, packed.len() / 2] {
                let error = all(&packed[..len]).map(|_| ()).expect_err("cut off").to_string();
                assert!(error.starts_with("a.tar: ") && error.contains("cut off"), "{len}: {error}");
            }
        }
    }

    #[test]
    fn other_compressions_are_named() {
        for (magic, program) in UNKNOWN {
            let error = Stream::new(Box::new(*magic), "x".into()).err().expect("unknown").to_string();
            assert!(error.contains(program), "{error}");
        }
        assert!(all(b"").is_err());
    }

    #[test]
    fn the_rest_is_read() {
        let bytes = [&[1; BLOCK][..], &[0; BLOCK], &[0, 0, 5]].concat();
        let mut stream = Stream::new(Box::new(&bytes[..]), "x".into()).expect("an archive");
        stream.skip(512).expect("there");
        assert_eq!(stream.block().expect("there"), Some([0; BLOCK]));
        assert!(!stream.drain().expect("there"));
        assert!(stream.drain().expect("there") && stream.skip(1).is_err());
    }
}
