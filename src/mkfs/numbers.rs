//! Numbers as they are written on the command line: `64`, `0x40`, `16m`, `4b`.
//!
//! The rules are those of mkfs.xfs, which reads a number with `strtoll(3)` in base 0 and multiplies it by one suffix
//! letter: what that accepts, this accepts, and what it makes of an overflow, this makes of it.

/// What the suffixes `b` and `s` stand for, in bytes. Before the block and sector sizes are known they have no meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// Filesystem block.
    pub block: Option<u32>,
    /// Sector.
    pub sector: Option<u32>,
}

/// A number at the start of `text`, and what follows it; `None` when there is none.
///
/// White space and a sign may stand before it; `0x`, `0b` and `0` announce base 16, 2 and 8. A number that is too
/// large becomes the largest, as with `strtoll`.
pub fn integer(text: &str) -> Option<(i64, &str)> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (base, digits) = base_of(digits);
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    let value = digits[..end].chars().filter_map(|c| c.to_digit(base)).fold(0i64, |value, digit| {
        let value = value.saturating_mul(i64::from(base));
        if negative { value.saturating_sub(i64::from(digit)) } else { value.saturating_add(i64::from(digit)) }
    });
    Some((value, &digits[end..]))
}

/// The base that a prefix announces, and the digits behind the prefix.
fn base_of(digits: &str) -> (u32, &str) {
    let bytes = digits.as_bytes();
    if bytes.first() != Some(&b'0') {
        return (10, digits);
    }
    let after = bytes.get(2).copied().map_or(' ', char::from);
    match bytes.get(1) {
        Some(b'x' | b'X') if after.is_ascii_hexdigit() => (16, &digits[2..]),
        Some(b'b' | b'B') if after.is_digit(2) => (2, &digits[2..]),
        _ => (8, digits),
    }
}

/// A number with at most one suffix letter, in bytes; `None` when `text` is nothing of the kind.
///
/// The multiplication wraps around, as it does in mkfs.xfs; the range check that follows refuses what comes of it.
pub fn size(text: &str, units: Units) -> Option<i64> {
    let (number, suffix) = integer(text)?;
    let mut letters = suffix.chars();
    let Some(letter) = letters.next() else { return Some(number) };
    if letters.next().is_some() {
        return None;
    }
    let shift = match letter.to_ascii_lowercase() {
        'b' => return Some(number.wrapping_mul(i64::from(units.block?))),
        's' => return Some(number.wrapping_mul(i64::from(units.sector?))),
        'k' => 10,
        'm' => 20,
        'g' => 30,
        't' => 40,
        'p' => 50,
        'e' => 60,
        _ => return None,
    };
    Some(number.wrapping_mul(1 << shift))
}

/// `bytes` as a person writes it: `16m` rather than 16777216, where that is exact.
pub fn written(bytes: i64) -> String {
    for (letter, shift) in [('e', 60), ('p', 50), ('t', 40), ('g', 30), ('m', 20), ('k', 10)] {
        if bytes >= 1 << shift && bytes % (1 << shift) == 0 {
            return format!("{}{letter}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_base() {
        assert_eq!(integer("64"), Some((64, "")));
        assert_eq!(integer(" +0x1Fz"), Some((31, "z")));
        assert_eq!(integer("010"), Some((8, "")));
        assert_eq!(integer("0b101"), Some((5, "")));
        assert_eq!(integer("0b"), Some((0, "b")), "a zero and the suffix for blocks");
        assert_eq!(integer("0xg"), Some((0, "xg")));
        assert_eq!(integer("08"), Some((0, "8")));
        assert_eq!(integer("-3k"), Some((-3, "k")));
        assert_eq!(integer("99999999999999999999"), Some((i64::MAX, "")));
        assert_eq!(integer("-99999999999999999999"), Some((i64::MIN, "")));
        assert_eq!(integer("m"), None);
        assert_eq!(integer(""), None);
        assert_eq!(integer("-"), None);
    }

    #[test]
    fn sizes_with_suffixes() {
        let units = Units { block: Some(4096), sector: Some(512) };
        assert_eq!(size("16m", units), Some(16 << 20));
        assert_eq!(size("3b", units), Some(12288));
        assert_eq!(size("3S", units), Some(1536));
        assert_eq!(size("3b", Units::default()), None);
        assert_eq!(size("3s", Units::default()), None);
        assert_eq!(size("1e", units), Some(1 << 60));
        assert_eq!(size("16e", units), Some(0), "wraps around");
        assert_eq!(size("1kb", units), None);
        assert_eq!(size("1x", units), None);
    }

    #[test]
    fn written_as_short_as_is_exact() {
        assert_eq!(written(16 << 20), "16m");
        assert_eq!(written(1536), "1536");
        assert_eq!(written(2_136_997_888), "2038m");
        assert_eq!(written(0), "0");
        assert_eq!(written(i64::MAX), "9223372036854775807");
    }
}
