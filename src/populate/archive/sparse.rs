//! Where a sparse file holds data, in the four forms of GNU tar.

use super::header::{Header, Pieces};
use super::number::decimal;
use super::records::Records;
use super::stream::{BLOCK, Stream};
use crate::error::Result;
use crate::populate::data::Bytes;

/// Most pieces of a file, so that a few bytes which decompress to many fill no memory.
const MOST: usize = 1 << 23;

/// A sparse file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sparse {
    /// Its size in bytes.
    pub size: u64,
    /// Where it holds data: first byte and length, ascending, not empty.
    pub segments: Vec<(u64, u64)>,
    /// Bytes of the member that are before the data.
    pub map_bytes: u64,
}

const BAD: &str = "the places of data in a sparse file are not sound";

impl Sparse {
    /// The map in a header of GNU tar, and in the blocks that follow it.
    pub fn from_header(header: &Header, stream: &mut Stream<'_>) -> Result<Self> {
        let (mut pieces, size) = header.sparse().ok_or_else(|| stream.error(BAD))?;
        let mut list = Vec::new();
        loop {
            list.append(&mut pieces.list);
            if list.len() > MOST {
                return Err(stream.error(BAD));
            }
            if !pieces.go_on {
                break;
            }
            let block = stream.block()?.ok_or_else(|| stream.error("ends too early: it is cut off"))?;
            pieces = Pieces::more(&block).ok_or_else(|| stream.error(BAD))?;
        }
        let unsigned = |(start, len): (i64, i64)| u64::try_from(start).ok().zip(u64::try_from(len).ok());
        let list = list.into_iter().map(unsigned).collect::<Option<Vec<_>>>();
        let size = u64::try_from(size).ok();
        list.zip(size).and_then(|(list, size)| sound(size, list, 0)).ok_or_else(|| stream.error(BAD))
    }

    /// The map in records, or in the first blocks of the member; `None` when it is no sparse file.
    pub fn from_records(records: &Records, stored: u64, stream: &mut Stream<'_>) -> Result<Option<Self>> {
        let number = |key: &str| records.last(key).map(decimal);
        let size = number("GNU.sparse.realsize").or_else(|| number("GNU.sparse.size"));
        let Some(size) = size else { return Ok(None) };
        let size = size.ok_or_else(|| stream.error(BAD))?;
        if number("GNU.sparse.major") == Some(Some(1)) {
            let (list, map_bytes) = map_in_front(stored, stream)?;
            return sound(size, list, map_bytes).map(Some).ok_or_else(|| stream.error(BAD));
        }
        let numbers = match records.last("GNU.sparse.map") {
            Some(map) => map.split(|byte| *byte == b',').map(decimal).collect::<Option<Vec<_>>>(),
            None => {
                let pieces =
                    records.iter().filter(|(key, _)| matches!(*key, b"GNU.sparse.offset" | b"GNU.sparse.numbytes"));
                pieces.map(|(_, value)| decimal(value)).collect()
            }
        };
        let list = numbers.and_then(pairs);
        list.and_then(|list| sound(size, list, 0)).map(Some).ok_or_else(|| stream.error(BAD))
    }

    /// Bytes of data.
    pub fn stored(&self) -> u64 {
        self.segments.iter().map(|(_, len)| len).sum()
    }
}

