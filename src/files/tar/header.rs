//! The header block of a member (POSIX.1-2017, `pax`, "ustar Interchange Format").

use std::io::{self, Write};

/// Bytes of a block.
pub(super) const BLOCK: usize = 512;

/// Kinds of members.
pub(super) mod kind {
    pub(in super::super) const FILE: u8 = b'0';
    pub(in super::super) const HARD_LINK: u8 = b'1';
    pub(in super::super) const SYMLINK: u8 = b'2';
    pub(in super::super) const CHARACTER: u8 = b'3';
    pub(in super::super) const BLOCK: u8 = b'4';
    pub(in super::super) const DIRECTORY: u8 = b'5';
    pub(in super::super) const FIFO: u8 = b'6';
    /// Extended header records for the member that follows.
    pub(in super::super) const RECORDS: u8 = b'x';
}

/// Lengths of the fields, in their order.
const NAME: usize = 100;
const PREFIX: usize = 155;
/// Where fields begin.
mod at {
    pub(super) const MODE: usize = 100;
    pub(super) const UID: usize = 108;
    pub(super) const GID: usize = 116;
    pub(super) const SIZE: usize = 124;
    pub(super) const MTIME: usize = 136;
    pub(super) const CHECKSUM: usize = 148;
    pub(super) const KIND: usize = 156;
    pub(super) const LINK: usize = 157;
    pub(super) const MAGIC: usize = 257;
    pub(super) const MAJOR: usize = 329;
    pub(super) const MINOR: usize = 337;
    pub(super) const PREFIX: usize = 345;
}

/// Largest number that a field of eight bytes holds: seven octal digits.
const LARGEST_SHORT: u64 = 0o777_7777;
/// Largest number that a field of twelve bytes holds.
pub(super) const LARGEST_LONG: u64 = 0o777_7777_7777;

/// What a header says. Fields that cannot hold their values say nothing: the records before the member do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header<'a> {
    pub(super) name: &'a [u8],
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) size: u64,
    /// Seconds since the Unix epoch.
    pub(super) mtime: i64,
    pub(super) kind: u8,
    pub(super) link: &'a [u8],
    pub(super) major: u32,
    pub(super) minor: u32,
}

/// Whether a user or group fits its field.
pub(super) fn id_fits(id: u32) -> bool {
    u64::from(id) <= LARGEST_SHORT
}

/// Whether a target fits its field.
pub(super) fn link_fits(link: &[u8]) -> bool {
    link.len() <= NAME
}

/// Whether seconds fit their field.
pub(super) fn time_fits(seconds: i64) -> bool {
    u64::try_from(seconds).is_ok_and(|seconds| seconds <= LARGEST_LONG)
}

/// The name in two parts, the second of which goes into the name and the first before a slash into the prefix; `None` when
/// there are no such parts.
pub(super) fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    if name.len() <= NAME {
        return Some((b"", name));
    }
    // a slash in the end belongs to the name of a folder
    let slash = (name.len() - NAME - 1..name.len() - 1).find(|&at| name[at] == b'/')?;
    (1..=PREFIX).contains(&slash).then(|| (&name[..slash], &name[slash + 1..]))
}

impl Header<'_> {
    /// Writes the block.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut block = [0; BLOCK];
        let cut = &self.name[..self.name.len().min(NAME)];
        let (prefix, name) = split(self.name).unwrap_or((b"", cut));
        put(&mut block, 0, name);
        put(&mut block, at::PREFIX, prefix);
        put(&mut block, at::LINK, &self.link[..self.link.len().min(NAME)]);
        octal(&mut block, at::MODE, 7, u64::from(self.mode & 0o7777));
        octal(&mut block, at::UID, 7, if id_fits(self.uid) { u64::from(self.uid) } else { 0 });
        octal(&mut block, at::GID, 7, if id_fits(self.gid) { u64::from(self.gid) } else { 0 });
        octal(&mut block, at::SIZE, 11, if self.size <= LARGEST_LONG { self.size } else { 0 });
        let mtime = if time_fits(self.mtime) { u64::try_from(self.mtime).unwrap_or(0) } else { 0 };
        octal(&mut block, at::MTIME, 11, mtime);
        block[at::KIND] = self.kind;
        put(&mut block, at::MAGIC, b"ustar\x0000");
        octal(&mut block, at::MAJOR, 7, u64::from(self.major).min(LARGEST_SHORT));
        octal(&mut block, at::MINOR, 7, u64::from(self.minor).min(LARGEST_SHORT));
        // the sum is formed with blanks in its own place
        put(&mut block, at::CHECKSUM, b"        ");
        let sum = block.iter().map(|&byte| u64::from(byte)).sum();
        octal(&mut block, at::CHECKSUM, 6, sum);
        block[at::CHECKSUM + 6] = 0;
        out.write_all(&block)
    }
}

fn put(block: &mut [u8; BLOCK], at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Writes `value` in `digits` octal digits.
fn octal(block: &mut [u8; BLOCK], at: usize, digits: usize, value: u64) {
    let mut left = value;
    for place in block[at..at + digits].iter_mut().rev() {
        *place = b'0' + u8::try_from(left & 7).expect("invariant: three bits");
        left >>= 3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_split_at_a_slash() {
        assert_eq!(split(b"a/b"), Some((&b""[..], &b"a/b"[..])));
        let (long, dir) = ("n".repeat(100), "d".repeat(155));
        let name = format!("{dir}/{long}");
        assert_eq!(split(name.as_bytes()), Some((dir.as_bytes(), long.as_bytes())));
        for name in
            [format!("{dir}x/{long}"), format!("{dir}/{long}x"), "n".repeat(101), format!("{}/", "n".repeat(100))]
        {
            assert_eq!(split(name.as_bytes()), None, "{name}");
        }
        let folder = format!("dir/{}/", "n".repeat(99));
        assert_eq!(split(folder.as_bytes()).map(|(prefix, _)| prefix), Some(&b"dir"[..]));
    }

    #[test]
    fn a_header_is_what_others_read() {
        let header = Header {
            name: b"dir/name",
            mode: 0o100_644,
            uid: 1000,
            gid: 100,
            size: 12_345,
            mtime: 1_700_000_000,
            kind: kind::FILE,
            link: b"",
            major: 0,
            minor: 0,
        };
        let mut bytes = Vec::new();
        header.write(&mut bytes).expect("invariant: memory takes all");
        bytes.extend(vec![0; 12_345_usize.next_multiple_of(512) + 1024]);
        let mut archive = tar::Archive::new(&bytes[..]);
        let entry = archive.entries().expect("readable").next().expect("one").expect("sound");
        let read = entry.header();
        assert_eq!(entry.path_bytes().as_ref(), b"dir/name");
        assert_eq!((read.mode().ok(), read.uid().ok(), read.gid().ok()), (Some(0o644), Some(1000), Some(100)));
        assert_eq!((read.size().ok(), read.mtime().ok()), (Some(12_345), Some(1_700_000_000)));
    }
}
