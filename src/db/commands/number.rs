//! Numbers as the C library's `strtoull` reads them: decimal, `0x` hexadecimal, `0` octal.

use crate::error::{Error, Result};

/// The number that `text` is; `what` is what it should be, for the error.
///
/// # Errors
/// `Usage` when it is none.
pub(in crate::db) fn parse(text: &str, what: &str) -> Result<u64> {
    value(text).ok_or_else(|| Error::Usage(format!("{text} is no {what}")))
}

/// The number that `text` is.
pub(in crate::db) fn value(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if lower.len() > 1 && lower.starts_with('0') => (&lower[1..], 8),
        None => (&lower[..], 10),
    };
    let plain = digits.chars().all(|c| c.is_ascii_alphanumeric());
    u64::from_str_radix(digits, radix).ok().filter(|_| plain)
}

/// The number of bytes that `text` is: with a letter behind it, of sectors (s), blocks (b), KiB (k), MiB (m) and so on.
///
/// # Errors
/// `Usage` when it is none.
pub(in crate::db) fn sized(text: &str, blocksize: u32, sectsize: u32) -> Result<u64> {
    let unit = |letter: char| {
        let shift = match letter.to_ascii_lowercase() {
            's' => return Some(u64::from(sectsize)),
            'b' => return Some(u64::from(blocksize)),
            'k' => 10,
            'm' => 20,
            'g' => 30,
            't' => 40,
            'p' => 50,
            'e' => 60,
            _ => return None,
        };
        Some(1_u64 << shift)
    };
    let (digits, unit) = match text.chars().next_back().and_then(unit) {
        Some(unit) if !text.starts_with("0x") => (&text[..text.len() - 1], unit),
        _ => (text, 1),
    };
    let bytes = value(digits).and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| Error::Usage(format!("{text} is no size")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_bases() {
        for (text, expected) in [("0", 0), ("12", 12), ("0x1F", 31), ("017", 15), ("18446744073709551615", u64::MAX)] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
        for text in ["", "-1", "+1", "0x", "08", "1a", "18446744073709551616", "1 "] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_with_a_letter() {
        let size = |text: &str| sized(text, 4096, 512).ok();
        for (text, expected) in [("512", 512), ("2b", 8192), ("3s", 1536), ("1k", 1024), ("1M", 1 << 20), ("0xb", 11)] {
            assert_eq!(size(text), Some(expected), "{text}");
        }
        for text in ["", "k", "1q", "99e", "-1k"] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}
