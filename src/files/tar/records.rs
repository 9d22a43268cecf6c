//! Extended header records: what the header block has no room or no field for.

use std::io::{self, Write};

use super::header::{BLOCK, Header, kind};
use crate::ondisk::Timestamp;

/// Records for the member that follows.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
    /// A record holds text that is not UTF-8.
    binary: bool,
}

impl Records {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.binary = false;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A record: its length in decimal, the length's own digits included, the key, the value.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) {
        let rest = key.len() + value.len() + 3;
        let mut len = rest + digits(rest);
        // with more digits the record may need one more
        if digits(len) + rest != len {
            len = rest + digits(len);
        }
        write!(self.bytes, "{len} ").expect("invariant: memory takes all");
        self.bytes.extend_from_slice(key);
        self.bytes.push(b'=');
        self.bytes.extend_from_slice(value);
        self.bytes.push(b'\n');
    }

    pub(super) fn put_number(&mut self, key: &str, value: u64) {
        self.put(key.as_bytes(), value.to_string().as_bytes());
    }

    /// A name or a target, which need not be UTF-8.
    pub(super) fn put_name(&mut self, key: &str, name: &[u8]) {
        self.binary |= std::str::from_utf8(name).is_err();
        self.put(key.as_bytes(), name);
    }

    /// A point in time, to the nanosecond.
    pub(super) fn put_time(&mut self, key: &str, time: Timestamp) {
        self.put(key.as_bytes(), decimal(time).as_bytes());
    }

    /// An extended attribute. GNU tar takes the key up to the first equals sign, and has a way to write those in names.
    pub(super) fn put_xattr(&mut self, name: &[u8], value: &[u8]) {
        let mut key = b"SCHILY.xattr.".to_vec();
        for &byte in name {
            match byte {
                b'%' => key.extend_from_slice(b"%25"),
                b'=' => key.extend_from_slice(b"%3D"),
                byte => key.push(byte),
            }
        }
        self.put(&key, value);
    }

    /// Writes the records as a member of their own, called after `name`.
    pub(super) fn write(&mut self, name: &[u8], mtime: i64, out: &mut dyn Write) -> io::Result<()> {
        if self.binary {
            // it must stand before what it is about
            let mut first = Records::default();
            first.put(b"hdrcharset", b"BINARY");
            self.bytes.splice(0..0, first.bytes);
            self.binary = false;
        }
        let last = name.strip_suffix(b"/").unwrap_or(name).rsplit(|&byte| byte == b'/').next().unwrap_or(name);
        let name = [b"PaxHeaders/", &last[..last.len().min(80)]].concat();
        let size = u64::try_from(self.bytes.len()).expect("invariant: memory holds fewer than 2^64 bytes");
        let header = Header {
            name: &name,
            mode: 0o644,
            uid: 0,
            gid: 0,
            size,
            mtime,
            kind: kind::RECORDS,
            link: b"",
            major: 0,
            minor: 0,
        };
        header.write(out)?;
        out.write_all(&self.bytes)?;
        let padding = self.bytes.len().next_multiple_of(BLOCK) - self.bytes.len();
        out.write_all(&[0; BLOCK][..padding])
    }
}

fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| usize::try_from(log).unwrap_or(0) + 1)
}

/// Seconds since the epoch as a decimal fraction, without zeroes in the end.
fn decimal(time: Timestamp) -> String {
    let nanoseconds = i64::from(time.nanoseconds.min(999_999_999));
    let (sign, seconds, fraction) = if time.seconds < 0 && nanoseconds > 0 {
        ("-", -(time.seconds + 1), 1_000_000_000 - nanoseconds)
    } else {
        ("", time.seconds, nanoseconds)
    };
    if fraction == 0 {
        return format!("{sign}{seconds}");
    }
    let text = format!("{sign}{seconds}.{fraction:09}");
    text.trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_says_how_long_it_is(key in "[a-z]{1,20}", len in 0_usize..2000) {
            let mut records = Records::default();
            records.put(key.as_bytes(), &vec![b'v'; len]);
            let text = String::from_utf8(records.bytes.clone()).expect("ASCII");
            let (number, _) = text.split_once(' ').expect("a blank");
            prop_assert_eq!(number.parse(), Ok(text.len()));
        }
    }

    #[test]
    fn lengths_at_which_a_digit_is_added() {
        for len in 0..1100 {
            let mut records = Records::default();
            records.put(b"k", &vec![b'v'; len]);
            let text = String::from_utf8(records.bytes).expect("ASCII");
            assert_eq!(text.split_once(' ').and_then(|(number, _)| number.parse().ok()), Some(text.len()));
        }
    }

    #[test]
    fn times_before_the_epoch() {
        for (seconds, nanoseconds, text) in [
            (0, 0, "0"),
            (1, 500_000_000, "1.5"),
            (-1, 500_000_000, "-0.5"),
            (-2, 999_999_999, "-1.000000001"),
            (-3, 0, "-3"),
            (1_700_000_000, 1, "1700000000.000000001"),
        ] {
            assert_eq!(decimal(Timestamp { seconds, nanoseconds }), text);
        }
    }

    #[test]
    fn equals_signs_in_names_of_attributes() {
        let mut records = Records::default();
        records.put_xattr(b"user.a=b%c", b"1=2");
        assert_eq!(records.bytes, b"35 SCHILY.xattr.user.a%3Db%25c=1=2\n");
    }
}