fn pairs(numbers: Vec<u64>) -> Option<Vec<(u64, u64)>> {
    (numbers.len() % 2 == 0).then(|| numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}

/// Version 1.0: lines with numbers before the data, filled up to a block.
fn map_in_front(stored: u64, stream: &mut Stream<'_>) -> Result<(Vec<(u64, u64)>, u64)> {
    let mut lines = Lines { left: stored, taken: 0, block: Vec::new(), stream };
    let count = lines.number()?;
    let mut list = Vec::new();
    for _ in 0..count {
        if list.len() >= MOST {
            return Err(stream.error(BAD));
        }
        list.push((lines.number()?, lines.number()?));
    }
    Ok((list, lines.taken))
}

/// Lines at the beginning of a member.
struct Lines<'l, 'a> {
    /// Bytes of the member that were not read.
    left: u64,
    taken: u64,
    /// What was read and is still to be looked at, the last byte first.
    block: Vec<u8>,
    stream: &'l mut Stream<'a>,
}

impl Lines<'_, '_> {
    fn number(&mut self) -> Result<u64> {
        let mut digits = Vec::new();
        loop {
            match self.byte()? {
                b'\n' => return decimal(&digits).ok_or_else(|| self.stream.error(BAD)),
                digit if digits.len() < 20 => digits.push(digit),
                _ => return Err(self.stream.error(BAD)),
            }
        }
    }

    fn byte(&mut self) -> Result<u8> {
        if self.block.is_empty() {
            let len = BLOCK as u64;
            self.left = self.left.checked_sub(len).ok_or_else(|| self.stream.error(BAD))?;
            self.taken += len;
            self.block.resize(BLOCK, 0);
            self.stream.fill(&mut self.block)?;
            self.block.reverse();
        }
        self.block.pop().ok_or_else(|| self.stream.error(BAD))
    }
}

/// A map whose pieces are in order and within the file. Empty ones mark its end.
fn sound(size: u64, list: Vec<(u64, u64)>, map_bytes: u64) -> Option<Sparse> {
    let mut at = 0;
    for &(start, len) in &list {
        at = start.checked_add(len).filter(|end| start >= at && *end <= size)?;
    }
    let segments = list.into_iter().filter(|(_, len)| *len > 0).collect();
    i64::try_from(size).is_ok().then_some(Sparse { size, segments, map_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(lines: &[(&str, &str)]) -> Records {
        let mut records = Records::default();
        for (key, value) in lines {
            let rest = key.len() + value.len() + 3;
            let len = (rest + 1..).find(|len| len.to_string().len() + rest == *len).expect("a length");
            records.read(format!("{len} {key}={value}\n").as_bytes()).expect("a record");
        }
        records
    }

    fn sparse(lines: &[(&str, &str)], data: &[u8]) -> Result<Option<Sparse>> {
        let data = [data, &[b'.'; BLOCK]].concat();
        let mut stream = Stream::new(Box::new(&data[..]), "x".into()).expect("an archive");
        Sparse::from_records(&records(lines), 512, &mut stream)
    }

    #[test]
    fn records_of_all_versions() {
        let old = [
            ("GNU.sparse.size", "100"),
            ("GNU.sparse.numblocks", "2"),
            ("GNU.sparse.offset", "0"),
            ("GNU.sparse.numbytes", "5"),
            ("GNU.sparse.offset", "50"),
            ("GNU.sparse.numbytes", "50"),
        ];
        let segments = vec![(0, 5), (50, 50)];
        let expected = |map_bytes| Some(Sparse { size: 100, segments: segments.clone(), map_bytes });
        assert_eq!(sparse(&old, b"").expect("a map"), expected(0));
        let map = [("GNU.sparse.size", "100"), ("GNU.sparse.map", "0,5,50,50,100,0")];
        assert_eq!(sparse(&map, b"").expect("a map"), expected(0));
        let new = [("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "100")];
        let mut block = b"3\n0\n5\n50\n50\n100\n0\n".to_vec();
        block.resize(BLOCK, 0);
        assert_eq!(sparse(&new, &block).expect("a map"), expected(512));
        assert_eq!(sparse(&[("path", "x")], b"").expect("none"), None);
    }

    #[test]
    fn maps_that_are_not_sound() {
        for map in ["0,5,4,1", "0,101", "0", "x,1", "-1,5", "18446744073709551615,1", "0,5,"] {
            assert!(sparse(&[("GNU.sparse.size", "100"), ("GNU.sparse.map", map)], b"").is_err(), "{map}");
        }
        assert!(sparse(&[("GNU.sparse.size", "9223372036854775808")], b"").is_err());
        let new = [("GNU.sparse.major", "1"), ("GNU.sparse.realsize", "100")];
        for text in ["", "2\n0\n5\n", "999999999999999999999\n", "1\nx\n1\n"] {
            let mut block = text.as_bytes().to_vec();
            block.resize(BLOCK, b'0');
            assert!(sparse(&new, &block).is_err(), "{text}");
        }
    }
}
