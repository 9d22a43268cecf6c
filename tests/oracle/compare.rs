//! Compares two files byte by byte, reading only what one of them holds: 100 TiB of hole take no time.

use rustix::fs::{SeekFrom, seek};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The bytes read at a time.
const PIECE: usize = 1 << 20;

/// What differs between two files.
#[derive(Debug)]
pub struct Difference {
    /// Offset of the first byte that differs.
    first: u64,
    /// The pieces of 512 bytes that differ.
    sectors: u64,
    /// The first bytes around it, of the one and of the other file.
    bytes: (Vec<u8>, Vec<u8>),
    /// The four bytes with which the block of 4 KiB and the sector around it begin in the second file.
    magic: (Vec<u8>, Vec<u8>),
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        write!(
            f,
            "first at {:#x} (in 4 KiB block {} at +{:#x}, which begins '{}'; its sector begins '{}'), {} sectors differ; ours {} theirs {}",
            self.first,
            self.first / 4096,
            self.first % 4096,
            self.magic.0.escape_ascii(),
            self.magic.1.escape_ascii(),
            self.sectors,
            hex(&self.bytes.0),
            hex(&self.bytes.1),
        )
    }
}

/// Compares `ours` with `theirs`; `None` if they are the same in length and content.
pub fn files(ours: &Path, theirs: &Path) -> Result<Option<String>, String> {
    let open = |path: &Path| File::open(path).map_err(|error| format!("{}: {error}", path.display()));
    let (a, b) = (open(ours)?, open(theirs)?);
    let length = |file: &File| file.metadata().map(|meta| meta.len()).map_err(|error| error.to_string());
    if length(&a)? != length(&b)? {
        return Ok(Some(format!("ours has {} bytes, theirs {}", length(&a)?, length(&b)?)));
    }
    let difference = contents(&a, &b).map_err(|error| format!("comparing: {error}"))?;
    Ok(difference.map(|difference| difference.to_string()))
}

fn contents(a: &File, b: &File) -> io::Result<Option<Difference>> {
    let ranges = union(data_ranges(a)?, data_ranges(b)?);
    let mut pieces = (vec![0; PIECE], vec![0; PIECE]);
    let mut found: Option<Difference> = None;
    for (start, end) in ranges {
        let mut pos = start;
        while pos < end {
            let length = usize::try_from(end - pos).unwrap_or(PIECE).min(PIECE);
            let (x, y) = (&mut pieces.0[..length], &mut pieces.1[..length]);
            a.read_exact_at(x, pos)?;
            b.read_exact_at(y, pos)?;
            if x != y {
                for (index, (x, y)) in x.chunks(512).zip(y.chunks(512)).enumerate() {
                    if x != y {
                        let sector = pos + 512 * index as u64;
                        match &mut found {
                            Some(difference) => difference.sectors += 1,
                            None => found = Some(describe(b, sector, x, y)?),
                        }
                    }
                }
            }
            pos += length as u64;
        }
    }
    Ok(found)
}

/// The first difference of two sectors that differ.
fn describe(theirs: &File, sector: u64, x: &[u8], y: &[u8]) -> io::Result<Difference> {
    let at = x.iter().zip(y).position(|(x, y)| x != y).unwrap_or(0);
    let bytes = |sector: &[u8]| sector[at..(at + 16).min(sector.len())].to_vec();
    let magic = |offset: u64| -> io::Result<Vec<u8>> {
        let mut magic = vec![0; 4];
        theirs.read_exact_at(&mut magic, offset)?;
        Ok(magic)
    };
    let first = sector + at as u64;
    let magic = (magic(first / 4096 * 4096)?, magic(sector)?);
    Ok(Difference { first, sectors: 1, bytes: (bytes(x), bytes(y)), magic })
}

/// The ranges of a file that are not holes, as `[start, end)`, extended to whole sectors of 512 bytes.
fn data_ranges(file: &File) -> io::Result<Vec<(u64, u64)>> {
    let length = file.metadata()?.len();
    let mut ranges = Vec::new();
    let mut pos = 0;
    while pos < length {
        let start = match seek(file, SeekFrom::Data(pos)) {
            Ok(start) => start,
            Err(rustix::io::Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = seek(file, SeekFrom::Hole(start))?;
        ranges.push((start / 512 * 512, end.next_multiple_of(512).min(length)));
        pos = end;
    }
    Ok(ranges)
}

/// The union of two lists of ranges.
fn union(mut ranges: Vec<(u64, u64)>, more: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.extend(more);
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (start, end) in ranges {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

#[test]
fn one_changed_byte_is_found_wherever_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let length = 3_u64 << 30;
    for name in ["a", "b"] {
        let file = File::create(path(name)).expect("a file");
        file.set_len(length + 7).expect("a length");
        file.write_all_at(&[0x55; 5000], 1 << 20).expect("data");
    }
    assert_eq!(files(&path("a"), &path("b")), Ok(None));
    // zeroes written into a hole are the same bytes
    File::options().write(true).open(path("b")).expect("a file").write_all_at(&[0; 9000], 1 << 29).expect("data");
    assert_eq!(files(&path("a"), &path("b")), Ok(None));
    for offset in [0, (1 << 20) + 4999, (1 << 30) + 77, length + 6] {
        let file = File::options().write(true).open(path("b")).expect("a file");
        let byte = |value: u8| file.write_all_at(&[value], offset).expect("data");
        byte(0xee);
        let difference = files(&path("a"), &path("b")).expect("a comparison").expect("a difference");
        assert!(difference.contains(&format!("first at {offset:#x} ")), "{difference}");
        byte(if offset == (1 << 20) + 4999 { 0x55 } else { 0 });
        assert_eq!(files(&path("a"), &path("b")), Ok(None));
    }
    File::options().write(true).open(path("b")).expect("a file").set_len(length).expect("a length");
    assert!(files(&path("a"), &path("b")).expect("a comparison").is_some());
}
