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
}
