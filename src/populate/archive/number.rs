//! Numbers and times in all their forms.

use crate::ondisk::Timestamp;

/// A field of a header: octal digits, or a number of base 256 with the highest bit set. An empty field is 0.
pub(super) fn field(bytes: &[u8]) -> Option<i64> {
    let (&first, rest) = bytes.split_first()?;
    if first & 0x80 != 0 {
        // the bit below says whether it is negative
        let start = i128::from(first & 0x3f) - if first & 0x40 != 0 { 0x40 } else { 0 };
        let value = rest.iter().try_fold(start, |value, byte| value.checked_mul(256)?.checked_add(i128::from(*byte)));
        return i64::try_from(value?).ok();
    }
    let is_padding = |byte: &u8| matches!(byte, 0 | b' ');
    let digits: Vec<u8> = bytes.iter().copied().skip_while(is_padding).take_while(|byte| !is_padding(byte)).collect();
    digits.iter().try_fold(0, |value: i64, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(i64::from(digit - b'0')),
        _ => None,
    })
}

/// A number of decimal digits.
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| digits)?.parse().ok()
}

/// Seconds with a fraction: `-1.5` is half a second before `-1`.
pub(super) fn time(text: &[u8]) -> Option<Timestamp> {
    let (negative, text) = text.strip_prefix(b"-").map_or((false, text), |text| (true, text));
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let seconds = i64::try_from(decimal(parts.next()?)?).ok()?;
    let fraction = parts.next().unwrap_or_default();
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = fraction.iter().copied().chain(std::iter::repeat(b'0')).take(9);
    let nanoseconds = digits.fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    Some(match (negative, nanoseconds) {
        (false, _) => Timestamp { seconds, nanoseconds },
        (true, 0) => Timestamp { seconds: -seconds, nanoseconds },
        (true, _) => Timestamp { seconds: -seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_in_octal_and_base_256() {
        for (bytes, value) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"644\0garb", Some(0o644)),
            (b"77777777", Some(0o7777_7777)),
            (b"\0\0\0\0", Some(0)),
            (b"    ", Some(0)),
            (b"0008", None),
            (b"-1\0", None),
            (b"\x80\0\0\0\0\0\x01\x00", Some(256)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
            (b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", None),
            (b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", Some(i64::MAX)),
            (b"", None),
        ] {
            assert_eq!(field(bytes), value, "{bytes:?}");
        }
        assert_eq!(field(&[0xff; 40]), Some(-1));
        assert_eq!(field(&[&[0xbf][..], &[0xff; 40]].concat()), None);
    }

    #[test]
    fn times_before_and_after_the_epoch() {
        for (text, seconds, nanoseconds) in [
            ("0", 0, 0),
            ("1.5", 1, 500_000_000),
            ("1234567890.123456789", 1_234_567_890, 123_456_789),
            ("1.1234567899", 1, 123_456_789),
            ("1.", 1, 0),
            ("-1", -1, 0),
            ("-1.25", -2, 750_000_000),
            ("-0.5", -1, 500_000_000),
        ] {
            assert_eq!(time(text.as_bytes()), Some(Timestamp { seconds, nanoseconds }), "{text}");
        }
        for text in ["", "-", ".5", "1.x", "1.2.3", "--1", "9223372036854775808", "1e5"] {
            assert_eq!(time(text.as_bytes()), None, "{text}");
        }
    }
}
