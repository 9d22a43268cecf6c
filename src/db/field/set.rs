//! Setting fields: the reverse of showing them.

use uuid::Uuid;

use super::format::{Null, Shape};
use super::node::Node;
use super::object::Object;
use super::row::Bits;
use super::text::only_ones;
use super::value::{inode_time, is_bigtime_dquot, is_bigtime_inode};
use crate::db::commands::number;
use crate::error::{Error, Result};
use crate::ondisk::Timestamp;
use crate::ondisk::timestamp::quota_timer_from_unix;

/// The bits that `text` stands for as the value of one element of a field, from the first to the last; a string may be
/// shorter than the field. `object` is what the field is in.
///
/// Numbers are decimal, hexadecimal or octal, with a sign where the field has one; `null` where it may be null. Times are
/// seconds since 1970.
///
/// # Errors
/// `Usage` when the text is no such value, or the field is a structure.
pub fn encode(node: &Node, text: &str, object: &Object<'_>) -> Result<Vec<bool>> {
    let size = node.size(object);
    let wrong = || Error::Usage(format!("{text} is no value of {}", node.row.name));
    let fits = |value: u64| if value <= only_ones(size) { Ok(bits(value, size)) } else { Err(wrong()) };
    match node.row.format.shape {
        Shape::Number { null: Null::Word, .. } if text == "null" => Ok(bits(only_ones(size), size)),
        Shape::Number { signed: true, .. } => signed(text, size).map(|value| bits(value, size)).ok_or_else(wrong),
        Shape::Number { .. } | Shape::Crc => fits(number::value(text).ok_or_else(wrong)?),
        Shape::Named(names) => {
            let named = || names.iter().position(|name| *name == text).and_then(|index| u64::try_from(index).ok());
            fits(number::value(text).or_else(named).ok_or_else(wrong)?)
        }
        Shape::Uuid => {
            let uuid = Uuid::try_parse(text).map_err(|_| wrong())?;
            Ok(uuid.as_bytes().iter().flat_map(|byte| bits(u64::from(*byte), 8)).collect())
        }
        Shape::Characters => {
            let bytes = unquote(text).filter(|bytes| bytes.len() <= node.count(object)).ok_or_else(wrong)?;
            Ok(bytes.iter().flat_map(|byte| bits(u64::from(*byte), 8)).collect())
        }
        Shape::Time => {
            let time = Timestamp { seconds: text.parse().map_err(|_| wrong())?, ..inode_time(object, node.offset) };
            time_bits(time, object).ok_or_else(wrong)
        }
        Shape::Nanoseconds => {
            let nanoseconds = number::value(text).and_then(|value| u32::try_from(value).ok()).ok_or_else(wrong)?;
            time_bits(Timestamp { nanoseconds, ..inode_time(object, node.offset) }, object).ok_or_else(wrong)
        }
        Shape::QuotaTimer => {
            let seconds = number::value(text).ok_or_else(wrong)?;
            let raw = quota_timer_from_unix(seconds, is_bigtime_dquot(object)).ok_or_else(wrong)?;
            Ok(bits(u64::from(raw), 32))
        }
        Shape::Records(_) | Shape::Structure(_) => {
            Err(Error::Usage(format!("{} is a structure; set its fields", node.row.name)))
        }
    }
}

/// Stores bits at `bit`; `None`, and nothing is changed, where the bytes end before the last of them.
#[must_use]
pub fn store(bytes: &mut [u8], bit: Bits, value: &[bool]) -> Option<()> {
    let end = bit.checked_add(value.len())?;
    (end <= bytes.len().checked_mul(8)?).then_some(())?;
    for (at, set) in (bit..).zip(value) {
        let mask = 0x80 >> (at % 8);
        if *set {
            bytes[at / 8] |= mask;
        } else {
            bytes[at / 8] &= !mask;
        }
    }
    Some(())
}

fn bits(value: u64, size: Bits) -> Vec<bool> {
    (0..size).rev().map(|bit| bit < 64 && value >> bit & 1 != 0).collect()
}

fn signed(text: &str, size: Bits) -> Option<u64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let magnitude = number::value(digits)?;
    let limit = 1_u64.checked_shl(u32::try_from(size.checked_sub(1)?).ok()?)?;
    if negative {
        return (magnitude <= limit).then(|| magnitude.wrapping_neg() & only_ones(size));
    }
    (magnitude < limit).then_some(magnitude)
}

fn time_bits(time: Timestamp, object: &Object<'_>) -> Option<Vec<bool>> {
    time.encode(is_bigtime_inode(object)).map(|raw| bits(raw.get(), 64))
}

/// The bytes of a string, with or without quotes, in the form in which fields are shown.
fn unquote(text: &str) -> Option<Vec<u8>> {
    let text = match text.strip_prefix('"') {
        Some(inner) => inner.strip_suffix('"')?,
        None => text,
    };
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let (&escaped, after) = rest.split_first()?;
        rest = after;
        match escaped {
            b'0'..=b'3' => {
                let digits =
                    after.get(..2).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)))?;
                bytes.push((escaped - b'0') << 6 | (digits[0] - b'0') << 3 | (digits[1] - b'0'));
                rest = &after[2..];
            }
            b'a'..=b'g' => bytes.push(escaped - b'a' + 7),
            other => bytes.push(other),
        }
    }
    Some(bytes)
}
